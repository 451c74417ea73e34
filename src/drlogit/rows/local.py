"""Row blocks that this process visits itself: in memory, or in a memory-mapped file."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from functools import cached_property, reduce
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from .arrays import FloatArray, IndexArray, Matrix
from .blocks import Block
from .interface import BlockFunction, BlockState, Rows
from .matrix import held, matmat, nonzeros, take_columns, thin_copy
from .reductions import Reduction, merge_reductions
from .repeats import merge_repeats

#: Rows of a block in a file: what is made of it in a visit is in memory.
_MAPPED_ROWS = 1 << 17


class LocalRows(Rows):
    """Blocks that this process visits itself, several at a time if it may use threads.

    Each thread visits consecutive blocks and combines their reductions in order, so that neither
    memory nor rounding depends on the speed of the threads.
    """

    def __init__(
        self,
        blocks: Sequence[Block],
        n_threads: int = 1,
        *,
        n_nonzeros: int,
        shift: FloatArray | None = None,
    ) -> None:
        self.blocks = tuple(blocks)
        self.n_columns, self.intercept = blocks[0].n_columns, blocks[0].intercept
        self.n_nonzeros, self.shift = n_nonzeros, shift
        lengths = [block.y.size for block in blocks]
        self.n_samples, self.largest_block = sum(lengths), max(lengths)
        self.offsets: Any = (0, *accumulate(lengths[:-1]))
        self._n_threads = min(n_threads, len(blocks))

    def visit(
        self, function: BlockFunction, state: Any, arguments: tuple[Any, ...]
    ) -> tuple[Any, tuple[Reduction, ...]]:
        """Consecutive blocks by each thread."""
        blocks = self.blocks
        if len(blocks) == 1:  # nothing to combine; this matters for small fits
            after, found = function(blocks[0], None if state is None else state[0], *arguments)
            return (blocks[0].beside(after),), found
        states = (None,) * len(blocks) if state is None else state

        def visit_some(first: int, last: int) -> tuple[list[BlockState], tuple[Reduction, ...]]:
            new, merged = [], None
            for block, before in zip(blocks[first:last], states[first:last], strict=True):
                after, found = function(block, before, *arguments)
                new.append(block.beside(after))
                merged = found if merged is None else merge_reductions(merged, found)
            return new, merged or ()

        if self._n_threads == 1:
            new, merged = visit_some(0, len(blocks))
            return tuple(new), merged
        errors = np.geterr()

        def in_thread(first: int, last: int) -> tuple[list[BlockState], tuple[Reduction, ...]]:
            with np.errstate(**errors):  # a new thread starts with NumPy's defaults
                return visit_some(first, last)

        cuts = np.linspace(0, len(blocks), self._n_threads + 1).astype(int).tolist()
        done = list(self._pool.map(in_thread, cuts[:-1], cuts[1:]))
        merged = reduce(merge_reductions, (reductions for _, reductions in done))
        return tuple(after for new, _ in done for after in new), merged

    @cached_property
    def _pool(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(self._n_threads, thread_name_prefix="drlogit")

    def __getstate__(self) -> dict[str, Any]:
        # Without caches.
        return {k: v for k, v in self.__dict__.items() if k not in ("_pool", "compact")}

    def pair(self, one: Any, other: Any) -> Any:
        """A state whose blocks are pairs of those of two states."""
        return tuple(zip(one, other, strict=True))

    def scatter(self, values: Any) -> Any:
        """Split a vector of length N into a state with one part per block."""
        ends = list(accumulate(block.y.size for block in self.blocks[:-1]))
        return tuple(np.split(np.asarray(values, dtype=np.float64), ends))

    def gather(self, state: Any) -> FloatArray:
        """Join a state of one vector per block, in the order of the samples."""
        return np.concatenate(state)

    def shifted(self, shift: FloatArray) -> LocalRows:
        """The same samples with features ``x - shift``; nothing dense is copied."""
        rows = copy(self)
        rows.blocks = tuple(block.shifted(shift) for block in self.blocks)
        rows.shift = shift
        rows.__dict__.pop("totals", None)
        return rows

    def turned(self, factor: FloatArray) -> LocalRows:
        """The same samples with features ``x·factor``, as a dense copy, after any shift."""
        rows = copy(self)
        rows.blocks = tuple(block.changed(X=matmat(block.X, factor)) for block in self.blocks)
        for known in ("totals", "compact"):
            rows.__dict__.pop(known, None)
        return rows

    def with_columns(self, features: IndexArray) -> LocalRows:
        """The same samples with some of their features, as a copy."""
        shift = None if self.shift is None else self.shift[features]
        return self._with([held(take_columns(block.X, features)) for block in self.blocks], shift)

    def with_features(self, features: Any, n_columns: int) -> LocalRows:
        """The same samples with other features, a dense array for each block."""
        return self._with(features)

    def _with(self, features: Sequence[Matrix], shift: FloatArray | None = None) -> LocalRows:
        blocks = [block.changed(X=X) for block, X in zip(self.blocks, features, strict=True)]
        rows = LocalRows(
            blocks, self._n_threads, n_nonzeros=sum(map(nonzeros, features)), shift=shift
        )
        rows.offsets = self.offsets
        return rows

    def with_flip_multiples(self, flip_multiples: Any) -> LocalRows:
        """The same samples with flip costs that are these multiples of κ."""
        rows, parts = copy(self), zip(self.blocks, flip_multiples, strict=True)
        rows.blocks = tuple(block.changed(flip_multiples=part) for block, part in parts)
        return rows

    @property
    def in_memory(self) -> bool:
        """Whether the features are in memory; otherwise each pass reads them, without copies."""
        return not self.blocks[0].is_mapped

    @cached_property
    def compact(self) -> tuple[LocalRows, IndexArray | None] | None:
        """The same samples with repeats in a block merged, dense or sparse as suits them."""
        if not self.in_memory:
            return None
        blocks, origins = zip(*map(_compact, self.blocks), strict=True)
        if blocks == self.blocks:
            return None
        total = sum(nonzeros(block.X) for block in blocks)
        rows = LocalRows(blocks, self._n_threads, n_nonzeros=total, shift=self.shift)
        rows.totals = self.totals
        if rows.n_samples == self.n_samples:
            return rows, None
        return rows, np.concatenate(
            [
                offset + (np.arange(block.y.size) if origin is None else origin)
                for offset, block, origin in zip(rows.offsets, blocks, origins, strict=True)
            ]
        )


def _compact(block: Block) -> tuple[Block, IndexArray | None]:
    """A block without repeated samples, and for each sample the one that represents it."""
    origin = None
    merged = merge_repeats(block.X, block.y, block.weights, block.flip_multiples)
    if merged is not None:
        X, y, weights, flip_multiples, origin = merged
        block = Block(X, y, weights, block.intercept, flip_multiples)
    thin = thin_copy(block.X)
    return (block if thin is None else block.changed(X=thin)), origin


def memory_rows(block: Block, n_threads: int = 1) -> LocalRows:
    """Rows of one block, split into views of about equal length, one for each thread.

    Rows in a file are split into more, and so is what is kept beside them.
    """
    n, beside = block.y.size, block.beside
    whole = block.changed(X=held(block.X), y=beside(block.y), weights=beside(block.weights))
    blocks = [whole]
    n_blocks = max(n_threads, n // _MAPPED_ROWS if whole.is_mapped else 1)
    if n_blocks > 1:
        cuts = np.linspace(0, n, min(n_blocks, n) + 1).astype(int).tolist()
        blocks = [whole.part(i, j) for i, j in pairwise(cuts)]
    return LocalRows(blocks, n_threads, n_nonzeros=nonzeros(whole.X))
