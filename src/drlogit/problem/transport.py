"""What it costs the adversary to move a sample: a norm of the move, and κ for the label.

    d((x, y), (x', y')) = ‖C (x - x')‖ + κ 1[y ≠ y']

κ may differ from sample to sample (:mod:`drlogit.problem.label_costs`).
``C`` is the diagonal of the feature costs.  The dual of that norm bounds the coefficients,
``‖C⁻¹β‖_* ≤ λ``; a feature of infinite cost cannot move, and its coefficient is free of the bound,
as the intercept is: the constant feature does not move either.  Features with domains
(:mod:`drlogit.problem.domains`) move at a price of their own, and the norm leaves them alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..rows.arrays import BoolArray, FloatArray
from .domains import Domains
from .flip_pair import FlipPair
from .label_costs import Trust
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

    @cached_property
    def free(self) -> BoolArray:
        """Which coefficients the norm constraint leaves alone."""
        return np.isinf(self.costs)

    @cached_property
    def movable(self) -> BoolArray:
        """Which features the norm moves: those whose coefficients the constraint bounds."""
        return ~self.free

    @cached_property
    def pair(self) -> FlipPair:
        """A sample as it is, and with the other label at cost κ."""
        return FlipPair(self.kappa)

    def dual_norm(self, coefficients: FloatArray) -> float:
        """``‖C⁻¹β‖_*`` over the movable features: the least feasible λ."""
        kept = self.movable
        return self.norm.dual(coefficients[kept] / self.costs[kept])

    def move_norm(self, gradient: FloatArray) -> float:
        """``‖C g‖`` over the movable features."""
        kept = self.movable
        return self.norm.value(gradient[kept] * self.costs[kept])

    def aligned_move(self, coefficients: FloatArray) -> FloatArray:
        """δ with ``‖C δ‖ = 1`` and ``β·δ = ‖C⁻¹β‖_*``; zero where nothing can be gained."""
        kept = self.movable
        move = np.zeros_like(coefficients)
        move[kept] = self.norm.aligned(coefficients[kept] / self.costs[kept]) / self.costs[kept]
        return move
