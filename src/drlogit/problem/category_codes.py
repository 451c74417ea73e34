"""Which category a sample has in each group of one-hot columns, by compiled loops.

Kept in a module of its own because importing numba takes longer than most fits.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..rows.arrays import IndexArray, Matrix
from ..rows.matrix import row_chunks


class CategoryCodes(NamedTuple):
    """Samples by groups.

    ``now`` holds the column of the category, -1 for none; ``wrong`` the first column per sample
    that has something else than one 1 in its group, -1 for none.
    """

    now: NDArray[np.int32]
    wrong: NDArray[np.int32]


def category_codes(X: Matrix, groups: tuple[IndexArray, ...]) -> CategoryCodes:
    """The categories of all samples."""
    n = X.shape[0]
    now = np.full((n, len(groups)), -1, dtype=np.int32)
    wrong = np.full(n, -1, dtype=np.int32)
    if not groups:
        return CategoryCodes(now, wrong)
    columns = np.concatenate(groups).astype(np.int32)
    sizes = [group.size for group in groups]
    owners = np.repeat(np.arange(len(groups), dtype=np.int32), sizes)
    if sp.issparse(X):
        group_of = np.full(X.shape[1], -1, dtype=np.int32)
        group_of[columns] = owners
        _of_sparse(X.indptr, X.indices, X.data, group_of, now, wrong)
    else:
        together = slice(columns[0], columns[-1] + 1)
        runs = columns.size == columns[-1] + 1 - columns[0] and (np.diff(columns) == 1).all()
        for rows in row_chunks(n, columns.size):
            part = np.ascontiguousarray(X[rows][:, together if runs else columns], dtype=np.float64)
            _of_dense(part, columns, owners, now[rows], wrong[rows])
    return CategoryCodes(now, wrong)


@numba.njit(cache=True, nogil=True)
def _of_sparse(indptr, indices, data, group_of, now, wrong):  # type: ignore[no-untyped-def]
    for i in range(now.shape[0]):
        for t in range(indptr[i], indptr[i + 1]):
            g = group_of[indices[t]]
            if g < 0 or data[t] == 0.0:
                continue
            if (data[t] != 1.0 or now[i, g] >= 0) and wrong[i] < 0:
                wrong[i] = indices[t]
            now[i, g] = indices[t]


@numba.njit(cache=True, nogil=True)
def _of_dense(part, columns, owners, now, wrong):  # type: ignore[no-untyped-def]
    for i in range(now.shape[0]):
        for t in range(columns.size):
            value = part[i, t]
            if value == 0.0:
                continue
            g = owners[t]
            if (value != 1.0 or now[i, g] >= 0) and wrong[i] < 0:
                wrong[i] = columns[t]
            now[i, g] = columns[t]
