"""The cheapest way across the decision boundary for samples with domains.

A sample at margin ``u > 0`` needs moves that gain u in total.  Categories change altogether or
not; bounded features move as far as needed, at a constant gain per cost up to their end; the
others without end, at the rate ``‖β_U/c‖_*``.  For a given set of changed categories the rest is
filled by rate, best first.  Of categories that cost the same, those with the largest gains are
changed first, so there are only ``n + 1`` sets to try if all n of them cost the same, and the
product of such numbers if costs differ.  Beyond :data:`MOST_SETS` sets there is a bound from below
instead, with categories that may change in part (everything by rate), and a cheap way, if not the
cheapest, that changes whole categories by rate.
"""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import numpy as np

from ..problem.domain_loss import Edges, Prices
from ..problem.worst_moves import Reach, Weighed, reach
from ..rows.arrays import BoolArray, FloatArray
from ..rows.blocks import Block

#: Sets of changed categories that are tried for each sample.
MOST_SETS = 2000


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


def crossing_costs(
    loss: Prices, group_costs: FloatArray, rate: float, gap: FloatArray, label: float
) -> FloatArray:
    """Least cost of moves that gain ``gap``, or a bound from below; flips apart.

    ``rate`` is what a unit of transport gains with features that have no domain.  ``label`` is 1
    for samples that are to leave the side of their label, -1 for the other side.
    """
    rows = loss.rows
    pairs = rows.pair(loss.edges, rows.scatter(gap))
    return np.asarray(rows.gather(rows.run(_costs, pairs, label, loss.model, group_costs, rate)[0]))


def _costs(
    block: Block,
    state: tuple[Edges, FloatArray],
    label: float,
    model: Weighed,
    group_costs: FloatArray,
    rate: float,
) -> tuple[FloatArray, tuple[()]]:
    edges, gap = state
    found = reach(label * block.y, edges.table, model)
    need = np.maximum(gap, 0.0)
    if is_exact(group_costs):
        return cheapest(found, need, group_costs, rate).cost(group_costs), ()
    return _divisible(found, need, group_costs, rate), ()


def is_exact(group_costs: FloatArray) -> bool:
    """Whether all sets that can be best are tried."""
    _, counts = np.unique(group_costs, return_counts=True)
    return math.prod(int(count) + 1 for count in counts) <= MOST_SETS


def cheapest(found: Reach, need: FloatArray, group_costs: FloatArray, rate: float) -> Crossing:
    """The cheapest way to gain ``need``, or a cheap one where not all sets are tried."""
    choose = _by_sets if is_exact(group_costs) else _by_rate
    changed = choose(found, need, group_costs, rate)
    left = need - np.where(changed, found.groups, 0.0).sum(axis=1)
    return Crossing(changed, *_filled(found, left, rate))


def _by_sets(found: Reach, need: FloatArray, group_costs: FloatArray, rate: float) -> BoolArray:
    """The best over all numbers of changed categories of each cost."""
    alike = [np.flatnonzero(group_costs == cost) for cost in np.unique(group_costs)]
    ranks = np.zeros(found.groups.shape, dtype=np.intp)
    for group in alike:  # of those that cost the same, the largest gains first
        order = np.argsort(-found.groups[:, group], axis=1, kind="stable")
        ranks[:, group] = np.argsort(order, axis=1, kind="stable")
    best, chosen = np.full(need.size, np.inf), np.zeros(ranks.shape, dtype=bool)
    for counts in itertools.product(*(range(group.size + 1) for group in alike)):
        limit = np.zeros(group_costs.size, dtype=np.intp)
        for group, count in zip(alike, counts, strict=True):
            limit[group] = count
        changed = ranks < limit
        bounded, further = _filled(
            found, need - np.where(changed, found.groups, 0.0).sum(axis=1), rate
        )
        cost = Crossing(changed, bounded, further).cost(group_costs)
        better = cost < best
        best[better], chosen[better] = cost[better], changed[better]
    return chosen


def _by_rate(found: Reach, need: FloatArray, group_costs: FloatArray, rate: float) -> BoolArray:
    """Whole categories by rate, until it is enough."""
    gains, rates = np.maximum(found.groups, 0.0), found.groups / group_costs
    order = np.argsort(-rates, axis=1)
    before = np.take_along_axis(gains, order, axis=1)
    before = np.cumsum(before, axis=1) - before
    wanted = (before < need[:, None]) & (np.take_along_axis(rates, order, axis=1) > rate)
    changed = np.zeros(gains.shape, dtype=bool)
    np.put_along_axis(changed, order, wanted, axis=1)
    return changed


def _filled(found: Reach, need: FloatArray, rate: float) -> tuple[FloatArray, FloatArray]:
    """What it costs to gain ``need`` by moves of numbers alone: bounded ones, and the others."""
    left, bounded = np.maximum(need, 0.0), np.zeros(found.distances.shape)
    for j in np.argsort(-found.rates, kind="stable"):
        if found.rates[j] <= rate or found.rates[j] == 0.0:
            break
        bounded[:, j] = np.minimum(left / found.rates[j], found.distances[:, j])
        enough = bounded[:, j] < found.distances[:, j]
        left = np.where(enough, 0.0, np.maximum(left - bounded[:, j] * found.rates[j], 0.0))
    return bounded, _without_end(left, rate)


def _without_end(need: FloatArray, rate: float) -> FloatArray:
    return np.asarray(need / rate if rate > 0.0 else np.where(need > 0.0, np.inf, 0.0))


def _divisible(found: Reach, need: FloatArray, group_costs: FloatArray, rate: float) -> FloatArray:
    """A bound from below: categories may change in part, so everything goes by rate."""
    gains = np.concatenate([np.maximum(found.groups, 0.0), found.rates * found.distances], axis=1)
    each = np.broadcast_to(group_costs, found.groups.shape)
    costs = np.concatenate([each, found.distances], axis=1)
    rates = np.where(costs > 0.0, gains / np.where(costs > 0.0, costs, 1.0), 0.0)
    order = np.argsort(-rates, axis=1)
    gains, costs, rates = (np.take_along_axis(a, order, axis=1) for a in (gains, costs, rates))
    gains = np.where(rates > rate, gains, 0.0)
    left = np.maximum(need[:, None] - (np.cumsum(gains, axis=1) - gains), 0.0)
    part = np.minimum(left / np.where(gains > 0.0, gains, 1.0), 1.0) * (gains > 0.0)
    rest = np.maximum(need - gains.sum(axis=1), 0.0)
    return np.asarray((part * costs).sum(axis=1) + _without_end(rest, rate))
