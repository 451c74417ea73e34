"""Running a method for the fixed-λ problem (B): its lower bounds, when to certify, what to return.

A method is an iterator of :class:`FixedLambdaStep`.  Everything else is here, so that all methods
stop by one rule, a certified gap within ``tol``, and none pays for a certificate (which needs a
Hessian) at every iteration.

A dual point (s, a) bounds the value q(λ) of (B) from below, not only at the λ where it was
found but at every λ, by a line, a *cut*:

    q(λ) ≥ Σ w_i H(s_i) + λ (ε - κ Σ w_i a_i - ‖c Σ w_i (s_i - a_i) z_i‖)

if the sum vanishes on the free columns.  When the point is optimal, the slope of the line is
the derivative q'(λ) (envelope theorem).

The β-step of an ADMM iteration hands over a good one for free.  With the v and μ it started from
it makes ``ZᵀWv'``, ``v' = v - ρ(Zβ - μ)``, normal to the ball at β, and zero on free columns.  The
best (s, a) with ``s - a = v'`` is in closed form, and its bound loses nothing to the norm, where
``s = 1/(1+e^{Zβ})`` loses the sum of all errors of the gradient.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ..dual.pair import DualBound, pair_bound
from ..problem.losses import entropy
from ..problem.problem import Problem
from ..problem.result import Monitor, Solution, Status
from ..rows.arrays import FloatArray
from ..rows.blocks import Block
from ..rows.interface import State
from ..rows.reductions import Sum
from .ball_qp import DENSE_LIMIT

#: Iterations between the first looks at the gap; later ones are a quarter of the way apart,
#: so that they cost a tenth of the time and few iterations are done in vain.
CHECK_EVERY = 10

#: What the free columns' equations of a cut may be off, relative to the columns.
_ROUNDING = 1e-9


class FixedLambdaStep(NamedTuple):
    """One iterate of a fixed-λ method."""

    beta: FloatArray  # all coefficients: features, then the intercept
    state: State  # per block, a tuple: (μ, v, …) of an ADMM variant, else (flip shares, …)
    before: State  # the state that this iteration started from
    rho: float  # penalty or step length in use
    residual: float = math.nan  # ‖Zβ - μ‖ for the ADMM variants

    @property
    def splits(self) -> bool:
        """Whether the method splits off the margins, as the ADMM variants do."""
        return not math.isnan(self.residual)

    def paper_rho(self, problem: Problem) -> float:
        """ρ in the units of the paper; the step length of a method without a penalty."""
        return self.rho / problem.rows.n_samples if self.splits else self.rho


def next_check(k: int, every: int = CHECK_EVERY) -> int:
    """The iteration after ``k`` at which to look at the gap again."""
    return k + max(every, k // 4)


def run(
    problem: Problem,
    lam: float,
    steps: Iterator[FixedLambdaStep],
    start: Any = None,
    *,
    tol: float,
    monitor: Monitor,
    max_iter: int,
) -> Solution:
    """Iterate until the certified gap is within ``tol``; the best point seen on the way.

    The gap is computed now and then (:func:`next_check`; at once after a warm ``start``), first by
    a cheap bound: the cut of an ADMM iterate, or the bound of the flip shares that the state of
    another method begins with.  The certificate follows when the cheap bound promises success,
    whenever the iterations have doubled, and at the end.  A callback or a table receives every
    iteration, with the least objective so far; this does not affect the run.
    """
    best, beta = math.inf, None
    bound: DualBound | None = None
    lower, promising, certify_at = -math.inf, tol, 2 * CHECK_EVERY
    status, check, k = Status.MAX_ITER, CHECK_EVERY if start is None else 1, 0
    for k, step in enumerate(steps, start=1):
        last = k >= max_iter
        look = k >= check or last
        shown: Any = {"residual": step.residual, "rho": step.paper_rho(problem)}
        if not look:
            if not monitor.listening:
                continue
            seen = min(best, problem.objective(step.beta, lam))
            better = partial(_better_bound, problem, lam, step, lower)
            if not monitor.report(k, seen, lower, lam, better, **shown):
                continue
        check = next_check(k)
        value = problem.objective(step.beta, lam)
        if value < best or beta is None:
            best, beta = value, step.beta
        cheap, point = _cheap_bound(problem, lam, step)
        lower = max(lower, cheap)
        stopped = not look or monitor.report(k, best, lower, lam, **shown)
        if best - cheap <= promising or k >= certify_at or stopped or last:
            promising = min(promising, 0.5 * (best - cheap))
            certify_at = 2 * k
            found = pair_bound(problem, step.beta, point, lam=lam, wanted=best - tol)
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
    return Solution(beta, status, k, bound.point)


def _better_bound(problem: Problem, lam: float, step: FixedLambdaStep, known: float) -> float:
    return max(known, _cheap_bound(problem, lam, step)[0])


def _cheap_bound(problem: Problem, lam: float, step: FixedLambdaStep) -> tuple[float, State]:
    """A lower bound of (B) without a Hessian, and the dual point to certify."""
    if step.splits:
        cut = cut_of(problem, lam, step)
        return cut.at(lam), point_to_certify(problem, cut.point)
    shares, _ = problem.rows.run(part_of, step.state, 0)
    return pair_bound(problem, step.beta, shares, lam=lam, wanted=-math.inf).value, shares


class Cut(NamedTuple):
    """The lower bound ``intercept + slope·λ`` of q, and the dual point behind it."""

    intercept: float  # Σ w H(s); -∞ if the dual point is not feasible, and the bound void
    slope: float  # ε - κ Σ w a - ‖Σ w (s-a) z‖
    point: State  # s and a, (2, n) per block

    @property
    def valid(self) -> bool:
        return math.isfinite(self.intercept)

    def at(self, lam: float) -> float:
        return self.intercept + self.slope * lam


def cut_of(problem: Problem, lam: float, step: FixedLambdaStep) -> Cut:
    """The cut of an ADMM iterate; its state begins with (μ, v).

    It is void as long as v' is out of the range of s - a, as it may be early on.
    """
    point, (value, gradient, flips) = problem.rows.run(
        _dual_point, step.before, step.beta, step.rho, problem.cost.kink(lam)
    )
    slope = problem.epsilon - problem.transport_norm(gradient) - problem.cost.spent(flips)
    left = np.abs(gradient[problem.free])
    if (left > _ROUNDING * problem.rows.column_scale[problem.free]).any():
        return Cut(-math.inf, slope, point)
    # What rounding left of the free equations multiplies the free coefficients.
    value -= 2.0 * float(left @ np.abs(step.beta[problem.free]))
    return Cut(value, slope, point)


def point_to_certify(problem: Problem, point: State) -> State:
    """What of the dual point of a cut a certificate is best begun with.

    With few columns that is a alone: the certificate takes s from the coefficients and corrects it.
    With many it corrects nothing, and the point as it is proves the bound of the cut.
    """
    if problem.rows.n_columns > DENSE_LIMIT:
        return point
    return problem.rows.run(part_of, point, 1)[0]


def part_of(block: Block, state: Any, index: int) -> tuple[FloatArray, tuple[()]]:
    """One of the arrays that the state of a block has."""
    return state[index], ()


def _dual_point(
    block: Block, state: tuple[Any, ...], beta: FloatArray, rho: float, kink: float
) -> tuple[FloatArray, tuple[Sum, ...]]:
    mu, v = state[:2]
    v = np.clip(v - rho * (block.margins(beta) - mu), -1.0, 1.0)
    if math.isinf(kink):
        s, a = np.maximum(v, 0.0), np.zeros_like(v)
    else:
        # max H(s) - κλ a over s - a = v: s as on the kink, as far as s and a stay in [0, 1]
        on_kink = 1.0 / (1.0 + math.exp(min(kink, 700.0)))
        s = np.clip(on_kink, np.maximum(v, 0.0), np.minimum(1.0 + v, 1.0))
        a = s - v
    weights = block.weights
    return np.stack([s, a]), (
        Sum(float(weights @ entropy(s))),
        Sum(block.adjoint(weights * (s - a))),
        Sum(float(weights @ a)),
    )
