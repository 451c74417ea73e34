"""Row blocks on the workers of a Dask cluster, or of one of Dask's schedulers in this process.

Blocks and everything of the length of the samples stay where they are.  Blocks that live together
form a group, one for each thread of a worker.  A pass over the data is one task per group, with
the driver's vectors beside it; a group combines the reductions of its blocks, and those of the
groups are combined in a tree.  So what travels per pass are vectors of length n and, in one pass of
an iteration of the interior point, n×n matrices: nothing that grows with N.

Every task is pure, and its arguments are part of the graph.  When a worker dies, Dask computes
again what it held, by replaying the tasks that led there.  That history would grow with every
pass; it is cut by a checkpoint now and then (see ``_CHECKPOINT_EVERY``).

Imported only when a Dask collection is met.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any, TypeAlias

import dask
import dask.array as da
import numpy as np
from dask import delayed

from .arrays import FloatArray, Matrix
from .blocks import Block, join_blocks
from .checks import as_numbers, check_features, check_labels, check_unmasked, check_weights
from .interface import BlockFunction, BlockState, Rows
from .matrix import held, nonzeros
from .memory import visit_blocks
from .reductions import Reduction, Sum, merge_reductions
from .threads import sharing_cores, thread_count

Delayed: TypeAlias = Any

#: Reductions combined by one task of the tree.
_FAN_IN = 8

#: Passes that lead from one checkpoint of a state to the next.  A checkpoint takes the state by
#: way of this process, which the interior point, with its dozens of passes, rarely needs.
_CHECKPOINT_EVERY = 200

#: A state of more bytes than this is not taken here, and its history kept instead.
_CHECKPOINT_BYTES = 1 << 31


@dataclass(frozen=True, eq=False)
class DaskState:
    """What block functions remember: one task per group, and how many passes led there."""

    parts: tuple[Delayed, ...]
    depth: int = 0


class DaskRows(Rows):
    """Row blocks that are Dask tasks, persisted on the workers."""

    def __init__(self, blocks: Sequence[Delayed], facts: Sequence[_Facts]) -> None:
        self.lengths = tuple(fact.length for fact in facts)
        self.n_samples = sum(self.lengths)
        self.largest_block = max(self.lengths)
        self.n_columns = facts[0].n_columns
        self.intercept = facts[0].intercept
        self.n_nonzeros = sum(fact.n_nonzeros for fact in facts)
        self._members = _groups(blocks)
        groups = [
            _task(_together, _unique("group"), *(blocks[k] for k in members))
            for members in self._members
        ]
        self._groups = tuple(dask.persist(*groups, optimize_graph=False))
        self._silent: set[BlockFunction] = set()  # those without reductions

    def _run(self, function: BlockFunction, state: Any, *arguments: Any) -> tuple[Any, Any]:
        name = _unique(getattr(function, "__name__", "visit").strip("_<>"))
        parts = (None,) * len(self._groups) if state is None else state.parts
        # One task holds what all groups share, so that it is sent and kept once.
        shared = _literal((function, arguments, np.geterr()), f"{name}-arguments")
        merged: list[Reduction] = []
        if function in self._silent:  # there is nothing to wait for
            new = self._visits(_new_state, name, parts, shared)
            kept = dask.persist(*new, optimize_graph=False)
        else:
            done = self._visits(_visit, name, parts, shared)
            new = [_task(_first, f"{name}-state-{g}", pair) for g, pair in enumerate(done)]
            sums = [_task(_second, f"{name}-sums-{g}", pair) for g, pair in enumerate(done)]
            total = _tree(sums, name)
            *kept, total = dask.persist(*new, *sums, total, optimize_graph=False)
            ((*merged, spoiled),) = dask.compute(total)
            if not merged:
                self._silent.add(function)
            for block in sorted(spoiled.value):
                self._examine(block, name, parts, shared, kept[len(new) :])
        after = DaskState(tuple(kept[: len(new)]), 1 if state is None else state.depth + 1)
        if after.depth >= _CHECKPOINT_EVERY:
            after = _checkpoint(after, name)
        return after, tuple(item.value for item in merged)

    def _visits(
        self, visit: Callable[..., Any], name: str, parts: Sequence[Delayed], shared: Delayed
    ) -> list[Delayed]:
        groups = zip(self._groups, parts, self._members, strict=True)
        return [
            _task(visit, f"{name}-{g}", group, part, shared, members)
            for g, (group, part, members) in enumerate(groups)
        ]

    def _examine(
        self, k: int, name: str, parts: Sequence[Delayed], shared: Delayed, sums: Sequence[Delayed]
    ) -> None:
        """Find out why block k gave NaN; error if its data or a worker are to blame.

        NaN can be legitimate, at a trial point beyond the range of numbers, and is then left to
        the solver, as on any other rows.
        """
        g = next(g for g, members in enumerate(self._members) if k in members)
        where = _workers_of(sums[g])
        task = (_reexamine, f"{name}-again-{k}", self._groups[g], parts[g], shared)
        with dask.annotate(**_elsewhere(where)):
            verdict = _task(*task, self._members[g].index(k))
        (reason,) = dask.compute(verdict)
        if reason is not None:
            first = sum(self.lengths[:k])
            rows = f"rows {first} to {first + self.lengths[k] - 1}"
            by = f" by {', '.join(where)}" if where else ""
            raise ValueError(f"block {k} of X ({rows}) gave NaN when visited{by}: {reason}")

    def pair(self, one: Any, other: Any) -> Any:
        """A state whose blocks are pairs of those of two states."""
        parts = zip(one.parts, other.parts, strict=True)
        pairs = [_task(_pairs, _unique("pair"), *part) for part in parts]
        return DaskState(tuple(pairs), max(one.depth, other.depth))

    def scatter(self, values: Any) -> Any:
        """Cut a vector of length N into the state that block functions see."""
        if dask.is_dask_collection(values):
            parts = [_task(_as_floats, _unique("part"), p) for p in _cut_as(values, self.lengths)]
        else:
            pieces = np.split(np.asarray(values, dtype=np.float64), np.cumsum(self.lengths)[:-1])
            parts = [_literal(piece, _unique("part")) for piece in pieces]
        groups = [
            _task(_together, _unique("part"), *(parts[k] for k in members))
            for members in self._members
        ]
        return DaskState(tuple(groups))

    @property
    def offsets(self) -> Any:
        """The number of the first sample of each block, counted over all of them."""
        first = np.concatenate([[0], np.cumsum(self.lengths)[:-1]]).tolist()
        groups = [
            _literal(tuple(first[k] for k in members), _unique("offsets"))
            for members in self._members
        ]
        return DaskState(tuple(groups))

    def with_signs(self, signs: Any) -> DaskRows:
        """The same samples under other labels, as ±1: new blocks of the features that are there."""
        rows, parts = copy(self), self.scatter(signs).parts
        groups = [
            _task(_relabelled, _unique("group"), group, part)
            for group, part in zip(self._groups, parts, strict=True)
        ]
        rows._groups = tuple(dask.persist(*groups, optimize_graph=False))
        _check_both_classes(rows)  # weights may be lazy, so that nobody has looked before
        return rows

    def gather(self, state: Any) -> Any:
        """The state as a Dask array in the order of the samples, which stays where it is."""
        parts: dict[int, Any] = {}
        for members, group in zip(self._members, state.parts, strict=True):
            for position, k in enumerate(members):
                part = _task(_member, _unique("part"), group, position)
                parts[k] = da.from_delayed(part, shape=(self.lengths[k],), dtype=np.float64)
        return da.concatenate([parts[k] for k in range(len(self.lengths))])

    def shifted(self, shift: FloatArray) -> DaskRows:
        """The same samples with features ``x - shift``, shifted where they are."""
        rows = copy(self)
        rows.__dict__.pop("column_scale", None)
        rows.shift = shift
        moved = _literal(shift, _unique("shift"))
        groups = [_task(_shifted, _unique("group"), group, moved) for group in self._groups]
        rows._groups = tuple(dask.persist(*groups, optimize_graph=False))
        return rows

    def together(self) -> Block:
        """All samples as one block in memory, for solvers of other packages."""
        blocks: dict[int, Block] = {}
        for members, group in zip(self._members, dask.compute(*self._groups), strict=True):
            blocks.update(zip(members, group, strict=True))
        return join_blocks([blocks[k] for k in range(len(self.lengths))])


# --- tasks ----------------------------------------------------------------------------------


class _Spoiled(Reduction[frozenset[int]]):
    """Numbers of the blocks whose reductions have NaN; combined as other reductions are."""

    @staticmethod
    def _combine(one: frozenset[int], other: frozenset[int]) -> frozenset[int]:
        return one | other


def _visit(
    blocks: Sequence[Block],
    states: Sequence[BlockState] | None,
    shared: tuple[Any, ...],
    members: Sequence[int],
) -> tuple[tuple[BlockState, ...], tuple[Reduction, ...]]:
    """One pass over a group, as it would go in the process of the driver."""
    function, arguments, errors = shared

    def visit(position: int) -> tuple[BlockState, tuple[Reduction, ...]]:
        state = None if states is None else states[position]
        new, reductions = function(blocks[position], state, *arguments)
        spoiled = {members[position]} if any(item.has_nan for item in reductions) else ()
        return new, (*reductions, _Spoiled(frozenset(spoiled)))

    with np.errstate(**errors), sharing_cores():
        new, reductions = visit_blocks(visit, range(len(blocks)))
    return tuple(new), reductions


def _new_state(*arguments: Any) -> tuple[BlockState, ...]:
    return _visit(*arguments)[0]


def _reexamine(
    blocks: Sequence[Block],
    states: Sequence[BlockState] | None,
    shared: tuple[Any, ...],
    position: int,
) -> str | None:
    """What was wrong with a block that gave NaN; None if it does so by the rules of arithmetic."""
    block = blocks[position]
    try:
        if block.y.size:
            check_features(block.X)
    except ValueError as error:
        return f"it has gone bad: {error}"
    state = None if states is None else (states[position],)
    *_, spoiled = _visit((block,), state, shared, (position,))[1]
    if spoiled.value:
        return None
    return "visited again it does not, so that worker is not to be relied on"


def _first(pair: tuple[Any, Any]) -> Any:
    return pair[0]


def _second(pair: tuple[Any, Any]) -> Any:
    return pair[1]


def _together(*parts: Any) -> tuple[Any, ...]:
    return parts


def _shifted(blocks: Sequence[Block], shift: FloatArray) -> tuple[Block, ...]:
    return tuple(block.shifted(shift) for block in blocks)


def _member(parts: Sequence[Any], position: int) -> Any:
    return parts[position]


def _relabelled(blocks: Sequence[Block], signs: Sequence[FloatArray]) -> tuple[Block, ...]:
    return tuple(block.with_signs(part) for block, part in zip(blocks, signs, strict=True))


def _pairs(one: Sequence[Any], other: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(zip(one, other, strict=True))


def _combine(*parts: tuple[Reduction, ...]) -> tuple[Reduction, ...]:
    return reduce(merge_reductions, parts)


def _as_floats(values: Any) -> FloatArray:
    return np.asarray(values, dtype=np.float64)


# --- graphs ---------------------------------------------------------------------------------


def _unique(name: str) -> str:
    return f"drlogit-{name}-{uuid.uuid4().hex[:16]}"


def _task(function: Callable[..., Any], key: str, *arguments: Any) -> Delayed:
    return delayed(function, pure=False)(*arguments, dask_key_name=key)


def _literal(value: Any, key: str) -> Delayed:
    return delayed(value, name=key, traverse=False)


def _compute(function: Callable[..., Any], name: str, parts: Iterable[Delayed]) -> tuple[Any, ...]:
    """A function of each part, in this process's hands."""
    label = f"{name}-{function.__name__.strip('_')}"
    return tuple(dask.compute(*[_task(function, f"{label}-{k}", p) for k, p in enumerate(parts)]))


