"""Radii with a meaning, of two classes or several."""

from __future__ import annotations

from typing import Any

from ..problem.classes import ClassProblem
from ..problem.problem import Problem
from .class_radii import epsilon_max_of_classes, suggested_radius_of_classes
from .critical_radius import epsilon_max_of
from .suggested_radius import suggested_radius_of


def largest_radius(problem: Problem | ClassProblem) -> float:
    """The radius from which on the model of a problem is constant; its own ε plays no role."""
    if isinstance(problem, ClassProblem):
        return epsilon_max_of_classes(problem)
    return epsilon_max_of(problem)


def suggested_radius(problem: Problem | ClassProblem, *options: Any) -> float:
    """The radius that allows for sampling error; the problem's own ε and κ play no role."""
    if isinstance(problem, ClassProblem):
        return suggested_radius_of_classes(problem, *options)
    return suggested_radius_of(problem, *options)
