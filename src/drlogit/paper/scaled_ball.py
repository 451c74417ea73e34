"""The ball ``‖β/c‖_* ≤ λ`` in coordinates that suit steps along gradients."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..problem.problem import Problem
from ..problem.result import Result
from ..rows.arrays import FloatArray
from .admm import gram, normal_product
from .ball_qp import DENSE_LIMIT, Quadratic


@dataclass(frozen=True, eq=False)
class ScaledBall:
    """``‖θ‖_* ≤ λ`` in the penalised part of ``θ = β / scale``.

    Penalised coefficients are divided by their costs, so that the ball is that of the dual norm.
    Free ones are multiplied by the size of their column, so that a step treats all alike.
    """

    problem: Problem

    @cached_property
    def scale(self) -> FloatArray:
        """β over θ."""
        size = self.problem.rows.column_scale
        inverse = 1.0 / np.where(size > 0.0, size, 1.0)
        return np.where(self.problem.free, inverse, self.problem.costs)

    @cached_property
    def curvature(self) -> float:
        """``λ_max(ZᵀWZ)`` in these coordinates."""
        problem, scale = self.problem, self.scale
        if scale.size <= DENSE_LIMIT:
            return Quadratic(gram(problem) * np.outer(scale, scale)).largest_eigenvalue
        product = Quadratic(None, lambda v: scale * normal_product(problem, scale * v), scale.size)
        return product.largest_eigenvalue

    def radius(self, lam: float) -> float:
        """Euclidean radius of the ball; free coefficients count as of size one."""
        kept = int(self.problem.penalised.sum())
        widest = math.sqrt(kept) if self.problem.norm.name == "l1" else float(kept > 0)
        return math.hypot(widest * lam, math.sqrt(self.problem.free.sum()))

    def first_point(self, start: Result | None, lam: float) -> FloatArray:
        """The coefficients of an earlier result, projected, or zero."""
        if start is None:
            return np.zeros(self.problem.costs.size)
        return self.project(self.problem.join(start.coef, start.intercept), lam)

    def project(self, beta: FloatArray, lam: float) -> FloatArray:
        """Nearest point with ``‖θ‖_* ≤ lam``."""
        kept = self.problem.penalised
        scale, projected = self.scale[kept], beta.copy()
        projected[kept] = scale * self.problem.norm.project_dual(beta[kept] / scale, lam)
        return projected
