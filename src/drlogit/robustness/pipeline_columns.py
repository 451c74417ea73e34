"""The columns that a pipeline's last step sees, as affine functions of where they come from.

    z = A v + t

``v`` are the *origins*: the columns that the pipeline is given, and those that its steps make of
them: a 0 or 1 for each level of a category (``OneHotEncoder``, ``KBinsDiscretizer``, indicators of
missing values), or numbers by a step that is not affine, or that we do not know.  What the fitted
steps say about themselves gives A and t.  A model on z is then one on the input if it uses nothing
that was made (:meth:`~FollowedColumns.fold`), and a column of a single origin is a number, or a
part of a category, that was scaled and shifted (:meth:`~FollowedColumns.traced`).

Two encoders make distances that mean nothing and are refused.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ..rows.arrays import FloatArray, IndexArray

_REFUSED = {
    "OrdinalEncoder": (
        "numbers the levels of a category, and the distance between two such numbers means nothing"
    ),
    "TargetEncoder": (
        "makes numbers of the labels it was fitted to, which the adversary may flip, and the "
        "distance between two such numbers means nothing for the category"
    ),
}


@dataclass(frozen=True)
class Origin:
    """A column of the input, or one that a ``step`` made of it.

    ``source`` is the column of the input, None if it is not known or not one.  ``group`` is the
    category of a level, ``level`` what a 1 means, and ``otherwise`` what a row without a 1 in the
    group does.
    """

    source: int | None = None
    step: str = ""
    group: Hashable = None
    level: str = "yes"
    otherwise: str = "none of these"


class Traced(NamedTuple):
    """A column ``scale · x + shift`` of a single origin x."""

    origin: Origin
    scale: float
    shift: float


@dataclass(frozen=True, eq=False)
class FollowedColumns:
    """Columns ``A v + t``; ``origins`` is one list for all that are followed together."""

    origins: list[Origin]
    matrix: Any  # A, of as many origins as there were
    shift: FloatArray

    @classmethod
    def new(cls, origins: list[Origin], made: Sequence[Origin]) -> FollowedColumns:
        """Columns that are origins themselves."""
        first, count = len(origins), len(made)
        origins += made
        ones = np.ones(count), (np.arange(count), np.arange(first, first + count))
        return cls(origins, sp.csr_array(ones, shape=(count, first + count)), np.zeros(count))

    def __len__(self) -> int:
        return int(self.matrix.shape[0])

    def __getitem__(self, places: Any) -> FollowedColumns:
        return FollowedColumns(self.origins, self.matrix[places], self.shift[places])

    def scaled(self, scale: Any, shift: Any) -> FollowedColumns:
        """``scale · z + shift``."""
        a = np.broadcast_to(np.asarray(scale, dtype=np.float64), len(self))
        return FollowedColumns(
            self.origins, sp.csr_array(sp.diags_array(a) @ self.matrix), a * self.shift + shift
        )

    def mixed(self, weights: Any) -> FollowedColumns:
        """``weights z``."""
        weights = sp.csr_array(weights)
        return FollowedColumns(
            self.origins, sp.csr_array(weights @ self.matrix), np.asarray(weights @ self.shift)
        )

    def source(self, j: int) -> int | None:
        """The column of the input that column j comes from, if it is one."""
        found = self.traced(j)
        return None if found is None else found.origin.source

    def traced(self, j: int) -> Traced | None:
        """Where column j comes from; None if from several places."""
        first, last = self.matrix.indptr[j : j + 2]
        if last - first != 1 or self.matrix.data[first] == 0.0:
            return None
        origin = self.origins[self.matrix.indices[first]]
        return Traced(origin, float(self.matrix.data[first]), float(self.shift[j]))

    def fold(self, coef: FloatArray, intercept: float, n_inputs: int) -> tuple[FloatArray, float]:
        """The model ``(coef, intercept)`` of these columns as one of the input's."""
        weights = np.asarray(self.matrix.T @ coef)
        full = np.zeros(n_inputs)
        for weight, origin in zip(weights, self.origins, strict=False):
            if origin.step and weight != 0.0:
                raise ValueError(
                    f"step {origin.step} is not an affine map that drlogit knows. Transform the "
                    "data first and ask about the last step alone: model[-1] with "
                    "model[:-1].transform(X)"
                )
            if not origin.step and origin.source is not None:
                full[origin.source] += weight
        return full, intercept + float(self.shift @ coef)


def n_inputs(steps: list[tuple[str, Any]], otherwise: int) -> int:
    """How many columns a pipeline takes, as its first step says."""
    some = [step for _, step in steps if step is not None and not isinstance(step, str)]
    return int(getattr(some[0], "n_features_in_", otherwise)) if some else otherwise


