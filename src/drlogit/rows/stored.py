"""Row blocks that are read for one pass and forgotten: X never is in memory as a whole.

What has the length of the samples and is not X stays in memory: labels, weights and the state of
the solver, a few numbers per sample.
"""

from __future__ import annotations

from copy import copy
from functools import cached_property
from typing import Any

import numpy as np

from .arrays import FloatArray, Matrix
from .blocks import Block
from .checks import check_features
from .interface import BlockFunction, BlockState
from .matrix import held, nonzeros, shifted
from .memory import LocalRows
from .reductions import Reduction, Sum
from .row_blocks import RowBlocks


class StoredRows(LocalRows):
    """The blocks of a :class:`RowBlocks`; checks all of them once, when it is built.

    ``signs`` are the labels as ±1; ``weights`` may be None for equal ones.
    """

    def __init__(
        self,
        source: RowBlocks,
        signs: FloatArray,
        weights: FloatArray | None,
        *,
        intercept: bool,
        n_threads: int = 1,
    ) -> None:
        super().__init__(source.lengths, n_threads)
        self.intercept = intercept
        self.n_columns = source.shape[1] + int(intercept)
        self._source = source
        self._signs = signs
        self._weights = np.full(signs.size, 1.0 / signs.size) if weights is None else weights
        self._trust: FloatArray | None = None
        _, (self.n_nonzeros, means, squares) = self.run(_inspect)
        self.column_moments = means, np.sqrt(squares)

    def block(self, index: int) -> Block:
        """One of the blocks, for one pass."""
        last = int(self._ends[index])
        rows = slice(last - self._source.lengths[index], last)
        return StoredBlock(
            self._source, index, self.shift, self._signs[rows], self._weights[rows], self.intercept,
            None if self._trust is None else self._trust[rows],
        )  # fmt: skip

    def shifted(self, shift: FloatArray) -> StoredRows:
        """The same samples with features ``x - shift``."""
        rows = copy(self)
        del rows.column_moments
        rows.shift = shift
        return rows

    def with_signs(self, signs: FloatArray) -> StoredRows:
        """The same samples under other labels, as ±1; no block is read for it."""
        rows = copy(self)
        rows.__dict__.pop("class_weights", None)
        rows._signs = signs
        return rows

    def with_trust(self, trust: Any) -> StoredRows:
        """The same samples, whose labels cost these multiples of κ to flip."""
        rows = copy(self)
        rows._trust = self.gather(trust)
        return rows

    def _visit(
        self, index: int, function: BlockFunction, state: BlockState, arguments: tuple[Any, ...]
    ) -> tuple[BlockState, tuple[Reduction, ...]]:
        new, reductions = super()._visit(index, function, state, arguments)
        if any(item.has_nan for item in reductions):
            # Arithmetic at a trial point, or a file that is no longer what it was?
            _checked(self._source, index)
        return new, reductions


class StoredBlock(Block):
    """A block that reads its features when it is first asked for them."""

    source: RowBlocks
    index: int
    shift: FloatArray | None

    def __init__(
        self,
        source: RowBlocks,
        index: int,
        shift: FloatArray | None,
        y: FloatArray,
        weights: FloatArray,
        intercept: bool,
        trust: FloatArray | None,
    ) -> None:
        # Block is frozen; like its own attributes, these are set once and for all.
        self.__dict__.update(
            source=source, index=index, shift=shift, y=y, weights=weights, intercept=intercept,
            trust=trust,
        )  # fmt: skip

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
    return None, (Sum(nonzeros(matrix)), Sum(block.means), Sum(block.mean_squares))
