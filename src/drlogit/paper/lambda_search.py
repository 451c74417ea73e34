"""The joint problem (P) by a search over λ, with LP-ADMM for the fixed-λ problem (B):

    minimise  q(λ)  over  0 ≤ λ ≤ 0.2785/ε,    q(λ) = min over β of the objective of (P) at λ

q is convex, and its derivative is free from the multipliers:
``q'(λ) = ε - κ Σ w_i a_i - ‖c Σ w_i (s_i - a_i) z_i‖``.

``golden``      golden-section search on values: Algorithm 2 of Li, Huang and So (2019)
``derivative``  a safeguarded secant method on q', which needs far fewer subproblems

Both compare bounds, never noisy values, and end when (P) is certified (see ``probes``).

Deviations of ``golden`` from Algorithm 2: one new subproblem per step instead of four (the values
at the ends are never used, and one interior point is the next step's), warm-started; values
are intervals, refined while they overlap; it ends with the gap, not with the bracket.  With
``stop="residual"`` starts are cold, values taken at face value, and it ends with the bracket.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..problem.problem import Problem
from ..problem.result import Monitor, Result, Solution, Status
from ..rows.arrays import FloatArray
from ..rows.blocks import Block
from ..rows.reductions import Sum
from .admm import AdmmStart, check_penalty, first_point, in_weights, run_admm
from .beta_step import BetaStep
from .lp_admm import check_stop, lp_admm_steps
from .probes import LambdaSearch, Probe

#: A subproblem is left when its own gap is this share of what is unknown about (P).
_SHARE_OF_UNKNOWN = 0.1

#: The derivative search begins where margins have about this size, which for log-odds is large.
_FIRST_MARGIN = 8.0

#: Golden section does not ask which of two values is less when both are known to this
#: share of ``tol``: by convexity the wrong choice then costs less than twice that.
_FINEST = 0.05

#: A bracket of this width, relative to its upper end, cannot be divided any further.
_NARROW = 1e-14

#: Width of the bracket, relative to 0.2785/ε, at which ``stop="residual"`` ends the search.
_PAPER_WIDTH = 1e-4


def lambda_search(
    problem: Problem,
    *,
    tol: float,
    monitor: Monitor,
    max_iter: int = 100_000,
    start: Result | None = None,
    lambda_search: str = "derivative",
    rho: float | None = None,
    gamma: float | None = None,
    inner: str = "auto",
    stop: str = "gap",
    residual_tol: float = 1e-6,
) -> Solution:
    """Solve (P) by LP-ADMM and a search over λ.

    Parameters
    ----------
    problem : Problem
        Any instance of (P), on any kind of rows.
    tol : float
        Wanted duality gap of (P).
    monitor : Monitor
        Told at every look at the gap.
    max_iter : int
        Limit on LP-ADMM iterations, all subproblems together.
    start : Result, optional
        Where to start from.
    lambda_search : {"derivative", "golden"}
        Root of q', or golden-section search (Algorithm 2).
    rho, gamma, inner
        As in :func:`~drlogit.paper.lp_admm.lp_admm`; with ``gamma``, ρ starts afresh at
        each λ.
    stop : {"gap", "residual"}
        ``"residual"``, with ``lambda_search="golden"`` only, is the paper's framework as published:
        subproblems end when ``‖Zβ - μ‖ ≤ residual_tol``, the search with a narrow bracket.
    residual_tol : float
        Used with ``stop="residual"`` only.
    """
    if lambda_search not in _SEARCHES:
        known = ", ".join(map(repr, _SEARCHES))
        raise ValueError(f"lambda_search must be one of {known}, got {lambda_search!r}")
    check_penalty(rho, gamma)
    check_stop(stop)
    if stop == "residual" and lambda_search != "golden":
        raise ValueError(f"stop='residual' needs lambda_search='golden', got {lambda_search!r}")
    beta_step = BetaStep.build(problem, inner)
    first = first_point(problem, start, rho)
    if problem.epsilon == 0.0:
        return _without_adversary(problem, first, beta_step, gamma, tol, monitor, max_iter)
    search = LambdaSearch(
        problem, beta_step, tol, monitor, max_iter, in_weights(problem, rho), gamma,
        residual_tol if stop == "residual" else None,
    )  # fmt: skip
    _SEARCHES[lambda_search](search, first, None if start is None else start.lam)
    return search.solution(lambda_search=lambda_search)


def derivative_search(search: LambdaSearch, first: AdmmStart, guess: float | None) -> None:
    """Safeguarded secant method on q', within the bracket that the cuts prove."""
    low, high = search.bracket()
    if guess is None or not low < guess < high:
        guess = min(0.5 * high, _FIRST_MARGIN / max(margin_scale(search.problem), 1e-300))
    lam = guess
    falling: Probe | None = None  # the last probe where q' < 0
    rising: Probe | None = None  # and where it is not
    share = _SHARE_OF_UNKNOWN
    widths = [high - low]

    def enough(gap: float) -> bool:
        low, high = search.bracket()
        return gap <= share * search.unknown or not low <= lam <= high

    while not search.finished:
        probe = search.probe(lam, first, enough)
        if search.finished:
            break
        if probe.cut.slope < 0.0:
            falling = probe
        else:
            rising = probe
        low, high = search.bracket()
        if high - low <= _NARROW * high:
            search.status = Status.STALLED
            break
        # Three steps that gain less than two bisections: bisect, and look more closely.
        widths.append(high - low)
        slow = len(widths) > 3 and widths[-1] > 0.25 * widths[-4]
        if slow:
            share *= 0.5
        lam = _next_lambda(falling, rising, probe.lam, (low, high), bisect=slow)
        first = probe.point