def _tree(parts: list[Delayed], name: str) -> Delayed:
    """Combine reductions, ``_FAN_IN`` at a time."""
    level = 0
    while len(parts) > 1:
        groups = [parts[i : i + _FAN_IN] for i in range(0, len(parts), _FAN_IN)]
        parts = [_task(_combine, f"{name}-sum-{level}-{g}", *p) for g, p in enumerate(groups)]
        level += 1
    return parts[0]


def _checkpoint(state: DaskState, name: str) -> DaskState:
    """The same state with no history: by way of this process, if it is small enough for that."""
    if sum(_compute(_size, name, state.parts)) > _CHECKPOINT_BYTES:
        return DaskState(state.parts)
    values = dask.compute(*state.parts)
    parts = [_literal(value, f"{name}-checkpoint-{k}") for k, value in enumerate(values)]
    return DaskState(tuple(dask.persist(*parts, optimize_graph=False)))


def _size(state: BlockState) -> int:
    if isinstance(state, tuple):
        return sum(_size(part) for part in state)
    return int(getattr(state, "nbytes", 8))


# --- where things are -----------------------------------------------------------------------


def _client() -> Any:
    """The client of the cluster in use; None for Dask's schedulers in this process."""
    try:
        from distributed import get_client

        return get_client()
    except (ImportError, ValueError):
        return None


