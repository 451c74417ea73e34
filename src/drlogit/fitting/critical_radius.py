"""``epsilon_max``: the radius from which on the model is constant, where a path starts.

Let ``s(ε)`` be the doubts of the null model at ε, the best one without penalised features
(:mod:`.null_model`), and

    ψ(s) = max over ‖β/c‖_* ≤ 1 and free coefficients of  Σ w_i [ s_i u_i - (u_i - κ)_+ ],   u = Zβ,

by duality the least budget of moves and flips that explains these doubts.  The dual of (P) is that
of the null model with one more constraint, so β = 0 is optimal at ε if and only if ``ψ(s(ε)) ≤ ε``.

*κ = ∞.*  Nothing flips, s does not depend on ε, and ε_max is ``ψ = ‖c Σ w_i s_i z_i‖``.

*Finite κ.*  ψ is a linear (or second-order cone) program with a hinge per sample, which the barrier
of the interior point solves as it stands, with the log-loss replaced by ``-s u`` and λ fixed.  Let
E be the budget of flips that levels the free columns: ``κ |p₊ - p₋| / 2`` for the intercept.  From
E on the null model is zero, so ``s = ½``, and if ``ψ(½) > E`` this is ε_max.  Otherwise flips that
level the free columns level all of them, as they may where one class is rare, and the model is
constant below E as well: there ``ψ(s(ε)) ≥ ε``, and the β that attains ψ at one radius rules out
all those up to the next root of ``Σ w_i [s_i(ε) u_i - (u_i - κ)_+] = ε``, where ψ is asked for
again until no β is left.

*Domains.*  Their adversary has fewer moves than that of the same data as numbers, whose ε_max is
therefore a lower bound (and the answer below E, where no move pays).  From there on by fits: the
worst-case loss V(ε) is concave with slope λ and meets that of the null model, V₀, like a parabola,
at about ``ε + 2 (V₀ - V) / λ``.  With κ = ∞ and nothing immovable s has one value per class, and
moves are counted: a unit of mass moved by one costs c and changes ``Σ w_i s_i z_i`` by s, so the
class with the larger s goes first.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from scipy.optimize import brentq

from ..problem.domains import Domains, ItemTable
from ..problem.losses import flip_probability
from ..problem.problem import Problem
from ..problem.result import Monitor, Status
from ..rows.arrays import FloatArray
from ..rows.blocks import Block
from ..rows.interface import State
from ..rows.reductions import Sum
from ..solvers.interior_point.barrier import solve_with_barrier
from ..solvers.interior_point.scaled import Scaled
from .null_model import has_immovable_features, null_model, weight_of_positives

#: Budgets are found to this relative accuracy (1e-7 saved a twelfth of the iterations), and count
#: as the same up to this difference.
_ACCURACY = 1e-9
_SAME = 1e-6

#: Relative accuracy of the answer; a budget below this share of what rows measure is none.
_DIGITS = 1e-5
_NOTHING = 1e-10

#: Gap of fits with domains; how near ε_max the parabola has four digits, and how much of the way to
#: its end the next fit goes: 20 generated problems ended within 4e-5 of the definition, and the end
#: was up to 1 % of the way too far.
_TOL = 1e-10
_NEAR = 1e-3
_SHORT = 0.9

#: Where fits begin, in units of another problem's ε_max, if no bound is known.
_DISTANT = 1e-3

#: s of either class where nothing tells them apart.
_EVEN = np.array([0.5, 0.5])

#: Iterations of the barrier, and rounds after which the radius is the answer: 12 cuts and 9 fits
#: were the most.
_MAX_ITER = 200
_ROUNDS = 40


def epsilon_max_of(problem: Problem) -> float:
    """The radius from which on the model of a problem is constant; its own ε plays no role."""
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
    level = _level(problem)
    found, _ = _budget(problem, np.zeros(problem.costs.size))
    if found <= _NOTHING * min(_typical(problem), problem.kappa):
        return 0.0
    return found if found > level * (1.0 + _SAME) else _below(problem, level)


def _typical(problem: Problem) -> float:
    """What a row measures."""
    return problem.transport_norm(problem.rows.column_scale)


def _level(problem: Problem) -> float:
    """E: the least budget of flips that levels the free columns."""
    if math.isinf(problem.kappa):
        return 0.0
    if has_immovable_features(problem):
        return _budget(problem, np.zeros(problem.costs.size), free_only=True)[0]
    return problem.kappa * abs(weight_of_positives(problem) - 0.5) if problem.fit_intercept else 0.0


def _budget(
    problem: Problem, null: FloatArray, *, free_only: bool = False
) -> tuple[float, FloatArray]:
    """ψ for the doubts of the model ``null``, and the β that attains it; κ is finite.

    The problem is homogeneous, at λ its value is λψ: it is posed where a typical row has norm one
    and the larger of norm and kink is one as well.  ε only shifts the objective by ελ: small, so
    that no digits of the rest are lost.
    """
    sigma = Scaled.of(problem).sigma
    unit = min(sigma, problem.kappa)
    scaled = Scaled.of(problem.with_radius(unit))
    if free_only:
        scaled = replace(scaled, scale=np.where(problem.penalised, 0.0, scaled.scale))
    judge = _Judge(scaled.problem)
    with np.errstate(all="ignore"):
        solve_with_barrier(scaled, judge, max_iter=_MAX_ITER, lam=1.0 / unit, null=null)
    return judge.value, judge.coefficients


class _Judge:
    """Keeps the best β and stops when there is nothing left to gain."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.status = Status.MAX_ITER
        self.tol = 0.0  # no candidates besides the iterates
        self.value = 0.0
        self.coefficients = np.zeros(problem.costs.size)

    def report(
        self,
        coefficients: FloatArray,
        primal: float,
        flip_share: State,
        estimate: float,
        lam: float,
    ) -> bool:
        value = self.problem.epsilon - primal / lam
        if value > self.value and self.problem.allows(coefficients, lam):
            self.value, self.coefficients = value, coefficients / lam
        least = _NOTHING * self.problem.epsilon
        return estimate / lam <= _ACCURACY * max(self.value, least)

    def try_step(
        self, coefficients: FloatArray, step: FloatArray, length: float, flip_share: State
    ) -> bool:
        return False


