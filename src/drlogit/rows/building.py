"""From checked arrays to rows, for the place where X is."""

from __future__ import annotations

from typing import Any

import numpy as np

from .arrays import FloatArray, IndexArray, Matrix, is_dask
from .blocks import Block
from .checks import check_label_column, check_weights, find_classes, signs_of
from .interface import Rows
from .local import memory_rows
from .matrix import nonzeros
from .threads import threads_for


def coded(y: Any, matrix: Any) -> tuple[np.ndarray[Any, Any], IndexArray]:
    """The classes, and the labels of the rows as positions among them."""
    if is_dask(y):
        from .dask_collections import encode  # an optional package

        classes, codes = encode(y)
    else:
        y = check_label_column(y, len(y) if is_dask(matrix) else matrix.shape[0])
        classes = find_classes(y)
        two = classes.size <= 2
        codes = (y == classes[-1]).astype(np.intp) if two else np.searchsorted(classes, y)
    if classes.size < 2:
        raise ValueError(
            f"y must have at least two classes, got one class: {classes.tolist()[0]!r}. Add rows "
            "of another class, or check which column y is"
        )
    return classes, codes


def rows_of(
    X: Any,
    codes: Any,
    n_classes: int,
    weights: Any,
    *,
    intercept: bool,
    n_jobs: int | None = None,
) -> Rows:
    """Rows of checked features, wherever they are, and of labels as positions among the classes.

    Those of several classes are beside the rows, whose signs are all +1.
    """
    signs = signs_of(codes, 1 if n_classes == 2 else codes)
    rows: Rows
    if is_dask(X):
        from .dask_collections import dask_rows  # an optional package

        rows = dask_rows(X, signs, weights, intercept=intercept)
    else:
        shares = None if weights is None else check_weights(weights, signs.size)
        rows = checked_rows(X, signs, shares, intercept=intercept, n_jobs=n_jobs)
    return of_both_classes(rows) if weights is not None and n_classes == 2 else rows


def of_both_classes(rows: Rows) -> Rows:
    """The rows, or ``ValueError`` if all samples of a class have weight zero."""
    for total, name in zip(rows.totals.classes, ("smaller", "larger"), strict=True):
        if not total > 0.0:
            raise ValueError(
                f"every sample with the {name} label has weight zero: a fit needs samples of "
                "both classes with positive weight"
            )
    return rows


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
