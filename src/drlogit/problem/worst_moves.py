"""The exact adversary of samples with domains, as compiled loops over samples.

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

import math
from typing import Any, NamedTuple

import numba
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..rows.arrays import FloatArray
from .domains import Domains, ItemTable

#: Samples whose items are listed at a time, by the number of items: 2^20 entries of a buffer.
_BUFFER = 1 << 20

#: Items up to which insertion sort is faster than numba's quicksort and its memory.
_FEW_ITEMS = 40


class Weighed(NamedTuple):
    """What a model makes of the domains: everything the loops need besides the samples.

    ``beta`` are the coefficients of all columns, ``low`` and ``high`` the least and greatest of
    each group's categories (or anything below and above, which makes the adversary stronger).
    """

    beta: FloatArray
    low: FloatArray
    high: FloatArray
    group_costs: FloatArray
    ends: FloatArray  # lower and upper, in two rows
    bounded_costs: FloatArray
    bounded: NDArray[np.int32]

    @classmethod
    def by(
        cls,
        domains: Domains,
        coefficients: FloatArray,
        ranges: tuple[FloatArray, FloatArray] | None = None,
    ) -> Weighed:
        low, high = domains.ranges(coefficients) if ranges is None else ranges
        return cls(
            np.ascontiguousarray(coefficients, dtype=np.float64), low, high, domains.group_costs,
            np.stack([domains.lower, domains.upper]), domains.bounded_costs,
            domains.bounded.astype(np.int32),
        )  # fmt: skip

    def targets(self, domains: Domains) -> NDArray[np.int32]:
        """The columns of each group's least and greatest coefficients, -1 where "none" has it."""
        found = np.full((2, domains.n_groups), -1, dtype=np.int32)
        for g, group in enumerate(domains.groups):
            values = self.beta[group]
            low, high = int(values.argmin()), int(values.argmax())
            if not (domains.with_none[g] and values[low] >= 0.0):
                found[0, g] = group[low]
            if not (domains.with_none[g] and values[high] <= 0.0):
                found[1, g] = group[high]
        return found

    @property
    def n_items(self) -> int:
        return self.group_costs.size + self.bounded.size


@numba.njit(cache=True, nogil=True, inline="always")
def _loss(u):  # type: ignore[no-untyped-def]
    return math.log1p(math.exp(-abs(u))) - min(u, 0.0)


@numba.njit(cache=True, nogil=True)
def _sorted_items(i, sign, now, values, m, least, gain, cost, rate, item):  # type: ignore[no-untyped-def]
    """Items of sample i under the label ``sign`` that gain more than ``least`` per cost, best
    first.

    An item is numbered g for a change of group g, and G + 2j or G + 2j + 1 for a move of the
    bounded feature j to its lower or upper end.
    """
    n = 0
    n_groups = now.shape[1]
    for g in range(n_groups):
        column = now[i, g]
        here = m.beta[column] if column >= 0 else 0.0
        change = here - m.low[g] if sign > 0.0 else m.high[g] - here
        if change > least * m.group_costs[g]:
            gain[n], cost[n], item[n] = change, m.group_costs[g], g
            rate[n] = change / m.group_costs[g]
            n += 1
    for j in range(values.shape[1]):
        slope = m.beta[m.bounded[j]]
        if abs(slope) <= least * m.bounded_costs[j]:
            continue
        end = 0 if sign * slope > 0.0 else 1
        distance = abs(values[i, j] - m.ends[end, j])
        if distance > 0.0:
            gain[n], cost[n] = abs(slope) * distance, m.bounded_costs[j] * distance
            item[n] = n_groups + 2 * j + end
            rate[n] = abs(slope) / m.bounded_costs[j]
            n += 1
    if n > _FEW_ITEMS:
        # Entry by entry: indexing by arrays compiles for five seconds more, and runs no faster.
        gains, prices, rates, items = gain.copy(), cost.copy(), rate.copy(), item.copy()
        for t in range(n):
            rate[t] = -rate[t]
        order = np.argsort(rate[:n])
        for t in range(n):
            k = order[t]
            gain[t], cost[t], rate[t], item[t] = gains[k], prices[k], rates[k], items[k]
        return n
    for a in range(1, n):
        g, c, r, k = gain[a], cost[a], rate[a], item[a]
        b = a - 1
        while b >= 0 and rate[b] < r:
            gain[b + 1], cost[b + 1], rate[b + 1], item[b + 1] = gain[b], cost[b], rate[b], item[b]
            b -= 1
        gain[b + 1], cost[b + 1], rate[b + 1], item[b + 1] = g, c, r, k
    return n


