"""The coordinates ``(β, b, low, high)``: which of them move, and how a constant moves between them.

A group may be shifted against the intercept, or against another group, without changing any
score: ``low`` is held at zero where that is so.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...problem.domains import Domains
from ...problem.pieces import width
from ...problem.problem import Problem
from ...problem.worst_moves import Weighed
from ...rows.arrays import FloatArray, IndexArray


@dataclass(frozen=True, eq=False)
class Layout:
    """Which coordinates of ``(β, b, low, high)`` move, and which the norm bounds."""

    problem: Problem
    domains: Domains
    size: int
    active: IndexArray
    kept: IndexArray
    costs: FloatArray  # of those

    @classmethod
    def of(cls, problem: Problem) -> Layout:
        domains = problem.domains
        assert domains is not None
        rows = problem.rows
        size = width(domains, rows.n_columns)
        moving = np.ones(size, dtype=bool)
        moving[: rows.n_columns] = rows.column_scale > 0.0
        moving[domains.columns] = True
        moving[domains.redundant(problem.fit_intercept)] = False
        complete = np.flatnonzero(~domains.with_none)
        moving[rows.n_columns + complete[0 if problem.fit_intercept else 1 :]] = False
        kept = np.flatnonzero(problem.penalised & (rows.column_scale > 0.0))
        return cls(problem, domains, size, np.flatnonzero(moving), kept, problem.costs[kept])

    def ranges(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        p, n_groups = self.problem.rows.n_columns, self.domains.n_groups
        return x[p : p + n_groups], x[p + n_groups :]

    def weighed(self, x: FloatArray) -> Weighed:
        return Weighed.by(self.domains, x[: self.problem.rows.n_columns], self.ranges(x))

    def drop_redundant(self, x: FloatArray) -> None:
        """Put what redundant coefficients say into the constant."""
        domains = self.domains
        if domains.redundant(self.problem.fit_intercept).size == 0:
            return
        for group in domains.held:
            shift = x[group[0]]
            x[group] -= shift
            self.absorb(x, shift)
        for column, value in zip(domains.constant, domains.constant_values, strict=True):
            self.absorb(x, x[column] * value)
            x[column] = 0.0

    def absorb(self, x: FloatArray, shift: float) -> None:
        """Add a constant to all scores: in the intercept, or in a group that every row has."""
        if self.problem.fit_intercept:
            x[self.problem.rows.n_columns - 1] += shift
            return
        domains = self.domains
        assert domains.constant_sum is not None
        x[domains.constant_sum] += shift
        p = self.problem.rows.n_columns
        for first in np.flatnonzero(~domains.with_none)[:1]:
            x[[p + first, p + domains.n_groups + first]] += shift
