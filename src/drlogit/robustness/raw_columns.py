"""Which columns of a pipeline's input the columns of its last step come from.

A column of the last step is ``scale · x + shift`` of a number x of the input, or the 0 or 1 of a
level of a category.  What the fitted steps say about themselves gives scale, shift and x.  Of
columns that another step has made nothing is known but the name of that step.

Two encoders make distances that mean nothing and are refused.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..rows.arrays import IndexArray

_REFUSED = {"OrdinalEncoder", "TargetEncoder"}


@dataclass(frozen=True)
class Column:
    """A column of a matrix, in terms of the input's column ``source``.

    ``source`` is None for columns that the ``step`` has made of others.  ``group`` is the category
    of a level, ``level`` what a 1 means and ``value`` what the input holds there; ``otherwise`` and
    ``other_value`` are the same for rows without a 1 in the group, if there can be such rows
    (``with_none``).  ``deviation`` is the standard deviation that a scaler has found in ``n_rows``.
    """

    source: int | None = None
    step: str = ""
    group: Hashable = None
    level: str = ""
    value: Any = None
    otherwise: str = "none of these"
    other_value: Any = None
    with_none: bool = False
    scale: float = 1.0
    shift: float = 0.0
    deviation: float | None = None
    n_rows: float | None = None

    @property
    def is_number(self) -> bool:
        return self.source is not None and self.group is None


def follow_steps(
    steps: Sequence[tuple[str, Any]], columns: list[Column], width: int | None
) -> list[Column]:
    """The columns, ``width`` of them if it is known, that fitted steps make of their input's."""
    for place, (name, step) in enumerate(steps):
        after = steps[place + 1][1] if place + 1 < len(steps) else None
        seen = width if after is None else getattr(after, "n_features_in_", None)
        columns = _follow(name, step, columns, seen)
    return columns


def _follow(name: str, step: Any, columns: list[Column], width: int | None) -> list[Column]:
    """What the columns of a fitted step's output are; ``width`` is their number if it is known."""
    words, found = f"{name!r} ({type(step).__name__})", None
    names = kinds_of(step)
    if _REFUSED & {*names}:
        raise ValueError(
            f"step {words} makes one number of a category, and the distance between two such "
            "numbers means nothing: use OneHotEncoder, whose columns move as categories, or give "
            "the table to DRLogisticRegression as it is"
        )
    if step is None or isinstance(step, str):  # passed through
        found = columns
    elif hasattr(step, "steps"):
        found = follow_steps(step.steps, columns, width)
    known = next((_KNOWN[kind] for kind in names if kind in _KNOWN), None)
    if known is not None and getattr(step, "n_features_in_", len(columns)) == len(columns):
        found = known(step, words, columns)
    if found is None or width not in (None, len(found)):
        return [Column(step=words)] * (width or 0)
    return found


def kinds_of(step: Any) -> list[str]:
    """The names of a step's class and base classes in scikit-learn.

    Names avoid imports of steps that the pipeline does not use.
    """
    return [kind.__name__ for kind in type(step).__mro__ if kind.__module__.startswith("sklearn.")]


def level_column(column: Column, group: Hashable, level: str, value: Any, **other: Any) -> Column:
    """The column of a level of a category; ``value`` is in the units of the step's input."""
    if column.scale != 1.0 or column.shift != 0.0:
        value = (value - column.shift) / column.scale
    return Column(column.source, column.step, group, level, value, **other)


def _one_hot_encoder(encoder: Any, words: str, columns: list[Column]) -> list[Column]:
    made: list[Column] = []
    merged = getattr(encoder, "infrequent_categories_", None) or [None] * len(columns)
    for j, (known, rare) in enumerate(zip(encoder.categories_, merged, strict=True)):
        levels = [(str(value), value) for value in known if rare is None or value not in rare]
        if rare is not None:
            levels.append(("infrequent", rare[0]))
        other: dict[str, Any] = {}
        drop = None if encoder.drop_idx_ is None else encoder.drop_idx_[j]
        if drop is not None:
            dropped = known[drop] if rare is None or known[drop] not in rare else rare[0]
            level, value = levels.pop([value for _, value in levels].index(dropped))
            other = {"otherwise": level, "other_value": value, "with_none": True}
        elif encoder.handle_unknown == "ignore" or (
            encoder.handle_unknown != "error" and rare is None
        ):
            other = {"other_value": _another(known), "with_none": True}
        group = (id(encoder), j)
        made += [level_column(columns[j], group, level, value, **other) for level, value in levels]
    return made


