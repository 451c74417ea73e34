"""Bounds that dual candidates ``(s, a)`` prove once they are balanced and scaled.

Shrink ``(s, a)`` of one class until the intercept's equation holds, then of both until the norm
constraint does (its left side is positively homogeneous).  This needs no linear algebra and always
ends feasible, ``s = a = 0`` with bound 0 at worst, but costs a share of the value.

In floating point nothing holds exactly.  What rounding may add to the left side of the norm
constraint counts as used; what it leaves of the free equations is paid for as
:mod:`drlogit.problem.free_equations` proves.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..rows.arrays import BoolArray, FloatArray, IndexArray
from ..rows.blocks import Block
from ..rows.interface import State
from ..rows.reductions import Reduction, Sum
from .dual_candidates import Candidate, DualState
from .free_equations import (
    UNIT,
    FreeEquations,
    charge_of_faint,
    charges,
    intercept_equation,
    rounding_of_pairwise_sum,
    rounding_of_sum,
)
from .losses import entropy
from .problem import Problem

#: What rounding may make of a sum of weights.
_HAIR = 1e-12

#: Largest value of ``s(1-s) log²(s/(1-s))``, rounded up.
_MOST_SQUARE = 0.4393


@dataclass(frozen=True, eq=False)
class DualBound:
    """A feasible dual point: its value, ``(s, a)`` as pairs per block, and the β̃ it came from."""

    value: float
    point: State
    coefficients: FloatArray

    def parts(self, problem: Problem) -> tuple[State, State]:
        """``s`` and ``a`` apart."""
        s, a = (problem.rows.run(_part, self.point, k)[0] for k in (0, 1))
        return s, a


def balanced_bound(
    problem: Problem,
    candidate: Candidate,
    lam: float | None,
    equations: FreeEquations | None = None,
) -> DualBound:
    """Value after balancing and scaling, and after the free equations were paid for.

    ``equations`` are those of several free columns; without them the bound is the trivial one.
    """
    factors = np.ones(2)
    alone = problem.free.sum() == problem.fit_intercept
    if alone and problem.fit_intercept:
        noise = float(candidate.rounding(problem)[-1])
        factors = _balance(-candidate.gradients[-1, 0], candidate.gradients[-1, 1], noise)
    elif not alone and (equations is None or candidate.imbalance(problem).any()):
        factors = np.zeros(2)
    rounding = candidate.rounding(problem)
    if not alone:
        # Sizes of the samples that take part: others may have most of a column's.
        _, (squares, mass) = problem.rows.run(_sizes, candidate.state)
        size = np.sqrt(float(mass)) * np.sqrt(squares)
        rounding = np.minimum(rounding, rounding_of_sum(problem.rows.n_samples) * size)
    residual = np.abs(candidate.gradients @ factors) + rounding
    if alone and problem.fit_intercept:
        # f s (1 - f s) is at least f s(1-s).
        least = float(factors.min()) * float(candidate.curvature)
        equations = intercept_equation(least, problem.costs.size)
    elif alone:
        equations = FreeEquations.none()
    distance, move = 0.0, None
    if equations is None:
        factors = np.zeros(2)
    else:
        distance, move = equations.distance(residual)
    flips = float(candidate.flips @ factors)
    used = problem.budget_used(candidate.gradients @ factors, flips)
    # What the exact point, and rounding, may add to the left side of the constraint.
    used += distance * problem.transport_norm(0.5 * problem.rows.column_scale)
    used += problem.transport_norm(rounding)
    if lam is None and used > problem.epsilon:
        factors = factors * (problem.epsilon / used)
    if alone:
        # With D = s(1-s), and the intercept's column of ones.
        state, (value,) = problem.rows.run(_value, candidate.state, factors)
        square, stiffness, furthest = _MOST_SQUARE, 1.0, 0.0 if move is None else move.max()
    else:
        state, (value, square, stiffness, furthest) = problem.rows.run(
            _charged_value, candidate.state, factors, move if distance > 0.0 else None
        )
    value = float(value) - math.sqrt(square) * distance - float(stiffness) * distance**2
    if equations is not None and equations.faint.size:
        value -= float(problem.rows.run(_faint, state, equations.faint)[1][0])
    if lam is not None:
        value += lam * (problem.epsilon - used)
    if not (furthest <= 0.5 and value > 0.0):
        value = 0.0
    return DualBound(value, state, candidate.coefficients)


def paid_bound(
    problem: Problem, candidate: Candidate, lost: float, change: FloatArray
) -> DualBound:
    """Value less what is ``lost``, of a point whose sums ``change`` by so much, scaled."""
    used = problem.budget_used(candidate.gradient, float(candidate.flips.sum()))
    used += problem.transport_norm(change)
    factor = problem.epsilon / used if used > problem.epsilon else 1.0
    state, (value,) = problem.rows.run(_value, candidate.state, np.full(2, factor))
    value = float(value) - lost if factor >= 0.5 else 0.0
    return DualBound(max(value, 0.0), state, candidate.coefficients)


def levelled_bound(problem: Problem, candidate: Candidate) -> DualBound:
    """The bound of s = a, the same for all samples: all sums are zero, without rounding.

    Samples that are zero in all columns have no sums: there s is a half, and a is zero.
    """
    levelled, (weight,) = problem.rows.run(_not_empty, candidate.state)
    share = min(problem.epsilon / problem.kappa / max(float(weight), UNIT), 0.5)
    levelled, _ = problem.rows.run(_levelled, levelled, share * (1.0 - _HAIR))
    state, (value,) = problem.rows.run(_value, levelled, np.ones(2))
    return DualBound(float(value), state, candidate.coefficients)


def held_bound(
    problem: Problem,
    candidate: Candidate,
    equations: FreeEquations | None,
    wanted: float = math.inf,
) -> DualBound:
    """Value of the exact point whose sums in the columns of ``equations`` are in the ball.

    The trivial bound without them.
    """
    if equations is None:
        state, _ = problem.rows.run(_value, candidate.state, np.zeros(2))
        return DualBound(0.0, state, candidate.coefficients)
    rounding, gradient = candidate.rounding(problem), candidate.gradient
    held = np.zeros(gradient.size, dtype=bool)
    held[equations.columns] = True
    kept, costs = problem.penalised, problem.costs[problem.penalised]
    metric = np.square(costs * problem.rows.column_scale[kept])
    metric = np.where(metric > 0.0, metric, 1.0)
    radius, used, distance = candidate.budget(problem), math.inf, 0.0
    for _ in range(3):
        target = np.zeros_like(gradient)
        target[kept] = problem.norm.project(costs * gradient[kept], radius, metric) / costs
        residual = np.where(held, np.abs(gradient - target), 0.0) + rounding
        distance, move = equations.distance(residual)
        # Columns that are not held: as they are, and as far as the exact point may be.
        loose = np.abs(gradient) + rounding + 0.5 * distance * problem.rows.column_scale
        used = problem.transport_norm(np.where(held, target, loose)) + candidate.spent(problem)
        if used <= problem.epsilon:
            break
        radius = max(radius - (1.0 + 1e-6) * (used - problem.epsilon), 0.0)
    state, (value, square, stiffness, furthest) = problem.rows.run(
        _charged_value, candidate.state, np.ones(2), move
    )
    value = float(value) - math.sqrt(square) * distance - float(stiffness) * distance**2
    if equations.faint.size:
        value -= float(problem.rows.run(_faint, state, equations.faint)[1][0])
    if used > problem.epsilon:
        value *= problem.epsilon / used
    # Others have to find that point next to doubles: not all is claimed that there is.
    coarse = problem.transport_norm(2.0 * UNIT * candidate.size * problem.rows.column_scale)
    spare = max(0.5 * (value - wanted), 0.0)
    value -= min(problem.dual_norm(candidate.coefficients) * coarse, spare)
    if not (furthest <= 0.5 and value > 0.0):
        value = 0.0
    return DualBound(value, state, candidate.coefficients)


def _balance(negative: float, positive: float, noise: float) -> FloatArray:
    """Factors in [0, 1] per class after which ``Σ w (s - a)`` is the same for both.

    Where they agree within ``noise`` their ratio says nothing, and they are left alone.
    """
    if abs(negative - positive) <= noise:
        return np.ones(2)
    if min(negative, positive) < 0.0 < max(negative, positive):
        return np.zeros(2)
    if abs(negative) < abs(positive):
        return np.array([1.0, negative / positive])
    return np.array([positive / negative, 1.0])


def feasible_factors(problem: Problem, gradients: FloatArray, flips: FloatArray) -> FloatArray:
    """Factors per class that make ``(s, a)`` feasible for (P), from its sums per class.

    Zeros (the trivial bound) where features are free: their equations need Newton steps.
    """
    factors = np.ones(2)
    if problem.fit_intercept:
        noise = rounding_of_pairwise_sum(problem.rows.n_samples)
        noise *= float(flips.sum() + np.abs(gradients[-1]).sum())
        factors = _balance(-gradients[-1, 0], gradients[-1, 1], noise)
    if problem.free.sum() > problem.fit_intercept:
        return np.zeros(2)
    used = problem.budget_used(gradients @ factors, float(flips @ factors))
    return factors * (problem.epsilon / used) if used > problem.epsilon else factors


def _not_empty(block: Block, state: DualState) -> tuple[BoolArray, tuple[Sum]]:
    """Samples with an entry, and their weight."""
    if block.intercept:
        present = np.ones(block.y.size, dtype=bool)
    else:
        present = block.absolute_margins(np.ones(block.n_columns)) > 0.0
    return present, (Sum(float(block.weights @ present)),)


def _levelled(block: Block, present: BoolArray, share: float) -> tuple[DualState, tuple[()]]:
    s, a = np.where(present, share, 0.5), np.where(present, share, 0.0)
    return (s, a, s[:0]), ()


def _value(
    block: Block, state: DualState, factors: FloatArray
) -> tuple[tuple[FloatArray, FloatArray], tuple[Sum[float]]]:
    s, a, _ = state
    if (factors != 1.0).any():
        shrink = np.where(block.y > 0.0, factors[1], factors[0])
        s, a = shrink * s, shrink * a
    return (s, a), (Sum(float(block.weights @ entropy(s))),)


def _charged_value(
    block: Block, state: DualState, factors: FloatArray, move: FloatArray | None
) -> tuple[tuple[FloatArray, FloatArray], tuple[Reduction, ...]]:
    point, (value,) = _value(block, state, factors)
    s, curvature = point[0], state[2]
    curvature = curvature if curvature.size else s * (1.0 - s)
    return point, (value, *charges(block, s, curvature, move))


def _faint(
    block: Block, point: tuple[FloatArray, FloatArray], faint: IndexArray
) -> tuple[tuple[FloatArray, FloatArray], tuple[Sum]]:
    return point, (Sum(charge_of_faint(block, *point, faint)),)


def _part(
    block: Block, pair: tuple[FloatArray, FloatArray], k: int
) -> tuple[FloatArray, tuple[()]]:
    return pair[k], ()


def _sizes(block: Block, state: DualState) -> tuple[DualState, tuple[Sum, Sum]]:
    """``Σ w (s + a) z²`` per column and ``Σ w (s + a)``, which bound ``Σ w (s + a) |z|``."""
    s, a, _ = state
    mass = block.weights * (s + a)
    return state, (Sum(block.squared_columns(mass)), Sum(float(mass.sum())))
