"""From arrays and a ball to a problem that can be solved."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..problem.ball import Ball
from ..problem.features import Features, numbers
from ..problem.label_costs import BY_ROW
from ..problem.problem import Problem, pose_problem
from ..problem.table_statistics import deviations_in, names_of, total_weight
from ..rows.arrays import is_dask
from ..rows.building import build_rows, checked_rows, labels_of, of_both_classes
from ..rows.checks import (
    check_features,
    check_label_column,
    check_two_classes,
    check_weights,
    find_classes,
    signs_of,
)


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
    intercept = bool(fit_intercept)
    codes = shares = None
    if is_dask(X):
        rows = build_rows(X, y, sample_weight, intercept=intercept)
        classes = labels_of(y)
    else:
        matrix = check_features(X)
        labels = check_label_column(y, matrix.shape[0])
        classes = find_classes(labels)
        weights = None if sample_weight is None else check_weights(sample_weight, labels.size)
        if classes.size > 2:
            codes, signs = np.searchsorted(classes, labels), np.ones(labels.size)
        else:
            check_two_classes(classes)
            signs = signs_of(labels, classes[1])
        rows = checked_rows(matrix, signs, weights, intercept=intercept, n_jobs=n_jobs)
        if codes is None:
            totals = rows.totals.classes
            rows = rows if weights is None else of_both_classes(rows)
        else:
            totals = np.bincount(codes, weights) / (codes.size if weights is None else 1.0)
        shares = dict(zip(classes.tolist(), totals.tolist(), strict=True))
    total = total_weight(sample_weight, rows.n_samples)
    names = names_of(X, rows.n_columns - int(intercept))
    features = numbers(names, deviations_in(rows), total, shares)
    resolved = ball.resolved(features)
    problem = pose_problem(rows, resolved.on(features), classes=classes, codes=codes, names=names)
    return problem, as_fitted(resolved, features, problem)


def as_fitted(ball: Ball, features: Features, problem: Problem) -> Ball:
    """A resolved ball as a result has it.

    Groups say whether "none of these columns" is a category, and costs by row are not kept.
    """
    if ball.features is not features:
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
