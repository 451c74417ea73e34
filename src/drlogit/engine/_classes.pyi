"""Samples of several classes: visits in compiled loops."""

from typing import Any, NamedTuple

from ..rows._products import CompiledRows
from ..rows.arrays import FloatArray, SingleArray

class ClassState(NamedTuple):
    codes: Any
    kappa: FloatArray
    fixed: FloatArray
    now: FloatArray
    curved: FloatArray | None = None
    second: FloatArray | None = None
    step: FloatArray | None = None

def open_classes(
    rows: CompiledRows,
    codes: Any,
    kappa: FloatArray,
    fixed: FloatArray,
    coef: FloatArray,
    mu: float,
) -> ClassState: ...
def linearise_classes(
    rows: CompiledRows, state: ClassState, coef: FloatArray, primal: float, dual: float
) -> tuple[ClassState, FloatArray]: ...
def predict_classes(
    rows: CompiledRows, state: ClassState, dcoef: FloatArray
) -> tuple[ClassState, FloatArray]: ...
def correct_classes(
    rows: CompiledRows, state: ClassState, dcoef: FloatArray, centre: float, share: float
) -> tuple[ClassState, FloatArray]: ...
def certify_classes(
    rows: CompiledRows, both: ClassState | tuple[ClassState, FloatArray], dcoef: FloatArray
) -> tuple[FloatArray, FloatArray]: ...
def curvature_product(
    rows: CompiledRows, curved: FloatArray, kappa: FloatArray, coef: FloatArray
) -> FloatArray: ...
def single_product(
    X: SingleArray,
    intercept: bool,
    weights: FloatArray,
    curved: FloatArray,
    kappa: FloatArray,
    coef: FloatArray,
) -> FloatArray: ...
def curvature_gram(rows: CompiledRows, curved: FloatArray) -> FloatArray: ...
