"""Radii with a meaning, of two classes or several."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..engine.classes import null_model_of_classes
from ..problem.classes import ClassProblem
from ..problem.problem import Problem
from .class_radii import epsilon_max_of_classes, suggested_radius_of_classes
from .critical_radius import epsilon_max_of
from .null_model import null_model
from .suggested_radius import suggested_radius_of


def largest_radius(problem: Problem | ClassProblem) -> float:
    """The radius from which on the model of a problem is constant; its own ε plays no role."""
    if isinstance(problem, ClassProblem):
        return epsilon_max_of_classes(problem)
    return epsilon_max_of(problem)


def constant_model(problem: Problem | ClassProblem) -> tuple[Any, Any] | None:
    """Coefficients and intercept of the model from that radius on, at the problem's own ε.

    None where a complete group stands for the intercept: there it takes a fit.
    """
    if isinstance(problem, ClassProblem):
        none = np.zeros((problem.n_classes, problem.costs.size))
        return problem.split(null_model_of_classes(problem) if problem.free.any() else none)
    domains = problem.domains
    if domains is not None and not (problem.fit_intercept or domains.with_none.all()):
        return None
    return problem.split(null_model(problem.as_numbers))


def suggested_radius(problem: Problem | ClassProblem, *options: Any) -> float:
    """The radius that allows for sampling error; the problem's own ε and κ play no role."""
    if isinstance(problem, ClassProblem):
        return suggested_radius_of_classes(problem, *options)
    return suggested_radius_of(problem, *options)
