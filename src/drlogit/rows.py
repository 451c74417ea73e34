"""The samples in row blocks: the only place that knows how the data are stored.

Everything of length N lives in a block, everything of length n in the driver.  A solver
never sees a vector of length N; it hands :meth:`Rows.run` a *block function*

    function(block, state, *arguments) -> (new_state, reductions)

which is pure (it changes neither the block nor the state it was given), keeps what it
wants to remember per sample in ``new_state``, and returns a tuple of :class:`Sum`,
:class:`Min` and :class:`Max` values, which ``run`` combines over the blocks.  The state is
opaque to the driver.  The same solver therefore runs on one block in memory and on blocks
that live elsewhere, and its answer does not depend on the cutting beyond rounding.

Coefficient vectors have one entry per feature and, when the rows carry a constant column,
one more at the end for the intercept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

from .losses import FloatArray
from .matrix import (
    IndexArray,
    Matrix,
    held,
    matvec,
    nonzeros,
    outer_product,
    rmatvec,
    squared_columns,
    weighted_gram,
)


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
State: TypeAlias = tuple[BlockState, ...]


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

    @property
    def n_columns(self) -> int:
        """Coefficients: one per feature, and one for the intercept if there is one."""
        return int(self.X.shape[1]) + int(self.intercept)

    def margins(self, coefficients: FloatArray) -> FloatArray:
        """``Z v``: the margins of the samples."""
        if not self.intercept:
            return self.y * matvec(self.X, coefficients)
        return np.asarray(self.y * (matvec(self.X, coefficients[:-1]) + coefficients[-1]))

    def adjoint(self, r: FloatArray) -> FloatArray:
        """``Zᵀ r`` for a vector ``r``, or for each column of ``r``."""
        signed = self.y * r if r.ndim == 1 else self.y[:, None] * r
        product = rmatvec(self.X, signed, self._transposed)
        if not self.intercept:
            return product
        return np.concatenate([product, signed.sum(axis=0, keepdims=True)])

    def gram(self, d: FloatArray, *, rough: bool = False) -> FloatArray:
        """``Zᵀ diag(d) Z`` for ``d ≥ 0``; ``rough`` allows single precision (and twice the speed).

        Columns whose squares would leave the range of single precision are never rough.
        """
        squares = self.mean_squares[self.mean_squares > 0.0]
        rough = rough and bool(((squares > 1e-16) & (squares < 1e16)).all())
        return weighted_gram(self.X, d, intercept=self.intercept, used=self._used, rough=rough)

    def outer_gram(self, row_scale: FloatArray, column_scale: FloatArray) -> FloatArray:
        """``diag(r) Z diag(c²) Zᵀ diag(r)``: the N×N product, for few samples."""
        rows = self.y * row_scale
        matrix = outer_product(self.X, rows, column_scale[: self.X.shape[1]])
        if self.intercept:
            matrix += np.outer(rows * column_scale[-1] ** 2, rows)
        return matrix

    @cached_property
    def _used(self) -> IndexArray | None:
        """Columns that are not all zero, if picking them pays."""
        # Samples of weight zero count: ``gram`` takes any d.
        present = self.weights.all()
        squares = self.mean_squares if present else squared_columns(self.X, np.ones(self.y.size))
        used = np.flatnonzero(squares[: self.X.shape[1]])
        return used if used.size < 0.9 * self.X.shape[1] else None

    @cached_property
    def _transposed(self) -> Matrix:
        return self.X.T

    @cached_property
    def mean_squares(self) -> FloatArray:
        """``Σ_i w_i z_ij²`` for each column."""
        return self.squared_columns(self.weights)

    def by_class(self, r: FloatArray) -> FloatArray:
        """``r`` in two columns, for the classes -1 and +1, zero for the other's samples."""
        columns = np.zeros((r.size, 2))
        columns[np.arange(r.size), (self.y > 0.0).astype(np.intp)] = r
        return columns

    def squared_columns(self, d: FloatArray) -> FloatArray:
        """``Σ_i d_i z_ij²`` for each column: the diagonal of :meth:`gram`."""
        squares = squared_columns(self.X, d)
        return np.append(squares, d.sum()) if self.intercept else squares


class Rows:
    """Row blocks in the memory of this process, visited one after the other."""

    def __init__(self, blocks: Sequence[Block]) -> None:
        self.blocks = tuple(blocks)
        self.n_samples = sum(block.y.size for block in self.blocks)
        self.n_columns = self.blocks[0].n_columns
        self.n_nonzeros = sum(nonzeros(block.X) for block in self.blocks)

    @classmethod
    def from_arrays(
        cls, X: Matrix, y: FloatArray, weights: FloatArray, *, intercept: bool, n_blocks: int = 1
    ) -> Rows:
        """Cut arrays into ``n_blocks`` consecutive blocks (views where the format allows)."""
        X = held(X)
        cuts = np.linspace(0, y.size, n_blocks + 1).astype(int)
        return cls(
            [
                Block(X if n_blocks == 1 else X[i:j], y[i:j], weights[i:j], intercept)
                for i, j in pairwise(cuts)
            ]
        )

    @cached_property
    def column_scale(self) -> FloatArray:
        """Root mean square of each column, in the weights of the samples."""
        _, (squares,) = self.run(_mean_squares)
        return np.asarray(np.sqrt(squares))

    def run(
        self, function: BlockFunction, state: State | None = None, *arguments: Any
    ) -> tuple[State, tuple[Any, ...]]:
        """Apply a block function to every block; new state and combined reductions."""
        states = state if state is not None else (None,) * len(self.blocks)
        results = [
            function(block, block_state, *arguments)
            for block, block_state in zip(self.blocks, states, strict=True)
        ]
        merged = reduce(_merge, (reductions for _, reductions in results))
        return tuple(new for new, _ in results), tuple(item.value for item in merged)

    def scatter(self, values: FloatArray) -> State:
        """Cut a vector of length N into the state that block functions see."""
        cuts = np.cumsum([block.y.size for block in self.blocks])[:-1]
        return tuple(np.split(np.asarray(values, dtype=np.float64), cuts))

    def gather(self, state: State) -> FloatArray:
        """Put a state of one vector per block together, in the order of the samples."""
        return np.concatenate(state)


def _mean_squares(block: Block, state: BlockState) -> tuple[BlockState, tuple[Sum]]:
    return state, (Sum(block.mean_squares),)


def _merge(left: tuple[Reduction, ...], right: tuple[Reduction, ...]) -> tuple[Reduction, ...]:
    return tuple(a.merge(b) for a, b in zip(left, right, strict=True))
