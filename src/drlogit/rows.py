"""The samples in row blocks: what every solver sees of the data, wherever they are.

Everything of length N lives in a block, everything of length n in the driver.  A solver
never sees a vector of length N; it hands :meth:`Rows.run` a *block function*

    function(block, state, *arguments) -> (new_state, reductions)

which is pure (it changes neither the block nor the state it was given), keeps what it
wants to remember per sample in ``new_state``, and returns a tuple of :class:`Sum`,
:class:`Min` and :class:`Max` values, which ``run`` combines over the blocks.  The state is
opaque to the driver.  The same solver therefore runs on all kinds of rows, and its answer does
not depend on the cutting beyond rounding:

* :class:`MemoryRows` (here): one block in memory, or one for each of several threads;
* :class:`~drlogit.stored_rows.StoredRows`: blocks that are read when they are needed;
* :class:`~drlogit.dask_rows.DaskRows`: blocks that stay with the workers of a cluster.

Coefficient vectors have one entry per feature and, when the rows carry a constant column,
one more at the end for the intercept.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp

from .losses import FloatArray
from .matrix import (
    IndexArray,
    Matrix,
    RareColumns,
    held,
    matvec,
    nonzeros,
    outer_product,
    rmatvec,
    row_chunks,
    row_range,
    squared_columns,
    thin_copy,
    transposed,
    weighted_gram,
    weighted_products,
)
from .repeats import merge_repeats
from .threads import sharing_cores


@dataclass(frozen=True)
class Sum:
    """A reduction by addition (scalars or arrays of equal shape)."""

    value: Any

    def merge(self, other: Sum) -> Sum:
        return Sum(self.value + other.value)


@dataclass(frozen=True)
class Min:
    """A reduction by (elementwise) minimum."""

    value: Any

    def merge(self, other: Min) -> Min:
        return Min(np.minimum(self.value, other.value))


@dataclass(frozen=True)
class Max:
    """A reduction by (elementwise) maximum."""

    value: Any

    def merge(self, other: Max) -> Max:
        return Max(np.maximum(self.value, other.value))


Reduction: TypeAlias = Any  # Sum | Min | Max
BlockState: TypeAlias = Any
BlockFunction: TypeAlias = Callable[..., tuple[BlockState, tuple[Reduction, ...]]]
State: TypeAlias = Any  # of all blocks; only the rows that made it know how


@dataclass(frozen=True, eq=False)
class Block:
    """Consecutive samples: features ``X``, labels ``y`` in {-1, +1} and their weights.

    ``Z``, the matrix with rows ``y_i (x_i, 1)``, is never formed: since ``y² = 1``, labels
    enter products with vectors and drop out of Gram matrices.
    """

    X: Matrix
    y: FloatArray
    weights: FloatArray
    intercept: bool
    #: X once more, in a form that is faster to multiply with vectors, if there is one.
    thin: Matrix | None = None

    @property
    def n_columns(self) -> int:
        """Coefficients: one per feature, and one for the intercept if there is one."""
        return int(self.X.shape[1]) + int(self.intercept)

    def margins(self, coefficients: FloatArray) -> FloatArray:
        """``Z v``: the margins of the samples."""
        X = self.X if self.thin is None else self.thin
        if not self.intercept:
            return self.y * matvec(X, coefficients)
        return np.asarray(self.y * (matvec(X, coefficients[:-1]) + coefficients[-1]))

    def adjoint(self, r: FloatArray) -> FloatArray:
        """``Zᵀ r`` for a vector ``r``, or for each column of ``r``."""
        signed = self.y * r if r.ndim == 1 else self.y[:, None] * r
        X = self.X if self.thin is None else self.thin
        product = rmatvec(X, signed, self._transposed)
        if not self.intercept:
            return product
        return np.concatenate([product, signed.sum(axis=0, keepdims=True)])

    def gram(self, d: FloatArray, *, rough: bool = False) -> FloatArray:
        """``Zᵀ diag(d) Z`` for ``d ≥ 0``; ``rough`` allows single precision (and twice the speed).

        Columns whose squares would leave the range of single precision are never rough.
        """
        return weighted_gram(self.X, d, **self._gram_options(rough))

    def gram_and_adjoint(
        self, d: FloatArray, r: FloatArray, *, rough: bool = False
    ) -> tuple[FloatArray, FloatArray]:
        """:meth:`gram`, with zeros below the diagonal, and ``Zᵀ r`` for the columns of r.

        A dense X is read once for both.
        """
        signed = self.y[:, None] * r
        upper, product = weighted_products(self.X, d, signed, **self._gram_options(rough))
        if self.intercept:
            product = np.concatenate([product, signed.sum(axis=0, keepdims=True)])
        return upper, product

    def _gram_options(self, rough: bool) -> dict[str, Any]:
        squares = self.mean_squares[self.mean_squares > 0.0]
        rough = rough and bool(((squares > 1e-16) & (squares < 1e16)).all())
        return {
            "intercept": self.intercept,
            "used": self._used,
            "rare": self._rare,
            "rough": rough,
            "transposed": self._transposed,
        }

    def outer_gram(self, row_scale: FloatArray, column_scale: FloatArray) -> FloatArray:
        """``diag(r) Z diag(c²) Zᵀ diag(r)``, N×N, for few samples: its upper triangle."""
        signed = self.y * row_scale
        matrix = outer_product(self.X, signed, column_scale[: self.X.shape[1]])
        if self.intercept:
            for rows in row_chunks(signed.size, signed.size):
                matrix[rows] += np.outer(signed[rows] * column_scale[-1] ** 2, signed)
        return matrix

    @cached_property
    def _used(self) -> IndexArray | None:
        """Columns that are neither empty nor rare, if picking them pays."""
        # Samples of weight zero count: ``gram`` takes any d.
        present = self.weights.all()
        squares = self.mean_squares if present else squared_columns(self.X, np.ones(self.y.size))
        used = np.flatnonzero(squares[: self.X.shape[1]])
        if self._rare is not None:
            used = np.setdiff1d(used, self._rare.places)
        return used if used.size < 0.9 * self.X.shape[1] else None

    @cached_property
    def _rare(self) -> RareColumns | None:
        return None if self.thin is None else RareColumns.of(self.thin)

    @cached_property
    def _transposed(self) -> Matrix:
        return transposed(self.X if self.thin is None else self.thin)

    @cached_property
    def mean_squares(self) -> FloatArray:
        """``Σ_i w_i z_ij²`` for each column."""
        return self.squared_columns(self.weights)

    def by_class(self, r: FloatArray) -> FloatArray:
        """``r`` in two columns, for the classes -1 and +1, zero for the other's samples."""
        columns = np.zeros((r.size, 2))
        columns[np.arange(r.size), (self.y > 0.0).astype(np.intp)] = r
        return columns

    def __getstate__(self) -> dict[str, Any]:
        # What is cached would double what travels, and is soon found again.
        return {name: self.__dict__[name] for name in ("X", "y", "weights", "intercept")}

    def squared_columns(self, d: FloatArray) -> FloatArray:
        """``Σ_i d_i z_ij²`` for each column: the diagonal of :meth:`gram`."""
        squares = squared_columns(self.X, d)
        return np.append(squares, d.sum()) if self.intercept else squares


