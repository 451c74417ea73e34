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

*An intercept alone*: s is ``p + ε/κ`` for the larger class and 1 - s for the smaller, linear in
ε, and ψ is convex.  Divided by 1 - s, the shares left of the larger class, ``(s - a)/(1-s)``,
range over [-1, s/(1-s)], which grows with ε, and their sums are to be what does not depend on ε.
So what can be levelled at ε can be levelled at any larger one, and Newton's method from the left on
``ψ(s(ε)) - ε`` climbs to the answer; each step is a β that shows a lower bound.

*Immovable features*: only samples at the kink leave a choice of flips, so ``ψ(½) = E`` takes many
samples that are alike to the null model, as they are where the smaller class is small.  The
answer below E is then found by bisection: β = 0 is optimal there, and a millionth below it is not.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..problem.losses import flip_probability
from ..problem.norms import Norm
from ..problem.problem import Problem, build_problem
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

__all__ = ["epsilon_max"]

#: Relative difference up to which two budgets are the same ...
_SAME = 1e-9

#: ... and up to which bounds that should have met prove anything.
_DOUBTFUL = 1e-7

#: Steps of Newton's method, which ends by itself on piecewise linear functions (150 random
#: problems took 12 at most), and the relative length of the last.
_NEWTON_STEPS = 40
_SMALL_STEP = 1e-10

#: Relative accuracy of the bisection, and the share of E below which it does not look.
_NARROW = 1e-6
_NOTHING = 1e-6


def epsilon_max(
    X: Any,
    y: ArrayLike,
    *,
    kappa: float,
    norm: str | Norm = "l1",
    fit_intercept: bool = True,
    feature_costs: ArrayLike | None = None,
    categories: Any = None,
    bounds: Any = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """The radius from which on the robust model is constant: β = 0 (on penalised features).

    Parameters are those of :func:`drlogit.solve`; ``epsilon / kappa`` is the largest share of
    labels the adversary may flip.  Never above ``kappa / 2``: who may flip half of the labels
    leaves nothing to learn.

    Returns
    -------
    float
        ε_max, to about nine digits; to about six where there are immovable features and
        flips that level them level all others, too.  With ``categories`` or ``bounds`` to about
        five, and nine again where labels cannot flip and nothing is immovable.
    """
    problem = build_problem(
        X, y, epsilon=1.0, kappa=kappa, norm=norm, fit_intercept=fit_intercept,
        feature_costs=feature_costs, categories=categories, bounds=bounds,
        sample_weight=sample_weight,
    )  # fmt: skip
    return epsilon_max_of(problem)


def epsilon_max_of(problem: Problem) -> float:
    """:func:`epsilon_max` of a problem; its own ε plays no role."""
    problem = problem.with_radius(1.0)
    if problem.domains is not None:
        from .critical_radius_domains import epsilon_max_with_domains  # compiled

        return epsilon_max_with_domains(problem, epsilon_max_of)
    if not problem.penalised.any():
        return 0.0
    if math.isinf(problem.kappa):
        _, (gradient,) = problem.rows.run(_doubt_gradient, None, null_model(problem))
        return problem.transport_norm(gradient)
    zero = np.zeros(problem.costs.size)
    balanced = flip_budget(problem, zero).upper
    if has_immovable_features(problem):
        levelled = flip_budget(problem, zero, free_only=True).upper
        return balanced if balanced > levelled * (1.0 + _SAME) else _by_bisection(problem, levelled)
    if not problem.fit_intercept:
        return balanced
    positive = weight_of_positives(problem)
    levelled = problem.kappa * abs(positive - 0.5)
    if balanced > levelled * (1.0 + _SAME):
        return balanced
    return _by_newton(problem, positive, levelled)


def _by_newton(problem: Problem, positive: float, levelled: float) -> float:
    """The least ε with ``ψ(s(ε)) = ε`` for an intercept alone, from the left."""
    larger = int(positive > 0.5)
    epsilon = 0.0
    for _ in range(_NEWTON_STEPS):
        null, _ = constant_model(problem.with_radius(epsilon), positive)
        budget = flip_budget(problem, null)
        # The value of β at ε: s of the larger class rises by 1/κ per unit of ε, the other's falls.
        _, (margins,) = problem.rows.run(_class_margins, None, budget.coefficients)
        rise = float(margins[larger] - margins[1 - larger]) / problem.kappa
        excess = budget.lower - epsilon
        if excess >= (levelled - epsilon) * (1.0 - rise):
            break  # no room below E
        if excess <= _SMALL_STEP * epsilon * (1.0 - rise):
            return epsilon if budget.upper <= epsilon * (1.0 + _DOUBTFUL) else levelled
        epsilon += excess / (1.0 - rise)
    return levelled


def _by_bisection(problem: Problem, levelled: float) -> float:
    """The least ε with ``ψ(s(ε)) = ε`` where immovable features leave many flips alike."""
    low, high = 0.0, levelled
    while high - low > _NARROW * high and high > _NOTHING * levelled:
        middle = math.sqrt(low * high) if low > 0.0 else 0.01 * high
        budget = flip_budget(problem, null_model(problem.with_radius(middle)))
        if budget.upper <= middle * (1.0 + _NARROW):
            high = middle
        elif budget.lower > middle:
            low = middle
        else:
            break  # bounds that did not meet: nothing is known below `high`
    return high


def _doubt_gradient(block: Block, _: None, v: FloatArray) -> tuple[None, tuple[Sum]]:
    return None, (Sum(block.adjoint(block.weights * flip_probability(block.margins(v)))),)


def _class_margins(block: Block, _: None, v: FloatArray) -> tuple[None, tuple[Sum]]:
    return None, (Sum(block.by_class(block.weights * block.margins(v)).sum(axis=0)),)
