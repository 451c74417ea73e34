"""Moves of features with domains across a threshold, for models of two classes.

A row whose score has the distance u from the threshold needs moves that gain u in total.
Categories change altogether or not; bounded features move as far as needed, at a constant gain per
cost up to their end; the others without end, at the rate ``L = ‖β_U/c‖_*``.  For a given set of
changed categories, the rest is filled in the order of the rates, the largest first.  Of categories
that cost the same, those with the largest gains are changed first.  So there are only ``n + 1``
sets to try if all n categories cost the same, and the product of such numbers if costs differ.
Beyond :data:`_MOST_SETS` sets, neighbouring costs are replaced by the lower one.  The result is
then a lower bound of the cost, and a crossing that is cheap but maybe not the cheapest.

A row is decided positive *at* the threshold.  So moves upwards may end there, and moves downwards
must go beyond it: their cost is the least cost of every larger gain, in the limit.  It is infinite
where all that a row can do ends on the threshold.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ..problem.category_codes import category_codes
from ..problem.domains import Domains, ItemTable, dense_columns
from ..problem.worst_moves import Reach, WorstMoves
from ..rows.arrays import BoolArray, FloatArray, IndexArray, Matrix
from .hulls import Edges

#: Sets of changed categories that are tried for each row.
_MOST_SETS = 2000
#: Gains are compared up to this share of the terms that were added up.
_ROUNDING = 1e-12


class Crossing(NamedTuple):
    """A crossing of the threshold for each row: changed categories, and costs of other moves.

    ``bounded`` has a column for each bounded feature; ``further`` goes into moves without end.
    ``cost`` is that of all, infinite where nothing gets across; no way costs less than ``least``.
    """

    changed: BoolArray
    bounded: FloatArray
    further: FloatArray
    cost: FloatArray
    least: FloatArray


@dataclass(frozen=True, eq=False)
class Crossings:
    """Rows with domains and the coefficients of a model, the intercept last.

    ``slope`` is the gain per unit of transport by features without a domain.
    """

    matrix: Matrix
    domains: Domains
    coefficients: FloatArray
    slope: float

    @cached_property
    def items(self) -> ItemTable:
        """The categories and the bounded features of all rows."""
        values = np.ascontiguousarray(dense_columns(self.matrix, self.domains.bounded))
        return ItemTable(category_codes(self.matrix, self.domains.groups).now, values)

    @cached_property
    def moves(self) -> WorstMoves:
        return WorstMoves(self.domains, self.coefficients)

    # --- the log-loss -----------------------------------------------------------------------

    def loss_edges(self, scores: FloatArray, signs: FloatArray, flips: FloatArray) -> Edges:
        """The edges of the log-loss of labels ``signs``, whose flips cost ``flips``.

        Option k has the row's k best items moved, option ``-1 - k`` the k best of the other label,
        and that label.
        """
        found = self.moves.envelopes(self.items, scores.copy(), signs, flips, self.slope)
        return Edges(found.own, found.rate, found.cost, found.rate * found.cost, found.moves)

    def changes_of_loss(
        self, sample: IndexArray, sign: FloatArray, option: IndexArray
    ) -> tuple[Any, FloatArray]:
        """The changes of features in these options of rows with labels ``sign``, and their cost."""
        lengths = np.where(option < 0, -1 - option, option)
        items = self.items.picked(sample)
        best = self.moves.oracle.best(*items, sign, lengths)
        return self.moves.changes(items, sign, best, self.matrix.shape[1])

    # --- decisions --------------------------------------------------------------------------

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
    def exact(self) -> bool:
        """Whether all sets that can be best are tried, so that costs are exact."""
        return bool((self._counted == self.domains.group_costs).all())

    def cheapest(
        self, index: IndexArray, gap: FloatArray, down: BoolArray, beyond: BoolArray
    ) -> Crossing:
        """The cheapest moves of rows that gain ``gap``, or more than that (``beyond``).

        ``down`` says whether the score has to fall.
        """
        items, costs = self.items.picked(index), self._counted
        found = self.moves.reach(items, np.where(down, 1.0, -1.0))
        need, n = np.maximum(gap, 0.0), gap.size
        room = found.distances @ found.rates
        slack = _ROUNDING * (need + found.groups.sum(axis=1) + room + abs(self.coefficients).max())
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
            left = need - np.where(some, found.groups, 0.0).sum(axis=1)
            bounded, further = self._filled(found, left, slack)
            cost = some @ costs + bounded.sum(axis=1) + further
            short = np.where(beyond, left >= room - slack, left > room + slack)
            cost[short & (self.slope == 0.0) | np.isinf(need)] = np.inf
            better = cost < best
            best[better], changed[better] = cost[better], some[better]
        left = need - np.where(changed, found.groups, 0.0).sum(axis=1)
        bounded, further = self._filled(found, left, slack)
        cost = changed @ self.domains.group_costs + bounded.sum(axis=1) + further
        cost = np.where(np.isfinite(best), cost, np.inf)
        return Crossing(changed, bounded, further, cost, np.minimum(best, cost))

    def across(
        self, index: IndexArray, gap: FloatArray, down: BoolArray, decided: BoolArray, margin: float
    ) -> Crossing:
        """Crossings that end beyond the threshold by a margin.

        Rows that are decided negative may also end on it, where other categories would be needed to
        come further.
        """
        nowhere = np.zeros(index.size, dtype=bool)
        found = self.cheapest(index, gap + margin, down, nowhere)
        there = self.cheapest(index, gap, down, nowhere)
        other = (found.changed != there.changed).any(axis=1) | np.isinf(found.cost)
        ends = np.flatnonzero(other & ~decided)
        for values, others in zip(found, there, strict=True):
            values[ends] = others[ends]
        return found

    def changes_across(self, index: IndexArray, crossing: Crossing, down: BoolArray) -> Any:
        """The changes of features with domains in a crossing; sparse."""
        domains, signs = self.domains, np.where(down, 1.0, -1.0)
        changed = np.zeros((index.size, domains.n_items), dtype=bool)
        changed[:, : domains.n_groups] = crossing.changed
        items, width = self.items.picked(index), self.matrix.shape[1]
        moves = self.moves.changes(items, signs, changed, width)[0].tolil()
        towards = -signs[:, None] * np.sign(self.coefficients[domains.bounded])
        moves[:, domains.bounded] = towards * crossing.bounded / domains.bounded_costs
        return moves.tocsr()

    def _filled(
        self, found: Reach, left: FloatArray, slack: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """The cheapest way to gain what is ``left``: by bounded features, then by the others."""
        left = np.where(left > slack, left, 0.0)
        bounded, rate = np.zeros(found.distances.shape), self.slope
        for j in np.argsort(-found.rates, kind="stable"):
            if found.rates[j] <= rate or found.rates[j] == 0.0:
                break
            bounded[:, j] = np.minimum(left / found.rates[j], found.distances[:, j])
            enough = bounded[:, j] < found.distances[:, j]
            left = np.where(enough, 0.0, np.maximum(left - bounded[:, j] * found.rates[j], 0.0))
        return bounded, left / rate if rate > 0.0 else np.zeros_like(left)
