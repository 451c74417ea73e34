"""From arrays to rows: check the samples and build the rows for the place where X is."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .arrays import FloatArray, Matrix, is_dask
from .blocks import Block
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
    """Rows of a user's arrays; ``ValueError`` says what is wrong with them.

    A float array, which may be memory-mapped, or a canonical CSR matrix is not copied.
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
                f"every sample with the {name} label has weight zero: a fit needs samples of "
                "both classes with positive weight"
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
    """Rows of checked samples, in memory or in a memory-mapped file.

    ``signs`` are the labels as ±1; weights, if given, sum to one.
    """
    n_samples, n_features = X.shape
    n_threads = threads_for(n_jobs, nonzeros(X))
    if n_jobs is None and n_samples < n_features:
        n_threads = 1  # one block, so that the preconditioner covers all samples
    if weights is None:
        weights = np.full(n_samples, 1.0 / n_samples)
    return memory_rows(Block(X, signs, weights, intercept), n_threads)
