"""The optimality conditions at an iterate, linearised: one small system in ``(x, λ)``.

Epigraph variables, slacks and multipliers are eliminated by the samples
(:mod:`.piece_samples`); what is left is a matrix over ``(β, b, low, high, λ)``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.linalg import LinAlgError
from scipy.linalg.lapack import dpotrs

from ...problem.shifted_cholesky import shifted_cholesky, unit_scale
from ...rows.arrays import FloatArray
from ...rows.interface import State
from ..interior_point.norm_cone import ConeStep, NormCone
from .layout import Layout
from .linear_rows import LinearRows

#: What is added to a unit diagonal, in turn, until a Cholesky factor exists.
_SHIFTS = (1e-13, 1e-11, 1e-9, 1e-7, 1e-5)


@dataclass(frozen=True, eq=False)
class Point:
    """The driver's half of an iterate."""

    x: FloatArray
    lam: float
    cone: NormCone
    rows: LinearRows
    samples: State


@dataclass(frozen=True, eq=False)
class Step:
    """One direction of everything, with the longest steps it allows."""

    dx: FloatArray
    dlam: float
    cone: ConeStep
    rows: ConeStep
    samples: State
    alphas: tuple[float, float]


class NewtonSystem:
    """The optimality conditions at a point, linearised."""

    def __init__(self, layout: Layout, point: Point, sums: tuple[Any, ...]) -> None:
        self.layout = layout
        self.point = point
        self.gram, columns, totals = sums
        self.mean_top, self.products, self.degree, self.n_pieces = totals
        gradient, self.affine, self.centring = columns
        self.residual = gradient.copy()
        self.residual[-1] += layout.problem.epsilon
        self._add(self.residual, point.cone.gradient(), point.rows.gradient())

    def _add(
        self, vector: FloatArray, cone: tuple[FloatArray, float], rows: tuple[FloatArray, float]
    ) -> None:
        layout = self.layout
        vector[layout.kept] += cone[0] / layout.costs
        vector[:-1] += rows[0]
        vector[-1] += cone[1] + rows[1]

    @property
    def complementarity(self) -> float:
        point = self.point
        return float(self.products) + point.cone.complementarity() + point.rows.complementarity()

    @property
    def mu(self) -> float:
        degree = self.degree + self.point.cone.degree + self.point.rows.degree
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

    def after(self, step: Step, products: FloatArray) -> float:
        primal, dual = step.alphas
        point = self.point
        first, second, third = products
        samples = self.products + dual * first + primal * second + primal * dual * third
        return (
            float(samples)
            + point.cone.after(step.cone, step.alphas)
            + point.rows.after(step.rows, step.alphas)
        )

    def factor(self) -> None:
        layout, point = self.layout, self.point
        matrix = self.gram.copy()
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
        matrix = matrix[np.ix_(self.places, self.places)]
        self.scale = unit_scale(np.diagonal(matrix))
        self.matrix = self.scale[:, None] * matrix * self.scale
        factor = shifted_cholesky(self.matrix, _SHIFTS)
        if factor is None:
            raise LinAlgError("the reduced matrix is not positive definite")
        self.factored = factor

    def solve(
        self, aims: tuple[FloatArray, FloatArray], response: FloatArray
    ) -> tuple[FloatArray, float]:
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
        scaled = self.scale * right[self.places]
        solution, _ = dpotrs(self.factored, scaled, lower=1)
        for _ in range(2):
            more, _ = dpotrs(self.factored, scaled - self.matrix @ solution, lower=1)
            solution += more
        out = np.zeros(right.size)
        out[self.places] = self.scale * solution
        return out[:-1], float(out[-1])
