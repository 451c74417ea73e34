"""Samples a few rows at a time, for code that reads them once or twice."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from .arrays import FloatArray, IndexArray, Matrix, is_dask
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


def digest_of_features(X: Any) -> str:
    """SHA-256 of the features, independent of storage format and chunks."""
    counts, columns, values = hashlib.sha256(), hashlib.sha256(), hashlib.sha256()
    n_features = 0
    for part in chunks_of(X, 4096):
        n_features = part.shape[1]
        if isinstance(part, np.ndarray) and part.all():
            counts.update(np.full(part.shape[0], n_features, dtype="<i8").tobytes())
            values.update(np.ascontiguousarray(part, dtype="<f8").tobytes())
            continue
        matrix = sp.csr_array(part)
        if not matrix.data.all():  # stored zeros must not change the digest
            matrix = matrix.copy()
            matrix.eliminate_zeros()
        lengths = np.diff(matrix.indptr)
        named = np.repeat(lengths < n_features, lengths)  # a full row needs no column indices
        counts.update(lengths.astype("<i8").tobytes())
        columns.update(matrix.indices[named].astype("<i8").tobytes())
        values.update(matrix.data.astype("<f8").tobytes())
    whole = hashlib.sha256(str(n_features).encode())
    for each in (counts, columns, values):
        whole.update(each.digest())
    return whole.hexdigest()


def digest_of_samples(
    features: str, labels: FloatArray | IndexArray, weights: FloatArray | None
) -> str:
    """SHA-256 of samples whose features have the digest ``features``.

    ``labels`` are ±1 as floats, or integer codes of several classes.  ``weights`` is None if all
    are equal.
    """
    signs = labels.dtype.kind == "f"
    own = (labels > 0.0) if signs else labels.astype("<i8")
    whole = hashlib.sha256(features.encode() + own.tobytes())
    whole.update(b"" if weights is None else np.asarray(weights, dtype="<f8").tobytes())
    return whole.hexdigest()
