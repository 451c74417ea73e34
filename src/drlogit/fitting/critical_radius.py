"""``epsilon_max``: the least radius from which on the model is constant; a path starts there.

Let ``s(ε)`` be the dual probabilities of the null model at ε, the best model without penalised
features (:mod:`.null_model`), and

    ψ(s) = max over ‖β/c‖_* ≤ 1 and free coefficients of  Σ w_i [ s_i u_i - (u_i - κ)_+ ],   u = Zβ,

by duality the least budget of moves and flips for which these s are feasible.  The dual of (P) is
that of the null model with one more constraint, so β = 0 is optimal at ε if and only if
``ψ(s(ε)) ≤ ε``.

*κ = ∞.*  Nothing flips, s does not depend on ε, and ε_max is ``ψ = ‖c Σ w_i s_i z_i‖``.

*Finite κ.*  ψ is a linear (or second-order cone) program with a hinge for each sample.  The engine
solves it with the log-loss replaced by ``-s u`` and λ fixed.  Let E be the least budget of flips
that balances the free columns, ``κ |p₊ - p₋| / 2`` for the intercept alone.  From E on the null
model is zero and ``s = ½``; if ``ψ(½) > E``, this ψ is ε_max.  Otherwise the flips that balance the
free columns balance all columns, as they may if one class is rare, and the model is constant below
E as well.  Then ε_max is the least radius with ``ψ(s(ε)) = ε``, found by bisection.

*κ by class or by sample.*  Flips may not suffice to balance the free columns.  E is then the budget
from which on the null model no longer changes, and s at E replaces ½.  If flips of the larger class
have several costs, the model may be constant, not constant, and constant again below E.
The answer is then E, from where on it is constant for certain.

*Domains.*  The same, with the costs of moves within domains (``engine.tables.critical_radius``).
Below E no move pays, and the problem without domains gives the answer.

*Large matrices.*  With more than 4,000 rows and columns the program would need a matrix of that
size.  A feasible dual point gives an upper bound instead: ``s = ½``, and as many flips in the
larger class as balance the intercept.

*Flips that cost far more than moves.*  Whether the model is constant is decided with smaller κ
(``_excess``).

*Several classes.*  ψ has probabilities p in place of s: ``max - Σ w [ p·s + max_k(-s_k - κ_k) ]``
over ``‖(B_j - B_k)/c‖_* ≤ 1``.  E is not known; a radius far beyond it replaces it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ..engine.interior_point import flip_budget
from ..engine.plan import is_expensive
from ..engine.row_space import has_fewer_columns, row_space
from ..engine.tables import critical_radius, interior_point_with_domains
from ..engine.wide import DENSE_LIMIT
from ..problem.losses import flip_probability
from ..problem.problem import Problem
from ..problem.result import Monitor
from ..rows.arrays import FloatArray
from ..rows.blocks import Block
from ..rows.reductions import Max, Min, Sum
from ..rows.threads import one_blas_thread
from .null_model import null_model

#: Budgets with a smaller relative difference count as equal.
_SAME = 1e-6

#: Relative accuracy of the answer; a budget below this share of the length of a row counts as zero.
_DIGITS = 1e-5
_NOTHING = 1e-9


@one_blas_thread
def largest_radius(problem: Problem, *, exact: bool = True) -> float:
    """The radius from which on the model is constant; the ε of the problem is ignored.

    ``exact=False``, for grids of radii: an upper bound may serve where the matrices of an exact
    answer would take longer than fits by products.
    """
    if problem.several:
        return _of_classes(_smaller(problem.with_radius(1.0)))
    rows, _ = problem.rows.compact or (problem.rows, None)  # in the form of later fits
    problem = replace(problem.with_radius(1.0), rows=rows)
    if problem.domains is not None:
        return _with_domains(problem)
    if not _typical(problem) > 0.0:
        return 0.0  # no feature can move
    if math.isinf(problem.kappa):
        _, (gradient,) = problem.rows.run(_null_gradient, None, null_model(problem))
        found = problem.transport_norm(gradient)
        return found if found > _NOTHING * _typical(problem) else 0.0
    large = min(rows.n_samples, rows.n_columns) > DENSE_LIMIT
    if (large or (not exact and is_expensive(problem))) and _is_plain(problem):
        return _upper_bound(problem)
    problem = _smaller(problem)
    factor = _excess(problem.kappa, _typical(problem))
    near = problem.with_radius(1.0, problem.kappa / factor)
    last = _last_null_model(near)
    level, found = _level(near, last), flip_budget(near, last)
    if found <= _NOTHING * min(_typical(near), near.kappa):
        return 0.0
    if found > level * (1.0 + _SAME):
        return found if factor == 1.0 else flip_budget(problem, last)
    larger = 1.0 if np.diff(near.rows.totals.classes)[0] >= 0.0 else -1.0
    _, (cheapest, dearest) = near.rows.run(_prices, None, larger, near.kappa)
    if cheapest < dearest:
        return factor * level

    def budget(epsilon: float) -> float:
        return flip_budget(near, null_model(near.with_radius(epsilon)))

    # At ε = 0 free columns may separate the classes, and the null model would be unbounded.
    return factor * _end_of_learning(budget, _SAME * level, level)


def _smaller(problem: Problem) -> Problem:
    """The problem in the row space of its features, if it has fewer columns there."""
    return row_space(problem).posed(problem) if has_fewer_columns(problem) else problem


def _is_plain(problem: Problem) -> bool:
    """Whether one κ holds for all flips, and no column but the intercept is free."""
    one = problem.cost.labels.multiples is None
    return one and int(np.count_nonzero(problem.free)) <= int(problem.fit_intercept)


def _upper_bound(problem: Problem) -> float:
    """The lesser budget of two dual points with ``s = ½``, at which the model is constant.

    Flips of half of all labels need no moves.
    """
    negative, positive = problem.rows.totals.classes
    larger, rest = max(negative, positive), min(negative, positive)
    share = 0.5 * (larger - rest) / larger if problem.fit_intercept else 0.0
    sign = 1.0 if positive >= negative else -1.0
    _, (gradient,) = problem.rows.run(_flipped_gradient, None, sign, share)
    moved = problem.transport_norm(gradient) + problem.kappa * share * larger
    return float(min(moved, 0.5 * problem.kappa))


def _excess(kappa: float, typical: float) -> float:
    """A factor by which all κ can be divided when testing whether the model is constant.

    Only flips balance the free columns, so the answer at radii ``t E`` does not depend on κ.  But
    if flips cost far more than moves, rounding would hide the moves' part of the budget.
    """
    return max(1.0, kappa / typical) if math.isfinite(kappa) else 1.0


@one_blas_thread
def constant_model(problem: Problem) -> tuple[Any, Any] | None:
    """Coefficients and intercept of the constant model, at the problem's own ε.

    None if a complete group replaces the intercept; that case needs a fit.
    """
    if _group_for_intercept(problem):
        return None
    return problem.split(null_model(problem.as_numbers))


def _end_of_learning(budget: Callable[[float], float], low: float, high: float) -> float:
    """The largest ε between two radii with ``ψ(s(ε)) > ε``, to ``_DIGITS``.

    Below that ε, ``log ψ/ε`` is nearly linear in ``log ε``, so a secant through the last two radii
    predicts it.  Above it, ψ may equal ε and carries no information.  If the secant leaves the
    bracket, or after ten radii, the method bisects.
    """
    below: list[tuple[float, float]] = []
    tried, guess = 0, max(0.25 * high, math.sqrt(low * high))
    while high > (1.0 + _DIGITS) * low:
        ratio, tried = budget(guess) / guess, tried + 1
        if ratio > 1.0 + _SAME:
            low = guess
            below = [*below[-1:], (math.log(guess), math.log(ratio))]
        else:
            high = guess
        guess = math.sqrt(low * high)
        if len(below) == 2 and tried < 10 and below[0][1] > below[1][1]:
            (a, f), (b, g) = below
            end = math.exp(b + g * (b - a) / (f - g))
            around = [end * (1.0 + 0.4 * _DIGITS), end * (1.0 - 0.4 * _DIGITS)]
            guess = next((each for each in around if low < each < high), guess)
    return high


def _learns(budget: Callable[[float], float], epsilon: float) -> bool:
    return budget(epsilon) > epsilon * (1.0 + _SAME)


def _of_classes(problem: Problem) -> float:
    typical = _typical(problem)
    if not typical > 0.0:
        return 0.0
    factor = _excess(problem.least_flip_cost, typical)
    near = problem.with_radius(1.0, problem.cost.labels.times(1.0 / factor))
    size = typical + float(near.flip_costs.max(initial=0.0))

    def budget(epsilon: float) -> float:
        return flip_budget(near, null_model(near.with_radius(epsilon)))

    found = there = budget(1e3 * size)  # where all classes are balanced
    if found <= _NOTHING * typical:
        return 0.0
    if factor > 1.0:
        there = flip_budget(problem, null_model(near.with_radius(1e3 * size)))
    if not (near.flips and near.free.any()):
        return there
    high = found
    while _learns(budget, high):
        high *= 2.0
    low = (1.0 - 10.0 * _DIGITS) * high
    if not _learns(budget, low):
        # Constant below the radius that balances the classes, as if one of them is rare.
        return factor * _end_of_learning(budget, _SAME * size, low)
    return there if high == found else factor * _end_of_learning(budget, low, high)


def _group_for_intercept(problem: Problem) -> bool:
    """Whether a complete group replaces the intercept; the problem without domains has none."""
    domains = problem.domains
    return domains is not None and not (problem.fit_intercept or domains.with_none.all())


def _typical(problem: Problem) -> float:
    """The length of a typical row."""
    return problem.transport_norm(problem.rows.column_scale)


def _last_null_model(problem: Problem) -> FloatArray:
    """The null model at large radii; zero if all labels can flip."""
    if problem.cost.labels.multiples is None:
        return np.zeros(problem.costs.size)
    return null_model(problem.with_radius(problem.dearest_flip))  # pays for every possible flip


def _level(problem: Problem, last: FloatArray) -> float:
    """E: the least budget of flips that gives the null model of large radii."""
    return flip_budget(problem, last, free_only=True) if problem.free.any() else 0.0


def _with_domains(problem: Problem) -> float:
    domains, numbers = problem.domains, problem.as_numbers
    assert domains is not None
    grouped = _group_for_intercept(problem)
    if math.isinf(problem.kappa):
        null = _null_of_groups(problem) if grouped else null_model(numbers)
    elif grouped:
        null = np.zeros(problem.costs.size)
    else:
        null = _last_null_model(numbers)
    found = critical_radius(problem, null)
    if found <= _NOTHING * min(domains.largest_cost + _typical(problem), problem.kappa):
        return 0.0
    if math.isinf(problem.kappa) or grouped:
        return found
    factor = _excess(problem.kappa, _typical(numbers))
    near, kappa = found, problem.kappa / factor
    if factor > 1.0:
        near = critical_radius(problem.with_radius(1.0, kappa), null)
    level = _level(numbers.with_radius(1.0, kappa), null)
    return found if near > level * (1.0 + _SAME) else largest_radius(numbers)


def _null_of_groups(problem: Problem) -> FloatArray:
    """The model at a radius that pays for moving all samples to one place."""
    domains = problem.domains
    assert domains is not None
    far = problem.with_radius(2.0 * (domains.largest_cost + _typical(problem)))
    return interior_point_with_domains(far, tol=1e-10, monitor=Monitor(None, 0)).coefficients


def _null_gradient(block: Block, _: None, v: FloatArray) -> tuple[None, tuple[Sum]]:
    return None, (Sum(block.adjoint(block.weights * flip_probability(block.margins(v)))),)


def _flipped_gradient(block: Block, _: None, sign: float, share: float) -> tuple[None, tuple[Sum]]:
    """``Σ w (s - a) z`` at s = ½, with this share a of flips in one class."""
    return None, (Sum(block.adjoint(block.weights * (0.5 - share * (block.y == sign)))),)


def _prices(block: Block, _: None, sign: float, kappa: float) -> tuple[None, tuple[Min, Max]]:
    """The least and the largest finite flip cost in a class."""
    costs = np.broadcast_to(block.flip_costs(kappa), block.y.shape)
    own = costs[(block.y != -sign) & np.isfinite(costs)]
    return None, (Min(np.min(own, initial=np.inf)), Max(np.max(own, initial=0.0)))
