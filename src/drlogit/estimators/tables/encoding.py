"""A raw table as a matrix of numbers, and the way there as a value that can be kept.

Numbers stay as they are.  A category becomes a column of zeros and ones for *each* of its levels,
none left out: the adversary may change one level into any other at one price, so no level is
special.  The rules where something is missing or new:

- a missing category is a category, if it occurs in training;
- a missing number is an error, unless ``missing`` says what to put there, also in columns that
  were complete in training;
- text that tells rows apart, and numbers that are all missing, are left out, which is remarked;
- a level that training did not show has zeros in all columns of its category.  Fits with an
  intercept keep the mean contribution of each category, over the training samples, at zero: so
  such a level counts as the average sample does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from ...rows.arrays import FloatArray, IndexArray, Matrix
from ...rows.checks import TOO_LARGE, no_number
from .frames import (
    MISSING_MARKS,
    column_names,
    columns_of,
    holds_levels,
    kind_of_levels,
    level_codes,
    level_counts,
    levels_of,
    numbers_of,
)
from .text_columns import identifies, remark_on_text

#: What can stand in for a missing number.
FILLS = ("error", "mean", "median")

#: Matrices of more entries than this are sparse if at most a quarter of them is not zero.
_DENSE_ENTRIES = 2**16
_DENSE_SHARE = 0.25


@dataclass(frozen=True)
class EncodedColumn:
    """A column of the table.

    ``levels`` is None for numbers; in it, None is the level "missing"; a column that is left out
    has none.  ``fill`` stands in for a missing number; None if there is no such thing.  ``kind``
    says what the levels are in the table: "text", "truth" or "number".
    """

    name: Any
    levels: tuple[str | None, ...] | None = None
    fill: float | None = None
    kind: str = "text"

    @property
    def left_out(self) -> bool:
        return self.levels == ()

    @property
    def width(self) -> int:
        return 1 if self.levels is None else len(self.levels)

    @property
    def names(self) -> list[str]:
        if self.levels is None:
            return [str(self.name)]
        return [
            f"{self.name} is missing" if level is None else f"{self.name}={level}"
            for level in self.levels
        ]

    @property
    def shown_levels(self) -> list[str | None]:
        """The level of each of its columns in the matrix; None for a number."""
        if self.levels is None:
            return [None]
        return ["missing" if level is None else level for level in self.levels]


@dataclass(frozen=True)
class Encoding:
    """The columns of a table, in order, and what becomes of each; texts that mean "missing".

    ``remarks`` are what is to be said of the columns once.
    """

    columns: tuple[EncodedColumn, ...]
    missing_marks: tuple[str, ...] = MISSING_MARKS
    remarks: tuple[str, ...] = field(default=(), compare=False)

    @cached_property
    def places(self) -> list[IndexArray]:
        """The columns of the matrix that each column of the table becomes."""
        ends = np.cumsum([column.width for column in self.columns])
        return [
            np.arange(end - column.width, end)
            for column, end in zip(self.columns, ends, strict=True)
        ]

    @property
    def n_encoded(self) -> int:
        return sum(column.width for column in self.columns)

    @property
    def names(self) -> list[str]:
        """Names of the columns of the matrix: ``age``, ``job=clerk``, ``job is missing``."""
        return [name for column in self.columns for name in column.names]

    @property
    def groups(self) -> list[IndexArray]:
        """The columns of the matrix that belong to one category, for each category."""
        return [
            place for column, place in zip(self.columns, self.places, strict=True) if column.levels
        ]

    def spread(self, values: Sequence[float]) -> FloatArray:
        """One value per column of the table as one per column of the matrix."""
        return np.repeat(
            np.asarray(values, dtype=np.float64), [column.width for column in self.columns]
        )

    # --- from a table to a matrix -----------------------------------------------------------

    def transform(self, X: Any) -> Matrix:
        """The matrix of a table with these columns; ``ValueError`` says what cannot be encoded."""
        given = list(columns_of(X))
        numbers = {
            j: numbers_of(each, column.name, self.missing_marks)
            for j, (column, each) in enumerate(zip(self.columns, given, strict=True))
            if column.levels is None
        }
        _check_numbers(
            {
                self.columns[j].name: (v, self.columns[j].fill is not None)
                for j, v in numbers.items()
            }
        )
        n_rows = X.shape[0]
        size = n_rows * self.n_encoded
        if size <= _DENSE_ENTRIES or len(self.columns) > _DENSE_SHARE * self.n_encoded:
            matrix = np.zeros((n_rows, self.n_encoded))
            for rows, places, values in self._entries(given, numbers, n_rows):
                matrix[rows, places] = values
            return matrix
        parts = list(self._entries(given, numbers, n_rows))
        rows, places, values = (np.concatenate(each) for each in zip(*parts, strict=True))
        return sp.csr_array((values, (rows, places)), shape=(n_rows, self.n_encoded))

    def _entries(
        self, given: Sequence[Any], numbers: Mapping[int, FloatArray], n_rows: int
    ) -> Iterable[tuple[IndexArray, IndexArray, FloatArray]]:
        """Rows, columns and values of what is not zero, for each column of the table."""
        every = np.arange(n_rows)
        for j, (column, each) in enumerate(zip(self.columns, given, strict=True)):
            place = self.places[j]
            if column.levels is None:
                values = numbers[j]
                if column.fill is not None:
                    values = np.where(np.isnan(values), column.fill, values)
                yield every, np.full(every.size, place[0]), values
                continue
            if column.left_out:
                continue
            codes = level_codes(each, column.levels, self.missing_marks)
            rows = np.flatnonzero(codes >= 0)
            yield rows, place[codes[rows]], np.ones(rows.size)

    def mostly_unseen(self, matrix: Matrix, X: Any) -> str | None:
        """What is to be said where training did not show the levels of most rows, if anything.

        ``matrix`` is what :meth:`transform` made of X.
        """
        n_rows = matrix.shape[0]
        seen = np.asarray(matrix.sum(axis=0)).ravel()
        named = []
        for column, place, each in zip(self.columns, self.places, columns_of(X), strict=True):
            if column.levels and 2 * seen[place].sum() < n_rows:
                codes = level_codes(each, column.levels, self.missing_marks)
                new = levels_of(each)[codes < 0]
                named.append(
                    f"{column.name!r:.40} ({new.size} of {n_rows} rows, such as {new[0]!r:.30}, "
                    f"where training had {column.levels[0]!r:.30})"
                )
        if not named:
            return None
        more = f" and {len(named) - 3} more" if len(named) > 3 else ""
        return (
            f"most of {'column' if len(named) == 1 else 'columns'} {', '.join(named[:3])}{more} is "
            "of levels that training did not show, which count as the average sample does: is it "
            "spelt or coded otherwise?"
        )

    # --- as plain data ----------------------------------------------------------------------

    def to_dict(self) -> list[dict[str, Any]]:
        """As JSON can hold it: names, levels (null: missing) and fills."""
        return [
            {
                "name": column.name,
                "levels": None if column.levels is None else list(column.levels),
                "fill": column.fill,
                "kind": column.kind,
            }
            for column in self.columns
        ]


def fit_encoding(
    X: Any,
    categorical: Iterable[int],
    *,
    fill: str = "error",
    weights: FloatArray | None = None,
    stated: bool = True,
) -> Encoding:
    """The encoding of a table whose columns at these positions are categories.

    Levels are those that occur.  Means and medians count weights.  Where nobody has ``stated``
    that columns are categories, text that tells rows apart is left out.
    """
    if fill not in FILLS:
        raise ValueError(f"missing must be one of {', '.join(map(repr, FILLS))}, got {fill!r}")
    chosen, columns, remarks = set(categorical), [], []
    counted = None if weights is None else np.asarray(weights, dtype=np.float64)
    numbers = {}
    for j, (name, column) in enumerate(zip(column_names(X), columns_of(X), strict=True)):
        if j in chosen:
            levels, kind = level_counts(column), kind_of_levels(column)
            remark = None if stated or kind != "text" else remark_on_text(name, levels)
            remarks += [remark] if remark else []
            columns.append(EncodedColumn(name, _levels_kept(levels, kind, stated), kind=kind))
            continue
        numbers[name] = numbers_of(column, name), fill != "error"
        stand_in = None
        if fill != "error":
            stand_in = _stand_in(numbers[name][0], counted, fill)
            if stand_in is None:
                remarks.append(f"column {name!r:.60} is left out, as it has no value in any row")
                columns.append(EncodedColumn(name, (), kind="number"))
                continue
        columns.append(EncodedColumn(name, None, stand_in))
    _check_numbers(numbers)
    if all(column.left_out for column in columns):
        raise ValueError(f"X has no column left to be a feature: {'; '.join(remarks):.300}")
    return Encoding(tuple(columns), remarks=tuple(remarks))


def _levels_kept(levels: Counter[Any], kind: str, stated: bool) -> tuple[str | None, ...]:
    """The levels in order, the missing one last; none if the column is to be left out."""
    there = [level for level in levels if level is not None]
    if kind == "text" and not stated and identifies(len(there), levels.total()):
        return ()
    absent = [None] if None in levels else []
    return (*sorted(there, key=(float if kind == "number" else None)), *absent)


def _check_numbers(columns: Mapping[Any, tuple[FloatArray, bool]]) -> None:
    """``ValueError`` that names what is no number: columns with gaps, or one value too large.

    With the values of a column goes whether its gaps are filled.
    """
    lacking = [name for name, (values, filled) in columns.items()
               if not filled and np.isnan(values).any()]  # fmt: skip
    if lacking:
        shown = ", ".join(f"{name!r:.40}" for name in lacking[:10])
        more = f" and {len(lacking) - 10} more" if len(lacking) > 10 else ""
        raise ValueError(
            f"numbers are missing (NaN) in {'column' if len(lacking) == 1 else 'columns'} {shown}"
            f"{more}: fill them in, leave out such rows, or fit with missing='median' or 'mean' "
            "(--missing median on the command line)"
        )
    for name, (values, _) in columns.items():
        large = np.flatnonzero(np.abs(values) >= TOO_LARGE)
        if large.size:
            raise ValueError(no_number(values[large[0]], int(large[0]), name))


def _stand_in(values: FloatArray, weights: FloatArray | None, fill: str) -> float | None:
    """What is put for missing numbers; None if all are, or have no weight."""
    there = np.isfinite(values)
    share = np.ones(values.size) if weights is None else weights
    values, share = values[there], share[there]
    if not share.any():
        return None
    if fill == "mean":
        return float(np.average(values, weights=share))
    order = np.argsort(values, kind="stable")
    total = np.cumsum(share[order])
    # The middle, or the mean of the two around it.
    low, high = np.searchsorted(total, [0.5 * total[-1], np.nextafter(0.5 * total[-1], np.inf)])
    return float(0.5 * (values[order[low]] + values[order[high]]))


def find_categorical(X: Any, wanted: Any, numbers: Iterable[int] = ()) -> list[int]:
    """Positions of the columns that are categories.

    Parameters
    ----------
    X : frame or array
    wanted : "from_dtype", None, or names, positions or a mask of columns
        By type, text, categories and truth values are categories; arrays have none then.
    numbers : positions
        Columns that are not asked for their type.
    """
    names = column_names(X)
    if wanted is None:
        return []
    if isinstance(wanted, str):
        if wanted != "from_dtype":
            raise ValueError(
                "categorical_features must be 'from_dtype', None, or a list of names, positions or "
                f"truth values, got {wanted!r:.60}"
            )
        if isinstance(X, np.ndarray):
            return []
        skipped = set(numbers)
        return [
            j
            for j, (name, column) in enumerate(zip(names, columns_of(X), strict=True))
            if j not in skipped and holds_levels(column, name)
        ]
    listed = list(wanted)
    if listed and all(isinstance(each, bool | np.bool_) for each in listed):
        if len(listed) != len(names):
            raise ValueError(
                f"categorical_features must have a truth value for each of {len(names)} columns, "
                f"got {len(listed)}"
            )
        return [j for j, each in enumerate(listed) if each]
    return sorted({position_of(each, names, "categorical_features") for each in listed})


def position_of(column: Any, names: Sequence[Any], parameter: str) -> int:
    """The position of a column given by name or position; ``ValueError`` if there is none."""
    if isinstance(column, str):
        if column in names:
            return list(names).index(column)
    elif isinstance(column, int | np.integer) and -len(names) <= column < len(names):
        return int(column) % len(names)
    shown = ", ".join(f"{name!r:.30}" for name in names[:8]) + (", …" if len(names) > 8 else "")
    raise ValueError(f"{parameter} names the column {column!r:.60}, but X has {shown}")
