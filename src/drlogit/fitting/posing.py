"""From arrays and a ball to a problem that can be solved."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..problem.ball import BY_ROW, Ball
from ..problem.features import Features, numbers
from ..problem.label_costs import is_stated_singly
from ..problem.problem import Problem, pose_problem
from ..problem.table_statistics import class_shares, deviations_in, names_of, total_weight
from ..rows.arrays import is_dask
from ..rows.building import build_rows, checked_rows, labels_of
from ..rows.checks import check_features, check_label_column, check_weights, find_classes


def pose(
    X: Any,
    y: Any,
    ball: Ball,
    *,
    fit_intercept: bool = True,
    sample_weight: Any = None,
    n_jobs: int | None = None,
) -> tuple[Problem, Ball]:
    """The problem of arrays, and the ball in plain numbers; ``ValueError`` says what is wrong."""
    check_ball(ball)
    if not isinstance(fit_intercept, bool | np.bool_):
        raise ValueError(f"fit_intercept must be True or False, got {fit_intercept!r}")
    fit_intercept = bool(fit_intercept)
    classes, codes = several_classes(y), None
    if classes is None:
        rows = build_rows(X, y, sample_weight, intercept=fit_intercept, n_jobs=n_jobs)
    elif is_dask(X):
        raise ValueError(
            "several classes with Dask need an estimator: DRLogisticRegression().fit(X, y)"
        )
    else:
        X = check_features(X)
        codes = np.searchsorted(classes, check_label_column(y, X.shape[0]))
        weights = None if sample_weight is None else check_weights(sample_weight, codes.size)
        ones = np.ones(codes.size)
        rows = checked_rows(X, ones, weights, intercept=fit_intercept, n_jobs=n_jobs)
    shares = None if is_dask(y) else class_shares(y, sample_weight)
    total = total_weight(sample_weight, rows.n_samples)
    names = names_of(X, rows.n_columns - int(rows.intercept))
    features = numbers(names, deviations_in(rows), total, shares)
    resolved = ball.resolved(features)
    columns = resolved.on(features)
    if classes is None and not is_stated_singly(columns.kappa):
        classes = labels_of(y)
    problem = pose_problem(rows, columns, classes=classes, codes=codes, names=names)
    return problem, as_fitted(resolved, features, problem)


def several_classes(y: Any) -> np.ndarray[Any, Any] | None:
    """The labels, if there are more than two kinds, in memory; None otherwise."""
    if is_dask(y) or np.ndim(y) != 1:
        return None
    try:
        classes = find_classes(np.asarray(y))
    except ValueError:
        return None  # refused where two classes are wanted
    return classes if classes.size > 2 else None


def as_fitted(ball: Ball, features: Features, problem: Problem) -> Ball:
    """A resolved ball as a result has it.

    Groups say whether "none of these columns" is a category, and costs by row are not kept.
    """
    ball = ball.seen_with(features)
    if np.ndim(ball.kappa) == 1 or is_dask(ball.kappa):
        ball = ball.replace(kappa=BY_ROW)
    if not ball.categories:
        return ball
    found = problem.ball.groups[-len(ball.categories) :]
    stated = [
        [*group, None] if None in every and None not in group else group
        for group, every in zip(ball.categories, found, strict=True)
    ]
    return ball.replace(categories=stated)


def check_ball(ball: Any) -> None:
    """``TypeError`` for anything but a ball."""
    if not isinstance(ball, Ball):
        raise TypeError(f"ball must be a drlogit.Ball, such as Ball(epsilon=0.1), got {ball!r:.60}")
