"""What a ball needs to know of rows: deviations of the numbers, shares of the classes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..rows.arrays import FloatArray, IndexArray, Matrix, in_memory, is_dask
from ..rows.building import checked_rows
from ..rows.centring import centred
from ..rows.checks import TOO_LARGE, as_numbers, check_features, check_weights
from ..rows.interface import Rows
from .features import Feature, Features, numbers


def features_of(X: Any, y: Any = None, sample_weight: Any = None) -> Features:
    """The columns of a table, frame or matrix, as numbers and categories.

    Columns of text, categories or truth values of a frame are categories.
    """
    if hasattr(X, "to_pandas"):
        X = X.to_pandas()
    shares = None if y is None else class_shares(y, sample_weight)
    total = total_weight(sample_weight, X.shape[0])
    if is_dask(X):
        from ..rows.dask_collections import dask_rows  # an optional package

        rows: Rows = dask_rows(X, np.ones(len(X)), sample_weight, intercept=False)
        return numbers(names_of(X, X.shape[1]), deviations_in(rows), total, shares)
    weights = check_weights(sample_weight, X.shape[0])
    if not hasattr(X, "iloc"):
        matrix = check_features(X)
        return numbers(range(matrix.shape[1]), deviations(matrix, weights), total, shares)
    from pandas.api.types import is_bool_dtype, is_numeric_dtype

    each = []
    for j, (name, values) in enumerate(X.items()):
        if is_numeric_dtype(values.dtype) and not is_bool_dtype(values.dtype):
            column = values.to_numpy(dtype=np.float64, na_value=np.nan)
            deviation = deviation_of(column, weights)
            each.append(Feature(name, np.array([j]), deviation=deviation))
        else:
            levels = tuple(str(level) for level in values.dropna().unique())
            each.append(Feature(name, np.array([j]), levels))
    return Features(tuple(each), len(each), total, shares)


def names_of(X: Any, n_columns: int) -> Any:
    """The names of the columns, or their positions."""
    columns = getattr(X, "columns", None)
    return range(n_columns) if columns is None else list(columns)


def total_weight(sample_weight: Any, n_rows: int) -> float:
    """How many rows the weights stand for: weights are repetitions."""
    return float(n_rows) if sample_weight is None else float(in_memory(sample_weight).sum())


def class_shares(y: Any, sample_weight: Any = None) -> Mapping[Any, float]:
    """The share of each class, in the order of the classes."""
    classes, codes = np.unique(np.asarray(in_memory(y)), return_inverse=True)
    weights = None if sample_weight is None else as_numbers(in_memory(sample_weight), "weights")
    return shares_of(classes, codes, weights)


def shares_of(
    classes: np.ndarray[Any, Any], codes: IndexArray, weights: FloatArray | None
) -> Mapping[Any, float]:
    """The share of each class, of labels as positions among the classes."""
    totals = np.bincount(codes, weights)
    return dict(zip(classes.tolist(), (totals / totals.sum()).tolist(), strict=True))


def deviations(matrix: Matrix, weights: FloatArray | None) -> FloatArray:
    """Standard deviations of the columns of a checked matrix, as :func:`deviations_in`."""
    shares = check_weights(weights, matrix.shape[0])
    rows = checked_rows(matrix, np.ones(matrix.shape[0]), shares, intercept=False)
    return deviations_in(rows)


def deviations_in(rows: Rows) -> FloatArray:
    """Standard deviations of the features, zeros counted; 1 for a constant column."""
    found = centred(rows, constant=True).column_deviations[: rows.n_columns - rows.intercept]
    return np.where(found > 0.0, found, 1.0)


def deviation_of(values: FloatArray, weights: FloatArray) -> float:
    """The standard deviation of a column without its missing values; 1 for a constant one."""
    known = (np.abs(values) < TOO_LARGE) & (weights > 0.0)
    if not known.any():
        return 1.0
    mean = np.average(values[known], weights=weights[known])
    variance = np.average((values[known] - mean) ** 2, weights=weights[known])
    return 1.0 if variance <= (1e-14 * mean) ** 2 else float(np.sqrt(variance))
