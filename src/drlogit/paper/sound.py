"""A variant of the framework that stops on its gap; it goes beyond the paper.

    minimise  q(λ)  over  0 ≤ λ ≤ 0.2785/ε,    q(λ) = min over x of the objective of (A) at λ

Three rules change.  ρ follows the residuals instead of growing.  The search over λ uses q', which
the multipliers give at no cost, instead of values.  The run ends when the gap is within ``tol``.

*Cuts.*  For s, a in [0, 1]^N, duality bounds q from below at every λ by the line

    q(λ) ≥ (1/N) Σ H(s_i) + λ (ε - (κ/N) Σ a_i - ‖Zᵀ(s - a)/N‖),      H the binary entropy.

An iterate of LP-ADMM hands over a good point: ``w' = w^{k+1} - ρ_k(y^{k+1} - y^k)``, for which
``Zᵀw'`` is normal to the ball at x^{k+1}.  Among all s, a with ``s - a = Nw'`` the best is in
closed form.  At the optimum of (B) the slope of its line is q'(λ) (envelope theorem).

A falling and a rising cut bound (A) from below where they meet; that bound is the dual value of the
convex combination of their points with slope zero.  The next λ is where the two best cuts meet.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from scipy.special import entr, expit

from ..problem.dual_point import DualPoint
from ..problem.result import Monitor, Result, Status
from ..rows.arrays import FloatArray, Matrix
from ..rows.threads import one_blas_thread
from .box_qp import Inner, NormBall, Quadratic, check_method, fastest_method, solve_qp
from .lp_admm import lp_admm
from .subproblem import (
    LAMBDA_CONSTANT,
    PaperIterate,
    Subproblem,
    TransportNorm,
    as_matrix,
    check,
    get_norm,
    worst_case_loss,
)

#: The search leaves a subproblem when its own gap is this share of what is unknown about (A).
_SHARE_OF_UNKNOWN = 0.1

#: Gap of (C) relative to the square of the last residual: an error that the iteration dwarfs.
_INNER_SHARE = 1e-4

#: The same without the matrix H, where inner steps are what takes the time: relative to √N times
#: the last residual; and its least value relative to N tol, as a cut loses about the gap of (C).
_MATRIX_FREE_SHARE, _LEAST_SHARE = 0.05, 0.3

#: The search begins where margins have about this size, which for log-odds is large.
_FIRST_MARGIN = 8.0

#: Iterations between the first looks at the gap; later ones are a quarter of the way apart.
_CHECK_EVERY = 10


def sound(
    Z: Matrix,
    *,
    epsilon: float,
    kappa: float,
    norm: str | TransportNorm = "l1",
    lam: float | None = None,
    tol: float = 1e-6,
    inner: Inner | None = None,
    max_iter: int = 100_000,
    callback: Callable[[float, PaperIterate], Any] | None = None,
) -> Result:
    """Solve (A) by LP-ADMM, or (B) at a given ``lam``, until the gap is within ``tol``.

    Parameters
    ----------
    Z, kappa, norm
        As in :func:`~drlogit.paper.lp_admm`.
    epsilon : float
        The radius, positive.
    lam : float, optional
        λ, for problem (B); its objective counts ``ελ`` as well.
    tol : float
        The gap at which to stop.
    inner : str or callable, optional
        Solver of (C), as in :func:`~drlogit.paper.box_qp`; None for the fastest.
    max_iter : int
        Limit on all iterations together.
    callback : callable, optional
        Called with λ and the iterate after every iteration; True stops the run.
    """
    check("epsilon", epsilon, least=0.0, strict=True)
    check("tol", tol, least=0.0, strict=True)
    Z, ball = as_matrix("Z", Z), get_norm(norm)
    method = fastest_method(ball, Z.shape[1]) if inner is None else inner
    check_method(method, 0.0, ball, Z.shape[1])
    search = _Search(Z, epsilon, kappa, ball, tol, method, max_iter, callback)
    with one_blas_thread:
        if lam is None:
            search.run()
        else:
            search.probe(Subproblem.of(Z, lam, kappa, ball).lam, fixed=True)
    return search.result()


class Cut(NamedTuple):
    """The lower bound ``intercept + slope·λ`` of q, and the dual point (s, a) behind it."""

    intercept: float
    slope: float
    point: FloatArray

    def at(self, lam: float) -> float:
        """The bound at λ."""
        return self.intercept + self.slope * lam


def cut_of(problem: Subproblem, epsilon: float, iterate: PaperIterate, y_before: FloatArray) -> Cut:
    """The cut of an iterate of LP-ADMM."""
    N, b = problem.N, problem.b
    v = np.clip(N * (iterate.w - iterate.rho * (iterate.y - y_before)), -1.0, 1.0)
    if math.isinf(b):
        s, a, spent = np.maximum(v, 0.0), np.zeros(N), 0.0
    else:
        # max H(s) - κλ a over s - a = v: s as on the kink, as far as s and a stay in [0, 1]
        s = np.clip(expit(-b), np.maximum(v, 0.0), np.minimum(1.0 + v, 1.0))
        a = s - v
        spent = problem.kappa * float(a.mean())
    used = spent + problem.norm.value(problem.Z.T @ (s - a) / N)
    return Cut(float(np.mean(entr(s) + entr(1.0 - s))), epsilon - used, np.stack([s, a]))


class BalancedPenalty:
    """Relative residual balancing (Wohlberg 2017) as ρ(k): at k = 10, 20, 40, …, by at most 4.

    It is never below the proven range, and constant for longer and longer, as the theory requires.
    """

    def __init__(self, N: int, rho: float | None = None) -> None:
        self.rho = 1.0 / N if rho is None else rho
        self._least = 1.01 * (math.sqrt(3.0) + 1.0) / (4 * N)

    def __call__(self, k: int) -> float:
        return self.rho

    def follow(self, iterate: PaperIterate, y_before: FloatArray) -> None:
        """Balance the residuals of an iterate, where it is time."""
        k = iterate.k
        if k % 10 or (k // 10) & (k // 10 - 1):
            return
        primal = iterate.residual / max(float(np.linalg.norm(iterate.y)), 1e-300)
        moved = iterate.rho * float(np.linalg.norm(iterate.y - y_before))
        dual = moved / max(float(np.linalg.norm(iterate.w)), 1e-300)
        ratio = primal / max(dual, 1e-300)
        if not 0.2 <= ratio <= 5.0:
            self.rho = max(self.rho * min(max(math.sqrt(ratio), 0.25), 4.0), self._least)


@dataclass(eq=False)
class _Search:
    """The bounds found so far, where LP-ADMM stands, and what it all cost."""

    Z: Matrix
    epsilon: float
    kappa: float
    norm: TransportNorm
    tol: float
    method: Inner
    max_iter: int
    callback: Callable[[float, PaperIterate], Any] | None
    objective: float = math.inf
    lower: float = -math.inf
    falling: Cut | None = None  # the cuts with slope < 0 and ≥ 0 that bound (A) best
    rising: Cut | None = None
    status: Status = Status.MAX_ITER
    n_iter: int = 0
    started: float = field(default_factory=time.perf_counter)

    def __post_init__(self) -> None:
        self.H, self.top = Quadratic(self.Z), LAMBDA_CONSTANT / self.epsilon
        N, n = self.Z.shape
        self.lam, self.x = 0.0, np.zeros(n)  # the best point
        self.penalty = BalancedPenalty(N)
        # The last iterate, at first the null model, whose multiplier is s/N = 1/2N.
        self.last = PaperIterate(0, self.x, np.zeros(N), np.full(N, 0.5 / N), 0.0, math.inf, 0.0)

    def inner(self, _: Quadratic, c: FloatArray, ball: NormBall, x: FloatArray) -> FloatArray:
        """Problem (C), to a gap that the last residual dwarfs."""
        root = math.sqrt(self.Z.shape[0])
        error = min(self.last.residual, root)
        stop = _INNER_SHARE * error**2
        if self.H.matrix is None:
            stop = max(_MATRIX_FREE_SHARE * root * error, _LEAST_SHARE * self.tol * root**2)
        return solve_qp(self.method, max(stop, ball.rounding(c)), self.H, c, ball, x)

    def probe(self, lam: float, fixed: bool = False) -> bool:
        """LP-ADMM at ``lam`` until q is known well enough there; True if the run is over."""
        problem = Subproblem(self.Z, lam, self.kappa, self.norm)
        every = 1 if self.H.matrix is None else _CHECK_EVERY  # there an iteration costs more
        check_at = every
        options: Any = {"norm": self.norm, "rho": self.penalty, "inner": self.inner}
        start = (self.last.x, self.last.y, self.last.w)
        for iterate in lp_admm(self.Z, lam, self.kappa, start=start, **options):
            before, self.last = self.last, iterate
            self.n_iter += 1
            stopped = self.callback is not None and self.callback(lam, iterate) is True
            over = stopped or self.n_iter >= self.max_iter
            self.penalty.follow(iterate, before.y)
            if iterate.k < check_at and not over:
                continue
            check_at = iterate.k + max(every, iterate.k // 4)
            cut = cut_of(problem, self.epsilon, iterate, before.y)
            value = self.epsilon * lam + problem.F(self.Z @ iterate.x)
            self.learn(lam, value, cut, fixed)
            unknown = self.objective - self.lower
            if unknown <= self.tol:
                self.status = Status.OPTIMAL
            elif stopped:
                self.status = Status.STOPPED
            if over or unknown <= self.tol:
                return True
            if not fixed and value - cut.at(lam) <= _SHARE_OF_UNKNOWN * unknown:
                break
        return False

    def learn(self, lam: float, value: float, cut: Cut, fixed: bool) -> None:
        """Keep the last iterate if its objective is less, and a cut if the bound is better."""
        if fixed:
            self.lower = max(self.lower, cut.at(lam))
        else:
            value, lam = worst_case_loss(self.Z, self.last.x, self.epsilon, self.kappa, self.norm)
            falling = cut if cut.slope < 0.0 else self.falling
            rising = self.rising if cut.slope < 0.0 else cut
            lower = meeting(falling, rising, self.top)[0]
            if lower > self.lower:
                self.falling, self.rising, self.lower = falling, rising, lower
        if value < self.objective:
            self.objective, self.lam, self.x = value, lam, self.last.x

    def run(self) -> None:
        """Probe where the two best cuts meet, and towards the ends while there is one only."""
        sizes = np.sqrt(self.H.diagonal / self.Z.shape[0])
        size = float(np.linalg.norm(sizes) if self.norm.name == "l1" else sizes.max(initial=0.0))
        lam = min(0.5 * self.top, _FIRST_MARGIN / max(size, 1e-300))
        while not self.probe(lam):
            if self.falling is not None and self.rising is not None:
                lam = meeting(self.falling, self.rising, self.top)[1]
            else:
                lam = 0.3 * lam if self.falling is None else min(3.0 * lam, self.top)

    def result(self) -> Result:
        """The best point, with the dual point that bounds (A)."""
        cuts = [cut for cut in (self.falling, self.rising) if cut is not None]
        shares = [abs(cut.slope) for cut in cuts[::-1]] if len(cuts) == 2 else None  # slopes cancel
        points = [cut.point for cut in cuts]
        return Result(
            coef=self.x,
            intercept=0.0,
            lam=self.lam,
            objective=self.objective,
            dual_objective=self.lower,
            gap=self.objective - self.lower,
            dual=DualPoint(*np.average(points, axis=0, weights=shares)) if cuts else None,
            status=self.status,
            n_iter=self.n_iter,
            solver="sound",
            setup_time=0.0,
            solve_time=time.perf_counter() - self.started,
            trace=Monitor().trace,
        )


def meeting(falling: Cut | None, rising: Cut | None, top: float) -> tuple[float, float]:
    """The least value on [0, top] of the larger of two cuts, and where it is."""
    if falling is None or (rising is not None and falling.intercept <= rising.intercept):
        return (-math.inf if rising is None else rising.intercept), 0.0
    if rising is None or falling.at(top) >= rising.at(top):
        return falling.at(top), top
    at = (falling.intercept - rising.intercept) / (rising.slope - falling.slope)
    return falling.at(at), at
