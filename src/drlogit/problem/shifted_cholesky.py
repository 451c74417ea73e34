"""Cholesky factors of matrices that may be singular: the smallest shift that lets one exist.

The matrix is scaled to a unit diagonal, so that one shift suits all columns: duplicated and empty
ones make it singular, rounding makes it indefinite, and a hair on the diagonal mends either.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs

from ..rows.arrays import FloatArray, IndexArray


def unit_scale(diagonal: FloatArray) -> FloatArray:
    """Factors for rows and columns that make a diagonal one; 1 where it is not positive."""
    return np.asarray(1.0 / np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0)))


def shifted_cholesky(matrix: FloatArray, shifts: Iterable[float]) -> FloatArray | None:
    """Lower factor of a matrix with its diagonal set to ``1 + shift``, for the first that serves.

    Only the lower triangle is read, and of the factor only that is meant.  None if no shift serves.
    LAPACK is called directly: on small problems SciPy's checks cost more than the work.
    """
    for shift in shifts:
        shifted = matrix.copy(order="F")
        np.fill_diagonal(shifted, 1.0 + shift)
        factor, failed = dpotrf(shifted, lower=1, clean=0, overwrite_a=1)
        if not failed:
            return np.asarray(factor)
    return None


@dataclass(frozen=True, eq=False)
class ScaledFactor:
    """A symmetric matrix, scaled to a unit diagonal and factored after the smallest shift."""

    scale: FloatArray
    lower: FloatArray

    @classmethod
    def of(cls, matrix: FloatArray, shifts: Iterable[float]) -> ScaledFactor | None:
        """The factor, or None if no shift lets one exist."""
        scale = unit_scale(np.diagonal(matrix))
        lower = shifted_cholesky(scale[:, None] * matrix * scale, shifts)
        return None if lower is None else cls(scale, lower)

    def solve(self, right: FloatArray) -> FloatArray:
        """What the shifted matrix takes to ``right``."""
        return np.asarray(self.scale * dpotrs(self.lower, self.scale * right, lower=1)[0])

    def inverse(self, kept: IndexArray) -> FloatArray:
        """Rows and columns ``kept`` of the inverse."""
        lower, _ = dpotri(self.lower, lower=1)
        full = np.tril(lower)
        full += np.tril(lower, -1).T
        scale = self.scale[kept]
        return np.asarray(scale[:, None] * full[np.ix_(kept, kept)] * scale)
