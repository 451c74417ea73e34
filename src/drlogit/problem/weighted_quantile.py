"""Quantiles of weighted values that lie in row blocks, exactly and in a few passes.

A histogram narrows the bracket a thousandfold per pass until few values are left, which are sorted
here, so the search works on blocks anywhere.  Where somebody knows about where the quantile is, the
values there (:class:`Surroundings`) mostly tell in one pass.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from ..rows.arrays import FloatArray, IndexArray
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

#: Largest share of the values of a block, or number of them, that is fetched around a guess.
_FETCHED_SHARE, _FETCHED = 0.01, 64

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


@dataclass(frozen=True)
class Surroundings:
    """The values ``(least, greatest]`` around a guess at a quantile that is not below ``low``."""

    low: float
    least: float
    greatest: float

    @classmethod
    def of(cls, guess: float, low: float) -> Surroundings:
        """As far as a guess may be off."""
        off = _OFF * abs(guess)
        return cls(low, max(guess - off, low), max(guess + off, low))

    def find(self, values: FloatArray, weights: FloatArray) -> tuple[IndexArray, int]:
        """Where the values of a block are that lie here, and how many are not told."""
        inside = (values > self.least) & (values <= self.greatest) & (weights > 0.0)
        found = np.flatnonzero(inside)
        many = found.size > max(_FETCHED, _FETCHED_SHARE * values.size)
        return found[:0] if many else found, found.size if many else 0

    def quantile(
        self, values: FloatArray, weights: FloatArray, above: float, share: float
    ) -> float | None:
        """:func:`upper_quantile`, of all values here and what is ``above``; None if elsewhere."""
        if above > share:
            return None
        if above + float(weights.sum()) > share:
            return _of_few(values, weights, share - above)
        return self.low if self.least == self.low else None


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