def _below(problem: Problem, level: float) -> float:
    """The least ε with ``ψ(s(ε)) = ε``, where ``ψ(½) = E = level``."""

    def excess(radius: float, cut: FloatArray) -> float:
        """What a cut shows ψ to be above the radius."""
        null = null_model(problem.with_radius(radius)) if radius < level else np.zeros_like(cut)
        _, (shown,) = problem.rows.run(_budget_shown, None, null, cut, problem.kappa)
        return float(shown) - radius

    # At zero free columns may separate the classes, and that null model would have no end.
    epsilon, nothing = _SAME * level, _SAME * level
    for _ in range(_ROUNDS):
        _, cut = _budget(problem, null_model(problem.with_radius(epsilon)))
        if excess(epsilon, cut) <= nothing:
            return epsilon
        if excess(level, cut) >= -nothing:
            break  # no room below E
        epsilon = brentq(excess, epsilon, level, args=(cut,), xtol=nothing, rtol=_DIGITS)
    return level


def _with_domains(problem: Problem) -> float:
    """By fits at radii that approach ε_max from below."""
    from ..problem.best_price import best_price  # compiled
    from ..solvers.domains.method import solve_with_pieces
    from ..solvers.domains.start import as_numbers

    def fitted(epsilon: float) -> tuple[float, float]:
        here = problem.with_radius(epsilon)
        found = solve_with_pieces(here, tol=_TOL, monitor=Monitor(None, 0))
        return best_price(here, found.coefficients)

    domains, numbers = problem.domains, as_numbers(problem)
    assert domains is not None
    # A complete group is as good as an intercept, of which the same data as numbers know nothing.
    grouped = not (problem.fit_intercept or domains.with_none.all())
    if math.isinf(problem.kappa) and not has_immovable_features(numbers):
        balanced = problem.fit_intercept or grouped
        return _counted(problem, domains, problem.rows.class_weights[::-1] if balanced else _EVEN)
    radius, level = epsilon_max_of(numbers), _level(numbers)
    if grouped:
        flips = math.isfinite(problem.kappa)
        level = problem.kappa * abs(weight_of_positives(problem) - 0.5) if flips else 0.0
        radius = max(_DISTANT * radius, level)
    elif radius < level * (1.0 - _SAME):
        return radius
    if not radius > 0.0:
        return 0.0
    null = math.log(2.0)
    if math.isinf(problem.kappa) and grouped:
        null = fitted(2.0 * (domains.largest_cost + _typical(problem)))[1]
    elif math.isinf(problem.kappa):
        null = numbers.objective(null_model(numbers))
    low, step = radius, 0.0
    for _ in range(_ROUNDS):
        lam, value = fitted(radius)
        if null - value > _TOL:
            low, step = radius, 2.0 * (null - value) / lam
            if step <= _NEAR * radius:
                return radius + step
            radius += _SHORT * step  # the parabola's end may be too far
        elif step <= _NEAR * low:
            return radius
        else:  # it was
            step *= 0.5
            radius = low + step
    return radius


