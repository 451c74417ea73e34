"""All samples at once, seldom: where a step of the model leads, and what it proves."""

from typing import Any

from ..rows._products import CompiledRows
from ..rows.arrays import FloatArray

def survey(rows: CompiledRows, price: FloatArray, *arguments: Any) -> Any: ...
