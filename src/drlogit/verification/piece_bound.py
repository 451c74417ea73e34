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
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..problem.ball import Ball
from ..problem.moves import Moves
from ..rows.arrays import BoolArray, FloatArray
from .bounds import Lower, entropy
from .domain import Domain
from .free_columns import Chosen
from .given import Given
from .products import add_scattered
from .rounding import (
    DOWN,
    LOGARITHMS,
    TINY,
    UNIT,
    UP,
    Enclosed,
    Total,
    exact_sum,
    gamma,
    norm_of,
    two_sum,
)
from .sums import Coefficients, Correction, FreeColumns, Sums

#: Slightly more than log 2.
_CONSTANT = 0.6931471805599454

#: What is left of a sample's mass is known to this, and to a rounding.
_LEFT = 1e-27

#: What rounding of a scaled doubt can change in its entropy: 12 u times a logarithm below 40.
_SCALED = 16.0 * UNIT * 64.0


def infeasible_pieces(doubt: FloatArray, moves: Moves, domain: Domain, ball: Ball) -> str | None:
    """Why these are no pieces, masses and doubts."""
    n_pieces = moves.sample.size
    wrong = None
    if any(array.shape[0] != n_pieces for array in moves.arrays):
        wrong = "its arrays of moves differ in length"
    elif moves.items.shape != (n_pieces, -(-domain.n_items // 8)):
        wrong = f"moves must have {domain.n_items} items"
    elif n_pieces and not (moves.sample.min() >= 0 and moves.sample.max() < doubt.size):
        wrong = "moves must be of samples that there are"
    elif (np.diff(moves.sample) < 0).any():
        wrong = "moves must be in the order of the samples"
    elif not ((moves.doubt >= 0.0) & (moves.doubt <= 1.0)).all():
        wrong = "doubt of moves must lie in [0, 1]"
    elif not (moves.share >= 0.0).all() or (_left(moves, doubt.size) < -_LEFT).any():
        wrong = "shares of moves must be at least 0, and at most 1 for a sample"
    elif moves.flipped.any() and math.isinf(ball.kappa):
        wrong = "labels are flipped where none can be"
    elif _ends(moves, domain).all(axis=2).any():
        wrong = "a feature is moved to both of its ends"
    return None if wrong is None else f"infeasible dual point: {wrong}"


def no_moves(domain: Domain) -> Moves:
    """Every sample stays where it is."""
    none = np.zeros(0)
    items = np.zeros((0, -(-domain.n_items // 8)), dtype=np.uint8)
    return Moves(none.astype(np.int64), none.astype(bool), items, none, none)


def _bits(items: NDArray[np.uint8], domain: Domain) -> BoolArray:
    return np.unpackbits(items, axis=1, count=domain.n_items).astype(bool)


def _ends(moves: Moves, domain: Domain) -> BoolArray:
    """Whether each bounded feature is at its lower and at its upper end."""
    bits = _bits(moves.items, domain)[:, domain.n_groups :]
    return bits.reshape(moves.sample.size, domain.bounded.size, 2)


def _left(moves: Moves, n_samples: int) -> FloatArray:
    """``1 - Σ share`` of each sample, as if rounded once, but for 1e-27."""
    counts = np.bincount(moves.sample, minlength=n_samples)
    first = np.cumsum(counts) - counts
    high, low = np.ones(n_samples), np.zeros(n_samples)
    for rank in range(int(counts.max(initial=0))):
        some = np.flatnonzero(counts > rank)
        high[some], lost = two_sum(high[some], -moves.share[first[some] + rank])
        low[some] += lost
    return high + low


def piece_lower_bound(
    given: Given, doubt: FloatArray, moves: Moves, promise: float, *, sharp: bool = False
) -> Lower:
    """What no model promises less than, as far as these pieces prove it.

    ``promise`` is what some model promises at most.  If ``sharp``, sums are formed with little
    rounding, and from a point that satisfies the equations of free columns up to rounding.
    """
    point = _Point.of(given, doubt, moves)
    sums = Sums.of(given, point.coefficients, sharp=sharp)
    free = FreeColumns(given, point.coefficients.active)
    chosen = free.chosen(sums)
    if sharp and chosen is not None and chosen.columns.size:
        point = _corrected(point, free, chosen, sums)
        sums = Sums.of(given, point.coefficients, sharp=True)
        chosen = free.chosen(sums)
    correction = free.correction(chosen, sums)
    if correction is None:
        return Lower(0.0, math.inf, equations=False)
    domain_sums = _DomainSums.of(given, point)
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
    faint = free.charge_of_faint(point.per_sample(point.p, point.moved_p), sums)
    value = point.value(factor) * DOWN - correction.lost * UP - factor * charge * UP - faint
    return Lower(max(value * DOWN, 0.0), max(spent / epsilon - 1.0, 0.0))


def _corrected(point: _Point, free: FreeColumns, chosen: Chosen, sums: Sums) -> _Point:
    """About the point that satisfies the equations of free columns."""
    given, moves = point.given, point.moves
    c = chosen.correction(free.concerned(sums.gradient.value, sums.balance.value))
    step = np.empty(point.doubt.size)
    for rows, Z in free.parts():
        step[rows] = Z @ c

    def moved(s: FloatArray, t: FloatArray) -> FloatArray:
        return np.clip(s - s * (1.0 - s) * t, 0.0, 1.0)

    doubts = moved(moves.doubt, point.signs * step[moves.sample])
    return _Point.of(given, moved(point.doubt, given.signs * step), replace(moves, doubt=doubts))


@dataclass(frozen=True, eq=False)
class _Point:
    """Pieces with what they weigh: relative errors of p are at most 8 u."""

    given: Given
    doubt: FloatArray
    moves: Moves
    left: FloatArray  # shares of the samples as they are
    p: FloatArray  # of the samples as they are
    signs: FloatArray  # labels of the others
    moved_p: FloatArray
    most: int  # pieces of a sample

    @classmethod
    def of(cls, given: Given, doubt: FloatArray, moves: Moves) -> _Point:
        left = np.maximum(_left(moves, doubt.size), 0.0)
        counts = np.bincount(moves.sample, minlength=doubt.size)
        return cls(
            given, doubt, moves, left, given.weights * left * doubt,
            given.signs[moves.sample] * np.where(moves.flipped, -1.0, 1.0),
            given.weights[moves.sample] * moves.share * moves.doubt,
            int(counts.max(initial=0)) + 1,
        )  # fmt: skip

    def per_sample(self, own: FloatArray, moved: FloatArray) -> FloatArray:
        """Sums over the pieces of each sample."""
        return own + np.bincount(self.moves.sample, moved, minlength=own.size)

    @property
    def total(self) -> float:
        """``Σ p``, rounded upwards."""
        return (exact_sum(self.p) + exact_sum(self.moved_p)) * UP

    @property
    def noise(self) -> float:
        """Errors of all p, and of their sums over the pieces of each sample."""
        return gamma(self.most + 16) * self.total * UP + _LEFT * self.given.total_weight + TINY

    @property
    def coefficients(self) -> Coefficients:
        p, s, signs = self.p, self.doubt, self.given.signs
        return Coefficients(
            self.per_sample(signs * p, self.signs * self.moved_p), np.zeros_like(p), self.noise,
            self.per_sample(p * (1.0 - s), self.moved_p * (1.0 - self.moves.doubt)),
            self.per_sample(p, self.moved_p) > 0.0, self.most + 16,
        )  # fmt: skip

    def by_label(self, label: float) -> float:
        """``Σ p`` over the pieces with a label."""
        own, others = self.given.signs == label, self.signs == label
        return exact_sum(self.p[own]) + exact_sum(self.moved_p[others])

    def value(self, factor: float) -> float:
        """``Σ q H(s)`` of the point scaled by a factor, rounded downwards."""
        weights, moves, total = self.given.weights, self.moves, self.given.total_weight
        moved = weights[moves.sample] * moves.share * entropy(moves.doubt)
        mass, doubt, lost = self.left, self.doubt, 0.0
        if factor < 1.0:
            mass = self.left + (1.0 - factor) * (1.0 - self.left)
            share = np.divide(self.left, mass, out=np.zeros_like(mass), where=mass > 0.0)
            doubt, lost = np.minimum(factor * share * self.doubt, 1.0), _SCALED
        found = factor * exact_sum(moved) + exact_sum(weights * mass * entropy(doubt))
        return found / total * (1.0 - LOGARITHMS) * DOWN - lost - 2.0 * _LEFT


@dataclass(frozen=True, eq=False)
class _DomainSums:
    """Entries of g at categories, low, high and bounded features, and ``Σ q d`` upwards.

    Those of bounded features are only what moves add to the samples as they are.
    """

    groups: Enclosed
    bounded: Enclosed
    spent: float

    @classmethod
    def of(cls, given: Given, point: _Point) -> _DomainSums:
        domain, moves = given.domain, point.moves
        assert domain is not None
        n, n_groups = given.coef.size, domain.n_groups
        groups, bounded = Total(n + 2 * n_groups), Total(domain.bounded.size)
        r, change = point.coefficients.high, point.signs * point.moved_p
        cost = np.where(moves.flipped, given.ball.kappa, 0.0)
        for rows, part in given.rows():
            now = domain.present(part.X)
            first, last = np.searchsorted(moves.sample, [rows.start, rows.stop])
            some = slice(int(first), int(last))
            own, v = moves.sample[some] - rows.start, change[some]
            bits = _bits(moves.items[some], domain)
            there = now >= 0
            add_scattered(groups, now[there], np.repeat(r[rows], there.sum(axis=1)))
            k, g = np.nonzero(bits[:, :n_groups])
            column = now[own[k], g]
            add_scattered(groups, column[column >= 0], -v[k][column >= 0])
            add_scattered(groups, n + g + n_groups * (point.signs[some][k] < 0.0), v[k])
            cost[some] += bits[:, :n_groups] @ domain.group_costs
            k, item = np.nonzero(bits[:, n_groups:])
            j = item // 2
            if not j.size:
                continue
            values = part.columns(domain.bounded) + given.shift[domain.bounded]
            end = np.where(item % 2 == 1, domain.upper[j], domain.lower[j])
            distance = end - values[own[k], j]
            add_scattered(bounded, j, v[k] * distance)
            sizes = np.bincount(j, np.abs(v[k] * distance), minlength=bounded.size)
            wrong = 12.0 * UNIT * (1.0 + gamma(j.size)) * UP
            bounded.add(np.zeros(1), np.asarray(wrong * sizes + TINY))
            cost[some] += np.bincount(k, domain.bounded_costs[j] * np.abs(distance), v.size)
        mass = given.weights[moves.sample] * moves.share
        spent = exact_sum(mass * cost) * (1.0 + gamma(domain.n_items + 8)) * UP
        return cls(groups.enclosed(), bounded.enclosed(), spent)


def _charge(
    given: Given,
    point: _Point,
    sums: Sums,
    found: _DomainSums,
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
    flipped = exact_sum(point.moved_p[point.moves.flipped]) * UP + change
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
    excess = _excess(given.coef.size, domain, found.groups) + (moved + 2.0 * noise) * UP
    ratios = np.concatenate([left / per_feature, np.maximum(excess, 0.0) / per_group])
    return float(np.max(ratios, initial=0.0)) * UP * size


def _difference(
    least: dict[float, float], most: dict[float, float], label: float, domain: Domain
) -> FloatArray:
    """``P u' - P' l'`` for P of a label and P' of the other, rounded downwards."""
    up = np.where(domain.most >= 0.0, least[label], most[label]) * domain.most
    low = np.where(domain.least >= 0.0, most[-label], least[-label]) * domain.least
    return up - low - 8.0 * UNIT * (np.abs(up) + np.abs(low))


def _excess(n_features: int, domain: Domain, entries: Enclosed) -> FloatArray:
    """E of each group, upwards, before it is cut off at zero."""
    excess = np.empty(domain.n_groups)
    for g, group in enumerate(domain.groups):
        low, high = n_features + g, n_features + domain.n_groups + g
        G, places = entries.value[group], [*group.tolist(), low, high]
        ends = entries.value[low], entries.value[high]
        if domain.with_none[g]:
            up = math.fsum([*np.maximum(G, 0.0).tolist(), ends[1]])
            found = max(up, math.fsum([*np.maximum(-G, 0.0).tolist(), -ends[0]]))
        else:
            found = 0.5 * math.fsum([*np.abs(G).tolist(), -ends[0], ends[1]])
        excess[g] = found + UNIT * abs(found) + exact_sum(entries.error[places]) * UP
    return excess
