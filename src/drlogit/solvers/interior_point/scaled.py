"""(P) in coordinates where a typical row has transport norm one.

Costs and one overall factor σ are folded into the coefficients, never into the data:
``β = scale · x``.  In these coordinates ``‖x‖_* ≤ λ`` over the penalised entries, and ε, κ and λ
follow (``ε/σ``, ``κ/σ``, ``λσ``), so one set of starting values and tolerances serves every
data set.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...problem.problem import Problem
from ...rows.arrays import FloatArray, IndexArray
from .norm_cone import NoCone, NormCone, norm_cone


@dataclass(frozen=True, eq=False)
class Scaled:
    """A problem with the scaling of its coefficients.

    ``kappa`` is 0 when the hinge plays no role (κ = ∞ or ε = 0); ``hinge`` says so.
    """

    problem: Problem
    scale: FloatArray
    sigma: float

    @classmethod
    def of(cls, problem: Problem) -> Scaled:
        """Scale so that the root-mean-square row has Euclidean length one."""
        columns = problem.rows.column_scale
        safe = np.where(columns > 0.0, columns, 1.0)
        kept = problem.penalised
        costs = np.where(kept, problem.costs, 1.0)
        sigma = float(np.linalg.norm((columns * costs)[kept]))
        if not (math.isfinite(sigma) and sigma > 0.0):
            sigma = 1.0
        return cls(problem, np.where(kept, costs / sigma, 1.0 / safe), sigma)

    @cached_property
    def epsilon(self) -> float:
        return self.problem.epsilon / self.sigma

    @cached_property
    def hinge(self) -> bool:
        """Whether label flips enter the problem at all."""
        return self.problem.epsilon > 0.0 and math.isfinite(self.problem.kappa)

    @cached_property
    def kappa(self) -> float:
        return self.problem.kappa / self.sigma if self.hinge else 0.0

    @cached_property
    def active(self) -> IndexArray:
        """Coefficients that matter: those of columns that are not all zero."""
        return np.flatnonzero(self.problem.rows.column_scale)

    @cached_property
    def kept(self) -> IndexArray:
        """The penalised ones among them."""
        return self.active[self.problem.penalised[self.active]]

    def dual_norm(self, x: FloatArray) -> float:
        """``‖x‖_*`` over the penalised entries: the least feasible λ."""
        return self.problem.norm.dual(x[self.kept])

    def cone(self, x: FloatArray, lam: float, mu: float) -> NormCone:
        """The constraint at ``(x, λ)``, its multipliers centred at ``mu``."""
        if self.epsilon == 0.0:
            return NoCone.at(x[:0], lam, mu)
        return norm_cone(self.problem.norm.name, x[self.kept], lam, mu)

    def coefficients(self, x: FloatArray) -> FloatArray:
        """Back to the user's coordinates."""
        return self.scale * x

    def scaled(self, adjoint: FloatArray) -> FloatArray:
        """A product with ``Zᵀ``, from the user's coordinates."""
        return (self.scale * adjoint.T).T