class Rows(ABC):
    """Samples in row blocks, wherever these are."""

    n_samples: int
    n_columns: int
    n_nonzeros: int
    largest_block: int  # samples in the largest block

    @abstractmethod
    def run(
        self, function: BlockFunction, state: State | None = None, *arguments: Any
    ) -> tuple[State, tuple[Any, ...]]:
        """Apply a block function to every block; new state and combined reductions."""

    @abstractmethod
    def pair(self, one: State, other: State) -> State:
        """A state whose blocks are pairs of those of two states."""

    @abstractmethod
    def scatter(self, values: Any) -> State:
        """Cut a vector of length N into the state that block functions see."""

    @abstractmethod
    def gather(self, state: State) -> Any:
        """Put a state of one vector per block together, in the order of the samples."""

    @abstractmethod
    def together(self) -> Block:
        """All samples as one block in memory, for solvers of other packages."""

    @property
    def compact(self) -> tuple[Rows, IndexArray | None] | None:
        """The same samples in a form made for many passes, if that pays.

        Samples that occur several times are merged; then there also is, for each sample, the
        number of the one that stands for it.
        """
        return None

    @cached_property
    def column_scale(self) -> FloatArray:
        """Root mean square of each column, in the weights of the samples."""
        _, (squares,) = self.run(_mean_squares)
        return np.asarray(np.sqrt(squares))

    def weights(self) -> FloatArray:
        """The weights of all samples."""
        return np.asarray(self.gather(self.run(_weights)[0]))

    def signs(self) -> FloatArray:
        """The labels of all samples, as ±1."""
        return np.asarray(self.gather(self.run(_signs)[0]))


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
        self, function: BlockFunction, state: State | None = None, *arguments: Any
    ) -> tuple[State, tuple[Any, ...]]:
        """Apply a block function to every block; new state and combined reductions."""
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
            with np.errstate(**errors), sharing_cores():
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

    def pair(self, one: State, other: State) -> State:
        """A state whose blocks are pairs of those of two states."""
        return tuple(zip(one, other, strict=True))

    def scatter(self, values: Any) -> State:
        """Cut a vector of length N into the state that block functions see."""
        return tuple(np.split(np.asarray(values, dtype=np.float64), self._ends[:-1]))

    def gather(self, state: State) -> FloatArray:
        """Put a state of one vector per block together, in the order of the samples."""
        return np.concatenate(state)

    def together(self) -> Block:
        """All samples as one block in memory, for solvers of other packages."""
        return join_blocks([self.block(index) for index in range(self._ends.size)])


