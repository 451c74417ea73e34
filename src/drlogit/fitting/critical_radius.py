"""``epsilon_max``: the radius from which on the model is constant, where a path starts.

Let ``s(ε)`` be the doubts of the null model at ε, the best one without penalised features
(:mod:`.null_model`), and

    ψ(s) = max over ‖β/c‖_* ≤ 1 and free coefficients of  Σ w_i [ s_i u_i - (u_i - κ)_+ ],   u = Zβ,

by duality the least budget of moves and flips that explains these doubts.  The dual of (P) is that
of the null model with one more constraint, so β = 0 is optimal at ε if and only if ``ψ(s(ε)) ≤ ε``.

*κ = ∞.*  Nothing flips, s does not depend on ε, and ε_max is ``ψ = ‖c Σ w_i s_i z_i‖``.

*Finite κ.*  ψ is a linear (or second-order cone) program with a hinge per sample, which the engine
solves as it stands, with the log-loss replaced by ``-s u`` and λ fixed.  Let
E be the budget of flips that levels the free columns: ``κ |p₊ - p₋| / 2`` for the intercept.  From
E on the null model is zero, so ``s = ½``, and if ``ψ(½) > E`` this is ε_max.  Otherwise flips that
level the free columns level all of them, as they may where one class is rare, and the model is
constant below E as well: there ``ψ(s(ε)) ≥ ε``, and ε_max is the least radius where they are equal,
found by bisection.

*κ by class or by sample.*  Flips may be too few to level anything: E is then the budget from which
on the null model does not change any more, and s there takes the place of ½.  Where the larger
class has flips at several prices, the model may be constant, not constant and constant again below
E (as in docs/wrong_labels.md), and E is the answer, the radius from which on it surely is.

*Domains.*  The same with what moves within domains cost (``engine.tables.critical_radius``).  Below
E no move pays, and the same data as numbers give the answer.

*Costs far apart.*  The question whether the model is constant is asked with smaller κ where flips
cost far more than moves (``_excess``).

*Several classes.*  ψ has probabilities p for s and ``max - Σ w [ p·s + max_k(-s_k - κ_k) ]`` over
``‖(B_j - B_k)/c‖_* ≤ 1``; E is not known, and a radius far beyond it takes its place.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import softmax

from ..engine.classes import least_budget
from ..engine.pair import flip_budget
from ..engine.tables import critical_radius, interior_point_with_domains
from ..problem.classes import ClassProblem, Scored
from ..problem.label_costs import scaled_costs
from ..problem.losses import flip_probability
from ..problem.problem import Problem
from ..problem.result import Monitor
from ..rows.arrays import FloatArray
from ..rows.blocks import Block
from ..rows.interface import State
from ..rows.reductions import Max, Min, Sum
from ..rows.threads import one_blas_thread
from .null_model import null_model

#: Relative difference up to which budgets count as the same.
_SAME = 1e-6

#: Relative accuracy of the answer; a budget below this share of what rows measure is none.
_DIGITS = 1e-5
_NOTHING = 1e-9


@one_blas_thread
def largest_radius(problem: Problem | ClassProblem) -> float:
    """The radius from which on the model of a problem is constant; its own ε plays no role."""
    if isinstance(problem, ClassProblem):
        return _of_classes(problem.with_radius(1.0))
    rows, _ = problem.rows.compact or (problem.rows, None)  # as the fits that follow will take them
    problem = replace(problem.with_radius(1.0), rows=rows)
    if problem.domains is not None:
        return _with_domains(problem)
    if not _typical(problem) > 0.0:
        return 0.0  # no features that matter
    if math.isinf(problem.kappa):
        _, (gradient,) = problem.rows.run(_doubt_gradient, None, null_model(problem))
        found = problem.transport_norm(gradient)
        return found if found > _NOTHING * _typical(problem) else 0.0
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

    # At zero free columns may separate the classes, and that null model would have no end.
    return factor * _end_of_learning(budget, _SAME * level, level)


def _excess(kappa: float, typical: float) -> float:
    """A factor of all κ that can be left out when it is asked whether the model is constant.

    Flips level the free columns and nothing else does, so it is one at radii ``t E`` whatever the
    factor.  But flips that cost far more than moves would hide what these add to the budget.
    """
    return max(1.0, kappa / typical) if math.isfinite(kappa) else 1.0


@one_blas_thread
def constant_model(problem: Problem | ClassProblem) -> tuple[Any, Any] | None:
    """Coefficients and intercept of the model from that radius on, at the problem's own ε.

    None where a complete group stands for the intercept: there it takes a fit.
    """
    if isinstance(problem, ClassProblem):
        return problem.split(null_model(problem))
    if _group_for_intercept(problem):
        return None
    return problem.split(null_model(problem.as_numbers))


def _end_of_learning(budget: Callable[[float], float], low: float, high: float) -> float:
    """Where ``ψ(s(ε)) > ε`` ends between two radii, to ``_DIGITS``.

    Below the end ``log ψ/ε`` is nearly linear in ``log ε``: the line through the last two radii
    says where it ends.  Above the end ψ may be ε, and says nothing.  Where the line leaves the
    bracket, or after ten radii, bisection.
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


