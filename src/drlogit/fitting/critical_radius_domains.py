"""``epsilon_max`` where features have domains.

*Labels that do not flip, no immovable features.*  The null model's ``s`` has one value per class,
and the constant model is optimal if moves of cost ε in total make it dual feasible.  Moving a
unit of mass by one costs c and moves ``Σ w_i s_i z_i`` by s, so the class with the larger s goes
first:

* features without a domain: ``‖c Σ w_i s_i z_i‖``;
* a bounded feature: its sum is brought to zero by that class, and by the other where it has gone
  all the way to its end;
* a group: with ``G_k`` the sum over category k, the larger of ``Σ(G_k)_+`` and ``Σ(-G_k)_+`` has to
  change category, at ``c_g / s``, "none" taking the difference.

*Otherwise* compare with the same data as numbers, whose adversary has more moves, none of which
costs more: the model with domains is constant only where that one is.  Let E be the budget of
flips that levels the immovable features and the intercept (:mod:`.critical_radius`).  Below E the
null model has λ > 0, at which no move pays for a model that is nearly constant: only flips matter,
domains do not, and neither do costs.  So where the radius for numbers is below E it is the
answer.

From E on the null model is zero, ``s = ½`` (and if labels cannot flip, s is that of the null
model).  Then λ = 0, and to first order the loss falls in the direction ``(d, λ = 1)`` if

    ε  <  ψ(d) := -Σ w_i R'_i,    R'_i = max over labels σ of  -s σ u_i - κ [σ = -1]
                                           + Σ over items of (s gain - cost)_+ ,      u = Zd.

So every direction with ``‖d_U/c‖_* ≤ 1`` proves a lower bound, and the greatest is ε_max.  Fits at
radii just below ε_max end at directions whose bounds fall short of it by an amount that is linear
in the distance (measured: 0.13 to 0.18 of it, from 1 % to 0.03 % below), so the last two are
extrapolated.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ..problem.best_price import best_price
from ..problem.domains import Domains, ItemTable
from ..problem.losses import entropy, flip_probability
from ..problem.problem import Problem
from ..problem.result import Monitor
from ..problem.worst_moves import Weighed, reach
from ..rows.arrays import FloatArray
from ..rows.blocks import Block
from ..rows.reductions import Sum
from ..solvers.domains.method import solve_with_pieces
from ..solvers.domains.start import as_numbers
from .flip_budget import flip_budget
from .null_model import null_model

#: How far below what is known fits take place, in turn, and the gap of each.
_BELOW = (0.03, 0.01, 0.003, 0.001, *[0.0003] * 5)
_TOL = 1e-11

#: The least radius to begin with; how near fits must be for their bounds to be extrapolated, and
#: the steepest rise that is.
_LEAST = 1e-6
_CURVED = 0.01
_STEEP = 0.9

#: Relative change of ε_max that ends the search, and difference of budgets that is none.
_SETTLED = 3e-6
_SAME = 1e-9

#: Bisections, and the loss that counts as none.
_BISECTIONS = 20
_NOTHING = 3e-9


def epsilon_max_with_domains(problem: Problem, of_numbers: Callable[[Problem], float]) -> float:
    """The radius from which on features with domains leave nothing to learn.

    ``of_numbers`` is the same for problems without domains.
    """
    domains = problem.domains
    assert domains is not None
    immovable = _has_immovable_columns(problem, domains)
    balanced = problem.fit_intercept or not domains.with_none.all()
    weights = problem.rows.class_weights
    if math.isinf(problem.kappa) and not immovable:
        slopes = weights[::-1] if balanced else np.full(2, 0.5)
        return _without_flips(problem, domains, slopes)
    numbers = as_numbers(problem)
    null = np.zeros(problem.costs.size)
    level = 0.0
    grouped = balanced and not problem.fit_intercept  # a complete group is the intercept
    if math.isinf(problem.kappa):
        null = _null_model(problem) if grouped else null_model(numbers)
    elif immovable:
        level = flip_budget(numbers, null, free_only=True).upper
    elif balanced:
        level = 0.5 * problem.kappa * abs(float(weights[1] - weights[0]))
    if grouped:  # which the model of numbers does not know
        found = max(_climbed(problem, level, null), level)
        if immovable or found > level * (1.0 + _SAME):
            return found
        return _bisected(problem, level, float(weights.min()))
    low = of_numbers(numbers)
    return low if low < level * (1.0 - _SAME) else _climbed(problem, low, null)


def _null_model(problem: Problem) -> FloatArray:
    """The model at a radius that pays for moving all samples to one place."""
    domains = problem.domains
    assert domains is not None
    radius = 2.0 * (domains.largest_cost + problem.transport_norm(problem.rows.column_scale))
    here = problem.with_radius(radius)
    return solve_with_pieces(here, tol=_TOL, monitor=Monitor(None, 0)).coefficients


def _climbed(problem: Problem, low: float, null: FloatArray) -> float:
    """The bound that directions prove in the limit; ``low`` is one to begin with."""
    domains = problem.domains
    assert domains is not None
    tables = domains.tables(problem.rows)
    limit, radius, bound = max(low, _LEAST), 0.0, 0.0
    for below in _BELOW:
        before, last = (radius, bound), limit
        radius = limit * (1.0 - below)
        here = problem.with_radius(radius)
        found = solve_with_pieces(here, tol=_TOL, monitor=Monitor(None, 0)).coefficients
        lam = best_price(here, found, tables).lam
        if not lam > 0.0:
            radius, limit = 0.0, max(low, _LEAST)
            continue  # constant already, as far as digits tell
        direction = (found - null) / lam
        model = Weighed.by(domains, direction)
        _, (fall,) = problem.rows.run(_fall, tables, direction, problem.kappa, model, null)
        bound = -float(fall)
        low = limit = max(low, bound)
        if not limit > 0.0:
            return 0.0  # constant at the least radius: the classes are balanced
        rise = (bound - before[1]) / (radius - before[0])
        if below < _CURVED and before[0] > 0.0 and 0.0 < rise < _STEEP:
            # Bounds lie on a line that meets the radii at ε_max.
            limit = max(low, (bound - rise * radius) / (1.0 - rise))
        if below == _BELOW[-1] and abs(limit - last) <= _SETTLED * limit:
            break
    return limit if radius > 0.0 else low


def _fall(
    block: Block,
    table: ItemTable,
    direction: FloatArray,
    kappa: float,
    model: Weighed,
    null: FloatArray,
) -> tuple[ItemTable, tuple[Sum]]:
    """``Σ w R'``: by how much the loss rises along a direction, to first order."""
    u = block.margins(direction)
    s = flip_probability(block.margins(null))

    def moved(signs: FloatArray) -> FloatArray:
        gains = reach(signs, table, model)
        groups = np.maximum(s[:, None] * gains.groups - model.group_costs, 0.0)
        bounded = np.maximum(s[:, None] * gains.rates - 1.0, 0.0) * gains.distances
        return np.asarray(groups.sum(axis=1) + bounded.sum(axis=1))

    rise = moved(block.y) - s * u
    if math.isfinite(kappa):
        # The null model is zero here: s is ½ under either label.
        rise = np.maximum(rise, moved(-block.y) + s * u - kappa)
    return table, (Sum(float(block.weights @ rise)),)