def _workers_of(part: Delayed) -> list[str]:
    client = _client()
    return [] if client is None else sorted(client.who_has(part).get(part.key, ()))


def _elsewhere(workers: list[str]) -> dict[str, Any]:
    """Annotations of a task that had better not run on these workers."""
    client = _client()
    others = [] if client is None else sorted(set(client.nthreads()) - set(workers))
    return {"workers": others, "allow_other_workers": True} if others else {}


def _groups(blocks: Sequence[Delayed]) -> list[list[int]]:
    """Numbers of the blocks that are visited by one task: a share of those on one worker."""
    client = _client()
    homes: dict[str, list[int]] = defaultdict(list)
    if client is None:
        threads, homes["here"] = {"here": thread_count()}, list(range(len(blocks)))
    else:
        threads, places = client.nthreads(), client.who_has(list(blocks))
        for k, block in enumerate(blocks):
            homes[min(places.get(block.key, ()), default="")].append(k)
    return [
        share.tolist()
        for worker, members in sorted(homes.items())
        for share in np.array_split(members, min(threads.get(worker, 1), len(members)))
    ]


# --- from collections to rows ---------------------------------------------------------------


@dataclass(frozen=True)
class _Facts:
    """What the driver knows about a block."""

    length: int
    n_columns: int
    n_nonzeros: int
    intercept: bool


