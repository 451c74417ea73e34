"""``epsilon_max`` where features have domains.

Labels that do not flip, no immovable features: the null model's ``s`` has one value per class,
and the constant model is optimal if moves of cost ε in total make it dual feasible.  Moving a
unit of mass by one costs c and moves ``Σ w_i s_i z_i`` by s, so the class with the larger s goes
first:

* features without a domain: ``‖c Σ w_i s_i z_i‖``;
* a bounded feature: its sum is brought to zero by that class, and by the other where it has gone
  all the way to its end;
* a group: with ``G_k`` the sum over category k, the larger of ``Σ(G_k)_+`` and ``Σ(-G_k)_+`` has
to change
  category, at ``c_g / s``, "none" taking the difference.

Otherwise the radius is bisected: the certified optimum reaches the loss of the null model.
"""

from __future__ import annotations

import math

import numpy as np

from ..problem.domains import Domains, Table
from ..problem.losses import entropy
from ..problem.piece_equations import immovable_columns
from ..problem.problem import Problem
from ..problem.result import Monitor
from ..rows.arrays import FloatArray
from ..rows.blocks import Block
from ..rows.reductions import Sum
from ..solvers.domains.method import solve_with_pieces

#: Bisections, the gap of each fit, and the loss that counts as none.
_BISECTIONS = 20
_TOL = 1e-9
_NOTHING = 3e-9


def epsilon_max_with_domains(problem: Problem) -> float:
    """The radius from which on features with domains leave nothing to learn."""
    domains = problem.domains
    assert domains is not None
    _, (weights,) = problem.rows.run(_class_weights)
    levelled = problem.fit_intercept or not domains.with_none.all()
    immovable = immovable_columns(problem).size > 0
    if immovable:
        high = problem.kappa / 2.0 if math.isfinite(problem.kappa) else _doubled(problem)
        return _bisected(problem, 0.0, high, None)
    slopes = weights[::-1] if levelled else np.full(2, 0.5)
    without_flips = _without_flips(problem, domains, slopes)
    if math.isinf(problem.kappa):
        return without_flips
    rarer = float(weights.min()) if levelled else 0.5
    return _bisected(problem, 0.0, min(without_flips, problem.kappa / 2.0), rarer)


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
    block: Block, table: Table, domains: Domains, slopes: FloatArray
) -> tuple[Table, tuple[Sum, Sum]]:
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


def _class_weights(block: Block, _: None) -> tuple[None, tuple[Sum]]:
    return None, (Sum(block.by_class(block.weights).sum(axis=0)),)


def _bisected(problem: Problem, low: float, high: float, rarer: float | None) -> float:
    for _ in range(_BISECTIONS):
        if high - low <= 1e-5 * high:
            break
        middle = 0.5 * (low + high)
        low, high = (low, middle) if _constant(problem, middle, rarer) else (middle, high)
    return high


def _doubled(problem: Problem) -> float:
    """A radius at which the model is constant."""
    radius = 1.0
    while not _constant(problem, radius, None):
        radius *= 2.0
    return radius


def _constant(problem: Problem, epsilon: float, rarer: float | None) -> bool:
    """Whether features add nothing at this radius; ``rarer`` is the weight of the rarer class."""
    here = problem.with_radius(epsilon)
    found = solve_with_pieces(here, tol=_TOL, monitor=Monitor(None, 0))
    if rarer is not None:
        doubt = min(0.5, rarer + epsilon / problem.kappa)
        return bool(here.objective(found.coefficients) > float(entropy(np.array(doubt))) - _NOTHING)
    domains = problem.domains
    assert domains is not None
    without = found.coefficients.copy()
    moved = np.concatenate([domains.columns, np.flatnonzero(problem.penalised)])
    without[moved] = 0.0
    # Their coefficients of immovable features differ by as little as the others matter.
    return here.objective(without) - here.objective(found.coefficients) < _NOTHING
