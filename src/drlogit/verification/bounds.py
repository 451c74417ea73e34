"""Both bounds of a fit.

*Upper.*  For any λ that the coefficients allow, which is ``λ ≥ ‖β/c‖_*`` for β or all differences
of two classes, the worst-case loss is at most ``ελ + Σ w_i max_k (R_ik - κ_ik λ)``, where ``R_ik``
is the largest loss with label k.  With two classes, R is the largest ``h(y u - G) - λ C`` over sets
of items with gains that add up to G and costs that add up to C.  This is convex in (G, C), so only
prefixes of the items, sorted by gain per cost, have to be looked at: they are the vertices that
matter of the zonotope that partial moves fill.

*Lower, two classes.*  Let every sample be cut into pieces: rows z at cost d (the sample moved,
perhaps with the other label), masses q and probabilities s.  With ``g = Σ q s z``, every model x
and ``λ ≥ ‖β/c‖_*``,

    promise  ≥  Σ q (h(z·x) - λd) + ελ  ≥  Σ q H(s) - g·x + λ (ε - Σ q d)

because ``h(v) ≥ H(s) - s v``.  Of g·x, what the norm bounds is at most ``λ ‖c g‖``, and the rest is
charged, for the class of models of :mod:`.samples`.

*Lower, several classes.*  For probabilities p and label shares a of each sample and
``G = Σ w (p - a) xᵀ``,

    promise  ≥  Σ w H(p) + λ (ε - N(G) - Σ w κ·a) + ⟨G, B⟩ over the free columns

where ``N(G)`` is at most ``½ Σ c |G|``, and just that under ℓ1 transport, and else at most
``Σ ‖c M‖`` of a flow M between the classes whose divergence is G: what that of the given one
misses, r, is made up for by ``(r_j - r_k)/K``.  Columns of G total zero, so that ``⟨G, B⟩`` is at
most half of ``Σ |G|`` times the largest difference between two classes.

Where what stands beside ε exceeds it, all masses are scaled, which takes as much of everything.

*Rounding.*  With u = 2⁻⁵³, a sum of n products in any order is off by about ``n u`` times the sum
of their sizes (Higham 2002, §3).  This is added where it is amplified: to ``Σ r x``, as what is
left of the free equations counts ``ADMITTED`` times and a norm above ε scales the whole bound, and
to scores and gains, which may be large.  ``SLACK`` covers all other rounding.
"""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from scipy.special import entr, logsumexp

from ..problem.dual_point import ClassDualPoint, DualPoint, Moves
from ..problem.proof import BrokenProofError
from ..rows.arrays import BoolArray, FloatArray, IndexArray, in_memory
from .samples import LIMIT, SamplesInBall

#: Entropies, charge, and what is used of ε.
Sums: TypeAlias = tuple[float, float, float]

#: What a bound of value v gives away, for all rounding that is not bounded: ``SLACK max(1, |v|)``.
SLACK = 1e-9

#: The order of each transport norm, and that of its dual norm.
NORM = {"l1": 1.0, "l2": 2.0, "linf": math.inf}
DUAL = {"l1": math.inf, "l2": 2.0, "linf": 1.0}


def slack(value: float) -> float:
    """What rounding may do to a bound."""
    return SLACK * max(1.0, abs(value))


def gamma(n: int) -> float:
    """The error of a sum of n products, relative to the sum of their sizes."""
    return n * 2.0**-53 * (1.0 + 1e-9)


def norm_of(order: float, vector: FloatArray) -> float:
    """The norm of a vector, which may be empty."""
    return float(np.linalg.norm(np.append(vector, 0.0), order))


