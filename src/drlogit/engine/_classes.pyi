"""Samples of several classes: visits in compiled loops."""

from typing import Any

from numpy.typing import NDArray

from ..rows._products import CompiledRows
from ..rows.arrays import FloatArray

def open_classes(
    rows: CompiledRows,
    codes: NDArray[Any],
    which: NDArray[Any],
    kappa: FloatArray,
    coef: FloatArray,
    mu: float,
) -> FloatArray: ...
def linearise_classes(
    rows: CompiledRows,
    codes: NDArray[Any],
    which: NDArray[Any],
    kappa: FloatArray,
    was: FloatArray,
    step: FloatArray | None,
    fixed: FloatArray,
    coef: FloatArray,
    primal: float,
    dual: float,
) -> tuple[FloatArray, FloatArray, FloatArray]: ...
def curvature_product(
    rows: CompiledRows,
    curved: FloatArray,
    which: NDArray[Any],
    kappa: FloatArray,
    coef: FloatArray,
) -> FloatArray: ...
def curvature_gram(rows: CompiledRows, curved: FloatArray, n_classes: int) -> FloatArray: ...
def predict_classes(
    rows: CompiledRows,
    which: NDArray[Any],
    kappa: FloatArray,
    now: FloatArray,
    dcoef: FloatArray,
    light: float,
) -> tuple[FloatArray, FloatArray]: ...
def correct_classes(
    rows: CompiledRows,
    codes: NDArray[Any],
    which: NDArray[Any],
    kappa: FloatArray,
    now: FloatArray,
    slopes: FloatArray,
    linear: bool,
    second: FloatArray,
    dcoef: FloatArray,
    centre: float,
    share: float,
    light: float,
) -> tuple[FloatArray, FloatArray]: ...
def certify_classes(
    rows: CompiledRows,
    which: NDArray[Any],
    kappa: FloatArray,
    now: FloatArray,
    point: FloatArray | None,
    dcoef: FloatArray,
) -> tuple[FloatArray, FloatArray]: ...
