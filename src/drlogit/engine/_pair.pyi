"""Samples of the flip pair: visits in compiled loops."""

from typing import Any

from ..rows._products import CompiledRows
from ..rows.arrays import FloatArray

class PairState:
    """What a block of samples remembers: margins, slacks and multipliers, and their direction."""

    def parts(
        self,
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray | None, FloatArray | None]: ...

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
def predict_pair(
    rows: CompiledRows, state: PairState, dcoef: FloatArray, adjoint: bool = True
) -> tuple[PairState, FloatArray]: ...
def correct_pair(
    rows: CompiledRows,
    state: PairState,
    dcoef: FloatArray,
    centre: float,
    share: float,
) -> tuple[PairState, FloatArray]: ...
def certify_pair(
    rows: CompiledRows,
    both: Any,
    dcoef: FloatArray,
    least: float = 0.0,
    known: FloatArray | None = None,
) -> tuple[FloatArray, FloatArray]: ...
