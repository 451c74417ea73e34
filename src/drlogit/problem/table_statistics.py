"""What a ball needs to know of rows: deviations of the numbers, shares of the classes.

Sums over chunks of rows, so that an array in a file is read and never copied.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from pandas.api.types import is_bool_dtype, is_numeric_dtype

from ..rows.arrays import FloatArray
from ..rows.checks import as_numbers, check_weights
from ..rows.chunks import chunks_of, in_memory
from .features import Feature, Features, numbers

_CHUNK = 1 << 16


def features_of(X: Any, y: Any = None, sample_weight: Any = None) -> Features:
    """The columns of a table, frame or matrix, as numbers and categories.

    Columns of text, categories or truth values of a frame are categories.
    """
    if hasattr(X, "to_pandas"):
        X = X.to_pandas()
    frame = X if hasattr(X, "iloc") else None
    n_rows = X.shape[0]
    weights = None if sample_weight is None else as_numbers(sample_weight, "sample_weight")
    if weights is not None:
        check_weights(weights, n_rows)
    total = float(n_rows if weights is None else weights.sum())
    shares = None if y is None else class_shares(y, weights)
    if frame is None:
        return numbers(range(X.shape[1]), deviations(X, weights), total, shares)
    each = []
    for j, (name, values) in enumerate(frame.items()):
        if is_numeric_dtype(values.dtype) and not is_bool_dtype(values.dtype):
            column = values.to_numpy(dtype=np.float64, na_value=np.nan)
            deviation = float(deviation_of(column, weights))
            each.append(Feature(name, np.array([j]), deviation=deviation))
        else:
            levels = tuple(str(level) for level in values.dropna().unique())
            each.append(Feature(name, np.array([j]), levels))
    return Features(tuple(each), len(each), total, shares)


def class_shares(y: Any, weights: FloatArray | None) -> Mapping[Any, float]:
    """The share of each class, in the order of the classes."""
    classes, codes = np.unique(np.asarray(in_memory(y)), return_inverse=True)
    totals = np.bincount(codes, weights)
    return dict(zip(classes.tolist(), (totals / totals.sum()).tolist(), strict=True))


def deviations(X: Any, weights: FloatArray | None = None) -> FloatArray:
    """Standard deviations of the columns, zeros counted; 1 for a constant column."""
    total = float(X.shape[0]) if weights is None else float(weights.sum())
    means = _weighted_sums(X, weights, np.zeros(X.shape[1]), 1) / total
    squares = _weighted_sums(X, weights, means, 2) / total
    return _roots(squares, means)


def deviation_of(values: FloatArray, weights: FloatArray | None = None) -> float:
    """The standard deviation of a column without its missing values."""
    known = ~np.isnan(values)
    if not known.any():
        return 1.0
    shares = np.ones(values.size) if weights is None else weights
    mean = np.average(values[known], weights=shares[known])
    variance = np.average((values[known] - mean) ** 2, weights=shares[known])
    return float(_roots(np.array([variance]), np.array([mean]))[0])


def _weighted_sums(X: Any, weights: FloatArray | None, means: FloatArray, power: int) -> FloatArray:
    """``Σ w (x - mean)^power`` of each column."""
    sums, first = np.zeros(X.shape[1]), 0
    for chunk in chunks_of(X, _CHUNK):
        last = first + chunk.shape[0]
        w = np.ones(chunk.shape[0]) if weights is None else weights[first:last]
        if sp.issparse(chunk):
            here = np.repeat(w, np.diff(chunk.indptr))
            moved = (chunk.data - means[chunk.indices]) ** power
            sums += np.bincount(chunk.indices, here * moved, minlength=sums.size)
            stored = np.bincount(chunk.indices, here, minlength=sums.size)
            zeros = np.where(stored > (1.0 - 1e-12) * w.sum(), 0.0, w.sum() - stored)
            sums += zeros * (-means) ** power
        else:
            sums += w @ (chunk - means) ** power
        first = last
    return sums


def _roots(variance: FloatArray, mean: FloatArray) -> FloatArray:
    """Standard deviations; 1 where nothing but rounding varies."""
    constant = variance <= (1e-14 * mean) ** 2
    return np.where(constant, 1.0, np.sqrt(np.where(constant, 1.0, variance)))
