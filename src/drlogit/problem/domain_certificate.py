"""Lower bounds on the optimum of (P') from pieces, proven.

Let sample i have pieces k with signs ``y_k``, costs ``d_k`` and rows ``x_i + e_k``
(:mod:`drlogit.problem.pieces`), masses ``q_k ≥ 0`` that sum to ``w_i``, and ``0 ≤ p_k ≤ q_k``.
Since ``h(v) ≥ H(s) - s v`` for every s in [0, 1], for every ``(β, b, λ)`` with ``‖β_U/c‖_* ≤ λ``
and with ``θ = (β, b, low, high)``, low and high being the ranges of β over the groups'
categories,

    F(β, b, λ) ≥ ελ + Σ q_k [h(y_k (x_i + e_k)·θ) - λ d_k]
               ≥ Σ q_k H(p_k/q_k)  +  λ (ε - Σ q_k d_k)  -  g·θ,        g = Σ p_k y_k (x_i + e_k).

**What is left of g.**  On U, ``g_U·β_U ≤ λ ‖c g_U‖``, so it fits into the budget if ``‖c g_U‖ + Σ
q d ≤ ε``; where it does not, ``(p, q)`` are scaled towards ``(0, unmoved)``, which keeps
everything else below (each of it is homogeneous) and, H being concave, at most the same share of
the value.

*Groups.*  ``g_low ≥ 0 ≥ g_high`` by construction.  With ``G_k`` the entries of g at the group's
columns, ``ρ = high - low`` and ``|β_k - m| ≤ ρ/2`` around the middle m of the range,

    Σ G_k β_k + g_low low + g_high high
        ≤  m (Σ G_k + g_low + g_high) + ρ/2 (Σ|G_k| - g_low + g_high) .

The sum that multiplies m is the intercept's equation.  If "none" is a category, ``low ≤ 0 ≤
high`` and the left side is at most ``ρ max(0, Σ(G_k)_+ + g_high, Σ(-G_k)_+ - g_low)``, with
nothing left for the intercept.

*Bounded features*, around the middle m_j of their bounds: ``g_j β_j = (g_j - g_b m_j) β_j + g_b
m_j β_j``. Together, with ``b' = b + Σ_j m_j β_j + Σ_g m_g`` (groups without "none"),

    g·θ  ≤  λ‖c g_U‖ + |g_b| |b'| + Σ_j |g_j - g_b m_j| |β_j| + Σ_g ρ_g E_g ,

E_g being the excess just named.  All of ``g_b``, ``g_j - g_b m_j`` and ``E_g`` are zero but for
rounding in a good candidate, and what multiplies them is bounded on the sublevel set ``F ≤ V =
log 2``, which the constant model belongs to and outside of which no optimum lies:

*Proof.*  ``R_i ≥ 0``, so ``λ ≤ V/ε``.  Let the adversary move everything: for a sample with y =
+1 its score becomes ``b'' - T/2 + x_U·β_U`` and for one with y = -1 ``b'' + T/2 + x_U·β_U``,
where ``T = Σ_j |β_j| (u_j - l_j) + Σ_g ρ_g`` and b'' is b' plus the middles of the other groups.
That costs at most C, everything at its widest, so ``R_i ≥ -y_i (b'' + x_iU·β_U) + T/2 - λC``.
Averaged over a class of weight W with mean x̄, and with ``Σ w R ≤ V - ελ``,

    T/2 ∓ b''  ≤  (V - ελ)/W + λ (C + ‖c x̄_U‖)  ≤  K,
    K := max over both classes of  max( V/W, (V/ε)(C + ‖c x̄_U‖) ).

Hence ``T ≤ 2K`` and ``|b''| + T/2 ≤ K``, so ``|b'| ≤ K``, ``|β_j| ≤ 2K/(u_j - l_j)`` and ``Σ ρ_g
≤ 2K``.  ∎

Immovable features have no such bound: their coefficients may be as large as they like.  What is
left of their equations must vanish, and since it cannot in floating point, it is *absorbed*: see
:meth:`_Equations.absorbed`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..rows.arrays import FloatArray, IndexArray
from ..rows.blocks import Block
from ..rows.interface import Rows, State
from ..rows.matrix import row_chunks
from ..rows.reductions import Listed, Max, Sum
from .certificate import Certificate
from .domain_loss import prices_of
from .domains import dense_columns
from .losses import entropy
from .piece_gram import piece_gram
from .pieces import Pieces
from .problem import Problem

#: What rounding may do to a sum, relative to the sum of its terms' sizes.
_ROUNDING = 1e-15

#: Entries of g, relative to ``Σ p``, from which a category counts as one that moves stop at;
#: tried in turn, each with so many corrections of p.
_THRESHOLDS = (1e-6, 1e-4, 1e-9)
_CORRECTIONS = 2

#: Slopes, as shares of one, that count as none where equations must be absorbed.
_SPECK = 1e-12

#: What rounding may do to an eigenvalue of a Gram matrix with unit diagonal, per column.
_EIGENVALUE_ROUNDING = 1e-13


class Weights(NamedTuple):
    """A block's part of a dual point: pieces, their masses q, and ``p = q s``."""

    pieces: Pieces
    q: FloatArray
    p: FloatArray


