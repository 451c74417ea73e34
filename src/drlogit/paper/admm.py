"""What the ADMM variants for (B) share: units and starting points.

All of them split off the margins, ``Zβ = μ``, with multiplier w, and have (C) as their β-step.

Samples count by their weights everywhere: the penalty is ``(ρ/2) N Σ w_i (z_iβ - μ_i)²`` and the
multiplier is kept per unit of weight, as v, so that ``v_i = s_i - a_i`` at the optimum.  With equal
weights this is the paper's penalty to the letter.  In these units ``L_f = 1/(4N)`` whatever the
weights, a sample of weight two is a sample twice, and one of weight zero is none.
Options take ρ in the units of the paper; inside, it is N times that, and of natural size one.

The state of a block is a tuple that begins with (μ, v).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ..problem.losses import flip_probability
from ..problem.problem import Problem
from ..problem.result import Result
from ..rows.arrays import FloatArray
from ..rows.blocks import Block
from ..rows.interface import State
from ..starts.start import flip_shares_of_start

#: ``L_f`` per unit of sample weight: the largest curvature of the log-loss.
LIPSCHITZ = 0.25

#: The proven rate needs ρ above this (Proposition 4.1), per unit of sample weight.
PROVEN_PENALTY = (math.sqrt(3.0) + 1.0) * LIPSCHITZ

#: Inner gap relative to the square of the last residual: an error that the iteration dwarfs.
_INNER_SHARE = 1e-4


class AdmmStart(NamedTuple):
    """Where an ADMM run begins, and what a later one can begin from."""

    beta: FloatArray
    state: State  # per block: (mu, v)
    rho: float | None = None  # per unit of sample weight


def first_point(problem: Problem, start: Result | None, rho: float | None = None) -> AdmmStart:
    """From an earlier result, or from β = 0; ``rho`` in the units of the paper.

    For β = 0 the multiplier ``s - a`` is ½ where labels are not flipped.
    """
    penalty = in_weights(problem, rho)
    if start is None:
        state, _ = problem.rows.run(_null_state)
        return AdmmStart(np.zeros(problem.costs.size), state, penalty)
    beta = problem.join(start.coef, start.intercept)
    state, _ = problem.rows.run(_warm_state, flip_shares_of_start(problem, start), beta)
    return AdmmStart(beta, state, penalty)


def _null_state(block: Block, state: Any) -> tuple[Any, tuple[()]]:
    return (np.zeros(block.y.size), np.full(block.y.size, 0.5)), ()


def _warm_state(block: Block, a: FloatArray, beta: FloatArray) -> tuple[Any, tuple[()]]:
    u = block.margins(beta)
    return (u, flip_probability(u) - a), ()


def in_weights(problem: Problem, penalty: float | None) -> float | None:
    """A penalty of the paper (per sample) per unit of sample weight; None stays None."""
    return None if penalty is None else penalty * problem.rows.n_samples


def inner_tolerance(residual: float) -> float:
    """Gap to which (C) is solved after a residual ``‖Zβ - μ‖_W``."""
    return _INNER_SHARE * min(residual, 1.0) ** 2


def check_penalty(rho: float | None, gamma: float | None = None) -> None:
    """``ValueError`` for a penalty that no run can use."""
    if rho is not None and not (math.isfinite(rho) and rho > 0.0):
        raise ValueError(f"rho must be finite and > 0, or None, got {rho!r}")
    if gamma is not None and not (math.isfinite(gamma) and gamma >= 1.0):
        raise ValueError(f"gamma must be finite and >= 1, or None, got {gamma!r}")
