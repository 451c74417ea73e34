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
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..problem.ball import Ball
from ..problem.moves import Moves
from ..rows.arrays import BoolArray, FloatArray
from .bounds import Lower, entropy
from .domain import Domain
from .doubts import Doubts
from .few_samples import MOST_ENTRIES
from .given import Given
from .products import add_scattered
from .rounding import (
    DOWN,
    LOGARITHMS,
    TINY,
    UNIT,
    UP,
    Enclosed,
    Pair,
    Total,
    exact_sum,
    gamma,
    norm_of,
    pair_product,
    two_product,
    two_sum,
)
from .sums import Coefficients, Correction, FreeColumns, Sums, with_constant

#: Slightly more than log 2.
_CONSTANT = 0.6931471805599454

#: How often a point is moved towards its equations, and the share of its size from which a
#: direction counts.
_ROUNDS = 3
_PIVOT = 1e-13

#: Share of a doubt that a step towards the equations may take.  Of 393 points that proved fits, 391
#: needed less than 2e-4, half of them less than 1e-14.
_ROUNDED = 1e-3

#: What is left of a sample's mass is known to this, and to a rounding.
_LEFT = 1e-27

#: What rounding of a scaled doubt can change in its entropy: 13 u times a logarithm below 40.
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
    elif not (moves.share >= 0.0).all() or (_left(moves, doubt.size)[0] < -_LEFT).any():
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


def _left(moves: Moves, n_samples: int) -> Pair:
    """``1 - Σ share`` of each sample, but for 1e-27."""
    shares = -moves.share, np.zeros_like(moves.share)
    return _added(moves, (np.ones(n_samples), np.zeros(n_samples)), shares)


def _added(moves: Moves, own: Pair, moved: Pair) -> Pair:
    """Sums over the pieces of each sample, its own first."""
    counts = np.bincount(moves.sample, minlength=own[0].size)
    first = np.cumsum(counts) - counts
    high, low = own[0].copy(), own[1].copy()
    for rank in range(int(counts.max(initial=0))):
        some = np.flatnonzero(counts > rank)
        piece = first[some] + rank
        high[some], lost = two_sum(high[some], moved[0][piece])
        low[some] += lost + moved[1][piece]
    return two_sum(high, low)


def piece_lower_bound(
    given: Given, doubt: FloatArray, moves: Moves, promise: float, *, sharp: bool = False
) -> Lower:
    """What no model promises less than, as far as these pieces prove it.

    ``promise`` is what some model promises at most.  If ``sharp``, sums are formed with little
    rounding, and from a point nearby that satisfies the equations to twice as many digits.
    """
    point = _PiecePoint.of(given, doubt, moves)
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
    faint = free.charge_of_faint(point.masses, sums)
    value = point.value(factor) * DOWN - correction.lost * UP - factor * charge * UP - faint
    return Lower(value * DOWN if value > 0.0 else 0.0, max(spent / epsilon - 1.0, 0.0))


