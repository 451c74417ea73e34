"""Row blocks that are read for one pass and forgotten: X never is in memory as a whole.

What has the length of the samples and is not X stays in memory: one byte for each label, weights
if they differ, and the state of the solver, a few numbers per sample.
"""

from __future__ import annotations

from copy import copy
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .arrays import FloatArray, Matrix
from .blocks import Block
from .checks import check_features
from .interface import BlockFunction, BlockState
from .matrix import held, nonzeros, shifted
from .memory import LocalRows
from .reductions import Reduction, Sum
from .row_blocks import RowBlocks

#: What a block knows about its columns once it has seen them: of length n, and worth keeping.
_KNOWLEDGE = ("mean_squares", "means", "_used")


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
        self._signs = signs.astype(np.int8)
        self._weights = weights
        self._trust: FloatArray | None = None
        self._knowledge: list[dict[str, Any]] = [{} for _ in source.lengths]
        _, (self.n_nonzeros,) = self.run(_inspect)

    def block(self, index: int) -> Block:
        """One of the blocks, for one pass."""
        last = int(self._ends[index])
        rows = slice(last - self._source.lengths[index], last)
        weights = 1.0 / self.n_samples if self._weights is None else self._weights[rows]
        block = StoredBlock(
            self._source, index, self._signs[rows], weights, self.intercept, self.shift,
            None if self._trust is None else self._trust[rows],
        )  # fmt: skip
        block.__dict__.update(self._knowledge[index])
        return block

    def shifted(self, shift: FloatArray) -> StoredRows:
        """The same samples with features ``x - shift``."""
        rows = copy(self)
        rows.__dict__.pop("column_scale", None)
        rows.__dict__.pop("column_means", None)
        rows.shift = shift
        rows._knowledge = [{} for _ in self._knowledge]
        return rows

    def with_signs(self, signs: FloatArray) -> StoredRows:
        """The same samples under other labels, as ±1; no block is read for it."""
        rows = copy(self)
        rows.__dict__.pop("class_weights", None)
        rows._signs = signs.astype(np.int8)
        rows._knowledge = list(self._knowledge)  # of columns, whose squares know no sign
        return rows

    def with_trust(self, trust: Any) -> StoredRows:
        """The same samples, whose labels cost these multiples of κ to flip."""
        rows = copy(self)
        rows._trust = self.gather(trust)
        rows._knowledge = list(self._knowledge)
        return rows

    def _visit(
        self, index: int, function: BlockFunction, state: BlockState, arguments: tuple[Any, ...]
    ) -> tuple[BlockState, tuple[Reduction, ...]]:
        block = self.block(index)
        new, reductions = function(block, state, *arguments)
        found = block.__dict__
        self._knowledge[index] = {name: found[name] for name in _KNOWLEDGE if name in found}
        if any(item.has_nan for item in reductions):
            # Arithmetic at a trial point, or data that are no longer what they were?
            _checked(self._source.block(index), self._source.name(index))
        return new, reductions


class StoredBlock(Block):
    """A block that reads its features when it is first asked for them."""

    def __init__(
        self,
        source: RowBlocks,
        index: int,
        signs: NDArray[np.int8],
        weights: FloatArray | float,
        intercept: bool,
        shift: FloatArray | None,
        trust: FloatArray | None,
    ) -> None:
        # Block is frozen; like its own attributes, these are set once and for all.
        self.__dict__.update(
            source=source, index=index, signs=signs, given=weights, intercept=intercept,
            shift=shift, trust=trust,
        )  # fmt: skip

    source: RowBlocks
    index: int
    signs: NDArray[np.int8]
    given: FloatArray | float
    shift: FloatArray | None

    @cached_property
    def X(self) -> Matrix:  # noqa: N802
        matrix = self.source.block(self.index)
        plain = isinstance(matrix, np.ndarray) and matrix.dtype in (np.float64, np.float32)
        matrix = matrix if plain else held(_checked(matrix, self.source.name(self.index)))
        return matrix if self.shift is None else shifted(matrix, self.shift)

    @cached_property
    def y(self) -> FloatArray:
        return self.signs.astype(np.float64)

    @cached_property
    def weights(self) -> FloatArray:
        if isinstance(self.given, float):
            return np.full(self.signs.size, self.given)
        return self.given

    @property
    def n_columns(self) -> int:
        return self.source.shape[1] + int(self.intercept)


def _checked(matrix: Matrix, name: str) -> Matrix:
    """The block as a matrix of finite numbers, or ``ValueError`` with its name."""
    if matrix.shape[0] == 0:
        return np.zeros(matrix.shape)
    try:
        return check_features(matrix)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error


def _inspect(block: Any, _: BlockState) -> tuple[None, tuple[Sum]]:
    """Check the block, count its entries, and look at its columns while it is here."""
    _checked(block.X, block.source.name(block.index))
    _ = block.mean_squares, block.means
    return None, (Sum(nonzeros(block.X)),)
