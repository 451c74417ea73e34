"""Samples of the flip pair and of the loss alone: visits in compiled loops."""

from typing import Any

from ..rows._products import CompiledRows
from ..rows.arrays import FloatArray

class PairState:
    """Margins, slacks and multipliers of the samples of a block, and their direction."""

    @property
    def flip_share(self) -> FloatArray: ...
    @property
    def margins(self) -> FloatArray: ...

def longest(
    sums: FloatArray, first: int, primal_price: float, dual_price: float
) -> tuple[float, float]: ...
def open_pair(
    rows: CompiledRows, kappa: FloatArray, slope: Any, coef: FloatArray, mu: float
) -> PairState: ...
def linearise_pair(
    rows: CompiledRows,
    state: PairState,
    coef: FloatArray,
    primal: float,
    dual: float,
    *arguments: Any,
    **options: Any,
) -> tuple[PairState, FloatArray]: ...
def curvature_pair(rows: CompiledRows, state: PairState) -> Any: ...
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
    rows: CompiledRows, state: PairState, point: Any, dcoef: FloatArray
) -> tuple[FloatArray, FloatArray]: ...
def open_loss(rows: CompiledRows, coef: FloatArray) -> FloatArray: ...
def linearise_loss(
    rows: CompiledRows, u: FloatArray, direction: FloatArray, primal: float, gram: bool = True
) -> tuple[FloatArray, FloatArray]: ...
def certify_loss(
    rows: CompiledRows, u: FloatArray, point: Any, dcoef: FloatArray
) -> tuple[FloatArray, FloatArray]: ...
