"""Row blocks with the workers of a Dask cluster, or Dask's collections brought to this process.

On a cluster each worker has one actor, a :class:`Share`: the chunks of X that it computed, as
:class:`~drlogit.rows.local.LocalRows` that its threads visit, and what block functions keep beside
them.  A visit is one call for each worker.  What travels are vectors of length n and, once per
iteration of the interior point, n×n matrices: nothing that grows with N.

An actor that is lost is not replaced in silence, because what it kept is lost with it.  Calls name
the actor that they are for, and a worker that is lost, or does not answer, is a
:class:`~drlogit.rows.interface.WorkersLostError`.  The fit then begins again from its last model,
with new actors, and Dask computes the chunks of X again.

Imported only when a Dask collection is met.
"""

from __future__ import annotations

import time
import uuid
import weakref
from collections.abc import Callable, Sequence
from copy import copy
from functools import partial, reduce
from itertools import accumulate, count
from typing import Any, TypeAlias

import dask
import dask.array as da
import numpy as np
from dask import delayed
from dask.base import get_scheduler

from .arrays import FloatArray, IndexArray, Matrix
from .blocks import Block
from .checks import (
    as_numbers,
    check_features,
    check_unmasked,
    check_weights,
    distinct,
    find_classes,
    signs_of,
)
from .interface import BlockFunction, Rows, State, WorkersLostError, is_over
from .local import LocalRows
from .matrix import held, nonzeros, row_chunks
from .reductions import Reduction, merge_reductions
from .threads import threads_for

#: A part of a collection that is still to be computed, or a future of it, or the part itself.
Part: TypeAlias = Any

#: Seconds between looks at a visit that takes long, and without an answer until a worker counts as
#: lost: first while there is time, then after the time limit or an interrupt.
_POLL, _SILENT, _SILENT_AT_THE_END = 0.5, 10.0, 2.0

#: Seconds for which no work is given to a worker that was silent.  Dask itself gives up on it then.
_AVOIDED = 300.0

#: How many times the size of X its workers must have in memory: X, a chunk's copy, vectors beside.
_TIMES = 3.0


# --- on a worker ----------------------------------------------------------------------------


class Handle(State):
    """What every worker keeps under a number, until this is collected on the client.

    The ``key`` of a pair has those of two ``parts``.  What travels has the key only.
    """

    def __init__(self, key: Any, *parts: Handle) -> None:
        self.key, self.parts = key, parts

    def __reduce__(self) -> Any:
        return Handle, (self.key,)


#: What every worker keeps from the beginning, and where nothing worth keeping is kept.
_ROWS, _OFFSETS, _NOTHING = Handle(0), Handle(1), Handle(2)


class Share:
    """The rows of one worker, and what is kept beside them under numbers."""

    def __init__(self, n_threads: int, options: Any, *parts: Any) -> None:
        self.token = uuid.uuid4().hex  # another one if Dask makes the actor once more
        rows = _rows_of(options, n_threads, *parts)
        self.kept: dict[int, Any] = {_ROWS.key: rows, _OFFSETS.key: rows.offsets}

    def begin(self) -> str:
        """The name of this very actor."""
        return self.token

    async def answers(self) -> None:
        """Answer beside any visit, in the worker's own loop."""

    def call(self, token: str, freed: list[int], key: int, function: Any, *given: Any) -> Any:
        """Keep the first of two values that a function returns, and return the other."""
        if token != self.token:
            raise WorkersLostError
        for each in freed:
            self.kept.pop(each, None)
        own = [self._kept(each.key) if isinstance(each, Handle) else each for each in given]
        with np.errstate(all="ignore"):
            self.kept[key], found = function(*own)
        return found

    def _kept(self, key: Any) -> Any:
        if not isinstance(key, tuple):
            return self.kept[key]
        return tuple(zip(*map(self._kept, key), strict=True))


def _called(actor: Any, token: str, key: int, function: Any, *given: Any) -> Any:
    """The same in a task."""
    return actor.call(token, [], key, function, *given).result()


def _derived(rows: LocalRows, name: str, *arguments: Any) -> tuple[LocalRows, None]:
    """Other rows by a method of rows."""
    return getattr(rows, name)(*arguments), None


def _scattered(rows: LocalRows, parts: Sequence[Any]) -> tuple[Any, None]:
    return rows.scatter(np.concatenate([np.ravel(part) for part in parts])), None


def _joined(state: Any) -> tuple[None, FloatArray]:
    return None, np.concatenate(state)


# --- on the client --------------------------------------------------------------------------