class PanelSum:
    """``Σ r_i x_i`` over parts of the rows, for several r at once, and a bound on its error."""

    def __init__(self, n_sums: int, n_columns: int) -> None:
        self._total, self._carry, self._size = np.zeros((3, n_sums, n_columns))
        self._most = 0

    def add(self, r: FloatArray, size: FloatArray, rows: Any) -> None:
        """Add rows, each r of which is known up to some roundings of its ``size``."""
        part = r @ rows
        total = self._total + part  # Knuth's two-sum: the carry is what rounding took
        added = total - self._total
        self._carry += (self._total - (total - added)) + (part - added)
        self._total, self._size = total, self._size + size @ abs(rows)
        self._most = max(self._most, rows.shape[0])

    def result(self, roundings: int) -> tuple[FloatArray, FloatArray]:
        """The sums and their errors, where each r carries this many roundings of its size."""
        return self._total + self._carry, gamma(self._most + 8 + roundings) * self._size


def upper_bound(samples: SamplesInBall, coef: FloatArray, intercept: Any, lam: float) -> float:
    """The worst-case loss of a model, at λ or the least that is allowed."""
    inside, price, n = samples.in_norm, 0.0, samples.costs.size
    coef, intercept = np.atleast_2d(coef), np.ravel(intercept)
    if len(coef) == 1:  # two classes: the first has the score 0
        coef, intercept = np.vstack([0.0 * coef, coef]), np.append(0.0, intercept)
    if samples.epsilon > 0.0:
        costs, steps = samples.costs[inside], [b - c for b, c in combinations(coef[:, inside], 2)]
        lam = max(lam, *(norm_of(DUAL[samples.norm], step / costs) for step in steps))
        price = samples.epsilon * lam
    else:  # nothing can move, at the limit λ = ∞, which costs nothing
        lam = math.inf
    B = np.array([samples.moved(*model) for model in zip(coef, intercept, strict=True)]).T
    paid = samples.label_costs.copy()
    paid[(paid > 0.0) & np.isfinite(paid)] *= lam
    worst = np.empty(len(paid))
    for rows, Z in samples.parts():
        scores, sizes = Z[:, : n + 1] @ B, abs(Z[:, : n + 1]) @ np.abs(B)
        losses = logsumexp(scores, axis=1, keepdims=True) - scores
        if samples.n_items:  # of two classes
            moved = B[:n, 1:], scores[:, 1:]
            losses = np.hstack([_worst(samples, Z, *moved, y, lam) for y in (-1.0, 1.0)])
        terms = int(np.diff(Z.indptr).max()) if sp.issparse(Z) else n
        worst[rows] = (losses - paid[rows]).max(axis=1)
        worst[rows] += 2.0 * gamma(terms + 4) * sizes.max(axis=1)
    value = price + float((samples.weights * worst).sum())
    return value + slack(value)


def _worst(
    samples: SamplesInBall, Z: Any, coef: FloatArray, scores: FloatArray, y: float, lam: float
) -> FloatArray:
    """``max h(y u - G) - λC`` over sets of items, for one label of some samples."""
    own = np.logaddexp(0.0, -y * scores)
    gains, costs = [], []
    for g, group in enumerate(samples.groups):
        least = (y * coef[group]).min(initial=0.0 if samples.with_none[g] else np.inf)
        gains.append(y * (Z[:, group] @ coef[group, 0]) - least)
        costs.append(np.full(len(Z), samples.costs[group[0]]))
    for j, column in enumerate(samples.bounded):
        slope = y * coef[column, 0]
        distance = Z[:, column] + samples.shift[column] - samples.ends[int(slope < 0.0), j]
        gains.append(slope * distance)
        costs.append(samples.costs[column] * np.abs(distance))
    gain, cost = np.column_stack(gains), np.column_stack(costs)
    rates = np.divide(gain, cost, out=np.zeros_like(gain), where=cost > 0.0)
    order = np.argsort(-rates, axis=1)
    gained, paid = (np.cumsum(np.take_along_axis(x, order, 1), axis=1) for x in (gain, cost))
    prefixes = np.logaddexp(0.0, gained - y * scores) - lam * paid
    prefixes += gamma(samples.n_items + 4) * gained[:, -1:]
    return np.asarray(np.hstack([own, prefixes]).max(axis=1, keepdims=True))


