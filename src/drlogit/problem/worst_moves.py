"""The exact adversary for samples with domains; the loops over samples are compiled.

Move the items of a set S (:mod:`drlogit.problem.domains`) and give sample i the label ``σ y_i``.
Its loss under a linear model becomes ``h(σu_i - gain(S))``, at the cost ``cost(S)``, plus κ if
σ = -1.  At the price λ per unit of cost, the adversary's best result for the sample is

    R_i(λ)  =  max over σ and S of  h(σu_i - gain(S)) - λ [cost(S) + κ (σ = -1)].

**The best S is a prefix** of the items sorted by gain/cost.  The points ``(gain, cost)`` of all
sets, partial moves included, fill a zonotope in the plane.  ``h(σu - G) - λC`` is convex in
``(G, C)``, so its maximum is at a vertex.  It rises in G and falls in C, so the vertex is on the
upper left chain, and the vertices of that chain are the prefixes.  One sort per sample and label
therefore finds R_i exactly, in O(m log m) for m items.

The order of the items does not depend on λ.  As a function of λ, ``R_i`` is therefore the maximum
of at most 2m + 2 lines, one for each prefix and label.  Its *envelope* lists the lines that are
best for some λ, ordered by cost, and the prices at which one replaces the other.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ..rows.arrays import BoolArray, FloatArray, IndexArray
from ._moves import Oracle
from .domains import Domains, ItemTable


class Envelopes(NamedTuple):
    """The edges of the samples' envelopes, sample by sample.

    ``own`` is the sample of an edge.  The adversary takes the edge if the price λ is below
    ``rate``, at the cost ``cost``.  The edge ends after the ``moves`` best items; a negative value
    means a flipped label and ``-1 - moves`` items.
    """

    own: IndexArray
    rate: FloatArray
    cost: FloatArray
    moves: IndexArray


class Reach(NamedTuple):
    """Gains of group changes; gain per cost of bounded features, and the cost of their moves."""

    groups: FloatArray
    rates: FloatArray
    distances: FloatArray


class WorstMoves:
    """What the adversary can do to samples with domains when a linear model decides."""

    def __init__(self, domains: Domains, coefficients: FloatArray) -> None:
        self.domains, self.coefficients = domains, coefficients
        self.oracle = Oracle(domains, coefficients)

    def envelopes(
        self, table: ItemTable, scores: FloatArray, y: FloatArray, kappa: FloatArray, least: float
    ) -> Envelopes:
        """The edges with a rate above ``least``, the lowest feasible price.

        ``kappa`` is an array with one flip cost for all samples, or one for each.
        """
        kappa = np.ascontiguousarray(np.broadcast_to(kappa, y.shape))
        return Envelopes(*self.oracle.envelopes(*table, scores, y, kappa, least))

    def reach(self, table: ItemTable, signs: FloatArray) -> Reach:
        """What single items gain and cost under the labels ``signs``."""
        domains, n = self.domains, self.domains.n_groups
        gains, costs = self.oracle.moves(*table, signs)
        rates = np.abs(self.coefficients[domains.bounded]) / domains.bounded_costs
        return Reach(gains[:, :n], rates, costs[:, n:])

    def changes(
        self, table: ItemTable, signs: FloatArray, items: BoolArray, n_features: int
    ) -> tuple[Any, FloatArray]:
        """The changes of features by the ``items`` of samples, as a sparse matrix, and the cost."""
        found = self.domains.item_moves(table, np.arange(signs.size), items)
        (piece, group, left), (there, feature, by) = found[:2]
        targets = self.domains.targets(self.coefficients)
        reached = targets[(signs[piece] <= 0.0).astype(np.intp), group]
        row = np.concatenate([piece, piece, there])
        column = np.concatenate([left, reached, feature])
        value = np.concatenate([np.repeat([-1.0, 1.0], piece.size), by])
        some = column >= 0  # "none" has no column
        entries = value[some], (row[some], column[some])
        return sp.csr_array(entries, shape=(signs.size, n_features)), found.cost
