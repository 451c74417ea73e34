"""In which space distance is measured, and a model and its samples there.

The *fitted* space is the one that the classifier itself was fitted in: for a pipeline, what its
last step sees; for a table, the encoded columns with their categories.  There an audit of a model
on its training data gives the number of the fit.  The *given* space is that of X as it was given,
into which the steps of a pipeline are folded (:func:`.pipeline_columns.fold`).

In the fitted space our own models and results are measured as they were fitted: norm, costs,
categories and bounds.  For others, the columns of a ``OneHotEncoder`` are categories.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ..estimators.robust_classifier import RobustLinearClassifier
from ..estimators.tables.encoding import Encoding
from ..estimators.training_data import matrix_of
from ..problem.ball import ColumnBall
from ..problem.label_costs import FlipCosts, StatedKappa
from ..problem.problem import column_names
from ..problem.result import Result
from ..problem.transport import ResultBall
from ..rows.arrays import BoolArray, FloatArray
from .linear_model import LinearModel, as_linear, last_step, without_searches
from .measured_features import (
    Column,
    MeasuredFeature,
    categories_of,
    columns_of_encoding,
    features_of,
    labels_of,
)
from .pipeline_columns import follow_steps

_GIVEN = "in the units of X as given"


@dataclass(frozen=True, eq=False)
class MeasuredModel:
    """A linear model and samples in the space where distance is measured.

    ``fit`` is the model if it is an estimator of ours.  ``costs``, ``categories`` and ``bounds``
    are the defaults of the ball; None where they are not known.  ``space`` describes the space in
    words, and ``columns`` what is known of the columns besides their names.  ``bounds_from_rows``:
    the bounds were found in rows, so that other rows may lie beyond them.
    """

    linear: LinearModel
    X: Any
    space: str
    fit: RobustLinearClassifier | None
    costs: Any = None
    categories: Any = None
    bounds: Any = None
    names: list[Any] | None = None
    encoding: Encoding | None = None
    columns: Sequence[Column] = ()
    bounds_from_rows: bool = False
    matrix: FloatArray | None = None  # of costs

    @cached_property
    def features(self) -> tuple[MeasuredFeature, ...]:
        """The features of the table that the columns belong to."""
        labels = labels_of(self.names, self.linear.coef.shape[-1])
        known = self.columns or [Column(j, label) for j, label in enumerate(labels)]
        return features_of(known, labels, self.categories or ())


def own_fit(model: Any) -> RobustLinearClassifier | None:
    """Our own model inside pipelines and searches; None if it is not ours."""
    last = last_step(model) if hasattr(model, "fit") else None
    return last if isinstance(last, RobustLinearClassifier) else None


class FittedBall(NamedTuple):
    """Radius, flip costs and norm of a fit; the radius is None for models of other packages."""

    epsilon: float | None
    kappa: StatedKappa | FlipCosts | None
    norm: str

    @property
    def radius(self) -> float:
        """The radius; ``ValueError`` if there is none."""
        if self.epsilon is None:
            raise ValueError("this model has no radius of its own: give one with epsilon=")
        return self.epsilon


def fitted_ball(model: Any) -> FittedBall:
    """What an estimator or a result was fitted with."""
    fit = own_fit(model)
    if fit is not None:
        return FittedBall(float(fit.ball_.epsilon or 0.0), fit.ball_.kappa, fit.ball_.norm)
    if not isinstance(model, Result) or model.column_ball is None:
        return FittedBall(None, None, "l1")
    ball = model.column_ball
    return FittedBall(ball.epsilon, ball.labels.for_others, ball.norm)


def measure(model: Any, X: Any, categories: Any = None) -> MeasuredModel:
    """The model and the samples in a space; ``ValueError`` if the steps cannot be folded.

    ``categories`` are those that a user states.  Without them, the one-hot columns of pipelines of
    other packages are categories.
    """
    pipeline = without_searches(model)
    names = column_names(X)
    measured = MeasuredModel(as_linear(model), X, _GIVEN, own_fit(model), names=names)
    steps = [
        (name, step)
        for name, step in getattr(pipeline, "steps", ())[:-1]
        if step is not None and not (isinstance(step, str) and step == "passthrough")
    ]
    if steps:
        measured = _through_steps(measured, pipeline, steps)
    if measured.fit is not None:
        return _as_fitted(measured.fit, measured)
    if isinstance(model, Result) and model.column_ball is not None:
        return _in_ball_of_result(model.column_ball, measured)
    return _with_one_hot(measured) if categories is None else measured


def _through_steps(
    measured: MeasuredModel, pipeline: Any, steps: list[tuple[str, Any]]
) -> MeasuredModel:
    """The samples as the last step sees them; in the space of X, the model as X sees it."""
    linear, before, X = measured.linear, pipeline[:-1], measured.X
    width = linear.coef.shape[-1]
    n_inputs = getattr(steps[0][1], "n_features_in_", np.shape(X)[-1])
    inputs = [Column(j, label) for j, label in enumerate(labels_of(measured.names, n_inputs))]
    columns = follow_steps(steps, inputs, width)
    Z = before.transform(X)
    kinds = ", ".join(type(step).__name__ for _, step in steps)
    where = f"in the space in which {type(last_step(pipeline)).__name__} was fitted, after {kinds}"
    return replace(measured, X=Z, space=where, names=_names_after(before, Z), columns=columns)


def _names_after(steps: Any, Z: Any) -> list[Any] | None:
    """Names of transformed columns, if the steps have them."""
    named = column_names(Z)
    if named is None:
        try:
            named = [str(name) for name in steps.get_feature_names_out()]
        except (AttributeError, ValueError):
            return None
    return named if len(named) == Z.shape[1] else None


def _as_fitted(fit: RobustLinearClassifier, measured: MeasuredModel) -> MeasuredModel:
    """Costs, categories and bounds of the fit of our model."""
    costs, categories, bounds = _stated_by(fit)
    measured = replace(
        measured, costs=costs, categories=categories, bounds=bounds,
    )  # fmt: skip
    encoding = fit.encoding_
    if encoding is None:
        return measured
    return replace(
        measured,
        X=matrix_of(fit, measured.X),
        names=encoding.names,
        encoding=encoding,
        columns=columns_of_encoding(encoding),
    )


def _in_ball_of_result(ball: ResultBall, measured: MeasuredModel) -> MeasuredModel:
    """Costs, categories and bounds of a result, as :func:`drlogit.solve` takes them."""
    none = np.zeros(len(ball.groups), dtype=bool) if ball.with_none is None else ball.with_none
    groups: list[Any] = [
        [*group.tolist(), *[None] * bool(some)]
        for group, some in zip(ball.groups, none, strict=True)
    ]
    bounds = None if ball.lower is None else (ball.lower, ball.upper)
    return replace(measured, costs=ball.feature_costs, categories=groups or None, bounds=bounds)


def fitted_columns(fit: RobustLinearClassifier) -> ColumnBall:
    """The ball of a fit, for the columns of its matrix."""
    found: ColumnBall = fit.ball_.on(fit.ball_.features)
    return found


def _stated_by(fit: RobustLinearClassifier) -> tuple[Any, Any, Any]:
    """Costs, categories and bounds of a fit; None for those that are not stated."""
    columns = fitted_columns(fit)
    bounded = np.isfinite([columns.lower, columns.upper]).any()
    bounds = (columns.lower, columns.upper) if bounded else None
    return columns.costs, columns.groups or None, bounds


def where_measured(fit: RobustLinearClassifier) -> str:
    """Where one of our models measures distance, in words."""
    stated = words_of(*_stated_by(fit))
    return _GIVEN + with_the(stated, "of the fit")


def words_of(costs: Any, categories: Any, bounds: Any) -> list[str]:
    """The names of those that are stated."""
    stated = {"feature costs": costs, "categories": categories, "bounds": bounds}
    return [word for word, value in stated.items() if value is not None]


def with_the(words: Iterable[str], whose: str) -> str:
    """A clause that names whose costs, categories or bounds are used."""
    listed = " and ".join(words)
    return f", with the {listed} {whose}" if listed else ""


def _with_one_hot(measured: MeasuredModel) -> MeasuredModel:
    """One-hot columns as categories, with zeros and ones again if a step has scaled them.

    The encoder tells whether "none of these columns" is a category, as for a dropped level.
    """
    groups = [
        [*group, None] if measured.columns[group[0]].with_none else group
        for group in categories_of(measured.columns).values()
    ]
    if not groups:
        return measured
    linear, Z = measured.linear, measured.X
    hot = np.array([column.group is not None for column in measured.columns])
    scale = np.where(hot, [column.scale for column in measured.columns], 1.0)
    shift = np.where(hot, [column.shift for column in measured.columns], 0.0)
    if (scale != 1.0).any() or shift.any():
        Z = _zeros_and_ones(Z, hot=hot, scale=scale, shift=shift)
    many = f"{len(groups)} categories" if len(groups) > 1 else "1 category"
    return replace(
        measured,
        linear=replace(
            linear, coef=linear.coef * scale, intercept=linear.intercept + linear.coef @ shift
        ),
        X=Z,
        categories=groups,
        space=f"{measured.space}, with the one-hot columns of {many} as such",
    )


def _zeros_and_ones(Z: Any, hot: BoolArray, scale: FloatArray, shift: FloatArray) -> Any:
    """The samples with some columns as they were before they were scaled and shifted."""
    if sp.issparse(Z):  # what is sparse was not shifted
        Z = sp.csr_array(Z, dtype=np.float64, copy=True)
        some = hot[Z.indices]
        Z.data[some] = np.rint(Z.data[some] / scale[Z.indices[some]])
        return Z
    Z = np.array(Z, dtype=np.float64)
    Z[:, hot] = np.rint((Z[:, hot] - shift[hot]) / scale[hot])
    return Z
