"""Dual candidates ``(s, a)``, and the bounds that they prove once balanced and scaled.

Feasible are, with ``g = Σ w_i (s_i - a_i) z_i``, those with ``‖c g‖ + κ Σ w_i a_i ≤ ε`` and g zero
on free columns; they bound the optimum of (P) by ``Σ w_i H(s_i)`` from below.  Shrink ``(s, a)`` of
one class until the intercept's equation holds, then of both until the norm constraint does (its
left side is positively homogeneous).  This needs no linear algebra and always ends feasible,
``s = a = 0`` with bound 0 at worst, but costs a share of the value.

In floating point nothing holds exactly.  What rounding may add to the left side of the norm
constraint counts as used; what it leaves of the free equations is paid for as
:mod:`drlogit.problem.free_equations` proves.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from ..rows.arrays import BoolArray, FloatArray, IndexArray
from ..rows.blocks import Block
from ..rows.centring import exact_dot
from ..rows.interface import State
from ..rows.reductions import Max, Min, Reduction, Sum
from .free_equations import (
    UNIT,
    FreeEquations,
    charge_of_faint,
    charges,
    intercept_equation,
    rounding_of_pairwise_sum,
    rounding_of_sum,
)
from .losses import entropy, flip_probability
from .problem import Problem

#: s, a and s(1-s) of a block's samples; the last is empty until a Hessian is wanted.
DualState: TypeAlias = tuple[FloatArray, FloatArray, FloatArray]


_LEFT = 1e-2

#: A free equation counts as met when this much of it is left, relative to the product of the root
#: mean squares; what is left is paid for in any case.
_MET = 1e-13

#: ... or when what is left is no normal number.
_NOTHING = 2.0**-1022

#: Roundings in ``w (s - a)`` and in sums that are rounded once, in units of their size.
_ROUNDINGS = 4.0

#: What rounding may make of a sum of weights.
_HAIR = 1e-12

#: Share of ε from which rounding of the gradient counts: below, it costs the bound no more.
_FELT = 1e-8

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


@dataclass(frozen=True, eq=False)
class Candidate:
    """A dual candidate with the sums that decide its feasibility.

    The two columns of ``gradients`` and entries of ``flips`` belong to the classes -1 and +1.
    """

    coefficients: FloatArray
    state: State  # DualState per block, with the s(1-s) that the Hessian was built with
    gradients: FloatArray  # Zᵀ W (s - a) by class, shape (p, 2)
    flips: FloatArray  # Σ w a by class
    size: float  # root of Σ w (s + a)²: what rounding is measured against
    curvature: float  # Σ w s(1-s)

    @classmethod
    def at(
        cls,
        problem: Problem,
        coefficients: FloatArray,
        flip_share: State,
        step: FloatArray | None = None,
    ) -> Candidate:
        """The candidate ``(β̃, a)`` with its sums: one pass over the data."""
        state, sums = problem.rows.run(_start, flip_share, coefficients, step)
        there = coefficients if step is None else coefficients + step
        return cls._from_sums(there, state, *sums)

    @classmethod
    def given(
        cls, problem: Problem, coefficients: FloatArray, doubt: State, flip_share: State
    ) -> Candidate:
        """The candidate ``(s, a)`` with its sums: one pass over the data."""
        state, sums = problem.rows.run(_given, problem.rows.pair(doubt, flip_share))
        return cls._from_sums(coefficients, state, *sums)

    @classmethod
    def _from_sums(
        cls,
        coefficients: FloatArray,
        state: State,
        gradients: FloatArray,
        flips: FloatArray,
        square: float,
        curvature: float,
    ) -> Candidate:
        return cls(coefficients, state, gradients, flips, math.sqrt(square), curvature)

    @property
    def gradient(self) -> FloatArray:
        """``g = Zᵀ W (s - a)``."""
        return np.asarray(self.gradients.sum(axis=1))

    def with_curvature(self, problem: Problem) -> Candidate:
        """The same candidate, its state remembering ``s(1-s)``."""
        return replace(self, state=problem.rows.run(_curvature, self.state)[0])

    def moved(self, problem: Problem, step: FloatArray) -> Candidate:
        """The candidate at ``β̃ + step``, with the same ``a``."""
        coefficients = self.coefficients + step
        state, sums = problem.rows.run(_moved, self.state, coefficients)
        return self._from_sums(coefficients, state, *sums)

    def shifted(self, problem: Problem, step: FloatArray) -> Candidate | None:
        """The candidate with ``s - s(1-s) Z step``; None if that leaves [0, 1]."""
        with np.errstate(over="ignore", invalid="ignore"):
            state, (least, greatest, *sums) = problem.rows.run(_shifted, self.state, step)
            there = self.coefficients + step
        if not (least >= 0.0 and greatest <= 1.0):
            return None
        return self._from_sums(there, state, *sums)

    def emptied(self, problem: Problem, step: FloatArray) -> Candidate | None:
        """The candidate with ``s = a = 0`` where the shift leaves little of s; None if nowhere."""
        with np.errstate(over="ignore", invalid="ignore"):
            state, (count, *sums) = problem.rows.run(_emptied, self.state, step)
        return self._from_sums(self.coefficients, state, *sums) if count else None

    def without_light(self, problem: Problem, light: float) -> Candidate:
        """The candidate with ``s = a = 0`` for samples that hardly count."""
        state, sums = problem.rows.run(_without_light, self.state, light / problem.rows.n_samples)
        return self._from_sums(self.coefficients, state, *sums)

    def spent(self, problem: Problem) -> float:
        """``κ Σ w a``."""
        return problem.cost.pair.spent(float(self.flips.sum()))

    def rounding(self, problem: Problem) -> FloatArray:
        """What rounding alone may leave of each coordinate of the gradient."""
        n = problem.rows.n_samples
        noise = np.full(problem.costs.size, rounding_of_sum(n))
        if problem.fit_intercept:
            noise[-1] = rounding_of_pairwise_sum(n)
        return noise * self.size * problem.rows.column_scale

    def sums(self, problem: Problem, columns: IndexArray) -> tuple[FloatArray, FloatArray]:
        """``Σ w (s - a) z`` of some columns, each rounded once, and what that may leave of them."""
        _, (found,) = problem.rows.run(_exact_sums, self.state, columns)
        noise = _ROUNDINGS * UNIT * self.size * problem.rows.column_scale[columns]
        return found, noise

    def within_budget(self, problem: Problem) -> Candidate:
        """Shrink ``a`` so that flips alone do not exceed ε."""
        spent = self.spent(problem)
        if spent <= problem.epsilon:
            return self
        state, sums = problem.rows.run(_fewer_flips, self.state, problem.epsilon / spent)
        return self._from_sums(self.coefficients, state, *sums)

    def budget(self, problem: Problem) -> float:
        """What flips leave of ε, less a hair so that rounding does not call for scaling."""
        return max(problem.epsilon - self.spent(problem), 0.0) * (1.0 - 1e-13)

    def imbalance(self, problem: Problem) -> FloatArray:
        """What is left of the free columns' equations, where it is more than rounding."""
        rounding = np.maximum(self.rounding(problem), _MET * self.size * problem.rows.column_scale)
        wrong = problem.free & (np.abs(self.gradient) > np.maximum(rounding, _NOTHING))
        return np.where(wrong, self.gradient, 0.0)

    def bound(
        self, problem: Problem, lam: float | None, equations: FreeEquations | None = None
    ) -> DualBound:
        """Value after balancing and scaling, and after the free equations were paid for.

        ``equations`` are those of several free columns; without them the bound is the trivial one.
        """
        factors = np.ones(2)
        alone = problem.free.sum() == problem.fit_intercept
        if alone and problem.fit_intercept:
            noise = float(self.rounding(problem)[-1])
            factors = _balance(-self.gradients[-1, 0], self.gradients[-1, 1], noise)
        elif not alone and (equations is None or self.imbalance(problem).any()):
            factors = np.zeros(2)
        rounding = self.rounding(problem)
        if not alone:
            # Sizes of the samples that take part: others may have most of a column's.
            _, (squares, mass) = problem.rows.run(_sizes, self.state)
            size = np.sqrt(float(mass)) * np.sqrt(squares)
            rounding = np.minimum(rounding, rounding_of_sum(problem.rows.n_samples) * size)
        residual = np.abs(self.gradients @ factors) + rounding
        if alone and problem.fit_intercept:
            # f s (1 - f s) is at least f s(1-s).
            least = float(factors.min()) * float(self.curvature)
            equations = intercept_equation(least, problem.costs.size)
        elif alone:
            equations = FreeEquations.none()
        distance, move = 0.0, None
        if equations is None:
            factors = np.zeros(2)
        else:
            distance, move = equations.distance(residual)
        flips = float(self.flips @ factors)
        used = problem.budget_used(self.gradients @ factors, flips)
        # What the exact point, and rounding, may add to the left side of the constraint.
        used += distance * problem.transport_norm(0.5 * problem.rows.column_scale)
        used += problem.transport_norm(rounding)
        if lam is None and used > problem.epsilon:
            factors = factors * (problem.epsilon / used)
        if alone:
            # With D = s(1-s), and the intercept's column of ones.
            state, (value,) = problem.rows.run(_value, self.state, factors)
            square, stiffness, furthest = _MOST_SQUARE, 1.0, 0.0 if move is None else move.max()
        else:
            state, (value, square, stiffness, furthest) = problem.rows.run(
                _charged_value, self.state, factors, move if distance > 0.0 else None
            )
        value = float(value) - math.sqrt(square) * distance - float(stiffness) * distance**2
        if equations is not None and equations.faint.size:
            value -= float(problem.rows.run(_faint, state, equations.faint)[1][0])
        if lam is not None:
            value += lam * (problem.epsilon - used)
        if not (furthest <= 0.5 and value > 0.0):
            value = 0.0
        return DualBound(value, state, self.coefficients)

    def paid_bound(self, problem: Problem, lost: float, change: FloatArray) -> DualBound:
        """Value less what is ``lost``, of a point whose sums ``change`` by so much, scaled."""
        used = problem.budget_used(self.gradient, float(self.flips.sum()))
        used += problem.transport_norm(change)
        factor = problem.epsilon / used if used > problem.epsilon else 1.0
        state, (value,) = problem.rows.run(_value, self.state, np.full(2, factor))
        value = float(value) - lost if factor >= 0.5 else 0.0
        return DualBound(max(value, 0.0), state, self.coefficients)

    def levelled_bound(self, problem: Problem) -> DualBound:
        """The bound of s = a, the same for all samples: all sums are zero, without rounding.

        Samples that are zero in all columns have no sums: there s is a half, and a is zero.
        """
        levelled, (weight,) = problem.rows.run(_not_empty, self.state)
        share = min(problem.epsilon / problem.kappa / max(float(weight), UNIT), 0.5)
        levelled, _ = problem.rows.run(_levelled, levelled, share * (1.0 - _HAIR))
        state, (value,) = problem.rows.run(_value, levelled, np.ones(2))
        return DualBound(float(value), state, self.coefficients)

    def feels_rounding(self, problem: Problem) -> bool:
        """Whether rounding of the gradient counts beside ε."""
        return problem.transport_norm(self.rounding(problem)) > _FELT * problem.epsilon

    def held_bound(
        self, problem: Problem, equations: FreeEquations | None, wanted: float = math.inf
    ) -> DualBound:
        """Value of the exact point whose sums in the columns of ``equations`` are in the ball.

        The trivial bound without them.
        """
        if equations is None:
            state, _ = problem.rows.run(_value, self.state, np.zeros(2))
            return DualBound(0.0, state, self.coefficients)
        rounding, gradient = self.rounding(problem), self.gradient
        held = np.zeros(gradient.size, dtype=bool)
        held[equations.columns] = True
        kept, costs = problem.penalised, problem.costs[problem.penalised]
        metric = np.square(costs * problem.rows.column_scale[kept])
        metric = np.where(metric > 0.0, metric, 1.0)
        radius, used, distance = self.budget(problem), math.inf, 0.0
        for _ in range(3):
            target = np.zeros_like(gradient)
            target[kept] = problem.norm.project(costs * gradient[kept], radius, metric) / costs
            residual = np.where(held, np.abs(gradient - target), 0.0) + rounding
            distance, move = equations.distance(residual)
            # Columns that are not held: as they are, and as far as the exact point may be.
            loose = np.abs(gradient) + rounding + 0.5 * distance * problem.rows.column_scale
            used = problem.transport_norm(np.where(held, target, loose)) + self.spent(problem)
            if used <= problem.epsilon:
                break
            radius = max(radius - (1.0 + 1e-6) * (used - problem.epsilon), 0.0)
        state, (value, square, stiffness, furthest) = problem.rows.run(
            _charged_value, self.state, np.ones(2), move
        )
        value = float(value) - math.sqrt(square) * distance - float(stiffness) * distance**2
        if equations.faint.size:
            value -= float(problem.rows.run(_faint, state, equations.faint)[1][0])
        if used > problem.epsilon:
            value *= problem.epsilon / used
        # Others have to find that point next to doubles: not all is claimed that there is.
        coarse = problem.transport_norm(2.0 * UNIT * self.size * problem.rows.column_scale)
        spare = max(0.5 * (value - wanted), 0.0)
        value -= min(problem.dual_norm(self.coefficients) * coarse, spare)
        if not (furthest <= 0.5 and value > 0.0):
            value = 0.0
        return DualBound(value, state, self.coefficients)


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


