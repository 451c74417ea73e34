"""The columns of a table as a ball sees them: numbers with a deviation, categories with levels.

A table becomes a matrix of numbers before it is fitted.  A number has one column of the matrix,
a category one column of zeros and ones for each level.  Costs, tolerances and bounds are stated by
the columns of the table, and :class:`Features` says which columns of the matrix these are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from typing import Any

import numpy as np

from ..rows.arrays import BoolArray, FloatArray, IndexArray
from ..rows.checks import ParameterError


@dataclass(frozen=True, eq=False)
class Feature:
    """A column of the table, and the columns of the matrix that it has become.

    ``columns`` is empty if the column is not used.  ``levels`` are those of a category's columns,
    None for a number; ``otherwise`` names the level of rows without a 1 in any of the columns.
    ``deviation`` is the standard deviation of a number in the rows of the fit; 1 for a constant.
    ``values`` are the levels as the table has them, None for missing, and ``fill`` replaces missing
    numbers; None for the columns of a matrix.
    """

    name: Any
    columns: IndexArray
    levels: tuple[str, ...] | None = None
    deviation: float = 1.0
    otherwise: str = "none of these"
    values: tuple[Any, ...] | None = None
    fill: float | None = None

    @property
    def is_category(self) -> bool:
        return self.levels is not None


class _Numbers(Sequence[Feature]):
    """The features of a matrix of numbers, which may have a million columns."""

    def __init__(self, names: Sequence[Any], deviations: FloatArray) -> None:
        self.names, self.deviations = names, deviations

    def __len__(self) -> int:
        return self.deviations.size

    def __getitem__(self, j: Any) -> Any:
        j = range(len(self))[j]
        return Feature(self.names[j], np.array([j]), deviation=float(self.deviations[j]))


@dataclass(frozen=True, eq=False)
class Features:
    """The columns of a table, and how many rows of which classes the fit had.

    ``n_rows`` is the sum of the weights, the number of rows without weights.  ``class_shares`` are
    the shares of the classes, None where no labels are known.  ``seen`` has the smallest number,
    the largest number and the share of missing values of each column of a frame, as three rows.
    """

    each: Sequence[Feature]
    n_columns: int
    n_rows: float
    class_shares: Mapping[Any, float] | None = None
    seen: FloatArray | None = None

    @property
    def are_columns(self) -> bool:
        """Whether each feature is the column of the matrix at its place, in its own units."""
        return isinstance(self.each, _Numbers)

    @property
    def are_named(self) -> bool:
        """Whether the columns have names, which are not their positions."""
        return not isinstance(self.names, range)

    @property
    def names(self) -> Sequence[Any]:
        if isinstance(self.each, _Numbers):
            return self.each.names
        return [feature.name for feature in self.each]

    def same_as(self, other: Features | None) -> bool:
        """Whether these are the features of the same fit, or of a copy of it."""
        if other is None or self.names != other.names or self.n_rows != other.n_rows:
            return False
        if not np.array_equal(self.deviations, other.deviations):
            return False
        return (self.are_columns and other.are_columns) or all(
            np.array_equal(mine.columns, own.columns)
            for mine, own in zip(self.each, other.each, strict=True)
        )

    @cached_property
    def categories(self) -> BoolArray:
        """Which features are categories."""
        if self.are_columns:
            return np.zeros(len(self.each), dtype=bool)
        return np.array([feature.is_category for feature in self.each])

    @cached_property
    def deviations(self) -> FloatArray:
        """The standard deviation of each feature, 1 for categories."""
        if isinstance(self.each, _Numbers):
            return self.each.deviations
        return np.array([feature.deviation for feature in self.each])

    def named(self, column: Any, parameter: str) -> Feature:
        """The feature of a name, or at a position; ``parameter`` is what the user typed it in."""
        return self.each[position_of(column, self.names, parameter)]


def numbers(
    names: Iterable[Any],
    deviations: FloatArray,
    n_rows: float,
    class_shares: Mapping[Any, float] | None = None,
    seen: FloatArray | None = None,
) -> Features:
    """The features of a matrix in which each column is a number."""
    names = names if isinstance(names, range) else list(names)
    return Features(_Numbers(names, deviations), deviations.size, n_rows, class_shares, seen)


def position_of(column: Any, names: Sequence[Any], parameter: str, table: str = "X") -> int:
    """The position of a column given by name or position; ``ValueError`` if there is none."""
    if not isinstance(column, bool | list | dict) and column in names:
        return int(names.index(column))
    is_position = isinstance(column, int | np.integer) and not isinstance(column, bool)
    if is_position and -len(names) <= column < len(names):
        return int(column) % len(names)
    shown = ", ".join(f"{name!r:.30}" for name in names[:8]) + (", …" if len(names) > 8 else "")
    known = {str(name).casefold(): name for name in names[:1000]}
    near = get_close_matches(str(column).casefold(), known, n=1)
    hint = f": did you mean {known[near[0]]!r:.60}?" if near else ""
    if isinstance(column, str) and isinstance(names, range):
        hint = ": in a pipeline, set_output(transform='pandas') keeps the names of columns"
    problem = f"names the column {column!r:.60}, but {table} has {shown}{hint}"
    raise ParameterError(parameter, problem)
