"""The matrix of one Newton step on pieces: a compiled loop over samples.

With ``v_k = a_k (x_i + e_k)`` and the entry ``-d_k`` at λ for the gradient of piece k, curvatures
``c_k`` and stiffnesses ``D_k``, eliminating the sample's epigraph variable leaves

    Σ_k c_k (x_i + e_k)(x_i + e_k)ᵀ  +  Σ_k D_k δ_k δ_kᵀ - (Σ D_k δ_k)(Σ D_k δ_k)ᵀ / Σ D_k

with δ_k the difference of gradients from the piece of largest D, which keeps digits where one
piece is much stiffer than the others.  Every vector here is a multiple of ``x_i`` plus a few
entries, so the matrix is ``Σ_i g_i x_i x_iᵀ``, which the samples compute as they always do, a
cross term ``Σ_i (x_i f_iᵀ + f_i x_iᵀ)`` with sparse ``f_i``, and a small remainder.
"""

from __future__ import annotations

import numba
import numpy as np
import scipy.sparse as sp

from ..rows.arrays import FloatArray
from ..rows.blocks import Block
from ..rows.matrix import row_chunks
from .pieces import Pieces


@numba.njit(cache=True, nogil=True)
def _accumulate(  # type: ignore[no-untyped-def]
    starts, slope, cost, curvature, stiffness, indptr, columns, entries, size,
    weights, f_counts, f_columns, f_entries, matrix,
):  # fmt: skip
    last = size - 1  # the place of λ
    place = np.full(size, -1, np.int64)
    filled = 0
    for i in range(starts.size - 1):
        first, end = starts[i], starts[i + 1]
        # The columns that any of the sample's pieces changes; λ comes first.
        begin = filled
        for k in range(first, end):
            for t in range(indptr[k], indptr[k + 1]):
                column = columns[t]
                if place[column] < 0:
                    place[column] = filled
                    f_columns[filled], f_entries[filled] = column, 0.0
                    filled += 1
        several = end - first > 1
        if several:
            place[last] = filled
            f_columns[filled], f_entries[filled] = last, 0.0
            filled += 1
        n = filled - begin
        total = 0.0
        for k in range(first, end):
            c = curvature[k]
            total += c
            for t in range(indptr[k], indptr[k + 1]):
                scaled = c * entries[t]
                f_entries[place[columns[t]]] += scaled
                for r in range(indptr[k], indptr[k + 1]):
                    matrix[columns[t], columns[r]] += scaled * entries[r]
        if several:
            stiffest, sum_stiff = first, 0.0
            for k in range(first, end):
                sum_stiff += stiffness[k]
                if stiffness[k] > stiffness[stiffest]:
                    stiffest = k
            several = sum_stiff > 0.0
        if several:
            mean = np.zeros(n)
            delta = np.empty(n)
            mean_x, square = 0.0, 0.0
            for k in range(first, end):
                if k == stiffest:
                    continue
                D = stiffness[k]
                delta[:] = 0.0
                for t in range(indptr[k], indptr[k + 1]):
                    delta[place[columns[t]] - begin] += slope[k] * entries[t]
                for t in range(indptr[stiffest], indptr[stiffest + 1]):
                    delta[place[columns[t]] - begin] -= slope[stiffest] * entries[t]
                delta[place[last] - begin] = cost[stiffest] - cost[k]
                alpha = slope[k] - slope[stiffest]
                mean_x += D * alpha
                square += D * alpha * alpha
                for t in range(n):
                    if delta[t] == 0.0:
                        continue
                    scaled = D * delta[t]
                    mean[t] += scaled
                    f_entries[begin + t] += scaled * alpha
                    row = f_columns[begin + t]
                    for r in range(n):
                        matrix[row, f_columns[begin + r]] += scaled * delta[r]
            total += max(square - mean_x * mean_x / sum_stiff, 0.0)
            for t in range(n):
                if mean[t] == 0.0:
                    continue
                scaled = mean[t] / sum_stiff
                f_entries[begin + t] -= scaled * mean_x
                row = f_columns[begin + t]
                for r in range(n):
                    matrix[row, f_columns[begin + r]] -= scaled * mean[r]
        for t in range(begin, filled):
            place[f_columns[t]] = -1
        weights[i] = total
        f_counts[i] = n
    return filled


@numba.njit(cache=True, nogil=True)
def _cross(f_starts, f_columns, f_entries, indptr, indices, data, out):  # type: ignore[no-untyped-def]
    for i in range(f_starts.size - 1):
        for t in range(f_starts[i], f_starts[i + 1]):
            row, scaled = f_columns[t], f_entries[t]
            if scaled == 0.0:
                continue
            for r in range(indptr[i], indptr[i + 1]):
                out[row, indices[r]] += scaled * data[r]


def piece_gram(
    block: Block, pieces: Pieces, slope: FloatArray, curvature: FloatArray, stiffness: FloatArray
) -> FloatArray:
    """The matrix above, in the coordinates of the pieces and, last, λ.

    ``slope`` are the factors ``a_k`` of the gradients.
    """
    n, size = block.y.size, pieces.changes.width + 1
    changes = pieces.changes
    matrix = np.zeros((size, size))
    weights, counts = np.empty(n), np.empty(n, dtype=np.int64)
    room = changes.entries.size + n
    columns, entries = np.empty(room, dtype=np.int32), np.empty(room)
    filled = _accumulate(
        pieces.starts(n), slope, pieces.cost, curvature, stiffness,
        changes.indptr, changes.columns, changes.entries, size,
        weights, counts, columns, entries, matrix,
    )  # fmt: skip
    starts = np.concatenate([[0], np.cumsum(counts)])
    X = block.X if block.thin is None else block.thin
    cross = np.zeros((size, size))
    n_features = X.shape[1]
    f = sp.csr_array((entries[:filled], columns[:filled], starts), shape=(n, size))
    if sp.issparse(X):
        _cross(starts, columns, entries, X.indptr, X.indices, X.data, cross)
    else:
        for rows in row_chunks(*X.shape):
            chunk = np.asarray(X[rows], dtype=np.float64)
            cross[:, :n_features] += f[rows].T @ chunk
    if block.intercept:
        cross[:, n_features] = f.T @ np.ones(n)
    matrix += cross
    matrix += cross.T
    p = block.n_columns
    matrix[:p, :p] += block.gram(weights)
    return matrix
