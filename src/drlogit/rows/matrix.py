"""Products with the matrix of one row block, dense or sparse.

Compiled loops (``_products``) do the work of the engine; this is for everybody else.  No product
makes a scaled or converted copy of X: work goes through chunks of rows that fit the cache, so that
float32 input is widened chunk by chunk and its products are accumulated in double precision.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from .arrays import BoolArray, FloatArray, IndexArray, Matrix

#: Bytes of one dense chunk: half of a common second-level cache, so that the scaled copy of
#: the chunk is still there when BLAS reads it.
CHUNK_BYTES = 1 << 20

#: Below this share of non-zeros the sparse loop beats BLAS on widened chunks: one scattered
#: multiply-add costs about as much as twenty of BLAS's.
SPARSE_GRAM_DENSITY = 0.2

#: A dense matrix of at least so many entries, up to this share of them non-zero, is copied as a
#: sparse one.
FEW_ENTRIES = 1 << 20
THIN_DENSITY = 0.25

#: A sparse matrix above that share is kept as a dense copy if this many bytes suffice.
DENSE_COPY_BYTES = 1 << 27


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
    parts = X.data - shift[X.indices], X.indices, X.indptr
    matrix = _compressed(sp.csr_array, parts, X.shape)
    matrix.has_canonical_format = True
    return matrix


def full_columns(X: Matrix) -> BoolArray:
    """Columns of which every entry is stored."""
    if not sp.issparse(X):
        return np.ones(X.shape[1], dtype=bool)
    return np.asarray(np.bincount(X.indices, minlength=X.shape[1]) == X.shape[0])


def _at_once(X: Matrix) -> bool:
    """Whether X can be multiplied as it is, not only chunk by chunk."""
    if isinstance(X, ShiftedArray) or X.dtype != np.float64:
        return False
    # What has come over a network may lie where BLAS cannot read it; NumPy would copy it whole.
    return sp.issparse(X) or bool(X.flags.aligned)


def _readable(chunk: Any) -> Any:
    """A dense chunk in double precision where BLAS can read it, until the next is asked for."""
    if chunk.dtype == np.float64 and chunk.flags.aligned:
        return chunk
    copy = _workspace(chunk.shape[0], chunk.shape[1], np.float64, "chunk")
    np.copyto(copy, chunk)
    return copy


def row_chunks(n_rows: int, n_columns: int, least: int = 64) -> Iterator[slice]:
    """Slices that cut ``n_rows`` into pieces of about ``CHUNK_BYTES`` in double precision.

    No piece but the last has fewer than ``least`` rows.
    """
    step = max(least, CHUNK_BYTES // (8 * max(n_columns, 1)))
    for first in range(0, n_rows, step):
        yield slice(first, min(first + step, n_rows))


def sparse_chunks(X: Matrix, *, square: bool = False) -> Iterator[tuple[slice, Matrix]]:
    """Pieces of a CSR matrix, or of its elementwise square, widened to double precision.

    SciPy's products would widen all of a float32 matrix at once.
    """
    step = CHUNK_BYTES // 8
    ends = np.searchsorted(X.indptr, np.arange(step, X.nnz + step, step), side="right") - 1
    first = 0
    for last in np.unique(np.append(ends, X.shape[0])).tolist():
        if last == first:
            continue
        rows = slice(first, last)
        start, stop = X.indptr[first], X.indptr[last]
        data = X.data[start:stop]
        data = np.square(data, dtype=np.float64) if square else data.astype(np.float64)
        parts = (data, X.indices[start:stop], X.indptr[first : last + 1] - start)
        yield rows, sp.csr_array(parts, shape=(last - first, X.shape[1]))
        first = last


def row_range(X: Matrix, first: int, last: int) -> Matrix:
    """Rows ``first`` to ``last - 1``, sharing the entries of X."""
    if (first, last) == (0, X.shape[0]):
        return X
    if isinstance(X, ShiftedArray):
        return ShiftedArray(X.array[first:last], X.shift)
    if not sp.issparse(X):
        return X[first:last]
    start, stop = X.indptr[first], X.indptr[last]
    parts = X.data[start:stop], X.indices[start:stop], X.indptr[first : last + 1] - start
    part = _compressed(sp.csr_array, parts, (last - first, X.shape[1]))
    part.has_canonical_format = True  # as check_features made sure of the whole
    return part


def take_rows(X: Matrix, rows: IndexArray) -> Matrix:
    """Some of the rows, as a copy."""
    return ShiftedArray(X.array[rows], X.shift) if isinstance(X, ShiftedArray) else X[rows]


def transposed(X: Matrix) -> Matrix:
    """``Xᵀ``, sharing the entries of X; a shifted array, which is only read by rows, as it is."""
    if isinstance(X, ShiftedArray):
        return X
    if not sp.issparse(X):
        return X.T
    return _compressed(sp.csc_array, (X.data, X.indices, X.indptr), X.shape[::-1])


def _compressed(kind: Any, parts: tuple[Any, Any, Any], shape: tuple[int, int]) -> Matrix:
    """A CSR or CSC array of these entries; SciPy's constructors copy views of larger arrays."""
    matrix = kind(shape, dtype=parts[0].dtype)
    matrix.data, matrix.indices, matrix.indptr = parts
    return matrix


