"""Warnings about new rows of a table that differ from the training rows.

A model scores every row.  Ages in months, a column that a new export leaves empty, or a row without
any value get a score like all others, so ``predict`` warns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from ...rows.arrays import BoolArray, FloatArray, IndexArray, Matrix
from .encoding import EncodedRows, Encoding
from .frames import TableColumn, listed

#: Numbers are far outside the training range if their distance from it exceeds its width in more
#: than this share of the rows (ages of 18 to 90 reach from -54 to 162; 20 years are 240 months), or
#: exceeds this multiple of its width in any row (amounts and incomes have long tails).
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


def remarks_on(
    rows: EncodedRows, seen: FloatArray, table: Encoding, given: Sequence[TableColumn]
) -> list[str]:
    """Warnings about encoded rows of a table."""
    new = _mostly_unknown(rows.unknown & ~rows.absent, table, given)
    far = far_outside(rows.matrix, table.number_places, seen, [c.name for c in table.columns])
    return [*filter(None, [new]), *_empty(rows.absent, seen[2], table), *far]


def far_outside(
    matrix: Matrix, first: IndexArray, seen: FloatArray, names: Sequence[Any]
) -> list[str]:
    """Warnings about numbers far outside the training range."""
    low, high, _ = seen
    width = high - low
    least, most = _ends(matrix, first)
    # Comparisons with NaN are false; a column that did not vary in training has no scale.
    outside = ((least < low - width) | (most > high + width)) & (width > 0.0)
    named = []
    for j in np.flatnonzero(outside).tolist():
        values = matrix[:, [first[j]]]
        values = np.ravel(values.toarray() if sp.issparse(values) else values)
        widths = np.maximum(low[j] - values, values - high[j]) / width[j]
        far = widths > (1.0 if (widths > 1.0).mean() > _SHARE else _ABSURD)
        if far.any():
            named.append(
                f"{names[j]!r:.40} ({int(far.sum())} of {far.size} rows, such as "
                f"{values[far][0]:.6g}; the training data have {low[j]:.6g} to {high[j]:.6g})"
            )
    if not named:
        return []
    return [
        f"numbers are far outside the range of the training data in {_columns(named)}; check "
        "whether they are in other units"
    ]


def _ends(matrix: Matrix, first: IndexArray) -> list[FloatArray]:
    """The smallest and the largest number of each column of a table, NaN for a category."""
    both = matrix.min(axis=0), matrix.max(axis=0)
    flat = (np.ravel(end.toarray() if sp.issparse(end) else end) for end in both)
    return [np.where(first >= 0, end[first], np.nan) for end in flat]


def _empty(absent: BoolArray, missing: FloatArray, table: Encoding) -> list[str]:
    """Warnings about columns and rows without any value."""
    n_rows, said = absent.shape[0], []
    gone = np.flatnonzero(absent.all(axis=0) & (missing**n_rows < _BY_ACCIDENT))
    if gone.size:
        named = [f"{table.columns[j].name!r:.40}" for j in gone.tolist()]
        said.append(
            f"none of {n_rows} rows has a value in {_columns(named)}, but the training data have "
            "some; the scores use the replacement for missing values"
        )
    kept = [not column.left_out for column in table.columns]
    empty = np.flatnonzero(absent[:, kept].all(axis=1))
    if empty.size:
        said.append(
            f"{empty.size} of {n_rows} rows have no value in any column (the first is row "
            f"{empty[0] + 1}); their scores use the replacements for missing values only"
        )
    return said


def _mostly_unknown(
    unknown: BoolArray, table: Encoding, given: Sequence[TableColumn]
) -> str | None:
    """A warning about columns in which most rows have unknown levels, or None."""
    n_rows, named = unknown.shape[0], []
    for column, where, each in zip(table.columns, unknown.T, given, strict=True):
        new = np.flatnonzero(where)
        if column.levels and 2 * new.size > n_rows:
            named.append(
                f"{column.name!r:.40} ({new.size} of {n_rows} rows, such as "
                f"{each.levels[new[0]]!r:.30}; the training data have {column.levels[0]!r:.30})"
            )
    if not named:
        return None
    return (
        f"most rows have unknown levels in {_columns(named)}; these count as the average training "
        "sample. Check spelling and coding"
    )


def _columns(named: Sequence[str]) -> str:
    return f"{'column' if len(named) == 1 else 'columns'} {listed(named, 3)}"
