"""The matrix of one row block, dense or sparse: views of it, copies in other forms.

Products with it are compiled (``_products``).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg.blas import dsyrk

from ._products import CompiledRows, compiled_rows, product, sparse_outer
from .arrays import FloatArray, IndexArray, Matrix

#: Bytes of one dense chunk: half of a common second-level cache.
CHUNK_BYTES = 1 << 20

#: Up to about this share of non-zeros sparse loops beat BLAS (normal entries at random places, 22 %
#: of them, 900 × 20 to 20000 × 40: .7 to 1.8 times as long, .9 in the mean; MNIST 0 v 3, of 22 %,
#: half as long).  A sparse matrix that has more is copied as a dense array, if that takes no more
#: than so many bytes; a dense array that has no more, if it is large, as a sparse matrix.
SPARSE_SHARE = 0.25
DENSE_COPY_BYTES = 1 << 27

#: Stored entries for each thread of a fit, at least: with fewer, handing over the work takes longer
#: than the second core saves.  A sparse copy pays from twice as many on.
MANY_ENTRIES = 500_000


class ShiftedArray:
    """A dense array less a constant in each column, made when rows of it are asked for."""

    dtype = np.dtype(np.float64)

    def __init__(self, array: Any, shift: FloatArray) -> None:
        self.array = array
        self.shift = shift
        self.shape: tuple[int, int] = array.shape
        self.size: int = array.size
        self.nbytes: int = array.nbytes

    def __getitem__(self, index: Any) -> Any:
        columns = index[1] if isinstance(index, tuple) else slice(None)
        return self.array[index] - self.shift[columns]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.asarray(self[:], dtype=dtype)


def shifted(X: Matrix, shift: FloatArray) -> Matrix:
    """``X - 1·shiftᵀ``; of sparse matrices, stored entries only are shifted."""
    if isinstance(X, ShiftedArray):
        return ShiftedArray(X.array, X.shift + shift)
    if not sp.issparse(X):
        return ShiftedArray(X, shift)
    matrix = X.astype(np.float64)
    matrix.data -= shift[matrix.indices]
    matrix.eliminate_zeros()  # of constants; others may all be one, and those loops are faster
    return matrix


def row_chunks(n_rows: int, n_columns: int, least: int = 64) -> Iterator[slice]:
    """Slices that cut ``n_rows`` into chunks of about ``CHUNK_BYTES`` in double precision.

    No chunk but the last has fewer than ``least`` rows.
    """
    step = max(least, CHUNK_BYTES // (8 * max(n_columns, 1)))
    for first in range(0, n_rows, step):
        yield slice(first, min(first + step, n_rows))


def row_range(X: Matrix, first: int, last: int) -> Matrix:
    """Rows ``first`` to ``last - 1``, sharing the entries of X."""
    if (first, last) == (0, X.shape[0]):
        return X
    if isinstance(X, ShiftedArray):
        return ShiftedArray(X.array[first:last], X.shift)
    if not sp.issparse(X):
        return X[first:last]
    start, stop = X.indptr[first], X.indptr[last]
    # SciPy's constructors copy views of larger arrays.
    part = sp.csr_array((last - first, X.shape[1]), dtype=X.dtype)
    part.data, part.indices = X.data[start:stop], X.indices[start:stop]
    part.indptr = X.indptr[first : last + 1] - start
    part.has_canonical_format = True  # as check_features made sure of the whole
    return part


def take_rows(X: Matrix, rows: IndexArray) -> Matrix:
    """Some of the rows, as a copy."""
    return ShiftedArray(X.array[rows], X.shift) if isinstance(X, ShiftedArray) else X[rows]


def take_columns(X: Matrix, columns: IndexArray) -> Matrix:
    """Some of the columns, as a copy."""
    if isinstance(X, ShiftedArray):
        return ShiftedArray(np.ascontiguousarray(X.array[:, columns]), X.shift[columns])
    return X[:, columns] if sp.issparse(X) else np.ascontiguousarray(X[:, columns])


def compiled(X: Matrix, y: FloatArray, weights: FloatArray, intercept: bool) -> CompiledRows:
    """Samples as compiled loops see them."""
    if isinstance(X, ShiftedArray):
        return compiled_rows(X.array, y, weights, intercept, X.shift)
    return compiled_rows(X, y, weights, intercept)


def matvec(X: Matrix, v: FloatArray) -> FloatArray:
    """``X v`` in double precision."""
    if sp.issparse(X):
        return np.asarray(X @ v)
    unused = np.empty(X.shape[0])
    rows = compiled(X, unused, unused, False)
    return np.asarray(product(rows, np.ascontiguousarray(v, dtype=np.float64)))


def matmat(X: Matrix, factor: FloatArray) -> FloatArray:
    """``X·factor`` in double precision; X is converted and shifted a chunk at a time."""
    found = np.empty((X.shape[0], factor.shape[1]))
    for rows in row_chunks(*X.shape):
        found[rows] = X[rows] @ factor
    return found


def nonzeros(X: Matrix) -> int:
    """Stored entries: what a product with a vector has to read."""
    return int(X.nnz) if sp.issparse(X) else int(X.shape[0]) * int(X.shape[1])


def outer_product(X: Matrix, row_scale: FloatArray, column_scale: FloatArray) -> FloatArray:
    """Lower half of ``diag(r) X diag(c²) Xᵀ diag(r)``; what is above it means nothing."""
    n_rows = X.shape[0]
    out = np.zeros((n_rows, n_rows))
    if sp.issparse(X):
        values = X.data * np.repeat(row_scale, np.diff(X.indptr)) * column_scale[X.indices]
        scaled = sp.csr_array((values, X.indices, X.indptr), X.shape)
        by_row, by_column = (
            (each.indptr.astype(np.intp), each.indices.astype(np.int32), each.data)
            for each in (scaled, scaled.tocsc())
        )
        # SciPy's product of sparse matrices takes four times as long (farm-ads).
        sparse_outer(*by_row, *by_column, out)
        for rows in row_chunks(n_rows, n_rows):  # its upper half, without another matrix
            out[rows, : rows.stop] = out[: rows.stop, rows].T
        return out
    step = max(64, CHUNK_BYTES // (8 * max(n_rows, 1)))
    for first in range(0, X.shape[1], step):
        part = X[:, first : first + step] * column_scale[first : first + step]
        dsyrk(1.0, part.T, 1.0, out.T, trans=1, overwrite_c=1)  # in the order of LAPACK
    out *= row_scale
    out *= row_scale[:, None]
    return out


def held(X: Matrix) -> Matrix:
    """X as it is kept for a fit: itself, or a small dense copy of a well-filled sparse matrix.

    BLAS is faster with that, entry by entry, than the sparse loops are.
    """
    size = X.shape[0] * X.shape[1]
    well_filled = sp.issparse(X) and X.nnz > SPARSE_SHARE * size
    small = size * X.dtype.itemsize <= DENSE_COPY_BYTES
    return X.toarray() if well_filled and small else X


def thin_copy(X: Matrix) -> Matrix | None:
    """A CSR copy, half of X at most, of a dense array most of whose entries are zero, or None."""
    if not isinstance(X, np.ndarray) or X.size < 2 * MANY_ENTRIES:
        return None
    for some in (X[:: max(1, X.shape[0] // 64)], X):  # a look at a few rows is enough for most
        if np.count_nonzero(some) > SPARSE_SHARE * some.size:
            return None
    return sp.csr_array(X)
