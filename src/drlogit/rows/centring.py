"""Features far from zero, shifted to where floating point is dense.

Next to an intercept, ``x_j`` and ``x_j - c_j`` are the same feature: ``b + c_j β_j`` stands for b.
Columns that add up to one, like those of a group of categories, do as well as an intercept.
Where a column's offset is large beside its spread (dates, identifiers, absolute temperatures),
products with the column as it is lose as many digits as the ratio has, and its Gram matrix twice
as many.
Such columns are shifted before they are multiplied, in the chunks in which they are read anyway;
nothing is copied but the stored entries of a sparse matrix, in which only columns without a zero
can be so far off.

A shift near the values makes the subtraction exact (Sterbenz), so that shifted rows are the
samples themselves in other coordinates, not an approximation of them.
"""

from __future__ import annotations

import math

import numpy as np

from .arrays import FloatArray, IndexArray
from .blocks import Block
from .interface import Rows
from .reductions import Min, Sum

#: Offset over spread from which a column is shifted: beyond, Gram matrices in single precision
#: would say little about the spread.
_FAR = 64.0

#: Splits a double into two halves whose products are exact (Dekker).
_SPLIT = 2.0**27 + 1.0


def centred(rows: Rows, still: IndexArray | None = None, *, constant: bool = False) -> Rows:
    """The same samples with far columns shifted; themselves where there are none.

    Columns ``still`` are left alone: those of categories, which are known by their 0 and 1.
    Without a constant, as intercept or as ``constant`` sum of columns, a shift would be another
    model, and there is none.
    """
    if not (rows.intercept or constant):
        return rows
    n = rows.n_columns - int(rows.intercept)
    _, (mean, squares, rows.class_weights) = rows.run(_moments)
    rows.column_means, rows.column_scale = mean, np.sqrt(squares)
    mean = mean[:n]
    # The spread by subtraction: rough, but good enough to see that it is small.
    variance = np.square(rows.column_scale[:n]) - np.square(mean)
    far = np.square(mean) > _FAR**2 * np.maximum(variance, 0.0)
    far &= mean != 0.0
    if still is not None:
        far[still] = False
    if far.any():
        far &= rows.run(_without_zeros)[1][0] > 0.0
    if not far.any():
        return rows
    # The mean of what is left is small, so that this one is exact; a constant becomes zero.
    start = np.where(far, mean, 0.0)
    rest = rows.shifted(start).column_means[:n]
    return rows.shifted(np.where(far, start + rest, 0.0))


def _moments(block: Block, _: None) -> tuple[None, tuple[Sum, Sum, Sum]]:
    """Means, and mean squares and what the classes weigh, which every fit wants to know."""
    return None, (Sum(block.means), Sum(block.mean_squares), Sum(block.class_weights))


def _without_zeros(block: Block, _: None) -> tuple[None, tuple[Min]]:
    """1 for columns of which every entry is stored, 0 for the others."""
    return None, (Min(block.full_columns.astype(np.float64)),)


def exact_dot(x: FloatArray, y: FloatArray) -> float:
    """``x·y``, rounded once."""
    product = x * y
    error = _product_error(x, y, product)
    if not (np.isfinite(product).all() and np.isfinite(error).all()):
        return float(x @ y)
    return math.fsum(np.concatenate([product, error]).tolist())


def _product_error(x: FloatArray, y: FloatArray, product: FloatArray) -> FloatArray:
    """What rounding took from the products, exactly (Dekker 1971)."""
    with np.errstate(over="ignore", invalid="ignore"):
        x_high, x_low = _halves(x)
        y_high, y_low = _halves(y)
        return np.asarray(
            ((x_high * y_high - product) + x_high * y_low + x_low * y_high) + x_low * y_low
        )


def _halves(x: FloatArray) -> tuple[FloatArray, FloatArray]:
    scaled = _SPLIT * x
    high = scaled - (scaled - x)
    return high, x - high
