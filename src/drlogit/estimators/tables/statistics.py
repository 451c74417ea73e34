"""What is known of the columns of a table: levels, means, deviations, ranges.

The encoding of a table follows from it.  Statistics of parts of the rows are merged, so a table in
memory is one part, and Parquet larger than memory and frames of Dask have many.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np

from ...problem.features import Feature
from ...rows.arrays import FloatArray
from ...rows.checks import TOO_LARGE
from .encoding import as_category, as_number
from .frames import TableColumn, columns_of
from .remarks import tells_rows_apart

#: Texts from which a column is asked, while it is read, whether it identifies rows.
_MANY_TEXTS = 100_000


class ColumnStatistics:
    """What is known of a column of some rows: the levels of a category, moments of a number.

    ``category`` says what makes it one: "stated", or text or truth values "by type"; it is None for
    a number.
    """

    def __init__(self, category: str | None) -> None:
        self.category, self.counts, self.apart, self.text = category, Counter[Any](), False, False
        self.n_rows = self.n_known = self.missing = 0
        self.total = self.weight = self.mean = self.squares = 0.0
        self.least = self.greatest = self.median = np.nan

    @classmethod
    def of(
        cls, column: TableColumn, category: str | None, weights: FloatArray, fill: str
    ) -> ColumnStatistics:
        """Those of a part of the rows; the median only if it is the ``fill``."""
        own = cls(category)
        own.n_rows = weights.size
        if category is not None:
            own.missing, own.counts = column.counts[None], column.counts
            own.text = category == "by type" and column.kind == "text"
            return own
        values, known = column.numbers, np.abs(column.numbers) < TOO_LARGE
        there, w = values[known], weights[known]
        own.missing, own.n_known = int(np.isnan(values).sum()), there.size
        own.total, own.weight = float(there.sum()), float(w.sum())
        if there.size:
            own.least, own.greatest = float(there.min()), float(there.max())
            own.median = float(np.median(there)) if fill == "median" else np.nan
        if own.weight > 0.0:
            own.mean = float(w @ there) / own.weight
            own.squares = float(w @ np.square(there - own.mean))
        return own

    def add(self, other: ColumnStatistics) -> None:
        """Other rows; moments are merged as Chan, Golub and LeVeque (1983) do it."""
        both, change = self.weight + other.weight, other.mean - self.mean
        if other.weight > 0.0:
            self.squares += other.squares + change**2 * self.weight * other.weight / both
            self.mean, self.weight = self.mean + change * other.weight / both, both
        for name in ("n_rows", "n_known", "missing", "total"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.least = float(np.fmin(self.least, other.least))
        self.greatest = float(np.fmax(self.greatest, other.greatest))
        self.text = self.text or other.text
        if not self.apart:
            self.counts.update(other.counts)
        if self.text and len(self.counts) > _MANY_TEXTS and tells_rows_apart(self.counts):
            self.apart, self.counts = True, Counter()

    def encoding(self, name: Any, fill: str) -> Feature:
        """What becomes of the column.

        Text that identifies rows is ignored, unless it was stated that it is a category, and so are
        numbers that are all missing, if others are to be put in their place.
        """
        if self.category is not None:
            known = sorted(level for level in self.counts if level is not None)
            apart = self.apart or (self.text and tells_rows_apart(self.counts))
            return as_category(name, [] if apart else known + [None] * (None in self.counts))
        variance = self.squares / self.weight if self.weight else 0.0
        deviation = 1.0 if variance <= (1e-14 * self.mean) ** 2 else float(np.sqrt(variance))
        if fill == "error" or not self.n_known:
            return as_number(name, fill == "error", None, deviation)
        stand_in = self.median if fill == "median" else self.total / self.n_known
        return as_number(name, True, stand_in, deviation)


#: Those of a table, by the names of its columns.
Statistics: TypeAlias = dict[Any, ColumnStatistics]


def statistics_of(
    columns: Iterable[TableColumn], categories: Mapping[Any, str], weights: Any, fill: str = "error"
) -> Statistics:
    """Those of a table in memory."""
    return {c.name: ColumnStatistics.of(c, categories.get(c.name), weights, fill) for c in columns}


def statistics_of_part(
    part: Any, categories: Mapping[Any, str], weights: FloatArray | None = None
) -> Statistics:
    """Those of a part of a table, which may have no rows."""
    own = np.ones(len(part)) if weights is None else weights
    return statistics_of(columns_of(part), categories, own) if len(part) else {}


def statistics_in(
    parts: Iterable[Any], categories: Mapping[Any, str], weights: FloatArray
) -> Iterator[Statistics]:
    """Those of the parts of a dataset."""
    first = 0
    for part in parts:
        yield statistics_of_part(part, categories, weights[first : first + len(part)])
        first += len(part)


def merged(parts: Iterable[Statistics], categories: Mapping[Any, str], names: Any) -> Statistics:
    """Those of all parts."""
    whole = {name: ColumnStatistics(categories.get(name)) for name in names}
    for part in parts:
        for name, found in part.items():
            whole[name].add(found)
    return whole


def seen_in(known: Statistics) -> FloatArray:
    """Smallest number, largest number and share of missing values of each column, as three rows.

    The numbers are NaN for categories.
    """
    return np.array(
        [
            (column.least, column.greatest, column.missing / max(column.n_rows, 1))
            for column in known.values()
        ]
    ).T
