"""A dual point made of pieces: their masses q and slopes ``p = q s``, block by block.

Masses of a sample add up to its weight, and ``0 ≤ p ≤ q``.  What such a point proves is in
:mod:`drlogit.dual.pieces`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..rows.arrays import FloatArray, IndexArray
from ..rows.blocks import Block
from ..rows.interface import Rows, State
from ..rows.reductions import Listed
from .pieces import Pieces


class Weights(NamedTuple):
    """A block's part of a dual point."""

    pieces: Pieces
    q: FloatArray
    p: FloatArray


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
