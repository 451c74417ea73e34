"""All samples at once, seldom: where a step of the model leads, and what it proves."""

from typing import Any

from ..rows._products import CompiledRows
from ..rows.arrays import FloatArray
from ._pair import PairState

def look(
    rows: CompiledRows, kappa: FloatArray, u: FloatArray, factor: float, lam: float
) -> Any: ...
def survey(rows: CompiledRows, kappa: FloatArray, u: FloatArray, *arguments: Any) -> Any: ...
def near_shares(
    rows: CompiledRows, state: PairState, point: Any, dcoef: FloatArray, least: float
) -> Any: ...
