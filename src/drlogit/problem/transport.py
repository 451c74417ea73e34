"""What it costs the adversary to move a sample; the ball that a model is fitted against.

    d((x, y), (x', y')) = ‖C (x - x')‖ + κ 1[y ≠ y']

κ may differ from sample to sample (:mod:`drlogit.problem.label_costs`).
``C`` is the diagonal of the feature costs.  The dual of that norm bounds the coefficients,
``‖C⁻¹β‖_* ≤ λ``; a feature of infinite cost cannot move, and its coefficient is free of the bound,
as the intercept is: the constant feature does not move either.  With a cost matrix ``M = LLᵀ`` a
move Δ of features costs ``√(ΔᵀMΔ)``, and the bound is ``‖L⁻¹β‖ ≤ λ``.  Features with domains
(:mod:`drlogit.problem.domains`) move at a price of their own, and the norm leaves them alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from ..rows.arrays import BoolArray, FloatArray, IndexArray
from ..rows.checks import as_numbers
from ..rows.chunks import in_memory
from .domains import Domains
from .label_costs import Trust, scaled_costs
from .norms import Norm


@dataclass(frozen=True, eq=False)
class TransportCost:
    """The ground cost; ``costs`` has one entry per coefficient, ``inf`` for the free ones.

    Columns with domains are among the latter.  With several classes κ may be a matrix.
    """

    norm: Norm
    costs: FloatArray
    kappa: float
    domains: Domains | None = None
    trust: Trust = None  # how the multiples of κ that the samples carry are stated
    matrix: FloatArray | None = None  # of costs; fits have features for which it is the identity

    @cached_property
    def free(self) -> BoolArray:
        """Which coefficients the norm constraint leaves alone."""
        return np.isinf(self.costs)

    @property
    def flips(self) -> bool:
        """Whether labels can flip at all."""
        return math.isfinite(self.kappa)

    def kink(self, lam: float) -> float:
        """The margin ``κλ`` from which flipping pays, infinitely far off if it never does."""
        return self.kappa * lam if self.flips else math.inf

    def spent(self, share: float) -> float:
        """``κ`` times the weight that is flipped, and 0 rather than ∞·0."""
        return self.kappa * share if share > 0.0 else 0.0

    def dual_norm(self, coefficients: FloatArray) -> float:
        """``‖C⁻¹β‖_*``, to which free coefficients add nothing: the least feasible λ."""
        if self.matrix is not None:
            return self.norm.dual(self._turned(coefficients[~self.free]))
        return self.norm.dual(coefficients / self.costs)

    def steepest_move(self, coefficients: FloatArray) -> FloatArray:
        """The move of cost one that raises the score most."""
        move, kept = np.zeros_like(coefficients), ~self.free
        if self.matrix is not None:
            turned = self.norm.aligned(self._turned(coefficients[kept]))
            move[kept] = solve_triangular(self._factor, turned, lower=True, trans=1)
        else:
            costs = self.costs[kept]
            move[kept] = self.norm.aligned(coefficients[kept] / costs) / costs
        return move

    def _turned(self, coefficients: FloatArray) -> FloatArray:
        return np.asarray(solve_triangular(self._factor, coefficients, lower=True))

    @cached_property
    def _factor(self) -> FloatArray:
        """L of the features that can move: the others cost nothing, as they stay."""
        assert self.matrix is not None
        kept = np.flatnonzero(~self.free)
        return np.asarray(np.linalg.cholesky(self.matrix[np.ix_(kept, kept)]), np.float64)


@dataclass(frozen=True, eq=False)
class Ball:
    """ε, κ, the transport norm by name, a cost for each feature, and whether there is an intercept.

    ``trust`` is how many times κ a flip costs, by class, if classes differ; if samples do, it says
    so, and who asks about samples has to say what their flips cost.
    ``feature_costs`` is None where every feature costs 1; it may be a cost matrix.  ``groups`` are
    columns of categories, also of those that cannot change if each sample has one, and
    ``with_none`` says of which "none of these columns" is a category.  ``positions`` are the places
    of the levels of ordered groups, None for other groups.  ``lower`` and ``upper`` are the ends of
    what each feature can be, infinite for none.
    """

    epsilon: float
    kappa: float
    norm: str
    feature_costs: FloatArray | None = None
    fit_intercept: bool = True
    groups: tuple[IndexArray, ...] = ()
    lower: FloatArray | None = None
    upper: FloatArray | None = None
    trust: Trust = None
    with_none: BoolArray | None = None
    positions: tuple[FloatArray | None, ...] = ()

    def label_costs(self, codes: IndexArray, n_classes: int, kappa: Any = None) -> FloatArray:
        """What it costs to give each sample each label; ``kappa`` if there is one for each sample.

        ``codes`` are the labels as positions among the classes.
        """
        if (kappa is None) == isinstance(self.trust, str):
            raise ValueError(
                "kappa must be given if the model was fitted with one for each sample, and only "
                "then"
            )
        if kappa is None:
            each = self.kappa if self.trust is None else scaled_costs(self.trust, self.kappa)
            costs = np.broadcast_to(each, (n_classes, n_classes))[codes]
        else:
            found = as_numbers(in_memory(kappa), "kappa")
            if found.shape != codes.shape or not (found >= 0.0).all():
                raise ValueError(f"kappa must be {codes.size} numbers >= 0, got {found.shape}")
            costs = np.repeat(found[:, None], n_classes, axis=1)
        if self.epsilon == 0.0:  # labels are as they are, whatever others cost
            costs = np.full(costs.shape, np.inf)
        costs[np.arange(codes.size), codes] = 0.0
        return np.asarray(costs, dtype=np.float64)
