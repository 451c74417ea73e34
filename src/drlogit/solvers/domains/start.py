"""Where the interior point with pieces starts: an earlier solution, or that as numbers.

At half of each group's cost for each of its columns the same data as numbers have a solution that
is feasible here and often close.  Either is pushed inwards, the latter further.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from ...engine.pair import interior_point
from ...problem.best_price import best_price
from ...problem.problem import Problem
from ...problem.result import Monitor, Result
from ...problem.starts import is_for
from ...rows.arrays import FloatArray
from ...rows.interface import State
from ..interior_point.norm_cone import norm_cone
from .layout import Layout
from .linear_rows import LinearRows
from .newton_system import PiecePoint
from .piece_samples import open_samples

#: Complementarity at the start, altogether, where labels flip and where they do not.  Iterations
#: on segment, vehicle, spect, credit-g, cmc and heart-c: κ = 2: 86, 140 with the smaller one; κ = ∞
#: (ε = 0.01 and 0.2): 223, 245 with the larger one.
_START_WITH_FLIPS = 0.1
_START = 0.01

#: How far the start is pushed inwards, in units of λ: the solution as numbers, and an earlier one.
#: Mean iterations on nine tables from ε that is 1.2 times as large, half as large, from κ = 2 for
#: κ = 1, and from all samples for a part of them: 10.9, 14.3, 13.3, 11.7; pushed as far as the
#: other 14.3, 17.7, 13.9, 14.1; from nothing 15.3, 17.8, 14.0, 15.1.
_PUSH = 0.1
_PUSH_GIVEN = 0.01

#: An earlier solution is near if radius and flip cost differ by no more than these factors, and no
#: better than the one as numbers if the flip cost does by more than the third, or the radius was
#: smaller by more than that.  Of 567 generated problems 3 take six iterations more than cold, or 7.
_NEAR, _NEAR_FLIPS = 2.0, 1.3
_FAR = 3.0

#: The least ``ελ`` to start from: near the constant model λ is close to zero, and so would be
#: all slacks.
_LEAST_START = 0.02

#: Gap at which the solution as numbers is good enough to start from.
_NUMBERS_TOL = 1e-3


def start_of(problem: Problem) -> float:
    """Complementarity at the start."""
    return _START_WITH_FLIPS if math.isfinite(problem.kappa) else _START


def starting_point(layout: Layout, tables: State, given: Result | None) -> PiecePoint:
    """From an earlier result or the solution as numbers, lifted and pushed inwards."""
    problem, domains = layout.problem, layout.domains
    p, n_groups = problem.rows.n_columns, domains.n_groups
    larger, flips = (0.0, 0.0) if given is None else _distances(problem, given)
    if given is None or max(larger, flips) > math.log(_FAR):
        numbers = as_numbers(problem)
        coefficients = interior_point(
            numbers, tol=_NUMBERS_TOL, monitor=Monitor(None, 0)
        ).coefficients
        lam, push = numbers.best_lambda(coefficients), _PUSH
    else:
        coefficients = problem.join(given.coef, given.intercept)
        lam = _lam_of(problem, coefficients, tables, given)
        near = abs(larger) <= math.log(_NEAR) and flips <= math.log(_NEAR_FLIPS)
        push = _PUSH_GIVEN if near else _PUSH
        empty = problem.penalised & (problem.rows.column_scale == 0.0)
        coefficients[empty] = 0.0  # which no step would move
    lam = max(lam, problem.dual_norm(coefficients), _LEAST_START / problem.epsilon)
    x = np.zeros(layout.size)
    x[:p] = coefficients
    layout.drop_redundant(x)
    low, high = domains.ranges(x[:p])
    still = set(range(layout.size)) - set(layout.active.tolist())
    for g, group in enumerate(domains.groups):
        room = push * lam * domains.group_costs[g]
        if p + g in still:
            # low stays at zero: the group is shifted, and somebody else takes it back.
            shift = room - low[g]
            x[group] += shift
            layout.absorb(x, -shift)
            x[p + n_groups + g] = high[g] + shift + room
        else:
            x[p + g], x[p + n_groups + g] = low[g] - room, high[g] + room
    lam *= 1.0 + 2.0 * push
    mu = start_of(problem) / 2.0
    cone = norm_cone(problem.norm.name, x[layout.kept] / layout.costs, lam, mu)
    n_rows = 2 * sum(group.size for group in domains.groups)
    n_rows += int(2 * domains.with_none.sum()) + n_groups + 2 * domains.bounded.size
    rows = LinearRows.at(domains, p, x, lam, mu, 1.0 / max(n_rows, problem.rows.n_samples))
    samples, _ = problem.rows.run(open_samples, tables, domains, x, lam, problem.kappa, mu)
    return PiecePoint(x, lam, cone, rows, samples)


def _distances(problem: Problem, given: Result) -> tuple[float, float]:
    """How much larger than the result's ε is, and how different κ, in logarithms."""
    ball = given.ball
    if ball is None:
        return 0.0, 0.0
    costs = problem.kappa, ball.kappa
    larger = math.log(problem.epsilon / ball.epsilon) if ball.epsilon > 0.0 else math.inf
    if costs[0] == costs[1]:
        return larger, 0.0
    return larger, math.inf if math.inf in costs else abs(math.log(costs[0] / costs[1]))


def _lam_of(problem: Problem, coefficients: FloatArray, tables: State, given: Result) -> float:
    """λ of an earlier result or, where it was one for another ε or κ, the best for its model."""
    if is_for(problem, given) or "predicted" in given.info:
        return given.lam
    return best_price(problem, coefficients, tables, given.lam).lam


def as_numbers(problem: Problem) -> Problem:
    """The same data as numbers: an adversary with more moves, none of which costs more."""
    domains = problem.domains
    assert domains is not None
    costs = problem.costs.copy()
    n_grouped = domains.group_of.size
    factor = np.where(np.arange(domains.columns.size) < n_grouped, 0.5, 1.0)
    costs[domains.columns] = factor * domains.column_costs
    return replace(problem, cost=replace(problem.cost, costs=costs, domains=None))
