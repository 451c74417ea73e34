"""The Cholesky factor of a matrix that duplicate or empty columns may make singular."""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dpotrs

from ..rows.arrays import FloatArray
from ._certificate import factor_in_place


class ShiftedCholesky:
    """The factor at unit diagonal, with the smallest shift that suffices (``_cholesky.pxd``).

    Only the lower half of the matrix counts; its memory is used.  ``failed`` if it has none.
    ``least`` is the first shift that is tried.
    """

    def __init__(self, matrix: FloatArray, least: float = 1e-14) -> None:
        self.unit, found = factor_in_place(matrix, least)
        self.factor, self.failed = matrix.T, not found

    def solve(self, right: FloatArray) -> FloatArray:
        """The solution for a vector, or for each column of a matrix."""
        unit = self.unit if right.ndim == 1 else self.unit[:, None]
        return np.asarray(unit * dpotrs(self.factor, unit * right, lower=1)[0])