def follow_steps(steps: list[tuple[str, Any]], n_inputs: int, width: int) -> FollowedColumns:
    """The ``width`` columns that fitted steps make of a pipeline's input."""
    start = FollowedColumns.new([], [Origin(j) for j in range(n_inputs)])
    found = _through("", steps, start, width)
    assert found is not None
    return found


def _joined(parts: list[FollowedColumns]) -> FollowedColumns:
    """Columns side by side."""
    origins = parts[0].origins
    padded = [
        sp.csr_array(
            (part.matrix.data, part.matrix.indices, part.matrix.indptr),
            shape=(len(part), len(origins)),
        )
        for part in parts
    ]
    return FollowedColumns(
        origins, sp.vstack(padded, format="csr"), np.concatenate([part.shift for part in parts])
    )


def _through(
    name: str, steps: list[tuple[str, Any]], columns: FollowedColumns, width: int | None
) -> FollowedColumns | None:
    """Through one step after the other."""
    found: FollowedColumns | None = columns
    for place, (inner, step) in enumerate(steps):
        after = steps[place + 1][1] if place + 1 < len(steps) else None
        seen = width if after is None else getattr(after, "n_features_in_", None)
        found = _follow(
            f"{name}/{inner}", inner, step, columns[:0] if found is None else found, seen
        )
    return found


def _follow(
    name: str, own: str, step: Any, columns: FollowedColumns, width: int | None
) -> FollowedColumns | None:
    """What the columns of a fitted step's output are; None if even their number is not known.

    ``width`` is the number of columns of the output, where it is known.
    """
    if step is None or (isinstance(step, str) and step == "passthrough"):
        return columns
    if hasattr(step, "steps"):
        return _through(name, step.steps, columns, width)
    words = f"{own!r} ({type(step).__name__})"
    for kind in type(step).__mro__:
        if not kind.__module__.startswith("sklearn."):
            continue
        if kind.__name__ in _REFUSED:
            raise ValueError(
                f"step {words} {_REFUSED[kind.__name__]}: use OneHotEncoder, whose columns move as "
                "categories, or give the table to DRLogisticRegression as it is"
            )
        if kind.__name__ in _KNOWN:
            expected = getattr(step, "n_features_in_", len(columns))
            if len(columns) != expected:  # a step before was not known, nor what it gave
                columns = _unknown(columns, words, expected)
            found = _KNOWN[kind.__name__](_Step(name, words, step, width), columns)
            if found is not None and (width is None or len(found) == width):
                return found
            break
    return None if width is None else _unknown(columns, words, width)


def _unknown(columns: FollowedColumns, words: str, count: int) -> FollowedColumns:
    return FollowedColumns.new(columns.origins, [Origin(None, words)] * count)


class _Step(NamedTuple):
    """A step, its path in the pipeline, what it is called, and how many columns it gives."""

    name: str
    words: str
    itself: Any
    width: int | None

    def levels(
        self, columns: FollowedColumns, j: int, names: list[str], otherwise: str
    ) -> list[Origin]:
        """The levels of a category that is made of a column."""
        source = columns.source(j)
        return [Origin(source, self.words, (self.name, j), each, otherwise) for each in names]


def _one_hot_encoder(step: _Step, columns: FollowedColumns) -> FollowedColumns:
    made, encoder = [], step.itself
    merged = getattr(encoder, "infrequent_categories_", None)
    for j, known in enumerate(encoder.categories_):
        levels, otherwise = [str(level) for level in known], Origin.otherwise
        dropped = None if encoder.drop_idx_ is None else encoder.drop_idx_[j]
        if dropped is not None:
            otherwise = levels[dropped]
        if merged is not None and merged[j] is not None:
            rare = {str(level) for level in merged[j]}
            levels = [*(level for level in levels if level not in rare), "infrequent"]
            otherwise = "infrequent" if otherwise in rare else otherwise
        if dropped is not None:
            levels.remove(otherwise)
        made += step.levels(columns, j, levels, otherwise)
    return FollowedColumns.new(columns.origins, made)


def _bins(step: _Step, columns: FollowedColumns) -> FollowedColumns | None:
    """Intervals of a number, if each has a column."""
    if step.itself.encode == "ordinal":
        return None
    made = []
    for j, edges in enumerate(step.itself.bin_edges_):
        levels = [f"{low:.4g} to {high:.4g}" for low, high in itertools.pairwise(edges)]
        made += step.levels(columns, j, levels, Origin.otherwise)
    return FollowedColumns.new(columns.origins, made)


def _scaler(step: _Step, columns: FollowedColumns) -> FollowedColumns | None:
    """Standard, robust, and by the largest value: ``(x - centre) / scale``."""
    scaler = step.itself
    if getattr(scaler, "clip", False):
        return None
    scale = 1.0 if scaler.scale_ is None else 1.0 / scaler.scale_
    centre = getattr(scaler, "center_", getattr(scaler, "mean_", None))
    if centre is None or not getattr(scaler, "with_mean", True):
        centre = 0.0
    return columns.scaled(scale, -centre * scale)