@dataclass(frozen=True, eq=False)
class PieceBound:
    """A lower bound, and what it took.

    That is the factor of the scaling, the charge for leftovers, and the dual point, corrected but
    not scaled.
    """

    value: float
    factor: float
    charge: float
    weights: State


def size_bound(problem: Problem) -> float:
    """K: no point whose objective is below that of the constant model has larger ranges."""
    domains = problem.domains
    assert domains is not None
    _, (weights, sums) = problem.rows.run(_class_sums)
    value = math.log(2.0)
    bounds = [
        max(
            value / weight,
            value / problem.epsilon
            * (domains.largest_cost + problem.transport_norm(total / weight)),
        )
        for weight, total in zip(weights, sums.T, strict=True)
    ]  # fmt: skip
    return float(max(bounds))


def _class_sums(block: Block, _: None) -> tuple[None, tuple[Sum, Sum]]:
    by_class = block.by_class(block.weights)
    return None, (Sum(by_class.sum(axis=0)), Sum(block.adjoint(by_class)))


def piece_bound(
    problem: Problem, weights: State, size: float | None = None, wanted: float = math.inf
) -> PieceBound:
    """The best bound that masses of pieces prove, with p corrected where that helps.

    ``size`` is K if it is at hand; a bound of ``wanted`` ends the search.
    """
    weights, _ = problem.rows.run(_within, weights)
    if immovable_columns(problem).size:
        weights, _ = problem.rows.run(_without_specks, weights)
    size = size_bound(problem) if size is None else size
    here = _Sums.of(problem, weights)
    best = _bound(problem, here, size, _Equations.of(problem, here, 0.0))
    # Corrections are for equations: they do not raise the value itself.
    hopeless = wanted < math.inf and problem.rows.run(_value, weights, 1.0)[1][0] < wanted
    for threshold in () if hopeless else _THRESHOLDS:
        if best.value >= wanted:
            break
        there = here
        for _ in range(_CORRECTIONS):
            equations = _Equations.of(problem, there, threshold)
            step = equations.step(there)
            if step is None:
                break
            moved, _ = problem.rows.run(_shifted, there.weights, step)
            there = _Sums.of(problem, moved)
            found = _bound(problem, there, size, _Equations.of(problem, there, threshold))
            best = max(best, found, key=lambda bound: bound.value)
            if best.value >= wanted:
                break
    return best


def _bound(problem: Problem, here: _Sums, size: float, equations: _Equations) -> PieceBound:
    rows = problem.rows
    g = here.g
    used = problem.transport_norm(g[: rows.n_columns]) + here.spent
    if immovable_columns(problem).size == 0:
        charge = size * _leftover(problem, g, here.total)
    else:
        charge, more = equations.absorbed(here)
        used += more
    if not math.isfinite(charge):
        return PieceBound(0.0, 0.0, charge, here.weights)
    factor = problem.epsilon / used * (1.0 - 4.0 * np.finfo(float).eps) if used > 0.0 else 1.0
    factor = min(1.0, factor)
    _, (value,) = rows.run(_value, here.weights, factor)
    return PieceBound(max(float(value) - factor * charge, 0.0), factor, charge, here.weights)