@dataclass(frozen=True, eq=False)
class _PiecePoint:
    """Pieces with what they weigh, as sums of two doubles."""

    given: Given
    moves: Moves
    left: Pair  # shares of the samples as they are
    signs: FloatArray  # labels of the other pieces
    own: Doubts
    moved: Doubts

    @classmethod
    def of(cls, given: Given, doubt: FloatArray, moves: Moves) -> _PiecePoint:
        high, low = _left(moves, doubt.size)
        empty = high <= 0.0
        return cls(
            given, moves, (np.where(empty, 0.0, high), np.where(empty, 0.0, low)),
            given.signs[moves.sample] * np.where(moves.flipped, -1.0, 1.0),
            Doubts.of(doubt), Doubts.of(moves.doubt),
        )  # fmt: skip

    def levelled(self, along: FloatArray) -> _PiecePoint:
        """``s - s(1-s) y t`` for a t of each sample, about."""
        return replace(
            self,
            own=self.own.moved(self.given.signs * along),
            moved=self.moved.moved(self.signs * along[self.moves.sample]),
        )

    @cached_property
    def mass(self) -> Pair:
        """Of the samples as they are."""
        return pair_product((self.given.weights, np.zeros(1)), self.left)

    @cached_property
    def moved_mass(self) -> Pair:
        return two_product(self.given.weights[self.moves.sample], self.moves.share)

    @cached_property
    def p(self) -> Pair:
        """Of the samples as they are; like that of the others wrong by at most ``32 u²`` of it."""
        return pair_product(self.mass, self.own.pair)

    @cached_property
    def moved_p(self) -> Pair:
        return pair_product(self.moved_mass, self.moved.pair)

    @cached_property
    def most(self) -> int:
        """Pieces of a sample."""
        return int(np.bincount(self.moves.sample).max(initial=0)) + 1

    @property
    def total(self) -> float:
        """``Σ p``, rounded upwards."""
        return (exact_sum(self.p[0]) + exact_sum(self.moved_p[0])) * UP

    @property
    def noise(self) -> float:
        """Errors of all p, and of their sums over the pieces of each sample."""
        own = ((self.most + 16) * UNIT) ** 2 * self.total * UP
        return own + _LEFT * self.given.total_weight + TINY

    @cached_property
    def coefficients(self) -> Coefficients:
        own, moved = self.given.signs, self.signs
        high, low = _added(
            self.moves,
            (own * self.p[0], own * self.p[1]),
            (moved * self.moved_p[0], moved * self.moved_p[1]),
        )
        return Coefficients(
            high, low, self.noise,
            self._per_sample(
                self.mass[0] * self.own.curvature, self.moved_mass[0] * self.moved.curvature
            ),
            self._per_sample(self.p[0], self.moved_p[0]) > 0.0,
            self.most + 8 + max(self.own.roundings, self.moved.roundings),
        )  # fmt: skip

    def _per_sample(self, own: FloatArray, moved: FloatArray) -> FloatArray:
        return own + np.bincount(self.moves.sample, moved, minlength=own.size)

    @property
    def masses(self) -> FloatArray:
        """``Σ p`` of each sample."""
        return self._per_sample(self.p[0], self.moved_p[0]) * UP

    def by_label(self, label: float) -> float:
        """``Σ p`` over the pieces with a label."""
        own, others = self.given.signs == label, self.signs == label
        return exact_sum(self.p[0][own]) + exact_sum(self.moved_p[0][others])

    def value(self, factor: float) -> float:
        """``Σ q H(s)`` of the point scaled by a factor, rounded downwards."""
        weights, total, left = self.given.weights, self.given.total_weight, self.left[0]
        moved = self.moved_mass[0] * entropy(self.moved.value)
        mass, doubt, lost = left, self.own.value, 0.0
        if factor < 1.0:
            mass = left + (1.0 - factor) * (1.0 - left)
            share = np.divide(left, mass, out=np.zeros_like(mass), where=mass > 0.0)
            doubt, lost = np.minimum(factor * share * doubt, 1.0), _SCALED
        found = factor * exact_sum(moved) + exact_sum(weights * mass * entropy(doubt))
        tilt = self.own.tilt(self.mass[0]) + self.moved.tilt(self.moved_mass[0])
        found = found / total * (1.0 - LOGARITHMS) * DOWN - lost - 2.0 * _LEFT
        return found - tilt / total * UP


def _towards_equations(point: _PiecePoint, free: FreeColumns, sums: Sums) -> FloatArray:
    """A t of each sample that levels free columns, bounded features and groups, about.

    The least one, in the sense of curvatures; where that takes too long or is more than what
    rounding leaves, one for the free columns alone.
    """
    given, domain, curvature = point.given, point.given.domain, point.coefficients.curvature
    assert domain is not None
    columns = np.concatenate([free.which, domain.bounded, domain.grouped])
    if curvature.size * columns.size <= MOST_ENTRIES:
        found = _DomainSums.of(given, point)
        wanted = np.concatenate([
            sums.gradient.value[free.which],
            sums.gradient.value[domain.bounded] + found.bounded.value,
            *(_surplus(given.coef.size, g, domain, found.groups) for g in range(domain.n_groups)),
            sums.balance.value[: int(given.offset)],
        ])  # fmt: skip
        Z = np.concatenate([with_constant(given, part, columns) for _, part in given.rows()])
        root = np.sqrt(curvature)
        size = np.maximum(np.abs(Z).max(axis=0, initial=0.0), TINY)
        step = np.linalg.lstsq((root[:, None] * (Z / size)).T, wanted / size, rcond=_PIVOT)[0]
        along = np.divide(step, root, out=np.zeros_like(root), where=root > 0.0)
        if np.max(np.abs(along), initial=0.0) <= _ROUNDED:
            return along
    chosen = free.chosen(sums)
    return np.zeros(curvature.size) if chosen is None else free.along(chosen, sums)