def _min_max_scaler(step: _Step, columns: FollowedColumns) -> FollowedColumns | None:
    scaler = step.itself
    return None if scaler.clip else columns.scaled(scaler.scale_, scaler.min_)


def _pca(step: _Step, columns: FollowedColumns) -> FollowedColumns:
    pca = step.itself
    scale = 1.0 / np.sqrt(pca.explained_variance_) if pca.whiten else 1.0
    return columns.scaled(1.0, -pca.mean_).mixed(pca.components_).scaled(scale, 0.0)


def _projection(step: _Step, columns: FollowedColumns) -> FollowedColumns:
    return columns.mixed(step.itself.components_)


def _selector(step: _Step, columns: FollowedColumns) -> FollowedColumns:
    return columns[np.flatnonzero(step.itself.get_support())]


def _function(step: _Step, columns: FollowedColumns) -> FollowedColumns | None:
    return columns if step.itself.func is None else None


def _imputer(step: _Step, columns: FollowedColumns) -> FollowedColumns | None:
    """The identity on rows without missing values, then an indicator for each column with some."""
    imputer = step.itself
    if not (isinstance(imputer.missing_values, float) and np.isnan(imputer.missing_values)):
        return None
    indicator = getattr(imputer, "indicator_", None)
    if indicator is None:
        return columns
    return _joined([columns, _missing(step._replace(itself=indicator), columns)])


def _missing(step: _Step, columns: FollowedColumns) -> FollowedColumns:
    """Indicators of missing numbers: categories of their own, beside the numbers."""
    made = [
        level
        for j in step.itself.features_
        for level in step.levels(columns, int(j), ["missing"], "not missing")
    ]
    return FollowedColumns.new(columns.origins, made)


def _column_transformer(step: _Step, columns: FollowedColumns) -> FollowedColumns | None:
    transformer, parts, places = step.itself, [columns[:0]], [np.empty(0, dtype=np.intp)]
    for own, inner, chosen in transformer.transformers_:
        there = transformer.output_indices_[own]
        count = there.stop - there.start
        if count == 0:
            continue
        seen = columns[_chosen(transformer, chosen)]
        part = _follow(f"{step.name}/{own}", own, inner, seen, count)
        assert part is not None
        parts.append(_weighted(transformer, own, part))
        places.append(np.arange(there.start, there.stop))
    return _joined(parts)[np.argsort(np.concatenate(places))]


def _feature_union(step: _Step, columns: FollowedColumns) -> FollowedColumns | None:
    parts = [columns[:0]]
    for own, inner in step.itself.transformer_list:
        if isinstance(inner, str) and inner == "drop":
            continue
        part = _follow(f"{step.name}/{own}", own, inner, columns, None)
        if part is None:
            return None
        parts.append(_weighted(step.itself, own, part))
    return _joined(parts)


def _weighted(step: Any, own: str, part: FollowedColumns) -> FollowedColumns:
    return part.scaled((step.transformer_weights or {}).get(own, 1.0), 0.0)


def _chosen(step: Any, columns: Any) -> IndexArray:
    """The columns that a ``ColumnTransformer`` chose: named, masked or numbered."""
    positions = np.arange(step.n_features_in_)
    names = {name: i for i, name in enumerate(getattr(step, "feature_names_in_", ()))}
    if isinstance(columns, slice) and isinstance(columns.start or columns.stop, str):
        first = names[columns.start] if columns.start is not None else 0
        last = names[columns.stop] if columns.stop is not None else positions.size - 1
        return positions[first : last + 1]  # by name, the end is included
    if isinstance(columns, slice):
        return positions[columns]
    several = np.atleast_1d(np.asarray(columns))
    if several.dtype.kind in "biu":
        return np.asarray(positions[several])
    return np.array([names[name] for name in several.tolist()], dtype=np.intp)


#: Steps by the name of their class, or of a base class, in scikit-learn.  By name, so that none of
#: them is imported by who does not use it.
_KNOWN: dict[str, Callable[[_Step, FollowedColumns], FollowedColumns | None]] = {
    "BaseRandomProjection": _projection,
    "ColumnTransformer": _column_transformer,
    "FeatureUnion": _feature_union,
    "FunctionTransformer": _function,
    "IncrementalPCA": _pca,
    "KBinsDiscretizer": _bins,
    "MaxAbsScaler": _scaler,
    "MinMaxScaler": _min_max_scaler,
    "MissingIndicator": _missing,
    "OneHotEncoder": _one_hot_encoder,
    "PCA": _pca,
    "RobustScaler": _scaler,
    "SelectorMixin": _selector,
    "StandardScaler": _scaler,
    "TruncatedSVD": _projection,
    "_BaseImputer": _imputer,
}