@dataclass(frozen=True, eq=False)
class _Sums:
    """A dual point with its sums: ``g``, ``Σ q d`` and ``Σ p``."""

    weights: State
    g: FloatArray
    spent: float
    total: float

    @classmethod
    def of(cls, problem: Problem, weights: State) -> _Sums:
        _, (g, spent, total) = problem.rows.run(_sums, weights)
        return cls(weights, g, float(spent), float(total))


@dataclass(frozen=True, eq=False)
class _Equations:
    """The equations that a dual point with these signs has to meet, as columns of combinations.

    Intercept, bounded and immovable features have one each.  A group whose excess is negative
    needs none.  In others, categories whose entry of g is beyond a threshold share one with
    ``low`` (if negative) or ``high`` (if positive), which takes what they leave, and must keep
    their sign (``kept``); the rest have their own.  Where all of a group's equations add up to
    the intercept's, one is left out.
    """

    problem: Problem
    columns: FloatArray
    kept: IndexArray
    loose: FloatArray  # what inequalities without an equation leave room for

    @classmethod
    def of(cls, problem: Problem, here: _Sums, threshold: float) -> _Equations:
        domains = problem.domains
        assert domains is not None
        p, n_groups = problem.rows.n_columns, domains.n_groups
        g, limit = here.g, threshold * here.total
        columns: list[FloatArray] = []
        kept: list[int] = []
        loose: list[float] = []

        def add(*places: int) -> None:
            column = np.zeros(g.size)
            column[list(places)] = 1.0
            columns.append(column)

        offset = problem.fit_intercept
        if offset:
            add(p - 1)
        for place in [*domains.bounded.tolist(), *immovable_columns(problem).tolist()]:
            add(place)
        for k, group in enumerate(domains.groups):
            low, high = p + k, p + n_groups + k
            places, complete = group.tolist(), not domains.with_none[k]
            rooms = [
                g[low] - float(np.maximum(-g[group], 0.0).sum()),
                -g[high] - float(np.maximum(g[group], 0.0).sum()),
            ]
            if min(rooms) > limit:
                loose.append(min(rooms))
                if complete and not offset:
                    add(*places, low, high)
                offset = offset or complete
                continue
            down = [j for j in places if g[j] < -limit and g[low] > limit]
            up = [j for j in places if g[j] > limit and g[high] < -limit]
            before = len(columns)
            for j in places:
                if j not in down and j not in up:
                    add(j)
            for side, end, room in ((down, low, rooms[0]), (up, high, rooms[1])):
                if not complete and room > limit:
                    loose.append(room)
                elif side:
                    add(*side, end)
                    kept += side
                elif g[end] != 0.0 and complete:
                    add(end)
            if complete and offset and len(columns) > before:
                columns.pop()
            offset = offset or complete
        stacked = np.stack(columns, axis=1) if columns else np.zeros((g.size, 0))
        return cls(problem, stacked, np.array(kept, dtype=np.intp), np.array(loose))

    def _matrix(self, here: _Sums) -> tuple[FloatArray, FloatArray] | None:
        """``M`` in these combinations, scaled to a unit diagonal, and the scale."""
        _, (gram,) = self.problem.rows.run(_curvatures, here.weights)
        matrix = self.columns.T @ gram @ self.columns
        diagonal = np.diagonal(matrix)
        # Where no piece has any slope, an equation holds, and nothing can change it.
        empty = (diagonal == 0.0) & (self.columns.T @ here.g == 0.0)
        if empty.all() or not (diagonal[~empty] > 0.0).all():
            return None
        scale = np.zeros_like(diagonal)
        scale[~empty] = 1.0 / np.sqrt(diagonal[~empty])
        unit = scale[:, None] * matrix * scale
        np.fill_diagonal(unit, 1.0)
        return unit, scale

    def step(self, here: _Sums) -> FloatArray | None:
        """The c with ``M c = g`` in these equations, as a vector over all columns."""
        found = self._matrix(here)
        if found is None:
            return None
        unit, scale = found
        values, vectors = np.linalg.eigh(unit)
        large = values > 1e-10 * values[-1]
        left = vectors.T @ (scale * (self.columns.T @ here.g))
        solution = vectors[:, large] @ (left[large] / values[large])
        return np.asarray(self.columns @ (scale * solution))

    def absorbed(self, here: _Sums) -> tuple[float, float]:
        """What it costs to meet all equations exactly, and what that adds to the budget's use.

        With ``M = Σ D_k z_k z_kᵀ`` over the equations, ``D = p (1 - p/q)``, ``z_k`` the row of
        piece k in them: if M is regular, ``p_k' = p_k - D_k y_k z_k·c`` with ``M c = g`` meets
        them exactly.  Scaled to a unit diagonal and with least eigenvalue μ, ``|z_k·c| ≤ t :=
        max|z_k| |g| / μ``; so p moves by ``t D_k`` at most, which for t ≤ 0.1 keeps it in [0, q]
        and costs each piece at most ``t q_k/4`` of its entropy, as ``|H'(s)| s(1-s) ≤ 0.2241``
        and H' changes by at most ``log((1+t)/(1-t))`` on the way.  Entries of g that must keep
        their sign, and inequalities, need room for ``t Σ p``.  Infinite: no proof.
        """
        problem, rows = self.problem, self.problem.rows
        none = (math.inf, 0.0)
        found = self._matrix(here)
        if found is None:
            return none
        unit, scale = found
        least = float(np.linalg.eigvalsh(unit)[0]) - _EIGENVALUE_ROUNDING * scale.size
        if least <= 0.0:
            return none
        _, (longest, moved, squares) = rows.run(
            _row_sizes, here.weights, self.columns * scale,
            np.where(problem.penalised, problem.costs, 0.0),
        )  # fmt: skip
        # Rounding of each sum, by Cauchy and Schwarz.
        noise = _ROUNDING * np.sqrt(here.total * squares)
        left = np.abs(self.columns.T @ here.g) + self.columns.T @ noise
        change = float(longest) * float(np.linalg.norm(scale * left)) / least
        room = change * here.total + float(noise.max(initial=0.0))
        tight = min(
            np.min(np.abs(here.g[self.kept]), initial=math.inf), self.loose.min(initial=math.inf)
        )
        if change > 0.1 or tight <= room:
            return none
        return 0.25 * change, change * here.total * float(moved)