def nonzeros(X: Matrix) -> int:
    """Stored entries: what a product with a vector has to read."""
    return int(X.nnz) if sp.issparse(X) else int(X.shape[0]) * int(X.shape[1])


def density(X: Matrix) -> float:
    """Share of stored entries (1 for a dense array)."""
    return float(nonzeros(X) / max(X.shape[0] * X.shape[1], 1))


def matvec(X: Matrix, v: FloatArray) -> FloatArray:
    """``X v`` in double precision; ``v`` is a vector or a matrix of few columns."""
    if _at_once(X):
        return np.asarray(X @ v, dtype=np.float64)
    out = np.empty((X.shape[0], *v.shape[1:]))
    if sp.issparse(X):
        for rows, part in sparse_chunks(X):
            out[rows] = part @ v
        return out
    for rows in row_chunks(*X.shape):
        np.matmul(_readable(X[rows]), v, out=out[rows])
    return out


def rmatvec(X: Matrix, r: FloatArray, transposed: Matrix | None = None) -> FloatArray:
    """``Xᵀ r`` in double precision; ``r`` is a vector or a matrix of few columns.

    ``transposed`` is ``X.T`` if the caller keeps it: for sparse matrices making that view takes
    longer than a small product.
    """
    if _at_once(X) and (r.ndim == 1 or sp.issparse(X)):
        return np.asarray((X.T if transposed is None else transposed) @ r, dtype=np.float64)
    out = np.zeros((*r.shape[1:], X.shape[1]))
    if sp.issparse(X):
        for rows, part in sparse_chunks(X):
            out += (part.T @ r[rows]).T
        return out.T
    # BLAS is at its best here with the few columns of r as few rows.
    for rows in row_chunks(*X.shape):
        out += r[rows].T @ _readable(X[rows])
    return out.T


def absolute_matvec(X: Matrix, v: FloatArray) -> FloatArray:
    """``|X| v``, with the sizes of the entries instead of them."""
    if sp.issparse(X):
        return np.asarray(abs(X) @ v, dtype=np.float64)
    out = np.empty(X.shape[0])
    for rows in row_chunks(*X.shape):
        out[rows] = np.abs(X[rows]).astype(np.float64, copy=False) @ v
    return out


def largest_entries(X: Matrix, rows: BoolArray) -> FloatArray:
    """The size of the largest entry of each column in these ``rows``."""
    found = np.zeros(X.shape[1])
    if sp.issparse(X):
        stored = np.repeat(rows, np.diff(X.indptr))
        np.maximum.at(found, X.indices[stored], np.abs(X.data[stored]))
        return found
    for chunk in row_chunks(*X.shape):
        found = np.maximum(found, np.abs(X[chunk][rows[chunk]]).max(axis=0, initial=0.0))
    return found


