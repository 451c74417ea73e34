"""The optimality conditions at an iterate, linearised: one small system in ``(x, λ)``.

Epigraph variables, slacks and multipliers are eliminated by the samples
(:mod:`.piece_samples`); what is left is a matrix over ``(β, b, low, high, λ)``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.linalg import LinAlgError

from ...problem.shifted_cholesky import ScaledFactor
from ...rows.arrays import FloatArray
from ...rows.interface import State
from ..interior_point.norm_cone import ConeStep, NormCone
from .layout import Layout
from .linear_rows import LinearRows
from .piece_samples import PieceConditions, PiecePrediction

#: What is added to a unit diagonal, in turn, until a Cholesky factor exists.
_SHIFTS = (1e-13, 1e-11, 1e-9, 1e-7, 1e-5)

#: How often solutions are refined against the matrix that is not shifted.
_REFINEMENTS = 2


#: Wanted changes of products: those of the norm's cone, and of the linear rows.
Aims: TypeAlias = tuple[FloatArray, FloatArray]


@dataclass(frozen=True, eq=False)
class PiecePoint:
    """The driver's half of an iterate."""

    x: FloatArray
    lam: float
    cone: NormCone
    rows: LinearRows
    samples: State


@dataclass(frozen=True, eq=False)
class PieceStep:
    """One direction of everything, with the longest steps it allows."""

    dx: FloatArray
    dlam: float
    cone: ConeStep
    rows: ConeStep
    samples: State
    alphas: tuple[float, float]


class NewtonSystem:
    """The optimality conditions at a point, linearised."""

    def __init__(self, layout: Layout, point: PiecePoint, samples: PieceConditions) -> None:
        self.layout = layout
        self.point = point
        self.samples = samples
        self.residual = samples.gradient.copy()
        self.residual[-1] += layout.problem.epsilon
        self._add(self.residual, point.cone.gradient(), point.rows.gradient())

    def _add(
        self, vector: FloatArray, cone: tuple[FloatArray, float], rows: tuple[FloatArray, float]
    ) -> None:
        layout = self.layout
        vector[layout.kept] += cone[0] / layout.costs
        vector[:-1] += rows[0]
        vector[-1] += cone[1] + rows[1]

    @cached_property
    def complementarity(self) -> float:
        cone, rows = self.point.cone, self.point.rows
        return float(self.samples.products) + cone.complementarity() + rows.complementarity()

    @property
    def mu(self) -> float:
        degree = self.samples.mass + self.point.cone.degree + self.point.rows.degree
        return self.complementarity / float(degree)

    @property
    def residual_size(self) -> float:
        """What the equations without trust rows leave, at the size of the iterate."""
        point = self.point
        sizes = np.append(np.abs(point.x), point.lam)
        left = self.residual.copy()
        trust = point.rows.trust_gradient()
        left[:-1] -= trust[0]
        left[-1] -= trust[1]
        return float(np.abs(left) @ np.maximum(2.0 * sizes, 0.1 * point.lam))

    def after(self, step: PieceStep, predicted: PiecePrediction) -> float:
        """Complementarity after the longest predictor step."""
        primal, dual = step.alphas
        samples = self.samples.products + dual * predicted.with_dual
        samples += primal * (predicted.with_primal + dual * predicted.with_both)
        cone, rows = self.point.cone, self.point.rows
        return (
            float(samples) + cone.after(step.cone, step.alphas) + rows.after(step.rows, step.alphas)
        )

    def factor(self) -> None:
        """Assemble and factor; LinAlgError if that fails."""
        layout, point = self.layout, self.point
        matrix = self.samples.gram.copy()
        inner, edge, corner = point.rows.curvature()
        matrix[:-1, :-1] += inner
        matrix[:-1, -1] += edge
        matrix[-1, :-1] += edge
        matrix[-1, -1] += corner
        cone = point.cone.curvature()
        kept, costs = layout.kept, layout.costs
        matrix[kept, kept] += cone.diagonal / costs**2
        matrix[kept, -1] += cone.coupling / costs
        matrix[-1, kept] += cone.coupling / costs
        matrix[-1, -1] += cone.corner
        column = np.zeros(matrix.shape[0])
        column[kept], column[-1] = cone.column / costs, 1.0
        matrix += cone.weight * np.outer(column, column)
        self.places = np.append(layout.active, layout.size)
        self.matrix = matrix[np.ix_(self.places, self.places)]
        factor = ScaledFactor.of(self.matrix, _SHIFTS)
        if factor is None:
            raise LinAlgError("the reduced matrix is not positive definite")
        self.factored = factor

    def solve(self, aims: Aims, response: FloatArray) -> tuple[FloatArray, float]:
        """``(dx, dλ)`` for aims of cone and rows, and what the samples' aims ask for."""
        right = -(self.residual + response)
        pushed = np.zeros_like(right)
        self._add(pushed, self.point.cone.drive(aims[0]), self.point.rows.drive(aims[1]))
        return self._solve(right - pushed)

    def solve_for(
        self, left: FloatArray, cone: NormCone, rows: LinearRows
    ) -> tuple[FloatArray, float]:
        """The step that removes what is left of the equations."""
        right = left.copy()
        right[-1] += self.layout.problem.epsilon
        self._add(right, cone.gradient(), rows.gradient())
        return self._solve(-right)

    def _solve(self, right: FloatArray) -> tuple[FloatArray, float]:
        wanted = right[self.places]
        solution = self.factored.solve(wanted)
        for _ in range(_REFINEMENTS):
            solution += self.factored.solve(wanted - self.matrix @ solution)
        out = np.zeros(right.size)
        out[self.places] = solution
        return out[:-1], float(out[-1])

    def step(
        self,
        dx: FloatArray,
        dlam: float,
        aims: Aims,
        samples: State,
        longest: tuple[float, float],
    ) -> PieceStep:
        """The direction of everything, given that of ``(x, λ)`` and of the samples."""
        point, layout = self.point, self.layout
        cone = point.cone.direction(dx[layout.kept] / layout.costs, dlam, aims[0])
        rows = point.rows.direction(dx, dlam, aims[1])
        limits = zip(longest, point.cone.longest(cone), point.rows.longest(rows), strict=True)
        primal, dual = (min(1.0, *map(float, each)) for each in limits)
        return PieceStep(dx, dlam, cone, rows, samples, (primal, dual))
