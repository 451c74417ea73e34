"""Dual flip shares ``a`` from the margins of a model alone: 1 above the kink ``κλ``, 0 below.

Samples on the kink share whatever the budget leaves; a solver that carries its own multipliers does
better when there are many.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq, minimize_scalar

from ..problem.losses import flip_probability
from ..problem.problem import Problem
from ..rows.arrays import BoolArray, FloatArray
from ..rows.blocks import Block
from ..rows.interface import State
from ..rows.reductions import Sum


def flip_shares_of(problem: Problem, margins: State, lam: float) -> State:
    """Flip shares for a model of these margins at λ, where labels can flip."""
    kink = problem.cost.pair.kink(lam)
    _, sums = problem.rows.run(_kink_sums, margins, kink)
    gradient, on_kink, flips, flips_on_kink = sums

    def left_side(fraction: float) -> float:
        share = float(flips + fraction * flips_on_kink)
        return problem.budget_used(gradient - fraction * on_kink, share) - problem.epsilon

    fraction = _balancing_fraction(problem, gradient, on_kink)
    if fraction is None or left_side(fraction) > 1e-9 * problem.epsilon:
        # The left side is convex in the fraction: find its minimum, then the largest root.
        best = minimize_scalar(left_side, bounds=(0.0, 1.0), options={"xatol": 1e-13})
        fraction = float(best.x)
        if left_side(fraction) < 0.0:
            ends = (fraction, 1.0)
            fraction = 1.0 if left_side(1.0) <= 0.0 else float(brentq(left_side, *ends))
    return problem.rows.run(_kink_shares, margins, kink, fraction)[0]


def _balancing_fraction(
    problem: Problem, gradient: FloatArray, on_kink: FloatArray
) -> float | None:
    """The fraction that solves the free columns' equations best, if they depend on it."""
    scale = np.where(problem.rows.column_scale > 0.0, problem.rows.column_scale, 1.0)
    wanted, direction = (
        vector[problem.free] / scale[problem.free] for vector in (gradient, on_kink)
    )
    square = float(direction @ direction)
    return min(max(float(wanted @ direction) / square, 0.0), 1.0) if square > 1e-20 else None


def _sides(block: Block, u: FloatArray, kink: float) -> tuple[BoolArray, BoolArray]:
    """Who is above the kink, and who is on it."""
    kinks = block.flip_costs(kink)
    above, width = u - kinks, 1e-7 * np.maximum(1.0, kinks)
    on_kink = (np.abs(above) <= width) & np.isfinite(kinks)
    return (above > 0.0) & ~on_kink, on_kink


def _kink_sums(block: Block, u: FloatArray, kink: float) -> tuple[FloatArray, tuple[Sum, ...]]:
    above, on_kink = (side.astype(np.float64) for side in _sides(block, u, kink))
    s = flip_probability(u)
    columns = np.stack([block.weights * (s - above), block.weights * on_kink], axis=1)
    gradients = block.adjoint(columns)
    return u, (
        Sum(gradients[:, 0]),
        Sum(gradients[:, 1]),
        Sum(float(block.weights @ block.flip_sizes(above))),
        Sum(float(block.weights @ block.flip_sizes(on_kink))),
    )


def _kink_shares(
    block: Block, u: FloatArray, kink: float, fraction: float
) -> tuple[FloatArray, tuple[()]]:
    above, on_kink = _sides(block, u, kink)
    return np.where(on_kink, fraction, above.astype(np.float64)), ()
