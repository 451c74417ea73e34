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
from dataclasses import dataclass, replace

import numpy as np

from ..problem.norms import get_norm
from ..rows.arrays import BoolArray, FloatArray
from .doubts import Doubts
from .given import Given
from .least_change import least_change
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
from .sums import Coefficients, Correction, FreeColumns, Sums

#: Features up to which a point is moved into the ball in twice the digits, how often and how far
#: inside.
_MOST_HELD = 1000
_ROUNDS = 3
_INSIDE = 1.0 - 1e-12

# --- the upper bound ------------------------------------------------------------------------


def upper_bound(
    given: Given, lam: float | None = None, wanted: float = -math.inf, *, sharp: bool = False
) -> float:
    """What the model promises at most; at λ, if that is below ``wanted``, else at the best one."""
    ball = given.ball
    margins = given.margins(sharp=sharp)
    u = margins.value
    loss = np.log1p(np.exp(-np.abs(u))) + np.maximum(-u, 0.0)

    def at(lam: float, loss: FloatArray) -> float:
        loss = (loss * (1.0 + LOGARITHMS) + margins.error) * UP + TINY
        mean = exact_sum(given.weights * loss) / given.total_weight
        return float((mean + ball.epsilon * lam) * UP)

    if ball.epsilon == 0.0:  # the limit λ = ∞ costs nothing
        return at(0.0, loss)
    least = given.least_lambda
    if math.isinf(ball.kappa):
        return at(least, loss)

    def with_flips(lam: float) -> float:
        return at(lam, loss + np.maximum(u - ball.kappa * lam * DOWN, 0.0))

    found = with_flips(max(least, lam)) if lam is not None and math.isfinite(lam) else math.inf
    if found <= wanted:
        return found
    best = _quantile(u, given.weights, ball.epsilon / ball.kappa) / ball.kappa
    return min(found, with_flips(max(least, best)))


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


@dataclass(frozen=True, eq=False)
class _PlainPoint:
    """``(s, a)``."""

    given: Given
    doubts: Doubts
    flip_share: FloatArray

    @property
    def coefficients(self) -> Coefficients:
        given, s, a = self.given, self.doubts.value, self.flip_share
        difference, lost = two_sum(s, -a)
        lost = lost + self.doubts.rest
        if (given.weights == 1.0).all():
            product, low = difference, lost
        else:
            product, low = two_product(given.weights, difference)
            low = low + given.weights * lost
        return Coefficients(
            given.signs * product, given.signs * low,
            8.0 * UNIT**2 * float((given.weights * (s + a)).sum()) + TINY,
            given.weights * self.doubts.curvature,
            ((s > 0.0) | (a > 0.0)) & (given.weights > 0.0),
            self.doubts.roundings,
        )  # fmt: skip

    def moved(self, along: FloatArray) -> _PlainPoint:
        """``s - s(1-s) y t`` for these t, about."""
        return replace(self, doubts=self.doubts.moved(self.given.signs * along))


