"""Choosing ε: the radius at which the model is constant, and the path below it.

These functions accept what ``fit`` accepts, tables included.  An estimator checks and encodes the
data; the computations are in :mod:`drlogit.fitting`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning

from ..fitting.critical_radius import largest_radius
from ..fitting.paths import (
    check_count,
    check_radii,
    radii_below,
    solve_radii,
    warn_about_gaps,
)
from ..fitting.posing import check_ball
from ..problem.ball import Ball
from ..problem.problem import Problem
from ..problem.result import Status
from ..problem.stopping import Stop
from ..rows.arrays import FloatArray, refuse_elsewhere
from ..rows.warn import warn
from .classifier import DRLogisticRegression
from .training_data import TrainingData, training_data


def epsilon_max(
    X: Any,
    y: ArrayLike,
    ball: Ball,
    *,
    sample_weight: ArrayLike | None = None,
    **parameters: Any,
) -> float:
    """The smallest radius at which the robust model is constant: all penalised coefficients are 0.

    With two classes, ε_max is at most ``kappa / 2``, because an adversary that flips half of the
    labels leaves nothing to learn.  If flips of one class have several costs, the model may also be
    constant at some smaller radii.

    Parameters
    ----------
    X, y, sample_weight
        As in :func:`drlogit.solve`; X may be a table.
    ball : Ball
        What may be wrong; its ``epsilon`` counts for nothing.
    **parameters
        Parameters of :class:`drlogit.DRLogisticRegression`, such as ``fit_intercept``.

    Returns
    -------
    float
        ε_max, to four digits.  With more than 4,000 rows and 4,000 columns, two classes and one
        finite κ it is an upper bound, from which on the model is constant, too.

    Examples
    --------
    >>> import drlogit
    >>> X, y = drlogit.datasets.make_synthetic(200, 5, random_state=0)
    >>> drlogit.epsilon_max(X, y, drlogit.Ball(kappa=0.1)) <= 0.05
    True
    """
    _, _, problem = _posed(X, y, sample_weight, ball, parameters)
    return largest_radius(problem)


@dataclass(frozen=True, eq=False)
class RegularizationPath:
    """Models for a range of radii, one entry or row for each, the largest radius first.

    Attributes
    ----------
    epsilons : array of shape (n_epsilons,)
        Radii ε, descending.
    coefs : array of shape (n_epsilons, n_features), or (n_epsilons, n_classes, n_features)
        Coefficients β, with one row per class if there are more than two.
    intercepts : array of shape (n_epsilons,) or (n_epsilons, n_classes)
        Intercepts b.
    lambdas : array of shape (n_epsilons,)
        Multipliers λ.
    objectives, gaps : arrays of shape (n_epsilons,)
        Worst-case expected log-losses and certified duality gaps, in nats.
    n_iters : array of shape (n_epsilons,)
        Iterations of the solver.
    ball : Ball
        What the models share, in plain numbers; its ``epsilon`` counts for nothing.
    epsilon_max : float
        The smallest radius at which the model is constant, or an upper bound of it where a matrix
        costs much more than products with X (:func:`~drlogit.epsilon_max` returns it exactly).
    feature_names : list of str or None
        Names of the columns of ``coefs``; for a table, those of its encoding.
    """

    epsilons: FloatArray
    coefs: FloatArray
    intercepts: FloatArray
    lambdas: FloatArray
    objectives: FloatArray
    gaps: FloatArray
    n_iters: np.ndarray[Any, np.dtype[np.int64]]
    ball: Ball
    epsilon_max: float
    feature_names: list[str] | None = None


def regularization_path(
    X: Any,
    y: ArrayLike,
    ball: Ball,
    epsilons: ArrayLike | None = None,
    *,
    n_epsilons: int = 30,
    min_fraction: float = 1e-3,
    sample_weight: ArrayLike | None = None,
    **parameters: Any,
) -> RegularizationPath:
    """Fit the model for a range of radii, from the one that makes it constant downwards.

    Parameters
    ----------
    X : array, sparse matrix or data frame of shape (n_samples, n_features)
        Features.
    y : array of shape (n_samples,)
        Labels; of two classes, the one that sorts last is the positive class.
    ball : Ball
        What may be wrong; its ``epsilon`` counts for nothing.
    epsilons : array, optional
        Radii, in any order; by default ``n_epsilons`` of them, evenly spaced on a logarithmic
        scale from :func:`~drlogit.epsilon_max` down to ``min_fraction`` of it.
    n_epsilons : int
        Number of radii, if they are not given.
    min_fraction : float
        The smallest radius as a fraction of the largest, if radii are not given.
    sample_weight : array of shape (n_samples,), optional
        Non-negative weights, which count as repetitions.
    **parameters
        Parameters of :class:`~drlogit.DRLogisticRegression`, such as ``tol``.
        ``max_time`` limits the seconds of all fits together.  The fit at the limit returns its best
        certified model, and no further radius is fitted.

    Returns
    -------
    RegularizationPath
        Radii in descending order with their models and certificates.

    Warns
    -----
    sklearn.exceptions.ConvergenceWarning
        Some gaps are larger than ``tol``, or some radii were not reached within ``max_time``.

    Examples
    --------
    >>> import drlogit
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import StandardScaler
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = StandardScaler().fit_transform(X)
    >>> path = drlogit.regularization_path(X, y, drlogit.Ball(kappa=1.0), n_epsilons=5)
    >>> path.coefs.shape
    (5, 30)
    >>> bool((path.gaps <= 1e-6).all())
    True
    """
    refuse_elsewhere("a path", X, y)
    learner, data, problem = _posed(X, y, sample_weight, ball, parameters)
    stop = Stop(learner.max_time)
    limit = largest_radius(problem, exact=False)
    if epsilons is None:
        radii = radii_below(limit, check_count(n_epsilons, "n_epsilons"), min_fraction)
    else:
        radii = check_radii(epsilons)
    fits = solve_radii(problem, radii, tol=learner.tol, max_iter=learner.max_iter, stop=stop)
    results = list(fits)
    radii, left = radii[: len(results)], radii.size - len(results)
    models = [
        data.reported(result.coef, result.intercept, radius)
        for radius, result in zip(radii.tolist(), results, strict=True)
    ]
    limits = (each.status for each in results if "MAX" in each.status.name)
    gaps = [result.gap for result in results]
    warn_about_gaps("regularization_path", gaps, learner.tol, next(limits, Status.STALLED))
    if left:
        warn(
            f"regularization_path reached {radii.size} of {radii.size + left} radii within "
            f"max_time={learner.max_time:g} seconds.",
            ConvergenceWarning,
        )
    return RegularizationPath(
        epsilons=radii,
        coefs=np.array([coef for coef, _ in models]),
        intercepts=np.array([intercept for _, intercept in models]),
        lambdas=np.array([result.lam for result in results]),
        objectives=np.array([result.objective for result in results]),
        gaps=np.array(gaps),
        n_iters=np.array([result.n_iter for result in results]),
        ball=data.ball,
        epsilon_max=limit,
        feature_names=None if isinstance(data.names, range) else [*map(str, data.names)],
    )


def _posed(
    X: Any, y: Any, sample_weight: Any, ball: Ball, parameters: dict[str, Any]
) -> tuple[DRLogisticRegression, TrainingData, Problem]:
    """An estimator, the checked samples, and the problem that it would solve, with ε = 1."""
    check_ball(ball)
    learner = DRLogisticRegression(**parameters)
    data = training_data(learner, X, y, sample_weight, ball, learner.n_jobs)
    return learner, data, data.problem.with_radius(1.0)
