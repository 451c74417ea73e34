"""Any fitted linear classifier as ``(coef, intercept)`` in the units of the data it is given.

What comes after a fit (worst case, misclassification, audit) asks of a model only its score
``x·β + b`` and which label a positive score means.  :func:`as_linear` finds both: in our own
estimators and a :class:`~drlogit.Result`, in scikit-learn's linear classifiers, in searches
over them, and in pipelines, where the affine steps before the classifier are folded into β and
b: with ``T(x) = A x + t``, the score ``w·T(x) + c`` has ``β = Aᵀ w`` and ``b = w·t + c``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import is_regressor
from sklearn.utils.validation import check_is_fitted

from ..problem.result import Result
from ..rows.arrays import FloatArray
from .column_choice import chosen_columns


@dataclass(frozen=True, eq=False)
class LinearModel:
    """The score ``x·coef + intercept``.

    ``classes`` are the labels of negative and positive scores; None if only the data can tell,
    and then the label that sorts last is the positive one.
    """

    coef: FloatArray
    intercept: float
    classes: tuple[Any, Any] | None = None

    def __post_init__(self) -> None:
        if self.coef.ndim != 1 or not np.isfinite(self.coef).all():
            raise ValueError(
                f"coef must be a vector of finite numbers, got shape {self.coef.shape}"
                + ("" if self.coef.ndim != 1 else " with NaN or infinity")
            )
        if not np.isfinite(self.intercept):
            raise ValueError(f"intercept must be finite, got {self.intercept}")


def as_linear(model: Any, of_class: int | None = None) -> LinearModel:
    """The linear model in ``model``, or ``ValueError`` if there is none to be found.

    Parameters
    ----------
    model : estimator, Result, LinearModel or tuple (coef, intercept)
        Any fitted binary classifier with ``coef_`` and ``intercept_``, a search that ended with
        one (``best_estimator_``), or a pipeline of affine steps that ends in one.
    of_class : int, optional
        Of a model of several classes, the position of the one that is told from the rest.
    """
    if isinstance(model, LinearModel):
        return model
    if isinstance(model, Result):
        return LinearModel(model.coef, model.intercept)
    if isinstance(model, tuple):
        if len(model) != 2:
            raise ValueError(f"a plain model is (coef, intercept), got a tuple of {len(model)}")
        return LinearModel(_vector(model[0], "coef"), _scalar(model[1], "intercept"))
    if not hasattr(model, "fit") and not hasattr(model, "coef_"):
        raise ValueError(
            "model must be a fitted linear classifier, a Result or a tuple (coef, intercept), "
            f"got {type(model).__name__}"
        )
    return _of_estimator(model, of_class)


def _of_estimator(model: Any, of_class: int | None) -> LinearModel:
    if hasattr(model, "fit"):
        check_is_fitted(model)
    if hasattr(model, "best_estimator_"):
        return _of_estimator(model.best_estimator_, of_class)
    if hasattr(model, "steps"):
        last = _of_estimator(model.steps[-1][1], of_class)
        coef, intercept = _through_steps(model.steps[:-1], last.coef, last.intercept)
        return LinearModel(coef, intercept, last.classes)
    name = type(model).__name__
    classes = getattr(model, "classes_", None)
    if of_class is not None and classes is not None and len(classes) > 2:
        return _against_the_rest(model, classes, of_class)
    if not hasattr(model, "coef_"):
        raise ValueError(f"{name} has no coef_: a linear classifier is wanted")
    if is_regressor(model):
        raise ValueError(f"{name} predicts numbers, not labels: a linear classifier is wanted")
    if classes is not None and len(classes) != 2:
        raise ValueError(
            f"{name} was fitted on {len(classes)} classes; two are wanted. Ask about one class "
            "against the rest: model (coef_[k], intercept_[k]), labels y == classes_[k]"
        )
    return LinearModel(
        _vector(model.coef_, f"coef_ of {name}"),
        _scalar(getattr(model, "intercept_", 0.0), f"intercept_ of {name}"),
        None if classes is None else (classes[0], classes[1]),
    )


def _against_the_rest(model: Any, classes: Any, k: int) -> LinearModel:
    """The fit of one class against the rest, of models that are made of such fits."""
    name, pair = type(model).__name__, rest_and_class(classes[k])
    if hasattr(model, "estimators_") and len(model.estimators_) == len(classes):
        inner = _of_estimator(model.estimators_[k], None)
        return LinearModel(inner.coef, inner.intercept, pair)
    softmax = type(model).__module__.startswith("sklearn.") and "Logistic" in name
    if softmax or len(getattr(model, "coef_", ())) != len(classes):
        raise ValueError(
            f"{name} has scores for {len(classes)} classes that are not linear against the rest: "
            "audit OneVsRestClassifier(LogisticRegression()), or one class of it"
        )
    intercept = np.broadcast_to(getattr(model, "intercept_", 0.0), len(classes))[k]
    return LinearModel(
        _vector(model.coef_[k], f"coef_ of {name}"),
        _scalar(intercept, f"intercept_ of {name}"),
        pair,
    )


def rest_and_class(label: Any) -> tuple[str, str]:
    """What the two sides are called when one class is told from the rest."""
    return f"not {label}", str(label)


def _vector(values: Any, name: str) -> FloatArray:
    dense = values.toarray() if sp.issparse(values) else values
    try:
        array = np.array(dense, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must hold numbers, got {values!r:.80}") from None
    if array.ndim == 2 and array.shape[0] == 1:
        return np.asarray(array[0])
    if array.ndim != 1:
        raise ValueError(f"{name} must be a vector or a single row, got shape {array.shape}")
    return array


def _scalar(value: Any, name: str) -> float:
    array = np.asarray(value)
    if array.size != 1 or array.dtype.kind not in "fiu":
        raise ValueError(f"{name} must be one number, got {value!r:.80}")
    return float(array.reshape(()))


# --- the steps of a pipeline ----------------------------------------------------------------

#: ``(w, c)`` on a step's output → ``(β, b)`` on its input.
Affine = tuple[FloatArray, float]


def _through_steps(steps: list[tuple[str, Any]], coef: FloatArray, intercept: float) -> Affine:
    for name, step in reversed(steps):
        coef, intercept = _through_step(name, step, coef, intercept)
    return coef, intercept


def _through_step(name: str, step: Any, coef: FloatArray, intercept: float) -> Affine:
    if step is None or (isinstance(step, str) and step == "passthrough"):
        return coef, intercept
    if hasattr(step, "steps"):
        return _through_steps(step.steps, coef, intercept)
    for kind in type(step).__mro__:
        if kind.__module__.startswith("sklearn.") and kind.__name__ in _STEPS:
            found = _STEPS[kind.__name__](step, coef, intercept)
            if found is not None:
                return found
    raise ValueError(
        f"step {name!r} ({type(step).__name__}) is not an affine map that drlogit knows. Transform "
        "the data first and ask about the last step alone: model[-1] with model[:-1].transform(X)"
    )


def _standard_scaler(step: Any, coef: FloatArray, intercept: float) -> Affine:
    mean = step.mean_ if step.with_mean else None
    return _scaled(coef, intercept, mean, step.scale_)


def _robust_scaler(step: Any, coef: FloatArray, intercept: float) -> Affine:
    return _scaled(coef, intercept, step.center_, step.scale_)


def _max_abs_scaler(step: Any, coef: FloatArray, intercept: float) -> Affine | None:
    if getattr(step, "clip", False):
        return None
    return _scaled(coef, intercept, None, step.scale_)


def _scaled(coef: FloatArray, intercept: float, center: Any, scale: Any) -> Affine:
    """Through ``(x - center) / scale``."""
    if scale is not None:
        coef = coef / scale
    return coef, intercept - (0.0 if center is None else float(coef @ center))


def _min_max_scaler(step: Any, coef: FloatArray, intercept: float) -> Affine | None:
    if step.clip:
        return None
    return coef * step.scale_, intercept + float(coef @ step.min_)


def _pca(step: Any, coef: FloatArray, intercept: float) -> Affine:
    if step.whiten:
        coef = coef / np.sqrt(step.explained_variance_)
    return _scaled(coef @ step.components_, intercept, step.mean_, None)


def _projection(step: Any, coef: FloatArray, intercept: float) -> Affine:
    return np.asarray(step.components_.T @ coef), intercept


def _selector(step: Any, coef: FloatArray, intercept: float) -> Affine:
    kept = step.get_support()
    full = np.zeros(kept.size)
    full[kept] = coef
    return full, intercept


def _function(step: Any, coef: FloatArray, intercept: float) -> Affine | None:
    return (coef, intercept) if step.func is None else None


def _imputer(step: Any, coef: FloatArray, intercept: float) -> Affine | None:
    # The identity on rows without missing values, which are the only ones that a Problem takes.
    missing = isinstance(step.missing_values, float) and np.isnan(step.missing_values)
    if not missing or step.add_indicator or coef.size != step.n_features_in_:
        return None
    return coef, intercept


def _column_transformer(step: Any, coef: FloatArray, intercept: float) -> Affine:
    full = np.zeros(step.n_features_in_)
    for name, transformer, columns in step.transformers_:
        part = coef[step.output_indices_[name]]
        if part.size == 0:
            continue
        weight = (step.transformer_weights or {}).get(name, 1.0)
        inner, intercept = _through_step(name, transformer, weight * part, intercept)
        np.add.at(full, chosen_columns(step, columns), inner)
    return full, intercept


#: Steps by the name of their class, or of a base class, in scikit-learn.  By name, so that
#: none of them is imported by who does not use it.
_STEPS: dict[str, Callable[[Any, FloatArray, float], Affine | None]] = {
    "ColumnTransformer": _column_transformer,
    "FunctionTransformer": _function,
    "IncrementalPCA": _pca,
    "MaxAbsScaler": _max_abs_scaler,
    "MinMaxScaler": _min_max_scaler,
    "PCA": _pca,
    "BaseRandomProjection": _projection,
    "RobustScaler": _robust_scaler,
    "SelectorMixin": _selector,
    "SimpleImputer": _imputer,
    "StandardScaler": _standard_scaler,
    "TruncatedSVD": _projection,
}
