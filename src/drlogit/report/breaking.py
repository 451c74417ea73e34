"""What it takes until a metric reaches a limit: wrong labels, one column, one row.

A breaking point is the least radius at which the worst case reaches the limit (compare the
stability of Namkoong, Ma and Glynn 2024, arXiv:2405.03198).  Labels alone are a ball in which no
column can be wrong and a wrong label costs 1, so that the radius is a share of labels; a column
alone costs 1 per unit, and everything else is right.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..problem.domains import dense_columns
from ..problem.features import Feature
from ..robustness.adversary import Adversary
from ..robustness.metrics import Metric
from ..rows.arrays import FloatArray
from ..rows.checks import TOO_LARGE

#: The number of columns whose breaking points are computed: those that change scores most.
MOST_COLUMNS = 30

#: The number of rows among which those are looked for that break first.
_LOOKED_AT = 100


def best_constant(adversary: Adversary, metric: Metric) -> float:
    """The best value of a metric among models that decide, or say, the same of all rows."""
    shares = np.bincount(adversary.codes, adversary.weights, minlength=len(adversary.classes))
    if metric.name == "log_loss":
        some = shares[shares > 0.0]
        return float(-(some @ np.log(some)))
    if metric.table is None:
        return float(1.0 - shares.max())
    by_label = shares if metric.positive else shares[::-1]
    above = by_label @ metric.table
    below = np.ones(2) if metric.below is None else by_label @ metric.below
    values = above[below > 0.0] / below[below > 0.0]
    return float(values.min() if metric.sign > 0.0 else values.max())


def breaking_columns(adversary: Adversary, metric: Metric, limit: float) -> Any:
    """A frame with the breaking points of labels alone and of each column alone.

    ``breaks_at`` is in the units of the column, or a share of labels or rows; ``radii`` is the same
    as a multiple of what the ball allows.  The first column to check has the fewest radii.
    """
    import pandas as pd

    ball, features = adversary.ball, adversary.table.features
    epsilon = ball.epsilon or math.nan
    still = dict.fromkeys(features.names, math.inf)

    def radius_of(**changes: Any) -> float:
        # Bounds and categories stay those of the ball.
        other = adversary.with_ball(ball.replace(**changes))
        return other.radius_of(metric, limit)

    share = radius_of(epsilon=1.0, kappa=1.0, feature_costs=still)
    radii = radius_of(feature_costs=still) / epsilon
    records = [("labels", "labels", share, radii)]
    costs = ball.feature_costs if isinstance(ball.feature_costs, Mapping) else {}
    for feature in leading_columns(adversary):
        alone = radius_of(epsilon=1.0, kappa=math.inf, feature_costs={**still, feature.name: 1.0})
        cost = costs.get(feature.name, 1.0 / feature.deviation)
        kind = "category" if feature.is_category else "number"
        records.append((feature.name, kind, alone, cost * alone / epsilon if alone else 0.0))
    frame = pd.DataFrame(records, columns=["column", "kind", "breaks_at", "radii"])
    return frame.sort_values("radii", kind="stable", ignore_index=True)


def leading_columns(adversary: Adversary) -> list[Feature]:
    """The columns that change scores most, per deviation or by a change of category."""
    coef = np.abs(np.atleast_2d(adversary.table.coef)).max(axis=0)
    each = adversary.table.features.each
    steps = [
        coef[f.columns].max(initial=0.0) * (1.0 if f.is_category else f.deviation) for f in each
    ]
    order = np.argsort([-step for step in steps], kind="stable")[:MOST_COLUMNS]
    return [each[k] for k in order if steps[k] > 0.0]


def fragile_rows(
    adversary: Adversary, metric: Metric, names: Sequence[Any] | None, n_listed: int
) -> Any:
    """A frame of the rows whose right decision takes the cheapest change of one column to lose.

    ``observed`` says whether the changed value lies in the range of these rows; a change that does
    is preferred to all that do not.
    """
    import pandas as pd

    towards, gaps = _ways(adversary, metric)
    some = np.flatnonzero((gaps > 0.0) & np.isfinite(gaps) & (adversary.weights > 0.0))
    some = some[np.argsort(gaps[some], kind="stable")[:_LOOKED_AT]]
    leading = leading_columns(adversary)
    parts = {f.name: dense_columns(adversary.table.matrix, f.columns) for f in leading}
    found = []
    for row in some.tolist():
        slopes = towards(row)
        changes = [_change(adversary, f, parts[f.name], row, slopes, gaps[row]) for f in leading]
        label = adversary.classes[adversary.codes[row]]
        start = {"row": row if names is None else names[row], "label": label}
        least = min(filter(None, changes), key=_rank, default=None)
        found += [{**start, **least}] if least else []
    columns = ["row", "label", "column", "value", "changed_to", "observed"]
    return pd.DataFrame(sorted(found, key=_rank)[:n_listed], columns=columns)


def _rank(change: dict[str, Any]) -> tuple[bool, float]:
    """Changes within the observed range first, and then the cheapest."""
    return not change["observed"], change["cost"]


def _ways(adversary: Adversary, metric: Metric) -> tuple[Any, FloatArray]:
    """For a row the slopes of the score that must rise, and by how much; 0 for wrong decisions."""
    coef = adversary.table.coef
    if not adversary.several:
        if metric.threshold is None:
            metric = adversary.metric("error", 0.5, metric.classes[metric.positive])
        decided, gap, falls = adversary.gaps(metric)
        right = decided == (adversary.codes == metric.positive)
        return lambda row: -coef if falls[row] else coef, np.where(right, gap, 0.0)
    every = np.arange(adversary.codes.size)
    others = adversary.scores.copy()
    own = others[every, adversary.codes]
    others[every, adversary.codes] = -math.inf
    second = others.argmax(axis=1)
    gaps = np.maximum(own - others[every, second], 0.0)
    return lambda row: coef[second[row]] - coef[adversary.codes[row]], gaps


def _change(
    adversary: Adversary, feature: Feature, part: FloatArray, row: int, slopes: Any, gap: float
) -> dict[str, Any] | None:
    """The least change of one column that closes the gap; None if there is none."""
    costs = adversary.ball.feature_costs
    cost = costs[feature.name] if isinstance(costs, Mapping) else 1.0 / feature.deviation
    own = slopes[feature.columns]
    if not math.isfinite(cost) or not gap < TOO_LARGE * np.abs(own).max():
        return None
    if feature.is_category:
        levels = [*(feature.levels or ()), feature.otherwise]
        gains = np.append(own, 0.0)
        now = int(np.append(part[row], 0.5).argmax())
        then = int(own.argmax())
        if gains[then] - gains[now] < gap:
            return None
        seen = bool(part[:, then].any())
        before: Any = levels[now]
        after: Any = levels[then]
    else:
        before = float(part[row, 0])
        after = before + gap / float(own[0])
        seen = bool(part.min() <= after <= part.max())
        cost *= abs(after - before)
    found = {"column": feature.name, "value": before, "changed_to": after}
    return {**found, "observed": seen, "cost": cost}
