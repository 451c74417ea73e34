"""From samples and a ball to a problem that can be solved."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..problem.ball import Ball
from ..problem.features import Feature, Features, numbers
from ..problem.label_costs import BY_ROW
from ..problem.problem import Problem, pose_problem
from ..problem.table_statistics import deviations_in, names_of, shares_of, total_weight
from ..rows.arrays import IndexArray, is_dask
from ..rows.building import coded, rows_of
from ..rows.checks import check_features


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
    matrix = X if is_dask(X) else check_features(X)
    weights, names = (sample_weight, sample_weight), names_of(X, matrix.shape[-1])
    settings: dict[str, Any] = {"fit_intercept": fit_intercept, "n_jobs": n_jobs}
    return pose_samples(matrix, *coded(y, matrix), *weights, ball, names=names, **settings)


def pose_samples(
    matrix: Any,
    classes: np.ndarray[Any, Any],
    codes: IndexArray,
    given: Any,
    weights: Any,
    ball: Ball,
    *,
    names: Any,
    fit_intercept: bool,
    n_jobs: int | None = None,
    encoded: tuple[Feature, ...] | None = None,
    seen: Any = None,
) -> tuple[Problem, Ball]:
    """The problem of checked samples, and the ball in plain numbers.

    The ``weights`` are those ``given``, which count as repetitions, perhaps times weights of the
    classes.  The ``names`` are those of the columns of the matrix, which are numbers unless a table
    was ``encoded``; what was ``seen`` of its columns is kept.
    """
    if not isinstance(fit_intercept, bool | np.bool_):
        raise ValueError(f"fit_intercept must be True or False, got {fit_intercept!r}")
    place: dict[str, Any] = {"intercept": bool(fit_intercept), "n_jobs": n_jobs}
    rows, shares = rows_of(matrix, codes, classes.size, weights, **place), None
    if not (is_dask(codes) or is_dask(given)):
        shares = shares_of(classes, codes, given)
    known = total_weight(given, rows.n_samples), shares, seen
    if encoded is not None:
        features = Features(encoded, matrix.shape[1], *known)
    else:  # deviations are those of the table as it is
        own = rows if weights is given else rows_of(matrix, codes, classes.size, given, **place)
        features = numbers(names, deviations_in(own), *known)
    ball, several = ball.resolved(features), codes if classes.size > 2 else None
    problem = pose_problem(rows, ball.on(features), classes=classes, codes=several, names=names)
    return problem, as_fitted(ball, features, problem)


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