class MemoryRows(LocalRows):
    """Row blocks in the memory of this process; views of ``whole`` if they were cut from it."""

    def __init__(
        self, blocks: Sequence[Block], n_threads: int = 1, whole: Block | None = None
    ) -> None:
        super().__init__([block.y.size for block in blocks], n_threads)
        self.blocks = tuple(blocks)
        self._whole = whole
        self.n_columns = self.blocks[0].n_columns
        self.n_nonzeros = sum(nonzeros(block.X) for block in self.blocks)

    @classmethod
    def from_arrays(
        cls,
        X: Matrix,
        y: FloatArray,
        weights: FloatArray,
        *,
        intercept: bool,
        thin: Matrix | None = None,
        n_blocks: int = 1,
        n_threads: int = 1,
    ) -> MemoryRows:
        """Cut arrays into ``n_blocks`` consecutive blocks, which are views of them."""
        whole = Block(held(X), y, weights, intercept, thin)
        if n_blocks == 1:
            return cls([whole], n_threads, whole)
        cuts = np.linspace(0, y.size, n_blocks + 1).astype(int).tolist()
        blocks = [
            Block(
                row_range(whole.X, i, j), y[i:j], weights[i:j], intercept,
                None if thin is None else row_range(thin, i, j),
            )
            for i, j in pairwise(cuts)
        ]  # fmt: skip
        return cls(blocks, n_threads, whole)

    def together(self) -> Block:
        """All samples as one block."""
        return super().together() if self._whole is None else self._whole

    def block(self, index: int) -> Block:
        """One of the blocks, for one pass."""
        return self.blocks[index]

    @cached_property
    def compact(self) -> tuple[MemoryRows, IndexArray | None] | None:
        """The same samples without repetitions and with thin copies, where that pays."""
        whole = self.together()
        X, y, weights = whole.X, whole.y, whole.weights
        origin = None
        merged = merge_repeats(X, y, weights)
        if merged is not None:
            X, y, weights, origin = merged
        thin = thin_copy(X)
        if origin is None and thin is None:
            return None
        rows = MemoryRows.from_arrays(
            X, y, weights, intercept=whole.intercept, thin=thin,
            n_blocks=len(self.blocks), n_threads=self._n_threads,
        )  # fmt: skip
        rows.column_scale = self.column_scale
        return rows, origin


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


def join_blocks(blocks: Sequence[Block]) -> Block:
    """One block of several."""
    if len(blocks) == 1:
        return blocks[0]
    sparse = sp.issparse(blocks[0].X)
    X = [block.X for block in blocks]
    return Block(
        sp.vstack(X, format="csr") if sparse else np.concatenate(X),
        np.concatenate([block.y for block in blocks]),
        np.concatenate([block.weights for block in blocks]),
        blocks[0].intercept,
    )


def _mean_squares(block: Block, state: BlockState) -> tuple[BlockState, tuple[Sum]]:
    return state, (Sum(block.mean_squares),)


def _weights(block: Block, _: BlockState) -> tuple[FloatArray, tuple[()]]:
    return block.weights, ()


def _signs(block: Block, _: BlockState) -> tuple[FloatArray, tuple[()]]:
    return block.y, ()


def merge_reductions(
    left: tuple[Reduction, ...], right: tuple[Reduction, ...]
) -> tuple[Reduction, ...]:
    """Combine the reductions of two blocks, or of two sets of blocks."""
    return tuple(a.merge(b) for a, b in zip(left, right, strict=True))
