from typing import Any, NamedTuple

from ..rows._products import CompiledRows
from ..rows.arrays import FloatArray

class PieceState(NamedTuple):
    kappa: FloatArray
    slope: FloatArray
    starts: Any
    pieces: FloatArray
    sets: Any
    new: Any
    score: FloatArray
    top: FloatArray
    loss: float
    step: FloatArray
    dscore: FloatArray
    dtop: FloatArray
    dlam: float

class Table:
    def __init__(self, rows: CompiledRows, codes: Any, combined: Any, layout: Any) -> None: ...

def open_pieces(
    t: Table, kappa: FloatArray, slope: FloatArray, x: FloatArray, mu: float
) -> PieceState: ...
def linearise(
    t: Table,
    state: PieceState,
    x: FloatArray,
    primal: float,
    dual: float,
    mu: float,
    most_over: float,
    refused: PieceState | None = None,
) -> tuple[PieceState, FloatArray]: ...
def with_missing(
    t: Table, both: tuple[PieceState, PieceState], x: FloatArray, mu: float
) -> tuple[PieceState, FloatArray]: ...
def follow(
    t: Table, state: PieceState, dx: FloatArray, centre: float, share: float, predictor: bool
) -> tuple[PieceState, FloatArray]: ...
def certify(
    t: Table, state: PieceState, dx: FloatArray
) -> tuple[tuple[PieceState, FloatArray], FloatArray]: ...
