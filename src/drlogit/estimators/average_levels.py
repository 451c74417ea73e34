"""Coefficients of categories relative to the average sample.

Every sample has one level of each category, so a number can be added to the coefficients of all its
levels and taken from the intercept: scores, worst case and certificate stay the same.  We choose it
so that a category contributes nothing on average, and a level that nobody knows, which has zeros in
all its columns, counts as the average does.
"""

from __future__ import annotations

from typing import Any

from ..rows.arrays import FloatArray
from .tables.encoding import Encoding


def relative_to_average(
    coef: FloatArray, intercept: Any, encoding: Encoding, shares: FloatArray
) -> tuple[FloatArray, Any]:
    """The same model; ``shares`` are the means of the columns, so those of the levels."""
    coef = coef.copy()
    for group in encoding.groups:
        mean = coef[..., group] @ shares[group]
        coef[..., group] -= mean[..., None]
        intercept = intercept + mean
    return coef, intercept
