from typing import Any

from ..rows._products import CompiledRows
from ..rows.arrays import FloatArray

class PairState:
    flip_share: FloatArray
    margins: FloatArray
    def __init__(
        self, kappa: FloatArray, slope: FloatArray, now: Any, second: Any = None, step: Any = None
    ) -> None: ...

def longest(
    sums: FloatArray, first: int, primal_price: float, dual_price: float
) -> tuple[float, float]: ...
def open_pair(
    rows: CompiledRows, kappa: FloatArray, slope: FloatArray, coef: FloatArray, mu: float
) -> PairState: ...
def linearise_pair(
    rows: CompiledRows,
    state: PairState,
    coef: FloatArray,
    primal: float,
    dual: float,
    gram: bool = True,
) -> tuple[PairState, FloatArray]: ...
def curvature_pair(rows: CompiledRows, state: PairState) -> FloatArray: ...
def predict_pair(
    rows: CompiledRows, state: PairState, dcoef: FloatArray, light: float
) -> tuple[PairState, FloatArray]: ...
def correct_pair(
    rows: CompiledRows,
    state: PairState,
    dcoef: FloatArray,
    centre: float,
    share: float,
    light: float,
) -> tuple[PairState, FloatArray]: ...
def certify_pair(
    rows: CompiledRows, state: PairState, point: FloatArray | None, dcoef: FloatArray
) -> tuple[FloatArray, FloatArray]: ...
def open_loss(rows: CompiledRows, coef: FloatArray) -> FloatArray: ...
def linearise_loss(
    rows: CompiledRows, u: FloatArray, direction: FloatArray, primal: float, gram: bool = True
) -> tuple[FloatArray, FloatArray]: ...
def certify_loss(
    rows: CompiledRows, u: FloatArray, point: FloatArray | None, dcoef: FloatArray
) -> tuple[FloatArray, FloatArray]: ...