@np.errstate(over="ignore", invalid="ignore")
def lower_bound(samples: SamplesInBall, codes: IndexArray, point: Any) -> float:
    """The bound that a dual point proves; ``BrokenProofError`` if it is none of these samples.

    An infeasible point needs no test where its entropy is -∞ or its cost is ∞: it proves nothing.
    """
    several = samples.label_costs.shape[1] > 2
    labelled = isinstance(point, ClassDualPoint)
    if labelled != several or len(point.codes if labelled else point.s) != codes.size:
        raise BrokenProofError("another proof: it is about other classes or samples")
    if several:
        entropies, charge, used = _of_classes(samples, point)
    else:
        entropies, charge, used = _of_pieces(samples, np.where(codes > 0, 1.0, -1.0), point)
    value = entropies - LIMIT * charge
    if not used <= samples.epsilon:  # NaN is too much, too
        value *= samples.epsilon / used
    value -= slack(value)
    return value if value > 0.0 else 0.0


def _of_pieces(samples: SamplesInBall, signs: FloatArray, point: DualPoint) -> Sums:
    """Entropies, charge, and what is used of ε, with two classes."""
    s, moves = in_memory(point.s), _moves_of(samples, point)
    at, mass = moves.sample, samples.weights[moves.sample] * moves.share
    own = samples.weights * (1.0 - np.bincount(at, moves.share, minlength=s.size))
    labels = signs[at] * np.where(moves.flipped, -1.0, 1.0)
    flip_costs = samples.label_costs.max(axis=1)[at[moves.flipped]]
    paid = float((mass[moves.flipped] * flip_costs).sum())
    r, r_moved = (signs * own * s)[None, :], (labels * mass * moves.s)[None, :]
    bits = np.unpackbits(moves.items, axis=1, count=samples.n_items).astype(bool)
    n, n_groups = samples.costs.size, len(samples.groups)
    total = PanelSum(1, n + 1 + 2 * n_groups)
    for rows, Z in samples.parts():
        total.add(r[:, rows], np.abs(r[:, rows]), Z)
        some = slice(*np.searchsorted(at, [rows.start, rows.stop]).tolist())
        moved, costs = _moved(samples, Z[at[some] - rows.start], bits[some], labels[some] > 0.0)
        total.add(r_moved[:, some], np.abs(r_moved[:, some]), moved)
        paid += float((mass[some] * costs).sum())
    g, error = total.result(4)
    in_norm, left, charge = samples.settled(g, error)
    sizes = (np.abs(in_norm) + left)[0] * samples.costs[samples.in_norm]
    most, constant = (g + error)[0], 0.0 if samples.offset else (g - error)[0, n]
    for k, group in enumerate(samples.groups):  # least 0, highest at most LIMIT
        none = most[n + 1 + n_groups + k] - constant  # without an offset, the score of "none" is 0
        upwards = most[group].clip(min=0.0).sum() + samples.with_none[k] * max(none, 0.0)
        charge += max(float(upwards + most[n + 1 + k]), 0.0)
    entropies = float((own * (entr(s) + entr(1.0 - s))).sum())
    entropies += float((mass * (entr(moves.s) + entr(1.0 - moves.s))).sum())
    return entropies, charge, norm_of(NORM[samples.norm], sizes) + paid


