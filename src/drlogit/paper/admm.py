"""What the ADMM variants for (B) share: units, starting points and the β-step.

All of them split off the margins, ``Zβ = μ``, with multiplier w.

Samples count by their weights everywhere: the penalty is ``(ρ/2) N Σ w_i (z_iβ - μ_i)²`` and the
multiplier is kept per unit of weight, as v, so that ``v_i = s_i - a_i`` at the optimum.  With equal
weights this is the paper's penalty to the letter.  In these units ``L_f = 1/(4N)`` whatever the
weights, a sample of weight two is a sample twice, and one of weight zero is none.
Options take ρ in the units of the paper; inside, it is N times that, and of natural size one.

The state of a block is a tuple that begins with (μ, v).

*The β-step* is (C) on all coefficients,

    minimise  ½ ‖Zβ - t‖²_W   subject to  ‖β/c‖_* ≤ λ

It depends on the samples only through ``H = ZᵀWZ``, formed once, and ``ZᵀWt``.  Penalised
coefficients are scaled to ``θ = β/c``; the free ones F (the intercept, immovable features) are
eliminated, ``β_F = H_FF⁻¹ (ZᵀWt - H_FK β_K)``, which leaves a quadratic over a pure norm ball
for ``ball_qp``.  Neither step copies or scales the data.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import eigh

from ..problem.losses import flip_probability
from ..problem.problem import Problem
from ..problem.result import Result
from ..rows.arrays import FloatArray, IndexArray
from ..rows.blocks import Block
from ..rows.interface import BlockState, State
from ..rows.reductions import Sum
from ..starts.start import flip_shares_of_start
from .ball_qp import InnerSolver, NormBall, Quadratic, make_inner_solver

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


#: The most columns: H has 200 MB then, and its factors as much again.
DENSE_LIMIT = 5000

#: Eigenvalues of ``H_FF``, scaled to unit diagonal, that count as zero.
_RANK_TOLERANCE = 1e-12


@dataclass(frozen=True, eq=False)
class BetaStep:
    """``target ↦ argmin ½βᵀHβ - targetᵀβ`` over the ball: all that does not change with it.

    Made once per H and shared by all λ.
    """

    problem: Problem
    kept: IndexArray  # the penalised coefficients
    free: IndexArray  # the free ones
    scale: FloatArray  # costs of the penalised ones
    coupling: FloatArray  # H_FK, scaled
    inverse: FloatArray  # pseudo-inverse of H_FF
    inner: InnerSolver

    @classmethod
    def build(cls, problem: Problem, inner: str = "auto") -> BetaStep:
        """For ``H = ZᵀWZ``: one pass over the data."""
        H = gram(problem)
        kept, free = np.flatnonzero(problem.penalised), np.flatnonzero(problem.free)
        scale = problem.costs[kept]
        coupling = H[np.ix_(free, kept)] * scale
        inverse = _pseudo_inverse(H[np.ix_(free, free)])
        reduced = H[np.ix_(kept, kept)] * np.outer(scale, scale)
        if free.size:
            reduced -= coupling.T @ inverse @ coupling
            reduced = 0.5 * (reduced + reduced.T)
        solver = make_inner_solver(inner, Quadratic(reduced), problem.norm)
        return cls(problem, kept, free, scale, coupling, inverse, solver)

    def __call__(self, target: FloatArray, lam: float, beta: FloatArray, tol: float) -> FloatArray:
        """The minimiser over ``‖β/c‖_* ≤ lam``, from ``beta``, to the inner gap ``tol``."""
        result = np.zeros(self.problem.costs.size)
        theta = np.zeros(self.kept.size)
        pull = self.inverse @ target[self.free]
        if lam > 0.0 and self.kept.size:
            c = self.scale * target[self.kept] - self.coupling.T @ pull
            ball = NormBall(self.problem.norm, lam)
            start = beta[self.kept] / self.scale
            theta = self.inner(c, ball, start, max(tol, ball.rounding(c)))
        result[self.kept] = self.scale * theta
        result[self.free] = pull - self.inverse @ (self.coupling @ theta)
        return result


def gram(problem: Problem) -> FloatArray:
    """``ZᵀWZ``; ``ValueError`` where it is too large to be kept."""
    n_columns = problem.rows.n_columns
    if n_columns > DENSE_LIMIT:
        raise ValueError(
            f"the paper's methods form an n×n matrix and take up to {DENSE_LIMIT} columns, got "
            f"{n_columns}: use solver='interior-point', or method 'subgradient' at fixed λ"
        )
    return np.asarray(problem.rows.run(_gram)[1][0])


def _gram(block: Block, state: BlockState) -> tuple[BlockState, tuple[Sum]]:
    return state, (Sum(block.gram(block.weights)),)


def _pseudo_inverse(matrix: FloatArray) -> FloatArray:
    """Of a positive semidefinite matrix, with its rank judged at unit diagonal."""
    if matrix.shape[0] == 0:
        return np.zeros_like(matrix)
    diagonal = np.diagonal(matrix)
    scale = 1.0 / np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
    values, vectors = eigh(matrix * np.outer(scale, scale))
    kept = values > _RANK_TOLERANCE * values.size
    half = scale[:, None] * vectors[:, kept] / np.sqrt(values[kept])
    return np.asarray(half @ half.T)
