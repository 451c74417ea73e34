"""Checks of user input: ``ValueError`` names the value found and the value expected."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_array, column_or_1d

from .arrays import FloatArray, Matrix, refuse_elsewhere
from .matrix import row_chunks

#: Larger features are refused, because sums of their squares could overflow.
TOO_LARGE = 1e150


class ParameterError(ValueError):
    """A parameter has a value that cannot be used.

    ``parameter`` is its name in Python, with which the message begins.  The command line puts the
    option that was typed in its place.
    """

    def __init__(self, parameter: str, problem: str) -> None:
        super().__init__(parameter, problem)  # so that it can be pickled
        self.parameter, self.problem = parameter, problem

    def __str__(self) -> str:
        return f"{self.parameter} {self.problem}"


#: How scikit-learn converts X.  Values that are not finite are reported by our own check.
AS_NUMBERS: dict[str, Any] = {
    "accept_sparse": "csr",
    "dtype": [np.float64, np.float32],
    "ensure_all_finite": False,
}


def check_unmasked(values: Any, name: str) -> None:
    """``ValueError`` for masked entries, whose hidden values would otherwise be used."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        masked = np.count_nonzero(values.mask)
        raise ValueError(
            f"{name} must have no masked entries, got {masked}: fill them in, or leave out the "
            "samples that have any"
        )


def check_numeric(X: Any) -> Any:
    """X, with lists as an array; ``ValueError`` for masked entries and for text.

    scikit-learn makes the other checks; it drops masks and converts text to numbers if it can.
    """
    check_unmasked(X, "X")
    if isinstance(X, list | tuple):
        try:
            X = np.asarray(X)
        except ValueError:
            return X  # rows of different lengths, which scikit-learn reports
    if sp.issparse(X):
        return X
    found = _some_text(X)
    if found is not None:
        text, where = found
        raise ValueError(
            f"X must hold numbers, got the text {text!r:.60}{where}: code it as numbers, or "
            "convert it if it is one (X.astype(float))"
        )
    return X


def _some_text(X: Any) -> tuple[str, str] | None:
    """The first text in an array or a data frame, and where it is."""
    columns: Any
    if hasattr(X, "iter_columns"):  # polars
        columns = ((series.name, series) for series in X.iter_columns())
    elif hasattr(X, "iloc") and hasattr(X, "columns"):  # pandas; numbers are passed over at once
        kinds = [getattr(dtype, "kind", "O") for dtype in X.dtypes]
        columns = ((X.columns[j], X.iloc[:, j]) for j, kind in enumerate(kinds) if kind in "OUS")
    else:
        columns = ((None, X),)
    for name, values in columns:
        kind = getattr(getattr(values, "dtype", None), "kind", None)
        if kind is not None and kind not in "OUS":
            continue
        array = np.asarray(values)
        if array.dtype.kind in "OUS":
            text = next((v for v in array.flat if isinstance(v, str | bytes)), None)
            if text is not None:
                return str(text), "" if name is None else f" in column {name!r:.60}"
    return None


def as_numbers(values: Any, name: str) -> FloatArray:
    """Values as a float array, or ``ValueError`` with their name."""
    check_unmasked(values, name)
    try:
        array = np.asarray(values)
        if array.dtype.kind in "cmM" or _some_text(array) is not None:
            raise TypeError
        return np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError):
        shown = " ".join(f"{values!r:.80}".split())
        raise ValueError(f"{name} must hold numbers, got {shown}") from None


def is_float_matrix(X: Any) -> bool:
    """Whether X needs no conversion by scikit-learn, which takes a tenth of a small fit."""
    return type(X) is np.ndarray and X.ndim == 2 and X.dtype in AS_NUMBERS["dtype"] and X.size > 0


def check_features(X: Any) -> Matrix:
    """A finite float array (float32 and float64 kept) or canonical CSR matrix."""
    if is_float_matrix(X):
        return settled(X, None)
    refuse_elsewhere("this", X)
    X = check_numeric(X)
    try:
        if getattr(getattr(X, "dtype", None), "kind", "f") in "mM":  # no error in scikit-learn
            raise ValueError("Dates and times are not numbers")
        matrix = check_array(X, **AS_NUMBERS, input_name="X", order=None)
    except (TypeError, ValueError) as error:
        found = str(error).partition("\n")[0].rstrip(".:")
        raise ValueError(
            f"X must be a 2-D array of finite numbers, at least one row and one column: {found}"
        ) from error
    return settled(matrix, getattr(X, "columns", None))


