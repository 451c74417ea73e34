"""From arrays and a ball to a problem that can be solved."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..problem.ball import BY_ROW, Ball, ColumnBall
from ..problem.classes import ClassProblem, pose_classes
from ..problem.features import Features, numbers
from ..problem.label_costs import flip_costs, is_stated_singly
from ..problem.problem import Problem, pose_problem
from ..problem.table_statistics import class_shares, deviations_in, names_of, total_weight
from ..rows.arrays import is_dask
from ..rows.building import build_rows, checked_rows, labels_of
from ..rows.checks import check_features, check_label_column, check_weights
from ..rows.interface import Rows
from .classes import several_classes


def pose(
    X: Any,
    y: Any,
    ball: Ball,
    *,
    fit_intercept: bool = True,
    sample_weight: Any = None,
    n_jobs: int | None = None,
) -> tuple[Problem | ClassProblem, Ball]:
    """The problem of arrays, and the ball in plain numbers; ``ValueError`` says what is wrong."""
    check_ball(ball)
    classes, codes = several_classes(y), None
    if classes is None:
        rows = build_rows(X, y, sample_weight, intercept=bool(fit_intercept), n_jobs=n_jobs)
    elif is_dask(X):
        raise ValueError(
            "several classes with Dask need an estimator: DRLogisticRegression().fit(X, y)"
        )
    else:
        X = check_features(X)
        codes = np.searchsorted(classes, check_label_column(y, X.shape[0]))
        weights = None if sample_weight is None else check_weights(sample_weight, codes.size)
        rows = checked_rows(
            X, np.ones(codes.size), weights, intercept=bool(fit_intercept), n_jobs=n_jobs
        )
    shares = None if is_dask(y) else class_shares(y, sample_weight)
    total = total_weight(sample_weight, rows.n_samples)
    names = names_of(X, rows.n_columns - int(rows.intercept))
    features = numbers(names, deviations_in(rows), total, shares)
    resolved = ball.resolved(features)
    columns = resolved.on(features)
    kappa = columns.kappa
    if codes is None and not is_stated_singly(kappa):
        kappa = flip_costs(kappa, labels_of(y))
    problem = posed_on(rows, columns, kappa, codes, classes, fit_intercept, names)
    return problem, as_fitted(resolved, features, problem, columns)


def posed_on(
    rows: Rows,
    columns: ColumnBall,
    kappa: Any,
    codes: Any,
    classes: Any,
    fit_intercept: bool,
    names: Any,
) -> Problem | ClassProblem:
    """The problem of rows; ``codes`` are the labels of several classes, None with two."""
    bounded = np.isfinite([columns.lower, columns.upper]).any()
    stated = {
        "epsilon": columns.epsilon,
        "kappa": kappa,
        "norm": columns.norm,
        "fit_intercept": fit_intercept,
        "feature_costs": columns.costs,
        "categories": columns.groups or None,
        "bounds": (columns.lower, columns.upper) if bounded else None,
        "names": None if isinstance(names, range) else names,
    }
    if codes is None:
        return pose_problem(lambda *, intercept: rows, **stated)
    return pose_classes(lambda *, intercept: rows, codes, classes, **stated)


def as_fitted(
    ball: Ball, features: Features, problem: Problem | ClassProblem, columns: ColumnBall
) -> Ball:
    """A resolved ball as a result has it.

    Groups say whether "none of these columns" is a category, and costs by row are not kept.
    """
    ball = ball.seen_with(features)
    if np.ndim(ball.kappa) == 1 or is_dask(ball.kappa):
        ball = ball.replace(kappa=BY_ROW)
    if problem.domains is None or not ball.categories:
        return ball
    own = len(columns.groups) - len(ball.categories)
    found = problem.domains.with_none_stated(columns.groups)[own:]
    stated = [
        [*group, None] if None in every and None not in group else group
        for group, every in zip(ball.categories, found, strict=True)
    ]
    return ball.replace(categories=stated)


def check_ball(ball: Any) -> None:
    """``TypeError`` for anything but a ball."""
    if not isinstance(ball, Ball):
        raise TypeError(f"ball must be a drlogit.Ball, such as Ball(epsilon=0.1), got {ball!r:.60}")
