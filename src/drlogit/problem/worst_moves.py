"""The exact adversary of samples with domains; its loops over samples are compiled.

For a linear model the loss of sample i under the label ``σ y_i``, after the items in a set S
(:mod:`drlogit.problem.domains`), is ``h(σu_i - gain(S))``, and it costs ``cost(S)``, plus κ if σ
= -1. What the adversary gets per unit of mass at the price λ is

    R_i(λ)  =  max over σ and S of  h(σu_i - gain(S)) - λ [cost(S) + κ (σ = -1)].

**The best S is a prefix** of the items sorted by gain/cost.  ``(gain, cost)`` of all sets,
partial moves included, fill a zonotope in the plane; ``h(σu - G) - λC`` is convex in ``(G, C)``,
so its maximum is at a vertex, and as it rises in G and falls in C, at one of the upper left
chain, whose vertices are the prefixes.  So one sort per sample and label finds R_i exactly: O(m
log m) for m items.

The order of the items does not depend on λ.  Seen as a function of λ, ``R_i`` is therefore the
maximum of at most 2m + 2 lines, those of prefixes; its *envelope* holds the ones that are ever
best, ordered by cost, and the prices at which the adversary goes from each to the next.
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
    """What a model makes of the domains: everything the loops need besides the samples.

    ``beta`` are the coefficients of all columns, ``low`` and ``high`` the least and greatest of
    each group's categories.
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
            np.ascontiguousarray(coefficients, dtype=np.float64), low, high, domains.group_costs,
            np.stack([domains.lower, domains.upper]), domains.bounded_costs,
            domains.bounded.astype(np.int32),
        )  # fmt: skip

    def targets(self, domains: Domains) -> NDArray[np.int32]:
        """The columns of each group's least and greatest coefficients, -1 where "none" has it."""
        return domains.targets(self.beta)

    @property
    def oracle(self) -> Oracle:
        """The same for compiled loops."""
        return Oracle(*self)

    @property
    def n_items(self) -> int:
        return self.group_costs.size + self.bounded.size


class Envelopes(NamedTuple):
    """The edges of the samples' envelopes, sample by sample.

    Per edge: its sample, the price ``rate`` down to which the adversary goes along it, what that
    costs, and where it ends: after the ``moves`` best items, with the label flipped if negative
    (then after ``-1 - moves``).
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
    """Edges with a rate above ``least``, the lowest price that is possible at all.

    ``kappa`` is what flips cost: one number, as an array, or one for each sample.
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
        filled = _envelope(
            oracle, first, last, scores, y, kappa, least, table.now, table.values, *buffers
        )
        counts, rates, costs, moves = buffers
        own = np.repeat(np.arange(first, last), counts[: last - first])
        parts.append((own, *(values[:filled].copy() for values in (rates, costs, moves))))
    return Envelopes(*(np.concatenate(column) for column in zip(*parts, strict=True)))


class Reach(NamedTuple):
    """What single items gain from samples: those of groups, of bounded features, and how far."""

    groups: FloatArray
    rates: FloatArray
    distances: FloatArray


def reach(signs: FloatArray, table: ItemTable, model: Weighed) -> Reach:
    """Gains of group changes; gain per cost of bounded features and how much they may cost."""
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
    least: float,
    table: ItemTable,
    model: Weighed,
    targets: NDArray[np.int32],
    n_features: int,
) -> Any:
    """What the ``lengths`` best items change in the features of samples, as a sparse matrix.

    ``targets`` are the columns of each group's worst categories for the labels +1 and -1, in two
    rows, -1 for none.
    """
    now, values, n_groups = table.now[own], table.values[own], model.group_costs.size
    found = reach(signs, ItemTable(now, values), model)
    rates = np.hstack([
        found.groups / model.group_costs, np.where(found.distances > 0.0, found.rates, -np.inf)
    ])  # fmt: skip
    order = np.argsort(-rates, axis=1, kind="stable")
    ranks = np.empty_like(order)
    np.put_along_axis(ranks, order, np.arange(model.n_items)[None], axis=1)
    moved = ranks < lengths[:, None]
    piece, group = np.nonzero(moved[:, :n_groups])
    there, j = np.nonzero(moved[:, n_groups:])
    columns = now[piece, group], targets[(signs[piece] <= 0.0).astype(np.intp), group]
    end = (signs[there] * model.beta[model.bounded[j]] <= 0.0).astype(np.intp)
    row = np.concatenate([piece, piece, there])
    column = np.concatenate([*columns, model.bounded[j]])
    ones = np.ones(piece.size)
    value = np.concatenate([-ones, ones, model.ends[end, j] - values[there, j]])
    some = column >= 0  # "none" has no column
    entries = value[some], (row[some], column[some])
    return sp.csr_array(entries, shape=(own.size, n_features))
