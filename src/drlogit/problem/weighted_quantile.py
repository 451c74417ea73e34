"""Quantiles of weighted values that lie in row blocks, exactly and in a few passes.

A histogram narrows the bracket a thousandfold per pass until few values are left, which are sorted
here, so the search works on blocks anywhere.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np

from ..rows.arrays import FloatArray
from ..rows.blocks import Block
from ..rows.interface import Rows, State
from ..rows.reductions import Max, Min, Stack, Sum

#: Bins of one pass: three passes resolve 2^30 steps.
_BINS = 1024

#: So many values, or fewer, are fetched and sorted.
_FEW = 4096

#: Values of a block, and their weights.
Weighted: TypeAlias = tuple[FloatArray, FloatArray]


def upper_quantile(rows: Rows, values: State, share: float, low: float = -math.inf) -> float:
    """Smallest value of positive weight with weight at most ``share`` strictly above it.

    The blocks of ``values`` are pairs of values and weights.  If no more than ``share`` is above
    ``low``, that is the answer.
    """
    high, above_high, left, floor = math.inf, 0.0, rows.n_samples, low
    while left > _FEW:
        # Only values in (low, high] are still in question; above_high is the weight > high.
        _, (least, greatest, weight) = rows.run(_range_within, values, low, high)
        if high == math.inf and float(weight) <= share:
            return floor
        if least >= greatest:
            return float(greatest)
        edges = np.linspace(least, greatest, _BINS + 1)
        edges[-1] = greatest
        _, (mass, counts) = rows.run(_histogram, values, low, high, edges)
        # above[k]: weight strictly above edges[k+1], the upper end of bin k.
        above = above_high + np.concatenate([np.cumsum(mass[::-1])[-2::-1], [0.0]])
        k = int(np.flatnonzero(above <= share)[0])
        # The answer lies in bin k: (edges[k], edges[k+1]], with `least` itself in bin 0.
        above_high = float(above[k])
        low, high = (low if k == 0 else float(edges[k])), float(edges[k + 1])
        left = int(counts[k])
    _, (found, weights) = rows.run(_within, values, low, high)
    if high == math.inf and float(weights.sum()) <= share:
        return floor
    return _of_few(found, weights, share - above_high)


def _of_few(values: FloatArray, weights: FloatArray, share: float) -> float:
    """The same among values at hand, the least of which is the answer if no other is."""
    order = np.argsort(values)[::-1]
    values, above = values[order], np.cumsum(weights[order])
    # The last of equal values has the weight of all of them behind it.
    ends = np.flatnonzero(np.append(values[1:] != values[:-1], True))
    fits = np.flatnonzero(above[ends] <= share)
    return float(values[ends[min(fits.size, ends.size - 1)]])


def _range_within(
    block: Block, state: Weighted, low: float, high: float
) -> tuple[Weighted, tuple[Min, Max, Sum]]:
    """The least and the greatest value in ``(low, high]``, and what all there weigh."""
    values, weights = state
    inside = (values > low) & (values <= high) & (weights > 0.0)
    found = values[inside]
    return state, (
        Min(np.min(found, initial=np.inf)),
        Max(np.max(found, initial=-np.inf)),
        Sum(float(weights[inside].sum())),
    )


def _histogram(
    block: Block, state: Weighted, low: float, high: float, edges: FloatArray
) -> tuple[Weighted, tuple[Sum, Sum]]:
    values, weights = state
    inside = (values > low) & (values <= high) & (weights > 0.0)  # as in _range_within
    # Bins are open below and closed above, except that the first holds its lower edge.
    index = np.searchsorted(edges, values[inside], side="left") - 1
    np.maximum(index, 0, out=index)
    size = edges.size - 1
    return state, (
        Sum(np.bincount(index, weights[inside], minlength=size)),
        Sum(np.bincount(index, minlength=size)),
    )


def _within(
    block: Block, state: Weighted, low: float, high: float
) -> tuple[Weighted, tuple[Stack, Stack]]:
    values, weights = state
    inside = (values > low) & (values <= high) & (weights > 0.0)
    return state, (Stack(values[inside]), Stack(weights[inside]))