def _next_lambda(
    falling: Probe | None,
    rising: Probe | None,
    last: float,
    bracket: tuple[float, float],
    bisect: bool,
) -> float:
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


def golden_section(search: LambdaSearch, first: AdmmStart, guess: float | None) -> None:
    """Algorithm 2: golden-section search, one new subproblem per step."""
    if guess is not None and 0.0 < guess < search.problem.lambda_upper_bound:
        # An earlier result may be all that is needed; if not, its λ is of no use to the scheme.
        first = search.probe(guess, first, lambda _: True).point
    ratio = 0.5 * (math.sqrt(5.0) - 1.0)
    lam1, lam4 = 0.0, search.problem.lambda_upper_bound
    width = (_NARROW if search.residual_tol is None else _PAPER_WIDTH) * lam4
    lam2, lam3 = ratio * lam1 + (1.0 - ratio) * lam4, (1.0 - ratio) * lam1 + ratio * lam4
    if search.finished:
        return
    p2 = _golden_probe(search, lam2, first)
    p3 = _golden_probe(search, lam3, p2.point)
    while not search.finished:
        left, p2, p3 = _is_left(search, p2, p3)
        if search.finished:
            break
        if left:
            lam4, lam3, p3 = lam3, lam2, p2
            lam2 = ratio * lam1 + (1.0 - ratio) * lam4
            p2 = _golden_probe(search, lam2, p3.point)
        else:
            lam1, lam2, p2 = lam2, lam3, p3
            lam3 = (1.0 - ratio) * lam1 + ratio * lam4
            p3 = _golden_probe(search, lam3, p2.point)
        if lam4 - lam1 <= width and not search.finished:
            # The paper's rule ends here and calls it optimal; ours found no gap within tol.
            search.status = Status.STALLED if search.residual_tol is None else Status.UNPROVEN


def _golden_probe(
    search: LambdaSearch, lam: float, first: AdmmStart, wanted: float | None = None
) -> Probe:
    """Probe ``lam`` until q is known there to what is ``wanted``, or it is clear where λ* is."""

    def enough(gap: float) -> bool:
        low, high = search.bracket()
        aim = _SHARE_OF_UNKNOWN * search.unknown if wanted is None else wanted
        return gap <= aim or not low <= lam <= high

    return search.probe(lam, first, enough)


def _is_left(search: LambdaSearch, p2: Probe, p3: Probe) -> tuple[bool, Probe, Probe]:
    """Whether λ* < λ3 may be taken for granted (else λ* > λ2), with the probes that tell.

    Refines the two values until their intervals are apart, or as good as equal.
    """
    finest = _FINEST * search.tol
    while True:
        low, high = search.bracket()
        gap2, gap3 = p2.upper - p2.lower, p3.upper - p3.lower
        apart = p2.upper < p3.lower or p3.upper < p2.lower
        if search.residual_tol is not None or apart or max(gap2, gap3) <= finest:
            return p2.upper < p3.upper, p2, p3
        if search.finished or high < p3.lam or low > p2.lam:
            return high < p3.lam, p2, p3
        wanted = max(0.3 * max(gap2, gap3), finest)
        if gap2 >= gap3:
            p2 = _golden_probe(search, p2.lam, p2.point, wanted)
        else:
            p3 = _golden_probe(search, p3.lam, p3.point, wanted)


_SEARCHES: dict[str, Callable[[LambdaSearch, AdmmStart, float | None], None]] = {
    "derivative": derivative_search,
    "golden": golden_section,
}


def margin_scale(problem: Problem) -> float:
    """Root mean square margin for the β on the unit ball that leans most to the classes' means."""
    _, (means,) = problem.rows.run(_class_means)
    beta = problem.cost.aligned_coefficients(means)
    _, (square,) = problem.rows.run(_mean_square_margin, None, beta)
    return math.sqrt(square)


def _class_means(block: Block, state: Any) -> tuple[Any, tuple[Sum]]:
    return state, (Sum(block.adjoint(block.weights)),)


def _mean_square_margin(block: Block, state: Any, beta: FloatArray) -> tuple[Any, tuple[Sum]]:
    return state, (Sum(float(block.weights @ np.square(block.margins(beta)))),)


def _without_adversary(
    problem: Problem,
    first: AdmmStart,
    beta_step: BetaStep,
    gamma: float | None,
    tol: float,
    monitor: Monitor,
    max_iter: int,
) -> Solution:
    """ε = 0: plain logistic regression, where λ is free to be so large that flips do not pay."""
    plain = problem.with_radius(0.0, math.inf)
    steps = lp_admm_steps(plain, 0.0, first, beta_step, gamma=gamma)
    return run_admm(
        plain, 0.0, steps, beta_step, tol=tol, monitor=monitor, max_iter=max_iter, warm=False
    )
