"""Which columns that a pipeline's last step sees are zeros and ones of one category.

A ``OneHotEncoder`` makes a group of columns of each of its features, of which a row has one 1, or
none where a level was dropped or is not known; later steps may select such columns, or scale and
shift them: ``z = scale · x + shift``.  We follow each column through the steps, by what the fitted
steps say about themselves.  Columns that are mixed with others (``PCA``) are numbers.

Two encoders make distances that mean nothing and are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .column_choice import chosen_columns


@dataclass(frozen=True)
class OneHot:
    """A column ``scale · x + shift`` with x zero or one, and the category it belongs to."""

    group: Hashable
    scale: float = 1.0
    shift: float = 0.0


#: For every column what it is, None for a number; None altogether if even their count is not known.
Columns = list[OneHot | None] | None

_REFUSED = {
    "OrdinalEncoder": (
        "numbers the levels of a category, and the distance between two such numbers means nothing"
    ),
    "TargetEncoder": (
        "makes numbers of the labels it was fitted to, which the adversary may flip, and the "
        "distance between two such numbers means nothing for the category"
    ),
}


def check_encoders(name: str, step: Any) -> None:
    """``ValueError`` for a step, or one within it, that makes distances without a meaning."""
    for inner_name, inner in _within(step):
        check_encoders(inner_name, inner)
    for kind in type(step).__mro__:
        if kind.__module__.startswith("sklearn.") and kind.__name__ in _REFUSED:
            raise ValueError(
                f"step {name!r} ({type(step).__name__}) {_REFUSED[kind.__name__]}: use "
                "OneHotEncoder, whose columns move as categories, or give the table to "
                "DRLogisticRegression as it is"
            )


def _within(step: Any) -> Iterable[tuple[str, Any]]:
    for attribute in ("steps", "transformers_", "transformer_list"):
        if hasattr(step, attribute):
            return [(each[0], each[1]) for each in getattr(step, attribute)]
    return []


def follow(name: str, step: Any, columns: Columns, width: int | None) -> Columns:
    """What the columns of a fitted step's output are, given those of its input.

    ``width`` is the number of columns of the output, where it is known.
    """
    if step is None or (isinstance(step, str) and step == "passthrough"):
        return columns
    if hasattr(step, "steps"):
        return follow_steps(name, step.steps, columns, width)
    for kind in type(step).__mro__:
        if kind.__module__.startswith("sklearn.") and kind.__name__ in _KNOWN:
            found = _KNOWN[kind.__name__](name, step, columns, width)
            if found is not None and (width is None or len(found) == width):
                return found
            break
    return None if width is None else [None] * width


def follow_steps(
    name: str, steps: list[tuple[str, Any]], columns: Columns, width: int | None
) -> Columns:
    """Through one step after the other."""
    for place, (inner, step) in enumerate(steps):
        after = steps[place + 1][1] if place + 1 < len(steps) else None
        seen = width if after is None else getattr(after, "n_features_in_", None)
        columns = follow(f"{name}/{inner}", step, columns, seen)
    return columns


def _one_hot_encoder(name: str, step: Any, columns: Columns, width: int | None) -> Columns:
    found: list[OneHot | None] = []
    merged = getattr(step, "infrequent_categories_", None)
    for j, levels in enumerate(step.categories_):
        count = len(levels)
        if merged is not None and merged[j] is not None:
            count += 1 - len(merged[j])
        if step.drop_idx_ is not None and step.drop_idx_[j] is not None:
            count -= 1
        found += [OneHot((name, j))] * count
    return found


def _bins(name: str, step: Any, columns: Columns, width: int | None) -> Columns:
    """Intervals of a number, if each has a column."""
    if step.encode == "ordinal":
        return None
    return [OneHot((name, j)) for j, count in enumerate(step.n_bins_) for _ in range(count)]


def _scaled(columns: Columns, scale: Any, shift: Any) -> Columns:
    if columns is None:
        return None
    a, t = np.broadcast_to(scale, len(columns)), np.broadcast_to(shift, len(columns))
    return [
        None if c is None else OneHot(c.group, float(c.scale * a[j]), float(c.shift * a[j] + t[j]))
        for j, c in enumerate(columns)
    ]


def _standard_scaler(name: str, step: Any, columns: Columns, width: int | None) -> Columns:
    a = 1.0 if step.scale_ is None else 1.0 / step.scale_
    return _scaled(columns, a, -step.mean_ * a if step.with_mean else 0.0)


def _robust_scaler(name: str, step: Any, columns: Columns, width: int | None) -> Columns:
    a = 1.0 if step.scale_ is None else 1.0 / step.scale_
    return _scaled(columns, a, 0.0 if step.center_ is None else -step.center_ * a)


def _max_abs_scaler(name: str, step: Any, columns: Columns, width: int | None) -> Columns:
    return None if getattr(step, "clip", False) else _scaled(columns, 1.0 / step.scale_, 0.0)


def _min_max_scaler(name: str, step: Any, columns: Columns, width: int | None) -> Columns:
    return None if step.clip else _scaled(columns, step.scale_, step.min_)


def _selector(name: str, step: Any, columns: Columns, width: int | None) -> Columns:
    if columns is None:
        return None
    return [columns[j] for j in np.flatnonzero(step.get_support())]


def _identity(name: str, step: Any, columns: Columns, width: int | None) -> Columns:
    return columns if step.func is None else None


def _imputer(name: str, step: Any, columns: Columns, width: int | None) -> Columns:
    """Numbers, then an indicator for each that was missing in training, which is 0 or 1."""
    indicator = getattr(step, "indicator_", None)
    flags = [] if indicator is None else [OneHot((name, int(j))) for j in indicator.features_]
    if width is None:
        return None
    kept = width - len(flags)
    same = columns is not None and len(columns) == kept
    return [*(columns if same and columns is not None else [None] * kept), *flags]


def _missing_indicator(name: str, step: Any, columns: Columns, width: int | None) -> Columns:
    return [OneHot((name, int(j))) for j in step.features_]


def _column_transformer(name: str, step: Any, columns: Columns, width: int | None) -> Columns:
    if width is None:
        width = max((places.stop for places in step.output_indices_.values()), default=0)
    found: list[OneHot | None] = [None] * width
    for inner, transformer, chosen in step.transformers_:
        places = step.output_indices_[inner]
        count = places.stop - places.start
        if count == 0:
            continue
        seen = None if columns is None else [columns[j] for j in chosen_columns(step, chosen)]
        part = follow(f"{name}/{inner}", transformer, seen, count)
        weight = (step.transformer_weights or {}).get(inner, 1.0)
        found[places] = _scaled(part, weight, 0.0) or [None] * count
    return found


def _feature_union(name: str, step: Any, columns: Columns, width: int | None) -> Columns:
    found: list[OneHot | None] = []
    for inner, transformer in step.transformer_list:
        if isinstance(transformer, str) and transformer == "drop":
            continue
        part = follow(f"{name}/{inner}", transformer, columns, None)
        if part is None:
            return None
        weight = (step.transformer_weights or {}).get(inner, 1.0)
        found += _scaled(part, weight, 0.0) or []
    return found


#: Steps by the name of their class, or of a base class, in scikit-learn.
_KNOWN: dict[str, Callable[[str, Any, Columns, int | None], Columns]] = {
    "ColumnTransformer": _column_transformer,
    "FeatureUnion": _feature_union,
    "FunctionTransformer": _identity,
    "KBinsDiscretizer": _bins,
    "MaxAbsScaler": _max_abs_scaler,
    "MinMaxScaler": _min_max_scaler,
    "MissingIndicator": _missing_indicator,
    "OneHotEncoder": _one_hot_encoder,
    "RobustScaler": _robust_scaler,
    "SelectorMixin": _selector,
    "StandardScaler": _standard_scaler,
    "_BaseImputer": _imputer,
}