class Crew:
    """The actors of a fit, one for each worker that has chunks of X."""

    def __init__(self, client: Any, futures: Sequence[Any], workers: Sequence[str]) -> None:
        self.client, self.futures, self.workers = client, futures, workers
        _wait_for(futures)
        self.actors = client.gather(futures)
        for actor in self.actors:
            vars(actor)["_future"] = None  # a reference in a cycle, which would keep X for long
        self._freed: list[list[int]] = [[] for _ in futures]
        self._numbers = count(_NOTHING.key + 1)
        self.tokens = [self._value(k, actor.begin()) for k, actor in enumerate(self.actors)]

    def _handle(self) -> Handle:
        handle = Handle(next(self._numbers))
        weakref.finalize(handle, self._free, handle.key)
        return handle

    def _free(self, key: int) -> None:
        """Let the workers forget a number, with their next call."""
        for freed in self._freed:
            freed.append(key)

    def call(self, function: Any, *given: Any) -> Any:
        """Call a function on every worker: the handle of what is kept, and what is returned."""
        handle, calls = self._handle(), []
        # Dask would keep the handles.
        sent = [Handle(each.key) if isinstance(each, Handle) else each for each in given]
        for k, actor in enumerate(self.actors):
            freed, self._freed[k] = self._freed[k], []
            try:
                calls.append(actor.call(self.tokens[k], freed, handle.key, function, *sent))
            except RuntimeError:  # the scheduler knows that it is lost
                raise WorkersLostError from None
        return handle, [self._value(k, each) for k, each in enumerate(calls)]

    def put(self, function: Any, given: Any, each: Sequence[list[Part]]) -> Handle:
        """The same with parts of collections for each worker, which take the shortest way there."""
        handle, tasks = self._handle(), []
        for actor, token, parts, worker in zip(
            self.futures, self.tokens, each, self.workers, strict=True
        ):
            sent = actor, token, handle.key, function, given, parts
            tasks.append(self.client.submit(_called, *sent, workers=[worker], pure=False))
        _wait_for(tasks)
        self.client.gather(tasks)
        return handle

    def _value(self, k: int, call: Any) -> Any:
        """The result of a call, unless its worker is lost or silent."""
        asked, since = None, time.monotonic()
        while True:
            try:
                return call.result(timeout=_POLL)
            except TimeoutError as late:
                late.__traceback__ = None  # Dask keeps the error, and that would keep our rows
            except OSError:
                raise WorkersLostError from None
            if self.futures[k].status != "finished":
                raise WorkersLostError
            if asked is None or asked.done():
                asked, since = self.actors[k].answers(), time.monotonic()
            elif time.monotonic() - since > (_SILENT_AT_THE_END if is_over() else _SILENT):
                _silent[self.workers[k]] = time.monotonic()
                self.client.cancel(self.futures)  # so that Dask forgets what is there
                raise WorkersLostError


class DaskRows(Rows):
    """Samples on the workers of a cluster."""

    def __init__(self, crew: Crew, chunks: Sequence[Sequence[int]], lengths: Sequence[int]) -> None:
        self.n_samples, self.largest_block = sum(lengths), max(lengths)
        self._crew, self._chunks, self._lengths = crew, chunks, lengths
        self._rows: Any = _ROWS
        self.offsets: Any = _OFFSETS

    def visit(
        self, function: BlockFunction, state: Any, arguments: tuple[Any, ...]
    ) -> tuple[Any, tuple[Reduction, ...]]:
        """A call for each worker."""
        kept, found = self._crew.call(LocalRows.visit, self._rows, function, state, arguments)
        return kept, reduce(merge_reductions, found)

    def pair(self, one: Any, other: Any) -> Any:
        """A state whose blocks are pairs of those of two states."""
        return Handle((one.key, other.key), one, other)

    def scatter(self, values: Any) -> Any:
        """Cut a vector of length N into the state that block functions see."""
        parts = _begun(_cut(values, self._lengths, "values"))
        shares = [[parts[k] for k in own] for own in self._chunks]
        return self._crew.put(_scattered, self._rows, shares)

    def with_flip_multiples(self, flip_multiples: Any) -> DaskRows:
        """The same samples, whose labels cost these multiples of κ to flip."""
        return self._derived("with_flip_multiples", flip_multiples)

    def with_columns(self, features: IndexArray) -> DaskRows:
        """The same samples with some of their features only, copied where they are."""
        shift, width = self.shift, features.size + self.intercept
        return self._derived(
            "with_columns",
            features,
            n_columns=width,
            n_nonzeros=self.n_nonzeros * width // self.n_columns,  # about as many
            shift=None if shift is None else shift[features],
        )

    def with_features(self, features: Any, n_columns: int) -> DaskRows:
        """The same samples with other features, a dense array for each block."""
        size = {"n_columns": n_columns, "n_nonzeros": self.n_samples * n_columns}
        return self._derived("with_features", features, n_columns, **size, shift=None)

    def shifted(self, shift: FloatArray) -> DaskRows:
        """The same samples with features ``x - shift``, shifted where they are."""
        return self._derived("shifted", shift, shift=shift)

    def _derived(self, name: str, *arguments: Any, **changed: Any) -> DaskRows:
        rows = copy(self)
        rows.__dict__.pop("totals", None)
        rows.__dict__ |= changed
        rows._rows = self._crew.call(_derived, self._rows, name, *arguments)[0]
        return rows

    def gather(self, state: Any) -> Any:
        """The state as a Dask array in the order of the samples; the workers keep it meanwhile."""
        arrays: dict[int, Any] = {}
        for actor, token, chunks in zip(
            self._crew.futures, self._crew.tokens, self._chunks, strict=True
        ):
            whole = delayed(_called, pure=False)(actor, token, _NOTHING.key, _joined, state)
            ends = accumulate(self._lengths[k] for k in chunks)
            for k, end in zip(chunks, ends, strict=True):
                part = whole[end - self._lengths[k] : end]
                arrays[k] = da.from_delayed(part, shape=(self._lengths[k],), dtype=np.float64)
        return da.concatenate([arrays[k] for k in sorted(arrays)])


