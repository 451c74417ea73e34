"""Coordinates for the methods that step along gradients: PDHG and the subgradient method.

Penalised coefficients are divided by their costs, so that the ball is that of the dual norm;
free ones are multiplied by the size of their column, so that a step treats all alike.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from ..problem.problem import Problem
from ..rows.arrays import FloatArray
from .admm import gram, normal_product
from .ball_qp import DENSE_LIMIT, Quadratic


@dataclass(frozen=True, eq=False)
class ScaledBall:
    """``‖θ‖_* ≤ λ`` in the penalised part of ``θ = β / scale``."""

    problem: Problem
    scale: FloatArray

    @classmethod
    def of(cls, problem: Problem) -> ScaledBall:
        size = problem.rows.column_scale
        inverse = 1.0 / np.where(size > 0.0, size, 1.0)
        return cls(problem, np.where(problem.free, inverse, problem.costs))

    @cached_property
    def curvature(self) -> float:
        """``λ_max(ZᵀWZ)`` in these coordinates."""
        if self.scale.size <= DENSE_LIMIT:
            matrix = gram(self.problem) * np.outer(self.scale, self.scale)
            return Quadratic(matrix).largest_eigenvalue
        product = partial(_scaled_product, self.problem, self.scale)
        return Quadratic(None, product, self.scale.size).largest_eigenvalue

    def radius(self, lam: float) -> float:
        """Euclidean radius of the ball; free coefficients count as of size one."""
        kept = int(self.problem.penalised.sum())
        widest = math.sqrt(kept) if self.problem.norm.name == "l1" else float(kept > 0)
        return math.hypot(widest * lam, math.sqrt(self.problem.free.sum()))

    def project(self, beta: FloatArray, lam: float) -> FloatArray:
        """Nearest point with ``‖θ‖_* ≤ lam``."""
        kept = self.problem.penalised
        projected = beta.copy()
        theta = beta[kept] / self.scale[kept]
        projected[kept] = self.scale[kept] * self.problem.norm.project_dual(theta, lam)
        return projected

    def steepest(self, gradient: FloatArray) -> FloatArray:
        """The gradient in θ as a direction in β."""
        return self.scale**2 * gradient

    def size(self, gradient: FloatArray) -> float:
        """Euclidean length of the gradient in θ."""
        return float(np.linalg.norm(self.scale * gradient))


def _scaled_product(problem: Problem, scale: FloatArray, v: FloatArray) -> FloatArray:
    return scale * normal_product(problem, scale * v)
