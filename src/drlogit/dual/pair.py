"""Dual points of the flip pair: s and a per sample, what they prove, and their correction.

With ``s, a ∈ [0,1]^N`` and H the binary entropy, (P) is bounded from below by

    Σ w_i H(s_i)    subject to   ‖c Σ w_i (s_i - a_i) z_i‖ + κ Σ w_i a_i ≤ ε    (transport norm)
                                 Σ w_i (s_i - a_i) z_i = 0                      (free columns)

and what is missing is scaled, or charged, by :mod:`drlogit.dual.bound`.  Samples may have a κ each.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from ..problem.losses import entropy, flip_probability
from ..problem.problem import Problem
from ..rows.arrays import FloatArray
from ..rows.blocks import Block
from ..rows.interface import State
from ..rows.reductions import Sum
from .bound import DualSums, lower_bound
from .coordinates import pair_coordinates
from .correction import Correction
from .sums import combined, totals

#: s and a of a block's samples.
Pair: TypeAlias = tuple[FloatArray, FloatArray]

#: Corrections of a point, each with its own Hessian, and what one must leave at most of what is
#: missing to the wanted bound for another to pay.
_CORRECTIONS = 4
_PROGRESS = 0.3

#: The share of its s that a correction must leave to a sample; less is nothing.  A sample that free
#: columns separate has an equation that no small step can meet.
_LEFT = 1e-2

#: Flip shares of such samples that are what a solver left of nothing.
_NO_SHARE = 1e-6

#: Coefficients up to which the Hessian is formed; beyond, a point is scaled and charged as it is.
_DIRECT_LIMIT = 3000


@dataclass(frozen=True, eq=False)
class DualBound:
    """A lower bound and the point that proves it, scaled into the ball."""

    value: float
    point: Any  # a Pair per block, PieceMasses, or a ClassPoint

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
        small = rows.n_columns <= _DIRECT_LIMIT
        for _ in range(_CORRECTIONS if small and value < wanted else 0):
            _, (hessian,) = rows.run(_hessian, point)
            model = Correction(coordinates, hessian)
            room = max(problem.epsilon - sums.spent, 0.0) * (1.0 - 1e-12)
            step = model.step(sums.gradient, x, room, lam)
            if not np.isfinite(step).all():
                break
            point, reduced = rows.run(_corrected, point, step)
            sums, x = _sums(problem, reduced), x + step
            value, factor = lower_bound(coordinates, problem.epsilon, sums, lam)
            if value > best[0]:
                best = value, factor, point
            if best[0] >= wanted or (value > 0.0 and not wanted - value < _PROGRESS * missing):
                break
            missing = wanted - value
    value, factor, point = best
    if not coordinates.admits(coefficients):
        value = 0.0
    return DualBound(value, rows.run(_scaled, point, factor)[0] if factor != 1.0 else point)


def _sums(problem: Problem, reduced: tuple[FloatArray, FloatArray, int, int]) -> DualSums:
    found = combined(reduced)
    value, share = found.numbers
    spent = problem.cost.pair.spent(float(share))
    return DualSums(found.adjoint, spent, float(value), found.chain)


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