# --- from collections to rows ---------------------------------------------------------------

#: When workers did not answer.
_silent: dict[str, float] = {}


def dask_rows(X: Any, signs: Any, sample_weight: Any = None, *, intercept: bool) -> Rows:
    """Rows of a Dask array or frame, on its cluster if there is one, else in this process.

    The signs of the labels and ``sample_weight`` may be Dask collections or in memory.
    """
    if isinstance(getattr(X, "_meta", None), np.ndarray) and not np.isnan(X.size):
        _check_memory(X.nbytes)
    features = _begun([delayed(_features)(part, k) for k, part in enumerate(_row_parts(X))])
    shapes = np.array(_values([delayed(_shape)(part) for part in features]))
    lengths, widths, counts, sizes = shapes.T.tolist()
    if len({*widths}) > 1:
        raise ValueError(f"blocks of X must have equally many columns, got {sorted({*widths})}")
    if sum(lengths) == 0:
        raise ValueError("X must have at least one row, got none")
    signs = signs > 0.0  # a byte each to send
    numbers = np.flatnonzero(lengths).tolist()  # a chunk without rows has nothing to do
    weights, total = _weight_parts(sample_weight, lengths)
    parts = (
        numbers,
        list(accumulate([lengths[k] for k in numbers[:-1]], initial=0)),
        [features[k] for k in numbers],
        _begun(_cut(signs, lengths, "y")),
        _begun(weights),
    )
    options, client = (total, intercept), _client()
    if client is None:
        return _rows_of(options, threads_for(None, sum(counts)), *parts)
    _check_memory(sum(sizes))
    where: dict[str, list[int]] = {}
    owners, threads, actors = client.who_has(parts[2]), client.nthreads(), []
    for k, feature in enumerate(parts[2]):
        where.setdefault(min(owners.get(feature.key) or [""]), []).append(k)
    if "" in where:  # lost since
        raise WorkersLostError
    for worker, own in where.items():
        given = threads[worker], options, *([each[k] for k in own] for each in parts)
        actors.append(client.submit(Share, *given, workers=[worker], actor=True, pure=False))
    filled = [lengths[k] for k in numbers]
    rows = DaskRows(Crew(client, actors, list(where)), list(where.values()), filled)
    rows.intercept, rows.n_columns, rows.n_nonzeros = intercept, widths[0] + intercept, sum(counts)
    return rows


def _client() -> Any:
    """The client of a cluster, once it is connected; None for a scheduler in this process."""
    client = getattr(get_scheduler(), "__self__", None)
    while client is not None and client.status != "running":  # it looks for its scheduler
        if client.status == "closed" or is_over():
            raise WorkersLostError
        time.sleep(_POLL)
    return client


def _check_memory(size: float) -> None:
    """``MemoryError`` where X is too large for the workers."""
    client = _client()
    if client is None:
        return
    workers = client.scheduler_info(n_workers=-1)["workers"].values()
    limits, needed = [each["memory_limit"] for each in workers], _TIMES * size
    if limits and all(limits) and needed > sum(limits):
        raise MemoryError(
            f"a fit needs {_TIMES:g} times X in the memory of the workers, {needed / 1e9:.2f} GB, "
            f"got {sum(limits) / 1e9:.2f} GB: take more or larger workers, or write X to Parquet "
            "and fit on one machine"
        )