def _another(known: Any) -> Any:
    """A value that an encoder does not know."""
    return "(another)" if np.asarray(known).dtype.kind in "OUS" else np.max(known) + 1


def _scaler(scaler: Any, words: str, columns: list[Column]) -> list[Column] | None:
    """Standard, robust, by the largest value: ``(x - centre) / scale``; and to a range."""
    if getattr(scaler, "clip", False):
        return None
    if hasattr(scaler, "data_range_"):
        return _scaled(columns, scaler.scale_, scaler.min_)
    scale = 1.0 if scaler.scale_ is None else 1.0 / scaler.scale_
    centre = getattr(scaler, "center_", getattr(scaler, "mean_", None))
    if centre is None or not getattr(scaler, "with_mean", True):
        centre = 0.0
    found = _scaled(columns, scale, -centre * scale)
    variances = getattr(scaler, "var_", None)
    if variances is None:
        return found
    # A constant column has the deviation 1.
    deviations = np.where(variances > 0.0, np.sqrt(variances), 1.0)
    seen = float(np.max(scaler.n_samples_seen_))
    return [
        replace(after, deviation=float(deviation / abs(before.scale)), n_rows=seen)
        for before, after, deviation in zip(columns, found, deviations, strict=True)
    ]


def _scaled(columns: list[Column], scale: Any, shift: Any) -> list[Column]:
    factors, shifts = (np.broadcast_to(each, len(columns)).tolist() for each in (scale, shift))
    return [
        replace(column, scale=a * column.scale, shift=a * column.shift + t)
        for column, a, t in zip(columns, factors, shifts, strict=True)
    ]


def _imputer(imputer: Any, words: str, columns: list[Column]) -> list[Column] | None:
    """The identity on rows without missing values, then an indicator for each column with some.

    Columns without any value are dropped.
    """
    if hasattr(imputer, "statistics_") and not imputer.keep_empty_features:
        known = [value == value for value in imputer.statistics_]  # not NaN
        columns = [*itertools.compress(columns, known)]
    indicator = getattr(imputer, "indicator_", None)
    return columns if indicator is None else columns + _missing(indicator)


def _missing(step: Any) -> list[Column]:
    """Indicators of missing numbers, which stay as they are."""
    return [Column()] * len(step.features_)


def _selected(step: Any, words: str, columns: list[Column]) -> list[Column]:
    """The columns that are kept; a level that is not has zeros in the rest of its category."""
    kept = step.get_support()
    lost = {
        column.group: {"other_value": column.value, "otherwise": column.level, "with_none": True}
        for column in itertools.compress(columns, ~kept)
        if column.group is not None
    }
    return [replace(c, **lost.get(c.group, {})) for c in itertools.compress(columns, kept)]


def _column_transformer(transformer: Any, words: str, columns: list[Column]) -> list[Column]:
    places = transformer.output_indices_
    found = [Column(step=words)] * max(there.stop for there in places.values())
    for own, inner, chosen in transformer.transformers_:
        there = places[own]
        if there.stop > there.start:
            seen = [columns[j] for j in _chosen(transformer, chosen)]
            part = _follow(own, inner, seen, there.stop - there.start)
            weight = (transformer.transformer_weights or {}).get(own, 1.0)
            found[there] = part if weight == 1.0 else _scaled(part, weight, 0.0)
    return found


def _chosen(step: Any, columns: Any) -> IndexArray:
    """The columns that a ``ColumnTransformer`` chose: named, masked or numbered."""
    import pandas as pd

    places = pd.Series(np.arange(step.n_features_in_), getattr(step, "feature_names_in_", None))
    ends = (columns.start, columns.stop) if isinstance(columns, slice) else np.atleast_1d(columns)
    by_name = any(isinstance(end, str) for end in ends)
    return np.atleast_1d((places.loc if by_name else places.iloc)[columns])


#: Steps by the name of their class, or of a base class.
_KNOWN: dict[str, Callable[[Any, str, list[Column]], list[Column] | None]] = {
    "ColumnTransformer": _column_transformer,
    "FunctionTransformer": lambda step, _, columns: columns if step.func is None else None,
    "MaxAbsScaler": _scaler,
    "MinMaxScaler": _scaler,
    "MissingIndicator": lambda step, *_: _missing(step),
    "OneHotEncoder": _one_hot_encoder,
    "RobustScaler": _scaler,
    "SelectorMixin": _selected,
    "StandardScaler": _scaler,
    "_BaseImputer": _imputer,
}
