"""Row blocks that this process visits itself: in its memory, or read when they are needed."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cached_property, reduce
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

from .arrays import FloatArray, IndexArray, Matrix
from .blocks import Block, join_blocks
from .interface import BlockFunction, BlockState, Rows
from .matrix import held, nonzeros, thin_copy
from .reductions import Reduction, merge_reductions
from .repeats import merge_repeats
from .threads import limit_threads


class LocalRows(Rows):
    """Blocks that this process visits itself, a few at a time if it may use threads.

    Each thread visits consecutive blocks and combines their reductions as it goes, so that
    neither the memory nor the rounding depends on which thread is faster.
    """

    def __init__(self, lengths: Sequence[int], n_threads: int = 1) -> None:
        self.n_samples = sum(lengths)
        self.largest_block = max(lengths)
        self._ends = np.cumsum(lengths)
        self._n_threads = min(n_threads, len(lengths))

    @abstractmethod
    def block(self, index: int) -> Block:
        """One of the blocks, for one pass."""

    def run(
        self, function: BlockFunction, state: Any = None, *arguments: Any
    ) -> tuple[Any, tuple[Any, ...]]:
        """Apply a block function to every block; new state and combined reductions."""
        if self._ends.size == 1:  # nothing to combine, and small fits notice
            only, reductions = self._visit(
                0, function, None if state is None else state[0], arguments
            )
            return (only,), tuple([item.value for item in reductions])
        states = state if state is not None else (None,) * self._ends.size

        def visit(index: int) -> tuple[BlockState, tuple[Reduction, ...]]:
            return self._visit(index, function, states[index], arguments)

        if self._n_threads == 1:
            new, merged = visit_blocks(visit, range(self._ends.size))
        else:
            new, merged = self._visit_in_threads(visit)
        return tuple(new), tuple(item.value for item in merged)

    def _visit(
        self, index: int, function: BlockFunction, state: BlockState, arguments: tuple[Any, ...]
    ) -> tuple[BlockState, tuple[Reduction, ...]]:
        return function(self.block(index), state, *arguments)

    def _visit_in_threads(self, visit: _Visit) -> tuple[list[BlockState], tuple[Reduction, ...]]:
        cuts = np.linspace(0, self._ends.size, self._n_threads + 1).astype(int).tolist()
        errors = np.geterr()

        def visit_share(first: int, last: int) -> _Visited:
            # Neither belongs to the process: both would be the defaults in a new thread.
            with np.errstate(**errors), limit_threads(1):
                return visit_blocks(visit, range(first, last))

        jobs = [self._pool.submit(visit_share, *cut) for cut in pairwise(cuts)]
        done = [job.result() for job in jobs]
        return [state for new, _ in done for state in new], reduce(
            merge_reductions, (m for _, m in done)
        )

    @cached_property
    def _pool(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(self._n_threads, thread_name_prefix="drlogit")

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_pool"}

    def pair(self, one: Any, other: Any) -> Any:
        """A state whose blocks are pairs of those of two states."""
        return tuple(zip(one, other, strict=True))

    def scatter(self, values: Any) -> Any:
        """Cut a vector of length N into the state that block functions see."""
        return tuple(np.split(np.asarray(values, dtype=np.float64), self._ends[:-1]))

    @property
    def offsets(self) -> Any:
        """The number of the first sample of each block, counted over all of them."""
        return (0, *self._ends[:-1].tolist())

    def gather(self, state: Any) -> FloatArray:
        """Put a state of one vector per block together, in the order of the samples."""
        return np.concatenate(state)

    def together(self) -> Block:
        """All samples as one block in memory, for solvers of other packages."""
        return join_blocks([self.block(index) for index in range(self._ends.size)])


class MemoryRows(LocalRows):
    """Samples in the memory of this process, cut into ``n_blocks`` blocks, views of the whole."""

    def __init__(self, whole: Block, n_blocks: int = 1, n_threads: int = 1) -> None:
        self._whole = whole
        self.blocks = _cut(whole, n_blocks)
        super().__init__([block.y.size for block in self.blocks], n_threads)
        self.n_columns, self.intercept = whole.n_columns, whole.intercept
        self.n_nonzeros = nonzeros(whole.X)

    @classmethod
    def from_arrays(
        cls,
        X: Matrix,
        y: FloatArray,
        weights: FloatArray,
        *,
        intercept: bool,
        thin: Matrix | None = None,
        trust: FloatArray | None = None,
        n_blocks: int = 1,
        n_threads: int = 1,
    ) -> MemoryRows:
        """Rows of arrays that have been checked."""
        return cls(Block(held(X), y, weights, intercept, thin, trust), n_blocks, n_threads)

    def __reduce__(self) -> tuple[Any, ...]:
        # Not the blocks, each of which would travel as a copy, nor what is soon found again.
        return MemoryRows._again, (self._whole, len(self.blocks), self._n_threads, self.shift)

    @staticmethod
    def _again(whole: Block, n_blocks: int, n_threads: int, shift: FloatArray | None) -> MemoryRows:
        rows = MemoryRows(whole, n_blocks, n_threads)
        rows.shift = shift
        return rows

    def shifted(self, shift: FloatArray) -> MemoryRows:
        """The same samples with features ``x - shift``; nothing dense is copied."""
        return self._again(self._whole.shifted(shift), len(self.blocks), self._n_threads, shift)

    def together(self) -> Block:
        """All samples as one block."""
        return self._whole

    def block(self, index: int) -> Block:
        """One of the blocks, for one pass."""
        return self.blocks[index]

    def with_signs(self, signs: FloatArray) -> MemoryRows:
        """The same samples under other labels, as ±1."""
        whole = self._whole.with_signs(signs)
        rows = self._again(whole, len(self.blocks), self._n_threads, self.shift)
        if "column_moments" in self.__dict__:
            rows.column_moments = self.column_moments
        return rows

    def with_trust(self, trust: Any) -> MemoryRows:
        """The same samples, whose labels cost these multiples of κ to flip."""
        whole = replace(self._whole, trust=np.concatenate(trust))
        return self._again(whole, len(self.blocks), self._n_threads, self.shift)

    @cached_property
    def compact(self) -> tuple[MemoryRows, IndexArray | None] | None:
        """The same samples without repetitions and with thin copies, where that pays."""
        whole = self.together()
        X, y, weights, trust = whole.X, whole.y, whole.weights, whole.trust
        origin = None
        merged = merge_repeats(X, y, weights, trust)
        if merged is not None:
            X, y, weights, trust, origin = merged
        thin = thin_copy(X)
        if origin is None and thin is None:
            return None
        rows = MemoryRows.from_arrays(
            X, y, weights, intercept=whole.intercept, thin=thin, trust=trust,
            n_blocks=len(self.blocks), n_threads=self._n_threads,
        )  # fmt: skip
        rows.column_moments = self.column_moments
        rows.shift = self.shift
        return rows, origin


def _cut(whole: Block, n_blocks: int) -> tuple[Block, ...]:
    """Consecutive blocks of about equal length."""
    if n_blocks == 1:
        return (whole,)
    cuts = np.linspace(0, whole.y.size, n_blocks + 1).astype(int).tolist()
    return tuple(whole.part(i, j) for i, j in pairwise(cuts))


_Visited: TypeAlias = tuple[list[BlockState], tuple[Reduction, ...]]
_Visit: TypeAlias = Callable[[int], tuple[BlockState, tuple[Reduction, ...]]]


def visit_blocks(visit: _Visit, indices: range) -> _Visited:
    """Visit blocks one after the other; their new states and combined reductions."""
    states: list[BlockState] = []
    merged: tuple[Reduction, ...] | None = None
    for index in indices:
        state, reductions = visit(index)
        states.append(state)
        merged = reductions if merged is None else merge_reductions(merged, reductions)
    return states, merged or ()
