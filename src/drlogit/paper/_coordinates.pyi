"""Coordinate minimisation over a box."""

from ..rows.arrays import FloatArray

def sweep(
    H: FloatArray,
    gradient: FloatArray,
    theta: FloatArray,
    radius: float,
    tol: float,
    max_sweeps: int,
) -> int: ...
