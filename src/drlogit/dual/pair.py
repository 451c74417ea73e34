"""Dual points of two labels: s and a per sample, and what they prove.

With ``s, a ∈ [0,1]^N`` and H the binary entropy, (P) is bounded from below by

    Σ w_i H(s_i)    subject to   ‖c Σ w_i (s_i - a_i) z_i‖ + κ Σ w_i a_i ≤ ε    (transport norm)
                                 Σ w_i (s_i - a_i) z_i = 0                      (free columns)

A point that violates these constraints is scaled or charged by :mod:`drlogit.dual.bound`.  κ may
differ between samples.  A point is an array (2, n) per block, s and a.

Derivation: docs/algorithm.md, (2), (13) and (14).
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


def pair_bound(problem: Problem, coefficients: FloatArray, point: State | None) -> PairBound:
    """The bound of a point, or of flip shares alone; missing parts are those of the coefficients.

    The bound is 0 if the model is none of those that it is about.
    """
    coordinates, rows = pair_coordinates(problem), problem.rows
    share, given = 1.0 if problem.flips else 0.0, point
    for _ in range(2):  # flips that cost more than ε are scaled down apart
        state, (found, chain, n_blocks) = rows.run(_sums, given, coefficients, share)
        entropy, flips = found[-2:].tolist()
        sums = DualSums(found[:-2], problem.cost.spent(flips), entropy, chain + n_blocks)
        if sums.spent <= problem.epsilon:
            break
        given, share = state, problem.epsilon / sums.spent
    value, factor = lower_bound(coordinates, problem.epsilon, sums)
    scaled = rows.run(_scaled, state, factor)[0]
    return PairBound(value if coordinates.admits(coefficients) else 0.0, scaled, sums, state)


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


def _scaled(block: Block, state: FloatArray, factor: float) -> tuple[FloatArray, tuple[()]]:
    return state[1:] if factor == 1.0 else factor * state[1:], ()


def _part(block: Block, point: FloatArray, k: int) -> tuple[FloatArray, tuple[()]]:
    return point[k], ()
