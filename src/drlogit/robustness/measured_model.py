"""In which space distance is measured, and a model and its samples there.

The *fitted* space is the one that the classifier itself was fitted in: for a pipeline, what its
last step sees; for a table, the encoded columns with their categories.  There an audit of a model
on its training data gives the number of the fit.  The *given* space is that of X as it was given,
into which the steps of a pipeline are folded (:func:`~.linear_model.as_linear`).

In the fitted space our own models are measured as they were fitted: norm, costs, categories and
bounds.  For others, the columns of a ``OneHotEncoder`` are categories.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ..estimators.robust_classifier import RobustLinearClassifier
from ..estimators.tables.encoding import Encoding
from ..estimators.training_data import matrix_of
from ..problem.label_costs import StatedKappa
from ..problem.problem import column_names
from ..problem.result import Result
from ..rows.arrays import BoolArray, FloatArray
from ..rows.row_blocks import RowBlocks
from .features import Feature, of_encoding, of_steps
from .linear_model import LinearModel, as_linear, last_step, without_searches
from .pipeline_columns import Column, follow_steps

_GIVEN = "in the units of X as given"

#: Says that a pipeline's one-hot columns are categories, though the fit took them for numbers.
ONE_HOT = "one-hot"


class FittedWith(NamedTuple):
    """The norm, κ and ε of a fit, and its outcome; None if the model does not know."""

    norm: str | None = None
    kappa: StatedKappa | None = None
    epsilon: float | None = None
    result: Result | None = None


def fitted_with(model: Any) -> FittedWith:
    """How our models were fitted, in pipelines and searches too."""
    last = last_step(model) if hasattr(model, "fit") else None
    if not isinstance(last, RobustLinearClassifier):
        return FittedWith()
    result = last.result_
    return FittedWith(last.norm, last.kappa_, float(last.epsilon_), result)


@dataclass(frozen=True, eq=False)
class MeasuredModel:
    """A linear model and samples in the space where distance is measured.

    ``costs``, ``categories`` and ``bounds`` are what is measured with where nobody says otherwise;
    None for what is not known.  ``space`` says where in words, ``of_fit`` which of them one of our
    fits stated, and ``features`` what is known of the columns.
    """

    linear: LinearModel
    X: Any
    space: str
    fitted: FittedWith
    costs: Any = None
    categories: Any = None
    bounds: Any = None
    names: list[Any] | None = None
    encoding: Encoding | None = None
    of_fit: tuple[str, ...] = ()
    features: tuple[Feature, ...] = ()


def measure(model: Any, X: Any, space: str, categories: Any = None) -> MeasuredModel:
    """The model and the samples in a space; ``ValueError`` if there is no way there."""
    if space not in ("fitted", "given"):
        raise ValueError(f"space must be 'fitted' or 'given', got {space!r}")
    found = without_searches(model)
    last = last_step(model)
    if space == "given":
        if getattr(found, "encoding_", None) is not None:
            raise ValueError(
                "the columns of this model's table have no distance before they are encoded: leave "
                "space at 'fitted'"
            )
        return MeasuredModel(as_linear(model), X, _GIVEN, fitted_with(last), names=column_names(X))
    columns: list[Column] = []
    if len(getattr(found, "steps", ())) > 1:
        measured, columns = _in_pipeline(found, last, X)
    else:
        linear, fitted = as_linear(last), fitted_with(last)
        measured = MeasuredModel(linear, X, _GIVEN, fitted, names=column_names(X))
    said = isinstance(categories, str) and categories == ONE_HOT
    if isinstance(last, RobustLinearClassifier):
        measured = _as_fitted(last, measured)
    else:
        said = said or categories is None
    return _with_one_hot(measured, columns) if said else measured


def _in_pipeline(pipeline: Any, last: Any, X: Any) -> tuple[MeasuredModel, list[Column]]:
    """Model and samples before the last step, and where its columns come from."""
    linear, before = as_linear(last), pipeline[:-1]
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
        fitted_with(last),
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
        costs=last.feature_costs_,
        categories=last.categories_,
        bounds=last.bounds_,
        of_fit=_stated(last),
    )
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
    return _GIVEN + with_the(_stated(model), "of the fit")


def with_the(words: Iterable[str], whose: str) -> str:
    """What is measured with, to be said after where."""
    listed = " and ".join(words)
    return f", with the {listed} {whose}" if listed else ""


def _stated(last: RobustLinearClassifier) -> tuple[str, ...]:
    stated = {
        "feature costs": last.feature_costs_,
        "categories": last.categories_,
        "bounds": last.bounds_,
    }
    return tuple(word for word, value in stated.items() if value is not None)


def _with_one_hot(measured: MeasuredModel, columns: list[Column]) -> MeasuredModel:
    """One-hot columns as categories: zeros and ones again, whatever scaled them."""
    groups: dict[Any, list[int]] = {}
    scale, shift = np.ones(len(columns)), np.zeros(len(columns))
    for j, column in enumerate(columns):
        if column.group is not None:
            groups.setdefault(column.group, []).append(j)
            scale[j], shift[j] = column.scale, column.shift
    if not groups:
        return measured
    Z: Any = measured.X
    if (scale != 1.0).any() or shift.any():
        hot = np.isin(np.arange(len(columns)), [j for group in groups.values() for j in group])
        zeros_and_ones = partial(_zeros_and_ones, hot=hot, scale=scale, shift=shift)
        Z = _transformed(Z, zeros_and_ones, len(columns))
    linear = measured.linear
    many = f"{len(groups)} categories" if len(groups) > 1 else "1 category"
    return replace(
        measured,
        linear=replace(
            linear, coef=linear.coef * scale, intercept=linear.intercept + linear.coef @ shift
        ),
        X=Z,
        categories=list(groups.values()),
        space=f"{measured.space}, with the one-hot columns of {many} as such",
    )


def _zeros_and_ones(Z: Any, hot: BoolArray, scale: FloatArray, shift: FloatArray) -> Any:
    """The samples with some columns as they were before they were scaled and shifted."""
    if sp.issparse(Z):  # what is sparse was not shifted
        Z = sp.csr_array(Z, dtype=np.float64, copy=True)
        some = hot[Z.indices]
        part = Z.data[some] / scale[Z.indices[some]]
        Z.data[some] = whole = np.rint(part)
    else:
        Z = np.array(Z, dtype=np.float64)
        part = (Z[:, hot] - shift[hot]) / scale[hot]
        Z[:, hot] = whole = np.rint(part)
    if np.abs(part - whole).max(initial=0.0) > 1e-6:  # single precision, too
        raise ValueError(
            "columns of a OneHotEncoder must be zeros and ones before they are scaled, got "
            f"{part.flat[np.abs(part - whole).argmax()]:g}: a step is not what it says it is"
        )
    return Z