def immovable_columns(problem: Problem) -> IndexArray:
    """Features that cannot move, are not all zero, and are not combinations of others."""
    domains = problem.domains
    assert domains is not None
    free = problem.free & (problem.rows.column_scale > 0.0)
    free[domains.columns] = False
    free[domains.redundant(problem.fit_intercept)] = False
    if problem.fit_intercept:
        free[-1] = False
    return np.flatnonzero(free)


def _shifted(block: Block, weights: Weights, step: FloatArray) -> tuple[Weights, tuple[()]]:
    """``p - D y z·step``, within [0, q]."""
    pieces, q, p = weights
    base = block.y * block.margins(step[: block.n_columns])
    p = p - _curvature(q, p) * pieces.sign * pieces.scores(base, step)
    return Weights(pieces, q, np.clip(p, 0.0, q)), ()


def _curvature(q: FloatArray, p: FloatArray) -> FloatArray:
    return np.asarray(p * (1.0 - p / np.where(q > 0.0, q, 1.0)))


def _curvatures(block: Block, weights: Weights) -> tuple[Weights, tuple[Sum]]:
    pieces, q, p = weights
    none = np.zeros_like(p)
    gram = piece_gram(block, pieces, none, _curvature(q, p), none)
    return weights, (Sum(gram[:-1, :-1]),)


