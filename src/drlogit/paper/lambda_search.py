"""The joint problem (P) by a search over λ, with LP-ADMM for the fixed-λ problem (B):

    minimise  q(λ)  over  0 ≤ λ ≤ 0.2785/ε,    q(λ) = min over β of the objective of (P) at λ

q is convex, and its derivative is free from the multipliers:
``q'(λ) = ε - κ Σ w_i a_i - ‖c Σ w_i (s_i - a_i) z_i‖``.

``golden``      golden-section search on values: Algorithm 2 of Li, Huang and So (2019)
``derivative``  a safeguarded secant method on q', which needs far fewer subproblems

A *probe* is an LP-ADMM run at one λ.  Each of its iterates, good or bad, gives an upper bound of
(P), the objective at the best λ for its β, and a cut (``fixed_lambda``), which bounds q from below
at every λ.  Wherever a cut is above the best value found, λ* is not: so the cuts bracket it.  A
falling and a rising cut bound (P) from below where they meet, by the convex combination of their
dual points, which is feasible for (P).  A search ends when these certify (P), which may be long
before λ itself is known as well.

``golden`` takes one new subproblem per step, warm-started.  It ends where the bracket excludes its
λ, and the search ends with the gap, not the bracket.  The published search is in ``first_order``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeAlias

import numpy as np

from ..dual.certify import Certificate, certify
from ..problem.problem import Problem
from ..problem.result import Monitor, Result, Solution, Status
from ..rows.arrays import FloatArray
from ..rows.blocks import Block
from . import fixed_lambda
from .admm import AdmmStart, BetaStep, first_point
from .ball_qp import InnerSolver
from .fixed_lambda import CHECK_EVERY, Cut, FixedLambdaStep, cut_of, next_check, point_to_certify
from .lp_admm import lp_admm_iteration

#: The derivative search leaves a subproblem when its own gap is this share of what is unknown about
#: (P); without the matrix H, where accuracy takes long, a larger share, or this share of ``tol``
#: where that is more.  Golden section leaves it
#: when the gap is a share of ``tol``: by convexity the wrong one of two values that are so close
#: costs less than twice that.
_SHARE_OF_UNKNOWN, _MATRIX_FREE_SHARE = 0.1, 0.5
_SHARE_OF_TOL = 0.05

#: Without the matrix H, no β-step is solved to a smaller share of ``tol`` than this: a cut loses at
#: most about the gap of its β-step.
_LEAST_INNER_SHARE = 0.3

#: The derivative search begins where margins have about this size, which for log-odds is large.
_FIRST_MARGIN = 8.0

#: Called with λ and an LP-ADMM iterate at it; True stops the run.
Observer: TypeAlias = Callable[[float, FixedLambdaStep], bool]

#: A bracket of this width, relative to its upper end, cannot be divided any further.
_NARROW = 1e-14


def lambda_search(
    problem: Problem, *, tol: float, monitor: Monitor, max_iter: int = 100_000,
    start: Result | AdmmStart | None = None, lambda_search: str = "derivative",
    rho: float | None = None, gamma: float | None = None, inner: str | InnerSolver = "auto",
    inner_tol: float | None = None, observe: Observer | None = None,
) -> Solution:  # fmt: skip
    """Solve (P) by LP-ADMM and a search over λ until the gap is within ``tol``.

    ``max_iter`` limits the LP-ADMM iterations of all subproblems together.  ``lambda_search`` is
    ``"derivative"`` for a root of q' or ``"golden"`` for Algorithm 2.  The other options are those
    of :func:`~drlogit.paper.lp_admm.lp_admm`; with ``gamma``, ρ starts afresh at each λ.
    ``observe`` is called with λ and every iterate; True stops the run.
    """
    if lambda_search not in _SEARCHES:
        known = ", ".join(map(repr, _SEARCHES))
        raise ValueError(f"lambda_search must be one of {known}, got {lambda_search!r}")
    beta_step = BetaStep.build(problem, inner, inner_tol)
    if beta_step.quadratic.matrix is None:
        beta_step = replace(beta_step, least_tol=_LEAST_INNER_SHARE * tol)
    first = first_point(problem, start, rho)
    if problem.epsilon == 0.0:
        # Plain logistic regression, where λ is free to be so large that flips do not pay.
        plain = problem.with_radius(0.0, math.inf)
        steps = lp_admm_iteration(plain, 0.0, first, beta_step, gamma=gamma)
        return fixed_lambda.run(plain, 0.0, steps, tol=tol, monitor=monitor, max_iter=max_iter)
    search = LambdaSearch(problem, beta_step, tol, monitor, max_iter, first.rho, gamma, observe)
    _SEARCHES[lambda_search](search, first, start.lam if isinstance(start, Result) else None)
    return search.solution(lambda_search)


class Probe(NamedTuple):
    """What is known of q at one λ: at most ``upper``, at least ``cut``; and where ADMM stood."""

    lam: float
    upper: float
    cut: Cut
    point: AdmmStart


@dataclass(eq=False)
class LambdaSearch:
    """The bounds found so far, and the count of what they cost."""

    problem: Problem
    beta_step: BetaStep
    tol: float
    monitor: Monitor
    max_iter: int
    rho: float | None = None  # as in lp_admm, per unit of sample weight
    gamma: float | None = None
    observe: Observer | None = None
    best: float = math.inf  # the least objective of (P) seen, and its coefficients
    beta: FloatArray = field(default_factory=lambda: np.zeros(0))
    falling: Cut | None = None  # the cuts with slope < 0 and ≥ 0 that bound (P) best
    rising: Cut | None = None
    lines: list[tuple[float, float]] = field(default_factory=list)  # all cuts, without their points
    promising: float = math.inf  # what the cuts leave open where a certificate was last in vain
    certificate: Certificate | None = None  # the one with the best bound
    status: Status | None = None
    n_iter: int = 0
    lambdas: list[float] = field(default_factory=list)

    @property
    def matrix_at_hand(self) -> bool:
        """Whether the β-step has formed H."""
        return self.beta_step.quadratic.matrix is not None

    @property
    def lower(self) -> float:
        """Lower bound of (P) from the cuts."""
        return _meeting(self.falling, self.rising, self.problem.lambda_upper_bound)[1]

    @property
    def unknown(self) -> float:
        """What is not yet known about the value of (P)."""
        return self.best - self.lower

    def bracket(self) -> tuple[float, float]:
        """λ* is in here: elsewhere a cut is above the best value found."""
        low, high = 0.0, self.problem.lambda_upper_bound
        for intercept, slope in self.lines:
            if slope < 0.0:
                low = max(low, (intercept - self.best) / -slope)
            elif slope > 0.0:
                high = min(high, (self.best - intercept) / slope)
        return low, max(low, high)

    def probe(self, lam: float, first: AdmmStart, wanted: Callable[[], float]) -> Probe:
        """LP-ADMM at ``lam`` until q is known there to what is ``wanted``, or λ* is elsewhere.

        At least a few iterations are made, also in a search that is over.
        """
        self.lambdas.append(lam)
        if self.gamma is not None or first.rho is None:
            first = first._replace(rho=self.rho)
        steps = lp_admm_iteration(self.problem, lam, first, self.beta_step, gamma=self.gamma)
        # Without the matrix H an iteration takes longer than a look at the gap.
        check = every = CHECK_EVERY if self.matrix_at_hand else 1
        for k, step in enumerate(steps, start=1):
            self.n_iter += 1
            look = k >= check or self.n_iter >= self.max_iter
            stopped = self.observe is not None and self.observe(lam, step)
            if not look:
                if self.monitor.listening:
                    seen = min(self.best, self.problem.objective(step.beta))
                    stopped |= self._report(seen, lam, step)
                if not stopped:
                    continue
            check = next_check(k, every)
            loss = self.problem.flip_loss(step.beta, self.problem.margins(step.beta))
            upper, at_best = loss.value(self.problem.epsilon, lam), loss.value(self.problem.epsilon)
            if at_best < self.best:
                self.best, self.beta = at_best, step.beta
            cut = cut_of(self.problem, lam, step)
            self._improve_bound(cut)
            if look:
                stopped |= self._report(self.best, lam, step)
            if self.status is None:
                if self._certified():
                    self.status = Status.OPTIMAL
                elif stopped or self.n_iter >= self.max_iter:
                    self.status = Status.STOPPED if stopped else Status.MAX_ITER
            low, high = self.bracket()
            known = cut.valid and (upper - cut.at(lam) <= wanted() or not low <= lam <= high)
            if self.status is not None or known:
                break
        return Probe(lam, upper, cut, AdmmStart(step.beta, step.state, step.rho))

    def _report(self, objective: float, lam: float, step: FixedLambdaStep) -> bool:
        rho = step.paper_rho(self.problem)
        return self.monitor.report(
            self.n_iter, objective, self.lower, lam, residual=step.residual, rho=rho
        )

    def _improve_bound(self, cut: Cut) -> None:
        """Keep a cut if the bound of (P) is better with it."""
        if not cut.valid:
            return
        self.lines.append((cut.intercept, cut.slope))
        falling = cut if cut.slope < 0.0 else self.falling
        rising = self.rising if cut.slope < 0.0 else cut
        if _meeting(falling, rising, self.problem.lambda_upper_bound)[1] > self.lower:
            self.falling, self.rising = falling, rising

    def _certified(self) -> bool:
        """Whether the cuts, once they promise to, make a certificate of (P) within ``tol``."""
        if self.unknown > min(0.9 * self.tol, 0.5 * self.promising):
            return False
        self.promising = self.unknown
        return self._certify().gap <= self.tol

    def _certify(self) -> Certificate:
        """The certificate of the combination of the two cuts' dual points that has slope zero."""
        falling, rising, rows = self.falling, self.rising, self.problem.rows
        one = falling or rising
        point = None if one is None else one.point
        if falling is not None and rising is not None:
            share, _ = _meeting(falling, rising, self.problem.lambda_upper_bound)
            point = rows.run(_mix, rows.pair(falling.point, rising.point), share)[0]
        if point is not None:
            point = point_to_certify(self.problem, point)
        found = certify(self.problem, self.beta, point=point, tol=self.tol)
        if self.certificate is None or found.dual > self.certificate.dual:
            self.certificate = found
        return found

    def solution(self, name: str) -> Solution:
        """The best point, with the best dual point that was certified."""
        if self.status is not Status.OPTIMAL:
            self._certify()
        assert self.certificate is not None, "certified just above, or when it was optimal"
        info = {"lambda_search": name, "lambdas": self.lambdas}
        status = self.status or Status.STALLED
        return Solution(self.beta, status, self.n_iter, self.certificate.point, info=info)


