"""The lower bound of a dual point of pieces, where features have domains, rounded downwards.

Piece k of sample i has a label ``y_k``, a cost ``d_k``, a mass ``q_k``, a doubt ``s_k`` and ``p_k
= q_k s_k``; masses of a sample add up to ``w_i``. Since ``h(v) ≥ H(s) - s v``, every ``(β, b, λ)``
with ``‖β_U/c‖_* ≤ λ`` has a worst-case loss of at least

    Σ q_k H(s_k) + λ (ε - Σ q_k d_k) - g·θ,        g = Σ p_k y_k (row of piece k),

where θ has the coefficients, and for each group the least of them, which a piece with ``y = +1``
moves to, and the greatest, for ``y = -1``. There are three things to be said about ``g·θ``.

*Features that the norm measures*: at most ``λ ‖c g_U‖``, so ``‖c g_U‖ + Σ q d ≤ ε`` is wanted.
Where it is not so, all p and the masses of moved pieces are scaled by a factor f < 1, and what is
missing of a sample's mass is its own again; sums scale with f.

*Free columns F* (immovable features, and the constant if there is an intercept or a group without
"none", whose columns add up to it): no piece moves them, so p' near p satisfies ``g_F = 0``
exactly (:mod:`drlogit.verification.free_columns`, also after scaling, as doubts only fall by it).

*Bounded features and groups* have coefficients that nothing bounds but the loss itself. Let ``Δ ≥
Σ |p' - p|``, P the sum of p' of both labels, ``P±`` that of each, and ``P_f`` that of flipped
pieces. No model that promises more than some V is of interest, V being what the given one
promises, or log 2, what the constant one does. For others let the adversary move *everything*,
bounded features to some ``l'`` or ``u'`` within their bounds and around the samples', in the
shares p' of the samples and under the labels of the pieces. For a group that costs at most ``c_g
P``. Features with ``β_j > 0`` go to ``l'`` under the label +1 and to ``u'`` under -1, those with
``β_j < 0`` the other way round, which costs ``c_j`` times ``±Σ p'_k y_k (x_j - m) + P (u' -
l')/2`` with ``P+ = P-`` and m in the middle, otherwise at most ``±Σ p'_k y_k x_j + P max(|l'|,
|u'|)``; and never more than P times the width of the domain. Let C be the sum of all that: with
``h(v) ≥ -v`` and ``g'_F = 0``,

    V - ελ ≥ Σ_j σ_j |β_j| + Σ_g τ_g (high_g - low_g) - λ (‖c g'_U‖ + C + κ P_f).

Here ``τ = min(P+, P-)`` and ``σ_j = min(P- u'_j - P+ l'_j, P+ u'_j - P- l'_j)``; with the constant
in F that is ``P/2`` and ``(u'_j - l'_j) P/2``, as then ``P+ = P-``. As ``λ ≤ V/ε``, the two sums
are at most

    S = V max(1, (‖c g'_U‖ + C + κ P_f)/ε) .

In ``g·θ`` there are ``g_j β_j`` and, for a group with entries G at its categories and ``g_low ≥ 0
≥ g_high``, at most ``E (high - low)``: without "none", where all entries add up to those of the
constant, ``E = ½(Σ|G| - g_low + g_high)``; with it, as ``low ≤ 0 ≤ high``, ``E = max(0, Σ(G)_+ +
g_high, Σ(-G)_+ - g_low)``. So these cost at most ``S max(|g'_j|/σ_j, E'_g/τ)``: next to nothing if
a good dual point was rounded, and whatever it takes otherwise.

S can be thousands of V where ε is small. So all p are sums of two doubles, and if one double was
too coarse for the equations, a point next to the given one is looked for, by least squares.
"""

from __future__ import annotations

import math

import numpy as np

from ..problem.moves import Moves
from ..rows.arrays import FloatArray
from .bounds import Lower
from .domain import Domain
from .given import Given
from .least_change import MOST_ENTRIES, least_change
from .piece_point import PieceMasses
from .piece_sums import DomainSums, excess_of_groups, surplus_of_groups
from .rounding import DOWN, UNIT, UP, exact_sum, norm_of
from .sums import Correction, FreeColumns, Sums

#: Slightly more than log 2.
_CONSTANT = 0.6931471805599454

#: How often a point is moved towards its equations.
_ROUNDS = 3

#: Share of a doubt that a step towards the equations may take.  Of 393 points that proved fits, 391
#: needed less than 5e-6, half of them less than 1e-14.
_ROUNDED = 1e-5


