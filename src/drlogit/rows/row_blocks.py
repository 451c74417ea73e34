"""Features that are read, or made, one row block at a time, because they do not fit in memory."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

import numpy as np
import scipy.sparse as sp

from .arrays import IndexArray, Matrix

#: Bytes of a block if nobody says otherwise.  Smaller ones make for more visits, larger ones for
#: no fewer bytes; every thread holds one.
BLOCK_BYTES = 1 << 25


class RowBlocks:
    """A matrix of which only a few row blocks are in memory at a time.

    Functions of this package that take X take one of these, except
    :func:`~drlogit.worst_case_distribution`, which gives back all samples moved.  They visit the
    blocks once per pass over the data.

    ``X[rows]`` is another one with some of the rows, picked when a block is read; ``rows``
    (numbers, a mask or a slice) must be ascending.  That is all that cross-validation asks for,
    here or in scikit-learn.

    Parameters
    ----------
    read : callable
        ``read(k)`` gives block k, counted from zero, as a 2-D array or SciPy sparse matrix.  It
        must give the same block each time, and be ready for calls from several threads.
    lengths : sequence of int
        Rows of each block.
    n_features : int
        Columns of every block.
    feature_names : sequence of str, optional
        Names of the columns.

    Attributes
    ----------
    shape : tuple of int
        Rows and columns of the whole.
    lengths : tuple of int
        Rows of each block.
    feature_names : list of str or None
        Names of the columns, if they are known.

    Examples
    --------
    Blocks that are made when they are needed, and are never on any disk:

    >>> import numpy as np
    >>> import drlogit
    >>> def read(k):
    ...     return np.random.default_rng(k).standard_normal((1000, 3))
    >>> X = drlogit.RowBlocks(read, [1000] * 5, n_features=3)
    >>> X.shape
    (5000, 3)
    >>> y = np.concatenate([read(k)[:, 0] > 0.0 for k in range(5)])
    >>> result = drlogit.solve(X, y, epsilon=0.1, kappa=1.0)
    >>> bool(result.gap <= 1e-6)
    True
    """

    ndim = 2

    def __init__(
        self,
        read: Callable[[int], Any],
        lengths: Sequence[int],
        n_features: int,
        feature_names: Sequence[str] | None = None,
    ) -> None:
        self.lengths = tuple(int(length) for length in lengths)
        if not sum(self.lengths) or min(self.lengths) < 0:
            raise ValueError(f"lengths must be the rows of one block or more, got {lengths!r}")
        self.shape = (sum(self.lengths), int(n_features))
        self._read = read
        self.feature_names = None if feature_names is None else list(feature_names)

    @classmethod
    def from_array(cls, array: Any, block_rows: int | None = None) -> RowBlocks:
        """Blocks of anything with a shape and slices of rows: a memory map, an HDF5 data set."""
        if len(array.shape) != 2:
            raise ValueError(f"X must have two dimensions, got shape {tuple(array.shape)}")
        n_rows, n_features = array.shape
        size = np.dtype(array.dtype).itemsize * n_features
        lengths = cut_rows(n_rows, size, block_rows)
        return cls(_Slices(array, lengths), lengths, n_features)

    def block(self, index: int) -> Matrix:
        """Read a block; ``ValueError`` if it is not the shape it should have."""
        matrix = self._read(index)
        wanted = (self.lengths[index], self.shape[1])
        if getattr(matrix, "shape", None) != wanted:
            found = getattr(matrix, "shape", type(matrix).__name__)
            raise ValueError(f"{self.name(index)} must have shape {wanted}, got {found}")
        return matrix

    def __getitem__(self, key: Any) -> RowBlocks:
        if isinstance(key, tuple) and len(key) == 2 and key[1] is Ellipsis:
            key = key[0]  # how scikit-learn picks rows
        rows = np.arange(self.shape[0])[key]
        if rows.ndim != 1 or not rows.size or (np.diff(rows) <= 0).any():
            raise ValueError("rows of RowBlocks must be picked in ascending order, each once")
        picked = _Picked(self, rows)
        return RowBlocks(picked, picked.lengths, self.shape[1], self.feature_names)

    __iter__ = None  # not a sequence of rows

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError(f"{self!r} is not in memory as a whole; block(k) gives one of its blocks")

    def map(self, function: Callable[[Matrix], Any]) -> Any:
        """What a function makes of each block, one below the other."""
        return np.concatenate([function(self.block(k)) for k in self.filled])

    @property
    def filled(self) -> list[int]:
        """Numbers of the blocks that have any rows."""
        return [k for k, length in enumerate(self.lengths) if length]

    def name(self, index: int) -> str:
        """How to speak of a block: its number and its rows, both counted from zero."""
        first = sum(self.lengths[:index])
        return f"block {index} of X (rows {first} to {first + self.lengths[index] - 1})"

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"RowBlocks(shape={self.shape}, blocks={len(self.lengths)})"


def is_dask(X: Any) -> bool:
    """Whether X is a Dask collection; nobody can have one who has not imported Dask."""
    return "dask" in sys.modules and bool(sys.modules["dask"].is_dask_collection(X))


def is_in_blocks(X: Any) -> bool:
    """Whether X is elsewhere than in memory as a whole."""
    return isinstance(X, RowBlocks) or is_dask(X)


def cut_rows(n_rows: int, row_bytes: int, block_rows: int | None = None) -> list[int]:
    """Lengths of blocks of ``block_rows`` rows, by default of about ``BLOCK_BYTES``."""
    if block_rows is not None and block_rows < 1:
        raise ValueError(f"block_rows must be at least 1, got {block_rows!r}")
    step = block_rows or max(1, BLOCK_BYTES // max(row_bytes, 1))
    return [min(step, n_rows - first) for first in range(0, n_rows, step)] or [0]


class _Slices:
    """``read`` for an array: consecutive slices of its rows."""

    def __init__(self, array: Any, lengths: Sequence[int]) -> None:
        self._array = array
        self._ends = list(accumulate(lengths))

    def __call__(self, index: int) -> Matrix:
        first = self._ends[index - 1] if index else 0
        part = self._array[first : self._ends[index]]
        # A plain view: arithmetic on a memory map gives memory maps, at a price.
        return part.view(np.ndarray) if isinstance(part, np.memmap) else part


class _Picked:
    """``read`` for some rows of other blocks: each block is read whole, and cut."""

    def __init__(self, source: RowBlocks, rows: IndexArray) -> None:
        ends = list(accumulate(source.lengths))
        parts = np.split(rows, np.searchsorted(rows, ends[:-1]))
        self._source = source
        self._parts = [
            part - end + n for part, end, n in zip(parts, ends, source.lengths, strict=True)
        ]
        self.lengths = [part.size for part in parts]

    def __call__(self, index: int) -> Matrix:
        part = self._parts[index]
        if not part.size:
            return np.zeros((0, self._source.shape[1]))
        block = self._source.block(index)
        if part.size == block.shape[0]:
            return block
        return (block.tocsr() if sp.issparse(block) else block)[part]
