"""A dual point made of pieces: their masses q and slopes ``p = q s``, block by block.

Masses of a sample add up to its weight, and ``0 ≤ p ≤ q``.  What such a point proves is in
:mod:`drlogit.problem.domain_certificate`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..rows.arrays import BoolArray, FloatArray, IndexArray
from ..rows.blocks import Block
from ..rows.interface import Rows, State
from ..rows.reductions import Listed, Sum
from .losses import entropy
from .pieces import Pieces


class Weights(NamedTuple):
    """A block's part of a dual point."""

    pieces: Pieces
    q: FloatArray
    p: FloatArray


@dataclass(frozen=True, eq=False)
class WeightSums:
    """A dual point with its sums over all samples.

    Attributes
    ----------
    weights : State
        The point, a :class:`Weights` per block.
    g : array
        ``Σ p y z`` over ``(β, b, low, high)``.
    spent : float
        ``Σ q d``, what the masses cost.
    classes : array
        ``Σ p`` over pieces with the labels -1 and +1.
    flipped : float
        ``Σ p`` over pieces whose label is not their sample's.
    curvature : float
        ``Σ p (1 - p/q)``.
    size : float
        Root of ``Σ_i p_i²/w_i``: times the root mean square of a column, it bounds ``Σ p |x_j|``.
    """

    weights: State
    g: FloatArray
    spent: float
    classes: FloatArray
    flipped: float
    curvature: float
    size: float

    @classmethod
    def of(cls, rows: Rows, weights: State) -> WeightSums:
        _, (g, classes, (spent, flipped, curvature, square)) = rows.run(_sums, weights)
        return cls(
            weights, g, float(spent), classes, float(flipped), float(curvature),
            float(np.sqrt(square)),
        )  # fmt: skip

    @property
    def total(self) -> float:
        """``Σ p``."""
        return float(self.classes.sum())


def curvature(q: FloatArray, p: FloatArray) -> FloatArray:
    """``q s (1 - s)`` of each piece."""
    return np.asarray(p * (1.0 - p / np.where(q > 0.0, q, 1.0)))


def _sums(block: Block, weights: Weights) -> tuple[Weights, tuple[Sum, Sum, Sum]]:
    pieces, q, p = weights
    flipped = pieces.sign != block.y[pieces.own]
    positive = pieces.sign > 0.0
    present = np.where(block.weights > 0.0, block.weights, 1.0)
    single = [
        q @ pieces.cost,
        p[flipped].sum(),
        curvature(q, p).sum(),
        (np.square(pieces.totals(p, block.y.size)) / present).sum(),
    ]
    return weights, (
        Sum(pieces.adjoint(block, p * pieces.sign)),
        Sum(np.array([p[~positive].sum(), p[positive].sum()])),
        Sum(np.array(single)),
    )


def within(block: Block, weights: Weights) -> tuple[Weights, tuple[()]]:
    """Masses that sum to the samples' weights and ``0 ≤ p ≤ q``, whatever was handed over."""
    pieces, n, w = weights.pieces, block.y.size, block.weights
    q = np.maximum(weights.q, 0.0)
    total = pieces.totals(q, n)
    scale = np.where(total > 0.0, w / np.where(total > 0.0, total, 1.0), 0.0)
    return Weights(
        pieces, q * scale[pieces.own], np.clip(weights.p, 0.0, q) * scale[pieces.own]
    ), ()


def scaled_value(block: Block, weights: Weights, factor: float) -> tuple[Weights, tuple[Sum, Sum]]:
    """``Σ q H(p/q)`` after scaling, and ``Σ D log²(s/(1-s))`` with D from before.

    The mass that moved pieces lose goes back to the sample as it is.
    """
    pieces, q, p = weights
    n, w = block.y.size, block.weights
    unmoved = (pieces.cost == 0.0) & (pieces.sign == block.y[pieces.own])
    scaled = np.where(unmoved, q, factor * q)
    missing = w - pieces.totals(scaled, n)
    scaled = scaled + np.where(unmoved, missing[pieces.own], 0.0)
    some = scaled > 0.0
    s = np.minimum(factor * p[some] / scaled[some], 1.0)
    d = curvature(q, p)[some]
    inside = (d > 0.0) & (s > 0.0) & (s < 1.0)
    logit = np.log(s[inside]) - np.log1p(-s[inside])
    return weights, (
        Sum(float(scaled[some] @ entropy(s))),
        Sum(float(d[inside] @ np.square(logit))),
    )


def taking_part(block: Block, weights: Weights) -> tuple[BoolArray, tuple[()]]:
    """Samples with any slope at all."""
    return weights.pieces.totals(weights.p, block.y.size) > 0.0, ()


def no_flips(block: Block, _: None) -> tuple[FloatArray, tuple[()]]:
    """Zero for each sample."""
    return np.zeros(block.y.size), ()


def mean_slopes(block: Block, weights: Weights) -> tuple[FloatArray, tuple[()]]:
    """The mean of s over the pieces of each sample: what is left of the proof without them."""
    pieces, q, p = weights
    n = block.y.size
    total = pieces.totals(q, n)
    return np.minimum(pieces.totals(p, n) / np.where(total > 0.0, total, 1.0), 1.0), ()


def flip_shares(block: Block, weights: Weights) -> tuple[FloatArray, tuple[()]]:
    """The share of each sample whose label is not its own."""
    pieces, q, _ = weights
    n = block.y.size
    total = pieces.totals(q, n)
    flipped = pieces.totals(np.where(pieces.sign == block.y[pieces.own], 0.0, q), n)
    return flipped / np.where(total > 0.0, total, 1.0), ()


def spread(weights: State, rows: Rows, given: Rows, origin: IndexArray) -> State:
    """A dual point of merged samples as one of the samples they stand for.

    ``origin`` has, for each given sample, the number of the merged one.
    """
    _, (parts,) = rows.run(_listed, weights)
    counts = [own_size for _, own_size in parts]
    offsets = np.concatenate([[0], np.cumsum(counts)[:-1]])
    joined = parts[0][0]
    for (part, _), offset in zip(parts[1:], offsets[1:], strict=True):
        moved = part._replace(pieces=part.pieces._replace(own=part.pieces.own + offset))
        pieces, order = joined.pieces.joined(moved.pieces, 0)
        joined = Weights(
            pieces,
            np.concatenate([joined.q, moved.q])[order],
            np.concatenate([joined.p, moved.p])[order],
        )
    return given.run(_spread, given.scatter(origin), joined, int(sum(counts)))[0]


def _listed(
    block: Block, weights: Weights
) -> tuple[Weights, tuple[Listed[list[tuple[Weights, int]]]]]:
    return weights, (Listed([(weights, block.y.size)]),)


def _spread(
    block: Block, origin: FloatArray, weights: Weights, n_merged: int
) -> tuple[Weights, tuple[()]]:
    pieces = weights.pieces
    starts = pieces.starts(n_merged)
    merged = origin.astype(np.intp)
    counts = np.diff(starts)[merged] * (block.weights > 0.0)
    own = np.repeat(np.arange(merged.size), counts)
    within = np.arange(own.size) - np.repeat(np.cumsum(counts) - counts, counts)
    places = starts[merged][own] + within
    total = pieces.totals(weights.q, n_merged)
    share = block.weights[own] / total[merged[own]]
    return Weights(
        pieces.picked(places)._replace(own=own),
        weights.q[places] * share,
        weights.p[places] * share,
    ), ()
