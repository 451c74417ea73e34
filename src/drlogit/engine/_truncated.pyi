"""Loops of the truncated interior point over samples."""

from collections.abc import Sequence

from ..rows._products import CompiledRows
from ..rows.arrays import BoolArray, FloatArray, IndexArray

def softmax(scores: FloatArray) -> tuple[FloatArray, FloatArray]: ...
def worst_labels(
    scores: FloatArray, kappa: FloatArray, reach: BoolArray, lam: float
) -> FloatArray: ...
def mixed_entropies(
    weights: FloatArray,
    old: FloatArray,
    new: FloatArray,
    own: IndexArray,
    mixes: Sequence[tuple[float, float]],
) -> FloatArray: ...
def pair_product(
    rows: CompiledRows, curved: FloatArray, kappa: FloatArray, step: FloatArray
) -> FloatArray: ...
