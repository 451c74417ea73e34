"""Fits whose ball is stated in full, so that no default of the package decides what is measured.

A ball that is stated here has the ℓ1 norm, a cost of one for a unit of each column, ε = 0.01 and
κ = 1, unless it says else.  Tests state their balls here, too.
"""

from __future__ import annotations

from typing import Any

import drlogit
from drlogit.fitting.posing import pose
from drlogit.fitting.solving import solve_problem
from drlogit.problem.problem import Problem
from drlogit.problem.stopping import Stop

_USUAL = {"norm": "l1", "feature_costs": None, "epsilon": 0.01, "kappa": 1.0}
_OF_BALLS = (*_USUAL, "categories", "bounds")
_OF_PROBLEMS = ("fit_intercept", "sample_weight", "n_jobs")


def parts(options: dict[str, Any]) -> tuple[drlogit.Ball, dict[str, Any]]:
    """The ball that some options state, and the other options."""
    given = {name: options[name] for name in _OF_BALLS if options.get(name) is not None}
    rest = {name: value for name, value in options.items() if name not in _OF_BALLS}
    return drlogit.Ball(**{**_USUAL, **given}), rest


def problem(X: Any, y: Any, **options: Any) -> Problem:
    """The problem of two or several classes."""
    ball, rest = parts(options)
    return pose(X, y, ball, **rest)[0]


def solve(X: Any, y: Any, *, solver: Any = "auto", **options: Any) -> drlogit.Result:
    """``drlogit.solve``; with a ``solver``, the fit by one method of the engine."""
    ball, rest = parts(options)
    if solver == "auto":
        return drlogit.solve(X, y, ball, **rest)
    data = {name: rest.pop(name) for name in _OF_PROBLEMS if name in rest}
    stop = Stop(rest.pop("max_time", None), keeps=True)
    posed, _ = pose(X, y, ball, **data)
    return solve_problem(posed, solver=solver, stop=stop, **rest)


def epsilon_max(X: Any, y: Any, **options: Any) -> float:
    """The radius from which on the model is constant; the ball's own counts for nothing."""
    ball, rest = parts(options)
    return float(drlogit.epsilon_max(X, y, ball, **rest))


def regularization_path(X: Any, y: Any, epsilons: Any = None, **options: Any) -> Any:
    """The models of some radii."""
    ball, rest = parts(options)
    return drlogit.regularization_path(X, y, ball, epsilons, **rest)


def classifier(epsilon: float = 0.01, kappa: Any = 1.0, **options: Any) -> Any:
    """The estimator, not fitted."""
    ball, rest = parts({"epsilon": epsilon, "kappa": kappa, **options})
    return drlogit.DRLogisticRegression(ball=ball, **rest)


def search(epsilons: Any = 7, kappas: Any = 2, **options: Any) -> Any:
    """The search, not fitted; around a ball if more of it than the norm is stated."""
    if any(name in options for name in _OF_BALLS if name != "norm"):
        ball, options = parts(options)
        return drlogit.DRLogisticRegressionCV(epsilons, kappas, ball=ball, **options)
    norm = options.pop("norm", "l1")
    return drlogit.DRLogisticRegressionCV(epsilons, kappas, norm, **options)
