"""The category of each sample in each group of one-hot columns."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..rows.arrays import IndexArray, Matrix
from ..rows.blocks import Block
from ..rows.matrix import ShiftedArray, row_chunks


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
        found = block.beside(category_codes(block.X, new).now)
        kept.update((group.tobytes(), found[:, k]) for k, group in enumerate(new))
    now = np.empty((block.y.size, len(groups)), dtype=np.int32)
    for k, group in enumerate(groups):
        now[:, k] = kept[group.tobytes()]
    return now


def category_codes(X: Matrix, groups: tuple[IndexArray, ...]) -> CategoryCodes:
    """The categories of all samples."""
    n, n_groups = X.shape[0], len(groups)
    now = np.full((n, n_groups), -1, dtype=np.int32)
    wrong = np.full(n, -1, dtype=np.int32)
    if not groups:
        return CategoryCodes(now, wrong)
    columns = np.concatenate(groups).astype(np.int32)
    owners = np.repeat(np.arange(n_groups), [group.size for group in groups])
    X = X.array if isinstance(X, ShiftedArray) else X  # categories are never shifted
    for rows in row_chunks(n, columns.size):
        part = sp.csr_array(X[rows][:, columns])
        part.eliminate_zeros()
        sample = np.repeat(np.arange(part.shape[0]), np.diff(part.indptr))
        place, column = sample * n_groups + owners[part.indices], columns[part.indices]
        now[rows].reshape(-1)[place] = column
        bad = part.data != 1.0
        if np.bincount(place).max(initial=0) > 1:  # a category and another one
            bad[np.setdiff1d(np.arange(place.size), np.unique(place, return_index=True)[1])] = True
        wrong[rows][sample[bad][::-1]] = column[bad][::-1]  # the first one is written last
    return CategoryCodes(now, wrong)
