"""From Dask's collections to rows: checked part by part, where the parts are.

Imported only when a Dask collection is met.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import dask
import dask.array as da
import numpy as np

from .arrays import FloatArray, Matrix
from .blocks import Block
from .checks import (
    as_numbers,
    check_features,
    check_labels,
    check_unmasked,
    check_weights,
    distinct,
    signs_of,
)
from .distributed import DaskRows, Delayed, cut_vector, fetched, kept, task, vector_parts
from .matrix import held, nonzeros


def dask_rows(
    X: Any, y: Any, sample_weight: Any, *, intercept: bool, signs: bool = False
) -> DaskRows:
    """Rows of Dask arrays or data frames, checked block by block where they are.

    ``y`` and ``sample_weight`` may be Dask collections or anything in memory; with ``signs``, y is
    known to hold ±1.
    """
    features = kept(task(_features, part, k) for k, part in enumerate(_row_parts(X)))
    labels = _parts(y) if dask.is_dask_collection(y) and not signs else []
    answers = fetched(kept([task(_shape, part) for part in features] + _each(_distinct, labels)))
    shapes, found = answers[: len(features)], answers[len(features) :]
    widths = {width for _, width, _ in shapes}
    if len(widths) > 1:
        raise ValueError(f"blocks of X must have equally many columns, got {sorted(widths)}")
    lengths = [length for length, _, _ in shapes]
    if sum(lengths) == 0:
        raise ValueError("X must have at least one row, got none")
    y_parts, positive = _label_parts(y, lengths, found, known=signs)
    weights = _weight_parts(sample_weight, lengths)
    blocks = [
        task(_block, k, intercept, positive, *parts)
        for k, parts in enumerate(zip(features, y_parts, weights, strict=True))
    ]
    rows = DaskRows(
        blocks, lengths, n_columns=widths.pop() + int(intercept),
        n_nonzeros=sum(count for _, _, count in shapes), intercept=intercept,
    )  # fmt: skip
    if sample_weight is not None:
        for total, name in zip(rows.class_weights, ("smaller", "larger"), strict=True):
            if not total > 0.0:
                raise ValueError(
                    f"every sample with the {name} label has weight zero; two classes are wanted"
                )
    return rows


def _row_parts(X: Any) -> list[Delayed]:
    """The row blocks of a Dask array or data frame."""
    if isinstance(X, da.Array):
        if X.ndim != 2:
            raise ValueError(f"X must have two dimensions, got {X.ndim}")
        if X.numblocks[1] > 1:
            X = X.rechunk({1: -1})
    return _parts(X)


def _parts(collection: Any) -> list[Delayed]:
    return list(np.ravel(np.asarray(collection.to_delayed(), dtype=object)))


def _each(function: Callable[[Any], Any], parts: list[Delayed]) -> list[Delayed]:
    return [task(function, part) for part in parts]


def _label_parts(
    y: Any, lengths: Sequence[int], found: Sequence[Any], *, known: bool
) -> tuple[list[Delayed], Any]:
    """Labels for every block, and which of them is the positive one.

    ``found`` are the labels in each part of a Dask vector; ``known`` if they are ±1 already.
    """
    if not dask.is_dask_collection(y):
        signs = (y if known else check_labels(y, sum(lengths))).astype(np.int8)
        return cut_vector(signs, lengths), 1
    parts = vector_parts(y, lengths, "y")
    if known:
        return parts, 1
    labels = np.concatenate(found)
    check_labels(labels, labels.size)  # two kinds, none missing
    return parts, np.unique(labels)[1]


def _weight_parts(sample_weight: Any, lengths: Sequence[int]) -> list[Delayed | float]:
    """Weights for every block, of which the sum over all is one; one for all if they are equal."""
    if sample_weight is None:
        return [1.0 / sum(lengths)] * len(lengths)
    if not dask.is_dask_collection(sample_weight):
        return cut_vector(check_weights(sample_weight, sum(lengths)), lengths)
    parts = vector_parts(sample_weight, lengths, "sample_weight")
    sums = np.array(dask.compute(*_each(_checked_sum, parts)))
    largest = float(sums[:, 0].max())
    if largest == 0.0:
        raise ValueError("sample_weight must have a positive entry, got all zeros")
    total = float((sums[:, 0] / largest) @ sums[:, 1])
    return [task(_normalised, part, largest, total) for part in parts]


def map_rows(function: Callable[[Any], Any], X: Any, width: int | None, dtype: Any) -> Any:
    """What a function makes of each row block, as a Dask array of ``width`` columns, or of none."""
    return _mapped(function, X, _row_parts(X), width, dtype)


def encode(y: Any) -> tuple[Any, Any]:
    """The labels that occur in a Dask vector, in order, and the number of each sample's."""
    parts = _parts(y)
    classes = np.unique(np.concatenate(dask.compute(*_each(_distinct, parts))))
    return classes, _mapped(partial(_codes, classes), y, parts, None, np.intp)


def _mapped(
    function: Callable[[Any], Any], whole: Any, parts: list[Delayed], width: int | None, dtype: Any
) -> Any:
    lengths = whole.chunks[0] if isinstance(whole, da.Array) else [np.nan] * len(parts)
    arrays = [
        da.from_delayed(
            task(_if_any, function, part, width, dtype),
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


def _shape(matrix: Matrix) -> tuple[int, int, int]:
    """Rows, columns, and stored entries."""
    return int(matrix.shape[0]), int(matrix.shape[1]), nonzeros(matrix)


def _distinct(labels: Any) -> Any:
    check_unmasked(labels, "y")
    values = np.asarray(labels).ravel()
    if values.dtype != object:
        return distinct(values)
    found = list(dict.fromkeys(values.tolist()))  # not all objects can be sorted
    return np.array(found, dtype=str if {*map(type, found)} == {str} else object)


def _signs(labels: Any, positive: Any, index: int, length: int) -> FloatArray:
    values = np.asarray(labels).ravel()
    if values.size != length:
        raise ValueError(
            f"block {index} of y must have {length} labels, as X has, got {values.size}"
        )
    return signs_of(values, positive)


def _checked_sum(weights: Any) -> tuple[float, float]:
    """The largest weight of a part, and their sum in units of it."""
    values = as_numbers(weights, "sample_weight").ravel()
    if values.size == 0 or not values.any():
        return 0.0, 0.0
    check_weights(values, values.size)
    return float(values.max()), float((values / values.max()).sum())


def _normalised(weights: Any, largest: float, total: float) -> FloatArray:
    return np.asarray(weights, dtype=np.float64).ravel() / largest / total


def _block(
    number: int,
    intercept: bool,
    positive: Any,
    features: Matrix,
    labels: Any,
    weights: FloatArray | float,
) -> Block:
    """A block of its features, labels and weights."""
    length = features.shape[0]
    signs = _signs(labels, positive, number, length)
    if isinstance(weights, float):
        weights = np.full(length, weights)
    if weights.size != length:
        raise ValueError(
            f"blocks of sample_weight must be cut as X is: {length}, got {weights.size}"
        )
    return Block(features, signs, weights, intercept)
