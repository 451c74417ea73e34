"""Dual candidates ``(s, a)``: the sums that decide their feasibility, and ways to change them.

Feasible are, with ``g = Σ w_i (s_i - a_i) z_i``, those with ``‖c g‖ + κ Σ w_i a_i ≤ ε`` and g zero
on free columns; they bound the optimum of (P) by ``Σ w_i H(s_i)`` from below.  What others prove is
said in :mod:`drlogit.problem.dual_bounds`, and which changes make them better in
:mod:`drlogit.problem.dual_corrections`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from ..rows.arrays import FloatArray, IndexArray
from ..rows.blocks import Block
from ..rows.centring import exact_dot
from ..rows.interface import State
from ..rows.reductions import Max, Min, Reduction, Sum
from .free_equations import UNIT, rounding_of_pairwise_sum, rounding_of_sum
from .losses import flip_probability
from .problem import Problem

#: s, a and s(1-s) of a block's samples; the last is empty until a Hessian is wanted.
DualState: TypeAlias = tuple[FloatArray, FloatArray, FloatArray]

#: The share of its s that a step must leave to a sample for it to stay.
_LEFT = 1e-2

#: A free equation counts as met when this much of it is left, relative to the product of the root
#: mean squares; what is left is paid for in any case.
_MET = 1e-13

#: ... or when what is left is no normal number.
_NOTHING = 2.0**-1022

#: Roundings in ``w (s - a)`` and in sums that are rounded once, in units of their size.
_ROUNDINGS = 4.0

#: Share of ε from which rounding of the gradient counts: below, it costs the bound no more.
_FELT = 1e-8


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

    def feels_rounding(self, problem: Problem) -> bool:
        """Whether rounding of the gradient counts beside ε."""
        return problem.transport_norm(self.rounding(problem)) > _FELT * problem.epsilon


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


def _exact_sums(
    block: Block, state: DualState, columns: IndexArray
) -> tuple[DualState, tuple[Sum]]:
    difference = block.weights * (state[0] - state[1])
    entries = (block.margins(unit) for unit in np.eye(block.n_columns)[columns])
    return state, (Sum(np.array([exact_dot(difference, column) for column in entries])),)
