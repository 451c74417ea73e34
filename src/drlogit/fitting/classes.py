"""The problem of several classes, from arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..problem.classes import ClassProblem, pose_classes
from ..problem.problem import column_names
from ..rows.arrays import is_dask
from ..rows.building import checked_rows
from ..rows.checks import check_features, check_label_column, check_weights, find_classes


def several_classes(y: Any) -> np.ndarray[Any, Any] | None:
    """The labels, if there are more than two kinds, in memory; None otherwise."""
    if is_dask(y) or np.ndim(y) != 1:
        return None
    try:
        classes = find_classes(np.asarray(y))
    except ValueError:
        return None  # refused where two classes are wanted
    return classes if classes.size > 2 else None


def build_class_problem(
    X: Any,
    y: Any,
    *,
    classes: np.ndarray[Any, Any],
    sample_weight: Any = None,
    n_jobs: int | None = None,
    **model: Any,
) -> ClassProblem:
    """The problem of arrays; ``ValueError`` says what is wrong."""
    if is_dask(X):
        raise ValueError(
            "several classes with Dask need an estimator: DRLogisticRegression().fit(X, y)"
        )
    model["names"] = column_names(X)
    X = check_features(X)
    codes = np.searchsorted(classes, check_label_column(y, X.shape[0]))
    weights = None if sample_weight is None else check_weights(sample_weight, codes.size)

    def make_rows(*, intercept: bool) -> Any:
        ones = np.ones(codes.size)
        return checked_rows(X, ones, weights, intercept=intercept, n_jobs=n_jobs)

    return pose_classes(make_rows, codes, classes, **model)
