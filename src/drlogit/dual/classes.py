"""Dual points of several classes, the lower bound that they prove, and the certificate of a fit.

For probabilities p and label shares a of each sample, both in the simplex, Fenchel and Young give

    F(B, b, λ)  ≥  Σ w H(p) + λ (ε - N(G) - Σ w κ·a) + ⟨G, B⟩ over the free columns,
    G = Σ w (p - a) xᵀ,     N(G) = max { ⟨G, B⟩ : ‖(B_j - B_k)/c‖_* ≤ 1 }

``N(G) = min Σ ‖c M_jk‖`` over flows M between the classes with divergence G.  Under ℓ1 transport
that is ``½ Σ c |G|``; else the solver's multipliers are such a flow but for rounding, and what its
divergence misses of G, r, is made up for by ``(r_j - r_k)/K``.  The bound speaks of models
with at most ``ADMITTED`` log-odds *between any two classes* per standard deviation of free columns
and at the means of all features, so what is left of G on free columns costs half of its size,
``½ Σ_k |G_k|``, times that.  Rounding of the sums is charged as in :mod:`drlogit.dual.bound`; as
``Σ_k |p_k - a_k| ≤ 2``, that of all classes together is twice the rounding of one sum of samples.

Scaled, ``p ← e_y + θ (p - e_y)`` and a likewise, a point uses θ of ε and keeps θ of its entropy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp

from ..problem.classes import ClassProblem, Scored
from ..problem.parameters import ADMITTED
from ..rows.arrays import FloatArray
from ..rows.blocks import Block
from ..rows.interface import State
from ..rows.matrix import row_range
from ..rows.reductions import Max, Sum
from .bound import DualSums, lower_bound
from .coordinates import spreads

#: p and a of a block's samples, (2, samples, classes).
Point: TypeAlias = FloatArray

_UNIT = 2.0**-53
_UNDERFLOW = 1e-300
_PANEL = 64  # rows whose products are added one after the other; those of panels in pairs


@dataclass(frozen=True, eq=False)
class ClassDualPoint:
    """A feasible point of the dual problem of several classes: the proof of a lower bound.

    Attributes
    ----------
    probabilities : array of shape (n_samples, n_classes)
        p; the bound is ``Σ w_i H(p_i)``.  At the optimum, those that the model predicts.
    labels : array of shape (n_samples, n_classes)
        a: the shares of each sample that the worst case gives these labels.
    codes : array of shape (n_samples,)
        The labels as positions among the classes.
    flow : array of shape (n_pairs, n_features) or None
        What is carried from class to class, a row for each pair (k, j < k); None with ℓ1 transport.
    """

    probabilities: FloatArray
    labels: FloatArray
    codes: Any
    flow: FloatArray | None = None

    @property
    def flip_share(self) -> FloatArray:
        """The share of each sample whose label the worst case changes."""
        return np.asarray(1.0 - self.labels[np.arange(self.codes.size), self.codes])


class ClassCoordinates:
    """What the bound has to know of the coefficients; ``flow`` is that of the point in question."""

    def __init__(self, problem: ClassProblem) -> None:
        rows = problem.rows
        self.norm, self.n_classes = problem.norm, problem.n_classes
        self.kept = np.flatnonzero(problem.penalised)
        self.costs = problem.costs[self.kept]
        self.size = rows.column_scale
        self.mean, self.spread = np.zeros_like(self.size), self.size.copy()
        self.intercept = self.size.size - 1 if problem.fit_intercept else None
        if self.intercept is not None:
            self.mean = rows.column_means.copy()
            self.spread = spreads(self.mean, np.square(self.size), intercept=True)
            self.mean[-1], self.spread[-1] = 0.0, 1.0
        self.charged = np.flatnonzero(problem.free & (self.spread > 0.0))
        around = 0.0 if self.intercept is None else np.abs(self.mean) * self.size[-1]
        self.sizes = self.size + around
        self.flow: FloatArray | None = None

    def _left(self, gradient: FloatArray) -> FloatArray:
        """-G by the log-odds at the means instead of the intercepts; it arrives with that sign."""
        G = -np.asarray(gradient).reshape(self.n_classes, -1)
        if self.intercept is None:
            return G
        left = G - np.outer(G[:, self.intercept], self.mean)
        left[:, self.intercept] = G[:, self.intercept]
        return left

    def used(self, gradient: FloatArray, rounding: float = 0.0) -> float:
        """At least ``N(G)``, if the sums are right up to ``rounding`` of their terms."""
        G, K = self._left(gradient)[:, self.kept], self.n_classes
        error = (rounding + 8.0 * K * _UNIT) * self.sizes[self.kept] + _UNDERFLOW
        more = 1.0 + (K * K * (self.kept.size + 8)) * _UNIT
        if self.norm.name == "l1":
            return float(0.5 * more * (self.costs @ (np.abs(G).sum(axis=0) + 2.0 * error)))
        flow = np.zeros((K * (K - 1) // 2, self.kept.size)) if self.flow is None else self.flow
        one, other = pairs(K)
        missing = G.copy()
        np.subtract.at(missing, one, flow)
        np.add.at(missing, other, flow)
        size = np.abs(G).sum(axis=0) + 2.0 * np.abs(flow).sum(axis=0)
        error = 2.0 * error / K + 4.0 * K * _UNIT * size
        flow = np.abs(flow + (missing[one] - missing[other]) / K) + error
        largest = float(flow.max(initial=0.0))
        if not 0.0 < largest < np.inf:
            return largest
        values = [self.norm.value(self.costs * (row / largest)) for row in flow]
        return float(np.sum(values) * largest * more)

    def charge(self, gradient: FloatArray, rounding: float = 0.0) -> float:
        """The most that ⟨G, B⟩ can be over free columns of admitted models."""
        left = np.abs(self._left(gradient)).sum(axis=0)[self.charged]
        error = 2.0 * rounding * self.sizes[self.charged] + self.n_classes * _UNDERFLOW
        total = float(np.sum((left + error) / self.spread[self.charged]))
        more = 1.0 + (self.charged.size + 8 + self.n_classes) * _UNIT
        return 0.5 * ADMITTED * total * more

    def admits(self, model: FloatArray) -> bool:
        """Whether the bound speaks of a model: what it proves says nothing of others."""
        odds = model.copy()
        if self.intercept is not None:
            odds[:, self.intercept] += model @ self.mean
        sizes = np.ptp(odds[:, self.charged], axis=0) * self.spread[self.charged]
        return bool((sizes <= ADMITTED).all())


def pairs(n_classes: int) -> tuple[Any, Any]:
    """(j, k) of all pairs, j < k, in the order of flows: k rises slowest."""
    k, j = np.tril_indices(n_classes, -1)
    return j, k


@dataclass(frozen=True, eq=False)
class ClassCertificate:
    """Primal value, certified lower bound, and the dual point that proves it."""

    primal: float
    dual: float
    lam: float
    point: State | None
    flow: FloatArray | None

    @property
    def gap(self) -> float:
        return max(self.primal - self.dual, 0.0)

    def dual_point(self, problem: ClassProblem) -> ClassDualPoint | None:
        """The point in plain numbers, of the length of the samples."""
        if self.point is None:
            return None
        rows = problem.rows
        p, a = (rows.gather(rows.run(_part, self.point, k)[0]) for k in (0, 1))
        return ClassDualPoint(p, a, rows.gather(problem.codes).astype(np.intp), self.flow)


def certify_classes(
    problem: ClassProblem,
    coefficients: FloatArray,
    point: State | None,
    flow: FloatArray | None,
    guess: float | None = None,
) -> ClassCertificate:
    """Certificate of ``coefficients`` from a dual point, (2, samples, classes) per block."""
    rows = problem.rows
    lam, primal = problem.best(coefficients, guess)
    size = 2.0 * float(np.abs(coefficients).max(axis=0) @ rows.column_scale)
    terms = coefficients.shape[1] + 8
    primal += _UNIT * (terms * size + (rows.n_samples + 64 + problem.n_classes) * abs(primal))
    if point is None:
        return ClassCertificate(primal, 0.0, lam, None, None)
    state = rows.pair(point, problem.codes)
    point, (G, spent, entropy, chain, blocks) = rows.run(_sums, state, problem.label_costs)
    additions = float(chain + blocks + 2 * problem.n_classes + 8)
    sums = DualSums(-G.ravel(), float(spent), float(entropy), additions)
    coordinates = ClassCoordinates(problem)
    coordinates.flow = flow
    value, factor = lower_bound(coordinates, problem.epsilon, sums)  # type: ignore[arg-type]
    if not coordinates.admits(coefficients):
        value = 0.0
    if factor != 1.0:
        point = rows.run(_scaled, rows.pair(point, problem.codes), factor)[0]
        flow = None if flow is None else factor * flow
    return ClassCertificate(primal, min(value, primal), lam, point, flow)


def point_of_model(problem: ClassProblem, coefficients: FloatArray, lam: float) -> State:
    """The dual point that a model suggests: its probabilities, and the worst label at λ."""
    return problem.rows.run(_suggested, problem.scores(coefficients), problem.label_costs, lam)[0]


def _sums(
    block: Block, state: tuple[Point, FloatArray], costs: FloatArray
) -> tuple[Point, tuple[Sum, Sum, Sum, Max, Sum]]:
    """The point on its simplices, and G, ``Σ w κ·a``, ``Σ w H(p)``, the additions behind them."""
    given, codes = state
    price = costs[codes.astype(np.intp)]
    reached = np.isfinite(price)
    p = np.maximum(given[0], 0.0)
    a = np.where(reached, np.maximum(given[1], 0.0), 0.0)
    p, a = p / p.sum(axis=1, keepdims=True), a / a.sum(axis=1, keepdims=True)
    w = block.weights
    G, chain = _adjoint(block, w[:, None] * (p - a))
    logs = np.log(np.where(p > 0.0, p, 1.0))
    entropy = math.fsum((w * -(p * logs).sum(axis=1)).tolist())
    spent = math.fsum((w * (a * np.where(reached, price, 0.0)).sum(axis=1)).tolist())
    return np.stack([p, a]), (Sum(G), Sum(spent), Sum(entropy), Max(chain), Sum(1))


def _adjoint(block: Block, r: FloatArray) -> tuple[FloatArray, int]:
    """``rᵀ (X, 1)`` in panels and pairs, and the additions behind each entry."""
    X = block.X if block.thin is None else block.thin
    n_rows, parts = r.shape[0], []
    for first in range(0, n_rows, _PANEL):
        last = min(first + _PANEL, n_rows)
        if sp.issparse(X):
            part = (row_range(X, first, last).astype(np.float64).T @ r[first:last]).T
        else:
            part = r[first:last].T @ np.ascontiguousarray(X[first:last], dtype=np.float64)
        if block.intercept:
            part = np.column_stack([part, r[first:last].sum(axis=0)])
        parts.append(part)
    depth = min(n_rows, _PANEL)
    while len(parts) > 1:
        whole = [one + other for one, other in zip(parts[::2], parts[1::2], strict=False)]
        parts = whole + (parts[-1:] if len(parts) % 2 else [])
        depth += 1
    return parts[0], depth


def _scaled(
    block: Block, state: tuple[Point, FloatArray], factor: float
) -> tuple[Point, tuple[()]]:
    point, codes = state
    scaled = factor * point
    scaled[:, np.arange(codes.size), codes.astype(np.intp)] += 1.0 - factor
    return scaled, ()


def _suggested(
    block: Block, scored: Scored, costs: FloatArray, lam: float
) -> tuple[Point, tuple[()]]:
    scores, codes = scored
    p = np.exp(scores - scores.max(axis=1, keepdims=True))
    price = costs[codes]
    paid = np.where(np.isfinite(price), lam * np.where(np.isfinite(price), price, 0.0), np.inf)
    a = np.zeros_like(p)
    a[np.arange(codes.size), (-scores - paid).argmax(axis=1)] = 1.0
    return np.stack([p / p.sum(axis=1, keepdims=True), a]), ()


def _part(block: Block, point: Point, k: int) -> tuple[FloatArray, tuple[()]]:
    return point[k], ()
