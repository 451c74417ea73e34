"""The cheapest way across the decision boundary for samples with domains.

A sample at margin ``u > 0`` needs moves that gain u in total.  Categories change altogether or
not; bounded features move as far as needed, at a constant gain per cost up to their end; the
others without end, at the rate ``‖β_U/c‖_*``.  For a given set of changed categories the rest is
filled by rate, best first.  Of categories that cost the same, those with the largest gains are
changed first, so there are only ``n + 1`` sets to try if all n of them cost the same, and the
product of such numbers if costs differ.  Beyond :data:`MOST_SETS` sets the cost is enclosed
instead: from below with categories that may change in part (everything by rate), from above by
rounding that up.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from ..problem.domain_loss import Edges, Prices
from ..problem.worst_moves import Reach, Weighed, reach
from ..rows.arrays import FloatArray, IndexArray
from ..rows.blocks import Block

#: Sets of changed categories that are tried for each sample.
MOST_SETS = 2000


def crossing_costs(
    loss: Prices, group_costs: FloatArray, rate: float, gap: FloatArray, label: float
) -> tuple[FloatArray, FloatArray]:
    """Least cost of moves that gain ``gap``, from below and from above; flips apart.

    ``rate`` is what a unit of transport gains with features that have no domain.  ``label`` is 1
    for samples that are to leave the side of their label, -1 for the other side.
    """
    rows = loss.rows
    pairs = rows.pair(loss.edges, rows.scatter(gap))
    state, _ = rows.run(_costs, pairs, label, loss.model, group_costs, rate)
    least, most = (
        np.asarray(rows.gather(rows.run(_component, state, place)[0])) for place in (0, 1)
    )
    return least, most


def _component(block: Block, state: tuple[Any, ...], place: int) -> tuple[Any, tuple[()]]:
    return state[place], ()


def _costs(
    block: Block,
    state: tuple[Edges, FloatArray],
    label: float,
    model: Weighed,
    group_costs: FloatArray,
    rate: float,
) -> tuple[tuple[FloatArray, FloatArray], tuple[()]]:
    edges, gap = state
    found = reach(label * block.y, edges.table, model)
    need = np.maximum(gap, 0.0)
    classes = equal_costs(group_costs)
    if few_sets(classes):
        cost, _ = by_sets(found, need, classes, group_costs, rate)
        return (cost, cost), ()
    return _enclosed(found, need, group_costs, rate), ()


def equal_costs(group_costs: FloatArray) -> list[IndexArray]:
    """Groups that cost the same, together."""
    return [np.flatnonzero(group_costs == cost) for cost in np.unique(group_costs)]


def few_sets(classes: list[IndexArray]) -> bool:
    """Whether all sets that can be best are tried."""
    return math.prod(group.size + 1 for group in classes) <= MOST_SETS


def by_sets(
    found: Reach, need: FloatArray, classes: list[IndexArray], group_costs: FloatArray, rate: float
) -> tuple[FloatArray, IndexArray]:
    """The least cost over all numbers of changed categories of each price, and these numbers."""
    prefixes = []
    for group in classes:
        gains = -np.sort(-found.groups[:, group], axis=1)
        prefixes.append(np.column_stack([np.zeros(need.size), np.cumsum(gains, axis=1)]))
    best = np.full(need.size, np.inf)
    chosen = np.zeros((need.size, len(classes)), dtype=np.intp)
    for counts in itertools.product(*(range(group.size + 1) for group in classes)):
        gained, price = np.zeros(need.size), 0.0
        for prefix, group, count in zip(prefixes, classes, counts, strict=True):
            gained = gained + prefix[:, count]
            price += count * float(group_costs[group[0]])
        cost = price + _filled(found, need - gained, rate)
        better = cost < best
        best[better], chosen[better] = cost[better], counts
    return best, chosen


def _filled(found: Reach, need: FloatArray, rate: float) -> FloatArray:
    """What it costs to gain ``need`` by moves of numbers alone."""
    left, cost = np.maximum(need, 0.0), np.zeros(need.size)
    for j in np.argsort(-found.rates):
        if found.rates[j] <= rate or found.rates[j] == 0.0:
            break
        step = np.minimum(left / found.rates[j], found.distances[:, j])
        cost += step
        left = np.maximum(left - step * found.rates[j], 0.0)
        left[step < found.distances[:, j]] = 0.0
    if rate > 0.0:
        return np.asarray(cost + left / rate)
    return np.where(left > 0.0, np.inf, cost)


def _enclosed(
    found: Reach, need: FloatArray, group_costs: FloatArray, rate: float
) -> tuple[FloatArray, FloatArray]:
    """Bounds on the cost: everything divisible, and that rounded up."""
    n = need.size
    gains = np.concatenate([np.maximum(found.groups, 0.0), found.rates * found.distances], axis=1)
    costs = np.concatenate(
        [np.broadcast_to(group_costs, (n, group_costs.size)), found.distances], 1
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        rates = np.where(costs > 0.0, gains / np.where(costs > 0.0, costs, 1.0), 0.0)
    order = np.argsort(-rates, axis=1)
    gains, costs, rates = (np.take_along_axis(a, order, axis=1) for a in (gains, costs, rates))
    left, least, most = need.copy(), np.zeros(n), np.zeros(n)
    for t in range(gains.shape[1]):
        use = (left > 0.0) & (rates[:, t] > rate)
        part = np.where(
            use, np.minimum(1.0, left / np.where(gains[:, t] > 0.0, gains[:, t], 1.0)), 0.0
        )
        least += part * costs[:, t]
        most += np.where(use, costs[:, t], 0.0)
        left = np.where(use, np.maximum(left - gains[:, t], 0.0), left)
    end = np.where(left > 0.0, left / rate if rate > 0.0 else np.inf, 0.0)
    return least + end, most + end