def dask_rows(
    X: Any, y: Any, sample_weight: Any, *, intercept: bool, signs: bool = False
) -> DaskRows:
    """Rows of Dask arrays or data frames, checked block by block where they are.

    ``y`` and ``sample_weight`` may be Dask collections or anything in memory; with ``signs``, y is
    known to hold ±1.
    """
    features = [
        _task(_features, _unique("features"), part, k) for k, part in enumerate(_row_parts(X))
    ]
    features = list(dask.persist(*features, optimize_graph=False))
    shapes = _compute(_shape, _unique("shape"), features)
    widths = {width for _, width in shapes}
    if len(widths) > 1:
        raise ValueError(f"blocks of X must have equally many columns, got {sorted(widths)}")
    lengths = [length for length, _ in shapes]
    if sum(lengths) == 0:
        raise ValueError("X must have at least one row, got none")
    labels = _sign_parts(y, lengths, known=signs)
    weights = _weight_parts(sample_weight, lengths)
    blocks = [
        _task(_block, _unique("block"), *parts, intercept)
        for parts in zip(features, labels, weights, strict=True)
    ]
    blocks = list(dask.persist(*blocks, optimize_graph=False))
    rows = DaskRows(blocks, _compute(_facts, _unique("facts"), blocks))
    _check_both_classes(rows)
    return rows


