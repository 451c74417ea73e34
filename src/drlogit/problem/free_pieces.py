"""Masses of pieces that meet the equations of immovable features and of the offset exactly.

The offset is the intercept's column of ones or, without an intercept, the constant that a complete
group adds up to.  F are its column and those of immovable features; a piece has there what its
sample has.  With ``D_k = p_k (1 - p_k/q_k)``, what is left of F's equations is
``ρ = Σ p_k y_k x_iF``, and ``M = Σ_k D_k x_iF x_iFᵀ`` is a Gram matrix of the *samples*.

*Theorem.*  Let ``M c = ρ`` and ``τ² = ρᵀM⁻¹ρ``.  If ``|x_iF·c| ≤ ½`` for all i, then
``p'_k = p_k - D_k y_k x_iF·c`` lies in ``[0, q_k]`` and meets F's equations exactly;
``Σ |p'_k - p_k| ≤ τ √(Σ D_k)``; the sum ``Σ p y x_j`` over another column that pieces leave alone
moves by ``½ τ √(Σ w x_j²)`` at most; and

    Σ q_k H(p'_k/q_k)  ≥  Σ q_k H(p_k/q_k) - A τ - τ²,       A² = Σ D_k log²(s_k/(1-s_k)).

*Proof.*  That of :mod:`drlogit.problem.free_equations`, with pieces for samples, q for weights and
``D/q = s(1-s)``, which is at most ``min(s, 1-s)`` and at most a quarter.  ∎

After scaling by f (``p → f p``, q of moved pieces ``→ f q``, what that sets free goes to the
unmoved one) ``f p'`` meets the equations as well, and ``q^f ≥ f q``, hence ``s^f ≤ s``.  With ``δ =
p' - p`` the second-order term is ``(fδ)²/(q^f s^f (1-s^f)) ≤ f δ²/(p (1-s)) = f D (x_iF·c)²``: the
loss is ``f (A τ + τ²)``, with D of the point before and the logarithms of ``s^f``.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ..rows.arrays import FloatArray, IndexArray
from ..rows.blocks import Block
from ..rows.reductions import Max, Sum
from .free_equations import (
    UNIT,
    free_equations,
    intercept_equation,
    rounding_of_pairwise_sum,
    rounding_of_sum,
)
from .piece_equations import immovable_columns
from .piece_weights import Weights, WeightSums, curvature, taking_part
from .problem import Problem

#: Slopes, as shares of their mass, that count as none beside immovable features: a category, say,
#: that occurs in one class only and is as good as certain.  Its equation then holds exactly, while
#: so little could not take part in meeting it.
_SPECK = 1e-12


class Nearby(NamedTuple):
    """How far away a point is that meets the equations exactly.

    ``distance`` is τ, ``moved`` bounds ``Σ |p' - p|`` and ``furthest`` every ``|p' - p|/p``;
    ``offset`` is what is left of the offset's equation, None where there is no such equation.
    """

    distance: float
    moved: float
    furthest: float
    offset: float | None


def nearby(problem: Problem, here: WeightSums) -> Nearby | None:
    """The distance of a point with exact equations; None if there is no proof of one."""
    offset = _offset(problem, here)
    immovable = immovable_columns(problem)
    if immovable.size == 0:
        if offset is None:
            return Nearby(0.0, 0.0, 0.0, None)
        equation = intercept_equation(here.curvature * (1.0 - 1e-9), 1)
        if equation is None:
            return None
        left = abs(offset) + rounding_of_pairwise_sum(problem.rows.n_samples) * here.total
        distance, move = equation.distance(np.array([left]))
        furthest = float(move[0])
    else:
        found = _immovable(problem, here, immovable, offset)
        if found is None:
            return None
        distance, furthest = found
    if not furthest <= 0.5:
        return None
    moved = distance * math.sqrt(here.curvature) * (1.0 + 1e-9)
    return Nearby(distance, moved, furthest, offset)


def _offset(problem: Problem, here: WeightSums) -> float | None:
    domains = problem.domains
    assert domains is not None
    if not problem.fit_intercept and domains.constant_sum is None:
        return None
    return float(here.classes[1] - here.classes[0])


def _immovable(
    problem: Problem, here: WeightSums, immovable: IndexArray, offset: float | None
) -> tuple[float, float] | None:
    """τ and the largest ``|x_iF·c|`` with immovable features."""
    rows = problem.rows
    _, (gram, squares) = rows.run(_gram, here.weights)
    # The constant comes after the features: as their intercept, or in addition.
    n = rows.n_columns - int(problem.fit_intercept)
    left = np.append(np.abs(here.g[:n]), 0.0 if offset is None else abs(offset))
    rounding = rounding_of_sum(rows.n_samples) + 16.0 * UNIT
    left += rounding * math.sqrt(here.total) * np.sqrt(squares)
    free = immovable if offset is None else np.append(immovable, n)
    active, _ = rows.run(taking_part, here.weights)
    equations = free_equations(rows, free, gram[np.ix_(free, free)], active)
    if equations is None or equations.faint.size:  # nothing is paid for the latter here
        return None
    distance, move = equations.distance(left)
    _, (furthest,) = rows.run(_reach, here.weights, move)
    return distance, float(furthest)


def without_specks(block: Block, weights: Weights) -> tuple[Weights, tuple[()]]:
    """No slope where there is next to none."""
    pieces, q, p = weights
    return Weights(pieces, q, np.where(p > _SPECK * q, p, 0.0)), ()


def _gram(block: Block, weights: Weights) -> tuple[Weights, tuple[Sum, Sum]]:
    """``Σ D x xᵀ`` and ``Σ p x²`` over features and, last, the constant."""
    pieces, q, p = weights
    n = block.y.size
    d, mass = pieces.totals(curvature(q, p), n), pieces.totals(p, n)
    gram, squares = block.gram(d), block.squared_columns(mass)
    if not block.intercept:
        means = block.adjoint(block.y * d)
        gram = np.block([[gram, means[:, None]], [means, d.sum()]])
        squares = np.append(squares, mass.sum())
    return weights, (Sum(gram), Sum(squares))


def _reach(block: Block, weights: Weights, move: FloatArray) -> tuple[Weights, tuple[Max]]:
    """The largest ``|x_iF·c|`` of samples with any slope; ``move`` bounds the entries of c."""
    pieces, _, p = weights
    some = pieces.totals(p, block.y.size) > 0.0
    reach = block.absolute_margins(move[: block.n_columns])
    if not block.intercept:
        reach = reach + move[-1]
    return weights, (Max(float(np.max(reach[some], initial=0.0))),)