def _without_flips(problem: Problem, domains: Domains, slopes: FloatArray) -> float:
    tables = domains.tables(problem.rows)
    _, (g, rooms) = problem.rows.run(_null_sums, tables, domains, slopes)
    total = problem.transport_norm(g)
    for k, group in enumerate(domains.groups):
        up, down = np.maximum(g[group], 0.0).sum(), np.maximum(-g[group], 0.0).sum()
        total += domains.group_costs[k] * max(up, down) / float(slopes.max())
    faster = int(np.argmax(slopes))
    for j, column in enumerate(domains.bounded):
        need = abs(float(g[column]))
        side = int(g[column] > 0.0)  # which way the sum has to go
        for place in (faster, 1 - faster):
            part = min(need, float(rooms[side, place, j]))
            total += domains.bounded_costs[j] * part / float(slopes[place])
            need -= part
    return float(total)


def _null_sums(
    block: Block, table: ItemTable, domains: Domains, slopes: FloatArray
) -> tuple[ItemTable, tuple[Sum, Sum]]:
    """``Σ w s z``, and how far bounded features can change it: up or down, by class and feature."""
    positive = block.y > 0.0
    mass = block.weights * np.where(positive, slopes[1], slopes[0])
    down, up = table.values - domains.lower, domains.upper - table.values
    rooms = np.stack(
        [
            # The sum rises when positives go up and negatives down.
            [mass[~positive] @ down[~positive], mass[positive] @ up[positive]],
            [mass[~positive] @ up[~positive], mass[positive] @ down[positive]],
        ]
    )
    return table, (Sum(block.adjoint(mass)), Sum(rooms))


def _bisected(problem: Problem, high: float, rarer: float) -> float:
    """Where the certified optimum reaches the loss of the null model.

    ``rarer`` is the weight of the rarer class.
    """
    low = 0.0
    for _ in range(_BISECTIONS):
        if high - low <= 1e-5 * high:
            break
        middle = 0.5 * (low + high)
        here = problem.with_radius(middle)
        found = solve_with_pieces(here, tol=1e-9, monitor=Monitor(None, 0))
        doubt = min(0.5, rarer + middle / problem.kappa)
        constant = float(entropy(np.array(doubt))) - _NOTHING
        low, high = (
            (low, middle) if here.objective(found.coefficients) > constant else (middle, high)
        )
    return high


def _has_immovable_columns(problem: Problem, domains: Domains) -> bool:
    """Whether features that cannot move say anything that others do not."""
    free = problem.free & (problem.rows.column_scale > 0.0)
    free[domains.columns] = False
    free[domains.redundant(problem.fit_intercept)] = False
    if problem.fit_intercept:
        free[-1] = False
    return bool(free.any())
