"""In which space distance is measured, and a model and its samples there.

The *fitted* space is the one that the classifier itself was fitted in: for a pipeline, what its
last step sees; for a table, the encoded columns with their categories.  There an audit of a model
on its training data gives the number of the fit.  The *given* space is that of X as it was given,
into which the affine steps of a pipeline are folded (:func:`~.linear_model.as_linear`).

In the fitted space our own models are measured as they were fitted: norm, costs, categories and
bounds.  For others, the columns of a ``OneHotEncoder`` are categories.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from ..estimators.linear_predictions import matrix_of
from ..estimators.robust_classifier import RobustLinearClassifier
from ..estimators.tables.encoding import Encoding
from ..problem.label_costs import StatedKappa
from ..problem.problem import column_names
from ..problem.result import Result
from ..rows.arrays import FloatArray, IndexArray
from ..rows.row_blocks import RowBlocks
from .features import Feature, of_encoding, of_steps
from .linear_model import LinearModel, SoftmaxModel, as_linear, as_softmax
from .pipeline_columns import FollowedColumns, follow_steps

_GIVEN = "in the units of X as given"

SPACES = ("fitted", "given")

#: Says that a pipeline's one-hot columns are categories, though the fit took them for numbers.
ONE_HOT = "one-hot"


@dataclass(frozen=True, eq=False)
class MeasuredModel:
    """A linear model and samples in the space where distance is measured.

    ``norm``, ``kappa``, ``costs``, ``categories`` and ``bounds`` are what is measured with where
    nobody says otherwise; None for what is not known.  ``space`` says it in words, and ``features``
    what is known of the columns.
    """

    linear: LinearModel | SoftmaxModel
    X: Any
    space: str
    norm: str | None = None
    kappa: StatedKappa | None = None
    costs: Any = None
    categories: Any = None
    bounds: Any = None
    names: list[Any] | None = None
    encoding: Encoding | None = None
    features: tuple[Feature, ...] = ()


def measure(
    model: Any, X: Any, space: str, categories: Any = None, of_class: int | None = None
) -> MeasuredModel:
    """The model and the samples in a space; ``ValueError`` if there is no way there.

    ``of_class`` says which class of several is told from the rest.
    """
    if space not in SPACES:
        raise ValueError(f"space must be 'fitted' or 'given', got {space!r}")
    found = _without_searches(model)
    steps = list(getattr(found, "steps", []))
    if space == "given":
        return _given(model, found, X, of_class)
    last = _without_searches(steps[-1][1]) if steps else found
    if len(steps) > 1:
        measured, columns = _in_pipeline(found, last, X, of_class)
    else:
        measured, columns = _alone(last, X, of_class), None
    if isinstance(last, RobustLinearClassifier):
        measured = _as_fitted(last, measured)
        if not (isinstance(categories, str) and categories == ONE_HOT):
            return measured
    if columns is not None and (categories is None or isinstance(categories, str)):
        measured = _with_one_hot(measured, columns)
    return measured


class FittedWith(NamedTuple):
    """The norm, κ and ε of a fit, and its outcomes; None if the model does not know."""

    norm: str | None = None
    kappa: StatedKappa | None = None
    epsilon: float | None = None
    results: tuple[Result, ...] = ()

    def of_class(self, k: int) -> FittedWith:
        """What is known of one fit of several, one class against the rest."""
        return self._replace(results=self.results[k : k + 1])


def fitted_with(model: Any) -> FittedWith:
    """How our models were fitted, in pipelines and searches too."""
    last = last_step(model) if hasattr(model, "fit") else None
    if not isinstance(last, RobustLinearClassifier):
        return FittedWith()
    return FittedWith(last.norm, last.kappa_, float(last.epsilon_), tuple(last.results_))


def last_step(model: Any) -> Any:
    """The classifier itself, in pipelines and searches."""
    found = _without_searches(model)
    return _without_searches(found.steps[-1][1]) if hasattr(found, "steps") else found


def _without_searches(model: Any) -> Any:
    """The estimator that a search ended with."""
    if hasattr(model, "fit"):
        check_is_fitted(model)
    while hasattr(model, "best_estimator_"):
        model = model.best_estimator_
    return model


def _given(model: Any, found: Any, X: Any, of_class: int | None) -> MeasuredModel:
    if getattr(found, "encoding_", None) is not None:
        raise ValueError(
            "the columns of this model's table have no distance before they are encoded: leave "
            "space at 'fitted'"
        )
    return MeasuredModel(_scoring(model, of_class), X, _GIVEN, names=column_names(X))


def _scoring(model: Any, of_class: int | None) -> LinearModel | SoftmaxModel:
    softmax = as_softmax(model) if of_class is None else None
    return as_linear(model, of_class) if softmax is None else softmax


def _alone(last: Any, X: Any, of_class: int | None) -> MeasuredModel:
    return MeasuredModel(_scoring(last, of_class), X, _GIVEN, names=column_names(X))


def _in_pipeline(
    pipeline: Any, last: Any, X: Any, of_class: int | None
) -> tuple[MeasuredModel, FollowedColumns]:
    """Model and samples before the last step, and where its columns come from."""
    linear = _scoring(last, of_class)
    before = pipeline[:-1]
    Z = _transformed(X, before.transform, linear.coef.shape[-1])
    named = [step for _, step in before.steps if step is not None and not isinstance(step, str)]
    kinds = ", ".join(type(step).__name__ for step in named)
    after = f", after {kinds}" if kinds else ""
    shape: tuple[int, ...] = getattr(X, "shape", ())
    columns = follow_steps(before.steps, shape[1] if len(shape) == 2 else 0, Z.shape[1])
    measured = MeasuredModel(
        linear,
        Z,
        f"in the space in which {type(last).__name__} was fitted{after}",
        names=_names_after(before, Z),
        features=tuple(of_steps(columns, column_names(X))),
    )
    return measured, columns


def _transformed(X: Any, function: Callable[[Any], Any], n_features: int) -> Any:
    """What a function makes of the samples; of blocks, when they are read."""
    if isinstance(X, RowBlocks):
        return RowBlocks(lambda k: function(X.block(k)), X.lengths, n_features)
    return function(X)


def _names_after(steps: Any, Z: Any) -> list[Any] | None:
    """Names of transformed columns, if the steps know them."""
    named = column_names(Z)
    if named is None:
        try:
            named = [str(name) for name in steps.get_feature_names_out()]
        except (AttributeError, ValueError):
            return None
    return named if len(named) == Z.shape[1] else None


def _as_fitted(last: RobustLinearClassifier, measured: MeasuredModel) -> MeasuredModel:
    """Measured as our model was fitted."""
    measured = replace(
        measured,
        norm=fitted_with(last).norm,
        kappa=fitted_with(last).kappa,
        costs=last.feature_costs_,
        categories=last.categories_,
        bounds=last.bounds_,
    )
    measured = replace(measured, space=measured.space + _stated(last))
    encoding = last.encoding_
    if encoding is None:
        return measured
    return replace(
        measured,
        X=matrix_of(last, measured.X),
        names=encoding.names,
        encoding=encoding,
        features=tuple(of_encoding(encoding)),
    )


def where_measured(model: RobustLinearClassifier) -> str:
    """Where one of our models, on its own, measured distance, in words."""
    return _GIVEN + _stated(model)


def _stated(last: RobustLinearClassifier) -> str:
    stated = {
        "feature costs": last.feature_costs_,
        "categories": last.categories_,
        "bounds": last.bounds_,
    }
    words = " and ".join(word for word, value in stated.items() if value is not None)
    return f", with the {words} of the fit" if words else ""


def _with_one_hot(measured: MeasuredModel, columns: FollowedColumns) -> MeasuredModel:
    """One-hot columns as categories: zeros and ones again, whatever scaled them."""
    groups: dict[Any, list[int]] = {}
    scale, shift = np.ones(len(columns)), np.zeros(len(columns))
    for j in range(len(columns)):
        column = columns.traced(j)
        if column is not None and column.origin.group is not None:
            groups.setdefault(column.origin.group, []).append(j)
            scale[j], shift[j] = column.scale, column.shift
    if not groups:
        return measured
    hot = np.array(sorted(j for group in groups.values() for j in group))
    Z: Any = measured.X
    if (scale != 1.0).any() or shift.any():
        zeros_and_ones = partial(_zeros_and_ones, hot=hot, scale=scale[hot], shift=shift[hot])
        Z = _transformed(Z, zeros_and_ones, len(columns))
    linear: Any = measured.linear
    moved = replace(
        linear, coef=linear.coef * scale, intercept=linear.intercept + linear.coef @ shift
    )
    many = f"{len(groups)} categories" if len(groups) > 1 else "1 category"
    return replace(
        measured,
        linear=moved,
        X=Z,
        categories=list(groups.values()),
        space=f"{measured.space}, with the one-hot columns of {many} as such",
    )


def _zeros_and_ones(Z: Any, hot: IndexArray, scale: FloatArray, shift: FloatArray) -> Any:
    """The samples with some columns as they were before they were scaled and shifted."""
    Z = sp.csc_array(Z) if sp.issparse(Z) else np.array(Z, dtype=np.float64)
    part = Z[:, hot].toarray() if sp.issparse(Z) else Z[:, hot]
    part = (part - shift) / scale
    whole = np.rint(part)
    if np.abs(part - whole).max(initial=0.0) > 1e-6:  # single precision, too
        raise ValueError(
            "columns of a OneHotEncoder must be zeros and ones before they are scaled, got "
            f"{part.flat[np.abs(part - whole).argmax()]:g}: a step is not what it says it is"
        )
    if not sp.issparse(Z):
        Z[:, hot] = whole
        return Z
    rest = np.setdiff1d(np.arange(Z.shape[1]), hot)
    order = np.argsort(np.concatenate([rest, hot]))
    return sp.csr_array(sp.hstack([Z[:, rest], sp.csc_array(whole)], format="csc")[:, order])