def _row_sizes(
    block: Block, weights: Weights, columns: FloatArray, costs: FloatArray
) -> tuple[Weights, tuple[Max, Max, Sum]]:
    """Longest row in combinations of columns, longest in the norm's, and ``Σ p z²`` by column."""
    pieces, _, p = weights
    n_columns = block.n_columns
    longest = 0.0
    squares = np.zeros(columns.shape[0])
    moves = np.zeros(block.y.size)
    for rows in row_chunks(block.y.size, columns.shape[0]):
        part = dense_columns(block.X[rows], np.arange(block.X.shape[1]))
        if block.intercept:
            part = np.column_stack([part, np.ones(part.shape[0])])
        moves[rows] = np.abs(part) @ costs
        inside = np.flatnonzero((pieces.own >= rows.start) & (pieces.own < rows.stop))
        full = np.zeros((inside.size, columns.shape[0]))
        full[:, :n_columns] = part[pieces.own[inside] - rows.start]
        full += pieces.changes.picked(inside).dense()
        longest = max(longest, float(np.linalg.norm(full @ columns, axis=1).max(initial=0.0)))
        squares += p[inside] @ full**2
    return weights, (Max(longest), Max(float(moves.max(initial=0.0))), Sum(squares))


def _excesses(problem: Problem, g: FloatArray) -> FloatArray:
    """E_g before it is cut off at zero: by how much each group's categories outweigh its moves."""
    domains = problem.domains
    assert domains is not None
    p, n_groups = problem.rows.n_columns, domains.n_groups
    low, high = g[p : p + n_groups], g[p + n_groups :]
    excess = np.zeros(n_groups)
    for k, group in enumerate(domains.groups):
        entries = g[group]
        if domains.with_none[k]:
            up, down = np.maximum(entries, 0.0).sum(), np.maximum(-entries, 0.0).sum()
            excess[k] = max(up + high[k], down - low[k])
        else:
            excess[k] = 0.5 * (np.abs(entries).sum() - low[k] + high[k])
    return excess


def _leftover(problem: Problem, g: FloatArray, total: float) -> float:
    """What is left of the equations, in multiples of K, rounding included."""
    domains = problem.domains
    assert domains is not None
    p, n_groups = problem.rows.n_columns, domains.n_groups
    noise = _ROUNDING * total
    complete = np.flatnonzero(~domains.with_none)
    if problem.fit_intercept:
        offset = float(g[p - 1])
    elif complete.size:
        first = complete[0]
        offset = float(g[domains.groups[first]].sum() + g[p + first] + g[p + n_groups + first])
    else:
        offset = 0.0
    middle = 0.5 * (domains.lower + domains.upper)
    ends = np.maximum(np.abs(domains.lower), np.abs(domains.upper))
    beside = g[domains.bounded] - offset * middle
    # Σ_j |β_j| width_j + Σ_g ρ_g ≤ 2K: the worst of these leftovers gets all of it.
    rest = np.concatenate(
        [
            (np.abs(beside) + 2.0 * noise * ends) / domains.widths,
            np.maximum(_excesses(problem, g), 0.0) + 2.0 * noise,
        ]
    )
    return abs(offset) + noise + 2.0 * float(rest.max(initial=0.0))


def _within(block: Block, weights: Weights) -> tuple[Weights, tuple[()]]:
    """Masses that sum to the samples' weights and ``0 ≤ p ≤ q``, whatever was handed over."""
    pieces, n, w = weights.pieces, block.y.size, block.weights
    q = np.maximum(weights.q, 0.0)
    total = pieces.totals(q, n)
    scale = np.where(total > 0.0, w / np.where(total > 0.0, total, 1.0), 0.0)
    return Weights(
        pieces, q * scale[pieces.own], np.clip(weights.p, 0.0, q) * scale[pieces.own]
    ), ()


def _without_specks(block: Block, weights: Weights) -> tuple[Weights, tuple[()]]:
    """No slope where there is next to none.

    A category, say, that occurs in one class only and is as good as certain: its equation then
    holds exactly, while so little could not take part in absorbing anything.
    """
    pieces, q, p = weights
    return Weights(pieces, q, np.where(p > _SPECK * q, p, 0.0)), ()


def _sums(block: Block, weights: Weights) -> tuple[Weights, tuple[Sum, Sum, Sum]]:
    pieces, q, p = weights
    return weights, (
        Sum(pieces.adjoint(block, p * pieces.sign)),
        Sum(float(q @ pieces.cost)),
        Sum(float(p.sum())),
    )


