"""The category of each sample in each group of one-hot columns."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..rows.arrays import IndexArray, Matrix
from ..rows.blocks import Block
from ..rows.matrix import ShiftedArray, row_chunks
from ._moves import codes_of_dense, codes_of_sparse


class CategoryCodes(NamedTuple):
    """Categories as arrays of samples by groups.

    ``now`` is the column of the category, -1 for none.  ``wrong`` is the first column of a sample
    whose group holds anything but zeros and a single 1; -1 if there is no such column.
    """

    now: NDArray[np.int32]
    wrong: NDArray[np.int32]


def codes_of(block: Block, groups: tuple[IndexArray, ...]) -> NDArray[np.int32]:
    """The categories of a block's samples; each group is read once and cached with the block."""
    kept = block.kept.setdefault("codes", {})
    new = tuple(group for group in groups if group.tobytes() not in kept)
    if new:
        found = category_codes(block.X, new).now
        kept.update((group.tobytes(), found[:, k]) for k, group in enumerate(new))
    now = np.empty((block.y.size, len(groups)), dtype=np.int32)
    for k, group in enumerate(groups):
        now[:, k] = kept[group.tobytes()]
    return now


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
        codes_of_sparse(X.indptr, X.indices, X.data, group_of, now, wrong)
        return CategoryCodes(now, wrong)
    X = X.array if isinstance(X, ShiftedArray) else X  # categories are never shifted
    for rows in row_chunks(n, columns.size):
        part = X[rows]
        if not (part.dtype in (np.float32, np.float64) and part.flags.aligned):
            part = part.astype(np.float64)
        codes_of_dense(part, columns, owners, now[rows], wrong[rows])
    return CategoryCodes(now, wrong)
