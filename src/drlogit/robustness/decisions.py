"""Labels and decisions of samples, and the adversary's cost of changing them.

A decision at a threshold τ, or for the class with the largest score, depends on a sample only
through its scores.  So a sample has an option for each pair of a label k and a decision d:

    cost(k, d)  =  κ(y, k)  +  cost of moving the score into the region of d,

and a table ``values[k, d]`` has the value of the option: 1 for an error, the cost of a decision, or
the benefit of a true positive.  At the price γ a sample is worth to the adversary

    R(γ)  =  max over k, d of  values[k, d] - γ cost(k, d),

and the largest mean over the ball is ``min over γ of  γε + Σ w_i R_i(γ)`` (strong duality; Kuhn,
Mohajerin Esfahani, Nguyen and Shafieezadeh-Abadeh 2019).  The upper hulls of the options give it
for every radius at once (:mod:`.breakpoints`).  On the border of two regions the adversary may
choose either decision, so the bounds hold whatever the model decides there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..rows.arrays import BoolArray, FloatArray, IndexArray
from .breakpoints import Breakpoints, Hulls

#: Samples are processed in lots of this size, whose numbers fit into the processor's cache.
_LOT = 16384


@dataclass(frozen=True, eq=False)
class Decisions:
    """Labels, decisions and costs; arrays have a column for each sample."""

    label: IndexArray
    decided: IndexArray  # as things are
    label_costs: FloatArray  # of every label, 0 for the sample's own
    reach: FloatArray  # what it costs to bring a sample into the region of each decision
    weights: FloatArray

    @property
    def n_decisions(self) -> int:
        return len(self.reach)

    def picked(self, some: IndexArray) -> Decisions:
        """Some of the samples, with weights that sum to one."""
        columns = self.label_costs[:, some], self.reach[:, some]
        weights = self.weights[some]
        return Decisions(self.label[some], self.decided[some], *columns, weights / weights.sum())

    def values(self, table: FloatArray) -> FloatArray:
        """The values of the samples as they are."""
        return np.asarray(table[self.label, self.decided])

    def hulls(self, table: FloatArray, least: float = 0.0) -> Hulls:
        """The hulls of the options of all samples, down to a least rate.

        Piece ``1 + k·D + d`` is the option of label k and decision d.
        """
        start, found = self.values(table), []
        begins = self._state.copy()
        for value, pays, members in self._changes(table):
            k, d = np.divmod(pays, self.n_decisions)
            for first in range(0, members.size, _LOT):
                some = members[first : first + _LOT]
                costs = self.label_costs[np.ix_(k, some)] + self.reach[np.ix_(d, some)]
                gains = np.broadcast_to((table.ravel()[pays] - value)[:, None], costs.shape)
                # A sample on a border starts at the best of its free options.
                free = np.where(costs == 0.0, gains, 0.0)
                if free.any():
                    gained = free.max(axis=0)
                    begins[some] = np.where(gained > 0.0, pays[free.argmax(axis=0)], begins[some])
                    start[some] += gained
                    gains = gains - gained
                found.append(Breakpoints.of_hulls(costs, gains, some, 1 + pays, least))
        return Hulls(start, Breakpoints.joined(found), begins=begins)

    def cost_to_enter(self, options: BoolArray) -> float:
        """The cost of bringing every sample to the cheapest of these options."""
        cheapest = np.full(self.label.size, np.inf)
        for k, d in np.argwhere(options):
            np.minimum(cheapest, self.label_costs[k] + self.reach[d], out=cheapest)
        some = self.weights > 0.0
        return float(self.weights[some] @ cheapest[some])

    def _changes(self, table: FloatArray) -> Iterator[tuple[float, IndexArray, IndexArray]]:
        """For each label and decision: the value, the options of larger value, and the samples."""
        for members in self._members:
            value = float(table.ravel()[self._state[members[0]]])
            pays = np.flatnonzero(table > value)
            if pays.size:
                yield value, pays, members

    @cached_property
    def _state(self) -> IndexArray:
        """The option of each sample as it is."""
        return np.asarray(self.label * self.n_decisions + self.decided)

    @cached_property
    def _members(self) -> list[IndexArray]:
        """Samples of positive weight, grouped by label and decision."""
        size = len(self.label_costs) * self.n_decisions
        heavy = self.weights > 0.0
        lots = (np.flatnonzero((self._state == here) & heavy) for here in range(size))
        return [members for members in lots if members.size]
