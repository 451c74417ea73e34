"""The first-order framework of Li, Huang and So (2019), as published, and a sound variant of it:

    minimise  q(λ)  over  0 ≤ λ ≤ 0.2785/ε,    q(λ) = min over β of the objective of (P) at λ

*Published*: golden section over λ (Algorithm 2); at each λ, LP-ADMM (Algorithm 1) from the same
start, with ``ρ_{k+1} = γ ρ_k``, until ``‖Ax^k - y^k‖₂ ≤ 1e-6``.

That rule does not imply optimality.  The w-step gives ``‖Ax^k - y^k‖ = ‖w^k - w^{k-1}‖/ρ_k``, and w
is bounded, so a growing ρ makes the residual small wherever the iterates are.  The iterates freeze,
and golden section turns inexact values into a wrong λ.  Therefore every result is certified, and a
warning states the gap where it is too large.

*Sound*: LP-ADMM with a balanced penalty, a search on the derivative of q, and the certified gap as
the stop (``lambda_search``).

The listings leave "converge" and the start open: the bracket ends at 1e-6 as in the released code,
and the start is zero.  Safeguards: ρ stops growing at 1e12/N and the subproblem ends there; a
subproblem also ends at ``max_iter``.  In both cases its value is that of β alone, because μ need
not be close to Zβ.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from ..dual.certify import Certificate, certify
from ..engine.pair import interior_point
from ..problem.problem import Problem
from ..problem.result import Monitor, Result, Status
from ..rows.arrays import FloatArray
from ..rows.threads import one_blas_thread
from .admm import AdmmStart, BetaStep, Start, first_point, published_inner
from .ball_qp import InnerSolver
from .fixed_lambda import FixedLambdaStep, cut_of, point_to_certify
from .iterates import PaperIterate, plain_problem
from .lambda_search import lambda_search
from .lp_admm import LARGEST_PENALTY, PAPER_GAMMA, PAPER_RHO, lp_admm_iteration

#: Proposition 3.1 as printed: λ* ≤ 0.2785/ε.
_LAMBDA_CONSTANT = 0.2785

#: r of Algorithm 2, and the ratio that it rounds.
_LISTED_RATIO, _GOLDEN_RATIO = 0.618, 0.5 * (math.sqrt(5.0) - 1.0)


class ResidualRuleWarning(UserWarning):
    """The published stopping rule was met away from the optimum."""


class Subproblem(NamedTuple):
    """One run of LP-ADMM within the framework."""

    lam: float
    value: float  # q(λ) as the search sees it
    n_iter: int
    residual: float
    ended: str  # by the rule: "residual"; else "frozen", "max_iter" or "callback"


@dataclass(frozen=True, eq=False, repr=False)
class FrameworkResult(Result):
    """A certified :class:`~drlogit.Result`, and how the framework got there.

    ``lam`` and ``objective`` are those that the framework ends with; ``objective`` is the
    worst-case loss of the coefficients at that λ.  ``info["cpu_seconds"]`` is the processor time of
    the search alone, without callbacks, trace and certificate.

    Attributes
    ----------
    subproblems
        The runs of LP-ADMM, in order (published variant).
    iterates
        All iterates of all runs.  Their vectors β, μ, w are there with ``keep_vectors=True``.
    """

    subproblems: tuple[Subproblem, ...] = ()
    iterates: tuple[PaperIterate, ...] = ()


def framework(
    X: Any,
    y: Any,
    epsilon: float,
    kappa: float,
    *,
    variant: str = "published",
    rho: float | None = None,
    gamma: float | None = None,
    inner: str | InnerSolver = "auto",
    inner_tol: float | None = None,
    start: Start = None,
    random_state: Any = None,
    residual_tol: float = 1e-6,
    bracket_tol: float = 1e-6,
    reuse: bool = True,
    max_iter: int = 100_000,
    tol: float = 1e-6,
    callback: Callable[[PaperIterate], Any] | None = None,
    keep_vectors: bool = False,
    **model: Any,
) -> FrameworkResult:
    """Algorithm 2 over Algorithm 1, as published or in a sound variant.

    Parameters
    ----------
    X, y, epsilon, kappa
        The problem, as in :func:`drlogit.solve`; ``epsilon`` must be positive.
    variant : {"published", "sound"}
        ``"published"``: growing ρ, the rule ``‖Ax - y‖ ≤ residual_tol``, golden section.
        ``"sound"``: balanced ρ, search on the derivative of q, until the gap is within ``tol``.
    rho, gamma, inner, inner_tol, start, random_state
        As in :func:`lp_admm_steps`.  None stands for the paper's choice: ρ₀ = 0.001, γ = 1.05,
        active-set CG, zeros.  In the sound variant it stands for ρ₀ = 1/N, a penalty that follows
        the residuals, the fastest inner solver, and the null model.  The published variant begins
        every subproblem at ``start``, the sound one only the first.
    residual_tol : float
        Published variant: a subproblem ends when ``‖Ax^k - y^k‖₂`` is at most this.
    bracket_tol : float
        Published variant: the search ends when the bracket of λ is at most this wide.
    reuse : bool
        Published variant: whether one of the two interior points is that of the last step; the
        search then solves one new subproblem per step instead of two.
    max_iter : int
        Limit on iterations of one subproblem (sound: of all together).
    tol : float
        The gap up to which the result is optimal; above it there is a :class:`ResidualRuleWarning`.
    callback : callable, optional
        Called with a :class:`PaperIterate` after every iteration; True stops the run.
    keep_vectors : bool
        Whether ``iterates`` keep β, μ and w: 2N + n numbers for each iteration.
    **model
        ``norm``, ``feature_costs``, ``sample_weight``, ``fit_intercept`` (False unless given) and
        ``n_jobs``, as in :func:`drlogit.solve`.

    Returns
    -------
    FrameworkResult
        With the certified gap of what the framework ends with.
    """
    started = time.perf_counter()
    tolerances = {"residual_tol": residual_tol, "bracket_tol": bracket_tol, "tol": tol}
    for name, value in tolerances.items():
        if not (math.isfinite(value) and value > 0.0):
            raise ValueError(f"{name} must be finite and > 0, got {value!r}")
    if max_iter < 1:
        raise ValueError(f"max_iter must be a positive integer, got {max_iter!r}")
    if variant not in ("published", "sound"):
        raise ValueError(f"variant must be 'published' or 'sound', got {variant!r}")
    problem = plain_problem(X, y, {"epsilon": epsilon, "kappa": kappa, **model})
    if problem.epsilon == 0.0:
        raise ValueError("epsilon must be > 0: at 0 there is no bound on λ to search within, got 0")
    recorder = _Recorder(problem, callback, keep_vectors, time.perf_counter() - started)
    with one_blas_thread:
        if variant == "sound":
            first = None if start is None else first_point(problem, start, rho, random_state)
            solution = lambda_search(
                problem, tol=tol, monitor=Monitor(), max_iter=max_iter, start=first, rho=rho,
                gamma=gamma, inner=inner, inner_tol=inner_tol, observe=recorder,
            )  # fmt: skip
            seconds = recorder.seconds()
            found = certify(problem, solution.coefficients, point=solution.point, tol=tol)
            status = solution.status.judged(found.gap, tol)
            return recorder.result(solution.coefficients, found, status, seconds, solution.info)
        first = first_point(
            problem, start or "zeros", PAPER_RHO if rho is None else rho, random_state
        )
        beta_step = BetaStep.build(problem, published_inner(inner, inner_tol, problem), inner_tol)
        growth = PAPER_GAMMA if gamma is None else gamma
        run = _Published(recorder, beta_step, first, growth, residual_tol, max_iter)
        with suppress(_StoppedError):
            top = _LAMBDA_CONSTANT / problem.epsilon
            golden_section(run.value, top, tol=bracket_tol, reuse=reuse)
        seconds = recorder.seconds()
        found = _certificate(problem, *run.best, tol)
    ends = {each.ended for each in run.subproblems}
    status = Status.OPTIMAL  # by its own rule; the certificate decides
    if ends & {"callback", "max_iter"}:
        status = Status.STOPPED if "callback" in ends else Status.MAX_ITER
    status = status.judged(found.gap, tol)
    info = {"lambdas": [each.lam for each in run.subproblems], "lambda_search": "golden"}
    result = recorder.result(run.best[1].beta, found, status, seconds, info, run.subproblems)
    if status is Status.UNPROVEN:
        warnings.warn(
            f"the published rule ‖Ax - y‖ <= {residual_tol:g} ended at λ = {result.lam:.4g} with a "
            f"worst-case loss of {result.objective:.6g}, which is {result.gap:.2g} above the "
            f"certified lower bound {result.dual_objective:.6g}: a growing penalty makes the "
            "residual small whether or not the point is optimal; variant='sound' stops on the gap",
            ResidualRuleWarning,
            stacklevel=2,
        )
    return result


def golden_section(
    q: Callable[[float], float], upper: float, *, tol: float = 1e-6, reuse: bool = True
) -> tuple[float, float]:
    """Algorithm 2: golden-section search for the minimum of q on [0, upper].

    Returns the better of the last two interior points, and the value there.  The search ends when
    the bracket is at most ``tol`` wide.  With ``reuse`` one interior point is that of the last step
    and a step needs one new value of q, as in the released code; this requires the exact golden
    ratio.  Without, r is 0.618 as listed and a step needs two values.  The listing has four per
    step, but those at the ends are never used.
    """
    r = _GOLDEN_RATIO if reuse else _LISTED_RATIO
    lam1, lam4 = 0.0, upper
    lam2, lam3 = r * lam1 + (1.0 - r) * lam4, (1.0 - r) * lam1 + r * lam4
    q2, q3 = q(lam2), q(lam3)
    while lam4 - lam1 > max(tol, 1e-14 * upper):
        smaller = q2 < q3
        if smaller:
            lam4, lam3, q3 = lam3, lam2, q2
        else:
            lam1, lam2, q2 = lam2, lam3, q3
        if smaller or not reuse:
            lam2 = r * lam1 + (1.0 - r) * lam4
            q2 = q(lam2)
        if not smaller or not reuse:
            lam3 = (1.0 - r) * lam1 + r * lam4
            q3 = q(lam3)
    return (lam2, q2) if q2 < q3 else (lam3, q3)


class _StoppedError(Exception):
    """The callback asked to stop."""


def _clock() -> FloatArray:
    """Processor and wall time."""
    return np.array([time.process_time(), time.perf_counter()])


@dataclass(eq=False)
class _Recorder:
    """Keeps the trace and calls the callback; neither counts as time of the search."""

    problem: Problem
    callback: Callable[[PaperIterate], Any] | None
    keep_vectors: bool
    setup_time: float
    iterates: list[PaperIterate] = field(default_factory=list)
    started: FloatArray = field(default_factory=_clock)  # later by what recording has taken

    def __call__(self, lam: float, step: FixedLambdaStep) -> bool:
        """Record an iterate; True if the callback asks to stop."""
        now = _clock()
        known = self.iterates[-1] if self.iterates else None
        k = known.k + 1 if known is not None and known.lam == lam else 1
        iterate = PaperIterate.of(self.problem, lam, k, step)
        kept = iterate if self.keep_vectors else replace(iterate, problem=None, step=None)
        self.iterates.append(kept)
        stop = self.callback is not None and self.callback(iterate) is True
        self.started += _clock() - now
        return stop

    def seconds(self) -> FloatArray:
        """Processor and wall time of the search up to now."""
        return _clock() - self.started

    def result(
        self, beta: FloatArray, found: Certificate, status: Status, seconds: FloatArray,
        info: dict[str, Any], subproblems: Sequence[Subproblem] = (),
    ) -> FrameworkResult:  # fmt: skip
        """The result with its certificate and the trace."""
        coef, intercept = self.problem.split(beta)
        return FrameworkResult(
            coef, intercept, found.lam, found.primal, found.dual, found.gap,
            found.dual_point(self.problem), status, len(self.iterates), "lp-admm",
            self.setup_time, float(seconds[1]), Monitor().trace,
            {**info, "cpu_seconds": float(seconds[0])}, None, self.problem.ball,
            tuple(subproblems),
            tuple(self.iterates),
        )  # fmt: skip


@dataclass(eq=False)
class _Published:
    """LP-ADMM at any λ by the published rules."""

    recorder: _Recorder
    beta_step: BetaStep
    first: AdmmStart
    gamma: float
    residual_tol: float
    max_iter: int
    subproblems: list[Subproblem] = field(default_factory=list)
    best: tuple[float, FixedLambdaStep] = field(init=False)  # λ and the last iterate there

    def value(self, lam: float) -> float:
        """``q(λ)`` by Algorithm 1."""
        problem = self.recorder.problem
        steps = lp_admm_iteration(problem, lam, self.first, self.beta_step, gamma=self.gamma)
        for k, step in enumerate(steps, start=1):
            if ended := self._ended(lam, k, step):
                break
        # Unless by the rule, μ need not be close to Zβ, and the value is that of β.
        value = problem.epsilon * lam + self.recorder.iterates[-1].F
        if ended != "residual":
            value = problem.objective(step.beta, lam)
        if all(value < each.value for each in self.subproblems):
            self.best = lam, step
        self.subproblems.append(Subproblem(lam, value, k, step.residual, ended))
        if ended == "callback":
            raise _StoppedError
        return value

    def _ended(self, lam: float, k: int, step: FixedLambdaStep) -> str:
        """Why the subproblem ends here, or nothing."""
        if self.recorder(lam, step):
            return "callback"
        if step.residual <= self.residual_tol:
            return "residual"
        if self.gamma > 1.0 and step.rho * self.gamma > LARGEST_PENALTY:
            return "frozen"
        return "max_iter" if k >= self.max_iter else ""


def _certificate(problem: Problem, lam: float, step: FixedLambdaStep, tol: float) -> Certificate:
    """Objective at λ, and the best bound: that of the iterate, or of an exact solution."""
    objective = problem.objective(step.beta, lam)
    point = point_to_certify(problem, cut_of(problem, lam, step).point)
    found = certify(problem, step.beta, point=point, tol=tol)
    if objective - found.dual > tol:
        exact = interior_point(problem, tol=0.1 * tol, monitor=Monitor())
        other = certify(problem, exact.coefficients, point=exact.point, tol=0.1 * tol)
        found = max(found, other, key=lambda each: each.dual)
    return Certificate(objective, min(found.dual, objective), lam, found.point)