def settled(matrix: Matrix, names: Sequence[Any] | None) -> Matrix:
    """Check that a converted X is finite, and bring it into the form that products need.

    ``names`` are the column names, if any.
    """
    values = matrix.data if sp.issparse(matrix) else matrix
    for rows in row_chunks(values.shape[0], math.prod(values.shape[1:])):
        part = values[rows]
        with np.errstate(invalid="ignore"):
            largest = max(float(part.max(initial=0.0)), -float(part.min(initial=0.0)))
        if largest < TOO_LARGE:  # not for NaN
            continue
        limit = min(TOO_LARGE, float(np.finfo(values.dtype).max))
        bad = np.argwhere(~(np.abs(part) <= limit))[0]
        row, column = rows.start + int(bad[0]), int(bad[-1])
        if sp.issparse(matrix):
            row, column = int(np.searchsorted(matrix.indptr, row, "right")) - 1, matrix.indices[row]
        name = column if names is None else names[column]
        raise ValueError(no_number(part[tuple(bad)], row, name))
    if not sp.issparse(matrix):
        return matrix
    try:
        matrix.check_format(full_check=True)
    except ValueError as error:
        raise ValueError(f"X must be a valid CSR matrix: {error}") from None
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    return matrix


def no_number(value: float, row: int, column: Any) -> str:
    """What to say of a value that cannot be computed with; rows count from 0."""
    where = f"in row {row} of column {column!r:.60}"
    if np.isnan(value):
        return (
            f"X must hold finite numbers, got NaN {where}: fit an estimator with missing='median' "
            "(--missing median on the command line), fill it in, or leave out such rows"
        )
    if np.isinf(value):
        return (
            f"X must hold finite numbers, got {value} {where}: replace it, or leave out such rows"
        )
    return (
        f"X must hold numbers below {TOO_LARGE:g}, whose squares can be summed: got {value:.3g} "
        f"{where}; change the unit of the column"
    )


def check_label_column(y: Any, n_samples: int) -> np.ndarray[Any, Any]:
    """One label of any type per sample."""
    check_unmasked(y, "y")
    try:
        labels = label_array(y)
    except (TypeError, ValueError) as error:
        found = str(error).partition("\n")[0]
        raise ValueError(f"y must be a 1-D array of labels: {found}") from error
    if labels.size != n_samples:
        raise ValueError(f"y must have one label per row of X: {n_samples}, got {labels.size}")
    return labels


def label_array(y: Any, *, warn: bool = False) -> np.ndarray[Any, Any]:
    """Labels as scikit-learn reads them; a 1-D array is returned as it is."""
    if not (isinstance(y, np.ndarray) and y.ndim == 1 and y.dtype.kind != "c"):
        y = column_or_1d(y, warn=warn)
    return np.asarray(y)


def check_labels(y: Any, n_samples: int) -> FloatArray:
    """Two distinct labels as ±1; the one that sorts last is +1."""
    labels = check_label_column(y, n_samples)
    classes = find_classes(labels)
    if classes.size != 2:
        shown = ", ".join(repr(c) for c in classes[:5].tolist())
        more = ", ..." if classes.size > 5 else ""
        raise ValueError(f"y must hold two classes, got {classes.size} ({shown}{more})")
    return signs_of(labels, classes[1])


def find_classes(labels: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The distinct labels, in order."""
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        row = int(np.argmin(np.isfinite(labels)))
        raise ValueError(
            f"y must have a label for every row, got {labels[row]} in row {row}: fill it in, or "
            "leave out such rows"
        )
    try:
        classes = distinct(labels)
    except TypeError:
        kinds = {type(label).__name__: label for label in reversed(labels)}
        shown = " and ".join(f"{kinds[kind]!r:.30} ({kind})" for kind in sorted(kinds))
        raise ValueError(
            f"y must hold labels of one type and none missing, got {shown}: convert them, for "
            "example to text, and leave out rows without a label"
        ) from None
    if (classes != classes).any():  # NaN and NaT differ from themselves
        raise ValueError(f"y must hold labels and none missing, got {classes[-1]!r}")
    return classes


def distinct(labels: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """``np.unique``, but without sorting if there are only two numbers."""
    if labels.size and labels.dtype.kind in "biuf":
        least, greatest = labels.min(), labels.max()
        ends = np.array([least] if least == greatest else [least, greatest])
        if ((labels == ends[0]) | (labels == ends[-1])).all():
            return ends
    return np.unique(labels)


def signs_of(labels: Any, positive: Any) -> FloatArray:
    """One class against the rest: 1 for its samples, -1 for the others."""
    return np.where(labels == positive, 1.0, -1.0)


def check_weights(sample_weight: Any, n_samples: int) -> FloatArray:
    """Non-negative weights, normalised to sum one (equal weights by default)."""
    if sample_weight is None:
        return np.full(n_samples, 1.0 / n_samples)
    weights = as_numbers(sample_weight, "sample_weight")
    if weights.shape != (n_samples,):
        raise ParameterError(
            "sample_weight", f"must have shape ({n_samples},), got {weights.shape}"
        )
    if not np.isfinite(weights).all() or (weights < 0.0).any():
        bad = weights[~(np.isfinite(weights) & (weights >= 0.0))][0]
        raise ParameterError("sample_weight", f"must be finite and >= 0, got {bad}")
    largest = weights.max()
    if largest == 0.0:
        raise ParameterError("sample_weight", "must have a positive entry, got all zeros")
    weights = weights / largest  # no overflow in the sum
    return np.asarray(weights / weights.sum())
