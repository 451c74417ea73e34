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
from numpy.typing import NDArray

from ..rows.arrays import FloatArray
from ._moves import Oracle
from ._moves import envelope as _envelope
from .domains import Domains, ItemTable

#: Samples whose items are listed at a time, by the number of items: 2^20 entries of a buffer.
_BUFFER = 1 << 20


class Weighed(NamedTuple):
    """The coefficients and costs of a model's items: all that the loops need besides the samples.

    ``beta`` holds the coefficients of all columns; ``low`` and ``high`` are the least and the
    greatest coefficient of each group.
    """

    beta: FloatArray
    low: FloatArray
    high: FloatArray
    group_costs: FloatArray
    ends: FloatArray  # lower and upper, in two rows
    bounded_costs: FloatArray
    bounded: NDArray[np.int32]

    @classmethod
    def by(cls, domains: Domains, coefficients: FloatArray) -> Weighed:
        low, high = domains.ranges(coefficients)
        return cls(
            np.ascontiguousarray(coefficients, dtype=np.float64),
            low,
            high,
            domains.group_costs,
            np.stack([domains.lower, domains.upper]),
            domains.bounded_costs,
            domains.bounded.astype(np.int32),
        )

    @property
    def oracle(self) -> Oracle:
        """The same data as the compiled loops read them."""
        return Oracle(*self)

    @property
    def n_items(self) -> int:
        """The largest number of items of a sample."""
        return self.group_costs.size + self.bounded.size


class Envelopes(NamedTuple):
    """The edges of the samples' envelopes, sample by sample.

    ``own`` is the sample of an edge.  The adversary takes the edge if the price λ is below
    ``rate``, at the cost ``cost``.  The edge ends after the ``moves`` best items; a negative value
    means a flipped label and ``-1 - moves`` items.
    """

    own: NDArray[np.intp]
    rate: FloatArray
    cost: FloatArray
    moves: NDArray[np.int32]


def envelopes(
    scores: FloatArray,
    y: FloatArray,
    kappa: FloatArray,
    least: float,
    table: ItemTable,
    model: Weighed,
) -> Envelopes:
    """The edges with a rate above ``least``, the lowest feasible price.

    ``kappa`` is an array with one flip cost for all samples, or one for each.
    """
    width = 2 * model.n_items + 2
    step = max(1, _BUFFER // width)
    buffers: tuple[Any, ...] = (
        np.empty(step, dtype=np.intp),
        np.empty(step * width),
        np.empty(step * width),
        np.empty(step * width, dtype=np.int32),
    )
    parts, oracle = [], model.oracle
    for first in range(0, scores.size, step):
        last = min(first + step, scores.size)
        filled = _envelope(oracle, first, last, scores, y, kappa, least, *table, *buffers)
        counts, rates, costs, moves = buffers
        own = np.repeat(np.arange(first, last), counts[: last - first])
        parts.append((own, *(values[:filled].copy() for values in (rates, costs, moves))))
    return Envelopes(*(np.concatenate(column) for column in zip(*parts, strict=True)))


class Reach(NamedTuple):
    """Gains of single items: of group changes, and rates and lengths of bounded moves."""

    groups: FloatArray
    rates: FloatArray
    distances: FloatArray


def reach(signs: FloatArray, table: ItemTable, model: Weighed) -> Reach:
    """Gains of group changes; gain per cost of bounded features and their largest cost."""
    here = np.where(table.now >= 0, model.beta[np.maximum(table.now, 0)], 0.0)
    groups = np.where(signs[:, None] > 0.0, here - model.low, model.high - here)
    slopes = model.beta[model.bounded]
    down = signs[:, None] * slopes > 0.0
    lengths = np.where(down, table.values - model.ends[0], model.ends[1] - table.values)
    distances = np.maximum(lengths, 0.0) * model.bounded_costs  # none beyond the adverse end
    return Reach(groups, np.abs(slopes) / model.bounded_costs, distances)


def changes(
    own: NDArray[np.intp],
    signs: FloatArray,
    lengths: NDArray[np.intp],
    table: ItemTable,
    model: Weighed,
    domains: Domains,
    n_features: int,
) -> Any:
    """The changes of features by the ``lengths`` best items of samples, as a sparse matrix."""
    table = table.picked(own)
    items = _prefixes(signs, lengths, table, model, domains)
    found = domains.item_moves(table, np.arange(own.size), items)
    (piece, group, left), (there, feature, by) = found[:2]
    reached = domains.targets(model.beta)[(signs[piece] <= 0.0).astype(np.intp), group]
    row = np.concatenate([piece, piece, there])
    column = np.concatenate([left, reached, feature])
    value = np.concatenate([np.repeat([-1.0, 1.0], piece.size), by])
    some = column >= 0  # "none" has no column
    entries = value[some], (row[some], column[some])
    return sp.csr_array(entries, shape=(own.size, n_features))


def _prefixes(
    signs: FloatArray,
    lengths: NDArray[np.intp],
    table: ItemTable,
    model: Weighed,
    domains: Domains,
) -> NDArray[np.bool_]:
    """The items among the ``lengths`` best of each sample, as a mask."""
    n_groups = model.low.size
    found = reach(signs, table, model)
    every = [
        found.groups / model.group_costs,
        np.where(found.distances > 0.0, found.rates, -np.inf),
    ]
    order = np.argsort(-np.hstack(every), axis=1, kind="stable")
    ranks = np.empty_like(order)
    np.put_along_axis(ranks, order, np.arange(order.shape[1])[None], axis=1)
    groups, ends = np.split(ranks < lengths[:, None], [n_groups], axis=1)
    items = np.zeros((signs.size, domains.n_items), dtype=bool)
    items[:, :n_groups] = groups
    piece, j = np.nonzero(ends)
    upper = (signs[piece] * model.beta[model.bounded[j]] <= 0.0).astype(np.intp)
    items[piece, n_groups + 2 * j + upper] = True
    return items
