"""Dual points of the flip pair: s and a per sample, what they prove, and their correction.

With ``s, a ∈ [0,1]^N`` and H the binary entropy, (P) is bounded from below by

    Σ w_i H(s_i)    subject to   ‖c Σ w_i (s_i - a_i) z_i‖ + κ Σ w_i a_i ≤ ε    (transport norm)
                                 Σ w_i (s_i - a_i) z_i = 0                      (free columns)

A point that violates these constraints is scaled or charged by :mod:`drlogit.dual.bound`.  κ may
differ between samples.  A point is an array (2, n) per block, s and a.

Derivation: docs/algorithm.md, (2) and (12) to (14).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ..problem.problem import Problem
from ..rows.arrays import FloatArray
from ..rows.blocks import Block
from ..rows.interface import State
from ..rows.reductions import Max, Sum
from ._certificate import Coordinates, pair_sums
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


class Judged(NamedTuple):
    """The bound of an uncorrected dual point, and the factor that scales it into the ball."""

    value: float
    factor: float
    state: State  # margins of the model, s and a: (3, n) per block
    sums: DualSums
    coordinates: Coordinates


def judge(problem: Problem, coefficients: FloatArray, given: State | None) -> Judged:
    """One visit for the margins of a model and the sums of a dual point.

    ``given`` is a point, flip shares alone, or None; a missing s is that of the coefficients.
    """
    coordinates = pair_coordinates(problem)
    flips = 1.0 if problem.flips else 0.0
    found = _visited(problem, coordinates, _judge, given, coefficients, flips)
    if found.sums.spent > problem.epsilon:
        fewer = problem.epsilon / found.sums.spent
        found = _visited(problem, coordinates, _judge, found.state, coefficients, fewer)
    return found


def settle(
    problem: Problem,
    coefficients: FloatArray,
    judged: Judged,
    *,
    wanted: float = math.inf,
) -> DualBound:
    """The bound of a point, corrected if it is below ``wanted``, and the scaled point."""
    rows, best = problem.rows, judged
    if judged.value < wanted and rows.n_columns <= _DIRECT_LIMIT:
        with np.errstate(over="ignore", invalid="ignore"):
            other = _corrected(problem, coefficients, judged)
            best = other if other.value > judged.value else judged
    value = best.value if best.coordinates.admits(coefficients) else 0.0
    return DualBound(value, rows.run(_scaled, best.state, best.factor)[0])


def _corrected(problem: Problem, coefficients: FloatArray, judged: Judged) -> Judged:
    """The point after a correction of s; unchanged if no correction exists."""
    _, (hessian,) = problem.rows.run(_hessian, judged.state)
    room = max(problem.epsilon - judged.sums.spent, 0.0) * (1.0 - 1e-12)
    found, gradient = judged.coordinates, judged.sums.gradient
    step = correction(found, hessian, gradient, coefficients, room)
    if not np.isfinite(step).all():
        return judged
    return _visited(problem, found, _moved, judged.state, coefficients, step)


def parts(problem: Problem, point: State) -> tuple[State, State]:
    """``s`` and ``a`` of a point, apart; with several classes p and a."""
    s, a = (problem.rows.run(_part, point, k)[0] for k in (0, 1))
    return s, a


def _visited(problem: Problem, coordinates: Coordinates, visit: Any, *arguments: Any) -> Judged:
    state, (found, chain, n_blocks) = problem.rows.run(visit, *arguments)
    entropy, flips = found[-2:].tolist()
    sums = DualSums(found[:-2], problem.cost.spent(flips), entropy, chain + n_blocks)
    return Judged(*lower_bound(coordinates, problem.epsilon, sums), state, sums, coordinates)


def _judge(
    block: Block, given: Any, coefficients: FloatArray, share: float
) -> tuple[FloatArray, tuple[Sum, Max, Sum]]:
    alone = given is None or (isinstance(given, np.ndarray) and given.ndim == 1)
    s, a = (None, given) if alone else given[-2:]
    return _reduced(
        block, coefficients, s, a if a is None or share == 1.0 else share * np.asarray(a)
    )


def _reduced(
    block: Block, coefficients: FloatArray, s: FloatArray | None, a: FloatArray | None
) -> tuple[FloatArray, tuple[Sum, Max, Sum]]:
    state, sums, chain = pair_sums(block.compiled, coefficients, s, a, block.flip_multiples)
    return state, (Sum(sums), Max(chain), Sum(1.0))


def _hessian(block: Block, state: FloatArray) -> tuple[None, tuple[Sum]]:
    return None, (Sum(block.gram(block.weights * state[1] * (1.0 - state[1]))),)


def _moved(
    block: Block, state: FloatArray, coefficients: FloatArray, step: FloatArray
) -> tuple[FloatArray, tuple[Sum, Max, Sum]]:
    _, s, a = state
    moved = s - s * (1.0 - s) * block.margins(step)
    return _reduced(block, coefficients, np.where(moved > _LEFT * s, moved, 0.0), a)


def _scaled(block: Block, state: FloatArray, factor: float) -> tuple[FloatArray, tuple[()]]:
    return state[1:] if factor == 1.0 else factor * state[1:], ()


def _part(block: Block, point: FloatArray, k: int) -> tuple[FloatArray, tuple[()]]:
    return point[k], ()
