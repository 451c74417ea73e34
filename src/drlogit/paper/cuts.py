"""Lower bounds that an ADMM iterate carries with it.

A dual point (s, a) bounds the value q(λ) of (B) from below, not only at the λ where it was
found but at every λ, by a line:

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
from typing import Any, NamedTuple

import numpy as np

from ..problem.losses import entropy
from ..problem.problem import Problem
from ..rows.arrays import FloatArray
from ..rows.blocks import Block
from ..rows.interface import State
from ..rows.reductions import Sum
from .fixed_lambda import FixedLambdaStep

#: What the free columns' equations may be off, relative to the columns.
_ROUNDING = 1e-9


class Cut(NamedTuple):
    """The lower bound ``intercept + slope·λ`` of q, and the flip shares behind it."""

    intercept: float  # Σ w H(s); -∞ if the dual point is not feasible, and the bound void
    slope: float  # ε - κ Σ w a - ‖Σ w (s-a) z‖
    shares: State  # a

    @property
    def valid(self) -> bool:
        return math.isfinite(self.intercept)

    def at(self, lam: float) -> float:
        return self.intercept + self.slope * lam


def cut_of(problem: Problem, lam: float, step: FixedLambdaStep) -> Cut:
    """The cut of an ADMM iterate; its state begins with (μ, v)."""
    cut, classes = _cut(problem, lam, step, np.ones(2))
    only_intercept = problem.fit_intercept and problem.free.sum() == 1
    if cut.valid or not only_intercept or classes.min() <= 0.0:
        return cut
    # v' left the range of s - a, as it may early on.  Shrink one class to balance the other.
    return _cut(problem, lam, step, classes.min() / classes)[0]


def _cut(
    problem: Problem, lam: float, step: FixedLambdaStep, factors: FloatArray
) -> tuple[Cut, FloatArray]:
    """The cut after shrinking (s, a) of the classes; and their ``Σ w (s - a)``."""
    shares, sums = problem.rows.run(
        _dual_point, step.before, step.beta, step.rho, problem.cost.kink(lam), factors
    )
    value, gradient, flips, classes = sums
    slope = problem.epsilon - problem.transport_norm(gradient) - problem.cost.spent(flips)
    left = np.abs(gradient[problem.free])
    if (left > _ROUNDING * problem.rows.column_scale[problem.free]).any():
        return Cut(-math.inf, slope, shares), classes
    # What rounding left of the free equations multiplies the free coefficients.
    value -= 2.0 * float(left @ np.abs(step.beta[problem.free]))
    return Cut(value, slope, shares), classes


def _dual_point(
    block: Block,
    state: tuple[Any, ...],
    beta: FloatArray,
    rho: float,
    kink: float,
    factors: FloatArray,
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
    positive = block.y > 0.0
    if factors.min() < 1.0:
        shrink = np.where(positive, factors[1], factors[0])
        s, a = shrink * s, shrink * a
    weights = block.weights
    difference = weights * (s - a)
    return a, (
        Sum(float(weights @ entropy(s))),
        Sum(block.adjoint(difference)),
        Sum(float(weights @ a)),
        Sum(np.array([difference[~positive].sum(), difference[positive].sum()])),
    )
