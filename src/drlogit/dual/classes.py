"""Dual points of several classes, and the lower bound that they prove.

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

Derivation: docs/algorithm.md, section 8.
"""

from __future__ import annotations

import math
from copy import copy
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy.special import softmax

from ..problem.dual_point import ClassDualPoint
from ..problem.label_costs import FlipCosts
from ..problem.losses import Codes, Scored
from ..problem.parameters import ADMITTED
from ..problem.problem import Problem
from ..rows.arrays import FloatArray
from ..rows.blocks import Block
from ..rows.interface import State
from ..rows.reductions import Max, Sum
from ._certificate import FREE, NOTHING, ROUNDING, column_sums
from .bound import DualSums, lower_bound
from .coordinates import pair_coordinates
from .pair import DualBound, parts

#: p and a of a block's samples, (2, samples, classes).
Point: TypeAlias = FloatArray


class ClassCoordinates:
    """What the bound has to know of the coefficients; ``flow`` is that of the point in question.

    ``one`` are the coordinates of a class.
    """

    def __init__(self, problem: Problem, flow: FloatArray | None = None) -> None:
        self.one, self.n_classes, self.flow = pair_coordinates(problem), problem.n_classes, flow
        self.costs = self.one.costs[self.one.in_norm]

    def with_flow(self, flow: FloatArray | None) -> ClassCoordinates:
        """The same for a point with another flow."""
        changed = copy(self)
        changed.flow = flow
        return changed

    def _left(self, gradient: FloatArray) -> FloatArray:
        """-G by the log-odds at the means instead of the intercepts; it arrives with that sign."""
        G, constant = -np.reshape(gradient, (self.n_classes, -1)), self.one.intercept
        return G if constant is None else G - np.outer(G[:, constant], self.one.mean)

    def used(self, gradient: FloatArray, rounding: float = 0.0) -> float:
        """At least ``N(G)``, if the sums are right up to ``rounding`` of their terms."""
        kept, K = self.one.in_norm, self.n_classes
        G = self._left(gradient)[:, kept]
        error = (rounding + 8.0 * K * ROUNDING) * self.one.sizes[kept] + NOTHING
        more = 1.0 + (K * K * (kept.size + 8)) * ROUNDING
        if self.one.norm.name == "l1":
            return float(0.5 * more * (self.costs @ (np.abs(G).sum(axis=0) + 2.0 * error)))
        flow = np.zeros((K * (K - 1) // 2, kept.size)) if self.flow is None else self.flow
        one, other = pairs(K)
        missing = G.copy()
        np.subtract.at(missing, one, flow)
        np.add.at(missing, other, flow)
        size = np.abs(G).sum(axis=0) + 2.0 * np.abs(flow).sum(axis=0)
        error = 2.0 * error / K + 4.0 * K * ROUNDING * size
        flow = np.abs(flow + (missing[one] - missing[other]) / K) + error
        largest = float(flow.max(initial=0.0))
        if not 0.0 < largest < np.inf:
            return largest
        values = [self.one.norm.value(self.costs * (row / largest)) for row in flow]
        return float(np.sum(values) * largest * more)

    def charge(self, gradient: FloatArray, rounding: float = 0.0) -> float:
        """The most that ⟨G, B⟩ can be over free columns of admitted models."""
        kept = np.flatnonzero((self.one.kind == FREE) & (self.one.spread > 0.0))
        left = np.abs(self._left(gradient)).sum(axis=0)[kept]
        error = 2.0 * rounding * self.one.sizes[kept] + self.n_classes * NOTHING
        total = float(np.sum((left + error) / self.one.spread[kept]))
        additions = kept.size + 8 + self.n_classes
        return float(0.5 * ADMITTED * total * (1.0 + additions * ROUNDING))

    def admits(self, model: FloatArray) -> bool:
        """Whether the bound speaks of a model: of all differences between two of its classes."""
        one, other = pairs(self.n_classes)
        return all(map(self.one.admits, model[one] - model[other]))


def pairs(n_classes: int) -> tuple[Any, Any]:
    """(j, k) of all pairs, j < k, in the order of flows: k rises slowest."""
    k, j = np.tril_indices(n_classes, -1)
    return j, k


class ClassPoint(NamedTuple):
    """A dual point on all rows: p and a of each block, (2, samples, classes), and their flow."""

    shares: State
    flow: FloatArray | None


def class_bound(problem: Problem, model: FloatArray, point: ClassPoint) -> DualBound:
    """What a point proves: nothing, if the class of models does not have this one."""
    rows, flow = problem.rows, point.flow
    state = rows.pair(point.shares, problem.codes)
    shares, (G, (spent, entropy), chain, blocks) = rows.run(_sums, state, problem.label_costs)
    additions = float(chain + blocks + 2 * problem.n_classes + 8)
    sums = DualSums(-G.ravel(), float(spent), float(entropy), additions)
    coordinates = ClassCoordinates(problem, flow)
    value, factor = lower_bound(coordinates, problem.epsilon, sums)
    if factor != 1.0:
        shares = rows.run(_scaled, rows.pair(shares, problem.codes), factor)[0]
        flow = None if flow is None else factor * flow
    return DualBound(value if coordinates.admits(model) else 0.0, ClassPoint(shares, flow))


def class_point_of_model(problem: Problem, model: FloatArray) -> ClassPoint:
    """The probabilities that a model predicts, and the labels as they are."""
    return ClassPoint(problem.rows.run(_predicted, problem.scores(model))[0], None)


def class_dual_point(problem: Problem, point: ClassPoint) -> ClassDualPoint:
    """A point in plain numbers, of the length of the samples."""
    rows = problem.rows
    p, a = (rows.gather(each) for each in parts(problem, point.shares))
    return ClassDualPoint(p, a, rows.gather(problem.codes), point.flow)


def _predicted(block: Block, scored: Scored) -> tuple[Point, tuple[()]]:
    scores, codes = scored
    return np.stack([softmax(scores, axis=1), np.eye(scores.shape[1])[codes]]), ()


def _sums(
    block: Block, state: tuple[Point, Codes], costs: FlipCosts
) -> tuple[Point, tuple[Sum, Sum, Max, Sum]]:
    """The point on its simplices, and G, (``Σ w κ·a``, ``Σ w H(p)``), the additions behind them."""
    given, codes = state
    price = costs.by_label(block, codes, given.shape[2])
    reached = np.isfinite(price)
    p = np.maximum(given[0], 0.0)
    a = np.where(reached, np.maximum(given[1], 0.0), 0.0)
    p, a = p / p.sum(axis=1, keepdims=True), a / a.sum(axis=1, keepdims=True)
    w = block.weights
    r = w[:, None] * (p - a)
    spent = w * (a * np.where(reached, price, 0.0)).sum(axis=1)
    entropy = w * -(p * np.log(np.where(p > 0.0, p, 1.0))).sum(axis=1)
    G, chain = column_sums(block.compiled, np.ascontiguousarray(r.T))
    numbers = np.array([math.fsum(spent), math.fsum(entropy)])
    return np.stack([p, a]), (Sum(G), Sum(numbers), Max(chain), Sum(1))


def _scaled(block: Block, state: tuple[Point, Codes], factor: float) -> tuple[Point, tuple[()]]:
    point, codes = state
    scaled = factor * point
    scaled[:, np.arange(codes.size), codes] += 1.0 - factor
    return scaled, ()