def _counted(problem: Problem, domains: Domains, s: FloatArray) -> float:
    """What it costs to make ``Σ w_i s_i z_i`` vanish by moves, for s of either class."""
    _, (g, rooms) = problem.rows.run(_null_sums, domains.tables(problem.rows), domains, s)
    total, faster = problem.transport_norm(g), int(np.argmax(s))
    for cost, group in zip(domains.group_costs, domains.groups, strict=True):
        # One side has to change category, "none" taking the difference.
        one_side = max(np.maximum(g[group], 0.0).sum(), np.maximum(-g[group], 0.0).sum())
        total += cost * one_side / s[faster]
    need = np.abs(g[domains.bounded])
    side = (g[domains.bounded] > 0.0).astype(int)  # which way the sum has to go
    for place in (faster, 1 - faster):
        part = np.minimum(need, rooms[side, place, np.arange(need.size)])
        total += float(domains.bounded_costs @ part) / s[place]
        need = need - part
    return float(total) if total > _NOTHING * (_typical(problem) + domains.largest_cost) else 0.0


def _null_sums(
    block: Block, table: ItemTable, domains: Domains, s: FloatArray
) -> tuple[ItemTable, tuple[Sum, Sum]]:
    """``Σ w s z``, and how far bounded features can change it: up or down, by class and feature."""
    mass = np.stack([block.weights * (block.y == sign) * s[k] for k, sign in ((0, -1), (1, 1))])
    down, up = mass @ (table.values - domains.lower), mass @ (domains.upper - table.values)
    # The sum rises when positives go up and negatives down.
    rooms = np.stack([[down[0], up[1]], [up[0], down[1]]])
    return table, (Sum(block.adjoint(mass.sum(axis=0))), Sum(rooms))


def _doubt_gradient(block: Block, _: None, v: FloatArray) -> tuple[None, tuple[Sum]]:
    return None, (Sum(block.adjoint(block.weights * flip_probability(block.margins(v)))),)


def _budget_shown(
    block: Block, _: None, null: FloatArray, v: FloatArray, kappa: float
) -> tuple[None, tuple[Sum]]:
    """``Σ w [s u - (u - κ)_+]`` with s at the null model."""
    u = block.margins(v)
    terms = flip_probability(block.margins(null)) * u - np.maximum(u - kappa, 0.0)
    return None, (Sum(float(block.weights @ terms)),)