def _meeting(falling: Cut | None, rising: Cut | None, top: float) -> tuple[float, float]:
    """Least value on [0, top] of the larger of two cuts, after the falling one's share in it."""
    if falling is None or (rising is not None and falling.intercept <= rising.intercept):
        return 0.0, -math.inf if rising is None else rising.intercept
    if rising is None or falling.at(top) >= rising.at(top):
        return 1.0, falling.at(top)
    share = rising.slope / (rising.slope - falling.slope)
    return share, share * falling.intercept + (1.0 - share) * rising.intercept


def _mix(
    block: Block, pair: tuple[FloatArray, FloatArray], share: float
) -> tuple[FloatArray, tuple[()]]:
    one, other = pair
    return share * one + (1.0 - share) * other, ()


def derivative_search(search: LambdaSearch, first: AdmmStart, guess: float | None) -> None:
    """Safeguarded secant method on q', within the bracket that the cuts prove."""
    low, high = search.bracket()
    if guess is None or not low < guess < high:
        guess = min(0.5 * high, _FIRST_MARGIN / _margin_scale(search.problem))
    lam = guess
    falling: Probe | None = None  # the last probe where q' < 0
    rising: Probe | None = None  # and where it is not
    share, least = _SHARE_OF_UNKNOWN, 0.0
    if not search.matrix_at_hand:
        share, least = _MATRIX_FREE_SHARE, _MATRIX_FREE_SHARE * search.tol
    widths = [high - low]
    while True:
        probe = search.probe(lam, first, lambda: max(share * search.unknown, least))  # noqa: B023
        if search.status is not None:
            return
        if probe.cut.slope < 0.0:
            falling = probe
        else:
            rising = probe
        low, high = search.bracket()
        if high - low <= _NARROW * high:
            return
        # Three steps that gain less than two bisections: bisect, and look more closely.
        widths.append(high - low)
        slow = len(widths) > 3 and widths[-1] > 0.25 * widths[-4]
        if slow:
            share *= 0.5
        lam = _next_lambda(falling, rising, probe.lam, (low, high), bisect=slow)
        first = probe.point