def _moves_of(samples: SamplesInBall, point: DualPoint) -> Moves:
    """The pieces that are moved or flipped; ``BrokenProofError`` if they are no shares of samples.

    A share a of a sample that is flipped is a piece, whose probability is 1 - s.
    """
    moves, a = point.moves, in_memory(point.flip_share)
    if moves is None:
        at = np.flatnonzero(a)
        items = np.zeros((at.size, 1), dtype=np.uint8)
        moves = Moves(at, np.ones(at.size, dtype=bool), items, a[at], 1.0 - in_memory(point.s)[at])
    at, share = moves.sample, moves.share
    known = {len(array) for array in moves.arrays} == {at.size} and (share >= 0.0).all()
    known = known and (np.diff(at, prepend=0) >= 0).all() and (at < a.size).all()
    if not known or (np.bincount(at, share, 1) > 1.0).any():
        raise BrokenProofError("infeasible dual point: its pieces are no shares of the samples")
    return moves


def _moved(
    samples: SamplesInBall, Z: Any, bits: BoolArray, positive: BoolArray
) -> tuple[Any, FloatArray]:
    """The rows of pieces, from those of their samples, and what moving them costs.

    Items are the groups, and two for each bounded column: to its lower end, to its upper end.  A
    category that is changed is left out (label +1) or becomes the highest one (label -1).
    """
    n, n_groups, paid = samples.costs.size, len(samples.groups), np.zeros(len(bits))
    for g, group in enumerate(samples.groups):
        changed = bits[:, g]
        Z[np.ix_(changed, np.append(group, n + 1 + n_groups + g))] = 0.0
        Z[changed & ~positive, n + 1 + g] = 1.0
        paid += samples.costs[group[0]] * changed
    for item, end in enumerate(samples.ends.T.ravel()):
        column, moved = samples.bounded[item // 2], bits[:, n_groups + item]
        distance = end - samples.shift[column] - Z[moved, column]
        Z[moved, column] += distance
        paid[moved] += samples.costs[column] * np.abs(distance)
    return Z, paid


def _of_classes(samples: SamplesInBall, point: ClassDualPoint) -> Sums:
    """Entropies, charge, and what is used of ε, with several classes."""
    costs, w = samples.label_costs, samples.weights[:, None]
    p, a = np.asarray(point.probabilities, float), np.asarray(point.labels, float)
    for shares in (p, a):
        known = shares.shape == costs.shape and bool((shares >= 0.0).all())
        if not known or not (np.abs(shares.sum(axis=1) - 1.0) <= 1e-9).all():
            raise BrokenProofError("infeasible dual point: its shares do not make up the samples")
    p, a = p / p.sum(axis=1, keepdims=True), a / a.sum(axis=1, keepdims=True)
    r, size = (w * (p - a)).T, (w * (p + a)).T
    total = PanelSum(p.shape[1], samples.costs.size + 1)
    for rows, Z in samples.parts():
        total.add(r[:, rows], size[:, rows], Z)
    G, error, charge = samples.settled(*total.result(p.shape[1] + 8))
    spent = float((w * a * np.where(a > 0.0, costs, 0.0)).sum())
    used = _flow_norm(samples, G, error, point.flow) + spent
    return float((w * entr(p)).sum()), 0.5 * charge, used


def _flow_norm(samples: SamplesInBall, G: FloatArray, error: FloatArray, flow: Any) -> float:
    """At least N(G)."""
    costs, n_classes = samples.costs[samples.in_norm], len(G)
    if samples.norm == "l1":
        return 0.5 * float(((np.abs(G) + error) * costs).sum())
    k, j = np.tril_indices(n_classes, -1)
    between = np.eye(n_classes)[k] - np.eye(n_classes)[j]
    flow = np.zeros((k.size, costs.size)) if flow is None else np.asarray(flow, float)
    if flow.shape != (k.size, costs.size):
        raise BrokenProofError("infeasible dual point: its flow is of other features")
    flow = flow - between @ (G + between.T @ flow) / n_classes
    # What rounding hides of G, and of its total, which is 0: N is at most half of its size.
    hidden = error.sum(axis=0) + np.abs(G.sum(axis=0))
    paid = sum(norm_of(NORM[samples.norm], costs * row) for row in flow)
    return paid + 0.5 * float(costs @ hidden)
