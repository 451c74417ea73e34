"""Labels and decisions of samples, and what it costs the adversary to change them.

A decision at a threshold τ, or for the class with the largest score, depends on a sample only
through its scores.  So a sample has an option for each pair of a label k and a decision d:

    cost(k, d)  =  κ(y, k)  +  what it costs to bring the score into the region of d,

and a table ``values[k, d]`` says what the option counts for: 1 for an error, what a decision costs,
the benefit of a true positive.  At the price γ the adversary gets of a sample

    R(γ)  =  max over k, d of  values[k, d] - γ cost(k, d),

and the largest mean over the ball is ``min over γ of  γε + Σ w_i R_i(γ)`` (strong duality; Kuhn,
Mohajerin Esfahani, Nguyen and Shafieezadeh-Abadeh 2019).  The upper hulls of the options give it
for every radius at once (:mod:`.breakpoints`).  On the border of two regions both decisions are
free: the bounds hold whatever the model does there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..rows.arrays import FloatArray, IndexArray
from .breakpoints import Breakpoints, Envelopes

#: Samples that are looked at together: their numbers stay in the processor's cache.
_LOT = 16384


@dataclass(frozen=True, eq=False)
class Decisions:
    """Decisions about samples; a column for each sample."""

    label: IndexArray
    decided: IndexArray  # as things are
    label_costs: FloatArray  # of every label, 0 for the sample's own
    reach: FloatArray  # what it costs to bring a sample into the region of each decision
    weights: FloatArray

    @property
    def n_decisions(self) -> int:
        return len(self.reach)

    def values(self, table: FloatArray) -> FloatArray:
        """What the samples count for as they are."""
        return np.asarray(table[self.label, self.decided])

    def envelopes(self, table: FloatArray) -> Envelopes:
        """What the adversary can make of the samples.

        Piece ``1 + k·D + d`` is the option of the label k and the decision d.
        """
        start, found = self.values(table), []
        state = self.label * self.n_decisions + self.decided
        for here, value in enumerate(table.flat):
            pays = np.flatnonzero(table > value)
            if not pays.size:
                continue
            k, d = np.divmod(pays, self.n_decisions)
            members = np.flatnonzero((state == here) & (self.weights > 0.0))
            for first in range(0, members.size, _LOT):
                some = members[first : first + _LOT]
                costs = self.label_costs[np.ix_(k, some)] + self.reach[np.ix_(d, some)]
                gains = np.broadcast_to((table.ravel()[pays] - value)[:, None], costs.shape)
                # On a border the best of the free options is where a sample begins.
                free = np.where(costs == 0.0, gains, 0.0).max(axis=0)
                start[some] += free
                found.append(Breakpoints.of_hulls(costs, gains - free, some, 1 + pays))
        return Envelopes(start, Breakpoints.joined(found))

    def at_price(self, table: FloatArray, price: float) -> tuple[FloatArray, FloatArray]:
        """``R(γ)`` of each sample, and the cost of the option that attains it."""
        most, cost = np.full((2, self.label.size), -np.inf)
        for k, costs in enumerate(self.label_costs):
            for d, reach in enumerate(self.reach):
                paid = costs + reach
                value = table[k, d] - price * paid
                better = value > most
                np.copyto(most, value, where=better)
                np.copyto(cost, paid, where=better)
        return most, cost
