"""A pipeline as a linear model of the table that it is given.

A ball that a user states for a pipeline is in the units of the columns of X, which the steps have
scaled, filled or encoded.  Whatever they do: where the score is

    s(x)  =  b + Σ over numbers β_j x_j + Σ over categories β_g[level of x_g] ,

the pipeline is a linear model of X, and its coefficients can be measured.  It is asked about the
mean row, and about rows that differ from it in one column: a number by some standard deviations to
both sides, which also shows whether the score is linear in it; a category by having each of its
levels.  Whether columns add up shows in the rows themselves (``MeasuredModel.check_scores``).

What the steps know is read: the levels of a ``OneHotEncoder``, without which a column is no
category, and the standard deviations of a ``StandardScaler``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..estimators.tables.encoding import matrix_of_table
from ..estimators.tables.frames import TableColumn, columns_of, spelt
from ..problem.features import Feature, Features
from ..problem.table_statistics import class_shares, deviation_of, total_weight
from ..rows.arrays import FloatArray, IndexArray, Matrix
from ..rows.checks import check_weights

#: What to do about other pipelines, and what is said of them.
LAST_STEP = (
    "transform the data first and ask about the last step alone: model[-1] with "
    "model[:-1].transform(X)"
)
NO_SUM = (
    "the score of this pipeline is no sum over the columns of X, of numbers times coefficients and "
    f"one term for each level of a category that a OneHotEncoder knows: {LAST_STEP}"
)

#: Numbers are moved by so many standard deviations, to both sides.
_FAR = 8.0

#: The number of entries of rows that are asked about at once.
_ASKED = 2**22

#: Scores are linear up to these shares of a change, and of themselves.
_BENT, _ROUNDED = 1e-4, 1e-6


class Table(NamedTuple):
    """Rows as a matrix of numbers, the model of its columns, and what they mean.

    ``from_rows``: deviations are those of the rows at hand, because those of the rows of the fit
    are not known.
    """

    matrix: Matrix
    coef: FloatArray
    intercept: Any
    features: Features
    from_rows: bool = False


class Probed(NamedTuple):
    """A column of X as it is in the mean row, and as it is in the other rows that are asked about.

    Of a number these are two values, and a missing one if there are any; of a category its levels;
    none of a column that is neither.
    """

    usual: Any
    others: Any = ()
    levels: tuple[Any, ...] | None = None
    deviation: float = 1.0


@dataclass
class Known:
    """What fitted steps know about columns of X, which are given by their positions."""

    levels: dict[int, Any] = field(default_factory=dict)
    deviations: dict[int, float] = field(default_factory=dict)
    n_rows: float | None = None

    def read(self, step: Any, columns: list[int]) -> list[int]:
        """Read a step that takes these columns; return those that it passes on as they are."""
        kinds = kinds_of(step)
        if step is None or step == "passthrough":
            return columns
        if hasattr(step, "steps"):
            for _, each in step.steps:
                columns = self.read(each, columns)
            return columns
        if "ColumnTransformer" in kinds and columns:
            for _, inner, chosen in step.transformers_:
                self.read(inner, [columns[j] for j in _chosen(step, chosen)])
        elif "OneHotEncoder" in kinds:
            self.levels |= dict(zip(columns, step.categories_, strict=False))
        elif "StandardScaler" in kinds and step.with_std:
            found = np.where(step.var_ > 0.0, np.sqrt(step.var_), 1.0).tolist()
            self.deviations |= dict(zip(columns, found, strict=False))
            self.n_rows = float(np.max(step.n_samples_seen_))
        elif "_BaseImputer" in kinds:  # columns without a value are dropped
            found = zip(columns, getattr(step, "statistics_", columns), strict=False)
            return [j for j, value in found if value == value]
        return []

    def asked(self, j: int, column: TableColumn, weights: FloatArray) -> Probed:
        """What is asked about the column j of X."""
        if j in self.levels:
            # Levels that only these rows have, and missing ones, count as the steps see to it.
            known = [*self.levels[j]]
            missing = column.codes([None if each != each else each for each in known]) < 0
            others = np.array([*known, *column.values[missing].drop_duplicates()], dtype=object)
            levels = tuple(None if each is None or each != each else each for each in others)
            return Probed(others[0], others, levels)
        try:
            values = column.numbers
        except ValueError:
            return Probed(column.values.iloc[0], np.empty(0, dtype=object))
        there = np.isfinite(values)
        if not there.any():
            return Probed(np.nan)
        scaled, usual = self.deviations.get(j), float(np.mean(values[there]))
        deviation = deviation_of(values, weights) if scaled is None else scaled
        others = usual + deviation * np.array([-_FAR, _FAR, np.nan])
        return Probed(usual, others[: 3 - there.all()], None, deviation)


def kinds_of(step: Any) -> list[str]:
    """The names of a step's class and base classes in scikit-learn.

    Names avoid imports of steps that the pipeline does not use.
    """
    return [kind.__name__ for kind in type(step).__mro__ if kind.__module__.startswith("sklearn.")]


def _chosen(step: Any, columns: Any) -> IndexArray:
    """The columns that a ``ColumnTransformer`` chose: named, masked or numbered."""
    import pandas as pd

    places = pd.Series(np.arange(step.n_features_in_), getattr(step, "feature_names_in_", None))
    ends = (columns.start, columns.stop) if isinstance(columns, slice) else np.atleast_1d(columns)
    by_name = any(isinstance(end, str) for end in ends)
    return np.atleast_1d((places.loc if by_name else places.iloc)[columns])


def raw_table(
    scores: Callable[[Any], FloatArray], steps: Any, X: Any, names: Any, y: Any, weights: Any
) -> Table:
    """The rows of X, and the model of them that a pipeline with these steps and scores is."""
    if sp.issparse(X):
        raise ValueError(f"a ball for the columns of a pipeline needs a dense table: {LAST_STEP}")
    known, given, heavy = Known(), columns_of(X), check_weights(weights, X.shape[0])
    known.read(steps, list(range(len(given))))
    asked = [known.asked(j, column, heavy) for j, column in enumerate(given)]
    try:
        usual, effects = _effects(scores, X, asked)
    except ValueError as error:
        raise ValueError(NO_SUM) from error
    features, coef, intercept = list[Feature](), list[FloatArray](), usual
    from_rows = known.n_rows is None
    for j, (name, column, effect) in enumerate(zip(names, asked, effects, strict=True)):
        start, levels, shown, fill = len(coef), column.levels, None, None
        if levels is not None:
            coef += [*effect]
            shown = tuple("missing" if level is None else spelt(level) for level in levels)
        elif effect.any():
            low, high = effect[:2]
            size = _BENT * np.abs(high - low) + _ROUNDED * np.abs(usual).max()
            if (np.abs(high + low) > size).any():
                raise ValueError(NO_SUM)
            slope = (high - low) / (column.others[1] - column.others[0])
            coef.append(slope)
            intercept = intercept - slope * column.usual
            if len(effect) > 2:  # of a missing one
                most = np.abs(slope).argmax()
                fill = column.usual + float(effect[2, most] / slope[most])
            from_rows |= j not in known.deviations
        places = np.arange(start, len(coef))
        features.append(Feature(name, places, shown, column.deviation, values=levels, fill=fill))
    total, shares = known.n_rows or total_weight(weights, X.shape[0]), class_shares(y, weights)
    seen, matrix = Features(tuple(features), len(coef), total, shares), np.array(coef)
    matrix = matrix.reshape(-1, usual.size).T
    if usual.size > 1:
        return Table(matrix_of_table(features, given), matrix, intercept, seen, from_rows)
    one = float(intercept[0])
    return Table(matrix_of_table(features, given), matrix[0], one, seen, from_rows)


def _effects(
    scores: Callable[[Any], FloatArray], X: Any, columns: Sequence[Probed]
) -> tuple[FloatArray, list[FloatArray]]:
    """The score of the mean row, and how much more the rows have that are asked about.

    Scores have one number for each class, or one.
    """
    ends = np.cumsum([1, *(len(column.others) for column in columns)]).tolist()
    found = []
    step = max(_ASKED // max(len(columns), 1), 1)
    for first in range(0, ends[-1], step):
        filled, size = [], min(step, ends[-1] - first)
        for start, column in zip(ends, columns, strict=False):
            others = np.asarray(column.others)
            values = np.full(size, column.usual, dtype=others.dtype)
            mine = np.arange(max(start, first), min(start + others.size, first + size))
            values[mine - first] = others[mine - start]
            filled.append(values)
        found.append(scores(table_like(X, filled)).reshape(size, -1))
    usual, *asked = np.split(np.concatenate(found), ends[:-1])
    return usual[0], [each - usual for each in asked]


def table_like(X: Any, columns: Sequence[NDArray[Any]]) -> Any:
    """A table of the type of X, and with its names, that has these columns."""
    import pandas as pd

    if not hasattr(X, "columns"):
        return np.column_stack(columns)
    frame = pd.DataFrame(dict(enumerate(columns))).set_axis(list(X.columns), axis=1)
    return frame if hasattr(X, "iloc") else type(X)(frame)