def _begun(tasks: Sequence[Part]) -> list[Part]:
    """Futures of tasks on a cluster, once they are done; else their results."""
    client, now = _client(), time.monotonic()
    if client is None:
        return list(dask.compute(*tasks))
    silent = {worker for worker, at in _silent.items() if now - at < _AVOIDED}
    workers = [worker for worker in client.nthreads() if worker not in silent] if silent else None
    futures: list[Part] = client.compute(list(tasks), workers=workers)
    _wait_for(futures)
    return futures


def _values(tasks: Sequence[Part]) -> list[Any]:
    """Results of tasks."""
    begun = _begun(tasks)
    return begun if _client() is None else list(_client().gather(begun))


def _wait_for(futures: Sequence[Any]) -> None:
    """Wait until all are done, unless the time is over."""
    from distributed import wait  # which a client comes with

    while any(future.status == "pending" for future in futures):
        try:
            wait(futures, timeout=_POLL)
        except TimeoutError as late:
            late.__traceback__ = None
            if is_over():
                raise WorkersLostError from None
    if any(future.status in ("cancelled", "lost") for future in futures):
        raise WorkersLostError


def _row_parts(X: Any) -> list[Part]:
    """The row blocks of a Dask array or data frame."""
    if isinstance(X, da.Array):
        if X.ndim != 2:
            raise ValueError(f"X must have two dimensions, got {X.ndim}")
        if X.numblocks[1] > 1:
            X = X.rechunk({1: -1})
    return _parts(X)


def _parts(collection: Any) -> list[Part]:
    """The partitions as they are.

    Dask would join small ones, the more of them the fewer columns are read, so that the features
    and the labels of one file would be cut in different places.
    """
    with dask.config.set({"optimization.tune.active": False}):
        return list(np.ravel(np.asarray(collection.to_delayed(), dtype=object)))


def _column(vector: Any, name: str) -> Any:
    """A Dask array of one dimension, or a data frame's column, as it is."""
    if not isinstance(vector, da.Array) or vector.ndim == 1:
        return vector
    if vector.ndim != 2 or vector.shape[1] != 1:
        raise ValueError(f"{name} must have one dimension, got {vector.ndim}")
    return vector[:, 0]


def _cut(vector: Any, lengths: Sequence[int], name: str) -> list[Part]:
    """The parts of a vector for the chunks of X that have rows."""
    vector, filled = _column(vector, name), [length for length in lengths if length]
    length = vector.shape[0] if isinstance(vector, np.ndarray | da.Array) else np.nan
    if not (length == sum(lengths) or np.isnan(length)):
        raise ValueError(f"{name} must have {sum(lengths)} entries, got {length}")
    if isinstance(vector, np.ndarray):
        return [delayed(part) for part in np.split(vector, np.cumsum(filled)[:-1])]
    if not np.isnan(length):
        return _parts(vector.rechunk((tuple(filled),)))
    parts = _parts(vector)
    if len(parts) != len(lengths):
        raise ValueError(
            f"{name} must have as many partitions as X if their lengths are unknown: "
            f"{len(lengths)}, got {len(parts)}"
        )
    return [part for part, length in zip(parts, lengths, strict=True) if length]


def _weight_parts(sample_weight: Any, lengths: Sequence[int]) -> tuple[list[Part], float]:
    """Weights for every chunk, None where they are equal, and their sum."""
    if sample_weight is None:
        return [delayed(None)] * np.count_nonzero(lengths), float(sum(lengths))
    if not dask.is_dask_collection(sample_weight):
        sample_weight = check_weights(sample_weight, sum(lengths))
        return _cut(sample_weight, lengths, "sample_weight"), 1.0
    parts = _cut(sample_weight, lengths, "sample_weight")
    total = sum(_values([delayed(_checked_sum)(part) for part in parts]))
    if total == 0.0:
        raise ValueError("sample_weight must have a positive entry, got all zeros")
    return parts, total


def _features(part: Any, index: int) -> Matrix:
    """The features of a chunk, checked wherever and whenever it is made."""
    if hasattr(part, "tocsr") and not hasattr(part, "indptr"):  # the sparse package's arrays
        part = part.tocsr()
    if part.shape[0] == 0:
        return np.zeros(part.shape)
    if isinstance(part, np.ndarray):
        # Arrays that a client sent begin anywhere; in one piece they are copied four times as fast
        # as block by block, since the system then gives large pages.
        part = np.require(part, requirements="A")
    try:
        return held(check_features(part))
    except ValueError as error:
        raise ValueError(f"block {index} of X: {error}") from error