def _of_classes(problem: ClassProblem) -> float:
    kept = problem.penalised
    typical = problem.norm.value(problem.rows.column_scale[kept] * problem.costs[kept])
    if not (kept.any() and typical > 0.0):
        return 0.0
    factor = _excess(problem.least_flip_cost, typical)
    given = problem
    if factor > 1.0:
        problem = problem.with_radius(1.0, scaled_costs(problem.kappa, 1.0 / factor))
    size = typical + float(problem.flip_costs.max(initial=0.0))

    def explained(epsilon: float) -> State:
        null = null_model(problem.with_radius(epsilon))
        return problem.rows.run(_softmax, problem.scores(null))[0]

    def budget(epsilon: float) -> float:
        return least_budget(problem, explained(epsilon))

    found = budget(1e3 * size)  # where nothing is left of any class
    if found <= _NOTHING * typical:
        return 0.0
    there = found if factor == 1.0 else least_budget(given, explained(1e3 * size))
    if not (problem.flips and problem.free.any()):
        return there
    high = found
    while _learns(budget, high):
        high *= 2.0
    low = (1.0 - 10.0 * _DIGITS) * high
    if not _learns(budget, low):
        # Constant below the radius that levels the classes, as where one of them is rare.
        return factor * _end_of_learning(budget, _SAME * size, low)
    return there if high == found else factor * _end_of_learning(budget, low, high)


def _group_for_intercept(problem: Problem) -> bool:
    """Whether a complete group is as good as one: the same data as numbers know nothing of it."""
    domains = problem.domains
    return domains is not None and not (problem.fit_intercept or domains.with_none.all())


def _typical(problem: Problem) -> float:
    """What a row measures."""
    return problem.transport_norm(problem.rows.column_scale)


def _last_null_model(problem: Problem) -> FloatArray:
    """The null model of large radii: zero, where all labels can flip."""
    if problem.cost.flip_multiples is None:
        return np.zeros(problem.costs.size)
    return null_model(problem.with_radius(problem.dearest_flip))  # which pays for all that can be


def _level(problem: Problem, last: FloatArray) -> float:
    """E: the least budget of flips that leads to the last of the null models."""
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


def _doubt_gradient(block: Block, _: None, v: FloatArray) -> tuple[None, tuple[Sum]]:
    return None, (Sum(block.adjoint(block.weights * flip_probability(block.margins(v)))),)


def _softmax(_: Block, scored: Scored) -> tuple[FloatArray, tuple[()]]:
    return np.asarray(softmax(scored[0], axis=1)), ()


def _prices(block: Block, _: None, sign: float, kappa: float) -> tuple[None, tuple[Min, Max]]:
    """The least and the largest cost of a flip, if it can be, in a class."""
    costs = np.broadcast_to(block.flip_costs(kappa), block.y.shape)
    own = costs[(block.y != -sign) & np.isfinite(costs)]
    return None, (Min(np.min(own, initial=np.inf)), Max(np.max(own, initial=0.0)))
