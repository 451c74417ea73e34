"""Preconditioners of the truncated interior point.

Both approximate the samples' matrix plus the diagonal of the cone, class by class, and ignore what
couples the classes.  The cone completes them by its own part of low rank.  ``kept`` are the columns
in the norm.

Derivation: docs/algorithm.md, section 9.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from ..rows.arrays import FloatArray, IndexArray

#: Relative shifts of the diagonal, tried until a matrix has a Cholesky factor.
_SHIFTS = (1e-12, 1e-9, 1e-6, 1e-3)


class Diagonal:
    """The diagonal alone, (classes, columns)."""

    def __init__(self, diagonal: FloatArray, kept: IndexArray) -> None:
        self.inverse, self.kept = 1.0 / np.maximum(diagonal, 1e-300), kept
        self.shape = diagonal.shape

    def solve(self, r: FloatArray) -> FloatArray:
        """The inverse times r, (classes, columns)."""
        return self.inverse * r

    def span(self, x: FloatArray) -> Iterator[FloatArray]:
        """``x H⁻¹ xᵀ`` for the matrix H of each class; prepares :meth:`combined`.

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
    """A matrix for each class, (classes, columns, columns), which becomes its Cholesky factor."""

    def __init__(self, matrices: FloatArray, kept: IndexArray) -> None:
        self.kept, self.shape = kept, matrices.shape[:2]
        self.factors = [self._factor(matrix) for matrix in matrices]

    @staticmethod
    def _factor(matrix: FloatArray) -> FloatArray:
        diagonal = np.diagonal(matrix).copy()
        for shift in _SHIFTS:
            np.fill_diagonal(matrix, diagonal * (1.0 + shift) + 1e-300)
            factor, failed = dpotrf(matrix.T, lower=0, clean=0)
            if not failed:
                return np.asarray(factor)
        return np.asarray(np.diag(np.sqrt(diagonal + 1e-300)))

    def solve(self, r: FloatArray) -> FloatArray:
        pairs = zip(self.factors, r, strict=True)
        return np.stack([dpotrs(factor, row, lower=0)[0] for factor, row in pairs])

    def span(self, x: FloatArray) -> Iterator[FloatArray]:
        self.solved = np.zeros((len(self.factors), len(self.factors[0]), len(x)))
        whole = np.zeros((len(self.factors[0]), len(x)))
        whole[self.kept] = x.T
        for factor, solved in zip(self.factors, self.solved, strict=True):
            solved[:] = dpotrs(factor, whole, lower=0)[0]
            yield whole.T @ solved

    def combined(self, weights: FloatArray) -> FloatArray:
        return np.asarray((self.solved @ weights[:, :, None])[:, :, 0])


Preconditioner: TypeAlias = Diagonal | Blocks
