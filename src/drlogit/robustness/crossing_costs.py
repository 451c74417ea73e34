"""The cheapest way across the decision boundary for samples with domains.

A sample at margin ``u > 0`` needs moves that gain u in total.  Categories change altogether or
not; bounded features move as far as needed, at a constant gain per cost up to their end; the
others without end, at the rate ``‖β_U/c‖_*``.  For a given set of changed categories the rest is
filled by rate, best first.  Of categories that cost the same, those with the largest gains are
changed first, so there are only ``n + 1`` sets to try if all n of them cost the same, and the
product of such numbers if costs differ.  Beyond :data:`_MOST_SETS` sets, costs that are next to
each other count as the lower of them: what is found is then a bound from below, and a way across
that is cheap, if not the cheapest.
"""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import numpy as np

from ..problem.worst_moves import Reach
from ..rows.arrays import BoolArray, FloatArray

#: Sets of changed categories that are tried for each sample.
_MOST_SETS = 2000


class Crossing(NamedTuple):
    """A way across for each sample: categories that change, and what is spent on the rest.

    ``bounded`` has a column for each bounded feature; ``further`` goes into moves without end,
    infinite where nothing gets across.
    """

    changed: BoolArray
    bounded: FloatArray
    further: FloatArray

    def cost(self, group_costs: FloatArray) -> FloatArray:
        return np.asarray(self.changed @ group_costs + self.bounded.sum(axis=1) + self.further)


def counted(group_costs: FloatArray) -> FloatArray:
    """The costs, or lower ones of which so few differ that all sets that can be best are tried."""
    counted = group_costs.copy()
    while True:
        costs, counts = np.unique(counted, return_counts=True)
        if costs.size < 2 or math.prod((counts + 1).tolist()) <= _MOST_SETS:
            return counted
        nearest = int(np.argmin(costs[1:] / costs[:-1]))
        counted[counted == costs[nearest + 1]] = costs[nearest]


def is_exact(group_costs: FloatArray) -> bool:
    """Whether all sets that can be best are tried."""
    return bool((counted(group_costs) == group_costs).all())


def cheapest(found: Reach, gap: FloatArray, group_costs: FloatArray, rate: float) -> Crossing:
    """The cheapest way to gain ``gap``, or a cheap one where not all sets are tried.

    ``rate`` is what a unit of transport gains with features that have no domain.
    """
    need, costs = np.maximum(gap, 0.0), counted(group_costs)
    alike = [np.flatnonzero(costs == cost) for cost in np.unique(costs)]
    ranks = np.zeros(found.groups.shape, dtype=np.intp)
    for group in alike:  # of those that cost the same, the largest gains first
        order = np.argsort(-found.groups[:, group], axis=1, kind="stable")
        ranks[:, group] = np.argsort(order, axis=1, kind="stable")
    best, chosen = np.full(need.size, np.inf), np.zeros(ranks.shape, dtype=bool)
    limit = np.zeros(costs.size, dtype=np.intp)
    for counts in itertools.product(*(range(group.size + 1) for group in alike)):
        for group, count in zip(alike, counts, strict=True):
            limit[group] = count
        cost = _with(found, ranks < limit, need, rate).cost(costs)
        better = cost < best
        best[better], chosen[better] = cost[better], (ranks < limit)[better]
    return _with(found, chosen, need, rate)


def _with(found: Reach, changed: BoolArray, need: FloatArray, rate: float) -> Crossing:
    """The cheapest way with these categories changed."""
    left = need - np.where(changed, found.groups, 0.0).sum(axis=1)
    return Crossing(changed, *_filled(found, left, rate))


def _filled(found: Reach, need: FloatArray, rate: float) -> tuple[FloatArray, FloatArray]:
    """What it costs to gain ``need`` by moves of numbers alone: bounded ones, and the others."""
    left, bounded = np.maximum(need, 0.0), np.zeros(found.distances.shape)
    for j in np.argsort(-found.rates, kind="stable"):
        if found.rates[j] <= rate or found.rates[j] == 0.0:
            break
        bounded[:, j] = np.minimum(left / found.rates[j], found.distances[:, j])
        enough = bounded[:, j] < found.distances[:, j]
        left = np.where(enough, 0.0, np.maximum(left - bounded[:, j] * found.rates[j], 0.0))
    return bounded, left / rate if rate > 0.0 else np.where(left > 0.0, np.inf, 0.0)
