"""Quantiles of weighted values that lie in row blocks, exactly and in a few passes.

Each pass counts the values, and adds up their weights, between some edges, and goes on between
those two that hold the quantile, until few values are left, which are sorted here.  So the search
works on blocks anywhere.  The first edges are next to a guess, if somebody has one.
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

#: How far a guess may be off, in proportion to it.  A λ that leaves a gap of 1e-6 is off by about
#: the root of that; of 2·10⁶ margins a few thousand are so near.
_OFF = 2e-3

#: Values of a block, and their weights.
Weighted: TypeAlias = tuple[FloatArray, FloatArray]


def upper_quantile(
    rows: Rows, values: State, share: float, low: float = -math.inf, guess: float = math.nan
) -> float:
    """Smallest value of positive weight with weight at most ``share`` strictly above it.

    The blocks of ``values`` are pairs of values and weights.  If no more than ``share`` is above
    ``low``, that is the answer.
    """
    floor, high, above_high, left = low, math.inf, 0.0, rows.n_samples
    near = [guess - _OFF * abs(guess), guess + _OFF * abs(guess)]
    edges = np.array([edge for edge in near if low < edge < math.inf])
    while left > _FEW:
        # Only values in (low, high] are still in question; above_high is the weight > high.
        if not edges.size:
            _, (least, greatest, weight) = rows.run(_range_within, values, low, high)
            if low == floor and above_high + float(weight) <= share:
                return floor
            if least >= greatest:
                return float(greatest)
            edges = np.linspace(least, greatest, _BINS + 1)[1:-1]
        _, (mass, counts) = rows.run(_histogram, values, low, high, edges)
        # above[k]: weight strictly above edges[k], the upper end of bin k.
        above = above_high + np.append(np.cumsum(mass[::-1])[-2::-1], 0.0)
        k = int(np.flatnonzero(above <= share)[0])
        if low == floor and above[0] + float(mass[0]) <= share:
            return floor
        above_high, left = float(above[k]), int(counts[k])
        low, high = [low, *edges][k], [*edges, high][k]
        edges = edges[:0]
    _, (found, weights) = rows.run(_within, values, low, high)
    if low == floor and above_high + float(weights.sum()) <= share:
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


def _inside(state: Weighted, low: float, high: float) -> Weighted:
    """Values in ``(low, high]`` that have a weight."""
    values, weights = state
    inside = (values > low) & (values <= high) & (weights > 0.0)
    return values[inside], weights[inside]


def _range_within(
    block: Block, state: Weighted, low: float, high: float
) -> tuple[Weighted, tuple[Min, Max, Sum]]:
    """The least and the greatest value in ``(low, high]``, and what all there weigh."""
    found, weights = _inside(state, low, high)
    least, greatest = np.min(found, initial=np.inf), np.max(found, initial=-np.inf)
    return state, (Min(least), Max(greatest), Sum(float(weights.sum())))


def _histogram(
    block: Block, state: Weighted, low: float, high: float, edges: FloatArray
) -> tuple[Weighted, tuple[Sum, Sum]]:
    """What values weigh between edges, and how many there are; bins are closed above."""
    found, weights = _inside(state, low, high)
    index, size = np.searchsorted(edges, found, side="left"), edges.size + 1
    return state, (
        Sum(np.bincount(index, weights, minlength=size)),
        Sum(np.bincount(index, minlength=size)),
    )


def _within(
    block: Block, state: Weighted, low: float, high: float
) -> tuple[Weighted, tuple[Stack, Stack]]:
    found, weights = _inside(state, low, high)
    return state, (Stack(found), Stack(weights))
