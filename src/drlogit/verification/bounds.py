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
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from ..problem.ball import Ball
from ..problem.norms import get_norm
from ..rows.arrays import BoolArray, FloatArray, IndexArray
from ..rows.pieces import pieces
from .free_columns import Chosen, are_combinations, choose
from .products import Rows
from .rounding import (
    DOWN,
    LOGARITHMS,
    TINY,
    UNIT,
    UP,
    Enclosed,
    Total,
    exact_sum,
    two_product,
    two_sum,
)

#: Rows at a time: sums over more of them would have larger errors, over fewer larger costs.
_ROWS = 4096

#: Entries of a piece of the free columns, which are dense.
_ENTRIES = 1 << 22

#: Free columns from which no proof is attempted: the matrix would be too large.
_MOST_FREE = 5000

#: Features up to which a point is moved into the ball in twice the digits, how often and how far
#: inside, and the share of its size from which a direction counts.
_MOST_HELD = 1000
_ROUNDS = 2
_INSIDE = 1.0 - 1e-12
_PIVOT = 1e-13

#: The least normal number, and the largest: a free column of entries below the former among the
#: samples that take part is paid for instead of levelled.
_NORMAL = 2.0**-1022
_LARGEST = np.finfo(np.float64).max

#: Doubts up to which a rest is kept.
_NEARLY_ONE = 1.0 - 2.0**-20

#: A column further from zero than this many times its range is shifted, where an intercept makes up
#: for it; its differences from the shift are exact.
_FAR = 64.0


