"""Features far from zero, shifted to where floating point is dense.

Next to an intercept, ``x_j`` and ``x_j - c_j`` are the same feature: ``b + c_j β_j`` stands for b.
Columns that add up to one, like those of a group of categories, do as well as an intercept.
Where a column's offset is large beside its spread (dates, identifiers, absolute temperatures),
products with the column as it is lose as many digits as the ratio has, and its Gram matrix twice
as many.
Such columns are shifted before they are multiplied, in the chunks in which they are read anyway;
nothing is copied but a sparse matrix, in which only columns without a zero can be so far off.

A shift near the values makes the subtraction exact (Sterbenz), so that shifted rows are the
samples themselves in other coordinates, not an approximation of them.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import scipy.sparse as sp

from .arrays import FloatArray, IndexArray
from .blocks import Block
from .interface import Rows
from .reductions import Min

#: Offset over spread from which a column is shifted: beyond, Gram matrices in single precision
#: would say little about the spread.
_FAR = 64.0


def centred(rows: Rows, still: IndexArray | None = None, *, constant: bool = False) -> Rows:
    """The same samples with far columns shifted; themselves where there are none.

    Columns ``still`` are left alone: those of categories, which are known by their 0 and 1.
    Without a constant, as intercept or as ``constant`` sum of columns, a shift would be another
    model, and there is none.
    """
    if not (rows.intercept or constant):
        return rows
    n = rows.n_columns - int(rows.intercept)
    mean = rows.totals.means[:n]
    # The offset over the root mean square: that of columns without spread is one.
    far = (1.0 + _FAR**-2) * np.square(mean) > rows.totals.squares[:n]
    if still is not None:
        far[still] = False
    if far.any():
        far &= rows.run(_without_zeros)[1][0] > 0.0
    if not far.any():
        return rows
    # The mean of what is left is small, so that this one is exact; a constant becomes zero.
    start = np.where(far, mean, 0.0)
    rest = rows.shifted(start).totals.means[:n]
    return rows.shifted(np.where(far, start + rest, 0.0))


def _without_zeros(block: Block, _: None) -> tuple[None, tuple[Min]]:
    """1 for columns of which every entry is stored, 0 for the others."""
    X = block.X
    stored = np.bincount(X.indices, minlength=X.shape[1]) if sp.issparse(X) else X.shape[0]
    return None, (Min(np.full(X.shape[1], stored == X.shape[0], dtype=np.float64)),)


def exact_dot(x: FloatArray, y: FloatArray) -> float:
    """``x·y``, rounded once."""
    rough = float(x @ y)
    if not np.isfinite(rough):
        return rough
    pairs = zip(x.tolist(), y.tolist(), strict=True)
    return float(sum((Fraction(a) * Fraction(b) for a, b in pairs if a and b), Fraction(0)))