def _surplus(n_features: int, g: int, domain: Domain, entries: Enclosed) -> FloatArray:
    """What the entries of a group at its categories have too much."""
    G, low, high = _entries(n_features, g, domain, entries)
    found = np.zeros_like(G)
    for part, room in ((np.maximum(G, 0.0), -high), (np.minimum(G, 0.0), low)):
        size = float(np.abs(part).sum())
        found += part * (max(size - room, 0.0) / size if size > 0.0 else 0.0)
    return found


@dataclass(frozen=True, eq=False)
class _DomainSums:
    """Entries of g at categories, low, high and bounded features, and ``Σ q d`` upwards.

    Those of bounded features are only what moves add to the samples as they are.
    """

    groups: Enclosed
    bounded: Enclosed
    spent: float

    @classmethod
    def of(cls, given: Given, point: _PiecePoint) -> _DomainSums:
        domain, moves = given.domain, point.moves
        assert domain is not None
        n, n_groups = given.coef.size, domain.n_groups
        groups, bounded = Total(n + 2 * n_groups), Total(domain.bounded.size)
        r = point.coefficients
        change = tuple(point.signs * part for part in point.moved_p)
        cost = np.where(moves.flipped, given.ball.kappa, 0.0)
        for rows, part in given.rows():
            now = domain.present(part.X)
            first, last = np.searchsorted(moves.sample, [rows.start, rows.stop])
            some = slice(int(first), int(last))
            own = moves.sample[some] - rows.start
            bits = _bits(moves.items[some], domain)
            there = now >= 0
            k, g = np.nonzero(bits[:, :n_groups])
            column = now[own[k], g]
            end = n + g + n_groups * (point.signs[some][k] < 0.0)
            for each, v in zip((r.high, r.low), change, strict=True):
                add_scattered(groups, now[there], np.repeat(each[rows], there.sum(axis=1)))
                add_scattered(groups, column[column >= 0], -v[some][k][column >= 0])
                add_scattered(groups, end, v[some][k])
            cost[some] += bits[:, :n_groups] @ domain.group_costs
            k, item = np.nonzero(bits[:, n_groups:])
            j = item // 2
            if not j.size:
                continue
            values = part.columns(domain.bounded) + given.shift[domain.bounded]
            to = np.where(item % 2 == 1, domain.upper[j], domain.lower[j])
            distance = two_sum(to, -values[own[k], j])
            products = pair_product((change[0][some][k], change[1][some][k]), distance)
            for product in products:
                add_scattered(bounded, j, product)
            sizes = np.bincount(j, np.abs(products[0]), minlength=bounded.size)
            bounded.add(np.zeros(1), np.asarray(64.0 * UNIT**2 * sizes + TINY))
            cost[some] += np.bincount(k, domain.bounded_costs[j] * np.abs(distance[0]), own.size)
        spent = exact_sum(point.moved_mass[0] * cost) * (1.0 + gamma(domain.n_items + 8)) * UP
        return cls(groups.enclosed(), bounded.enclosed(), spent)


def _charge(
    given: Given,
    point: _PiecePoint,
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
        places = [*group.tolist(), n_features + g, n_features + domain.n_groups + g]
        G, low, high = _entries(n_features, g, domain, entries)
        if domain.with_none[g]:
            up = math.fsum([*np.maximum(G, 0.0).tolist(), high])
            found = max(up, math.fsum([*np.maximum(-G, 0.0).tolist(), -low]))
        else:
            found = 0.5 * math.fsum([*np.abs(G).tolist(), -low, high])
        excess[g] = found + UNIT * abs(found) + exact_sum(entries.error[places]) * UP
    return excess


def _entries(
    n_features: int, g: int, domain: Domain, entries: Enclosed
) -> tuple[FloatArray, float, float]:
    """Those of a group at its categories, low and high."""
    low, high = n_features + g, n_features + domain.n_groups + g
    return entries.value[domain.groups[g]], entries.value[low], entries.value[high]