def _check_both_classes(rows: DaskRows) -> None:
    _, (mass,) = rows.run(_class_weights)
    for total, name in zip(mass, ("smaller", "larger"), strict=True):
        if not total > 0.0:
            raise ValueError(
                f"every sample with the {name} label has weight zero; two classes are wanted"
            )


def _row_parts(X: Any) -> list[Delayed]:
    """The row blocks of a Dask array or data frame."""
    if isinstance(X, da.Array):
        if X.ndim != 2:
            raise ValueError(f"X must have two dimensions, got {X.ndim}")
        if X.numblocks[1] > 1:
            X = X.rechunk({1: -1})
    return list(np.ravel(np.asarray(X.to_delayed(), dtype=object)))


def _cut_as(vector: Any, lengths: Sequence[int], name: str = "values") -> list[Delayed]:
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
            empty = _literal(np.zeros(0, dtype=vector.dtype), _unique("empty"))
            return [next(filled) if length else empty for length in lengths]
    parts = list(np.ravel(np.asarray(vector.to_delayed(), dtype=object)))
    if len(parts) != len(lengths):
        raise ValueError(
            f"{name} must have as many partitions as X if their lengths are unknown: "
            f"{len(lengths)}, got {len(parts)}"
        )
    return parts


def _sign_parts(y: Any, lengths: Sequence[int], *, known: bool) -> list[Delayed]:
    """Labels as ±1, one byte each, for every block; ``known`` if they are ±1 already."""
    if not dask.is_dask_collection(y):
        signs = (y if known else check_labels(y, sum(lengths))).astype(np.int8)
        pieces = np.split(signs, np.cumsum(lengths)[:-1])
        return [_literal(piece, _unique("signs")) for piece in pieces]
    parts = _cut_as(y, lengths, "y")
    positive: Any = 1
    if not known:
        found = np.concatenate(_compute(_distinct, _unique("labels"), parts))
        check_labels(found, found.size)  # two kinds, none missing
        positive = np.unique(found)[1]
    return [
        _task(_signs, _unique("signs"), part, positive, k, length)
        for k, (part, length) in enumerate(zip(parts, lengths, strict=True))
    ]


def _weight_parts(sample_weight: Any, lengths: Sequence[int]) -> list[Delayed]:
    """Weights for every block, of which the sum over all is one."""
    if sample_weight is None:
        return [_literal(1.0 / sum(lengths), _unique("weight"))] * len(lengths)
    if not dask.is_dask_collection(sample_weight):
        weights = check_weights(sample_weight, sum(lengths))
        pieces = np.split(weights, np.cumsum(lengths)[:-1])
        return [_literal(piece, _unique("weights")) for piece in pieces]
    parts = _cut_as(sample_weight, lengths, "sample_weight")
    sums = np.array(_compute(_checked_sum, _unique("weights"), parts))
    largest = float(sums[:, 0].max())
    if largest == 0.0:
        raise ValueError("sample_weight must have a positive entry, got all zeros")
    total = float((sums[:, 0] / largest) @ sums[:, 1])
    return [_task(_normalised, _unique("weights"), part, largest, total) for part in parts]


def map_rows(function: Callable[[Any], Any], X: Any, width: int | None, dtype: Any) -> Any:
    """What a function makes of each row block, as a Dask array of ``width`` columns, or of none."""
    return _mapped(function, X, _row_parts(X), width, dtype)