@numba.njit(cache=True, nogil=True)
def _envelope(first, last, scores, y, kappa, least, now, values, m, count, rates, costs, moves):  # type: ignore[no-untyped-def]
    size = now.shape[1] + values.shape[1]
    gain, cost, rate = np.empty(size), np.empty(size), np.empty(size)
    item = np.empty(size, np.int64)
    # Prefixes of both labels: cost, loss, and which they are (length; flipped ones negative).
    x, v = np.empty((2, size + 1)), np.empty((2, size + 1))
    length = np.zeros(2, np.int64)
    hull = np.empty((2 * size + 2, 3))
    filled = 0
    for i in range(first, last):
        labels = 2 if kappa < np.inf else 1
        length[1] = 0
        for label in range(labels):
            sign = y[i] if label == 0 else -y[i]
            margin = sign * scores[i]
            n = _sorted_items(i, sign, now, values, m, least, gain, cost, rate, item)
            x[label, 0], v[label, 0] = (0.0 if label == 0 else kappa), _loss(margin)
            for t in range(n):
                margin -= gain[t]
                x[label, t + 1], v[label, t + 1] = x[label, t] + cost[t], _loss(margin)
            length[label] = n + 1
        # Merge by cost; keep the upper hull as far as it rises by more than ``least`` per cost.
        a, b, top = 0, 0, 0
        while a < length[0] or b < length[1]:
            if b >= length[1] or (a < length[0] and x[0, a] <= x[1, b]):
                px, pv, which = x[0, a], v[0, a], float(a)
                a += 1
            else:
                px, pv, which = x[1, b], v[1, b], -1.0 - b
                b += 1
            while top > 0:
                step = px - hull[top - 1, 0]
                rise = pv - hull[top - 1, 1]
                if rise <= least * step:
                    break
                if step > 0.0 and (
                    top == 1
                    or rise * (hull[top - 1, 0] - hull[top - 2, 0])
                    < step * (hull[top - 1, 1] - hull[top - 2, 1])
                ):
                    break
                if step <= 0.0 and top == 1:
                    break
                top -= 1
            if top == 0 or (
                pv - hull[top - 1, 1] > least * (px - hull[top - 1, 0]) and px > hull[top - 1, 0]
            ):
                hull[top, 0], hull[top, 1], hull[top, 2] = px, pv, which
                top += 1
        count[i - first] = top - 1
        for t in range(1, top):
            step = hull[t, 0] - hull[t - 1, 0]
            costs[filled] = step
            rates[filled] = (hull[t, 1] - hull[t - 1, 1]) / step
            moves[filled] = int(hull[t, 2])
            filled += 1
    return filled


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
    scores: FloatArray, y: FloatArray, kappa: float, least: float, table: ItemTable, model: Weighed
) -> Envelopes:
    """Edges with a rate above ``least``, the lowest price that is possible at all."""
    width = 2 * model.n_items + 2
    step = max(1, _BUFFER // width)
    buffers: tuple[Any, ...] = (
        np.empty(step, dtype=np.int64),
        np.empty(step * width),
        np.empty(step * width),
        np.empty(step * width, dtype=np.int32),
    )
    parts = []
    for first in range(0, scores.size, step):
        last = min(first + step, scores.size)
        filled = _envelope(
            first, last, scores, y, kappa, least, table.now, table.values, model, *buffers
        )
        counts, rates, costs, moves = buffers
        own = np.repeat(np.arange(first, last), counts[: last - first])
        parts.append((own, *(values[:filled].copy() for values in (rates, costs, moves))))
    return Envelopes(*(np.concatenate(column) for column in zip(*parts, strict=True)))


@numba.njit(cache=True, nogil=True)
def _changes(  # type: ignore[no-untyped-def]
    own, signs, lengths, least, now, values, m, targets, counts, columns, entries
):
    n_groups = now.shape[1]
    size = n_groups + values.shape[1]
    gain, cost, rate = np.empty(size), np.empty(size), np.empty(size)
    item = np.empty(size, np.int64)
    filled = 0
    for k in range(own.size):
        i, begin = own[k], filled
        _sorted_items(i, signs[k], now, values, m, least, gain, cost, rate, item)
        for t in range(lengths[k]):
            if item[t] < n_groups:
                g = item[t]
                target = targets[0 if signs[k] > 0.0 else 1, g]
                if now[i, g] >= 0:
                    columns[filled], entries[filled] = now[i, g], -1.0
                    filled += 1
                if target >= 0:
                    columns[filled], entries[filled] = target, 1.0
                    filled += 1
            else:
                j, end = divmod(item[t] - n_groups, 2)
                columns[filled] = m.bounded[j]
                entries[filled] = m.ends[end, j] - values[i, j]
                filled += 1
        counts[k] = filled - begin
    return filled


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
    room = int(2 * lengths.sum())
    counts = np.zeros(own.size, dtype=np.int64)
    columns, entries = np.empty(room, dtype=np.int32), np.empty(room)
    filled = _changes(
        own, signs, lengths, least, table.now, table.values, model, targets, counts, columns,
        entries,
    )  # fmt: skip
    indptr = np.concatenate([[0], np.cumsum(counts)])
    parts = entries[:filled], columns[:filled], indptr
    return sp.csr_array(parts, shape=(own.size, n_features))


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
    adverse = np.where(signs[:, None] * slopes > 0.0, model.ends[0], model.ends[1])
    distances = np.abs(table.values - adverse) * model.bounded_costs
    return Reach(groups, np.abs(slopes) / model.bounded_costs, distances)
