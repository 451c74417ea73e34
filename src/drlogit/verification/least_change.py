"""The least change of doubts that takes given sums away: nothing has to be exact here."""

from __future__ import annotations

import numpy as np

from ..rows.arrays import FloatArray, IndexArray
from .given import Given
from .rounding import TINY
from .sums import with_constant

#: Entries of columns up to which all of them are factored at once, in a second or two; the matrix
#: of more of them is formed, whose condition is the square.
MOST_ENTRIES = 1 << 20

#: The share of its size from which a direction counts.
_PIVOT = 1e-13


def least_change(
    given: Given, which: IndexArray, curvature: FloatArray, wanted: FloatArray
) -> FloatArray:
    """The t with the least ``Σ D_i t_i²`` whose sums ``Σ D_i t_i z_i`` are wanted.

    They are over these columns and, if it is free, the constant.
    """
    if curvature.size * which.size <= MOST_ENTRIES:
        Z = np.concatenate([with_constant(given, part, which) for _, part in given.rows()])
        root = np.sqrt(curvature)
        size = np.maximum(np.abs(Z).max(axis=0, initial=0.0), TINY)
        step = np.linalg.lstsq((root[:, None] * (Z / size)).T, wanted / size, rcond=_PIVOT)[0]
        return np.divide(step, root, out=np.zeros_like(root), where=root > 0.0)
    matrix = np.zeros((wanted.size, wanted.size))
    for rows, part in given.rows():
        Z = with_constant(given, part, which)
        matrix += Z.T @ (curvature[rows, None] * Z)
    size = np.sqrt(np.diagonal(matrix))
    size = np.where(size > 0.0, size, 1.0)
    c = np.linalg.lstsq(matrix / size / size[:, None], wanted / size, rcond=_PIVOT)[0] / size
    along = np.empty(curvature.size)
    for rows, part in given.rows():
        along[rows] = with_constant(given, part, which) @ c
    return along
