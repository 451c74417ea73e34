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

import uuid
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import reduce
from itertools import accumulate
from typing import Any, NamedTuple, TypeAlias

import dask
import dask.array as da
import numpy as np
from dask import delayed

from .arrays import FloatArray
from .blocks import Block, join_blocks
from .interface import BlockFunction, BlockState, Rows
from .reductions import Reduction, merge_reductions
from .threads import limit_threads

Delayed: TypeAlias = Any

#: Reductions combined by one task of the tree.
_FAN_IN = 8


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
        firsts = accumulate(lengths[:-1], initial=0)
        self.offsets: Any = tuple(literal(_Visit(first)) for first in firsts)

    def run(
        self, function: BlockFunction, state: Any = None, *arguments: Any
    ) -> tuple[Any, tuple[Any, ...]]:
        """Apply a block function to every block; new state and combined reductions."""
        # One task holds what the blocks share, so that it is sent and kept once.
        call = literal(_BlockCall(function, arguments, np.geterr()))
        before = (None,) * len(self._blocks) if state is None else state
        visits = [task(_visit, call, *both) for both in zip(self._blocks, before, strict=True)]
        *visits, total = kept([*visits, _combined([task(_reductions, each) for each in visits])])
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


def _unique(name: str) -> str:
    """A key that no other task has."""
    return f"drlogit-{name}-{uuid.uuid4().hex[:16]}"


def task(function: Callable[..., Any], *arguments: Any) -> Delayed:
    """A call of a function."""
    name = getattr(function, "__name__", "task").strip("_<>")
    return delayed(function, pure=False)(*arguments, dask_key_name=_unique(name))


def literal(value: Any) -> Delayed:
    """A value of this process."""
    return delayed(value, name=_unique("value"), traverse=False)


def kept(tasks: Iterable[Delayed]) -> tuple[Delayed, ...]:
    """The same tasks, begun, whose results stay where they are for as long as anybody asks."""
    return tuple(dask.persist(*tasks, optimize_graph=False))


def fetched(tasks: Sequence[Delayed]) -> tuple[Any, ...]:
    """The results of tasks that are kept."""
    try:
        from distributed import futures_of, get_client

        cluster = get_client()
    except (ImportError, ValueError):  # a scheduler in this process
        return tuple(dask.compute(*tasks))
    # Without another graph, which would take as long as the first.
    return tuple(cluster.gather(futures_of(list(tasks))))


def _combined(parts: list[Delayed]) -> Delayed:
    """Reductions combined in a tree, a few at a time."""
    while len(parts) > 1:
        parts = [task(_combine, *parts[i : i + _FAN_IN]) for i in range(0, len(parts), _FAN_IN)]
    return parts[0]


def _combine(*parts: tuple[Reduction, ...]) -> tuple[Reduction, ...]:
    return reduce(merge_reductions, parts)


@dataclass(frozen=True, eq=False)
class _BlockCall:
    """A block function, its further arguments, and how NumPy is to treat errors.

    No tuple: Dask may take one that begins with a function for a task.
    """

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


def _trusted(block: Block, trust: _Visit) -> Block:
    return block.with_trust(trust.state)
