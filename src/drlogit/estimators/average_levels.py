"""Coefficients of categories relative to the average sample.

Every sample has one level of each category, so a number can be added to the coefficients of all its
levels and taken from the intercept: scores, worst case and certificate stay the same.  We choose it
so that a category contributes nothing on average, and a level that nobody knows, which has zeros in
all its columns, counts as the average does.
"""

from __future__ import annotations

from dataclasses import replace

from ..problem.result import Result
from ..rows.arrays import FloatArray
from .tables.encoding import Encoding


def relative_to_average(result: Result, encoding: Encoding, shares: FloatArray) -> Result:
    """The same model; ``shares`` are the means of the columns, so those of the levels."""
    coef, intercept = result.coef.copy(), result.intercept
    for group in encoding.groups:
        mean = coef[..., group] @ shares[group]
        coef[..., group] -= mean[..., None]
        intercept = intercept + mean
    return replace(result, coef=coef, intercept=intercept)