def _next_lambda(
    falling: Probe | None, rising: Probe | None, last: float, bracket: tuple[float, float],
    bisect: bool,
) -> float:  # fmt: skip
    """Root of the secant of q' between the probes on either side of it, or the bracket's middle."""
    low, high = bracket
    middle = 0.5 * (low + high)
    if falling is None:
        # Towards zero, fast: λ* = 0 where ε is above ε_max.
        return low + 0.3 * (min(high, last) - low)
    if rising is None:
        return min(middle, 3.0 * falling.lam)
    share = falling.cut.slope / (falling.cut.slope - rising.cut.slope)
    root = falling.lam + share * (rising.lam - falling.lam)
    if bisect or not low < root < high:
        return middle
    margin = 0.01 * (high - low)
    return min(max(root, low + margin), high - margin)


def _margin_scale(problem: Problem) -> float:
    """About the root mean square margin on the unit ball, if columns were orthogonal."""
    kept = problem.penalised  # others cost infinitely much, and may be zero
    sizes = problem.costs[kept] * problem.rows.column_scale[kept]
    whole = np.linalg.norm(sizes) if problem.norm.name == "l1" else sizes.max(initial=0.0)
    return max(float(whole), 1e-300)


def certified_golden_section(search: LambdaSearch, first: AdmmStart, guess: float | None) -> None:
    """Golden-section search on certified values, one new subproblem per step."""
    ratio = 0.5 * (math.sqrt(5.0) - 1.0)
    lam1, lam4 = 0.0, search.problem.lambda_upper_bound
    narrow = _NARROW * lam4

    def probe(lam: float, first: AdmmStart) -> Probe:
        return search.probe(lam, first, lambda: _SHARE_OF_TOL * search.tol)

    # An earlier result may be all that is needed; if not, its λ is of no use to the scheme.
    if guess is not None and 0.0 < guess < lam4:
        first = search.probe(guess, first, lambda: math.inf).point
    p2 = probe(ratio * lam1 + (1.0 - ratio) * lam4, first)
    p3 = probe((1.0 - ratio) * lam1 + ratio * lam4, p2.point)
    while search.status is None and lam4 - lam1 > narrow:
        low, high = search.bracket()
        if high < p3.lam or (p2.upper < p3.upper and low <= p2.lam):
            lam4, p3 = p3.lam, p2
            p2 = probe(ratio * lam1 + (1.0 - ratio) * lam4, p3.point)
        else:
            lam1, p2 = p2.lam, p3
            p3 = probe((1.0 - ratio) * lam1 + ratio * lam4, p2.point)


_SEARCHES: dict[str, Callable[[LambdaSearch, AdmmStart, float | None], None]] = {
    "derivative": derivative_search,
    "golden": certified_golden_section,
}
