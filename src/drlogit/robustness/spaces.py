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

from ..estimators.robust_classifier import RobustLinearClassifier
from ..estimators.tables.encoding import Encoding
from ..problem.problem import column_names
from ..rows.arrays import FloatArray, IndexArray
from ..rows.row_blocks import RowBlocks
from .linear_model import LinearModel, as_linear
from .one_hot_columns import Columns, check_encoders, follow_steps

_GIVEN = "in the units of X as given"

SPACES = ("fitted", "given")

#: Says that a pipeline's one-hot columns are categories, though the fit took them for numbers.
ONE_HOT = "one-hot"


@dataclass(frozen=True, eq=False)
class Placed:
    """A linear model and samples in the space where distance is measured.

    ``norm``, ``kappa``, ``costs``, ``categories`` and ``bounds`` are what is measured with where
    nobody says otherwise; None for what is not known.  ``space`` says it in words.
    """

    linear: LinearModel
    X: Any
    space: str
    norm: str | None = None
    kappa: float | None = None
    costs: Any = None
    categories: Any = None
    bounds: Any = None
    names: list[Any] | None = None
    encoding: Encoding | None = None


def place(model: Any, X: Any, space: str, categories: Any = None) -> Placed:
    """The model and the samples in a space; ``ValueError`` if there is no way there."""
    if space not in SPACES:
        raise ValueError(f"space must be 'fitted' or 'given', got {space!r}")
    found = _without_searches(model)
    steps = list(getattr(found, "steps", []))
    for name, step in steps[:-1]:
        check_encoders(name, step)
    if space == "given":
        return _given(model, found, X)
    last = _without_searches(steps[-1][1]) if steps else found
    placed = _in_pipeline(found, last, X) if len(steps) > 1 else _alone(last, X)
    if isinstance(last, RobustLinearClassifier):
        placed = _as_fitted(last, placed)
        if not (isinstance(categories, str) and categories == ONE_HOT):
            return placed
    if len(steps) > 1 and (categories is None or isinstance(categories, str)):
        width = placed.X.shape[1]
        placed = _with_one_hot(placed, follow_steps("", steps[:-1], None, width))
    return placed


class FittedWith(NamedTuple):
    """The norm and κ of a fit; None if the model does not know."""

    norm: str | None
    kappa: float | None


def fitted_with(model: Any) -> FittedWith:
    """How our models were fitted, in pipelines and searches too."""
    found = _without_searches(model)
    last = _without_searches(found.steps[-1][1]) if hasattr(found, "steps") else found
    if not isinstance(last, RobustLinearClassifier):
        return FittedWith(None, None)
    return FittedWith(last.norm, getattr(last, "kappa_", None) or getattr(last, "kappa", None))


def _without_searches(model: Any) -> Any:
    """The estimator that a search ended with."""
    if hasattr(model, "fit"):
        check_is_fitted(model)
    while hasattr(model, "best_estimator_"):
        model = model.best_estimator_
    return model


def _given(model: Any, found: Any, X: Any) -> Placed:
    if getattr(found, "encoding_", None) is not None:
        raise ValueError(
            "the columns of this model's table have no distance before they are encoded: leave "
            "space at 'fitted'"
        )
    return Placed(as_linear(model), X, _GIVEN, names=column_names(X))


def _alone(last: Any, X: Any) -> Placed:
    return Placed(as_linear(last), X, _GIVEN, names=column_names(X))


def _in_pipeline(pipeline: Any, last: Any, X: Any) -> Placed:
    linear = as_linear(last)
    before = pipeline[:-1]
    Z = _transformed(X, before.transform, linear.coef.size)
    named = [step for _, step in before.steps if step is not None and not isinstance(step, str)]
    kinds = ", ".join(type(step).__name__ for step in named)
    after = f", after {kinds}" if kinds else ""
    return Placed(
        linear,
        Z,
        f"in the space in which {type(last).__name__} was fitted{after}",
        names=_names_after(before, Z),
    )


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


def _as_fitted(last: RobustLinearClassifier, placed: Placed) -> Placed:
    """Measured as our model was fitted."""
    placed = replace(
        placed,
        norm=fitted_with(last).norm,
        kappa=fitted_with(last).kappa,
        costs=last.feature_costs_,
        categories=last.categories_,
        bounds=last.bounds_,
    )
    placed = replace(placed, space=placed.space + _stated(last))
    encoding = last.encoding_
    if encoding is None:
        return placed
    return replace(placed, X=last._as_matrix(placed.X), names=encoding.names, encoding=encoding)


def space_of(model: RobustLinearClassifier) -> str:
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


def _with_one_hot(placed: Placed, columns: Columns) -> Placed:
    """One-hot columns as categories: zeros and ones again, whatever scaled them."""
    if columns is None or not any(columns):
        return placed
    groups: dict[Any, list[int]] = {}
    scale, shift = np.ones(len(columns)), np.zeros(len(columns))
    for j, column in enumerate(columns):
        if column is not None:
            groups.setdefault(column.group, []).append(j)
            scale[j], shift[j] = column.scale, column.shift
    hot = np.array(sorted(j for group in groups.values() for j in group))
    Z: Any = placed.X
    if (scale != 1.0).any() or shift.any():
        zeros_and_ones = partial(_zeros_and_ones, hot=hot, scale=scale[hot], shift=shift[hot])
        Z = _transformed(Z, zeros_and_ones, len(columns))
    coef = placed.linear.coef * scale
    intercept = placed.linear.intercept + float(placed.linear.coef @ shift)
    many = f"{len(groups)} categories" if len(groups) > 1 else "1 category"
    return replace(
        placed,
        linear=LinearModel(coef, intercept, placed.linear.classes),
        X=Z,
        categories=list(groups.values()),
        space=f"{placed.space}, with the one-hot columns of {many} as such",
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
