"""Where the columns that a pipeline's last step sees come from.

Each column is ``scale · x + shift``.  x is a column that the pipeline is given, or one that a step
made of it: the 0 or 1 of a level of a category (``OneHotEncoder``, ``KBinsDiscretizer``, indicators
of missing values), or a number of which nothing more is known, as of steps that mix columns.  What
the fitted steps say about themselves gives scale, shift and x.  A model of these columns is one of
the pipeline's input if it uses nothing that was made (:func:`fold`).

Two encoders make distances that mean nothing and are refused.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from ..rows.arrays import IndexArray
from .measured_features import Column

_REFUSED = {"OrdinalEncoder", "TargetEncoder"}


def follow_steps(
    steps: list[tuple[str, Any]], columns: list[Column], width: int | None
) -> list[Column]:
    """The columns, ``width`` of them if it is known, that fitted steps make of their input's."""
    for place, (name, step) in enumerate(steps):
        after = steps[place + 1][1] if place + 1 < len(steps) else None
        seen = width if after is None else getattr(after, "n_features_in_", None)
        columns = _follow(name, step, columns, seen)
    return columns


def _follow(name: str, step: Any, columns: list[Column], width: int | None) -> list[Column]:
    """What the columns of a fitted step's output are; none if even their number is not known.

    ``width`` is the number of columns of the output, where it is known.
    """
    words, found = f"{name!r} ({type(step).__name__})", None
    if step is None or isinstance(step, str):  # passed through
        found = columns
    elif hasattr(step, "steps"):
        found = follow_steps(step.steps, columns, width)
    names = [kind.__name__ for kind in type(step).__mro__ if kind.__module__.startswith("sklearn.")]
    if _REFUSED & {*names}:
        raise ValueError(
            f"step {words} makes one number of a category, and the distance between two such "
            "numbers means nothing: use OneHotEncoder, whose columns move as categories, or give "
            "the table to DRLogisticRegression as it is"
        )
    known = next((_KNOWN[kind] for kind in names if kind in _KNOWN), None)
    if known is not None:
        expected = getattr(step, "n_features_in_", len(columns))
        if len(columns) != expected:  # a step before was not known, nor what it gave
            columns = _unknown(words, expected)
        found = known(step, words, columns)
    if found is None or width not in (None, len(found)):
        return _unknown(words, width or 0)
    return found


def _unknown(words: str, count: int) -> list[Column]:
    return [Column(step=words)] * count


def _levels(
    step: Any, words: str, column: Column, j: int, names: Iterable[str], otherwise: str | None
) -> list[Column]:
    """The levels of a category that a step makes of its column j.

    ``otherwise`` is what zeros in all of its columns mean; None if the step never makes such rows.
    """
    at = column.source, column.name, words, (id(step), j)
    word, with_none = otherwise or Column.otherwise, otherwise is not None
    return [Column(*at, each, word, with_none=with_none) for each in names]


def _one_hot_encoder(encoder: Any, words: str, columns: list[Column]) -> list[Column]:
    made, unknown = [], encoder.handle_unknown
    merged = getattr(encoder, "infrequent_categories_", None) or [None] * len(encoder.categories_)
    for j, (known, infrequent) in enumerate(zip(encoder.categories_, merged, strict=True)):
        levels, otherwise = [str(level) for level in known], None
        if unknown == "ignore" or (unknown != "error" and infrequent is None):
            otherwise = Column.otherwise  # a level that is not known
        drop = None if encoder.drop_idx_ is None else encoder.drop_idx_[j]
        dropped = None if drop is None else levels[drop]
        if infrequent is not None:
            rare = {str(level) for level in infrequent}
            levels = [*(level for level in levels if level not in rare), "infrequent"]
            dropped = "infrequent" if dropped in rare else dropped
        if dropped is not None:
            levels.remove(dropped)
        made += _levels(encoder, words, columns[j], j, levels, dropped or otherwise)
    return made


def _bins(step: Any, words: str, columns: list[Column]) -> list[Column] | None:
    """Intervals of a number, if each has a column."""
    if step.encode == "ordinal":
        return None
    made = []
    for j, edges in enumerate(step.bin_edges_):
        levels = [f"{low:.4g} to {high:.4g}" for low, high in itertools.pairwise(edges)]
        made += _levels(step, words, columns[j], j, levels, None)
    return made


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
    return _scaled(columns, scale, -centre * scale)


def _scaled(columns: list[Column], scale: Any, shift: Any) -> list[Column]:
    factors, shifts = (np.broadcast_to(each, len(columns)).tolist() for each in (scale, shift))
    return [
        replace(column, scale=a * column.scale, shift=a * column.shift + t)
        for column, a, t in zip(columns, factors, shifts, strict=True)
    ]


def _imputer(imputer: Any, words: str, columns: list[Column]) -> list[Column] | None:
    """The identity on rows without missing values, then an indicator for each column with some."""
    if not (isinstance(imputer.missing_values, float) and np.isnan(imputer.missing_values)):
        return None
    indicator = getattr(imputer, "indicator_", None)
    return columns if indicator is None else columns + _missing(indicator, words, columns)


def _missing(step: Any, words: str, columns: list[Column]) -> list[Column]:
    """Indicators of missing numbers: categories of their own, beside the numbers."""
    return [
        level
        for j in step.features_
        for level in _levels(step, words, columns[j], int(j), ["missing"], "not missing")
    ]


def _selected(step: Any, words: str, columns: list[Column]) -> list[Column]:
    """The columns that are kept; a level that is not has zeros in the rest of its category."""
    kept = step.get_support()
    lost = {columns[j].group for j in np.flatnonzero(~kept)} - {None}
    return [
        replace(column, with_none=True, otherwise=Column.otherwise)
        if column.group in lost
        else column
        for column in itertools.compress(columns, kept)
    ]


def _column_transformer(transformer: Any, words: str, columns: list[Column]) -> list[Column]:
    places = transformer.output_indices_
    found = _unknown(words, max(there.stop for there in places.values()))
    for own, inner, chosen in transformer.transformers_:
        there = places[own]
        if there.stop > there.start:
            seen = [columns[j] for j in _chosen(transformer, chosen)]
            part = _follow(own, inner, seen, there.stop - there.start)
            weight = (transformer.transformer_weights or {}).get(own, 1.0)
            found[there] = _scaled(part, weight, 0.0)
    return found


def _chosen(step: Any, columns: Any) -> IndexArray:
    """The columns that a ``ColumnTransformer`` chose: named, masked or numbered."""
    import pandas as pd

    places = pd.Series(np.arange(step.n_features_in_), getattr(step, "feature_names_in_", None))
    ends = (columns.start, columns.stop) if isinstance(columns, slice) else np.atleast_1d(columns)
    by_name = any(isinstance(end, str) for end in ends)
    return np.atleast_1d((places.loc if by_name else places.iloc)[columns])


#: Steps by the name of their class, or of a base class, in scikit-learn.  Names avoid imports of
#: steps that the pipeline does not use.
_KNOWN: dict[str, Callable[[Any, str, list[Column]], list[Column] | None]] = {
    "ColumnTransformer": _column_transformer,
    "FunctionTransformer": lambda step, _, columns: columns if step.func is None else None,
    "KBinsDiscretizer": _bins,
    "MaxAbsScaler": _scaler,
    "MinMaxScaler": _scaler,
    "MissingIndicator": _missing,
    "OneHotEncoder": _one_hot_encoder,
    "RobustScaler": _scaler,
    "SelectorMixin": _selected,
    "StandardScaler": _scaler,
    "_BaseImputer": _imputer,
}
