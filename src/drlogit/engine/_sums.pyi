"""Where each of a visit's sums is, and step lengths from them."""

from ..rows.arrays import FloatArray

LOSS: int
VALUE: int
PRODUCTS: int
DEGREE: int
MISSING: int
ENTROPY: int
NEW_PIECES: int
COUNT: int
SCALARS: int
PRIMAL_CHANGE: int
DUAL_CHANGE: int
BOTH_CHANGE: int
CHANGES: int
SLOPE: int
CURVATURE: int
PARABOLA: int
PROOF_ENTROPY: int
PROOF_ADDITIONS: int
PROOF: int
LEVELS: int

def longest(sums: FloatArray, first: int, price: float) -> tuple[float, float]: ...
