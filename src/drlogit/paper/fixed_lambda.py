"""Running a method for the fixed-λ problem (B): when to certify, and what to return.

A method is an iterator of :class:`FixedLambdaStep` and a function that reads a dual point off a
step: a cheap lower bound and the flip shares behind it.  Everything else is here, so that all
methods stop by one rule, a certified gap within ``tol``, and none pays for a certificate (which
needs a Hessian) at every iteration.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeAlias

from ..dual.pair import DualBound, pair_bound
from ..problem.problem import Problem
from ..problem.result import Monitor, Solution, Status
from ..rows.arrays import FloatArray
from ..rows.interface import BlockFunction, State

#: Iterations between the first looks at the gap; later ones are a quarter of the way apart,
#: so that they cost a tenth of the time and few iterations are done in vain.
CHECK_EVERY = 10


class FixedLambdaStep(NamedTuple):
    """One iterate of a fixed-λ method."""

    beta: FloatArray  # all coefficients: features, then the intercept
    state: State  # per block, whatever the method keeps per sample
    before: State  # the state that this iteration started from
    rho: float  # penalty or step length in use
    residual: float = math.nan  # ‖Zβ - μ‖ for the ADMM variants


#: ``step -> (lower bound, flip shares)``
DualPoint: TypeAlias = Callable[[FixedLambdaStep], tuple[float, State]]


def next_check(k: int) -> int:
    """The iteration after ``k`` at which to look at the gap again."""
    return k + max(CHECK_EVERY, k // 4)


def shares_bound(
    problem: Problem, lam: float, step: FixedLambdaStep, shares_of: BlockFunction
) -> tuple[float, State]:
    """A dual point from flip shares in the state and ``s = 1/(1+e^{Zβ})``, as it stands."""
    shares, _ = problem.rows.run(shares_of, step.state)
    return pair_bound(problem, step.beta, shares, lam=lam, wanted=-math.inf).value, shares


def run(
    problem: Problem,
    lam: float,
    steps: Iterator[FixedLambdaStep],
    dual_point: DualPoint,
    *,
    tol: float,
    monitor: Monitor,
    max_iter: int,
    warm: bool = False,
    info: dict[str, Any] | None = None,
) -> Solution:
    """Iterate until the certified gap is within ``tol``; the best point seen on the way.

    Certifies when the cheap bound promises success, whenever the iterations have doubled,
    and at the end.  The callback is called at every look at the gap.
    """
    best, beta = math.inf, None
    bound: DualBound | None = None
    lower, promising, certify_at = -math.inf, tol, 2 * CHECK_EVERY
    status, check, k = Status.MAX_ITER, 1 if warm else CHECK_EVERY, 0
    for k, step in enumerate(steps, start=1):
        last = k >= max_iter
        if k < check and not last:
            continue
        check = next_check(k)
        value = problem.objective(step.beta, lam)
        if value < best or beta is None:
            best, beta = value, step.beta
        cheap, shares = dual_point(step)
        lower = max(lower, cheap)
        stopped = monitor.report(k, best, lower, lam, residual=step.residual, rho=step.rho)
        if best - cheap <= promising or k >= certify_at or stopped or last:
            promising = min(promising, 0.5 * (best - cheap))
            certify_at = 2 * k
            found = pair_bound(problem, step.beta, shares, lam=lam, wanted=best - tol)
            if bound is None or found.value > bound.value:
                bound, lower = found, max(lower, found.value)
        if bound is not None and best - bound.value <= tol:
            status = Status.OPTIMAL
            break
        if stopped:
            status = Status.STOPPED
        if stopped or last:
            break
    assert beta is not None, "a method yields at least one step"
    assert bound is not None, "the last step is certified"
    return Solution(beta, status, k, bound.point, info=dict(info or {}))
