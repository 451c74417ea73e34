"""The Cholesky factor of a matrix that duplicate or empty columns may make singular."""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from ..rows.arrays import FloatArray

#: Shifts of the unit diagonal that are tried; one of the matrix's size always suffices.
_SHIFTS = (1e-14, 1e-12, 1e-10, 1e-8, 1e-6, 1e-4)


class ShiftedCholesky:
    """The factor at unit diagonal, with the smallest sufficient shift: one suits all columns.

    Only the lower half of the matrix counts; its memory is used.  ``failed`` if it has none.
    ``engine/_newton.pyx`` does the same with a matrix that it assembles.
    """

    def __init__(self, matrix: FloatArray) -> None:
        diagonal = np.diagonal(matrix)
        self.unit = 1.0 / np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
        matrix *= self.unit
        matrix *= self.unit[:, None]
        for shift in (*_SHIFTS, 2.0 * len(matrix)):
            np.fill_diagonal(matrix, 1.0 + shift)
            self.factor, self.failed = dpotrf(matrix.T, lower=0, clean=0)
            if not self.failed:
                break

    def solve(self, right: FloatArray) -> FloatArray:
        """The solution for a vector, or for each column of a matrix."""
        unit = self.unit if right.ndim == 1 else self.unit[:, None]
        return np.asarray(unit * dpotrs(self.factor, unit * right, lower=0)[0])
