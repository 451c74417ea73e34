"""The plain binary files that row blocks are read from, and labels beside them.

Svmlight text and Parquet are converted to such files (see ``blocks`` of either), a ``.npy`` file is
one already.
"""

from __future__ import annotations

from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..rows.arrays import Matrix
from .limits import check_memory


class DenseFile:
    """``read`` for rows that follow each other in a file.

    Reads rather than maps: a map of all of the file would count against a limit on memory.
    """

    def __init__(
        self, path: Path, offset: int, dtype: Any, lengths: list[int], n_features: int
    ) -> None:
        self._path, self._offset = path, offset
        self._dtype, self._lengths, self._n_features = np.dtype(dtype), lengths, n_features

    def __call__(self, index: int) -> Matrix:
        row = self._n_features * self._dtype.itemsize
        count = self._lengths[index] * self._n_features
        first = self._offset + row * sum(self._lengths[:index])
        values = np.fromfile(self._path, self._dtype, count, offset=first)
        if values.size != count:
            raise ValueError(f"{self._path} ends before block {index}: was it changed?")
        return values.reshape(self._lengths[index], self._n_features)


class SparseFiles:
    """``read`` for CSR rows: entries, column numbers and row ends in a file each."""

    def __init__(self, folder: Path, dtype: Any, lengths: list[int], n_features: int) -> None:
        self._folder, self._dtype = folder, np.dtype(dtype)
        self._starts, self._n_features = [0, *accumulate(lengths)], n_features

    def __call__(self, index: int) -> Matrix:
        first, last = self._starts[index], self._starts[index + 1]
        ends = self._part("indptr", np.int64, first, last + 1)
        start, stop = int(ends[0]), int(ends[-1])
        data = self._part("data", self._dtype, start, stop)
        indices = self._part("indices", np.int32, start, stop)
        # Compiled code follows these without looking: a damaged copy must not lead it astray.
        if (ends[1:] < ends[:-1]).any() or not _within(indices, self._n_features):
            raise ValueError(f"{self._folder} is damaged: remove it, and it will be made again")
        matrix = sp.csr_array(
            (data, indices, (ends - start).astype(np.int32)), shape=(last - first, self._n_features)
        )
        matrix.has_canonical_format = True  # made so when it was converted
        return matrix

    def _part(self, name: str, dtype: Any, first: int, last: int) -> NDArray[Any]:
        size = np.dtype(dtype).itemsize
        if not 0 <= first <= last <= (self._folder / name).stat().st_size // size:
            raise ValueError(f"{self._folder} is damaged: remove it, and it will be made again")
        part = np.fromfile(self._folder / name, dtype, last - first, offset=size * first)
        if part.size != last - first:
            raise ValueError(f"{self._folder / name} is shorter than it was when it was written")
        return part


def _within(indices: NDArray[Any], n_features: int) -> bool:
    return not indices.size or (indices.min() >= 0 and indices.max() < n_features)


def save_labels(folder: Path, parts: list[NDArray[Any]], path: Path) -> None:
    """Write the labels of a copy of ``path``, which came in parts."""
    labels = np.concatenate(parts)
    if labels.dtype == object:  # text, which a file holds at a fixed width
        if not all(isinstance(label, str) for label in labels):
            raise ValueError(f"{path}: the labels must all be numbers or all be text, none missing")
        longest = max(map(len, labels))
        check_memory(4 * longest * labels.size, f"{path}: labels of {longest} letters")
        labels = labels.astype(str)
    np.save(folder / "labels.npy", labels)
