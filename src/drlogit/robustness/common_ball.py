"""One ball for all models of an audit: what moving a feature costs, and where it ends.

Models are told apart by the same radius only if it allows the same changes.  So a ball is stated by
feature, in the feature's own units, and then for the columns of each model's matrix, whatever
scales or encodes them there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..rows.arrays import FloatArray
from .adversary import Adversary
from .features import Feature


class Price(NamedTuple):
    """What a feature costs to move by one of its own units, or to change; and its ends."""

    cost: float
    is_category: bool
    lower: float = -np.inf
    upper: float = np.inf


@dataclass(frozen=True)
class CommonBall:
    """The prices of a model's features; ``space`` says in words where distance is measured."""

    model: str
    space: str
    prices: dict[str, Price]

    @classmethod
    def of(cls, model: str, audit: Adversary) -> CommonBall:
        """The ball of an audit, for other models, under the name of its own."""
        measured, prices = audit.measured, {}
        limits = (-np.inf, np.inf) if measured.bounds is None else measured.bounds
        bounds = [np.broadcast_to(end, measured.costs.size) for end in limits]
        for feature in audit.features:
            j, is_category = int(feature.columns[0]), feature.levels is not None
            ends = [-np.inf, np.inf]
            if not is_category:
                ends = sorted((float(end[j]) - feature.shift) / feature.scale for end in bounds)
            cost = float(measured.costs[j] * abs(feature.scale))
            prices[feature.name] = Price(cost, is_category, *ends)
        return cls(model, measured.space, prices)

    def by_column(
        self, features: Sequence[Feature], n_columns: int, *, for_bounds: bool
    ) -> tuple[FloatArray, tuple[FloatArray, FloatArray] | None]:
        """Costs for the columns of a matrix, and bounds if there are any; ``for_bounds`` alone?"""
        costs = np.ones(n_columns)
        lower, upper = np.full(n_columns, -np.inf), np.full(n_columns, np.inf)
        for feature in features:
            price = self.prices.get(feature.name)
            if price is None or price.is_category != (feature.levels is not None):
                if for_bounds:
                    continue
                raise ValueError(
                    f"the ball of {self.model} has no price for {feature.name!r:.60} as another "
                    "model takes it: state feature_costs by name, or give each model its own ball "
                    "with balls='own' (--own-balls on the command line)"
                )
            costs[feature.columns] = price.cost / abs(feature.scale)
            if not price.is_category:
                ends = [feature.scale * e + feature.shift for e in (price.lower, price.upper)]
                lower[feature.columns], upper[feature.columns] = min(ends), max(ends)
        bounded = np.isfinite(lower).any() or np.isfinite(upper).any()
        return costs, (lower, upper) if bounded else None
