"""All samples at once, seldom: where a step of the model leads, and what it proves."""

from typing import Any

from ..rows._products import CompiledRows
from ..rows.arrays import FloatArray

EDGES: FloatArray

def survey(rows: CompiledRows, costs: FloatArray, *arguments: Any) -> Any: ...
