"""Tables that come in parts: Parquet larger than memory, and frames of Dask.

One pass learns the levels, means and deviations of the columns, from which the encoding of a table
in memory follows too.  A second pass encodes the rows.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from ...problem.features import Feature
from ...rows.arrays import FloatArray, Matrix
from ...rows.parquet import parts_of
from .encoding import (
    ColumnStatistics,
    encoding_of,
    find_categorical,
    levels_of,
    matrix_of_table,
)
from .frames import TableColumn, columns_of
from .remarks import tells_rows_apart

#: Texts from which a column is asked, while it is read, whether it identifies rows.
_MANY_TEXTS = 100_000


def categories_of(first: Any, levels: set[Any], wanted: Any, groups: Any) -> dict[Any, str]:
    """Which columns are categories, each "by type" or "stated".

    A part of the rows says which; ``levels`` hold them by their declared type, and may be empty
    there.
    """
    columns = columns_of(first)
    found = {columns[j].name for j in find_categorical(columns, wanted, groups)}
    if not isinstance(wanted, str):
        return dict.fromkeys(found, "stated")
    known = {column for group in groups or () for column in group}
    return dict.fromkeys(found | (levels - known), "by type")


class ColumnSums:
    """What is known of a column of some rows: the levels of a category, moments of a number."""

    def __init__(self, category: str | None) -> None:
        self.category, self.counts, self.apart, self.text = category, Counter[Any](), False, False
        self.n_rows = self.n_finite = self.missing = 0
        self.total = self.weight = self.mean = self.squares = 0.0
        self.least, self.greatest = np.inf, -np.inf

    @classmethod
    def of(cls, column: TableColumn, category: str | None, weights: FloatArray) -> ColumnSums:
        """The sums of a part of the rows."""
        own = cls(category)
        own.n_rows = weights.size
        if category is not None:
            own.missing, own.counts = column.counts[None], column.counts
            own.text = category == "by type" and column.kind == "text"
            return own
        values, finite = column.numbers, np.isfinite(column.numbers)
        there, w = values[finite], weights[finite]
        own.missing, own.n_finite = int(np.isnan(values).sum()), there.size
        own.total, own.weight = float(there.sum()), float(w.sum())
        if own.weight > 0.0:
            own.least, own.greatest = float(there.min()), float(there.max())
            own.mean = float(np.average(there, weights=w))
            own.squares = float(w @ np.square(there - own.mean))
        return own

    def add(self, other: ColumnSums) -> None:
        """Other rows; moments are merged as Chan, Golub and LeVeque (1983) do it."""
        both, change = self.weight + other.weight, other.mean - self.mean
        if other.weight > 0.0:
            self.squares += other.squares + change**2 * self.weight * other.weight / both
            self.mean, self.weight = self.mean + change * other.weight / both, both
        for name in ("n_rows", "n_finite", "missing", "total"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.least, self.greatest = min(self.least, other.least), max(self.greatest, other.greatest)
        self.text = self.text or other.text
        if not self.apart:
            self.counts.update(other.counts)
        if self.text and len(self.counts) > _MANY_TEXTS and tells_rows_apart(self.counts):
            self.apart, self.counts = True, Counter()

    def statistics(self, name: Any, fill: str) -> ColumnStatistics:
        """What the encoding follows from."""
        if self.category is not None:
            apart = self.apart or (self.text and tells_rows_apart(self.counts))
            return ColumnStatistics(name, () if apart else levels_of(self.counts))
        variance = self.squares / self.weight if self.weight else 0.0
        deviation = 1.0 if variance <= (1e-14 * self.mean) ** 2 else float(np.sqrt(variance))
        stand_in = self.total / self.n_finite if fill == "mean" and self.n_finite else None
        is_used = fill == "error" or self.n_finite > 0
        return ColumnStatistics(name, None, stand_in, deviation, is_used)

    @property
    def seen(self) -> tuple[float, float, float]:
        """Smallest and largest number, NaN for categories, and the share of missing values."""
        ends = (self.least, self.greatest) if self.n_finite else (np.nan, np.nan)
        return (*ends, self.missing / max(self.n_rows, 1))


def sums_of(
    part: Any, categories: dict[Any, str], weights: FloatArray | None = None
) -> dict[Any, ColumnSums]:
    """The sums of the columns of a part."""
    own = np.ones(len(part)) if weights is None else weights
    if not len(part):
        return {}
    return {c.name: ColumnSums.of(c, categories.get(c.name), own) for c in columns_of(part)}


def sums_in(
    X: Any, categories: dict[Any, str], names: Sequence[str], weights: FloatArray
) -> Iterator[dict[Any, ColumnSums]]:
    """The sums of the parts of a dataset."""
    first = 0
    for part in parts_of(X, names):
        yield sums_of(part, categories, weights[first : first + len(part)])
        first += len(part)


def learned(
    parts: Iterable[dict[Any, ColumnSums]], categories: dict[Any, str], names: Any, fill: str
) -> tuple[tuple[Feature, ...], FloatArray]:
    """The encoding, and what was seen of the columns, by the sums of all parts."""
    if fill == "median":
        raise ValueError("missing='median' needs X in memory: use missing='mean', or fill it in")
    sums = {name: ColumnSums(categories.get(name)) for name in names}
    for part in parts:
        for name, found in part.items():
            sums[name].add(found)
    features = encoding_of(sums[name].statistics(name, fill) for name in names)
    for feature in features:
        if not feature.columns.size:
            warnings.warn(
                f"column {feature.name!r:.60} is ignored: it has no values, or looks like a row "
                "identifier; name it in categorical_features to keep it",
                UserWarning,
                stacklevel=7,
            )
    if not any(feature.columns.size for feature in features):
        raise ValueError("X has no usable column: all are without values, or identify rows")
    return features, np.array([sums[name].seen for name in names]).T


def encoded_part(part: Any, features: Sequence[Feature], sparse: bool) -> Matrix:
    """The matrix of some rows, dense or sparse as all are."""
    matrix = matrix_of_table(features, columns_of(part))
    if sparse:
        return sp.csr_array(matrix)
    return matrix.toarray() if sp.issparse(matrix) else matrix