def _dual_sums(block: Block, s: FloatArray, a: FloatArray) -> tuple[Sum, Sum, Sum, Sum]:
    difference = block.weights * (s - a)
    gradients = block.adjoint(block.by_class(difference))
    flips = block.by_class(block.weights * a).sum(axis=0)
    # Rounding of s - a is that of its operands, which may be far larger than the difference.
    square = float(block.weights @ np.square(s + a))
    curvature = float(block.weights @ (s * (1.0 - s)))
    return Sum(gradients), Sum(flips), Sum(square), Sum(curvature)


def _start(
    block: Block, a: FloatArray, coefficients: FloatArray, step: FloatArray | None
) -> tuple[DualState, tuple[Sum, ...]]:
    s = flip_probability(block.margins(coefficients))
    if step is not None:
        s = np.clip(s - s * (1.0 - s) * block.margins(step), 0.0, 1.0)
    return (s, a, s[:0]), _dual_sums(block, s, a)


def _given(block: Block, pair: tuple[FloatArray, FloatArray]) -> tuple[DualState, tuple[Sum, ...]]:
    s, a = pair
    return (s, a, s[:0]), _dual_sums(block, s, a)


def _curvature(block: Block, state: DualState) -> tuple[DualState, tuple[()]]:
    s, a, _ = state
    return (s, a, s * (1.0 - s)), ()


