from typing import Any

from .arrays import FloatArray

class CompiledRows:
    n_samples: int
    n_columns: int
    stride: int
    intercept: bool
    panel: int
    length: int

def compiled_rows(
    x: Any,
    y: FloatArray,
    w: FloatArray,
    intercept: bool,
    shift: FloatArray | None = None,
    dense: Any = None,
) -> CompiledRows: ...
def weighted_gram(rows: CompiledRows, d: FloatArray) -> FloatArray: ...
