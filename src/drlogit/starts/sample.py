"""Some of the rows in memory, wherever all are; which ones depends on their numbers alone."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..rows.arrays import BoolArray, FloatArray, IndexArray, Matrix
from ..rows.blocks import Block
from ..rows.interface import Rows
from ..rows.local import LocalRows, memory_rows
from ..rows.matrix import held
from ..rows.reductions import Stack

#: Entries of X that may be gathered from rows that are not in memory: so many at least, this share
#: of them, and so many at most (512 MB of doubles).
_FEW_ENTRIES, _GATHERED_SHARE, _MOST_ENTRIES = 1 << 20, 1.0 / 16.0, 1 << 26


def most_entries(rows: Rows) -> float:
    """How many entries of samples may be gathered in this process."""
    if isinstance(rows, LocalRows) and rows.in_memory:
        return math.inf
    return min(_MOST_ENTRIES, max(_FEW_ENTRIES, _GATHERED_SHARE * rows.n_nonzeros))


class GatheredSamples:
    """Rows that were gathered from all blocks, in the order of their numbers."""

    def __init__(self, rows: Rows, stacked: tuple[Any, ...]) -> None:
        self.numbers, self.u, y, weights, trust, *parts = stacked
        X = _matrix(tuple(parts), rows.n_columns - rows.intercept)
        if (np.diff(self.numbers) < 0).any():
            order = np.argsort(self.numbers)
            self.numbers, self.u = self.numbers[order], self.u[order]
            y, weights, trust, X = y[order], weights[order], trust[order], X[order]
        trusted = trust[:, 0].copy() if trust.shape[1] else None
        self.block = Block(held(X), y, weights, rows.intercept, trust=trusted)


def stacked(
    block: Block, offset: int, u: FloatArray, index: IndexArray
) -> tuple[None, tuple[Stack, ...]]:
    """Some rows of a block: numbers, a value of each, labels, weights, trust, and the rows."""
    X = block.X[index]
    trust = np.zeros((index.size, 0)) if block.trust is None else block.trust[index, None]
    heads = (offset + index, u[index], block.y[index], block.weights[index], trust)
    if sp.issparse(X):
        return None, tuple(map(Stack, (*heads, X.data, X.indices, np.diff(X.indptr))))
    return None, tuple(map(Stack, (*heads, np.asarray(X))))


def sampled(rows: Rows, share: float) -> tuple[Block, FloatArray]:
    """About this share of the rows as one block, and the place of each of them in [0, share)."""
    _, parts = rows.run(_take, rows.offsets, share)
    found = GatheredSamples(rows, parts)
    return found.block, found.u


def part(block: Block, kept: BoolArray) -> LocalRows | None:
    """Some samples of a block as rows; None if a class is missing."""
    X, y, weights, trust = block.X, block.y, block.weights, block.trust
    if not kept.all():
        index = np.flatnonzero(kept)
        X, y, weights = X[index], y[index], weights[index]
        trust = None if trust is None else trust[index]
    if not (weights[y > 0.0].any() and weights[y < 0.0].any()):
        return None
    return memory_rows(X, y, weights / weights.sum(), intercept=block.intercept, trust=trust)


def _take(block: Block, offset: int, share: float) -> tuple[None, tuple[Stack, ...]]:
    where = places(offset + np.arange(block.y.size))
    return stacked(block, offset, where, np.flatnonzero(where < share))


def places(numbers: NDArray[np.int64 | np.uint64]) -> FloatArray:
    """A number in [0, 1) for each sample, as if drawn at random: the mixer of SplitMix64."""
    z = numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return np.asarray((z >> np.uint64(11)) * 2.0**-53)


def _matrix(parts: tuple[Any, ...], n_features: int) -> Matrix:
    """Gathered rows as one matrix."""
    if len(parts) == 1:
        return parts[0]
    data, indices, counts = parts
    ends = np.concatenate([[0], np.cumsum(counts)]).astype(indices.dtype)
    matrix = sp.csr_array((data, indices, ends), shape=(counts.size, n_features))
    matrix.has_canonical_format = True  # as the blocks' own rows
    return matrix
