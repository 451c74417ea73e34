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

from ..rows.arrays import FloatArray
from .free_columns import Chosen
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
from .sums import Coefficients, FreeColumns, Sums

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
    given: Given, doubt: FloatArray, flip_share: FloatArray, *, sharp: bool = False
) -> Lower:
    """What no model promises less than, as far as this dual point proves it.

    If ``sharp``, sums are formed without rounding, and from the point of the lemma on free columns
    instead of the one that was handed over: it satisfies their equations better.  As doubles it
    would satisfy them no better, so it is a sum of two.
    """
    ball, s, a, weights = given.ball, doubt, flip_share, given.weights
    flips = exact_sum(weights * a) * UP
    r = _coefficients(given, s, a)
    free = FreeColumns(given, r.active)
    sums = Sums.of(given, r, sharp=sharp)
    chosen = free.chosen(sums)
    tilt = 0.0
    if sharp and chosen is not None and chosen.columns.size:
        s, rest = _corrected(free, s, chosen, sums)
        tilt = _tilt(given, s, rest)
        sums = Sums.of(given, _coefficients(given, s, a, rest), sharp=True)
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
    value = mean * DOWN - correction.lost * UP - tilt
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
    if rest is not None:
        lost = lost + rest
        terms = 256  # the rest changes s(1-s) by up to u s/(1-s) of it, below 100 u
    product, low = two_product(given.weights, difference)
    low = low + given.weights * lost
    return Coefficients(
        given.signs * product, given.signs * low,
        8.0 * UNIT**2 * float((given.weights * (s + a)).sum()) + TINY,
        given.weights * (s * (1.0 - s)),
        ((s > 0.0) | (a > 0.0)) & (given.weights > 0.0),
        terms,
    )  # fmt: skip


def _corrected(
    free: FreeColumns, s: FloatArray, chosen: Chosen, sums: Sums
) -> tuple[FloatArray, FloatArray]:
    """The point of the lemma, about, as a double and what it lost to rounding."""
    c = chosen.correction(free.concerned(sums.gradient.value, sums.balance.value))
    moved, rest = s.copy(), np.zeros_like(s)
    for rows, Z in free.parts():
        part = s[rows]
        step = part * (1.0 - part) * free.given.signs[rows] * (Z @ c)
        high, low = two_sum(part, -step)
        moved[rows] = np.clip(high, 0.0, 1.0)
        rest[rows] = np.where((high > 0.0) & (high < 0.99), low, 0.0)
    return moved, rest


def _tilt(given: Given, s: FloatArray, rest: FloatArray) -> float:
    """How much smaller the mean of ``H(s + rest)`` can be than that of ``H(s)``.

    ``|H'|`` is at most ``|log s| + |log(1-s)|``, which is at least ``2 log 2``; the factor 2 is far
    more than the curvature takes, as ``|rest| ≤ u s`` and s < 0.99.
    """
    moved = rest != 0.0
    slope = np.abs(np.log(s[moved])) + np.abs(np.log1p(-s[moved]))
    lost = exact_sum(given.weights[moved] * np.abs(rest[moved]) * slope)
    return 2.0 * lost / given.total_weight * UP


def sharp_lower_bound(given: Given, doubt: FloatArray, flip_share: FloatArray) -> Lower:
    """The same with all the care there is: also from the point scaled into the ball, and rounded.

    ``H(θs)`` is larger than ``θH(s)``, which is all that is used of a point outside.
    """
    first = lower_bound(given, doubt, flip_share, sharp=True)
    if not 0.0 < first.excess < math.inf:
        return first
    factor = DOWN / (1.0 + first.excess)
    second = lower_bound(given, factor * doubt, factor * flip_share, sharp=True)
    return Lower(max(first.value, second.value), first.excess, first.equations)
