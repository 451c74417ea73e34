"""Row blocks that are read for one pass and forgotten: X never is in memory as a whole.

What has the length of the samples and is not X stays in memory: labels, weights and the state of
the solver, a few numbers per sample.
"""

from __future__ import annotations

from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np

from .arrays import FloatArray, Matrix
from .blocks import Block
from .checks import check_features
from .local import LocalRows
from .matrix import held, nonzeros, shifted
from .reductions import Sum
from .row_blocks import RowBlocks


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

    def __init__(
        self,
        source: RowBlocks,
        index: int,
        y: FloatArray,
        weights: FloatArray,
        intercept: bool,
        **others: Any,
    ) -> None:
        # Block is frozen; like its own attributes, these are set once and for all.
        self.__dict__.update(
            source=source, index=index, y=y, weights=weights, intercept=intercept, trust=None,
            shift=None,
        )  # fmt: skip
        self.__dict__.update(others)

    def opened(self) -> StoredBlock:
        """A copy, which keeps what it reads for as long as it is there."""
        return self._with()

    def check(self) -> None:
        """``ValueError`` with the name of the block if its features are no longer finite."""
        _checked(self.source, self.index)

    def shifted(self, shift: FloatArray) -> StoredBlock:
        """The same samples with features ``x - shift``."""
        return self._with(shift=shift)

    def with_trust(self, trust: FloatArray) -> StoredBlock:
        """The same samples, whose labels cost these multiples of κ to flip."""
        return self._with(trust=trust)

    def _with(self, **others: Any) -> StoredBlock:
        names = ("source", "index", "y", "weights", "intercept", "trust", "shift")
        return StoredBlock(**({name: self.__dict__[name] for name in names} | others))

    def __getstate__(self) -> dict[str, Any]:
        return self._with().__dict__

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