@dataclass(frozen=True, eq=False)
class Given:
    """What the bounds are about: samples, ball and linear model."""

    X: Any  # checked, if it is in memory
    signs: FloatArray
    weights: FloatArray  # ω, at most one
    ball: Ball
    coef: FloatArray
    intercept: float

    @cached_property
    def total_weight(self) -> float:
        """Ω, rounded once."""
        return exact_sum(self.weights)

    @cached_property
    def costs(self) -> FloatArray:
        given = self.ball.feature_costs
        return np.ones(self.coef.size) if given is None else given

    @cached_property
    def free(self) -> BoolArray:
        """Features whose coefficients nothing bounds."""
        return np.isinf(self.costs) | (self.ball.epsilon == 0.0)

    @cached_property
    def step(self) -> int:
        """Rows at a time."""
        n_free = int(self.free.sum()) + 1
        return _ROWS if n_free == 1 else max(64, min(_ROWS, _ENTRIES // n_free))

    @cached_property
    def shift(self) -> FloatArray:
        """What is subtracted from features far from zero."""
        n = self.coef.size
        if not self.ball.fit_intercept:
            return np.zeros(n)
        low, high = np.full(n, np.inf), np.full(n, -np.inf)
        for piece in pieces(self.X, _ROWS, checked=True):
            least, most = _ranges(piece)
            low, high = np.minimum(low, least), np.maximum(high, most)
        with np.errstate(invalid="ignore"):  # infinite where not every entry is stored
            middle = 0.5 * low + 0.5 * high
            far = np.isfinite(middle) & (np.abs(middle) > _FAR * (high - low))
            # Whole numbers stay whole, and constants become zero.
            whole = (low == np.rint(low)) & (high == np.rint(high))
            centre = np.where(whole, np.rint(middle), middle)
        return np.where(far & (middle != 0.0), centre, 0.0)

    def rows(self) -> Iterator[tuple[slice, Rows]]:
        """Pieces of the shifted samples."""
        first = 0
        for piece in pieces(self.X, self.step, checked=True):
            last = first + piece.shape[0]
            yield slice(first, last), Rows.of(piece, self.shift)
            first = last

    @cached_property
    def shifted_intercept(self) -> Enclosed:
        """``b + Σ shift_j β_j``, from exact fractions."""
        exact = Fraction(self.intercept)
        for j in np.flatnonzero(self.shift):
            exact += Fraction(self.shift[j]) * Fraction(self.coef[j])
        value = np.array([float(exact)])
        return Enclosed(value, UNIT * np.abs(value) * UP + TINY)


def _ranges(piece: Any) -> tuple[FloatArray, FloatArray]:
    """Smallest and largest entry of each column; of sparse ones, only if all are stored."""
    if isinstance(piece, np.ndarray):
        return piece.min(axis=0).astype(np.float64), piece.max(axis=0).astype(np.float64)
    low, high = np.full(piece.shape[1], -np.inf), np.full(piece.shape[1], np.inf)
    full = np.flatnonzero(np.bincount(piece.indices, minlength=piece.shape[1]) == piece.shape[0])
    if full.size:
        part = piece[:, full].toarray()
        low[full], high[full] = part.min(axis=0), part.max(axis=0)
    return low, high


# --- the upper bound ------------------------------------------------------------------------


def upper_bound(given: Given, *, sharp: bool = False) -> float:
    """What the model promises at most."""
    ball = given.ball
    u, error = np.empty(given.signs.size), np.empty(given.signs.size)
    intercept = given.shifted_intercept
    for rows, part in given.rows():
        found = part.margins(given.coef, sharp=sharp)
        u[rows] = found.value + intercept.value
        error[rows] = (found.error + intercept.error + UNIT * np.abs(u[rows])) * UP
    u *= given.signs
    loss = np.log1p(np.exp(-np.abs(u))) + np.maximum(-u, 0.0)
    lam = 0.0
    if ball.epsilon > 0.0:  # at 0 the limit λ = ∞ costs nothing
        lam = _dual_norm(given)
        if math.isfinite(ball.kappa):
            lam = max(lam, _quantile(u, given.weights, ball.epsilon / ball.kappa) / ball.kappa)
            loss = loss + np.maximum(u - ball.kappa * lam * DOWN, 0.0)
    loss = (loss * (1.0 + LOGARITHMS) + error) * UP + TINY
    mean = exact_sum(given.weights * loss) / given.total_weight
    return float((mean + ball.epsilon * lam) * UP)


def _dual_norm(given: Given) -> float:
    """``‖β/c‖_*``, rounded upwards."""
    kept = ~given.free
    size = np.abs(given.coef[kept]) / given.costs[kept]
    if given.ball.norm == "l1":
        value = float(np.max(size, initial=0.0))
    elif given.ball.norm == "linf":
        value = exact_sum(size)
    else:
        value = _length(size)
    return value * UP


def _length(x: FloatArray) -> float:
    """Euclidean length, up to a few roundings; no square over- or underflows."""
    scale = float(np.max(np.abs(x), initial=0.0))
    return scale * math.sqrt(exact_sum(np.square(x / scale))) if scale > 0.0 else 0.0


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
    free = _FreeColumns(given, _active(given, s, a))
    sums = _Sums.of(given, s, a, sharp=sharp)
    chosen = free.chosen(sums)
    tilt = 0.0
    if sharp and chosen is not None and (held or chosen.columns.size):
        rest = np.zeros_like(s)
        if held:
            for _ in range(_ROUNDS):
                s, rest = _moved(given, s, rest, *_into_the_ball(given, s, flips, sums))
                sums = _Sums.of(given, s, a, rest, sharp=True)
        else:
            s, rest = _moved(given, s, rest, free.which, free.correction(chosen, sums))
            sums = _Sums.of(given, s, a, rest, sharp=True)
        tilt = _tilt(given, s, rest)
        chosen = free.chosen(sums)
    reach = free.reach(chosen, sums)
    if reach is None or not reach <= 0.5:
        return Lower(0.0, math.inf, equations=False)
    total = given.total_weight
    kept = ~given.free
    gradient = sums.gradient.size[kept] + 0.25 * total * reach * UP * sums.column_sizes[kept]
    spent = _norm(ball.norm, gradient * given.costs[kept])
    if flips > 0.0:
        spent += ball.kappa * flips
    spent = spent / total * UP
    with np.errstate(divide="ignore", invalid="ignore"):
        entropy = -(s * np.log(s) + (1.0 - s) * np.log1p(-s))
    entropy = np.where((s > 0.0) & (s < 1.0), entropy, 0.0)
    mean = exact_sum(weights * entropy) / total * (1.0 - LOGARITHMS) - TINY
    value = mean * DOWN - 0.5 * reach * UP - tilt - free.charge_of_faint(s, a, sums)
    excess = 0.0
    if spent > ball.epsilon:
        value *= ball.epsilon / spent * DOWN
        excess = spent / ball.epsilon - 1.0 if ball.epsilon > 0.0 else math.inf
    return Lower(max(value * DOWN, 0.0), excess)


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


def _norm(name: str, x: FloatArray) -> float:
    """A transport norm of sizes, rounded upwards."""
    if name == "l1":
        return exact_sum(x) * UP
    return (float(np.max(x, initial=0.0)) if name == "linf" else _length(x)) * UP


@dataclass(frozen=True, eq=False)
class _Sums:
    """What a pass over the samples gives: the gradient, and what the free columns need."""

    gradient: Enclosed  # Σ ω_i (s_i - a_i) z_i of the features
    balance: Enclosed  # Σ ω_i (s_i - a_i) y_i, of which the intercept's equation wants 0
    column_sizes: FloatArray
    matrix: FloatArray  # M of the free columns, the intercept last
    largest: FloatArray  # their largest entries among samples that take part
    terms: int

    @classmethod
    def of(
        cls,
        given: Given,
        s: FloatArray,
        a: FloatArray,
        rest: FloatArray | None = None,
        *,
        sharp: bool,
    ) -> _Sums:
        """The sums of ``(s + rest, a)``."""
        difference, lost = two_sum(s, -a)
        if rest is not None:
            lost = lost + rest
        product, low = two_product(given.weights, difference)
        low = low + given.weights * lost
        high, low = given.signs * product, given.signs * low
        # What is still missing from high + low.
        missing = 8.0 * UNIT**2 * float((given.weights * (s + a)).sum()) + TINY
        balance = np.array([math.fsum([*high.tolist(), *low.tolist()])])
        curvature = given.weights * (s * (1.0 - s))
        active = _active(given, s, a)
        which = _free_indices(given)
        width = which.size + int(given.ball.fit_intercept)
        total = Total(given.coef.size)
        sizes, matrix = np.zeros(given.coef.size), np.zeros((width, width))
        largest = np.zeros(width)
        count = 0
        for rows, part in given.rows():
            part.add_adjoint(total, high[rows], sharp=sharp)
            part.add_adjoint(total, low[rows], sharp=False)
            sizes = np.maximum(sizes, part.column_sizes)
            count += 1
            if which.size and width <= _MOST_FREE:
                Z = _free_part(given, part, which)
                matrix += Z.T @ (curvature[rows, None] * Z)
                sizes_there = np.abs(Z[active[rows]]).max(axis=0, initial=0.0)
                largest = np.maximum(largest, sizes_there)
        total.add(np.zeros(1), (missing + given.signs.size * 1e-300) * sizes)
        if not which.size and width:
            matrix[0, 0], largest[0] = exact_sum(curvature), float(active.any())
        terms = given.step + count + 8
        if rest is not None:  # which changes s(1-s)
            moved = rest != 0.0
            change = np.abs(rest[moved]) / (s[moved] * (1.0 - s[moved]))
            terms += 8 + math.ceil(2.0 * float(np.max(change, initial=0.0)) / UNIT)
        error = UNIT * np.abs(balance) + missing
        return cls(total.enclosed(), Enclosed(balance, error), sizes, matrix, largest, terms)


def _active(given: Given, s: FloatArray, a: FloatArray) -> BoolArray:
    """Samples that have a part in the equations."""
    return ((s > 0.0) | (a > 0.0)) & (given.weights > 0.0)


def _free_indices(given: Given) -> IndexArray:
    return np.flatnonzero(given.free)


def _free_part(given: Given, part: Rows, which: IndexArray) -> FloatArray:
    """The free columns of some rows, the constant one last."""
    Z = part.columns(which)
    return np.append(Z, np.ones((Z.shape[0], 1)), axis=1) if given.ball.fit_intercept else Z


def _moved(
    given: Given, s: FloatArray, rest: FloatArray, which: IndexArray, c: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """``s + rest - s(1-s) z·c``, about, as a double and what it lost to rounding."""
    moved, rest = s.copy(), rest.copy()
    for rows, part in given.rows():
        here = s[rows]
        along = _free_part(given, part, which) @ c
        high, low = two_sum(here, -here * (1.0 - here) * given.signs[rows] * along)
        high, low = two_sum(high, low + rest[rows])
        moved[rows] = np.clip(high, 0.0, 1.0)
        rest[rows] = np.where((high > 0.0) & (high < _NEARLY_ONE), low, 0.0)
    return moved, rest


def _into_the_ball(
    given: Given, s: FloatArray, flips: float, sums: _Sums
) -> tuple[IndexArray, FloatArray]:
    """All features, and a c that levels free columns and moves the others into the ball."""
    n, ball, kept = given.coef.size, given.ball, ~given.free
    which = np.arange(n)
    width = n + int(ball.fit_intercept)
    matrix = np.zeros((width, width))
    curvature = given.weights * (s * (1.0 - s))
    for rows, part in given.rows():
        Z = _free_part(given, part, which)
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


@dataclass(frozen=True, eq=False)
class _FreeColumns:
    """The free columns of the samples that take part."""

    given: Given
    active: BoolArray

    @cached_property
    def which(self) -> IndexArray:
        return _free_indices(self.given)

    def parts(self) -> Iterator[tuple[slice, FloatArray]]:
        """Pieces of the columns."""
        for rows, part in self.given.rows():
            yield rows, _free_part(self.given, part, self.which)

    def chosen(self, sums: _Sums) -> Chosen | None:
        """Columns whose equations imply those of all; None if there is no proof."""
        if sums.matrix.shape[0] > _MOST_FREE:
            return None
        with np.errstate(all="ignore"):
            chosen = choose(sums.matrix, sums.largest >= _NORMAL, sums.terms)
        # As many independent columns as samples: only s = a satisfies their equations, then all.
        if chosen is None or chosen.columns.size >= self.active.sum() or not chosen.others.size:
            return chosen
        spanned = all(are_combinations(Z[self.active[rows]], chosen) for rows, Z in self.parts())
        return chosen if spanned or self.are_few(chosen.columns.size) else None

    def are_few(self, rank: int) -> bool:
        """Whether so many independent columns span the rest: there are no more different rows."""
        different: set[bytes] = set()
        for rows, Z in self.parts():
            # Zero has two signs, which are the same number.
            different.update(row.tobytes() for row in Z[self.active[rows]] + 0.0)
            if len(different) > rank:
                return False
        return True

    def charge_of_faint(self, s: FloatArray, a: FloatArray, sums: _Sums) -> float:
        """What coefficients of at most the largest double make of columns without an equation."""
        faint = (sums.largest > 0.0) & (sums.largest < _NORMAL)
        if not faint.any():
            return 0.0
        given, lost = self.given, 0.0
        # The exact point's s is at most 3/2 of s.
        mass = 1.5 * given.weights * (s + a) * UP
        for rows, Z in self.parts():
            active = self.active[rows]
            size = (np.abs(Z[np.ix_(active, faint)]) * _LARGEST).sum(axis=1)
            lost += float(mass[rows][active] @ size)
        return lost * (1.0 + 4.0 * given.signs.size * UNIT) / given.total_weight * UP

    def correction(self, chosen: Chosen, sums: _Sums) -> FloatArray:
        """About the c of the lemma."""
        residual = sums.gradient.value[self.which]
        if self.given.ball.fit_intercept:
            residual = np.append(residual, sums.balance.value)
        return chosen.correction(residual)

    def reach(self, chosen: Chosen | None, sums: _Sums) -> float | None:
        """T of the lemma: 0 if there are no free columns, None if there is no proof."""
        if chosen is None:
            return None
        sizes, residual = sums.column_sizes[self.which], sums.gradient.size[self.which]
        if self.given.ball.fit_intercept:
            sizes, residual = np.append(sizes, 1.0), np.append(residual, sums.balance.size)
        with np.errstate(all="ignore"):
            reach = float(sizes[chosen.columns] @ chosen.solution(residual)) * UP
        return reach if math.isfinite(reach) else None