def piece_lower_bound(
    given: Given, doubt: FloatArray, moves: Moves, promise: float, *, sharp: bool = False
) -> Lower:
    """What no model promises less than, as far as these pieces prove it.

    ``promise`` is what some model promises at most.  If ``sharp``, sums are formed with little
    rounding, and from a point nearby that satisfies the equations to twice as many digits.
    """
    point = PieceMasses.of(given, doubt, moves)
    free = FreeColumns(given, point.coefficients.active)
    sums = Sums.of(given, point.coefficients, sharp=sharp)
    if sharp:
        for _ in range(_ROUNDS):
            point = point.levelled(_towards_equations(point, free, sums))
            sums = Sums.of(given, point.coefficients, sharp=True)
    correction = free.correction(free.chosen(sums), sums)
    if correction is None and sharp:
        few = free.few(sums, point.coefficients.curvature)
        if few is not None:
            correction = free.correction_by_few(few, sums, point.coefficients.curvature)
    if correction is None:
        return Lower(0.0, math.inf, equations=False)
    domain_sums = DomainSums.of(given, point)
    total, epsilon = given.total_weight, given.ball.epsilon
    kept = given.kept
    changed = total * correction.moved * UP * sums.column_sizes[kept]
    norm = norm_of(given.ball.norm, (sums.gradient.size[kept] + changed) * given.costs[kept])
    size = min(promise, _CONSTANT)
    charge = size * _charge(given, point, sums, domain_sums, correction, norm)
    if not math.isfinite(charge):
        return Lower(0.0, math.inf, equations=False)
    spent = (norm + domain_sums.spent) / total * UP
    factor = min(1.0, epsilon / spent * DOWN) if spent > 0.0 else 1.0
    faint = free.charge_of_faint(point.masses, sums)
    value = point.value(factor) * DOWN - correction.lost * UP - factor * charge * UP - faint
    return Lower(value * DOWN if value > 0.0 else 0.0, max(spent / epsilon - 1.0, 0.0))


def _towards_equations(point: PieceMasses, free: FreeColumns, sums: Sums) -> FloatArray:
    """A t of each sample that levels free columns, bounded features and groups, about.

    The least one, in the sense of curvatures; where that takes too long or is more than what
    rounding leaves, one for the free columns alone.
    """
    given, domain, curvature = point.given, point.given.domain, point.coefficients.curvature
    assert domain is not None
    columns = np.concatenate([free.which, domain.bounded, domain.grouped])
    if curvature.size * columns.size <= MOST_ENTRIES:
        found = DomainSums.of(given, point)
        wanted = np.concatenate([
            sums.gradient.value[free.which],
            sums.gradient.value[domain.bounded] + found.bounded.value,
            surplus_of_groups(given.coef.size, domain, found.groups),
            sums.balance.value[: int(given.offset)],
        ])  # fmt: skip
        along = least_change(given, columns, curvature, wanted)
        if np.max(np.abs(along), initial=0.0) <= _ROUNDED:
            return along
    chosen = free.chosen(sums)
    return np.zeros(curvature.size) if chosen is None else free.along(chosen, sums)


def _charge(
    given: Given,
    point: PieceMasses,
    sums: Sums,
    found: DomainSums,
    correction: Correction,
    norm: float,
) -> float:
    """What bounded features and groups may cost, in multiples of V; infinite without a proof."""
    domain, ball, total = given.domain, given.ball, given.total_weight
    assert domain is not None
    moved, noise = total * correction.moved * UP, point.noise
    change = moved + noise
    least = {label: point.by_label(label) * DOWN - change for label in (1.0, -1.0)}
    most = {label: point.by_label(label) * UP + change for label in (1.0, -1.0)}
    both = most[1.0] + most[-1.0]
    if given.offset:
        per_group = 0.5 * (least[1.0] + least[-1.0])
        per_feature = per_group * (domain.most - domain.least) * DOWN
    else:
        per_group = min(least.values())
        per_feature = np.minimum(
            _difference(least, most, -1.0, domain), _difference(least, most, 1.0, domain)
        )
    if not (per_group > 0.0 and (per_feature > 0.0).all()):
        return math.inf
    flipped = exact_sum(point.moved_p[0][point.moves.flipped]) * UP + change
    at = domain.bounded
    value, error = sums.gradient.value[at], sums.gradient.error[at]
    low, high = domain.least - given.shift[at], domain.most - given.shift[at]
    sizes = np.maximum(np.abs(low), np.abs(high))
    if given.offset:  # around the middle, as p' has no part in the constant
        middle = 0.5 * (low + high)
        constant = middle * sums.balance.value
        error += np.abs(middle) * sums.balance.error
        error += 4.0 * UNIT * (np.abs(value) + np.abs(constant))
        value, sizes = value - constant, 0.5 * (high - low) + 4.0 * UNIT * sizes
    error += moved * sizes
    cost = norm + float(domain.group_costs.sum()) * UP * both
    furthest = both * (domain.upper - domain.lower) * UP
    moves = np.minimum(np.abs(value) + error + both * sizes, furthest)
    cost += float(domain.bounded_costs @ moves) * UP
    if math.isfinite(ball.kappa):
        cost += ball.kappa * flipped
    size = max(1.0, cost / total / ball.epsilon * UP) * UP
    # What moves add to the samples as they are goes no further than the bounds, and costs what it
    # costs.
    added = np.minimum(
        moved * (domain.upper - domain.lower), correction.reach * found.spent / domain.bounded_costs
    )
    error = error + found.bounded.error + added * UP
    left = (np.abs(value + found.bounded.value) + error) * UP
    excess = excess_of_groups(given.coef.size, domain, found.groups) + (moved + 2.0 * noise) * UP
    ratios = np.concatenate([left / per_feature, np.maximum(excess, 0.0) / per_group])
    return float(np.max(ratios, initial=0.0)) * UP * size


def _difference(
    least: dict[float, float], most: dict[float, float], label: float, domain: Domain
) -> FloatArray:
    """``P u' - P' l'`` for P of a label and P' of the other, rounded downwards."""
    up = np.where(domain.most >= 0.0, least[label], most[label]) * domain.most
    low = np.where(domain.least >= 0.0, most[-label], least[-label]) * domain.least
    return up - low - 8.0 * UNIT * (np.abs(up) + np.abs(low))