def _value(block: Block, weights: Weights, factor: float) -> tuple[Weights, tuple[Sum]]:
    """``Σ q H(p/q)`` after scaling: the mass of moved pieces goes back to the unmoved one."""
    pieces, q, p = weights
    n, w = block.y.size, block.weights
    unmoved = pieces.cost == 0.0
    q = np.where(unmoved, q, factor * q)
    missing = w - pieces.totals(q, n)
    q = q + np.where(unmoved, missing[pieces.own], 0.0)
    some = q > 0.0
    s = np.minimum(factor * p[some] / q[some], 1.0)
    return weights, (Sum(float(q[some] @ entropy(s))),)


def certify_domains(
    problem: Problem, coefficients: FloatArray, weights: State | None, tol: float
) -> Certificate:
    """Exact value of a point, at its best λ, and the bound of a dual point, if there is one."""
    prices = prices_of(problem, coefficients)
    lam = prices.best_lambda(problem.epsilon)
    primal = prices.value(problem.epsilon, lam)
    if weights is None:
        none = problem.rows.run(_no_flips)[0]
        return Certificate(primal, 0.0, lam, none, none, coefficients)
    bound = piece_bound(problem, weights, wanted=primal - tol)
    flips, _ = problem.rows.run(_flip_share, bound.weights)
    doubt, _ = problem.rows.run(_mean_slope, bound.weights)
    return Certificate(primal, bound.value, lam, doubt, flips, coefficients)


def _no_flips(block: Block, _: None) -> tuple[FloatArray, tuple[()]]:
    return np.zeros(block.y.size), ()


def _mean_slope(block: Block, weights: Weights) -> tuple[FloatArray, tuple[()]]:
    """The mean of s over the pieces of each sample: what is left of the proof without them."""
    pieces, q, p = weights
    n = block.y.size
    total = pieces.totals(q, n)
    return np.minimum(pieces.totals(p, n) / np.where(total > 0.0, total, 1.0), 1.0), ()


def _flip_share(block: Block, weights: Weights) -> tuple[FloatArray, tuple[()]]:
    """The share of each sample whose label is not its own."""
    pieces, q, _ = weights
    n = block.y.size
    total = pieces.totals(q, n)
    flipped = pieces.totals(np.where(pieces.sign == block.y[pieces.own], 0.0, q), n)
    return flipped / np.where(total > 0.0, total, 1.0), ()


def spread(weights: State, rows: Rows, given: Rows, origin: IndexArray) -> State:
    """A dual point of merged samples as one of the samples they stand for.

    ``origin`` has, for each given sample, the number of the merged one.
    """
    _, (parts,) = rows.run(_listed, weights)
    counts = [own_size for _, own_size in parts]
    offsets = np.concatenate([[0], np.cumsum(counts)[:-1]])
    joined = parts[0][0]
    for (part, _), offset in zip(parts[1:], offsets[1:], strict=True):
        moved = part._replace(pieces=part.pieces._replace(own=part.pieces.own + offset))
        pieces, order = joined.pieces.joined(moved.pieces, 0)
        joined = Weights(
            pieces,
            np.concatenate([joined.q, moved.q])[order],
            np.concatenate([joined.p, moved.p])[order],
        )
    return given.run(_spread, given.scatter(origin), joined, int(sum(counts)))[0]


def _listed(
    block: Block, weights: Weights
) -> tuple[Weights, tuple[Listed[list[tuple[Weights, int]]]]]:
    return weights, (Listed([(weights, block.y.size)]),)


def _spread(
    block: Block, origin: FloatArray, weights: Weights, n_merged: int
) -> tuple[Weights, tuple[()]]:
    pieces = weights.pieces
    starts = pieces.starts(n_merged)
    merged = origin.astype(np.intp)
    counts = np.diff(starts)[merged] * (block.weights > 0.0)
    own = np.repeat(np.arange(merged.size), counts)
    within = np.arange(own.size) - np.repeat(np.cumsum(counts) - counts, counts)
    places = starts[merged][own] + within
    total = pieces.totals(weights.q, n_merged)
    share = block.weights[own] / total[merged[own]]
    return Weights(
        pieces.picked(places)._replace(own=own),
        weights.q[places] * share,
        weights.p[places] * share,
    ), ()
