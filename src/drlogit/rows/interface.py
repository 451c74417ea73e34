"""The samples in row blocks: the solvers' only view of the data, wherever the data are.

Everything of length N lives in a block, everything of length n in the driver.  A solver
never sees a vector of length N.  It passes a *block function* to :meth:`Rows.run`:

    function(block, state, *arguments) -> (new_state, reductions)

The function is pure: it changes neither the block nor its state.  Data of the length of the samples
go into ``new_state``, which is opaque to the driver.  The reductions are a tuple of :class:`Sum`,
:class:`Min` and :class:`Max` values, which ``run`` combines over the blocks.  The same solver
therefore runs on all kinds of rows, and its answer depends on the division into blocks by rounding
only:

* :class:`~drlogit.rows.local.LocalRows`: one block in memory or in a memory-mapped file, or one
  block for each of several threads;
* :class:`~drlogit.rows.dask_collections.DaskRows`: blocks that stay with the workers of a cluster.

Coefficient vectors have one entry per feature and, when the rows carry a constant column,
one more at the end for the intercept.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextvars import ContextVar
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from .arrays import FloatArray, IndexArray
from .blocks import Block, Totals, join_blocks
from .reductions import Reduction, Sum

BlockState: TypeAlias = Any
BlockFunction: TypeAlias = Callable[..., tuple[BlockState, tuple[Reduction, ...]]]


class WorkersLostError(Exception):
    """A worker that holds samples is lost, or does not answer."""


#: Whether a fit should end, by its time limit or an interrupt: asked while a worker is waited for.
ends: ContextVar[Callable[[], bool]] = ContextVar("ends")


def is_over() -> bool:
    """Whether the fit of this thread should end."""
    asked = ends.get(None)
    return asked is not None and asked()


class State:
    """The states of all blocks; only the rows that made it know its structure."""


class Rows(ABC):
    """Samples in row blocks: in memory, in a file, or on a cluster."""

    n_samples: int
    n_columns: int
    n_nonzeros: int
    largest_block: int  # samples in the largest block
    intercept: bool  # whether there is a constant column after the features
    shift: FloatArray | None = None  # subtracted from the features
    offsets: State  # the index of the first sample of each block
    layout: Any = None  # cache: the coordinates of the last fit with domains (engine.tables)

    def run(
        self, function: BlockFunction, state: Any = None, *arguments: Any
    ) -> tuple[State, tuple[Any, ...]]:
        """Apply a block function to every block; new state and combined reductions."""
        new, reductions = self.visit(function, state, arguments)
        return new, tuple([item.value for item in reductions])

    @abstractmethod
    def visit(
        self, function: BlockFunction, state: Any, arguments: tuple[Any, ...]
    ) -> tuple[State, tuple[Reduction, ...]]:
        """The same with reductions that can be combined further."""

    @abstractmethod
    def pair(self, one: State, other: State) -> State:
        """A state whose blocks are pairs of those of two states."""

    @abstractmethod
    def scatter(self, values: Any) -> State:
        """Split a vector of length N into a state with one part per block."""

    @abstractmethod
    def gather(self, state: State) -> Any:
        """Join a state of one vector per block, in the order of the samples."""

    @abstractmethod
    def shifted(self, shift: FloatArray) -> Rows:
        """The same samples with features ``x - shift``; nothing dense is copied."""

    @abstractmethod
    def with_columns(self, features: IndexArray) -> Rows:
        """The same samples with some of their features, as a copy."""

    @abstractmethod
    def with_features(self, features: State, n_columns: int) -> Rows:
        """The same samples with other features, a dense array for each block."""

    def together(self) -> Block:
        """All samples as one block in memory, for solvers of other packages."""
        _, (parts,) = self.run(_listed, self.offsets)
        return join_blocks([block for _, block in sorted(parts, key=lambda part: part[0])])

    @abstractmethod
    def with_flip_multiples(self, flip_multiples: State) -> Rows:
        """The same samples with flip costs that are these multiples of κ."""

    @property
    def compact(self) -> tuple[Rows, IndexArray | None] | None:
        """The same samples in a form that suits many passes, if that pays.

        Repeated samples are merged.  The array then holds, for each sample, the index of the merged
        sample that represents it.
        """
        return None

    @cached_property
    def totals(self) -> Totals:
        """Means and mean squares of the columns, and the weights of the classes, in one visit."""
        total: Totals = self.run(_totals)[1][0]
        return total

    @property
    def column_scale(self) -> FloatArray:
        """Root mean square of each column, in the weights of the samples."""
        return np.sqrt(self.totals.squares)

    @property
    def column_deviations(self) -> FloatArray:
        """Standard deviation of each column; exactly 0 for a constant column."""
        means, squares, _ = self.totals
        variance = squares - np.square(means)
        return np.sqrt(np.where(variance > 1e-14 * squares, variance, 0.0))  # less is rounding


def _listed(block: Block, first: int) -> tuple[None, tuple[Sum]]:
    return None, (Sum([(first, block)]),)


def _totals(block: Block, _: BlockState) -> tuple[None, tuple[Sum]]:
    return None, (Sum(block.totals),)
