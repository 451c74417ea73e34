"""Any fitted linear classifier as ``(coef, intercept)`` in the units of the data it is given.

Audits need only the scores ``coef x + intercept`` of a model and the labels that they stand for.
:func:`as_linear` finds both in our own estimators, in a :class:`~drlogit.Result`, in scikit-learn's
linear classifiers and in searches over them.  For a pipeline it looks at the last step.
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
from ..rows.checks import as_numbers, check_label_column, check_labels


@dataclass(frozen=True, eq=False)
class LinearModel:
    """Scores ``coef x + intercept``: one score for two classes, one for each class of a softmax.

    ``classes`` are the labels.  The first of two has negative scores, the second positive ones.
    None means that the labels of the data, in sorted order, are the classes.
    """

    coef: FloatArray
    intercept: Any
    classes: tuple[Any, ...] | None = None

    @property
    def several(self) -> bool:
        """Whether it is a softmax of several classes."""
        return self.coef.ndim == 2


def as_linear(model: Any) -> LinearModel:
    """The linear model in an estimator, a Result or a tuple; ``ValueError`` if there is none."""
    if isinstance(model, Result):
        return LinearModel(model.coef, model.intercept)
    if isinstance(model, tuple):
        if len(model) != 2:
            raise ValueError(f"a plain model is (coef, intercept), got a tuple of {len(model)}")
        return _checked(*model, None, "")
    if not hasattr(model, "fit") and not hasattr(model, "coef_"):
        raise ValueError(
            "model must be a fitted linear classifier, a Result or a tuple (coef, intercept), "
            f"got {type(model).__name__}"
        )
    return _of_classifier(last_step(model))


def last_step(model: Any) -> Any:
    """The classifier at the end of pipelines and searches."""
    found = without_searches(model)
    return without_searches(found.steps[-1][1]) if hasattr(found, "steps") else found


def without_searches(model: Any) -> Any:
    """The best estimator of a search, or the model itself."""
    if hasattr(model, "fit"):
        check_is_fitted(model)
    while hasattr(model, "best_estimator_"):
        model = model.best_estimator_
    return model


def codes_of(linear: LinearModel, y: Any, n_samples: int) -> tuple[IndexArray, tuple[Any, ...]]:
    """Labels as positions among the classes of the model, or else of the data."""
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
        raise ValueError(f"{name} predicts numbers, not labels: only classifiers can be audited")
    if not hasattr(model, "coef_"):
        raise ValueError(
            f"{name} has no coef_: only linear models can be audited. Of one-vs-rest classifiers, "
            "audit estimators_[k] with the labels y == classes_[k]"
        )
    labels = None if classes is None else tuple(np.asarray(classes).tolist())
    return _checked(model.coef_, getattr(model, "intercept_", 0.0), labels, f"_ of {name}")


def _checked(coef: Any, intercept: Any, labels: tuple[Any, ...] | None, of: str) -> LinearModel:
    """The model, after its numbers and their shapes were checked."""
    values, offsets = (
        as_numbers(given.toarray() if sp.issparse(given) else given, f"{name}{of}")
        for given, name in ((coef, "coef"), (intercept, "intercept"))
    )
    if not np.isfinite(values).all() or not np.isfinite(offsets).all():
        raise ValueError(f"coef{of} and intercept{of} must be finite, got NaN or infinity")
    if labels is not None and len(labels) > 2:
        return LinearModel(values, offsets, labels)
    if values.ndim != 1 and values.shape[:-1] != (1,):
        raise ValueError(f"coef{of} must be a vector or a single row, got shape {values.shape}")
    if offsets.size != 1:
        raise ValueError(f"intercept{of} must be one number, got {intercept!r:.80}")
    return LinearModel(values.ravel(), float(offsets.ravel()[0]), labels)