def _shape(matrix: Matrix) -> tuple[int, int, int, int]:
    """Rows, columns, stored entries, and bytes."""
    entries = nonzeros(matrix)
    return (*matrix.shape, entries, entries * matrix.dtype.itemsize)


def _distinct(part: Any) -> Any:
    check_unmasked(part, "y")
    values = np.asarray(part).ravel()
    if values.dtype != object:
        return distinct(values)
    found = list(dict.fromkeys(values.tolist()))  # not all objects can be sorted
    return np.array(found, dtype=str if {*map(type, found)} == {str} else object)


def _checked_sum(weights: Any) -> float:
    values = as_numbers(weights, "sample_weight").ravel()
    if values.any():
        check_weights(values, values.size)
    return float(values.sum())


def _rows_of(
    options: tuple[float, bool],
    n_threads: int,
    numbers: Sequence[int],
    firsts: Sequence[int],
    features: Sequence[Matrix],
    labels: Sequence[Any],
    weights: Sequence[Any],
) -> LocalRows:
    """Rows of chunks, whose numbers and first samples are given, in blocks of some 13,000.

    Ten vectors of a block fit in a cache, and each is shorter than the 128 kB from which the C
    library, as Dask's workers set it up, takes new pages from the system each time (2·10⁶ × 20:
    1.5 times the processor time of memory, uncut 1.8 times).
    """
    (total, intercept), blocks, offsets = options, [], []
    parts = zip(numbers, firsts, features, labels, weights, strict=True)
    for number, first, X, y, w in parts:
        length, y = X.shape[0], np.asarray(y).ravel()
        if y.size != length:
            raise ValueError(
                f"block {number} of y must have {length} labels, as X has, got {y.size}"
            )
        w = np.ones(length) if w is None else np.ravel(w)
        if w.size != length:
            raise ValueError(f"blocks of sample_weight must be cut as X is: {length}, got {w.size}")
        chunk = Block(X, signs_of(y, True), w / total, intercept)
        for some in row_chunks(length, 10, least=X.shape[1]):
            blocks.append(chunk.part(some.start, some.stop))
            offsets.append(first + some.start)
    rows = LocalRows(blocks, n_threads, n_nonzeros=sum(map(nonzeros, features)))
    rows.offsets = tuple(offsets)
    return rows


# --- from collections to collections --------------------------------------------------------


def map_rows(function: Callable[[Any], Any], X: Any, width: int | None, dtype: Any) -> Any:
    """What a function makes of each row block, as a Dask array of ``width`` columns, or of none."""
    return _mapped(function, X, _row_parts(X), width, dtype)


def share_of(right: Callable[[Any, Any], Any], X: Any, y: Any, sample_weight: Any = None) -> float:
    """The share of the samples, by weight, that a function of X and y finds right."""
    parts = _row_parts(X)
    lengths = _values([delayed(len)(part) for part in parts])
    weights, _ = _weight_parts(sample_weight, lengths)
    tasks = [
        delayed(_sums)(right, *each)
        for each in zip(parts, _cut(y, lengths, "y"), weights, strict=True)
    ]
    total, whole = np.sum(_values(tasks), axis=0)
    return float(total / whole)


def sums_of_parts(function: Callable[[Any], Any], X: Any) -> list[Any]:
    """What a function makes of each part, brought here."""
    return _values([delayed(function)(part) for part in _row_parts(X)])


def _sums(right: Callable[[Any, Any], Any], X: Any, y: Any, weights: Any) -> tuple[float, float]:
    weights = np.ones(len(X)) if weights is None else np.ravel(weights)
    return float(weights[right(X, y)].sum()) if weights.size else 0.0, float(weights.sum())


def encode(y: Any) -> tuple[Any, Any]:
    """The labels that occur in a Dask vector, in order, and the number of each sample's."""
    y = _column(y, "y")
    parts = _parts(y)
    classes = find_classes(np.concatenate(_values([delayed(_distinct)(part) for part in parts])))
    return classes, _mapped(partial(_codes, classes), y, parts, None, np.intp)


def _mapped(
    function: Callable[[Any], Any], whole: Any, parts: list[Part], width: int | None, dtype: Any
) -> Any:
    lengths = whole.chunks[0] if isinstance(whole, da.Array) else [np.nan] * len(parts)
    arrays = [
        da.from_delayed(
            delayed(_if_any)(function, part, width, dtype),
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
