"""Dual points of two labels: s and a per sample, what they prove, and their correction.

With ``s, a ∈ [0,1]^N`` and H the binary entropy, (P) is bounded from below by

    Σ w_i H(s_i)    subject to   ‖c Σ w_i (s_i - a_i) z_i‖ + κ Σ w_i a_i ≤ ε    (transport norm)
                                 Σ w_i (s_i - a_i) z_i = 0                      (free columns)

A point that violates these constraints is scaled or charged by :mod:`drlogit.dual.bound`.  κ may
differ between samples.  A point is an array (2, n) per block, s and a.

Derivation: docs/algorithm.md, (2) and (12) to (14).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..problem.problem import Problem
from ..rows.arrays import FloatArray
from ..rows.blocks import Block
from ..rows.interface import State
from ..rows.reductions import Max, Sum
from ._certificate import pair_sums
from .bound import DualSums, lower_bound
from .coordinates import pair_coordinates
from .correction import correction

#: A correction must leave this share of s to a sample, or s becomes zero.  If free columns separate
#: a sample, no small step can satisfy its equation.
_LEFT = 1e-2

#: Coefficients up to which the Hessian is formed; beyond, a point is scaled and charged as it is.
_DIRECT_LIMIT = 3000


class DualBound(NamedTuple):
    """A lower bound and the point that proves it, scaled into the ball."""

    value: float
    point: Any  # of the pair, PieceMasses, or a ClassPoint


class PairBound(NamedTuple):
    """The same of two labels, with the sums of the point before it was scaled."""

    value: float
    point: State
    sums: DualSums
    state: State  # margins of the model, s and a: (3, n) per block


def pair_bound(
    problem: Problem, coefficients: FloatArray, point: State | None, wanted: float = 0.0
) -> PairBound:
    """The bound of a point, or of flip shares alone; missing parts are those of the coefficients.

    The point is corrected if its bound is below ``wanted``.  The bound is 0 if the model is none of
    those that it is about.
    """
    found = _judged(problem, coefficients, point, 1.0 if problem.flips else 0.0)
    if found.sums.spent > problem.epsilon:  # flips alone are scaled down first
        share = problem.epsilon / found.sums.spent
        found = _judged(problem, coefficients, found.state, share)
    if found.value < wanted and problem.rows.n_columns <= _DIRECT_LIMIT:
        with np.errstate(over="ignore", invalid="ignore"):
            other = _corrected(problem, coefficients, found)
        found = other if other.value > found.value else found
    return found


def _judged(
    problem: Problem, coefficients: FloatArray, point: State | None, share: float
) -> PairBound:
    """The bound of a point with this share of its flips."""
    rows, coordinates = problem.rows, pair_coordinates(problem)
    state, (found, chain, n_blocks) = rows.run(_sums, point, coefficients, share)
    entropy, flips = found[-2:].tolist()
    sums = DualSums(found[:-2], problem.cost.spent(flips), entropy, chain + n_blocks)
    value, factor = lower_bound(coordinates, problem.epsilon, sums)
    value = value if coordinates.admits(coefficients) else 0.0
    return PairBound(value, rows.run(_scaled, state, factor)[0], sums, state)


def _corrected(problem: Problem, coefficients: FloatArray, found: PairBound) -> PairBound:
    """The point after a correction of s; unchanged if no correction exists."""
    _, (hessian,) = problem.rows.run(_hessian, found.state)
    room = max(problem.epsilon - found.sums.spent, 0.0) * (1.0 - 1e-12)
    step = correction(pair_coordinates(problem), hessian, found.sums.gradient, coefficients, room)
    if not np.isfinite(step).all():
        return found
    moved, _ = problem.rows.run(_moved, found.state, step)
    return _judged(problem, coefficients, moved, 1.0)


def parts(problem: Problem, point: State) -> tuple[State, State]:
    """``s`` and ``a`` of a point, apart; with several classes p and a."""
    s, a = (problem.rows.run(_part, point, k)[0] for k in (0, 1))
    return s, a


def _sums(
    block: Block, given: Any, coefficients: FloatArray, share: float
) -> tuple[FloatArray, tuple[Sum, Max, Sum]]:
    alone = given is None or (isinstance(given, np.ndarray) and given.ndim == 1)
    s, a = (None, given) if alone else given[-2:]
    a = a if a is None or share == 1.0 else share * np.asarray(a)
    state, sums, chain = pair_sums(block.compiled, coefficients, s, a, block.flip_multiples)
    return state, (Sum(sums), Max(chain), Sum(1.0))


def _hessian(block: Block, state: FloatArray) -> tuple[None, tuple[Sum]]:
    return None, (Sum(block.gram(block.weights * state[1] * (1.0 - state[1]))),)


def _moved(block: Block, state: FloatArray, step: FloatArray) -> tuple[FloatArray, tuple[()]]:
    _, s, a = state
    moved = s - s * (1.0 - s) * block.margins(step)
    return np.stack([np.where(moved > _LEFT * s, moved, 0.0), a]), ()


def _scaled(block: Block, state: FloatArray, factor: float) -> tuple[FloatArray, tuple[()]]:
    return state[1:] if factor == 1.0 else factor * state[1:], ()


def _part(block: Block, point: FloatArray, k: int) -> tuple[FloatArray, tuple[()]]:
    return point[k], ()
