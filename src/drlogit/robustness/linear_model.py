"""Any fitted linear classifier as ``(coef, intercept)`` in the units of the data it is given.

What comes after a fit (worst case, misclassification, audit) asks of a model only its score
``x·β + b`` and which label a positive score means.  :func:`as_linear` finds both: in our own
estimators and a :class:`~drlogit.Result`, in scikit-learn's linear classifiers, in searches
over them, and in pipelines, where the affine steps before the classifier are folded into β and
b (:mod:`.pipeline_columns`): with ``T(x) = A x + t``, the score ``w·T(x) + c`` has ``β = Aᵀ w`` and
``b = w·t + c``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import is_regressor
from sklearn.utils.validation import check_is_fitted

from ..problem.result import Result
from ..rows.arrays import FloatArray
from .pipeline_columns import follow_steps, n_inputs


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


@dataclass(frozen=True, eq=False)
class SoftmaxModel:
    """Scores ``coef x + intercept``, one for each class; ``classes`` None if only data can tell."""

    coef: FloatArray
    intercept: FloatArray
    classes: tuple[Any, ...] | None = None


#: Classifiers of scikit-learn whose probabilities are the softmax of their scores.
_SOFTMAX = ("LogisticRegression", "LogisticRegressionCV", "LinearDiscriminantAnalysis")


def as_softmax(model: Any) -> SoftmaxModel | None:
    """The softmax in a model of several classes, in the units of its data; None for others."""
    if isinstance(model, Result):
        several = np.ndim(model.coef) == 2
        return SoftmaxModel(model.coef, np.asarray(model.intercept)) if several else None
    if hasattr(model, "best_estimator_"):
        return as_softmax(model.best_estimator_)
    if hasattr(model, "steps"):
        last, before = as_softmax(model.steps[-1][1]), model.steps[:-1]
        if last is None:
            return None
        width = last.coef.shape[1]
        count = n_inputs(before, width)
        columns = follow_steps(before, count, width)
        parts = [columns.fold(*row, count) for row in zip(last.coef, last.intercept, strict=True)]
        coef, intercept = (np.array(part) for part in zip(*parts, strict=True))
        return SoftmaxModel(coef, intercept, last.classes)
    classes, kind = getattr(model, "classes_", ()), type(model)
    ours = hasattr(model, "results_") and len(model.results_) <= 1  # none: of no certificate
    theirs = (
        kind.__module__.startswith("sklearn.")
        and kind.__name__ in _SOFTMAX
        and getattr(model, "multi_class", "auto") != "ovr"
        and getattr(model, "solver", "") != "liblinear"
    )
    if len(classes) <= 2 or not (ours or theirs):
        return None
    return SoftmaxModel(
        np.asarray(model.coef_), np.asarray(model.intercept_), tuple(np.asarray(classes).tolist())
    )


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
        before, width = model.steps[:-1], last.coef.size
        count = n_inputs(before, width)
        columns = follow_steps(before, count, width)
        return LinearModel(*columns.fold(last.coef, last.intercept, count), last.classes)
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
