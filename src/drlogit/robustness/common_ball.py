"""One ball for all models of an audit: what moving a feature costs, and where it ends.

Models are told apart by the same radius only if it allows the same changes.  So a ball is carried
over from one model to another by feature, in the feature's own units, whatever scales or encodes it
in the columns of either.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..rows.arrays import FloatArray
from .adversary import Adversary
from .features import Feature

#: The name of a model, and its audit, whose ball is that of others, too.
NamedAudit = tuple[str, Adversary]


def carried_over(
    ball: NamedAudit, features: Sequence[Feature], n_columns: int, *, for_bounds: bool
) -> tuple[FloatArray, tuple[FloatArray, FloatArray] | None]:
    """Costs for the columns of another matrix, and bounds, if any; ``for_bounds`` alone?"""
    model, measured = ball[0], ball[1].measured
    known = {(feature.name, feature.levels is None): feature for feature in ball[1].features}
    bounds = (-np.inf, np.inf) if measured.bounds is None else measured.bounds
    ends = np.array([np.broadcast_to(end, measured.costs.size) for end in bounds])
    costs, limits = np.ones(n_columns), np.tile([[-np.inf], [np.inf]], n_columns)
    for feature in features:
        there = known.get((feature.name, feature.levels is None))
        if there is None and not for_bounds:
            raise ValueError(
                f"the ball of {model} has no price for {feature.name!r:.60} as another model takes "
                "it: state feature_costs by name, or give each model its own ball with balls='own' "
                "(--own-balls on the command line)"
            )
        if there is not None:
            j, factor = there.columns[0], feature.scale / there.scale
            costs[feature.columns] = measured.costs[j] / abs(factor)
            if feature.levels is None:
                moved = factor * (ends[:, j] - there.shift) + feature.shift
                limits[:, feature.columns[0]] = np.sort(moved)
    return costs, (limits[0], limits[1]) if np.isfinite(limits).any() else None
