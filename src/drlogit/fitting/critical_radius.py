"""``epsilon_max``: the radius from which on the model is constant, where a path starts.

Let ``s(ε)`` be the doubts of the null model at ε, the best one without penalised features
(:mod:`.null_model`), and ψ the budget that explains doubts away (:mod:`.flip_budget`).  The dual
of (P) is that of the null model with one more constraint, and its objective is strictly concave in
s; so β = 0 (on penalised features) is optimal at ε if and only if

    ψ(s(ε)) ≤ ε.

*κ = ∞.*  Nothing flips, s does not depend on ε, and ε_max is ``ψ = ‖c Σ w_i s_i z_i‖``.

*Finite κ.*  Let E be the least budget of flips that levels the free columns: ``ψ(½)`` without the
penalised features; 0 without free columns, ``κ |p₊ - p₋| / 2`` with an intercept alone.

From E on the null model is zero: λ = 0 costs nothing then, and every loss ``h(u) + (u)_+`` is
least at u = 0.  So s = ½ from E on, and β = 0 is optimal from ``max(E, ψ(½)) = ψ(½)`` on.  If
``ψ(½) > E`` this is the answer.

If ``ψ(½) = E`` then some of the flips that level the free columns level all columns, and the
constant model may reign below E as well.  There the null model spends all of ε on flips, so
``ψ(s(ε)) ≥ ε``, with equality if and only if flips alone can make ``Σ w_i (s_i - a_i) z_i = 0``.

Every β bounds ψ from below, for every s.  So the β that attains ``ψ(s(ε)) > ε`` at one radius
rules out all those up to the next root of ``Σ w_i [s_i(ε) u_i - (u_i - κ)_+] = ε``, and there the
budget is asked for again: a climb by cuts that ends where no β is left, ψ = ε.  For β from the
vertices of a polytope it is finite; 150 random problems took 12 cuts at most.

*An intercept alone*: s is ``p + ε/κ`` for the larger class and 1 - s for the smaller.  Divided by
1 - s, the shares left of the larger class, ``(s - a)/(1-s)``, range over [-1, s/(1-s)], which grows
with ε, and their sums are to be what does not depend on ε.  So what can be levelled at ε can be
levelled at any larger one, and the first radius the climb reaches is the answer.

*Immovable features*: only samples at the kink leave a choice of flips, so ``ψ(½) = E`` takes many
samples that are alike to the null model, as they are where the smaller class is small.  The climb
is the same, with s from a fit of the null model; it starts at a millionth of E, because at
zero free columns may separate the classes, and that fit would have no end.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TypeAlias

import numpy as np
from scipy.optimize import brentq

from ..problem.losses import flip_probability
from ..problem.problem import Problem
from ..rows.arrays import FloatArray
from ..rows.blocks import Block
from ..rows.reductions import Sum
from .flip_budget import flip_budget
from .null_model import (
    constant_model,
    has_immovable_features,
    null_model,
    weight_of_positives,
)

#: The null model's coefficients at a radius.
NullModel: TypeAlias = Callable[[float], FloatArray]

#: Relative difference up to which two budgets are the same ...
_SAME = 1e-9

#: ... and up to which bounds that should have met prove anything.
_DOUBTFUL = 1e-7

#: Cuts until the climb is given up.
_CUTS = 40

#: Roots of a cut are found to rounding.
_EXACT = 4.0 * np.finfo(float).eps

#: The share of E below which immovable features are not asked for.
_NOTHING = 1e-6


def epsilon_max_of(problem: Problem) -> float:
    """The radius from which on the model of a problem is constant; its own ε plays no role."""
    rows, _ = problem.rows.compact or (problem.rows, None)  # as the fits that follow will take them
    problem = replace(problem.with_radius(1.0), rows=rows)
    if problem.domains is not None:
        from .critical_radius_domains import epsilon_max_with_domains  # compiled

        return epsilon_max_with_domains(problem, epsilon_max_of)
    if not problem.penalised.any():
        return 0.0
    if math.isinf(problem.kappa):
        _, (gradient,) = problem.rows.run(_doubt_gradient, None, null_model(problem))
        return problem.transport_norm(gradient)
    zero = np.zeros(problem.costs.size)
    balanced = flip_budget(problem, zero)
    start = 0.0
    if has_immovable_features(problem):
        levelled = flip_budget(problem, zero, free_only=True).upper
        start = _NOTHING * levelled
        null = partial(_fitted_null_model, problem)
    elif problem.fit_intercept:
        positive = weight_of_positives(problem)
        levelled = problem.kappa * abs(positive - 0.5)
        null = partial(_constant_null_model, problem, positive)
    else:
        return balanced.upper
    above = balanced.lower > levelled * (1.0 + _SAME)
    # Costs over many orders leave the upper bound some rounding: that alone shows nothing.
    if above or balanced.upper > levelled * (1.0 + _DOUBTFUL) or levelled == 0.0:
        return balanced.upper
    return _by_cuts(problem, null, start, levelled)


def _by_cuts(problem: Problem, null: NullModel, start: float, levelled: float) -> float:
    """The least ε from ``start`` on with ``ψ(s(ε)) = ε``, where ``ψ(½) = E = levelled``."""

    def excess(radius: float, cut: FloatArray) -> float:
        """What a cut shows ψ to be above the radius."""
        at = null(radius) if radius < levelled else np.zeros_like(cut)
        _, (shown,) = problem.rows.run(_budget_shown, None, at, cut, problem.kappa)
        return float(shown) - radius

    epsilon = start
    for _ in range(_CUTS):
        budget = flip_budget(problem, null(epsilon))
        cut = (budget.coefficients,)
        if excess(epsilon, *cut) <= _SAME * epsilon:  # nothing shows that more is needed
            return epsilon if budget.upper <= epsilon * (1.0 + _DOUBTFUL) else levelled
        if excess(levelled, *cut) >= -_SAME * levelled:
            break  # no room below E
        tolerance = {"xtol": _EXACT * levelled, "rtol": _EXACT}
        epsilon = brentq(excess, epsilon, levelled, args=cut, **tolerance)
    return levelled


def _fitted_null_model(problem: Problem, epsilon: float) -> FloatArray:
    return null_model(problem.with_radius(epsilon))


def _constant_null_model(problem: Problem, positive: float, epsilon: float) -> FloatArray:
    return constant_model(problem.with_radius(epsilon), positive)[0]


def _doubt_gradient(block: Block, _: None, v: FloatArray) -> tuple[None, tuple[Sum]]:
    return None, (Sum(block.adjoint(block.weights * flip_probability(block.margins(v)))),)


def _budget_shown(
    block: Block, _: None, null: FloatArray, v: FloatArray, kappa: float
) -> tuple[None, tuple[Sum]]:
    """``Σ w [s u - (u - κ)_+]`` with s at the null model."""
    u = block.margins(v)
    terms = flip_probability(block.margins(null)) * u - np.maximum(u - kappa, 0.0)
    return None, (Sum(float(block.weights @ terms)),)