def _moved(
    block: Block, state: DualState, coefficients: FloatArray
) -> tuple[DualState, tuple[Sum, ...]]:
    _, a, curvature = state
    s = flip_probability(block.margins(coefficients))
    return (s, a, curvature), _dual_sums(block, s, a)


def _shifted(
    block: Block, state: DualState, step: FloatArray
) -> tuple[DualState, tuple[Reduction, ...]]:
    s, a, curvature = state
    s = s - curvature * block.margins(step)
    least, greatest = np.min(s, initial=1.0), np.max(s, initial=0.0)
    return (s, a, curvature), (Min(least), Max(greatest), *_dual_sums(block, s, a))


def _emptied(block: Block, state: DualState, step: FloatArray) -> tuple[DualState, tuple[Sum, ...]]:
    s, a, curvature = state
    out = (s > 0.0) & ~(s - curvature * block.margins(step) > _LEFT * s)
    s, a, curvature = (np.where(out, 0.0, values) for values in (s, a, curvature))
    return (s, a, curvature), (Sum(int(out.sum())), *_dual_sums(block, s, a))


def _without_light(
    block: Block, state: DualState, least: float
) -> tuple[DualState, tuple[Sum, ...]]:
    s, a, curvature = state
    light = block.weights * np.maximum(s, a) < least
    s, a, curvature = (np.where(light, 0.0, values) for values in (s, a, curvature))
    return (s, a, curvature), _dual_sums(block, s, a)


def _fewer_flips(
    block: Block, state: DualState, factor: float
) -> tuple[DualState, tuple[Sum, ...]]:
    s, a, curvature = state
    return (s, factor * a, curvature), _dual_sums(block, s, factor * a)


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


def _exact_sums(
    block: Block, state: DualState, columns: IndexArray
) -> tuple[DualState, tuple[Sum]]:
    difference = block.weights * (state[0] - state[1])
    entries = (block.margins(unit) for unit in np.eye(block.n_columns)[columns])
    return state, (Sum(np.array([exact_dot(difference, column) for column in entries])),)


def _part(
    block: Block, pair: tuple[FloatArray, FloatArray], k: int
) -> tuple[FloatArray, tuple[()]]:
    return pair[k], ()


def _sizes(block: Block, state: DualState) -> tuple[DualState, tuple[Sum, Sum]]:
    """``Σ w (s + a) z²`` per column and ``Σ w (s + a)``, which bound ``Σ w (s + a) |z|``."""
    s, a, _ = state
    mass = block.weights * (s + a)
    return state, (Sum(block.squared_columns(mass)), Sum(float(mass.sum())))
