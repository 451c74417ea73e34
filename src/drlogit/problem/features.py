"""The columns of a table as a ball sees them: numbers with a deviation, categories with levels.

A table becomes a matrix of numbers before it is fitted.  A number has one column of the matrix,
``column = scale · value + shift``; a category has one column of zeros and ones for each level.
Costs, tolerances and bounds are stated in the units of the table, and :class:`Features` says what
they are in the units of the matrix.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import numpy as np

from ..rows.arrays import FloatArray, IndexArray
from ..rows.checks import ParameterError


@dataclass(frozen=True, eq=False)
class Feature:
    """A column of the table, and the columns of the matrix that it has become.

    ``levels`` are those of a category's columns, None for a number.  ``with_none``: a row without a
    1 in any of the columns is a category, too, which is called ``otherwise``.  ``deviation`` is the
    standard deviation of a number in the rows of the fit, in its own units; 1 for a constant.
    """

    name: Any
    columns: IndexArray
    levels: tuple[str, ...] | None = None
    scale: float = 1.0
    shift: float = 0.0
    deviation: float = 1.0
    with_none: bool = False
    otherwise: str = "none of these"

    @property
    def is_category(self) -> bool:
        return self.levels is not None


@dataclass(frozen=True, eq=False)
class Features:
    """The columns of a table, and how many rows of which classes the fit had.

    ``n_rows`` is the sum of the weights, the number of rows without weights.  ``class_shares`` are
    the shares of the classes, None where no labels are known.
    """

    each: tuple[Feature, ...]
    n_columns: int
    n_rows: float
    class_shares: Mapping[Any, float] | None = None

    @property
    def names(self) -> list[Any]:
        return [feature.name for feature in self.each]

    def same_as(self, other: Features | None) -> bool:
        """Whether these are the features of the same fit, or of a copy of it."""
        if other is None or self.names != other.names or self.n_rows != other.n_rows:
            return False
        return all(
            mine.deviation == own.deviation and np.array_equal(mine.columns, own.columns)
            for mine, own in zip(self.each, other.each, strict=True)
        )

    def named(self, column: Any, parameter: str) -> Feature:
        """The feature of a name, or at a position; ``parameter`` is what the user typed it in."""
        return self.each[position_of(column, self.names, parameter)]


def numbers(
    names: Iterable[Any],
    deviations: FloatArray,
    n_rows: float,
    class_shares: Mapping[Any, float] | None = None,
) -> Features:
    """The features of a matrix in which each column is a number."""
    each = tuple(
        Feature(name, np.array([j]), deviation=float(deviations[j])) for j, name in enumerate(names)
    )
    return Features(each, len(each), n_rows, class_shares)


def position_of(column: Any, names: Sequence[Any], parameter: str) -> int:
    """The position of a column given by name or position; ``ValueError`` if there is none."""
    if column in names:
        return list(names).index(column)
    is_position = isinstance(column, int | np.integer) and not isinstance(column, bool)
    if is_position and -len(names) <= column < len(names):
        return int(column) % len(names)
    shown = ", ".join(f"{name!r:.30}" for name in names[:8]) + (", …" if len(names) > 8 else "")
    near = get_close_matches(str(column), [str(name) for name in names], n=1)
    hint = f": did you mean {near[0]!r:.60}?" if near else ""
    raise ParameterError(parameter, f"names the column {column!r:.60}, but X has {shown}{hint}")
