"""Features that are read, or made, one row block at a time, because they do not fit in memory.

:class:`RowBlocks` is what users hand over; its :func:`stored_rows` are visited as those in memory
are, a block being read for one pass and forgotten.  What has the length of the samples and is not X
stays in memory: labels, weights and the state of the solver, a few numbers per sample.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from copy import copy
from functools import cached_property, partial
from itertools import accumulate
from typing import Any

import numpy as np
import scipy.sparse as sp

from .arrays import FloatArray, IndexArray, Matrix
from .blocks import Block
from .checks import check_features
from .local import LocalRows
from .matrix import held, nonzeros, shifted
from .reductions import Sum

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
        if block_rows is not None and block_rows < 1:
            raise ValueError(f"block_rows must be at least 1, got {block_rows!r}")
        n_rows, n_features = array.shape
        size = np.dtype(array.dtype).itemsize * n_features
        step = block_rows or max(1, BLOCK_BYTES // max(size, 1))
        lengths = [min(step, n_rows - first) for first in range(0, n_rows, step)] or [0]
        return cls(partial(_rows_of, array, step), lengths, n_features)

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


def _rows_of(array: Any, step: int, index: int) -> Matrix:
    """``read`` for an array: consecutive slices of its rows."""
    part = array[index * step : (index + 1) * step]
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


# --- rows of it -----------------------------------------------------------------------------


def stored_rows(
    source: RowBlocks,
    signs: FloatArray,
    weights: FloatArray | None,
    *,
    intercept: bool,
    n_threads: int = 1,
) -> LocalRows:
    """The blocks of a :class:`RowBlocks`; checks all of them once.

    ``signs`` are the labels as ±1; ``weights`` may be None for equal ones.
    """
    weights = np.full(signs.size, 1.0 / signs.size) if weights is None else weights
    blocks = [
        StoredBlock(source, index, signs[end - n : end], weights[end - n : end], intercept)
        for index, (n, end) in enumerate(
            zip(source.lengths, accumulate(source.lengths), strict=True)
        )
    ]
    rows = LocalRows(blocks, n_threads, n_nonzeros=0)
    _, (rows.n_nonzeros, rows.totals) = rows.run(_inspect)
    return rows


class StoredBlock(Block):
    """A block that reads its features when it is first asked for them in a pass."""

    source: RowBlocks
    index: int
    shift: FloatArray | None
    _found = ("X", "compiled")

    def __init__(
        self, source: RowBlocks, index: int, y: FloatArray, weights: FloatArray, intercept: bool
    ) -> None:
        # Block is frozen; like its own attributes, these are set once and for all.
        self.__dict__.update(
            source=source, index=index, y=y, weights=weights, intercept=intercept, trust=None,
            shift=None,
        )  # fmt: skip

    def opened(self) -> StoredBlock:
        """A copy, which keeps what it reads for as long as it is there."""
        return copy(self)

    def check(self) -> None:
        """``ValueError`` with the name of the block if its features are no longer finite."""
        _checked(self.source, self.index)

    def shifted(self, shift: FloatArray) -> Block:
        """The same samples with features ``x - shift``."""
        return self.changed(shift=shift)

    @cached_property
    def X(self) -> Matrix:  # noqa: N802
        matrix = self.source.block(self.index)
        if not (isinstance(matrix, np.ndarray) and matrix.dtype in (np.float64, np.float32)):
            matrix = held(_checked(self.source, self.index))
        return matrix if self.shift is None else shifted(matrix, self.shift)

    @property
    def n_columns(self) -> int:
        return self.source.shape[1] + int(self.intercept)


def _checked(source: RowBlocks, index: int) -> Matrix:
    """A block as a matrix of finite numbers, or ``ValueError`` with its name."""
    matrix = source.block(index)
    if matrix.shape[0] == 0:
        return np.zeros(matrix.shape)
    try:
        return check_features(matrix)
    except ValueError as error:
        raise ValueError(f"{source.name(index)}: {error}") from error


def _inspect(block: Any, _: None) -> tuple[None, tuple[Sum, ...]]:
    """Check the block, count its entries, and look at its columns while it is here."""
    matrix = held(_checked(block.source, block.index))
    block.__dict__["X"] = matrix
    return None, (Sum(nonzeros(matrix)), Sum(block.totals))
