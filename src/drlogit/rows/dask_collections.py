"""Row blocks with the workers of a Dask cluster, or of one of Dask's schedulers in this process.

Everything of the length of the samples stays where it is.  The chunks of X that a thread of a
worker has are its *share*: :class:`~drlogit.rows.local.LocalRows` there, which a visit passes over
in one task, the driver's vectors beside it.  Reductions are combined in a tree.  What travels per
visit are vectors of length n and, once per iteration of the interior point, n×n matrices: nothing
that grows with N.

Every task is pure, and its arguments are part of it.  When a worker dies, Dask computes again what
it held, by replaying the tasks that led there.

Imported only when a Dask collection is met.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from functools import cached_property, partial, reduce
from itertools import accumulate
from typing import Any, NamedTuple, TypeAlias

import dask
import dask.array as da
import numpy as np
from dask import delayed
from dask.base import get_scheduler

from .arrays import FloatArray, IndexArray, Matrix
from .blocks import Block, join_blocks
from .checks import (
    as_numbers,
    check_features,
    check_unmasked,
    check_weights,
    distinct,
    find_classes,
    signs_of,
)
from .interface import BlockFunction, Rows
from .local import LocalRows
from .matrix import held, nonzeros, row_chunks
from .reductions import Reduction, merge_reductions
from .threads import threads_for

#: A part of a collection that is still to be computed, or what has been or is being.
Part: TypeAlias = Any

#: Reductions combined by one task of the tree.
_FAN_IN = 8


class DaskRows(Rows):
    """Samples in shares, each of them :class:`LocalRows` where its chunks are."""

    def __init__(
        self,
        place: Place,
        shares: list[Part],
        chunks: Sequence[IndexArray],
        lengths: Sequence[int],
        *,
        n_columns: int,
        n_nonzeros: int,
        intercept: bool,
    ) -> None:
        self.n_samples, self.largest_block = sum(lengths), max(lengths)
        self.n_columns, self.n_nonzeros, self.intercept = n_columns, n_nonzeros, intercept
        self._place, self._shares = place, shares
        self._chunks, self._lengths = chunks, lengths
        self.offsets: Any = shares  # which know them: see _state

    def run(self, function: BlockFunction, state: Any = None, *arguments: Any) -> tuple[Any, Any]:
        """Apply a block function to every block; new state and combined reductions.

        Who does not look at the reductions does not wait for them.
        """
        before = [None] * len(self._shares) if state is None else state
        visit = partial(_visit, function, arguments, np.geterr())
        visits = self._place.map(visit, self._shares, before)
        return visits, _Reductions(self._place, visits)

    def pair(self, one: Any, other: Any) -> Any:
        """A state whose blocks are pairs of those of two states."""
        return list(zip(one, other, strict=True))

    def scatter(self, values: Any) -> Any:
        """Cut a vector of length N into the state that block functions see."""
        parts = _parts_of_vector(values, self._lengths, self._place)
        return self._place.map(_scattered, self._shares, _grouped(parts, self._chunks))

    def with_flip_multiples(self, flip_multiples: Any) -> DaskRows:
        """The same samples, whose labels cost these multiples of κ to flip."""
        rows = copy(self)
        rows._shares = self._place.map(_with_multiples, self._shares, flip_multiples)
        return rows

    def with_columns(self, features: IndexArray) -> DaskRows:
        """The same samples with some of their features only, copied where they are."""
        part = partial(LocalRows.with_columns, features=features)
        rows = self._with(self._place.map(part, self._shares), features.size + int(self.intercept))
        rows.n_nonzeros = self.n_nonzeros * rows.n_columns // self.n_columns  # about as many
        rows.shift = None if self.shift is None else self.shift[features]
        return rows

    def with_features(self, features: Any, n_columns: int) -> DaskRows:
        """The same samples with other features, a dense array for each block."""
        rows = self._with(self._place.map(_with_features, self._shares, features), n_columns)
        rows.n_nonzeros, rows.shift = self.n_samples * n_columns, None
        return rows

    def _with(self, shares: list[Part], n_columns: int) -> DaskRows:
        rows = copy(self)
        rows.__dict__.pop("totals", None)
        rows._shares, rows.offsets, rows.n_columns = shares, shares, n_columns
        return rows

    def shifted(self, shift: FloatArray) -> DaskRows:
        """The same samples with features ``x - shift``, shifted where they are."""
        rows = copy(self)
        rows._shares = self._place.map(partial(LocalRows.shifted, shift=shift), self._shares)
        rows.__dict__.pop("totals", None)
        rows.shift = shift
        return rows

    def gather(self, state: Any) -> Any:
        """The state as a Dask array in the order of the samples, which stays where it is."""
        arrays: dict[int, Any] = {}
        for visit, chunks in zip(state, self._chunks, strict=True):
            whole = delayed(_joined)(delayed(visit, traverse=False))
            ends = accumulate(self._lengths[k] for k in chunks)
            for k, end in zip(chunks, ends, strict=True):
                part = whole[end - self._lengths[k] : end]
                arrays[k] = da.from_delayed(part, shape=(self._lengths[k],), dtype=np.float64)
        return da.concatenate([arrays[k] for k in sorted(arrays)])

    def together(self) -> Block:
        """All samples as one block in memory, for solvers of other packages."""
        shares = self._place.fetch(self._shares)
        blocks = [pair for rows in shares for pair in zip(rows.offsets, rows.blocks, strict=True)]
        return join_blocks([block for _, block in sorted(blocks, key=lambda pair: pair[0])])


class _Reductions:
    """What visits have for the driver, fetched when it is looked at."""

    def __init__(self, place: Place, visits: list[Part]) -> None:
        self._place, self._visits = place, visits

    @cached_property
    def _values(self) -> tuple[Any, ...]:
        parts = self._place.map(_reductions, self._visits)
        while len(parts) > 1:
            some = [parts[i : i + _FAN_IN] for i in range(0, len(parts), _FAN_IN)]
            parts = self._place.map(_combine, some)
        return tuple(item.value for item in self._place.fetch(parts)[0])

    def __getitem__(self, index: int) -> Any:
        return self._values[index]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._values)


# --- where tasks run ------------------------------------------------------------------------


class Place:
    """Where Dask would compute now.

    On a cluster, which has a client, results stay with the workers; Dask's other schedulers bring
    them to this process, where everything else is then done at once.
    """

    def __init__(self) -> None:
        self.client: Any = getattr(get_scheduler(), "__self__", None)

    def begin(self, tasks: list[Part]) -> list[Part]:
        """The results of tasks, or what stands for them."""
        return list(dask.compute(*tasks) if self.client is None else self.client.compute(tasks))

    def map(self, function: Callable[..., Any], *arguments: Any) -> list[Part]:
        """A call for each of the arguments."""
        if self.client is None:
            return [function(*each) for each in zip(*arguments, strict=True)]
        return list(self.client.map(function, *arguments, pure=False))

    def fetch(self, parts: list[Part]) -> list[Any]:
        """The values."""
        return parts if self.client is None else list(self.client.gather(parts))

    def shares(self, parts: list[Part]) -> list[IndexArray]:
        """Which of the parts, once done, are whose: numbers for each thread of a worker."""
        if self.client is None:
            return [np.arange(len(parts))]
        from distributed import wait  # which a client comes with

        wait(parts)
        where: dict[Any, list[int]] = {}
        owners, threads = self.client.who_has(parts), self.client.nthreads()
        for k, part in enumerate(parts):
            where.setdefault(next(iter(owners.get(part.key, ())), None), []).append(k)
        split = (np.array_split(own, threads.get(worker, 1)) for worker, own in where.items())
        return [share for each in split for share in each if share.size]


def _grouped(parts: Sequence[Part], shares: Sequence[IndexArray]) -> list[list[Part]]:
    """The parts of each share."""
    return [[parts[k] for k in own] for own in shares]


# --- what is done with a share where it is --------------------------------------------------


class _Visit(NamedTuple):
    """What a visit leaves of a share, where it stays, and what it has for the driver."""

    state: Any
    reductions: tuple[Reduction, ...] = ()


def _visit(
    function: BlockFunction, arguments: Any, errors: Any, rows: LocalRows, before: Any
) -> _Visit:
    """One pass over a share, as it would go in the process of the driver."""
    with np.errstate(**errors):
        return _Visit(*rows.visit(function, _state(before), arguments))


def _state(before: Any) -> Any:
    """Of a visit; of rows, their offsets; of a pair of such, pairs."""
    if isinstance(before, LocalRows):
        return before.offsets
    if before is None or isinstance(before, _Visit):
        return before and before.state
    return tuple(zip(*map(_state, before), strict=True))


def _reductions(visit: _Visit) -> tuple[Reduction, ...]:
    return visit.reductions


def _combine(parts: Sequence[tuple[Reduction, ...]]) -> tuple[Reduction, ...]:
    return reduce(merge_reductions, parts)


def _scattered(rows: LocalRows, parts: Sequence[Any]) -> _Visit:
    return _Visit(rows.scatter(np.concatenate([np.ravel(part) for part in parts])))


def _with_multiples(rows: LocalRows, flip_multiples: _Visit) -> LocalRows:
    return rows.with_flip_multiples(flip_multiples.state)


def _with_features(rows: LocalRows, features: _Visit) -> LocalRows:
    return rows.with_features(features.state, 0)


def _joined(visit: _Visit) -> FloatArray:
    return np.concatenate(visit.state)


# --- from collections to rows ---------------------------------------------------------------


def dask_rows(
    X: Any, labels: Any, sample_weight: Any, *, positive: Any = 1.0, intercept: bool
) -> DaskRows:
    """Rows of a Dask array or data frame, checked block by block where they are.

    ``labels``, of which the ``positive`` one is +1 and the other -1, and ``sample_weight`` may be
    Dask collections or in memory.
    """
    place = Place()
    features = place.begin([delayed(_features)(part, k) for k, part in enumerate(_row_parts(X))])
    chunks = place.shares(features)
    shapes = np.concatenate(place.fetch(place.map(_shapes, _grouped(features, chunks))))
    lengths, widths, counts = shapes[np.argsort(np.concatenate(chunks))].T.tolist()
    if len({*widths}) > 1:
        raise ValueError(f"blocks of X must have equally many columns, got {sorted({*widths})}")
    if sum(lengths) == 0:
        raise ValueError("X must have at least one row, got none")
    filled = np.array(lengths) > 0  # a chunk without rows has nothing to do
    chunks = [some for own in chunks if (some := own[filled[own]]).size]
    if isinstance(labels, np.ndarray):  # a byte each to send
        labels, positive = labels == positive, True
    labels = _parts_of_vector(labels, lengths, place, "y")
    weights, total = _weight_parts(sample_weight, lengths, place)
    firsts = list(accumulate(lengths[:-1], initial=0))
    n_threads = threads_for(None, sum(counts)) if place.client is None else 1
    parts = list(enumerate(firsts)), features, labels, weights
    shares = place.map(
        partial(_share, positive, total, intercept, n_threads),
        *(_grouped(each, chunks) for each in parts),
    )
    return DaskRows(
        place,
        shares,
        chunks,
        lengths,
        n_columns=widths[0] + int(intercept),
        n_nonzeros=sum(counts),
        intercept=intercept,
    )


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


def _parts_of_vector(
    vector: Any, lengths: Sequence[int], place: Place, name: str = "values"
) -> list[Part]:
    """The parts of a vector, cut as X is, which stay where they are."""
    vector = _column(vector, name)
    length = vector.shape[0] if isinstance(vector, np.ndarray | da.Array) else np.nan
    if not (length == sum(lengths) or np.isnan(length)):
        raise ValueError(f"{name} must have {sum(lengths)} entries, got {length}")
    if isinstance(vector, np.ndarray):
        return np.split(vector, np.cumsum(lengths)[:-1])
    if not np.isnan(length) and vector.chunks[0] != tuple(lengths):
        # Chunks without rows cannot be asked for.
        vector = vector.rechunk((tuple(length for length in lengths if length),))
        filled = iter(place.begin(_parts(vector)))
        empty = np.zeros(0, dtype=vector.dtype)
        return [next(filled) if length else empty for length in lengths]
    parts = _parts(vector)
    if len(parts) != len(lengths):
        raise ValueError(
            f"{name} must have as many partitions as X if their lengths are unknown: "
            f"{len(lengths)}, got {len(parts)}"
        )
    return place.begin(parts)


def _weight_parts(
    sample_weight: Any, lengths: Sequence[int], place: Place
) -> tuple[list[Part], float]:
    """Weights for every chunk, None where they are equal, and their sum."""
    if sample_weight is None:
        return [None] * len(lengths), float(sum(lengths))
    if not dask.is_dask_collection(sample_weight):
        sample_weight = check_weights(sample_weight, sum(lengths))
        return _parts_of_vector(sample_weight, lengths, place), 1.0
    parts = _parts_of_vector(sample_weight, lengths, place, "sample_weight")
    total = sum(place.fetch(place.map(_checked_sum, parts)))
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


def _shapes(matrices: Sequence[Matrix]) -> list[tuple[int, int, int]]:
    """Rows, columns, and stored entries."""
    return [(*matrix.shape, nonzeros(matrix)) for matrix in matrices]


def _distinct(parts: Sequence[Any]) -> Any:
    for part in parts:
        check_unmasked(part, "y")
    values = np.concatenate([np.asarray(part).ravel() for part in parts])
    if values.dtype != object:
        return distinct(values)
    found = list(dict.fromkeys(values.tolist()))  # not all objects can be sorted
    return np.array(found, dtype=str if {*map(type, found)} == {str} else object)


def _checked_sum(weights: Any) -> float:
    values = as_numbers(weights, "sample_weight").ravel()
    if values.any():
        check_weights(values, values.size)
    return float(values.sum())


def _share(
    positive: Any,
    total: float,
    intercept: bool,
    n_threads: int,
    places: Sequence[tuple[int, int]],
    features: Sequence[Matrix],
    labels: Sequence[Any],
    weights: Sequence[Any],
) -> LocalRows:
    """Rows of chunks, whose numbers and first samples are given, in blocks of some 13,000.

    Ten vectors of a block fit in a cache, and each is shorter than the 128 kB from which the C
    library, as Dask's workers set it up, takes new pages from the system each time (2·10⁶ × 20:
    1.5 times the processor time of memory, uncut 1.8 times).
    """
    blocks, offsets = [], []
    for (number, first), X, y, w in zip(places, features, labels, weights, strict=True):
        length, y = X.shape[0], np.asarray(y).ravel()
        if y.size != length:
            raise ValueError(
                f"block {number} of y must have {length} labels, as X has, got {y.size}"
            )
        w = np.ones(length) if w is None else np.ravel(w)
        if w.size != length:
            raise ValueError(f"blocks of sample_weight must be cut as X is: {length}, got {w.size}")
        chunk = Block(X, signs_of(y, positive), w / total, intercept)
        for some in row_chunks(length, 10, least=X.shape[1]):
            blocks.append(chunk.part(some.start, some.stop))
            offsets.append(first + some.start)
    rows = LocalRows(blocks, n_threads, n_nonzeros=0)
    rows.offsets = tuple(offsets)
    return rows


# --- from collections to collections --------------------------------------------------------


def map_rows(function: Callable[[Any], Any], X: Any, width: int | None, dtype: Any) -> Any:
    """What a function makes of each row block, as a Dask array of ``width`` columns, or of none."""
    return _mapped(function, X, _row_parts(X), width, dtype)


def encode(y: Any) -> tuple[Any, Any]:
    """The labels that occur in a Dask vector, in order, and the number of each sample's."""
    y = _column(y, "y")
    place = Place()
    parts = place.begin(_parts(y))
    found = place.fetch(place.map(_distinct, _grouped(parts, place.shares(parts))))
    classes = find_classes(np.concatenate(found))
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
