"""The adversary's cost of moving a sample.

    d((x, y), (x', y')) = ‖C (x - x')‖ + κ 1[y ≠ y']

κ may differ between samples (:mod:`drlogit.problem.label_costs`).  ``C`` is the diagonal matrix of
the feature costs.  The dual norm bounds the coefficients, ``‖C⁻¹β‖_* ≤ λ``.  A feature of infinite
cost cannot move; its coefficient is *free*, which means not bounded, like that of the constant
feature.  With a cost matrix ``M = LLᵀ`` a move Δ costs ``√(ΔᵀMΔ)``, and the bound is
``‖L⁻¹β‖ ≤ λ``.  Features with domains (:mod:`drlogit.problem.domains`) have costs of their own, and
the norm does not bound their coefficients.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import solve_triangular

from ..rows.arrays import BoolArray, FloatArray
from .domains import Domains
from .label_costs import FlipCosts
from .norms import Norm


@dataclass(frozen=True, eq=False)
class TransportCost:
    """The ground cost; ``costs`` has one entry per coefficient, ``inf`` for free ones.

    Columns with domains count as free.
    """

    norm: Norm
    costs: FloatArray
    labels: FlipCosts
    domains: Domains | None = None
    matrix: FloatArray | None = None  # cost matrix, for audits; a fit transforms its features

    @cached_property
    def free(self) -> BoolArray:
        """Which coefficients the norm does not bound."""
        return np.isinf(self.costs)

    @property
    def kappa(self) -> float:
        """The cost of flipping a label; the unit, if flips differ in cost."""
        return self.labels.unit

    @property
    def flips(self) -> bool:
        """Whether labels can flip at all."""
        return self.labels.possible

    def kink(self, lam: float) -> float:
        """The margin ``κλ`` above which a flip pays; infinite if no label can flip."""
        return self.kappa * lam if self.flips else math.inf

    def spent(self, share: float) -> float:
        """``κ`` times the flipped weight; 0 if nothing flips, even if κ is infinite."""
        return self.kappa * share if share > 0.0 else 0.0

    def dual_norm(self, coefficients: FloatArray) -> float:
        """``‖C⁻¹β‖_*`` over the coefficients that are not free: the least feasible λ."""
        if self.matrix is not None:
            return self.norm.dual(self._turned(coefficients[~self.free]))
        return self.norm.dual(coefficients / self.costs)

    def steepest_move(self, coefficients: FloatArray) -> FloatArray:
        """The move of cost one that increases the score most."""
        move, kept = np.zeros_like(coefficients), ~self.free
        if self.matrix is not None:
            turned = self.norm.aligned(self._turned(coefficients[kept]))
            move[kept] = self._turned(turned, transposed=True)
        else:
            costs = self.costs[kept]
            move[kept] = self.norm.aligned(coefficients[kept] / costs) / costs
        return move

    def _turned(self, values: FloatArray, *, transposed: bool = False) -> FloatArray:
        """``L⁻¹`` or ``L⁻ᵀ`` times values of the features that can move."""
        if not values.size:  # older versions of SciPy refuse an empty system
            return values
        return np.asarray(solve_triangular(self._factor, values, lower=True, trans=int(transposed)))

    @cached_property
    def _factor(self) -> FloatArray:
        """The Cholesky factor L of the features that can move."""
        assert self.matrix is not None
        kept = np.flatnonzero(~self.free)
        return np.asarray(np.linalg.cholesky(self.matrix[np.ix_(kept, kept)]), np.float64)
