"""A raw table as a matrix of numbers, and the encoding as a value that can be kept.

Numbers stay as they are.  A category becomes one column of zeros and ones for *each* of its levels.
No level is dropped, because the adversary may change any level into any other at one cost.  Rules
for missing and new values:

- A missing category is a level of its own, if it occurs in the training data.
- A missing number is an error, unless ``missing`` names a replacement; the replacement also applies
  to columns that were complete in the training data.
- Text that identifies rows, and numbers that are all missing, are ignored, with a remark.
- An unknown level has zeros in all columns of its category.  Fits with an intercept keep the mean
  contribution of each category over the training samples at zero, so an unknown level counts as the
  average training sample.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
import scipy.sparse as sp

from ...problem.features import Feature, Features
from ...rows.arrays import BoolArray, FloatArray, IndexArray, Matrix
from ...rows.checks import TOO_LARGE, no_number
from .frames import TableColumn, listed
from .text_columns import remark_on_text, tells_rows_apart

#: Replacements for a missing number.
Fill: TypeAlias = Literal["error", "mean", "median"]
FILLS: tuple[Fill, ...] = get_args(Fill)

#: Matrices of more entries than this are sparse if at most a quarter of them is not zero.
_DENSE_ENTRIES = 2**16
_DENSE_SHARE = 0.25


@dataclass(frozen=True)
class EncodedColumn:
    """A column of the table.

    ``levels`` is None for numbers; the level None means "missing"; an ignored column has no levels.
    ``fill`` replaces a missing number, or is None.  ``kind`` is the type of the levels in the
    table: "text", "truth" or "number".
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


class EncodedRows(NamedTuple):
    """Rows of a table as a matrix, sparse where that is worth it.

    ``unknown`` says where the table has no level that is known, ``absent`` where it has no value.
    """

    matrix: Matrix
    unknown: BoolArray
    absent: BoolArray


@dataclass(frozen=True)
class Encoding:
    """The columns of a table, in order, and what becomes of each.

    ``remarks`` are warnings about the columns, to be given once.
    """

    columns: tuple[EncodedColumn, ...]
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
    def names(self) -> list[str]:
        """Names of the columns of the matrix: ``age``, ``job=clerk``, ``job is missing``."""
        return [name for column in self.columns for name in column.names]

    @property
    def groups(self) -> list[IndexArray]:
        """The columns of the matrix that belong to one category, for each category."""
        return [
            place for column, place in zip(self.columns, self.places, strict=True) if column.levels
        ]

    @cached_property
    def number_places(self) -> IndexArray:
        """The column of the matrix that each column of numbers is, -1 for a category."""
        pairs = zip(self.columns, self.places, strict=True)
        return np.array([-1 if c.levels is not None else place[0] for c, place in pairs])

    def by_feature(self, values: FloatArray) -> FloatArray:
        """One value per column of the table as one per column of the matrix."""
        return np.repeat(
            np.asarray(values, dtype=np.float64), [column.width for column in self.columns]
        )

    def features(
        self, deviations: FloatArray, n_rows: float, class_shares: Mapping[Any, float] | None
    ) -> Features:
        """The columns of the table as a ball sees them, with the deviations of the matrix."""
        each = tuple(
            Feature(column.name, place, deviation=float(np.append(deviations[place], 1.0)[0]))
            if not column.levels
            else Feature(
                column.name,
                place,
                tuple(str(level) for level in column.shown_levels),
                otherwise="a level not seen in training",
            )
            for column, place in zip(self.columns, self.places, strict=True)
        )
        return Features(each, len(self.names), n_rows, class_shares)

    # --- from a table to a matrix -----------------------------------------------------------

    def matrix(self, given: Sequence[TableColumn]) -> EncodedRows:
        """The rows of a table; ``ValueError`` says what cannot be encoded."""
        n_rows, n_columns, width = len(given[0].values), len(given), len(self.names)
        places = np.full((n_rows, n_columns), -1, dtype=np.int32)
        values, absent = np.ones(places.shape), np.zeros(places.shape, dtype=bool)
        columns = zip(self.columns, self.places, given, strict=True)
        for j, (column, place, each) in enumerate(columns):
            if column.levels is None:
                places[:, j], numbers = place[0], each.numbers()
                absent[:, j] = np.isnan(numbers)
                if column.fill is not None:
                    numbers = np.where(absent[:, j], column.fill, numbers)
                values[:, j] = numbers
            elif column.levels:
                codes, absent[:, j] = each.codes(column.levels), each.absent
                places[:, j] = np.where(codes < 0, -1, codes + place[0])
        _check_numbers(values, [column.name for column in self.columns])
        there = places >= 0
        if n_rows * width > _DENSE_ENTRIES and n_columns <= _DENSE_SHARE * width:
            ends = np.append(0, np.cumsum(np.count_nonzero(there, axis=1)))
            entries = values[there], places[there], ends
            return EncodedRows(sp.csr_array(entries, shape=(n_rows, width)), ~there, absent)
        matrix = np.zeros((n_rows, width))
        matrix[np.nonzero(there)[0], places[there]] = values[there]
        return EncodedRows(matrix, ~there, absent)


