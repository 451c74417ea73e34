"""Coordinate minimisation over a box."""

import numpy as np
from numpy.typing import NDArray

from ..rows.arrays import FloatArray

def sweep(
    H: FloatArray,
    gradient: FloatArray,
    theta: FloatArray,
    radius: float,
    tol: float,
    max_sweeps: int,
) -> int: ...
def sweep_columns(
    entries: FloatArray,
    rows: NDArray[np.int32],
    starts: NDArray[np.int32],
    left: FloatArray,
    right: FloatArray,
    diagonal: FloatArray,
    c: FloatArray,
    radius: float,
    tol: float,
    max_sweeps: int,
    theta: FloatArray,
    product: FloatArray,
    reduced: FloatArray,
) -> int: ...
