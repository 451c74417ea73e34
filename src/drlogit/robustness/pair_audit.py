"""The adversary of a linear model of two classes, with domains or without.

With margins ``u_i = y_i (x_i·β + b)`` and flips at a cost κ_i, a sample without domains has one
breakpoint, ``(u_i/κ_i, κ_i, u_i)``.  With domains its breakpoints are the edges of its envelope
(:mod:`drlogit.problem.worst_moves`): piece k has the sample's k best items moved, piece ``-1 - k``
the k best of the other label, and that label.  A prediction breaks at the distance ``u_i / L``, or
by the cheapest set of changes (:mod:`.crossing_costs`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..problem.domains import Domains, ItemTable
from ..problem.losses import log_loss
from ..problem.problem import Problem
from ..problem.worst_moves import Weighed, changes, envelopes, reach
from ..rows.arrays import FloatArray, IndexArray
from ..rows.blocks import Block
from .adversary import Adversary, Ends
from .breakpoints import Breakpoints
from .crossing_costs import cheapest, counted, is_exact


@dataclass(frozen=True, eq=False)
class PairAudit(Adversary):
    """That of a linear model: β, then b; the signs -1 and +1 stand for the two classes."""

    problem: Problem
    steepest = (1, 0)  # so that the score rises along the direction

    @cached_property
    def signs(self) -> FloatArray:
        """The labels as ±1."""
        return self.problem.rows.signs()

    @cached_property
    def codes(self) -> IndexArray:
        return (self.signs > 0.0).astype(np.intp)

    @cached_property
    def scores(self) -> FloatArray:
        u = self.problem.rows.gather(self.problem.margins(self.coefficients))
        return np.column_stack([np.zeros(u.size), self.signs * u])

    @cached_property
    def u(self) -> FloatArray:
        return self.signs * self.scores[:, 1]

    @cached_property
    def losses(self) -> FloatArray:
        return log_loss(self.u)

    @cached_property
    def flip_costs(self) -> FloatArray:
        return self.problem.rows.flip_costs(self.problem.kappa)

    @cached_property
    def label_costs(self) -> FloatArray:
        return np.where(self.others, self.flip_costs[:, None], 0.0)

    @cached_property
    def nearest_class(self) -> IndexArray:
        return np.asarray(1 - self.codes)

    @cached_property
    def flip_unit(self) -> float:
        return float(self.problem.kappa)

    def paid_for_labels(self, found: Breakpoints) -> FloatArray:
        flipped = found.flipped()
        return flipped * np.where(flipped != 0.0, self.flip_costs[found.sample], 0.0)

    @property
    def domains(self) -> Domains:
        """Categories and bounds; only where there are some."""
        found = self.problem.domains
        assert found is not None
        return found

    @cached_property
    def items(self) -> ItemTable:
        """The categories and the bounded features of all samples."""
        rows, tables = self.problem.rows, self.domains.tables(self.problem.rows)
        now, values = (rows.gather(rows.run(_part, tables, part)[0]) for part in range(2))
        return ItemTable(now, values)

    @cached_property
    def weighed(self) -> Weighed:
        """What the model makes of the domains."""
        return Weighed.by(self.domains, self.coefficients)

    def breakpoints(self) -> Breakpoints:
        if self.problem.domains is None:  # at most one corner each: no hull to follow
            u, flips = self.u, self.flip_costs
            with np.errstate(divide="ignore", invalid="ignore"):  # a flip may cost nothing
                rate = u / flips
            worth = (u > 0.0) & (rate >= self.sensitivity) & (self.weights > 0.0)
            own = np.flatnonzero(worth & np.isfinite(flips))
            flipped = np.full(own.size, -1, dtype=np.intp)
            return Breakpoints.in_order(own, rate[own], flips[own], u[own], flipped)
        found = envelopes(
            self.scores[:, 1].copy(), self.signs, self.flip_costs, self.sensitivity, self.items,
            self.weighed,
        )  # fmt: skip
        gain, pieces = found.rate * found.cost, found.moves.astype(np.intp)
        return Breakpoints.in_order(found.own, found.rate, found.cost, gain, pieces)

    def ends(self, index: IndexArray, piece: IndexArray) -> Ends:
        """Where these pieces of samples end; what moves on keeps its label.

        Moved by d, a margin of v loses ``h(-v) - h(L d - v)`` against the limit ``L d``.
        """
        signs = self.signs[index] * np.where(piece < 0, -1.0, 1.0)
        scores = self.scores[index, 1]
        changed, distance = None, np.zeros(index.size)
        if self.problem.domains is not None:
            changed = self.changed_features(index, piece)
            scores = scores + changed @ self.coefficients[:-1]
            distance = np.asarray(self.item_costs(changed).sum(axis=1)).ravel()
        margins, codes = signs * scores, (signs > 0.0).astype(np.intp)
        limits = log_loss(-margins)

        def lost(some: IndexArray, far: float) -> FloatArray:
            return np.asarray(limits[some] - log_loss(self.sensitivity * far - margins[some]))

        tolls = np.zeros(index.size)
        return Ends(codes, log_loss(margins), distance, changed, codes, tolls, limits, lost)

    def changed_features(self, sample: IndexArray, piece: IndexArray) -> Any:
        """What pieces of samples change in their features, as a sparse matrix."""
        labels = self.signs[sample] * np.where(piece < 0, -1.0, 1.0)
        lengths = np.where(piece < 0, -1 - piece, piece)
        return changes(
            sample, labels, lengths, self.sensitivity, self.items, self.weighed,
            self.weighed.targets(self.domains), self.coefficients.size - 1,
        )  # fmt: skip

    def item_costs(self, changed: Any) -> Any:
        """What changes cost: a group once, bounded features by how far; a column for each."""
        domains = self.domains
        columns = np.concatenate([*domains.groups, np.empty(0, dtype=np.intp)]).astype(np.intp)
        ones = np.ones(columns.size), (columns, domains.group_of)
        groups = sp.csr_array(ones, shape=(changed.shape[1], domains.n_groups))
        touched = sp.csr_array(abs(changed) @ groups)
        touched.data = domains.group_costs[touched.indices]
        moved = abs(changed[:, domains.bounded]) @ sp.diags_array(domains.bounded_costs)
        return sp.hstack([touched, moved], format="csr")

    @cached_property
    def costs_to_break(self) -> FloatArray:
        if self.problem.domains is None:
            return np.asarray(super().costs_to_break)
        return self._crossing_costs(self.u, self.signs)

    @cached_property
    def costs_to_mend(self) -> FloatArray:
        if self.problem.domains is None:
            return np.asarray(super().costs_to_mend)
        return self._crossing_costs(-self.u, -self.signs)

    def _crossing_costs(self, gap: FloatArray, signs: FloatArray) -> FloatArray:
        """Least cost of moves that gain ``gap``, or a bound from below; flips apart.

        Samples are to leave the side of the labels ``signs``.
        """
        costs, found = self.domains.group_costs, reach(signs, self.items, self.weighed)
        return cheapest(found, gap, costs, self.sensitivity).cost(counted(costs))

    @cached_property
    def exact_crossings(self) -> bool:
        return self.problem.domains is None or is_exact(self.domains.group_costs)


def _part(block: Block, items: ItemTable, part: int) -> tuple[Any, tuple[()]]:
    return items[part], ()
