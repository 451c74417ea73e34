"""The columns of a matrix as the features that people know: names, levels, and units.

A category has several columns of the matrix, a number one, which may be scaled and shifted:
``column = scale · value + shift``.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..estimators.tables.by_column import CostsByKind
from ..estimators.tables.encoding import Encoding, position_of
from ..rows.arrays import FloatArray, IndexArray
from .pipeline_columns import Column


@dataclass(frozen=True, eq=False)
class Feature:
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

    def level(self, column: int) -> str:
        """What a 1 in a column of the matrix means; -1 for none of the columns."""
        assert self.levels is not None
        if column < 0:
            return self.otherwise
        return self.levels[int(np.flatnonzero(self.columns == column)[0])]


def plain_number(value: float, digits: int) -> str:
    """A number with so many digits, and no power of ten where people write none."""
    rounded = float(f"{value:.{digits}g}")
    return f"{rounded:.15g}" if 1e-4 <= abs(rounded) < 1e9 else f"{rounded:g}"


def describe(
    n_columns: int,
    names: Sequence[Any] | None,
    groups: Iterable[IndexArray],
    known: Sequence[Feature],
) -> tuple[Feature, ...]:
    """The features of a matrix whose ``groups`` are categories, in the order of the columns.

    ``known`` says what there is to know of some of the columns; a category that is none of the
    groups is a number for each of its levels.
    """
    found = {tuple(feature.columns.tolist()): feature for feature in known}
    labels = [f"x{j}" for j in range(n_columns)] if names is None else [str(n) for n in names]
    for feature in known:
        for level, j in zip(feature.levels or (), feature.columns, strict=False):
            labels[j] = f"{feature.name}={level}"
    features, taken = [], set()
    for group in groups:
        columns = np.sort(group)
        taken.update(columns.tolist())
        there = found.get(tuple(columns.tolist()))
        features.append(there if there is not None else _category(columns, labels))
    for j in range(n_columns):
        if j not in taken:
            there = found.get((j,))
            plain = there is not None and there.levels is None
            features.append(there if there and plain else Feature(labels[j], np.array([j])))
    return tuple(sorted(features, key=lambda feature: int(feature.columns[0])))


def _category(columns: IndexArray, labels: Sequence[str]) -> Feature:
    """``job=clerk`` and ``job=boss`` are the levels clerk and boss of job."""
    own = [labels[j] for j in columns]
    same = itertools.takewhile(lambda letters: len(set(letters)) == 1, zip(*own, strict=False))
    prefix = "".join(letters[0] for letters in same)
    cut = re.match(r".*[=_: ]", prefix, flags=re.S)
    if len(own) == 1 or cut is None or len(cut[0]) < 2:
        return Feature(" or ".join(own), columns, tuple(own))
    return Feature(cut[0][:-1].strip(), columns, tuple(label[len(cut[0]) :] for label in own))


def costs_by_feature(
    given: CostsByKind, features: Sequence[Feature], deviations: FloatArray
) -> FloatArray:
    """Costs for the columns of a matrix, stated for numbers, for categories and by name.

    Those by name are of a unit of the feature's own, not of the matrix.
    """
    costs = np.empty(deviations.size)
    names = [feature.name for feature in features]
    named = {position_of(name, names, "feature_costs"): c for name, c in given.columns.items()}
    for f, feature in enumerate(features):
        is_category, j = feature.levels is not None, feature.columns[0]
        stated = named.get(f, given.categories if is_category else (given.numbers, "std"))
        if isinstance(stated, tuple):
            costs[feature.columns] = stated[0] if is_category else stated[0] / deviations[j]
        else:
            costs[feature.columns] = stated if is_category else stated / abs(feature.scale)
    return costs


def of_encoding(encoding: Encoding) -> list[Feature]:
    """The features of a table that one of our models encodes."""
    return [
        Feature(
            str(column.name),
            place,
            None
            if column.levels is None
            else tuple("missing" if level is None else str(level) for level in column.levels),
            "a level not seen in training",
        )
        for column, place in zip(encoding.columns, encoding.places, strict=True)
        if not column.left_out
    ]


def of_steps(columns: Sequence[Column], names: Sequence[Any] | None) -> list[Feature]:
    """What is known of columns that were followed through the steps of a pipeline.

    ``names`` are those of the pipeline's input.
    """
    groups: dict[Any, list[int]] = {}
    found = []
    for j, column in enumerate(columns):
        if column.group is not None:
            groups.setdefault(column.group, []).append(j)
        elif not column.step:
            name = _input_name(column.source, names)
            found.append(Feature(name, np.array([j]), None, "", column.scale, column.shift))
    for own in groups.values():
        first, levels = columns[own[0]], tuple(columns[j].level for j in own)
        name = _input_name(first.source, names)
        found.append(Feature(name, np.array(own), levels, first.otherwise))
    return found


def _input_name(source: int | None, names: Sequence[Any] | None) -> str:
    if source is None:
        return "a category"
    return f"x{source}" if names is None else str(names[source])
