"""One block of consecutive samples, and the products with it that solvers use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ._products import (
    CompiledRows,
    adjoint,
    product,
    scores,
    weighted_gram,
    weighted_squares,
)
from .arrays import FloatArray, Matrix, SingleArray, is_mapped
from .matrix import ShiftedArray, compiled, outer_product, row_chunks, row_range, shifted
from .on_disk import on_disk


class Totals(NamedTuple):
    """Weighted sums over samples."""

    means: FloatArray  # Σ w_i (x_i, 1)
    squares: FloatArray  # Σ w_i z_ij²
    classes: FloatArray  # the weights of the classes -1 and +1


@dataclass(frozen=True, eq=False)
class Block:
    """Consecutive samples: features ``X``, labels ``y`` in {-1, +1} and their weights.

    ``Z``, the matrix with rows ``y_i (x_i, 1)``, is never formed: since ``y² = 1``, labels
    enter products with vectors and drop out of Gram matrices.

    ``flip_multiples`` are the flip costs in units of the problem's κ: zero for unknown labels,
    infinite for certain labels, None if all are one.
    """

    X: Matrix
    y: FloatArray
    weights: FloatArray
    intercept: bool
    flip_multiples: FloatArray | None = None
    #: A cache for quantities of these samples that others compute; not copied or pickled.
    kept: dict[str, Any] = field(default_factory=dict, init=False, repr=False)

    @property
    def n_columns(self) -> int:
        """Coefficients: one per feature, and one for the intercept if there is one."""
        return int(self.X.shape[1]) + int(self.intercept)

    def margins(self, coefficients: FloatArray) -> FloatArray:
        """``Z v``: the margins of the samples."""
        found = product(self.compiled, np.ascontiguousarray(coefficients, np.float64))
        return np.asarray(self.y * found)

    def scores(self, coefficients: FloatArray) -> FloatArray:
        """``Z v`` for each row v of the coefficients, as columns."""
        found = scores(self.compiled, np.ascontiguousarray(coefficients, np.float64))
        return np.asarray(self.y[:, None] * found)

    def adjoint(self, r: FloatArray) -> FloatArray:
        """``Zᵀ r`` for a vector ``r``, or for each column of ``r``."""
        signed = np.ascontiguousarray((self.y * r.T), np.float64)
        found: FloatArray = adjoint(self.compiled, np.atleast_2d(signed))
        if self.intercept:
            # NumPy sums pairwise, which keeps the intercept's equation accurate.
            found[:, -1] = signed.sum(axis=-1)
        return found[0] if r.ndim == 1 else found.T

    def gram(self, d: FloatArray) -> FloatArray:
        """``Zᵀ diag(d) Z`` for ``d ≥ 0``."""
        return np.asarray(weighted_gram(self.compiled, np.ascontiguousarray(d, np.float64)))

    def squared_columns(self, d: FloatArray) -> FloatArray:
        """``Σ_i d_i z_ij²`` for each column: the diagonal of :meth:`gram`."""
        return np.asarray(weighted_squares(self.compiled, np.ascontiguousarray(d, np.float64)))

    def outer_gram(self, row_scale: FloatArray, column_scale: FloatArray) -> FloatArray:
        """``diag(r) Z diag(c²) Zᵀ diag(r)``, N×N, for few samples: its lower half."""
        signed = self.y * row_scale
        matrix = outer_product(self.X, signed, column_scale[: self.X.shape[1]])
        if self.intercept and column_scale[-1]:
            for rows in row_chunks(signed.size, signed.size):
                matrix[rows] += np.outer(signed[rows] * column_scale[-1] ** 2, signed)
        return matrix

    @cached_property
    def is_mapped(self) -> bool:
        """Whether the features are in a file."""
        return is_mapped(self.X.array if isinstance(self.X, ShiftedArray) else self.X)

    def beside(self, value: Any) -> Any:
        """What is to be kept of each sample: in a file if the features are in one."""
        return on_disk(value) if self.is_mapped else value

    @cached_property
    def compiled(self) -> CompiledRows:
        """The samples in the form of the compiled loops."""
        return compiled(self.X, self.y, self.weights, self.intercept)

    @cached_property
    def single(self) -> SingleArray | None:
        """The features in single precision, if they are a dense array in memory, else None.

        None as well if the units of the columns differ so much that coefficients of some would be
        rounded to zero beside those of others.
        """
        if sp.issparse(self.X) or self.is_mapped:
            return None
        with np.errstate(over="ignore"):
            found = np.ascontiguousarray(self.X, np.float32)
        sizes = np.maximum(found.max(axis=0, initial=0.0), -found.min(axis=0, initial=0.0))
        sizes = sizes[sizes > 0.0]
        return found if sizes.max(initial=0.0) <= 1e12 and sizes.min(initial=1.0) >= 1e-12 else None

    def changed(self, **others: Any) -> Block:
        """A copy with some attributes replaced."""
        return replace(self, **others)

    def shifted(self, shift: FloatArray) -> Block:
        """The same samples with features ``x - shift``."""
        return self.changed(X=self.beside(shifted(self.X, shift)))

    @property
    def totals(self) -> Totals:
        """Sums over the samples that every fit needs."""
        w = self.weights
        classes = np.asarray(np.bincount(self.y > 0.0, w, 2), np.float64)
        return Totals(adjoint(self.compiled, w[None])[0], self.squared_columns(w), classes)

    def flip_costs(self, unit: float) -> FloatArray:
        """Flip costs for this unit; with κλ as the unit, the margins above which flips pay.

        If all are equal, the array has length one.
        """
        if self.flip_multiples is None or np.isinf(unit):
            return np.array([unit])
        never = np.isinf(self.flip_multiples)
        return np.where(
            never, np.inf, unit * np.where(never, 1.0, self.flip_multiples)
        )  # avoids ∞·0

    def flip_sizes(self, a: FloatArray) -> FloatArray:
        """The cost of flipping shares a of the labels, in units; 0 where a is 0."""
        if self.flip_multiples is None:
            return a
        return np.where(a > 0.0, self.flip_multiples, 0.0) * a

    def part(self, first: int, last: int) -> Block:
        """Samples ``first`` to ``last - 1``, as views."""
        rows = slice(first, last)
        X = self.beside(row_range(self.X, first, last))
        flip_multiples = None if self.flip_multiples is None else self.flip_multiples[rows]
        return Block(X, self.y[rows], self.weights[rows], self.intercept, flip_multiples)

    def __getstate__(self) -> dict[str, Any]:
        # Without caches: they double the size and are quickly recomputed.
        own = {
            name: value
            for name, value in self.__dict__.items()
            if name not in ("compiled", "single", "is_mapped")
        }
        return own | {"kept": {}}


def join_blocks(blocks: Sequence[Block]) -> Block:
    """Join several blocks to one."""
    if len(blocks) == 1:
        return blocks[0]
    sparse = sp.issparse(blocks[0].X)
    X = [block.X for block in blocks]
    flip_multiples = [block.flip_multiples for block in blocks if block.flip_multiples is not None]
    return Block(
        sp.vstack(X, format="csr") if sparse else np.concatenate(X),
        np.concatenate([block.y for block in blocks]),
        np.concatenate([block.weights for block in blocks]),
        blocks[0].intercept,
        flip_multiples=np.concatenate(flip_multiples) if flip_multiples else None,
    )
