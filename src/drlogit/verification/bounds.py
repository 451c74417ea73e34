"""Both bounds of a fit from the samples, the coefficients and the dual point, rounded outwards.

*Upper.*  For any ``λ ≥ ‖β/c‖_*`` the model promises at most ``ελ + Σ w_i [h(u_i) + (u_i - κλ)_+]``.
Margins are computed up to known errors, which the loss passes on at most as they are (its slope is
between -1 and 1).

*Lower.*  For s, a in [0, 1] let ``g = Σ w_i (s_i - a_i) z_i`` be zero on free columns, and let
``ρ = ‖c g‖ + κ Σ w_i a_i``.  No model promises less than ``min(1, ε/ρ) Σ w_i H(s_i)``: where ρ
exceeds ε, the point ``θ(s, a)`` with ``θ = ε/ρ`` satisfies the constraint, and ``H(θs) ≥ θH(s)``
because H is concave and zero at zero.  Free columns: :mod:`drlogit.verification.free_columns`.

Weights are ``w_i = ω_i / Ω`` with the ω that were given, and all sums are of ω.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..problem.norms import get_norm
from ..rows.arrays import FloatArray, IndexArray
from .given import Given
from .rounding import (
    DOWN,
    LOGARITHMS,
    TINY,
    UNIT,
    UP,
    exact_sum,
    norm_of,
    two_product,
    two_sum,
)
from .sums import Coefficients, FreeColumns, Sums, with_constant

#: Features up to which a point is moved into the ball in twice the digits, how often and how far
#: inside, and the share of its size from which a direction counts.
_MOST_HELD = 1000
_ROUNDS = 2
_INSIDE = 1.0 - 1e-12
_PIVOT = 1e-13

#: Doubts up to which a rest is kept.
_NEARLY_ONE = 1.0 - 2.0**-20

# --- the upper bound ------------------------------------------------------------------------


def upper_bound(given: Given, *, sharp: bool = False) -> float:
    """What the model promises at most."""
    ball = given.ball
    margins = given.margins(sharp=sharp)
    u = margins.value
    loss = np.log1p(np.exp(-np.abs(u))) + np.maximum(-u, 0.0)
    lam = 0.0
    if ball.epsilon > 0.0:  # at 0 the limit λ = ∞ costs nothing
        lam = given.least_lambda
        if math.isfinite(ball.kappa):
            lam = max(lam, _quantile(u, given.weights, ball.epsilon / ball.kappa) / ball.kappa)
            loss = loss + np.maximum(u - ball.kappa * lam * DOWN, 0.0)
    loss = (loss * (1.0 + LOGARITHMS) + margins.error) * UP + TINY
    mean = exact_sum(given.weights * loss) / given.total_weight
    return float((mean + ball.epsilon * lam) * UP)


def _quantile(u: FloatArray, weights: FloatArray, share: float) -> float:
    """A margin with about this share of the weight above it; any λ is allowed, this one is best."""
    if share >= 1.0:
        return -math.inf
    order = np.argsort(-u)
    above = np.cumsum(weights[order]) - weights[order]
    position = int(np.searchsorted(above, share * weights.sum(), side="right")) - 1
    return float(u[order[position]])


# --- the lower bound ------------------------------------------------------------------------


@dataclass(frozen=True)
class Lower:
    """A lower bound; ``excess`` is ρ/ε - 1, ``equations`` whether free columns had a proof."""

    value: float
    excess: float
    equations: bool = True


def lower_bound(
    given: Given,
    doubt: FloatArray,
    flip_share: FloatArray,
    *,
    sharp: bool = False,
    held: bool = False,
) -> Lower:
    """What no model promises less than, as far as this dual point proves it.

    If ``sharp``, sums are formed without rounding, and from the point of the lemma on free columns
    instead of the one that was handed over: it satisfies their equations better.  As doubles it
    would satisfy them no better, so it is a sum of two.  If ``held``, it is moved into the ball,
    too, where doubles are too coarse for that: any point may be tried.
    """
    ball, s, a, weights = given.ball, doubt, flip_share, given.weights
    flips = exact_sum(weights * a) * UP
    r = _coefficients(given, s, a)
    free = FreeColumns(given, r.active)
    sums = Sums.of(given, r, sharp=sharp)
    chosen = free.chosen(sums)
    tilt = 0.0
    if sharp and chosen is not None and (held or chosen.columns.size):
        rest = np.zeros_like(s)
        if held:
            for _ in range(_ROUNDS):
                s, rest = _moved(given, s, rest, *_into_the_ball(given, s, flips, sums))
                sums = Sums.of(given, _coefficients(given, s, a, rest), sharp=True)
        else:
            c = chosen.correction(free.concerned(sums.gradient.value, sums.balance.value))
            s, rest = _moved(given, s, rest, free.which, c)
            sums = Sums.of(given, _coefficients(given, s, a, rest), sharp=True)
        tilt = _tilt(given, s, rest)
        chosen = free.chosen(sums)
    correction = free.correction(chosen, sums)
    if correction is None:
        return Lower(0.0, math.inf, equations=False)
    total = given.total_weight
    kept = given.kept
    changed = total * correction.moved * UP * sums.column_sizes[kept]
    spent = norm_of(ball.norm, (sums.gradient.size[kept] + changed) * given.costs[kept])
    if flips > 0.0:
        spent += ball.kappa * flips
    spent = spent / total * UP
    mean = exact_sum(weights * entropy(s)) / total * (1.0 - LOGARITHMS) - TINY
    faint = free.charge_of_faint(weights * (s + a), sums)
    value = mean * DOWN - correction.lost * UP - tilt - faint
    excess = 0.0
    if spent > ball.epsilon:
        value *= ball.epsilon / spent * DOWN
        excess = spent / ball.epsilon - 1.0 if ball.epsilon > 0.0 else math.inf
    return Lower(max(value * DOWN, 0.0), excess)


def entropy(s: FloatArray) -> FloatArray:
    """``-s log s - (1-s) log(1-s)``, zero at both ends."""
    with np.errstate(divide="ignore", invalid="ignore"):
        inside = -(s * np.log(s) + (1.0 - s) * np.log1p(-s))
    return np.where((s > 0.0) & (s < 1.0), inside, 0.0)


def _coefficients(
    given: Given, s: FloatArray, a: FloatArray, rest: FloatArray | None = None
) -> Coefficients:
    """Those of ``(s + rest, a)``."""
    difference, lost = two_sum(s, -a)
    terms = 0
    if rest is not None:  # which changes s(1-s)
        lost = lost + rest
        moved = rest != 0.0
        change = np.abs(rest[moved]) / (s[moved] * (1.0 - s[moved]))
        terms = 8 + math.ceil(2.0 * float(np.max(change, initial=0.0)) / UNIT)
    product, low = two_product(given.weights, difference)
    low = low + given.weights * lost
    return Coefficients(
        given.signs * product, given.signs * low,
        8.0 * UNIT**2 * float((given.weights * (s + a)).sum()) + TINY,
        given.weights * (s * (1.0 - s)),
        ((s > 0.0) | (a > 0.0)) & (given.weights > 0.0),
        terms,
    )  # fmt: skip


def _moved(
    given: Given, s: FloatArray, rest: FloatArray, which: IndexArray, c: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """``s + rest - s(1-s) z·c``, about, as a double and what it lost to rounding."""
    moved, rest = s.copy(), rest.copy()
    for rows, part in given.rows():
        here = s[rows]
        along = with_constant(given, part, which) @ c
        high, low = two_sum(here, -here * (1.0 - here) * given.signs[rows] * along)
        high, low = two_sum(high, low + rest[rows])
        moved[rows] = np.clip(high, 0.0, 1.0)
        rest[rows] = np.where((high > 0.0) & (high < _NEARLY_ONE), low, 0.0)
    return moved, rest


def _into_the_ball(
    given: Given, s: FloatArray, flips: float, sums: Sums
) -> tuple[IndexArray, FloatArray]:
    """All features, and a c that levels free columns and moves the others into the ball."""
    n, ball, kept = given.coef.size, given.ball, given.kept
    which = np.arange(n)
    width = n + int(ball.fit_intercept)
    matrix = np.zeros((width, width))
    curvature = given.weights * (s * (1.0 - s))
    for rows, part in given.rows():
        Z = with_constant(given, part, which)
        matrix += Z.T @ (curvature[rows, None] * Z)
    size = np.sqrt(np.diagonal(matrix))
    size = np.where(size > 0.0, size, 1.0)
    excess = np.append(sums.gradient.value, sums.balance.value)[:width]
    radius = ball.epsilon * given.total_weight - (ball.kappa * flips if flips > 0.0 else 0.0)
    costs, gradient = given.costs[kept], sums.gradient.value[kept]
    inside = get_norm(ball.norm).project(
        costs * gradient, max(radius, 0.0) * _INSIDE, np.square(costs * size[:n][kept])
    )
    excess[:n][kept] -= inside / costs
    unit = matrix / size / size[:, None]
    return which, np.linalg.lstsq(unit, excess / size, rcond=_PIVOT)[0] / size


def _tilt(given: Given, s: FloatArray, rest: FloatArray) -> float:
    """How much smaller the mean of ``H(s + rest)`` can be than that of ``H(s)``.

    ``|H'|`` is at most ``|log s| + |log(1-s)|``, which is at least ``2 log 2``; the factor 2 is far
    more than the curvature takes, as ``|rest| ≤ u s`` and ``1-s > 2⁻²⁰``.
    """
    moved = rest != 0.0
    slope = np.abs(np.log(s[moved])) + np.abs(np.log1p(-s[moved]))
    lost = exact_sum(given.weights[moved] * np.abs(rest[moved]) * slope)
    return 2.0 * lost / given.total_weight * UP


def sharp_lower_bound(given: Given, doubt: FloatArray, flip_share: FloatArray) -> Lower:
    """The same with all the care there is: also from the point scaled into the ball, and rounded.

    ``H(θs)`` is larger than ``θH(s)``, which is all that is used of a point outside; and where
    doubles cannot resolve the ball, only a point in twice as many digits is inside.
    """
    first = lower_bound(given, doubt, flip_share, sharp=True)
    if not 0.0 < first.excess < math.inf:
        return first
    factor = DOWN / (1.0 + first.excess)
    second = lower_bound(given, factor * doubt, factor * flip_share, sharp=True)
    value = max(first.value, second.value)
    if given.coef.size <= _MOST_HELD:
        value = max(value, lower_bound(given, doubt, flip_share, sharp=True, held=True).value)
    return Lower(value, first.excess, first.equations)
