"""The columns of a matrix as features of a table: names, levels and units.

A category has several columns of the matrix, a number one, which may be scaled and shifted:
``column = scale · value + shift``.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..estimators.tables.encoding import Encoding
from ..rows.arrays import IndexArray


@dataclass(frozen=True)
class Column:
    """``scale · x + shift`` of a column x of the input, or of one that a ``step`` made of it.

    ``source`` is the place of the input's column, and ``name`` what it is called; None if it is not
    known or not one.  ``group`` is the category of a level, ``level`` what a 1 means, and
    ``otherwise`` what a row without a 1 in the group does.  ``with_none``: the step that made the
    group can make such rows, so that this is one of its categories.
    """

    source: int | None = None
    name: str = "a category"
    step: str = ""
    group: Hashable = None
    level: str = "yes"
    otherwise: str = "none of these"
    scale: float = 1.0
    shift: float = 0.0
    with_none: bool = False


@dataclass(frozen=True, eq=False)
class MeasuredFeature:
    """A feature, and where it is in the matrix.

    ``levels`` are those of a category's columns, None for a number; ``otherwise`` is what a row
    without any of them means.
    """

    name: str
    columns: IndexArray
    levels: tuple[str, ...] | None = None
    otherwise: str = Column.otherwise
    scale: float = 1.0
    shift: float = 0.0


def labels_of(names: Sequence[Any] | None, n_columns: int) -> list[str]:
    """The names of columns, or x0, x1, … without names."""
    return [f"x{j}" for j in range(n_columns)] if names is None else [str(name) for name in names]


def columns_of_encoding(encoding: Encoding) -> list[Column]:
    """The columns into which one of our models encodes a table."""
    return [
        Column(j, str(column.name))
        if level is None
        else Column(j, str(column.name), "encoding", j, level, "a level not seen in training")
        for j, column in enumerate(encoding.columns)
        for level in column.shown_levels
    ]


def categories_of(columns: Sequence[Column]) -> dict[Hashable, list[int]]:
    """The places of the levels of each category."""
    found: dict[Hashable, list[int]] = {}
    for j, column in enumerate(columns):
        if column.group is not None:
            found.setdefault(column.group, []).append(j)
    return found


def features_of(
    columns: Sequence[Column], labels: Sequence[str], groups: Sequence[IndexArray]
) -> tuple[MeasuredFeature, ...]:
    """The features of a matrix whose ``groups`` are categories, in the order of the columns.

    ``labels`` are what columns go by of which nothing else is known.  A category that is none of
    the groups is a number for each of its levels.
    """
    known = categories_of(columns)
    shown = [
        label if column.group is None else f"{column.name}={column.level}"
        for column, label in zip(columns, labels, strict=True)
    ]
    features, taken = [], set()
    for group in groups:
        own, first = np.sort(group), columns[min(group)]
        taken.update(own.tolist())
        if known.get(first.group) == own.tolist():
            levels = tuple(columns[j].level for j in own)
            features.append(MeasuredFeature(first.name, own, levels, first.otherwise))
        else:
            levels = tuple(shown[j] for j in own)
            name = " or ".join((*levels[:3], "…") if len(levels) > 3 else levels)
            features.append(MeasuredFeature(name, own, levels))
    for j in (j for j in range(len(columns)) if j not in taken):
        column, own = columns[j], np.array([j])
        if column.step or column.group is not None:
            features.append(MeasuredFeature(shown[j], own))
        else:
            features.append(MeasuredFeature(column.name, own, None, "", column.scale, column.shift))
    return tuple(sorted(features, key=lambda feature: int(feature.columns[0])))
