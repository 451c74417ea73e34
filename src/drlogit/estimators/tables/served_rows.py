"""Warnings about new rows of a table that differ from the training rows.

A model scores every row.  Ages in months, or a column that a new export leaves empty, get scores
like all others, so ``predict`` warns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from ...problem.features import Feature
from ...rows.arrays import BoolArray, FloatArray, IndexArray, Matrix
from .encoding import EncodedRows
from .frames import TableColumn, listed, spelt

#: Numbers are told if they are outside the training range in more than half of the rows (ages in
#: decades), if their distance from it exceeds its width in more than this share of the rows (ages
#: of 18 to 90 reach from -54 to 162; 20 years are 240 months), or this multiple of its width in any
#: row (amounts and incomes have long tails).
_SHARE, _ABSURD = 0.05, 10.0

#: A column without any value is worth a warning if that is less probable than this, given the share
#: of missing values in the training data.
_BY_ACCIDENT = 1e-3


def columns_seen(matrix: Matrix, first: IndexArray, absent: BoolArray | None = None) -> FloatArray:
    """Smallest number, largest number and share of missing values of each column, as three rows.

    The numbers are NaN for categories.  ``first`` is the position of each column of numbers in the
    matrix, -1 for a category.
    """
    gone = np.zeros(first.size) if absent is None else absent.mean(axis=0)
    return np.array([*_ends(matrix, first), gone])


def number_places(features: Sequence[Feature]) -> IndexArray:
    """The column of the matrix that each number is, -1 for the other columns."""
    numbers = [each.values is None and each.columns.size > 0 for each in features]
    pairs = zip(features, numbers, strict=True)
    return np.array([each.columns[0] if is_number else -1 for each, is_number in pairs])


def remarks_on_new(
    rows: EncodedRows, seen: FloatArray, features: Sequence[Feature], given: Sequence[TableColumn]
) -> list[str]:
    """Warnings about encoded rows of a table."""
    names = [feature.name for feature in features]
    far = far_outside(rows.matrix, number_places(features), seen, names)
    new = _unseen_levels(rows.unknown & ~rows.absent, features, given)
    return [*new, *_empty(rows.absent, seen[2], features), *far]


def far_outside(
    matrix: Matrix, first: IndexArray, seen: FloatArray, names: Sequence[Any]
) -> list[str]:
    """Warnings about numbers outside the training range."""
    low, high, _ = seen
    width = high - low
    least, most = _ends(matrix, first)
    # Comparisons with NaN are false; a column that did not vary in training has no scale.
    outside = ((least < low) | (most > high)) & (width > 0.0)
    named = []
    for j in np.flatnonzero(outside).tolist():
        values = matrix[:, [first[j]]]
        values = np.ravel(values.toarray() if sp.issparse(values) else values)
        widths = np.maximum(low[j] - values, values - high[j]) / width[j]
        limit = next(
            (at for at, share in ((1.0, _SHARE), (0.0, 0.5)) if (widths > at).mean() > share),
            _ABSURD,
        )
        far = widths > limit
        if far.any():
            named.append(
                f"{names[j]!r:.40} ({int(far.sum())} of {far.size} rows, such as "
                f"{values[far][0]:.6g}; the training data have {low[j]:.6g} to {high[j]:.6g})"
            )
    if not named:
        return []
    return [
        f"numbers are outside the range of the training data in {_columns(named)}; check whether "
        "they are in other units"
    ]


def _ends(matrix: Matrix, first: IndexArray) -> list[FloatArray]:
    """The smallest and the largest number of each column of a table, NaN for a category."""
    both = matrix.min(axis=0), matrix.max(axis=0)
    flat = (np.ravel(end.toarray() if sp.issparse(end) else end) for end in both)
    return [np.where(first >= 0, end[first], np.nan) for end in flat]


def _empty(absent: BoolArray, missing: FloatArray, features: Sequence[Feature]) -> list[str]:
    """A warning about columns without any value."""
    n_rows = absent.shape[0]
    gone = np.flatnonzero(absent.all(axis=0) & (missing**n_rows < _BY_ACCIDENT))
    if not gone.size:
        return []
    named = [f"{features[j].name!r:.40}" for j in gone.tolist()]
    return [
        f"none of {n_rows} rows has a value in {_columns(named)}, but the training data have some; "
        "the scores use the replacement for missing values"
    ]


def _unseen_levels(
    unknown: BoolArray, features: Sequence[Feature], given: Sequence[TableColumn]
) -> list[str]:
    """A warning about levels that the training data do not have."""
    n_rows, named = unknown.shape[0], []
    for feature, where, column in zip(features, unknown.T, given, strict=True):
        if feature.columns.size and where.any():
            levels, codes = column.distinct
            example = spelt(levels[codes[np.argmax(where)]])
            named.append(
                f"{feature.name!r:.40} ({int(where.sum())} of {n_rows} rows, such as "
                f"{example!r:.30}; the training data have {(feature.levels or ('',))[0]!r:.30})"
            )
    if not named:
        return []
    return [
        f"levels are new in {_columns(named)}; they count as the average training sample. Check "
        "spelling and coding"
    ]


def _columns(named: Sequence[str]) -> str:
    return f"{'column' if len(named) == 1 else 'columns'} {listed(named, 3)}"
