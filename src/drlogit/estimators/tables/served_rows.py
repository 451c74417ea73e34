"""Warnings about new rows of a table that differ from the training rows.

A model scores every row.  Ages in months, or a column that a new export leaves empty, get scores
like all others, so ``predict`` warns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from ...problem.features import Features
from ...rows.arrays import FloatArray
from .frames import TableColumn, listed, spelt

#: Numbers are told if they are outside the training range in more than half of the rows (ages in
#: decades), if their distance from it exceeds its width in more than this share of the rows (ages
#: of 18 to 90 reach from -54 to 162; 20 years are 240 months), or this multiple of its width in any
#: row (amounts and incomes have long tails).
_SHARE, _ABSURD = 0.05, 10.0

#: A column without any value is worth a warning if that is less probable than this, given the share
#: of missing values in the training data.
_BY_ACCIDENT = 1e-3


def columns_seen(columns: Sequence[tuple[TableColumn, str | None]]) -> FloatArray:
    """Smallest number, largest number and share of missing values of each column, as three rows.

    The numbers are NaN for categories, those columns that have a kind.
    """
    seen = np.full((3, len(columns)), np.nan)
    for j, (column, kind) in enumerate(columns):
        if kind is None:
            values = column.numbers
            seen[:, j] = np.fmin.reduce(values), np.fmax.reduce(values), np.isnan(values).mean()
        else:
            seen[2, j] = column.counts[None] / len(column.values)
    return seen


def remarks_on_new(columns: Sequence[TableColumn], features: Features) -> list[str]:
    """Warnings about new rows, given the features of the fit."""
    assert features.seen is not None
    new, gone, far = list[str](), list[str](), list[str]()
    for column, feature, seen in zip(columns, features.each, features.seen.T, strict=True):
        if not feature.columns.size:
            continue
        name, total = f"{column.name!r:.40}", len(column.values)
        if feature.values is None:
            missing = int(np.isnan(column.numbers).sum())
            outside = _outside(column.numbers, *seen[:2].tolist())
            far += [f"{name} ({outside})"] if outside else []
        else:
            known = {spelt(level) for level in (None, *feature.values)}
            unseen = Counter({k: n for k, n in column.counts.items() if spelt(k) not in known})
            missing = column.counts[None]
            for level, _ in unseen.most_common(1):
                new.append(
                    f"{name} ({unseen.total()} of {total} rows, such as {spelt(level)!r:.30}; the "
                    f"training data have {(feature.levels or ('',))[0]!r:.30})"
                )
        if missing == total and seen[2] ** total < _BY_ACCIDENT:
            gone.append(name)
    said = {
        "levels are new in {}; they count as the average training sample. Check spelling and "
        "coding": new,
        "there is no value in {}, but the training data have some; the scores use the replacement "
        "for missing values": gone,
        "numbers are outside the range of the training data in {}; check whether they are in other "
        "units": far,
    }
    return [
        text.format(f"{'column' if len(found) == 1 else 'columns'} {listed(found, 3)}")
        for text, found in said.items()
        if found
    ]


def _outside(values: FloatArray, low: float, high: float) -> str:
    """A description of numbers that are far outside a range, or ""."""
    if not high > low or not (np.fmin.reduce(values) < low or np.fmax.reduce(values) > high):
        return ""  # a column that did not vary in training has no scale
    widths = np.maximum(low - values, values - high) / (high - low)
    limits = ((1.0, _SHARE), (0.0, 0.5))
    limit = next((at for at, share in limits if (widths > at).mean() > share), _ABSURD)
    far = values[widths > limit]
    if not far.size:
        return ""
    return (
        f"{far.size} of {values.size} rows, such as {far[0]:.6g}; the training data have {low:.6g} "
        f"to {high:.6g}"
    )