def encode(y: Any) -> tuple[Any, Any]:
    """The labels that occur in a Dask vector, in order, and the number of each sample's."""
    parts = list(np.ravel(np.asarray(y.to_delayed(), dtype=object)))
    classes = np.unique(np.concatenate(_compute(_distinct, _unique("labels"), parts)))
    return classes, _mapped(partial(_codes, classes), y, parts, None, np.intp)


def _mapped(
    function: Callable[[Any], Any], whole: Any, parts: list[Delayed], width: int | None, dtype: Any
) -> Any:
    lengths = whole.chunks[0] if isinstance(whole, da.Array) else [np.nan] * len(parts)
    arrays = [
        da.from_delayed(
            _task(_if_any, _unique("rows"), function, part, width, dtype),
            shape=(length,) if width is None else (length, width),
            dtype=dtype,
        )
        for part, length in zip(parts, lengths, strict=True)
    ]
    return da.concatenate(arrays, allow_unknown_chunksizes=True)


def _if_any(function: Callable[[Any], Any], part: Any, width: int | None, dtype: Any) -> Any:
    """What a function makes of rows; it is not asked where there are none."""
    if part.shape[0]:
        return function(part)
    return np.zeros(0 if width is None else (0, width), dtype=dtype)


def _codes(classes: Any, labels: Any) -> Any:
    return np.searchsorted(classes, np.asarray(labels).ravel())


# --- what workers do with the parts ---------------------------------------------------------


def _features(part: Any, index: int) -> Matrix:
    """The features of a block, checked wherever and whenever it is made."""
    if hasattr(part, "tocsr") and not hasattr(part, "indptr"):  # the sparse package's arrays
        part = part.tocsr()
    if part.shape[0] == 0:
        return np.zeros(part.shape)
    try:
        return held(check_features(part))
    except ValueError as error:
        raise ValueError(f"block {index} of X: {error}") from error


def _shape(matrix: Matrix) -> tuple[int, int]:
    return int(matrix.shape[0]), int(matrix.shape[1])


def _distinct(labels: Any) -> Any:
    check_unmasked(labels, "y")
    values = np.asarray(labels).ravel()
    if values.dtype != object:
        return np.unique(values)
    distinct = list(dict.fromkeys(values.tolist()))  # not all objects can be sorted
    return np.array(distinct, dtype=str if {*map(type, distinct)} == {str} else object)


def _signs(labels: Any, positive: Any, index: int, length: int) -> Any:
    values = np.asarray(labels).ravel()
    if values.size != length:
        raise ValueError(
            f"block {index} of y must have {length} labels, as X has, got {values.size}"
        )
    return np.where(values == positive, np.int8(1), np.int8(-1))


def _checked_sum(weights: Any) -> tuple[float, float]:
    """The largest weight of a part, and their sum in units of it."""
    values = as_numbers(weights, "sample_weight").ravel()
    if values.size == 0 or not values.any():
        return 0.0, 0.0
    check_weights(values, values.size)
    return float(values.max()), float((values / values.max()).sum())


def _normalised(weights: Any, largest: float, total: float) -> FloatArray:
    return np.asarray(weights, dtype=np.float64).ravel() / largest / total


def _block(features: Matrix, signs: Any, weights: Any, intercept: bool) -> Block:
    length = features.shape[0]
    if isinstance(weights, float):
        weights = np.full(length, weights)
    if weights.size != length:
        raise ValueError(
            f"blocks of sample_weight must be cut as X is: {length}, got {weights.size}"
        )
    return Block(features, signs.astype(np.float64), weights, intercept)


def _facts(block: Block) -> _Facts:
    return _Facts(block.y.size, block.n_columns, nonzeros(block.X), block.intercept)


def _class_weights(block: Block, _: BlockState) -> tuple[None, tuple[Sum]]:
    return None, (Sum(block.by_class(block.weights).sum(axis=0)),)
