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
from ..rows.building import rows_of
from ..rows.checks import check_features, check_label_column, check_two_classes, find_classes


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
    intercept, shares = bool(fit_intercept), None
    matrix = X if is_dask(X) else check_features(X)
    if is_dask(y):
        from ..rows.dask_collections import encode  # an optional package

        classes, codes = encode(y)
    else:
        labels = check_label_column(y, len(y) if is_dask(X) else matrix.shape[0])
        classes = find_classes(labels)
        codes = np.searchsorted(classes, labels)
    if classes.size < 2:
        check_two_classes(classes)
    rows = rows_of(matrix, codes, classes.size, sample_weight, intercept=intercept, n_jobs=n_jobs)
    if not (is_dask(X) or is_dask(codes)):
        totals = np.bincount(codes, sample_weight)
        shares = dict(zip(classes.tolist(), (totals / totals.sum()).tolist(), strict=True))
    total = total_weight(sample_weight, rows.n_samples)
    names = names_of(X, rows.n_columns - int(intercept))
    features = numbers(names, deviations_in(rows), total, shares)
    resolved = ball.resolved(features)
    codes = codes if classes.size > 2 else None
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
