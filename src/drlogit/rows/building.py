"""From arrays to rows: the samples checked, and put in the kind of rows that suits where X is."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .arrays import FloatArray, Matrix, is_dask
from .checks import (
    check_features,
    check_label_column,
    check_labels,
    check_two_classes,
    check_weights,
    find_classes,
)
from .interface import Rows
from .local import memory_rows
from .matrix import nonzeros
from .threads import threads_for


def build_rows(
    X: Any, y: Any, sample_weight: Any, *, intercept: bool, n_jobs: int | None = None
) -> Rows:
    """Rows of whatever a user hands over; ``ValueError`` says what is wrong with it.

    X is used as it is: no copy is made of a float array, which may lie in a file, or of a canonical
    CSR matrix.
    """
    rows: Rows
    if is_dask(X):
        from .dask_collections import dask_rows, encode  # an optional package

        labels, positive = y, 1.0
        if is_dask(y):
            classes, _codes = encode(y)  # while there are codes, y is not computed again
            check_two_classes(classes)
            positive = classes[1]
        else:
            labels = check_labels(y, len(y))
        rows = dask_rows(X, labels, sample_weight, positive=positive, intercept=intercept)
    else:
        X = check_features(X)
        signs = check_labels(y, X.shape[0])
        weights = None if sample_weight is None else check_weights(sample_weight, X.shape[0])
        rows = checked_rows(X, signs, weights, intercept=intercept, n_jobs=n_jobs)
    return rows if sample_weight is None else of_both_classes(rows)


def of_both_classes(rows: Rows) -> Rows:
    """The rows, or ``ValueError`` if all samples of a class have weight zero."""
    for total, name in zip(rows.totals.classes, ("smaller", "larger"), strict=True):
        if not total > 0.0:
            raise ValueError(
                f"every sample with the {name} label has weight zero; two classes are wanted"
            )
    return rows


def labels_of(y: Any) -> NDArray[Any]:
    """The distinct labels, in order."""
    if is_dask(y):
        from .dask_collections import encode

        return np.asarray(encode(y)[0])
    return find_classes(check_label_column(y, len(y)))


def checked_rows(
    X: Matrix,
    signs: FloatArray,
    weights: FloatArray | None,
    *,
    intercept: bool,
    n_jobs: int | None = None,
) -> Rows:
    """The same for samples that have been checked, in memory or in a file that is mapped.

    ``signs`` are the labels as ±1; weights, if any, sum to one.
    """
    n_samples, n_features = X.shape
    n_threads = threads_for(n_jobs, nonzeros(X))
    if n_jobs is None and n_samples < n_features:
        n_threads = 1  # one block, which is preconditioned as a whole
    if weights is None:
        weights = np.full(n_samples, 1.0 / n_samples)
    return memory_rows(X, signs, weights, intercept=intercept, n_threads=n_threads)
