"""Samples a few rows at a time, for code that reads them once or twice."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .arrays import Matrix, is_dask
from .checks import check_features
from .matrix import row_range


def checked_features(X: Any) -> Any:
    """Check X at once; Dask collections are checked later, part by part."""
    return X if is_dask(X) else check_features(X)


def shape_of(X: Any) -> tuple[int, int]:
    """Rows and columns; a Dask collection is computed only if its shape is unknown."""
    if is_dask(X):
        return sum(part.shape[0] for part in _parts(X)), int(X.shape[1])
    n_rows, n_columns = X.shape
    return n_rows, n_columns


def chunks_of(X: Any, n_rows: int, *, checked: bool = False) -> Iterator[Matrix]:
    """The rows in order, up to ``n_rows`` at a time, as checked float arrays or CSR matrices.

    ``checked`` means that an X in memory has been checked already.
    """
    for part in _parts(X, checked):
        for first in range(0, part.shape[0], n_rows):
            yield row_range(part, first, min(first + n_rows, part.shape[0]))


def _parts(X: Any, checked: bool = False) -> Iterator[Matrix]:
    if not is_dask(X):
        yield X if checked else check_features(X)
        return
    if hasattr(X, "rechunk"):
        X = X.rechunk({1: -1})
    for part in np.ravel(X.to_delayed()):
        block = part.compute()
        if block.shape[0]:
            yield check_features(block)


def in_memory(values: Any) -> Any:
    """A vector of the length of the samples; a Dask collection is computed."""
    return np.asarray(values.compute() if is_dask(values) else values)
