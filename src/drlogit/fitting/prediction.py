"""Where the next model is expected, from models that are there already.

Along a path β, b and λ are smooth in log ε but for corners, where a coefficient reaches its bound
or a sample the kink: the next model is near the *secant* of the last two.  Models of the same
radius on most of the same samples, as folds of a cross-validation have them, differ by about as
much as they did at the radius before: the next model is near its *sibling* plus that difference.
So do models of the same samples and of radii in proportion to κ, as long as labels are what the
adversary changes most.
Either line may be followed all the way, half the way, or not at all: whichever has the lowest
objective for the problem at hand, which is convex along it.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from ..problem.problem import Problem
from ..problem.result import Result
from ..rows.arrays import FloatArray
from ..solvers.sequential_quadratic.method import spread_of_gap

#: Shares of the line that are tried, until the objective rises.
_SHARES = (1.0, 0.5, 0.0)

#: What a prediction leaves of what it gains is about this share of it at the beginning of a path:
#: 0.15 to 0.56 with 10 and 30 radii on a1a, phishing and (10000, 100).
_MISSED = 0.3

#: Shares of labels that differ by no more are the same.
_SAME_SHARE = 1e-8


def by_secant(
    problem: Problem,
    before: tuple[float, Result],
    last: tuple[float, Result],
    excess: float = math.nan,
) -> Result:
    """The best model on the line through two of the path, as a start for the next radius.

    ``before`` and ``last`` are (radius, result) pairs.  ``info["excess"]`` is how far above the
    optimum the start is expected, in nats: as far as the one before was, ``excess``, if known.
    """
    (epsilon_0, result_0), (epsilon_1, result_1) = before, last
    if min(epsilon_0, epsilon_1, problem.epsilon) <= 0.0 or epsilon_0 == epsilon_1:
        return result_1
    factor = math.log(problem.epsilon / epsilon_1) / math.log(epsilon_1 / epsilon_0)
    start, end = (problem.join(r.coef, r.intercept) for r in (result_0, result_1))
    # The objective there is known, but for the radius.
    stay = result_1.objective - (epsilon_1 - problem.epsilon) * result_1.lam
    change = factor * (result_1.lam - result_0.lam)
    best = _best(problem, result_1, factor * (end - start), change, stay)
    if math.isnan(excess):
        gain = stay - best.info["predicted"]
        excess = _MISSED * gain if gain > 0.0 else math.nan
    spread = result_1.info.get("spread")
    if spread is None and not math.isnan(excess):
        spread = spread_of_gap(excess)
    return replace(best, info={**best.info, "spread": spread, "excess": excess})


def by_sibling(
    problem: Problem,
    sibling: Result,
    sibling_before: Result,
    before: Result,
    excess: float = math.nan,
) -> Result:
    """The best model on the line from the sibling's by what was between them before.

    ``excess`` as in :func:`by_secant`; problems with the same solution have the same value.
    """
    ours, theirs = (problem.join(r.coef, r.intercept) for r in (before, sibling_before))
    best = _best(problem, sibling, ours - theirs, before.lam - sibling_before.lam)
    spread = before.info.get("spread")
    if spread is None:  # the sampling error of margins, for two thirds of the sibling's samples
        error = math.sqrt(2.0 * problem.rows.n_columns / problem.rows.n_samples)
        spread = error if math.isnan(excess) else spread_of_gap(excess)
    if math.isnan(excess):
        excess = abs(best.info["predicted"] - sibling.objective)
    return replace(best, info={**best.info, "spread": spread, "excess": excess})


def for_cost(problem: Problem, sibling: Result) -> Result:
    """The sibling as it would be at the problem's flip cost κ, if its own is another.

    As long as the norm does not matter, κ sets the units of ε and 1/λ and nothing else.  Its proof
    then holds here as well, where the same share of labels may be flipped.
    """
    ball = sibling.ball
    if ball is None or ball.kappa == problem.kappa or problem.epsilon == 0.0:
        return sibling
    if math.isinf(ball.kappa + problem.kappa):
        return replace(sibling, ball=None, dual=None)
    same = same_shares(ball.epsilon / ball.kappa, problem.epsilon / problem.kappa)
    dual = sibling.dual if same else None
    return replace(sibling, lam=sibling.lam * ball.epsilon / problem.epsilon, ball=None, dual=dual)


def same_shares(first: Any, second: Any) -> Any:
    """Where two shares of labels that may be flipped are the same."""
    return np.isclose(first, second, rtol=_SAME_SHARE, atol=0.0)


def _best(
    problem: Problem, start: Result, direction: FloatArray, change: float, stay: float = math.inf
) -> Result:
    """The start with the best model on the line, and its objective as ``info["predicted"]``.

    ``stay`` is that of the start itself, if known: a better one at the line's end will then do.
    Its dual point is for other solvers to use.
    """
    compact = _compact(problem)
    model = problem.join(start.coef, start.intercept)
    best, objective = start, math.inf
    for share in _SHARES:
        lam = start.lam + share * change
        if lam <= 0.0:
            continue
        there = _within(problem, model + share * direction, lam)
        value = compact.objective(there, lam)
        if not value < objective:
            break
        coef, intercept = problem.split(there)
        best, objective = replace(start, coef=coef, intercept=intercept, lam=lam), value
        if value < stay < math.inf:
            break
    return replace(best, info={**start.info, "predicted": objective})


def _compact(problem: Problem) -> Problem:
    """The problem with copies of samples merged, as the fit will take them."""
    rows, _ = problem.rows.compact or (problem.rows, None)
    return replace(problem, rows=rows)


def _within(problem: Problem, coefficients: FloatArray, lam: float) -> FloatArray:
    """The nearest coefficients with ``‖β / c‖_* ≤ λ``."""
    kept = problem.penalised
    model = coefficients.copy()
    costs = problem.costs[kept]
    model[kept] = costs * problem.norm.project_dual(coefficients[kept] / costs, lam)
    return model
