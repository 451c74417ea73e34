"""Row blocks on the workers of a Dask cluster, or of one of Dask's schedulers in this process.

Blocks and everything of the length of the samples stay where they are.  Blocks that live together
form a group, one for each thread of a worker.  A pass over the data is one task per group, with
the driver's vectors beside it; a group combines the reductions of its blocks, and those of the
groups are combined in a tree.  So what travels per pass are vectors of length n and, in one pass of
an iteration of the interior point, n×n matrices: nothing that grows with N.

A group is visited in *pieces*, views of a few thousand samples (see ``_PIECE_ROWS``).  Workers give
every large temporary back to the system at once and pay for the next one page by page
(``MALLOC_TRIM_THRESHOLD_``); vectors of a piece are small enough not to be given back, and still in
the cache when they are read again.

Every task is pure, and its arguments are part of the graph.  When a worker dies, Dask computes
again what it held, by replaying the tasks that led there.  That history would grow with every
pass; it is cut by a checkpoint now and then (see ``_CHECKPOINT_EVERY``).

Imported only when a Dask collection is met.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple
from weakref import WeakSet

import dask
import dask.array as da
import numpy as np

from .arrays import FloatArray
from .blocks import Block, join_blocks
from .checks import check_features
from .dask_tasks import (
    Delayed,
    compute_each,
    elsewhere,
    fetched,
    kept,
    literal,
    task,
    tree,
    unique,
    workers_of,
)
from .interface import BlockFunction, BlockState, Rows
from .memory import visit_blocks
from .reductions import Reduction
from .threads import sharing_cores

#: Samples of a piece: their vectors have 125 kB, a little less than what the allocator takes from
#: the system and gives back one by one.  With half as many, a fit to 2·10⁶ × 20 numbers takes 8 %
#: longer in more calls.
_PIECE_ROWS = 16_000

#: Temporaries of a piece, and what visits to some of them keep, fit into so many arrays of the size
#: of a piece's.  Page faults of a new worker in its first fit as above, with κ = 1: 383 thousand
#: without, 44 with them.
_PINNED, _PINNED_BYTES = 96, 8 * _PIECE_ROWS
_PIECES_PER_PIN = 16

#: Passes that lead from one checkpoint of a state to the next.  A checkpoint takes the state by
#: way of this process, which the interior point, with its dozens of passes, rarely needs.
_CHECKPOINT_EVERY = 200

#: A state of more bytes than this is not taken here, and its history kept instead.
_CHECKPOINT_BYTES = 1 << 31


@dataclass(eq=False)
class DaskState:
    """What block functions remember: one task per group, and how many passes led there.

    Each task gives a :class:`_Visited`.  Tasks that nobody has waited for are begun by the first
    visit that needs them, in one message with its own.
    """

    parts: tuple[Delayed, ...]
    depth: int = 0
    begun: bool = True
    made_of: tuple[DaskState | DaskPair, ...] = ()

    def waiting(self) -> list[DaskState]:
        """The states not yet begun that have to be for this one to be known, each once."""
        if self.begun:
            return []
        return list(dict.fromkeys([*(s for each in self.made_of for s in each.waiting()), self]))


@dataclass(frozen=True, eq=False)
class DaskPair:
    """Two states, whose blocks are put together where they are visited."""

    one: DaskState
    other: DaskState

    @property
    def parts(self) -> tuple[tuple[Delayed, Delayed], ...]:
        return tuple(zip(self.one.parts, self.other.parts, strict=True))

    def as_state(self) -> DaskState:
        """The same as one state, whose tasks put the blocks together."""
        pairs = tuple(task(_paired, unique("pair"), *both) for both in self.parts)
        return DaskState(pairs, self.depth, False, (self,))

    @property
    def depth(self) -> int:
        return max(self.one.depth, self.other.depth)

    def waiting(self) -> list[DaskState]:
        return [*self.one.waiting(), *self.other.waiting()]


#: Block functions that were found to return no reductions: nobody has to wait for them.
_silent: WeakSet[BlockFunction] = WeakSet()


class DaskRows(Rows):
    """Row blocks that are Dask tasks, persisted on the workers.

    ``groups`` are tasks that give tuples of blocks: the pieces, as :func:`cut` cuts them, of the
    chunks whose numbers are in ``members``.
    """

    def __init__(
        self,
        groups: Sequence[Delayed],
        members: Sequence[Sequence[int]],
        lengths: Sequence[int],
        *,
        n_columns: int,
        n_nonzeros: int,
        intercept: bool,
    ) -> None:
        self.n_samples = sum(lengths)
        self.n_columns, self.n_nonzeros, self.intercept = n_columns, n_nonzeros, intercept
        self._lengths, self._members = tuple(lengths), members
        self._step = rows_of_piece(self.n_samples, n_columns, n_nonzeros)
        self.largest_block = min(self._step, max(lengths))
        self._blocks = DaskState(tuple(groups), begun=False)

    def _run(self, function: BlockFunction, state: Any, *arguments: Any) -> tuple[Any, Any]:
        name = unique(getattr(function, "__name__", "visit").strip("_<>"))
        groups = self._blocks.parts
        parts: tuple[tuple[Delayed, ...], ...] = ((),) * len(groups)
        if state is not None:  # each as an argument: a task does not hold on to those in a list
            pairs = isinstance(state, DaskPair)
            parts = state.parts if pairs else tuple((part,) for part in state.parts)
        call = _BlockCall(function, arguments, np.geterr())
        # One task holds what several groups share, so that it is sent and kept once.
        shared = () if len(groups) == 1 else (literal(call, f"{name}-arguments"),)
        visit = _visit if shared else partial(_visit, call)
        each = enumerate(zip(groups, parts, strict=True))
        visits = tuple(
            task(visit, f"{name}-{g}", *shared, g, group, *before) for g, (group, before) in each
        )
        depth = 1 if state is None else state.depth + 1
        after = DaskState(visits, depth, False, (self._blocks, *([] if state is None else [state])))
        merged: list[Reduction] = []
        if function not in _silent:  # or there is nothing to wait for
            sums = [task(_reductions, f"{name}-sums-{g}", part) for g, part in enumerate(visits)]
            *merged, spoiled = _fetched_with(after, tree(sums, name))
            if not merged:
                _silent.add(function)
            for place in sorted(spoiled.value):
                self._examine(place, name, call, parts, after)
        if after.depth >= _CHECKPOINT_EVERY:
            after = _checkpoint(after, name)
        return after, tuple(item.value for item in merged)

    def _examine(
        self,
        place: tuple[int, int],
        name: str,
        call: _BlockCall,
        parts: Sequence[tuple[Delayed, ...]],
        visited: DaskState,
    ) -> None:
        """Find out why a piece gave NaN; error if its data or a worker are to blame.

        NaN can be legitimate, at a trial point beyond the range of numbers, and is then left to
        the solver, as on any other rows.
        """
        g, position = place
        where = workers_of(visited.parts[g])
        with dask.annotate(**elsewhere(where)):
            again = f"{name}-again-{g}-{position}"
            verdict = task(
                partial(_reexamine, call), again, position, self._blocks.parts[g], *parts[g]
            )
        (reason,) = dask.compute(verdict)
        if reason is not None:
            chunk, rows = self._pieces(g)[position]
            by = f" by {', '.join(where)}" if where else ""
            raise ValueError(
                f"block {chunk} of X (rows {rows.start} to {rows.stop - 1}) gave NaN when "
                f"visited{by}: {reason}"
            )

    def _pieces(self, g: int) -> list[tuple[int, slice]]:
        """The chunk that each piece of a group is of, and its rows, counted over all samples."""
        first = np.concatenate([[0], np.cumsum(self._lengths)]).tolist()
        return [
            (k, slice(first[k] + rows.start, first[k] + rows.stop))
            for k in self._members[g]
            for rows in _slices(self._lengths[k], self._step)
        ]

    def pair(self, one: Any, other: Any) -> Any:
        """A state whose blocks are pairs of those of two states."""
        both = (each.as_state() if isinstance(each, DaskPair) else each for each in (one, other))
        return DaskPair(*both)

    def scatter(self, values: Any) -> Any:
        """Cut a vector of length N into the state that block functions see."""
        if dask.is_dask_collection(values):
            parts = vector_parts(values, self._lengths)
        else:
            pieces = np.split(np.asarray(values, dtype=np.float64), np.cumsum(self._lengths)[:-1])
            parts = [literal(piece, unique("part")) for piece in pieces]
        groups = [
            task(_cut_vectors, unique("part"), self._step, *(parts[k] for k in members))
            for members in self._members
        ]
        return DaskState(tuple(groups), begun=False)

    @cached_property
    def offsets(self) -> Any:
        """The number of the first sample of each block, counted over all of them."""
        every = (self._pieces(g) for g in range(len(self._members)))
        firsts = (_Visited(tuple(rows.start for _, rows in pieces)) for pieces in every)
        parts = tuple(literal(first, unique("offsets")) for first in firsts)
        return DaskState(parts, begun=False)

    def with_signs(self, signs: Any) -> DaskRows:
        """The same samples under other labels, as ±1: new blocks of the features that are there."""
        rows = self._with_groups(_relabelled, self.scatter(signs))
        rows.__dict__.pop("class_weights", None)
        rows.check_classes()  # weights may be lazy, so that nobody has looked before
        return rows

    def with_trust(self, trust: Any) -> DaskRows:
        """The same samples, whose labels cost these multiples of κ to flip."""
        return self._with_groups(_trusted, trust)

    def shifted(self, shift: FloatArray) -> DaskRows:
        """The same samples with features ``x - shift``, shifted where they are."""
        moved = literal(shift, unique("shift"))
        rows = self._with_groups(_shifted, DaskState((moved,) * len(self._members)))
        rows.__dict__.pop("column_scale", None)
        rows.__dict__.pop("column_means", None)
        rows.shift = shift
        return rows

    def _with_groups(self, function: Callable[..., Any], arguments: DaskState) -> DaskRows:
        """Rows whose groups are what a function makes of these, with an argument for each."""
        rows, both = copy(self), DaskPair(self._blocks, arguments)
        groups = tuple(task(function, unique("group"), *pair) for pair in both.parts)
        rows._blocks = DaskState(groups, 0, False, (both,))
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
        arrays: dict[int, Any] = {}
        for members, group in zip(self._members, state.parts, strict=True):
            last = 0
            for k in members:
                first, last = last, last + len(_slices(self._lengths[k], self._step))
                whole = task(_joined, unique("part"), group, first, last)
                arrays[k] = da.from_delayed(whole, shape=(self._lengths[k],), dtype=np.float64)
        return da.concatenate([arrays[k] for k in range(len(self._lengths))])

    def together(self) -> Block:
        """All samples as one block in memory, for solvers of other packages."""
        blocks: dict[tuple[int, int], Block] = {}
        for g, group in enumerate(dask.compute(*self._blocks.parts)):
            for (k, rows), block in zip(self._pieces(g), group, strict=True):
                blocks[k, rows.start] = block
        return join_blocks([blocks[place] for place in sorted(blocks)])


def rows_of_piece(n_samples: int, n_columns: int, n_nonzeros: int) -> int:
    """Samples of a piece: so many that it has no fewer entries than its Gram matrix."""
    return max(_PIECE_ROWS, -(-n_samples * n_columns**2 // max(n_nonzeros, 1)))


def cut(block: Block, step: int) -> list[Block]:
    """The pieces of a block, views of it; one of a block without samples."""
    return [block.part(rows.start, rows.stop) for rows in _slices(block.y.size, step)]


def _slices(length: int, step: int) -> list[slice]:
    return [slice(k, min(k + step, length)) for k in range(0, max(length, 1), step)]


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
            empty = literal(np.zeros(0, dtype=vector.dtype), unique("empty"))
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


class _Visited(NamedTuple):
    """What a visit leaves of each block of a group, and what it has for the driver."""

    states: tuple[BlockState, ...]
    reductions: tuple[Reduction, ...] = ()


class _Spoiled(Reduction[frozenset[tuple[int, int]]]):
    """Group and position of pieces whose reductions have NaN; combined as others are."""

    @staticmethod
    def _combine(one: Any, other: Any) -> Any:
        return one | other


def _visit(call: _BlockCall, group: int, blocks: Sequence[Block], *before: _Visited) -> _Visited:
    """One pass over a group, as it would go in the process of the driver."""
    states = _states(*before)
    pin = None

    def visit(position: int) -> tuple[BlockState, tuple[Reduction, ...]]:
        nonlocal pin
        if position % _PIECES_PER_PIN == 0:
            pin = _pin()
        state = None if states is None else states[position]
        new, reductions = call.function(blocks[position], state, *call.arguments)
        spoiled = {(group, position)} if any(item.has_nan for item in reductions) else ()
        return new, (*reductions, _Spoiled(frozenset(spoiled)))

    with np.errstate(**call.errors), sharing_cores():
        new, reductions = visit_blocks(visit, range(len(blocks)))
    return _Visited(tuple(new), reductions)


def _pin() -> Any:
    """Memory on top of some that is free, without which that would go back to the system.

    The allocator gives back what is free on top of all that is in use, so that temporaries of one
    piece would be paid for page by page again by the next.  It takes memory from the top only
    where there is none below, so the last of some equal arrays has the others' places below it.
    """
    return [np.empty(_PINNED_BYTES, dtype=np.uint8) for _ in range(_PINNED)][-1]


def _states(*before: _Visited) -> Sequence[BlockState] | None:
    """What the blocks of a group remember: of no visit before, of one, or of two in pairs."""
    if not before:
        return None
    return before[0].states if len(before) == 1 else _paired(*before).states


def _paired(one: _Visited, other: _Visited) -> _Visited:
    return _Visited(tuple(zip(one.states, other.states, strict=True)))


def _reexamine(
    call: _BlockCall, position: int, blocks: Sequence[Block], *before: _Visited
) -> str | None:
    """What was wrong with a block that gave NaN; None if it does so by the rules of arithmetic."""
    block = blocks[position]
    try:
        if block.y.size:
            check_features(block.X)
    except ValueError as error:
        return f"it has gone bad: {error}"
    states = _states(*before)
    state = () if states is None else (_Visited((states[position],)),)
    *_, spoiled = _visit(call, 0, (block,), *state).reductions
    if spoiled.value:
        return None
    return "visited again it does not, so that worker is not to be relied on"


def _reductions(visited: _Visited) -> tuple[Reduction, ...]:
    return visited.reductions


def _shifted(blocks: Sequence[Block], shift: FloatArray) -> tuple[Block, ...]:
    return tuple(block.shifted(shift) for block in blocks)


def _joined(visited: _Visited, first: int, last: int) -> FloatArray:
    return np.concatenate(visited.states[first:last])


def _relabelled(blocks: Sequence[Block], signs: _Visited) -> tuple[Block, ...]:
    return tuple(block.with_signs(part) for block, part in zip(blocks, signs.states, strict=True))


def _trusted(blocks: Sequence[Block], trust: _Visited) -> tuple[Block, ...]:
    return tuple(replace(b, trust=part) for b, part in zip(blocks, trust.states, strict=True))


def _cut_vectors(step: int, *vectors: Any) -> _Visited:
    """The pieces of some vectors, in a row."""
    arrays = (np.asarray(vector, dtype=np.float64) for vector in vectors)
    return _Visited(tuple(array[rows] for array in arrays for rows in _slices(array.size, step)))


def _fetched_with(state: DaskState, result: Delayed) -> Any:
    """A result, fetched once the tasks of a state and of those it waits for have been begun too."""
    states = state.waiting()
    *begun, last = kept([*(part for each in states for part in each.parts), result])
    (value,) = fetched([last])
    # Not before: what tasks are made of must not be let go while the scheduler reads their graph.
    for each in states:
        each.parts, begun = tuple(begun[: len(each.parts)]), begun[len(each.parts) :]
        each.begun, each.made_of = True, ()
    return value


def _checkpoint(state: DaskState, name: str) -> DaskState:
    """The same state with no history: by way of this process, if it is small enough for that."""
    if sum(compute_each(_size, name, state.parts)) > _CHECKPOINT_BYTES:
        return DaskState(state.parts)
    found = enumerate(dask.compute(*state.parts))
    states = [(k, _Visited(value.states)) for k, value in found]
    return DaskState(kept([literal(value, f"{name}-checkpoint-{k}") for k, value in states]))


def _size(state: BlockState) -> int:
    if isinstance(state, tuple):
        return sum(_size(part) for part in state)
    return int(getattr(state, "nbytes", 8))
