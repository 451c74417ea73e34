"""The β-step of the ADMM variants: from (C) on all coefficients to a ball without free ones.

    minimise  ½ ‖Zβ - t‖²_W   subject to  ‖β/c‖_* ≤ λ

depends on the samples only through ``H = ZᵀWZ``, formed once, and ``ZᵀWt``.  Penalised
coefficients are scaled to ``θ = β/c``; the free ones F (the intercept, immovable features) are
eliminated, ``β_F = H_FF⁻¹ (ZᵀWt - H_FK β_K)``, which leaves a quadratic over a pure norm ball
for ``ball_qp``.  Neither step copies or scales the data.

The norm ``‖·‖_W`` weighs residuals by the weights of the samples.  For equal weights it is
the paper's up to a factor 1/N, which the penalty ρ absorbs (see ``lp_admm``).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

from ..problem.problem import Problem
from ..rows.arrays import FloatArray, IndexArray
from ..rows.blocks import Block
from ..rows.interface import BlockState
from ..rows.reductions import Sum
from .ball_qp import InnerSolver, NormBall, Quadratic, make_inner_solver

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
