"""Surveys of all samples, for the method for many rows."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..rows._products import CompiledRows
from ..rows.arrays import FloatArray

LOSS: int
HINGES: int
CURVATURE: int
CROSSED: int
ENTROPY: int
ADDITIONS: int
EDGES: FloatArray

class SurveyStep(NamedTuple):
    coef: FloatArray
    length: float
    kink: float
    curvature: FloatArray
    dual_coef: FloatArray
    multiple: float
    active: NDArray[np.uint8]
    flips: FloatArray

class SurveySums(NamedTuple):
    adjoint: FloatArray
    gradient: FloatArray
    product: FloatArray
    scalars: FloatArray
    histograms: FloatArray

def parts_of(sums: FloatArray, P: int) -> SurveySums: ...
def survey(
    rows: CompiledRows, costs: FloatArray, kappa: float, kink: float, u: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]: ...
def survey_step(
    rows: CompiledRows,
    costs: FloatArray,
    kappa: float,
    kink: float,
    u: FloatArray,
    step: SurveyStep,
) -> tuple[FloatArray, FloatArray, FloatArray]: ...
