"""X as a matrix of numbers, in a fit and for a fitted model.

A table with categories, or with gaps that are to be filled, is encoded; everything else is checked
by scikit-learn and used as it is.
"""

from __future__ import annotations

import warnings
from collections import Counter
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from ..rows.arrays import Matrix
from ..rows.checks import (
    AS_NUMBERS,
    check_numeric,
    check_unmasked,
    check_weights,
    is_float_matrix,
    settled,
)
from ..rows.row_blocks import RowBlocks, is_in_blocks
from .tables.encoding import find_categorical, fit_encoding
from .tables.frames import column_names, columns_of, is_frame, is_table


def features_to_fit(estimator: Any, X: Any, sample_weight: Any) -> Any:
    """A matrix, or blocks; the estimator remembers the columns, and how they are encoded."""
    estimator.encoding_ = None
    if isinstance(X, np.memmap):
        X = RowBlocks.from_array(X)
    if is_in_blocks(X):  # checked where they lie, by the fit
        _remember_columns(estimator, X)
        return X
    wanted, fill = estimator.categorical_features, estimator.missing
    stated = wanted is not None and not (isinstance(wanted, str) and wanted == "from_dtype")
    if stated and not is_table(X):
        raise ValueError(
            "categorical_features is for data frames and dense arrays, got "
            f"{type(X).__name__}; name one-hot columns with categories"
        )
    by_type = wanted is not None and not stated and is_frame(X)
    if not (stated or by_type or (fill != "error" and is_table(X))):
        return _numbers(estimator, X, reset=True)
    columns = columns_of(X)
    asked = wanted if stated or by_type else None
    categorical = find_categorical(columns, asked, estimator.categories)
    if not categorical and fill == "error":
        return _numbers(estimator, X, reset=True)
    _check_table(estimator, X, reset=True)
    weights = None if sample_weight is None else check_weights(sample_weight, X.shape[0])
    encoding = fit_encoding(
        columns, categorical, fill=fill, weights=weights, stated=not isinstance(wanted, str)
    )
    estimator.encoding_ = encoding
    return encoding.read(columns).matrix(encoding.n_encoded)


def matrix_of(model: Any, X: Any, *, quiet: bool = False) -> Matrix:
    """What a model's coefficients are multiplied with; warns of levels that nobody knows."""
    encoding = model.encoding_
    if encoding is None:
        return _numbers(model, X, reset=False)
    _check_table(model, X, reset=False)
    columns = columns_of(X)
    rows = encoding.read(columns)
    found = None if quiet else encoding.mostly_unseen(rows, columns)
    if found is not None:
        warnings.warn(found, UserWarning, stacklevel=4)
    return rows.matrix(encoding.n_encoded)


def _numbers(estimator: Any, X: Any, *, reset: bool) -> Matrix:
    """X as a matrix of finite numbers, as scikit-learn checks it."""
    if is_float_matrix(X):
        if reset:
            _remember_columns(estimator, X)
            return settled(X, None)
        known = not hasattr(estimator, "feature_names_in_")
        if known and estimator.n_features_in_ == X.shape[1]:
            return settled(X, None)
    _check_distinct(X)
    X = check_numeric(X)
    matrix = validate_data(estimator, X, reset=reset, **AS_NUMBERS)
    return settled(matrix, getattr(X, "columns", None))


def _remember_columns(estimator: Any, X: Any) -> None:
    """What scikit-learn does with X in memory."""
    estimator.n_features_in_ = int(X.shape[1])
    names = X.feature_names or [] if isinstance(X, RowBlocks) else [*getattr(X, "columns", [])]
    if names and all(isinstance(name, str) for name in names):
        estimator.feature_names_in_ = np.array(names, dtype=object)
    else:
        estimator.__dict__.pop("feature_names_in_", None)


def _check_distinct(X: Any) -> None:
    """``ValueError`` for a frame with two columns of one name."""
    if is_frame(X):
        repeated = [name for name, times in Counter(column_names(X)).items() if times > 1]
        if repeated:
            raise ValueError(
                f"X must have columns of distinct names, got {repeated[0]!r:.60} more than once: "
                "rename or drop one"
            )


def _check_table(estimator: Any, X: Any, *, reset: bool) -> None:
    """Remember the columns of a table, or compare them with those remembered."""
    check_unmasked(X, "X")
    _check_distinct(X)
    if not is_table(X):
        raise ValueError(f"X must be a table as in training, got {type(X).__name__}")
    if X.shape[0] == 0:
        raise ValueError(f"X must have at least one row, got shape {tuple(X.shape)}")
    validate_data(estimator, X, reset=reset, skip_check_array=True)
