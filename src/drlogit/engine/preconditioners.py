"""Preconditioners of the truncated interior point.

Both approximate the samples' matrix plus the diagonal of the cone, label by label, and ignore what
couples the labels.  The cone completes them by its own part of low rank.  ``kept`` are the columns
in the norm.

Derivation: docs/algorithm.md, section 9.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import numpy as np

from ..dual.shifted_cholesky import ShiftedCholesky
from ..rows.arrays import FloatArray, IndexArray


class Diagonal:
    """The diagonal alone, (labels, columns)."""

    def __init__(self, diagonal: FloatArray, kept: IndexArray) -> None:
        self.inverse, self.kept = 1.0 / np.maximum(diagonal, 1e-300), kept
        self.shape = diagonal.shape

    def solve(self, r: FloatArray) -> FloatArray:
        """The inverse times r, (labels, columns)."""
        return self.inverse * r

    def span(self, x: FloatArray) -> Iterator[FloatArray]:
        """``x H⁻¹ xᵀ`` for the matrix H of each label; prepares :meth:`combined`.

        x has the kept columns only, and is zero in the others.
        """
        self.x = x
        for inverse in self.inverse[:, self.kept]:
            yield (x * inverse) @ x.T

    def combined(self, weights: FloatArray) -> FloatArray:
        """The inverse times ``weights @ x``."""
        found = np.zeros_like(self.inverse)
        found[:, self.kept] = self.inverse[:, self.kept] * (weights @ self.x)
        return found


class Blocks:
    """A matrix for each label, (labels, columns, columns), which becomes its Cholesky factor."""

    def __init__(self, matrices: FloatArray, kept: IndexArray) -> None:
        self.kept, self.shape = kept, matrices.shape[:2]
        self.factors = [ShiftedCholesky(matrix) for matrix in matrices]

    def solve(self, r: FloatArray) -> FloatArray:
        return np.stack([factor.solve(row) for factor, row in zip(self.factors, r, strict=True)])

    def span(self, x: FloatArray) -> Iterator[FloatArray]:
        self.solved = np.zeros((*self.shape, len(x)))
        whole = np.zeros((self.shape[1], len(x)))
        whole[self.kept] = x.T
        for factor, solved in zip(self.factors, self.solved, strict=True):
            solved[:] = factor.solve(whole)
            yield whole.T @ solved

    def combined(self, weights: FloatArray) -> FloatArray:
        return np.asarray((self.solved @ weights[:, :, None])[:, :, 0])


Preconditioner: TypeAlias = Diagonal | Blocks
