"""Row blocks on the workers of a Dask cluster, or of one of Dask's schedulers in this process.

Blocks and everything of the length of the samples stay where they are.  A pass over the data is
one task per block, with the driver's vectors beside it, and reductions are combined in a tree.  So
what travels per pass are vectors of length n and, in one pass of an iteration of the interior
point, n×n matrices: nothing that grows with N.

Every task is pure, and its arguments are part of the graph.  When a worker dies, Dask computes
again what it held, by replaying the tasks that led there.

Imported only when a Dask collection is met.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from itertools import accumulate
from typing import Any, NamedTuple

import dask
import dask.array as da
import numpy as np

from .arrays import FloatArray
from .blocks import Block, join_blocks
from .dask_tasks import Delayed, combined, fetched, kept, literal, task
from .interface import BlockFunction, BlockState, Rows
from .reductions import Reduction
from .threads import limit_threads


class DaskRows(Rows):
    """Row blocks that are Dask tasks, persisted on the workers."""

    def __init__(
        self,
        blocks: Sequence[Delayed],
        lengths: Sequence[int],
        *,
        n_columns: int,
        n_nonzeros: int,
        intercept: bool,
    ) -> None:
        self.n_samples, self.largest_block = sum(lengths), max(lengths)
        self.n_columns, self.n_nonzeros, self.intercept = n_columns, n_nonzeros, intercept
        self._lengths = tuple(lengths)
        self._blocks = kept(blocks)

    def run(
        self, function: BlockFunction, state: Any = None, *arguments: Any
    ) -> tuple[Any, tuple[Any, ...]]:
        """Apply a block function to every block; new state and combined reductions."""
        # One task holds what the blocks share, so that it is sent and kept once.
        call = literal(_BlockCall(function, arguments, np.geterr()))
        before = (None,) * len(self._blocks) if state is None else state
        visits = [task(_visit, call, *both) for both in zip(self._blocks, before, strict=True)]
        *visits, total = kept([*visits, combined([task(_reductions, each) for each in visits])])
        (merged,) = fetched([total])
        return tuple(visits), tuple(item.value for item in merged)

    def pair(self, one: Any, other: Any) -> Any:
        """A state whose blocks are pairs of those of two states."""
        return tuple(task(_paired, *both) for both in zip(one, other, strict=True))

    def scatter(self, values: Any) -> Any:
        """Cut a vector of length N into the state that block functions see."""
        if dask.is_dask_collection(values):
            parts = vector_parts(values, self._lengths)
        else:
            parts = cut_vector(values, self._lengths)
        return kept(task(_numbers, part) for part in parts)

    @property
    def offsets(self) -> Any:
        """The number of the first sample of each block, counted over all of them."""
        firsts = accumulate(self._lengths[:-1], initial=0)
        return tuple(literal(_Visit(first)) for first in firsts)

    def with_signs(self, signs: Any) -> DaskRows:
        """The same samples under other labels, as ±1: new blocks of the features that are there."""
        rows = copy(self)
        parts = zip(self._blocks, self.scatter(signs), strict=True)
        rows._blocks = kept(task(_relabelled, *both) for both in parts)
        rows.__dict__.pop("class_weights", None)
        rows.check_classes()  # weights may be lazy, so that nobody has looked before
        return rows

    def with_trust(self, trust: Any) -> DaskRows:
        """The same samples, whose labels cost these multiples of κ to flip."""
        rows = copy(self)
        parts = zip(self._blocks, trust, strict=True)
        rows._blocks = kept(task(_trusted, *both) for both in parts)
        return rows

    def shifted(self, shift: FloatArray) -> DaskRows:
        """The same samples with features ``x - shift``, shifted where they are."""
        rows, moved = copy(self), literal(shift)
        rows._blocks = kept(task(Block.shifted, block, moved) for block in self._blocks)
        rows.__dict__.pop("column_moments", None)
        rows.shift = shift
        return rows

    def check_classes(self) -> None:
        """``ValueError`` unless there are samples of both classes that weigh anything."""
        for total, name in zip(self.class_weights, ("smaller", "larger"), strict=True):
            if not total > 0.0:
                raise ValueError(
                    f"every sample with the {name} label has weight zero; two classes are wanted"
                )

    def gather(self, state: Any) -> Any:
        """The state as a Dask array in the order of the samples, which stays where it is."""
        arrays = [
            da.from_delayed(task(_state, part), shape=(length,), dtype=np.float64)
            for part, length in zip(state, self._lengths, strict=True)
        ]
        return da.concatenate(arrays)

    def together(self) -> Block:
        """All samples as one block in memory, for solvers of other packages."""
        return join_blocks(dask.compute(*self._blocks))


def cut_vector(vector: Any, lengths: Sequence[int]) -> list[Delayed]:
    """The parts of a vector in memory, cut as X is."""
    return [literal(part) for part in np.split(vector, np.cumsum(lengths)[:-1])]


def vector_parts(vector: Any, lengths: Sequence[int], name: str = "values") -> list[Delayed]:
    """The parts of a Dask vector, cut as X is."""
    if isinstance(vector, da.Array):
        if vector.ndim == 2 and vector.shape[1] == 1:
            vector = vector[:, 0]
        if vector.ndim != 1:
            raise ValueError(f"{name} must have one dimension, got {vector.ndim}")
        known = not np.isnan(vector.chunks[0]).any()
        if known and sum(vector.chunks[0]) != sum(lengths):
            raise ValueError(f"{name} must have {sum(lengths)} entries, got {vector.shape[0]}")
        if known and vector.chunks[0] != tuple(lengths):
            # Chunks without rows cannot be asked for.
            vector = vector.rechunk((tuple(length for length in lengths if length),))
            filled = iter(np.ravel(vector.to_delayed()))
            empty = literal(np.zeros(0, dtype=vector.dtype))
            return [next(filled) if length else empty for length in lengths]
    parts = list(np.ravel(np.asarray(vector.to_delayed(), dtype=object)))
    if len(parts) != len(lengths):
        raise ValueError(
            f"{name} must have as many partitions as X if their lengths are unknown: "
            f"{len(lengths)}, got {len(parts)}"
        )
    return parts


# --- tasks ----------------------------------------------------------------------------------


class _BlockCall(NamedTuple):
    """A block function, its further arguments, and how NumPy is to treat errors."""

    function: BlockFunction
    arguments: tuple[Any, ...]
    errors: Any


class _Visit(NamedTuple):
    """What a visit leaves of a block, where it stays, and what it has for the driver."""

    state: BlockState
    reductions: tuple[Reduction, ...] = ()


def _visit(call: _BlockCall, block: Block, before: _Visit | None) -> _Visit:
    """One pass over a block, as it would go in the process of the driver."""
    state = None if before is None else before.state
    with np.errstate(**call.errors), limit_threads(1):
        return _Visit(*call.function(block, state, *call.arguments))


def _state(visit: _Visit) -> BlockState:
    return visit.state


def _reductions(visit: _Visit) -> tuple[Reduction, ...]:
    return visit.reductions


def _paired(one: _Visit, other: _Visit) -> _Visit:
    return _Visit((one.state, other.state))


def _numbers(part: Any) -> _Visit:
    return _Visit(np.asarray(part, dtype=np.float64))


def _relabelled(block: Block, signs: _Visit) -> Block:
    return block.with_signs(signs.state)


def _trusted(block: Block, trust: _Visit) -> Block:
    return replace(block, trust=trust.state)
