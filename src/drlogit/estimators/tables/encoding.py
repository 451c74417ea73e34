"""A raw table as a matrix of numbers, and the encoding as features that can be kept.

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

All of it follows from statistics of the columns (``statistics.py``, :func:`side_by_side`).
:func:`column_transformer` is the same as scikit-learn has it; :func:`matrix_of_table` computes the
same matrix in a tenth of the time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import scipy.sparse as sp

from ...problem.features import Feature, position_of
from ...rows.arrays import FloatArray, Matrix
from ...rows.checks import settled
from .frames import TableColumn, columns_of, spelt

#: Replacements for a missing number.
Fill: TypeAlias = Literal["error", "mean", "median"]
FILLS: tuple[Fill, ...] = get_args(Fill)

#: Matrices of more entries than this are sparse if at most a quarter of them is not zero.
_DENSE_ENTRIES = 2**16
_DENSE_SHARE = 0.25


def as_category(name: Any, levels: Sequence[Any]) -> Feature:
    """A category with a column for each of its levels, the missing one (None) last."""
    shown = tuple("missing" if level is None else spelt(level) for level in levels)
    columns, other = np.arange(len(levels)), "a level not seen in training"
    return Feature(name, columns, shown, otherwise=other, values=tuple(levels))


def as_number(name: Any, is_used: bool, fill: float | None, deviation: float) -> Feature:
    """A number, and what is put in place of missing values, if anything."""
    return Feature(name, np.arange(int(is_used)), deviation=deviation, fill=fill)


def side_by_side(features: Iterable[Feature]) -> tuple[Feature, ...]:
    """The encoding of a table: each feature has the next columns of the matrix."""
    placed, width = list[Feature](), 0
    for feature in features:
        placed.append(replace(feature, columns=width + feature.columns))
        width += feature.columns.size
    return tuple(placed)


def names_of_columns(features: Iterable[Feature]) -> list[str]:
    """Names of the columns of the matrix: ``age``, ``job=clerk``, ``job is missing``."""
    names = list[str]()
    for feature in features:
        name = str(feature.name)
        if feature.levels is None or feature.values is None:
            names += [name] * feature.columns.size
            continue
        for level, value in zip(feature.levels, feature.values, strict=True):
            names.append(f"{name} is missing" if value is None else f"{name}={level}")
    return names


def is_sparse(n_columns: int, width: int) -> bool:
    """Whether so many entries in each row are few enough for a sparse matrix."""
    return n_columns <= _DENSE_SHARE * width


def matrix_of_table(
    features: Sequence[Feature], given: Sequence[TableColumn], *, sparse: bool | None = None
) -> Matrix:
    """The rows of a table as a matrix, dense or ``sparse`` as stated, or as is worth it."""
    n_rows, n_columns = len(given[0].values), len(given)
    width = sum(feature.columns.size for feature in features)
    if sparse is None:
        sparse = n_rows * width > _DENSE_ENTRIES and is_sparse(n_columns, width)
    if not sparse and all(feature.values is None for feature in features):
        pairs = zip(features, given, strict=True)
        numbers = [_filled(column, feature) for feature, column in pairs if feature.columns.size]
        plain = np.column_stack([np.empty((n_rows, 0)), *numbers])
        return settled(plain, names_of_columns(features))
    places = np.full((n_rows, n_columns), -1, dtype=np.int32)
    values = np.ones(places.shape)
    for j, (feature, column) in enumerate(zip(features, given, strict=True)):
        if not feature.columns.size:
            continue
        if feature.values is None:
            places[:, j], values[:, j] = feature.columns[0], _filled(column, feature)
            continue
        codes = column.codes(feature.values)
        places[:, j] = np.where(codes < 0, -1, codes + feature.columns[0])
    there = places >= 0
    matrix: Matrix
    if sparse:
        ends = np.append(0, np.cumsum(np.count_nonzero(there, axis=1)))
        entries = values[there], places[there], ends
        matrix = sp.csr_array(entries, shape=(n_rows, width))
    else:
        matrix = np.zeros((n_rows, width))
        matrix[np.nonzero(there)[0], places[there]] = values[there]
    return settled(matrix, names_of_columns(features))


def _filled(column: TableColumn, feature: Feature) -> FloatArray:
    """The numbers of a column, missing ones replaced if the feature says by what."""
    if feature.fill is None:
        return column.numbers
    return np.where(np.isnan(column.numbers), feature.fill, column.numbers)


def matrix_of_part(part: Any, features: Sequence[Feature], sparse: bool) -> Matrix:
    """The rows of a part of a table."""
    return matrix_of_table(features, columns_of(part), sparse=sparse)


def categories_of(
    given: Sequence[TableColumn], wanted: Any, groups: Any = None, typed: Collection[Any] = ()
) -> dict[Any, str]:
    """Which columns are categories, each "by type" or "stated".

    ``wanted`` is "from_dtype" (text, categories and truth values are), None, or names or positions
    of columns.  Columns in ``groups`` are not asked for their type.  Those that are ``typed`` hold
    levels by a type that these rows may not show.
    """
    names = [column.name for column in given]
    if wanted is None:
        return {}
    if not isinstance(wanted, str):
        stated = {position_of(each, names, "categorical_features") for each in wanted}
        return {names[j]: "stated" for j in sorted(stated)}
    if wanted != "from_dtype":
        raise ValueError(
            "categorical_features must be 'from_dtype', None, or a list of names or positions, "
            f"got {wanted!r:.60}"
        )
    known = {
        names[position_of(column, names, "categories")]
        for group in groups or ()
        for column in group
        if column is not None
    }
    asked = [column for column in given if column.name not in known]
    return {each.name: "by type" for each in asked if each.holds_levels or each.name in typed}


# --- as plain values ----------------------------------------------------------------------------


def statement_of(features: Iterable[Feature]) -> list[dict[str, Any]]:
    """What becomes of the columns of a table, as a file has it."""
    return [{"levels": f.values, "fill": f.fill, "is_used": f.columns.size > 0} for f in features]


def features_stated(
    names: Sequence[Any], stated: Iterable[dict[str, Any]], deviations: Sequence[float]
) -> tuple[Feature, ...]:
    """The inverse of :func:`statement_of`, with names and deviations."""
    return side_by_side(
        as_number(name, each["is_used"], each["fill"], deviation)
        if each["levels"] is None
        else as_category(name, each["levels"])
        for name, each, deviation in zip(names, stated, deviations, strict=True)
    )


# --- scikit-learn -------------------------------------------------------------------------------


def column_transformer(features: Sequence[Feature], names: Any) -> Any:
    """The same encoding as a fitted ``ColumnTransformer``; ``names`` are those of a frame, or None.

    Every column has a step, which is fitted to two values.
    """
    from pandas import DataFrame
    from sklearn.compose import ColumnTransformer

    made = [_step(feature) for feature in features]
    frame = DataFrame({j: values for j, (_, values) in enumerate(made)})
    steps = [(f"column{j}", step, [j]) for j, (step, _) in enumerate(made)]
    columns = ColumnTransformer(steps, sparse_threshold=0.0, verbose_feature_names_out=False)
    return columns.fit(frame if names is None else frame.set_axis(names, axis=1))


def _step(feature: Feature) -> tuple[Any, Any]:
    """The transformer of a column, and two values of the column."""
    from sklearn.impute import SimpleImputer
    from sklearn.preprocessing import OneHotEncoder

    if feature.columns.size and feature.values is not None:
        found = [np.nan if level is None else level for level in feature.values]
        texts = any(isinstance(level, str) for level in found)
        levels = np.array(found, dtype=object if texts else None)
        encoder = OneHotEncoder(categories=[levels], handle_unknown="ignore", sparse_output=False)
        return encoder, levels[[0, -1]]
    if feature.columns.size and feature.fill is not None:
        # The mean of these two: a constant suits no whole numbers.
        return SimpleImputer(), np.full(2, feature.fill)
    return "passthrough" if feature.columns.size else "drop", np.zeros(2)