def are_whole(X: Matrix, columns: BoolArray, limit: float) -> bool:
    """Whether these columns hold nothing but whole numbers up to ``limit`` in size."""
    if sp.issparse(X):
        values = X.data[columns[X.indices]]
        return bool(((values == np.rint(values)) & (np.abs(values) <= limit)).all())
    for rows in row_chunks(*X.shape):
        values = X[rows][:, columns]
        if not ((values == np.rint(values)) & (np.abs(values) <= limit)).all():
            return False
    return True


def squared_columns(X: Matrix, d: FloatArray) -> FloatArray:
    """``Σ_i d_i X_ij²`` for every column j: the diagonal of the weighted Gram matrix."""
    out = np.zeros(X.shape[1])
    if sp.issparse(X):
        for rows, part in sparse_chunks(X, square=True):
            out += part.T @ d[rows]
        return out
    for rows in row_chunks(*X.shape):
        chunk = X[rows]
        squares = _workspace(chunk.shape[0], chunk.shape[1], np.float64, "chunk")
        out += d[rows] @ np.square(chunk, dtype=np.float64, out=squares)
    return out


_kept = threading.local()


def _workspace(n_rows: int, n_columns: int, dtype: Any, purpose: str) -> Any:
    """An uninitialised array, the same memory for all small ones of a thread and purpose.

    Blocks of a few thousand rows would otherwise spend as long on getting it as on the product.
    """
    size = n_rows * n_columns * np.dtype(dtype).itemsize
    if size > 2 * CHUNK_BYTES:
        return np.empty((n_rows, n_columns), dtype=dtype)
    memory = getattr(_kept, purpose, None)
    if memory is None or memory.size < size:
        memory = np.empty(size, dtype=np.uint8)
        setattr(_kept, purpose, memory)
    return memory[:size].view(dtype).reshape(n_rows, n_columns)


def outer_product(X: Matrix, row_scale: FloatArray, column_scale: FloatArray) -> FloatArray:
    """Upper triangle of ``diag(r) X diag(c²) Xᵀ diag(r)``; what is below it means nothing."""
    n_rows = X.shape[0]
    if sp.issparse(X):
        scaled = sp.csr_array(X.multiply(row_scale[:, None]).multiply(column_scale))
        out = np.zeros((n_rows, n_rows))
        # The product of sparse matrices is anything but sparse: piece by piece.
        for rows in row_chunks(n_rows, n_rows):
            out[rows, rows.start :] = (scaled[rows] @ scaled[rows.start :].T).toarray()
        return out
    out = np.zeros((n_rows, n_rows))
    step = max(64, CHUNK_BYTES // (8 * max(n_rows, 1)))
    for first in range(0, X.shape[1], step):
        part = X[:, first : first + step] * column_scale[first : first + step]
        part *= row_scale[:, None]
        out += part @ part.T
    return out


def held(X: Matrix) -> Matrix:
    """X as it is kept for a fit: itself, or a small dense copy of a well-filled sparse matrix.

    Gram matrices of such a matrix go through dense chunks anyway, and unpacking them anew in
    every iteration costs more than the product.
    """
    size = X.shape[0] * X.shape[1] * X.dtype.itemsize
    well_filled = sp.issparse(X) and density(X) >= SPARSE_GRAM_DENSITY
    return X.toarray() if well_filled and size <= DENSE_COPY_BYTES else X


def thin_copy(X: Matrix) -> Matrix | None:
    """A CSR copy of a dense float64 X most of whose entries are zero; None for others.

    BLAS keeps its lead for Gram matrices, but a product with a vector takes as long as reading
    the matrix, and the copy is a third of X at most.
    """
    if sp.issparse(X) or not _at_once(X) or X.size < FEW_ENTRIES:
        return None
    some = X[:: max(1, X.shape[0] // 64)]
    if np.count_nonzero(some) > THIN_DENSITY * some.size:
        return None
    present = X != 0.0
    if np.count_nonzero(present) > THIN_DENSITY * X.size:
        return None
    flat = np.flatnonzero(present)
    ends = np.cumsum(np.count_nonzero(present, axis=1))
    parts = X.ravel()[flat], (flat % X.shape[1]).astype(np.int32), np.append(0, ends)
    thin = sp.csr_array(parts, shape=X.shape)
    thin.has_canonical_format = True
    return thin
