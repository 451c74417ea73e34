"""Dual points of the flip pair: s and a per sample, what they prove, and their correction.

With ``s, a ∈ [0,1]^N`` and H the binary entropy, (P) is bounded from below by

    Σ w_i H(s_i)    subject to   ‖c Σ w_i (s_i - a_i) z_i‖ + κ Σ w_i a_i ≤ ε    (transport norm)
                                 Σ w_i (s_i - a_i) z_i = 0                      (free columns)

and what is missing is scaled, or charged, by :mod:`drlogit.dual.bound`.  Samples may have a κ each.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from ..problem.conjugate_gradients import conjugate_gradients
from ..problem.losses import entropy, flip_probability
from ..problem.problem import Problem
from ..rows.arrays import FloatArray
from ..rows.blocks import Block
from ..rows.interface import State
from ..rows.reductions import Sum
from .bound import FREE, Coordinates, DualSums, lower_bound
from .coordinates import pair_coordinates
from .correction import Correction
from .sums import combined, totals

#: s and a of a block's samples.
Pair: TypeAlias = tuple[FloatArray, FloatArray]

#: Corrections of a point, each with its own Hessian, and what one must leave at most of what is
#: missing to the wanted bound for another to pay.
CORRECTIONS = 4
PROGRESS = 0.3

#: The share of its s that a correction must leave to a sample; less is nothing.  A sample that free
#: columns separate has an equation that no small step can meet.
_LEFT = 1e-2

#: Flip shares of such samples that are what a solver left of nothing.
_NO_SHARE = 1e-6

#: Up to this many coefficients the Hessian is factored; beyond, conjugate gradients.
_DIRECT_LIMIT = 3000
_RIDGE = 1e-6
_CG_MAX_ITER, _CG_TOLERANCE = 200, 1e-10


@dataclass(frozen=True, eq=False)
class DualBound:
    """A lower bound and the point that proves it, scaled into the ball."""

    value: float
    point: State  # a Pair per block, or PieceMasses

    def parts(self, problem: Problem) -> tuple[State, State]:
        """``s`` and ``a`` apart, for the pair."""
        return parts(problem, self.point)


def parts(problem: Problem, point: State) -> tuple[State, State]:
    """``s`` and ``a`` of a point, apart."""
    s, a = (problem.rows.run(_part, point, k)[0] for k in (0, 1))
    return s, a


def pair_bound(
    problem: Problem,
    coefficients: FloatArray,
    flip_share: State,
    *,
    s: State | None = None,
    lam: float | None = None,
    wanted: float = math.inf,
) -> DualBound:
    """Best bound from s, by default that of the coefficients, and a; corrected if not ``wanted``.

    ``lam`` is for the problem at fixed λ.
    """
    rows, coordinates = problem.rows, pair_coordinates(problem)
    with np.errstate(over="ignore", invalid="ignore"):
        if s is None:
            point, reduced = rows.run(_at, flip_share, coefficients)
        else:
            point, reduced = rows.run(_given, rows.pair(s, flip_share))
        sums = _sums(problem, reduced)
        if lam is None and sums.spent > problem.epsilon:
            point, reduced = rows.run(_fewer_flips, point, problem.epsilon / sums.spent)
            sums = _sums(problem, reduced)
        value, factor = lower_bound(coordinates, problem.epsilon, sums, lam)
        best, missing = (value, factor, point), wanted - value
        x = coefficients
        for _ in range(CORRECTIONS if value < wanted else 0):
            model = _model(problem, coordinates, point)
            room = max(problem.epsilon - sums.spent, 0.0) * (1.0 - 1e-12)
            step = model.step(sums.gradient, x, room, lam)
            if not np.isfinite(step).all():
                break
            point, reduced = rows.run(_corrected, point, step)
            sums, x = _sums(problem, reduced), x + step
            value, factor = lower_bound(coordinates, problem.epsilon, sums, lam)
            if value > best[0]:
                best = value, factor, point
            if best[0] >= wanted or (value > 0.0 and not wanted - value < PROGRESS * missing):
                break
            missing = wanted - value
    value, factor, point = best
    return DualBound(value, rows.run(_scaled, point, factor)[0] if factor != 1.0 else point)


def _sums(problem: Problem, reduced: tuple[FloatArray, FloatArray, int, int]) -> DualSums:
    found = combined(reduced)
    value, share = found.numbers
    spent = problem.cost.pair.spent(float(share))
    return DualSums(found.adjoint, spent, float(value), found.chain)


class _Implicit:
    """Where H is too large to form: into the ball by projection, by conjugate gradients."""

    def __init__(self, problem: Problem, coordinates: Coordinates, point: State) -> None:
        self.rows, self.coordinates = problem.rows, coordinates
        self.curvature, (self.diagonal,) = problem.rows.run(_diagonal, point)

    def step(
        self, gradient: FloatArray, x: FloatArray, radius: float, lam: float | None = None
    ) -> FloatArray:
        kept, free = self.coordinates.in_norm, self.coordinates.kind == FREE
        excess, among = np.where(free, gradient, 0.0), free.copy()
        if lam is None:
            costs = self.coordinates.costs[kept]
            moved = gradient[kept] * costs
            excess[kept] = (moved - self.coordinates.norm.project(moved, radius)) / costs
            among[kept] = True
        ridge = np.where(free, 0.0, _RIDGE * self.diagonal)
        positive = among & (self.diagonal > 0.0)
        inverse = np.where(positive, 1.0 / np.where(positive, self.diagonal + ridge, 1.0), 0.0)
        return conjugate_gradients(
            lambda v: np.asarray(self.rows.run(_product, self.curvature, v)[1][0]) + ridge * v,
            lambda r: inverse * r, excess, rtol=_CG_TOLERANCE, max_steps=_CG_MAX_ITER,
        )  # fmt: skip


def _model(problem: Problem, coordinates: Coordinates, point: State) -> Correction | _Implicit:
    """The quadratic model at a point."""
    if problem.rows.n_columns > _DIRECT_LIMIT:
        return _Implicit(problem, coordinates, point)
    _, (hessian,) = problem.rows.run(_hessian, point)
    return Correction(coordinates, hessian)


def _reduced(block: Block, s: FloatArray, a: FloatArray) -> tuple[Pair, tuple[Sum, ...]]:
    w = block.weights
    flips = w * block.flip_sizes(a)
    return (s, a), totals(block, w * (s - a), w * entropy(s), flips)  # type: ignore[return-value]


def _at(block: Block, a: FloatArray, coefficients: FloatArray) -> tuple[Pair, tuple[Sum, ...]]:
    a = np.clip(block.flippable(a), 0.0, 1.0)
    return _reduced(block, flip_probability(block.margins(coefficients)), a)


def _given(block: Block, pair: Pair) -> tuple[Pair, tuple[Sum, ...]]:
    a = np.clip(block.flippable(pair[1]), 0.0, 1.0)
    return _reduced(block, np.clip(pair[0], 0.0, 1.0), a)


def _fewer_flips(block: Block, pair: Pair, factor: float) -> tuple[Pair, tuple[Sum, ...]]:
    return _reduced(block, pair[0], factor * pair[1])


def _hessian(block: Block, pair: Pair) -> tuple[None, tuple[Sum]]:
    return None, (Sum(block.gram(block.weights * pair[0] * (1.0 - pair[0]))),)


def _diagonal(block: Block, pair: Pair) -> tuple[FloatArray, tuple[Sum]]:
    curvature = pair[0] * (1.0 - pair[0])
    return curvature, (Sum(block.squared_columns(block.weights * curvature)),)


def _product(block: Block, curvature: FloatArray, v: FloatArray) -> tuple[FloatArray, tuple[Sum]]:
    return curvature, (Sum(block.adjoint(block.weights * curvature * block.margins(v))),)


def _corrected(block: Block, pair: Pair, step: FloatArray) -> tuple[Pair, tuple[Sum, ...]]:
    s, a = pair
    moved = s - s * (1.0 - s) * block.margins(step)
    out = ~(moved > _LEFT * s)
    s, a = np.where(out, 0.0, np.minimum(moved, 1.0)), np.where(out & (a < _NO_SHARE), 0.0, a)
    return _reduced(block, s, a)


def _scaled(block: Block, pair: Pair, factor: float) -> tuple[Pair, tuple[()]]:
    return (factor * pair[0], factor * pair[1]), ()


def _part(block: Block, pair: Pair, k: int) -> tuple[FloatArray, tuple[()]]:
    return pair[k], ()