def lower_bound(
    given: Given,
    doubt: FloatArray,
    flip_share: FloatArray,
    *,
    sharp: bool = False,
    held: str | None = None,
) -> Lower:
    """What no model promises less than, as far as this dual point proves it.

    If ``sharp``, sums are formed without rounding, and from the point of the lemma on free columns
    instead of the one that was handed over: it satisfies their equations better.  As doubles it
    would satisfy them no better, so it is a sum of two.  If ``held``, it is moved into the ball,
    too, "projected" or "shrunk", where doubles are too coarse for that: any point may be tried.
    """
    ball, a, weights = given.ball, flip_share, given.weights
    flips = exact_sum(weights * a) * UP
    point = _PlainPoint(given, Doubts.of(doubt), flip_share)
    r = point.coefficients
    free = FreeColumns(given, r.active)
    sums = Sums.of(given, r, sharp=sharp)
    level = _has_no_sums(given, doubt != flip_share)
    chosen = None if level else free.chosen(sums)
    if level:
        pass
    elif held:
        for _ in range(_ROUNDS):
            point = point.moved(_into_the_ball(given, r.curvature, flips, sums, held))
            r = point.coefficients
            sums = Sums.of(given, r, sharp=True)
        chosen = free.chosen(sums)
    if sharp and chosen is not None and chosen.columns.size:
        point = point.moved(free.along(chosen, sums))
        sums = Sums.of(given, point.coefficients, sharp=True)
        chosen = free.chosen(sums)
    correction = Correction(0.0, 0.0, 0.0) if level else free.correction(chosen, sums)
    if correction is None and sharp:
        point, sums, correction = _by_few(point, free, sums)
    if correction is None:
        return Lower(0.0, math.inf, equations=False)
    total = given.total_weight
    kept = given.kept
    changed = total * correction.moved * UP * sums.column_sizes[kept]
    spent = norm_of(ball.norm, (sums.gradient.size[kept] + changed) * given.costs[kept])
    if flips > 0.0:
        spent += ball.kappa * flips
    spent = spent / total * UP
    s = point.doubts.value
    mean = exact_sum(weights * entropy(s)) / total * (1.0 - LOGARITHMS) - TINY
    faint = 0.0 if level else free.charge_of_faint(weights * (s + a), sums)
    value = mean * DOWN - correction.lost * UP - faint
    value -= point.doubts.tilt(weights) / total * UP
    excess = 0.0
    if spent > ball.epsilon:
        value *= ball.epsilon / spent * DOWN
        excess = spent / ball.epsilon - 1.0 if ball.epsilon > 0.0 else math.inf
    return Lower(value * DOWN if value > 0.0 else 0.0, excess)


def entropy(s: FloatArray) -> FloatArray:
    """``-s log s - (1-s) log(1-s)``, zero at both ends."""
    with np.errstate(divide="ignore", invalid="ignore"):
        inside = -(s * np.log(s) + (1.0 - s) * np.log1p(-s))
    return np.where((s > 0.0) & (s < 1.0), inside, 0.0)


def _has_no_sums(given: Given, samples: BoolArray) -> bool:
    """Whether these samples, the only ones with s ≠ a, have no entry: all sums are exactly zero."""
    if given.offset:
        return not samples.any()
    return not any(
        np.asarray(part.sizes[samples[rows]].sum(axis=1)).any() for rows, part in given.rows()
    )


def _by_few(
    point: _PlainPoint, free: FreeColumns, sums: Sums
) -> tuple[_PlainPoint, Sums, Correction | None]:
    """A point whose equations few samples have levelled, and what is still to be taken from it."""
    r = point.coefficients
    few = free.few(sums, r.curvature)
    if few is None:
        return point, sums, None
    for _ in range(_ROUNDS):
        left = free.concerned(sums.gradient.value, sums.balance.value)
        point = point.moved(few.along(left, r.curvature))
        r = point.coefficients
        sums = Sums.of(point.given, r, sharp=True)
    return point, sums, free.correction_by_few(few, sums, r.curvature)


def _into_the_ball(
    given: Given, curvature: FloatArray, flips: float, sums: Sums, how: str
) -> FloatArray:
    """Changes that level free columns and move the others into the ball."""
    ball, kept = given.ball, given.kept
    excess = np.append(sums.gradient.value, sums.balance.value[: int(given.offset)])
    radius = ball.epsilon * given.total_weight - (ball.kappa * flips if flips > 0.0 else 0.0)
    radius = max(radius, 0.0) * _INSIDE
    costs, gradient = given.costs[kept], sums.gradient.value[kept]
    if how == "shrunk":  # a sum of rows like the gradient itself, where columns depend on others
        length = norm_of(ball.norm, np.abs(costs * gradient))
        inside = costs * gradient * min(radius / length if length > 0.0 else 1.0, 1.0)
    else:
        metric = np.square(costs * given.column_sizes[kept])
        inside = get_norm(ball.norm).project(
            costs * gradient, radius, np.where(metric > 0.0, metric, 1.0)
        )
    excess[: -1 if given.offset else None][kept] -= inside / costs
    return least_change(given, np.arange(given.coef.size), curvature, excess)


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
    for held in ("projected", "shrunk") if given.coef.size <= _MOST_HELD else ():
        value = max(value, lower_bound(given, doubt, flip_share, sharp=True, held=held).value)
    return Lower(value, first.excess, first.equations)
