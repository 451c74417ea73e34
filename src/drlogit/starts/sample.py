"""Some of the rows in memory, wherever all are; which ones depends on their numbers alone."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..rows.arrays import FloatArray, IndexArray
from ..rows.blocks import Block, join_blocks
from ..rows.interface import BlockFunction, Rows, State
from ..rows.local import LocalRows, memory_rows
from ..rows.matrix import held
from ..rows.reductions import Sum

#: The largest number of entries of X that may be gathered from rows outside memory (512 MB of
#: doubles).
_MOST_ENTRIES = 1 << 26


def most_entries(rows: Rows) -> float:
    """How many entries of samples may be gathered in this process."""
    if isinstance(rows, LocalRows) and rows.in_memory:
        return math.inf
    return _MOST_ENTRIES


class GatheredSamples(NamedTuple):
    """Rows from all blocks: their numbers, ascending, a value of each, and the rows."""

    numbers: IndexArray
    u: FloatArray
    block: Block


def gathered(rows: Rows, function: BlockFunction, state: State, *arguments: Any) -> GatheredSamples:
    """Those that a function picks of each block by ``picked``; ``state`` has its offset."""
    _, (parts,) = rows.run(function, state, *arguments)
    parts.sort(key=lambda part: part[0])  # blocks come in any order
    _, numbers, values, blocks = zip(*parts, strict=True)
    block = join_blocks(blocks)
    block = block.changed(X=held(block.X))
    return GatheredSamples(np.concatenate(numbers), np.concatenate(values), block)


def picked(block: Block, offset: int, u: FloatArray, index: IndexArray) -> tuple[None, tuple[Sum]]:
    """Some rows of a block, with a value of each."""
    return None, (Sum([(offset, offset + index, u[index], _some(block, index))]),)


def sampled(rows: Rows, share: float) -> LocalRows | None:
    """About this share of the rows; None if a class is missing."""
    some = gathered(rows, _take, rows.offsets, share).block
    y, weights = some.y, some.weights
    if not (weights[y > 0.0].any() and weights[y < 0.0].any()):
        return None
    return memory_rows(some.changed(weights=weights / weights.sum()))


def _some(block: Block, index: IndexArray) -> Block:
    flip_multiples = None if block.flip_multiples is None else block.flip_multiples[index]
    return Block(
        block.X[index], block.y[index], block.weights[index], block.intercept, flip_multiples
    )


def _take(block: Block, offset: int, share: float) -> tuple[None, tuple[Sum]]:
    where = places(offset + np.arange(block.y.size))
    return picked(block, offset, where, np.flatnonzero(where < share))


def places(numbers: NDArray[np.int64 | np.uint64]) -> FloatArray:
    """A number in [0, 1) for each sample, as if drawn at random: the mixer of SplitMix64."""
    z = numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return np.asarray((z >> np.uint64(11)) * 2.0**-53)
