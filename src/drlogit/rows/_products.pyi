"""Products with the data, a panel of rows at a time."""

from .arrays import FloatArray, IndexArray, Matrix

#: Whether float32 and shifted arrays are multiplied without a copy in double.
WITHOUT_COPY: bool

class CompiledRows:
    """Rows of X, with an optional constant column, their labels and weights, for compiled loops."""

    n_samples: int
    n_columns: int
    stride: int
    intercept: bool
    panel: int
    length: int

def compiled_rows(
    x: Matrix,
    y: FloatArray,
    w: FloatArray,
    intercept: bool,
    shift: FloatArray | None = None,
) -> CompiledRows: ...
def weighted_gram(rows: CompiledRows, d: FloatArray) -> FloatArray: ...
def weighted_squares(rows: CompiledRows, d: FloatArray) -> FloatArray: ...
def product(rows: CompiledRows, coef: FloatArray) -> FloatArray: ...
def scores(rows: CompiledRows, coef: FloatArray) -> FloatArray: ...
def adjoint(rows: CompiledRows, columns: FloatArray) -> FloatArray: ...
def sparse_outer(
    starts: IndexArray,
    columns: IndexArray,
    values: FloatArray,
    tops: IndexArray,
    rows: IndexArray,
    transposed: FloatArray,
    out: FloatArray,
) -> None: ...
