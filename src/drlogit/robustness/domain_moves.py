"""Moves of features with domains, for models of two classes.

The breakpoints of a sample are the edges of its envelope (:mod:`drlogit.problem.worst_moves`):
piece k has the sample's k best items moved, piece ``-1 - k`` the k best of the other label, and
that label.

The cheapest way across the decision boundary: a sample at margin ``u > 0`` needs moves that gain u
in total.  Categories change altogether or not; bounded features move as far as needed, at a
constant gain per cost up to their end; the others without end, at the rate ``‖β_U/c‖_*``.  For a
given set of changed categories, the rest is filled in the order of the rates, the largest first.
Of categories that cost the same, those with the largest gains are changed first.  So there are only
``n + 1`` sets to try if all n categories cost the same, and the product of such numbers if costs
differ.  Beyond :data:`_MOST_SETS` sets, neighbouring costs are replaced by the lower one.  The
result is then a lower bound of the cost, and a crossing that is cheap but maybe not the cheapest.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ..problem.domains import Domains, ItemTable
from ..problem.worst_moves import Reach, Weighed, changes, envelopes, reach
from ..rows.arrays import BoolArray, FloatArray, IndexArray
from ..rows.blocks import Block
from ..rows.interface import Rows
from .breakpoints import Breakpoints

#: Sets of changed categories that are tried for each sample.
_MOST_SETS = 2000


class Crossing(NamedTuple):
    """A crossing of the boundary for each sample: changed categories, and costs of other moves.

    ``changed`` are the groups that change.  ``bounded`` has a column for each bounded feature;
    ``further`` goes into moves without end, infinite where nothing gets across.  ``cost`` is that
    of all; no way costs less than ``least``.
    """

    changed: BoolArray
    bounded: FloatArray
    further: FloatArray
    cost: FloatArray
    least: FloatArray


@dataclass(frozen=True, eq=False)
class DomainMoves:
    """Samples with domains and the coefficients of a model, the intercept last.

    ``sensitivity`` is the gain per unit of transport by features without a domain.
    """

    rows: Rows
    domains: Domains
    coefficients: FloatArray
    sensitivity: float

    @cached_property
    def items(self) -> ItemTable:
        """The categories and the bounded features of all samples."""
        rows, tables = self.rows, self.domains.tables(self.rows)
        return ItemTable(*(rows.gather(rows.run(_part, tables, part)[0]) for part in range(2)))

    @cached_property
    def weighed(self) -> Weighed:
        return Weighed.by(self.domains, self.coefficients)

    def breakpoints(self, scores: FloatArray, signs: FloatArray, flips: FloatArray) -> Breakpoints:
        """Breakpoints of all samples; ``flips`` are the costs of other labels than ``signs``."""
        flips = np.ascontiguousarray(flips)
        found = envelopes(scores.copy(), signs, flips, self.sensitivity, self.items, self.weighed)
        own, rate, cost, after = found.own, found.rate, found.cost, found.moves.astype(np.intp)
        before = np.append(0, after[:-1])[: own.size]
        before[np.append(True, own[1:] != own[:-1])[: own.size]] = 0  # of each sample the first
        return Breakpoints.in_order(own, rate, cost, rate * cost, before, after)

    def changed_features(self, sample: IndexArray, sign: FloatArray, piece: IndexArray) -> Any:
        """The changes of features in pieces of samples with labels ``sign``, as a sparse matrix."""
        return changes(
            sample, sign, np.where(piece < 0, -1 - piece, piece), self.items, self.weighed,
            self.domains, self.weighed.beta.size - 1,
        )  # fmt: skip

    def item_costs(self, changed: Any) -> Any:
        """The cost of changes, with a column for each category and each bounded feature."""
        domains = self.domains
        columns = np.concatenate([*domains.groups, np.empty(0, dtype=np.intp)]).astype(np.intp)
        ones = np.ones(columns.size), (columns, domains.group_of)
        groups = sp.csr_array(ones, shape=(changed.shape[1], domains.n_groups))
        touched = sp.csr_array(abs(changed) @ groups)
        touched.data = domains.group_costs[touched.indices]
        moved = abs(changed[:, domains.bounded]) @ sp.diags_array(domains.bounded_costs)
        return sp.hstack([touched, moved], format="csr")

    # --- across the boundary ----------------------------------------------------------------

    @cached_property
    def _counted(self) -> FloatArray:
        """Costs of groups, some of them lowered so that few sets are enough to try all."""
        counted = self.domains.group_costs.copy()
        while True:
            costs, counts = np.unique(counted, return_counts=True)
            if costs.size < 2 or math.prod((counts + 1).tolist()) <= _MOST_SETS:
                return counted
            nearest = int(np.argmin(costs[1:] / costs[:-1]))
            counted[counted == costs[nearest + 1]] = costs[nearest]

    @property
    def exact_crossings(self) -> bool:
        """Whether all sets that can be best are tried, so that costs are exact."""
        return bool((self._counted == self.domains.group_costs).all())

    def crossing_costs(
        self, gap: FloatArray, signs: FloatArray, attained: bool = False
    ) -> FloatArray:
        """Least cost of moves that gain ``gap``, or a lower bound; flips are not counted.

        Samples leave the side of the labels ``signs``.  With ``attained``, the costs are those of
        crossings that were found, which are never below the least cost.
        """
        crossing = self.cheapest(np.arange(gap.size), gap, signs)
        return crossing.cost if attained else crossing.least

    def cheapest(self, index: IndexArray, gap: FloatArray, signs: FloatArray) -> Crossing:
        """The cheapest crossing that gains ``gap``, or a cheap one if not all sets are tried."""
        items, costs = self.items.picked(index), self._counted
        found = reach(signs, items, self.weighed)
        need, n = np.maximum(gap, 0.0), gap.size
        alike = [np.flatnonzero(costs == cost) for cost in np.unique(costs)]
        ranks = np.zeros(found.groups.shape, dtype=np.intp)
        for group in alike:  # of those that cost the same, the largest gains first
            order = np.argsort(-found.groups[:, group], axis=1, kind="stable")
            ranks[:, group] = np.argsort(order, axis=1, kind="stable")
        best, changed = np.full(n, np.inf), np.zeros(ranks.shape, dtype=bool)
        limit = np.zeros(costs.size, dtype=np.intp)
        for counts in itertools.product(*(range(group.size + 1) for group in alike)):
            for group, count in zip(alike, counts, strict=True):
                limit[group] = count
            some = ranks < limit
            gain = np.where(some, found.groups, 0.0).sum(axis=1)
            bounded, further = self._filled(found, need - gain)
            cost = some @ costs + bounded.sum(axis=1) + further
            better = cost < best
            best[better], changed[better] = cost[better], some[better]
        gained = np.where(changed, found.groups, 0.0).sum(axis=1)
        bounded, further = self._filled(found, need - gained)
        cost = changed @ self.domains.group_costs + bounded.sum(axis=1) + further
        return Crossing(changed, bounded, further, cost, np.minimum(best, cost))

    def moves_across(
        self, index: IndexArray, gap: FloatArray, signs: FloatArray
    ) -> tuple[Crossing, FloatArray]:
        """The cheapest crossing that gains ``gap``, and its moves of features with domains."""
        crossing, domains = self.cheapest(index, gap, signs), self.domains
        moves = np.zeros((index.size, self.weighed.beta.size - 1))
        adverse = signs[:, None] * np.sign(self.coefficients[domains.bounded])
        moves[:, domains.bounded] -= adverse * crossing.bounded / domains.bounded_costs
        now, targets = self.items.now[index], domains.targets(self.coefficients)
        there = targets[(signs < 0.0).astype(np.intp)[:, None], np.arange(domains.n_groups)]
        for k, g in zip(*np.nonzero(crossing.changed), strict=True):
            for column, step in ((now[k, g], -1.0), (there[k, g], 1.0)):
                if column >= 0:  # else none of the group's columns
                    moves[k, column] += step
        return crossing, moves

    def _filled(self, found: Reach, left: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The cheapest way to gain what is ``left``: by bounded features, then by the others."""
        left = np.maximum(left, 0.0)
        bounded, rate = np.zeros(found.distances.shape), self.sensitivity
        for j in np.argsort(-found.rates, kind="stable"):
            if found.rates[j] <= rate or found.rates[j] == 0.0:
                break
            bounded[:, j] = np.minimum(left / found.rates[j], found.distances[:, j])
            enough = bounded[:, j] < found.distances[:, j]
            left = np.where(enough, 0.0, np.maximum(left - bounded[:, j] * found.rates[j], 0.0))
        further = left / rate if rate > 0.0 else np.where(left > 0.0, np.inf, 0.0)
        return bounded, further


def _part(block: Block, items: ItemTable, part: int) -> tuple[Any, tuple[()]]:
    return items[part], ()
