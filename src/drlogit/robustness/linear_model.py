"""Any fitted linear classifier as ``(coef, intercept)`` in the units of the data it is given.

What comes after a fit (worst case, misclassification, audit) asks of a model only its scores
``coef x + intercept`` and which labels they mean.  :func:`as_linear` finds both: in our own
estimators and a :class:`~drlogit.Result`, in scikit-learn's linear classifiers, and in searches
over them; of a pipeline in its last step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import is_regressor
from sklearn.utils.validation import check_is_fitted

from ..problem.result import Result
from ..rows.arrays import FloatArray, IndexArray
from ..rows.checks import check_label_column, check_labels

#: Classifiers of scikit-learn whose probabilities are the softmax of their scores.
_SOFTMAX = ("LogisticRegression", "LogisticRegressionCV", "LinearDiscriminantAnalysis")


@dataclass(frozen=True, eq=False)
class LinearModel:
    """Scores ``coef x + intercept``: one of two classes, or of a softmax one for each class.

    ``classes`` are the labels, of two those of negative and positive scores; None if only the data
    can tell, and then they are in the order in which they sort.
    """

    coef: FloatArray
    intercept: Any
    classes: tuple[Any, ...] | None = None

    def __post_init__(self) -> None:
        if not np.isfinite(self.coef).all():
            raise ValueError(
                f"coef must hold finite numbers, got shape {self.coef.shape} with NaN or infinity"
            )
        if not np.isfinite(self.intercept).all():
            raise ValueError(f"intercept must be finite, got {self.intercept}")

    @property
    def several(self) -> bool:
        """Whether it is a softmax of several classes."""
        return self.coef.ndim == 2


def as_linear(model: Any) -> LinearModel:
    """The linear model in ``model``, or ``ValueError`` if there is none to be found.

    Parameters
    ----------
    model : estimator, Result, LinearModel or tuple (coef, intercept)
        Any fitted binary classifier with ``coef_`` and ``intercept_``, a softmax of several
        classes, a search that ended with one (``best_estimator_``), or a pipeline that ends in one.
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
    return _of_classifier(last_step(model))


def last_step(model: Any) -> Any:
    """The classifier itself, in pipelines and searches."""
    found = without_searches(model)
    return without_searches(found.steps[-1][1]) if hasattr(found, "steps") else found


def without_searches(model: Any) -> Any:
    """The estimator that a search ended with."""
    if hasattr(model, "fit"):
        check_is_fitted(model)
    while hasattr(model, "best_estimator_"):
        model = model.best_estimator_
    return model


def codes_of(linear: LinearModel, y: Any, n_samples: int) -> tuple[IndexArray, tuple[Any, ...]]:
    """Labels as positions among the classes, those of the model if it knows them."""
    labels = check_label_column(y, n_samples)
    if linear.classes is None and not linear.several:
        check_labels(y, n_samples)  # two kinds, or it says so
    known = np.unique(labels) if linear.classes is None else np.asarray(linear.classes)
    matches = np.column_stack([np.asarray(labels == label, dtype=bool) for label in known])
    unknown = ~matches.any(axis=1)
    if unknown.any():
        names = " or ".join(repr(label) for label in known.tolist()[:8])
        found = labels[unknown][:1].tolist()[0]
        raise ValueError(f"y must hold labels of the model, {names}, got {found!r}")
    return matches.argmax(axis=1), tuple(known.tolist())


def _of_classifier(model: Any) -> LinearModel:
    name, classes = type(model).__name__, getattr(model, "classes_", None)
    if is_regressor(model):
        raise ValueError(f"{name} predicts numbers, not labels: a linear classifier is wanted")
    labels = None if classes is None else tuple(classes)
    if labels is not None and len(labels) > 2:
        if not _is_softmax(model):
            raise ValueError(
                f"{name} was fitted on {len(labels)} classes and is no softmax; two are wanted. "
                "Ask about one class against the rest: model (coef_[k], intercept_[k]) or "
                "estimators_[k], labels y == classes_[k]"
            )
        labels = tuple(np.asarray(classes).tolist())
        return LinearModel(np.asarray(model.coef_), np.asarray(model.intercept_), labels)
    if not hasattr(model, "coef_"):
        raise ValueError(f"{name} has no coef_: a linear classifier is wanted")
    return LinearModel(
        _vector(model.coef_, f"coef_ of {name}"),
        _scalar(getattr(model, "intercept_", 0.0), f"intercept_ of {name}"),
        labels,
    )


def _is_softmax(model: Any) -> bool:
    kind = type(model)
    ours = hasattr(model, "result_")
    return ours or (
        kind.__module__.startswith("sklearn.")
        and kind.__name__ in _SOFTMAX
        and getattr(model, "multi_class", "auto") != "ovr"
        and getattr(model, "solver", "") != "liblinear"
    )


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