def numbers_only(names: Iterable[Any]) -> Encoding:
    """The encoding of a table that is its own matrix."""
    return Encoding(tuple(EncodedColumn(name) for name in names))


def fit_encoding(
    given: Sequence[TableColumn],
    categorical: Iterable[int],
    *,
    fill: str,
    weights: FloatArray | None,
    stated: bool,
) -> Encoding:
    """The encoding of a table whose columns at these positions are categories.

    Levels are those that occur.  Means and medians are weighted.  Unless the categories were
    ``stated``, text that identifies rows is ignored.
    """
    chosen, columns, remarks = set(categorical), [], []
    for j, column in enumerate(given):
        if j in chosen:
            unasked = not stated and column.kind == "text"
            remark = remark_on_text(column.name, column.counts) if unasked else None
            remarks += [] if remark is None else [remark]
            levels = _levels_kept(column, leave_out=unasked)
            columns.append(EncodedColumn(column.name, levels, kind=column.kind))
            continue
        values = column.numbers()
        stand_in = None if fill == "error" else _stand_in(values, weights, fill)
        if fill != "error" and stand_in is None:
            remarks.append(
                f"column {column.name!r:.60} is ignored because all its values are missing"
            )
            columns.append(EncodedColumn(column.name, (), kind="number"))
        else:
            columns.append(EncodedColumn(column.name, None, stand_in))
    if all(column.left_out for column in columns):
        raise ValueError(f"X has no usable column: {'; '.join(remarks):.300}")
    return Encoding(tuple(columns), remarks=tuple(remarks))


def _levels_kept(column: TableColumn, *, leave_out: bool) -> tuple[str | None, ...]:
    """The levels in order, the missing one last; none if they tell rows apart and may go."""
    if leave_out and tells_rows_apart(column.counts):
        return ()
    there = [level for level in column.counts if level is not None]
    absent = [None] if None in column.counts else []
    return (*sorted(there, key=(float if column.kind == "number" else None)), *absent)


def _check_numbers(values: FloatArray, names: Sequence[Any]) -> None:
    """``ValueError`` that names columns with missing numbers, or a value that is too large."""
    with np.errstate(invalid="ignore"):
        largest = np.abs(values).max(axis=0, initial=0.0)
    if (largest < TOO_LARGE).all():
        return
    lacking = np.flatnonzero(np.isnan(largest))
    if lacking.size:
        shown = listed([f"{names[j]!r:.40}" for j in lacking.tolist()], 10)
        raise ValueError(
            f"numbers are missing (NaN) in {'column' if lacking.size == 1 else 'columns'} {shown}: "
            "fit with missing='median' (--missing median on the command line), fill them in, or "
            "leave out these rows"
        )
    j = int(np.argmax(largest))
    row = int(np.argmax(np.abs(values[:, j]) >= TOO_LARGE))
    raise ValueError(no_number(values[row, j], row, names[j]))


def _stand_in(values: FloatArray, weights: FloatArray | None, fill: str) -> float | None:
    """The replacement for missing numbers; None if no number has a positive weight."""
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


def find_categorical(given: Sequence[TableColumn], wanted: Any, groups: Any = None) -> list[int]:
    """Positions of the columns that are categories.

    ``wanted`` is "from_dtype" (text, categories and truth values are), None, or names or positions
    of columns.  Columns in ``groups`` are not asked for their type.
    """
    names = [column.name for column in given]
    if wanted is None:
        return []
    if isinstance(wanted, str):
        if wanted != "from_dtype":
            raise ValueError(
                "categorical_features must be 'from_dtype', None, or a list of names or positions, "
                f"got {wanted!r:.60}"
            )
        known = {
            position_of(column, names, "categories")
            for group in (() if groups is None else groups)
            for column in (() if isinstance(group, str) else group)
        }
        return [j for j, each in enumerate(given) if j not in known and each.holds_levels]
    return positions_of(wanted, names, "categorical_features")


def positions_of(columns: Iterable[Any], names: Sequence[Any], parameter: str) -> list[int]:
    """The positions of columns given by name or position, in order."""
    if isinstance(columns, str):
        raise ValueError(f"{parameter} must be a list of names or positions, got {columns!r:.60}")
    return sorted({position_of(each, names, parameter) for each in columns})


def position_of(column: Any, names: Sequence[Any], parameter: str) -> int:
    """The position of a column given by name or position; ``ValueError`` if there is none."""
    if isinstance(column, str):
        if column in names:
            return list(names).index(column)
    elif not isinstance(column, bool | np.bool_) and column in range(-len(names), len(names)):
        return int(column) % len(names)
    shown = listed([f"{name!r:.30}" for name in names], 8)
    near = get_close_matches(str(column), [str(name) for name in names], n=1)
    hint = f": did you mean {near[0]!r:.60}?" if near else ""
    raise ValueError(f"{parameter} names the column {column!r:.60}, but X has {shown}{hint}")
