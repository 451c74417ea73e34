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

from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from scipy.linalg import eigh

from ..problem.problem import Problem
from ..rows.arrays import FloatArray
from ..rows.blocks import Block
from ..rows.interface import BlockState, Rows
from ..rows.reductions import Sum
from .ball_qp import InnerSolver, make_inner_solver
from .quadratic import NormBall, Quadratic

IndexArray: TypeAlias = np.ndarray[Any, np.dtype[np.intp]]

#: Up to this many coefficients H is formed; beyond, only products with it are.
DENSE_LIMIT = 5000

#: With more free columns than this the elimination would need as much memory as H.
_FREE_LIMIT = 500

#: Eigenvalues of ``H_FF``, scaled to unit diagonal, that count as zero.
_RANK_TOLERANCE = 1e-12


@dataclass(frozen=True, eq=False)
class BetaStep:
    """``target ↦ argmin ½βᵀHβ - targetᵀβ`` over the ball: all that does not change with it.

    Made once per H and shared by all λ; ``inner_steps`` counts what the inner solver did.
    """

    problem: Problem
    kept: IndexArray  # the penalised coefficients
    free: IndexArray  # the free ones
    scale: FloatArray  # costs of the penalised ones
    coupling: FloatArray  # H_FK, scaled
    inverse: FloatArray  # pseudo-inverse of H_FF
    inner: InnerSolver
    inner_steps: list[int] = field(default_factory=list)

    @classmethod
    def build(cls, problem: Problem, inner: str = "auto") -> BetaStep:
        """For ``H = ZᵀWZ``: one pass over the data."""
        rows, H = problem.rows, gram_if_formed(problem)
        if H is not None:
            return cls.from_matrix(problem, H, inner)
        kept, free = np.flatnonzero(problem.penalised), np.flatnonzero(problem.free)
        scale = problem.costs[kept]
        columns = _gram_columns(rows, free)
        coupling, inverse = columns[kept].T * scale, _pseudo_inverse(columns[free])
        product = partial(_reduced_product, rows, kept, scale, coupling, inverse)
        solver = make_inner_solver(inner, Quadratic(kept.size, product), problem.norm)
        return cls(problem, kept, free, scale, coupling, inverse, solver)

    @classmethod
    def from_matrix(cls, problem: Problem, H: FloatArray, inner: str = "auto") -> BetaStep:
        """For any positive semidefinite H over all coefficients."""
        kept, free = np.flatnonzero(problem.penalised), np.flatnonzero(problem.free)
        scale = problem.costs[kept]
        coupling = H[np.ix_(free, kept)] * scale
        inverse = _pseudo_inverse(H[np.ix_(free, free)])
        reduced = H[np.ix_(kept, kept)] * np.outer(scale, scale)
        if free.size:
            reduced -= coupling.T @ inverse @ coupling
            reduced = 0.5 * (reduced + reduced.T)
        solver = make_inner_solver(inner, Quadratic.from_matrix(reduced), problem.norm)
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
            solution = self.inner(c, ball, start, max(tol, ball.rounding(c)))
            theta = solution.theta
            self.inner_steps.append(solution.n_iter)
        result[self.kept] = self.scale * theta
        result[self.free] = pull - self.inverse @ (self.coupling @ theta)
        return result


def gram_if_formed(problem: Problem) -> FloatArray | None:
    """``ZᵀWZ``, or None where it is better not formed."""
    if problem.rows.n_columns > DENSE_LIMIT and problem.free.sum() <= _FREE_LIMIT:
        return None
    return np.asarray(problem.rows.run(_gram)[1][0])


def gram_product(rows: Rows, v: FloatArray) -> FloatArray:
    """``ZᵀWZ v`` by one pass over the data."""
    return np.asarray(rows.run(_product, None, v)[1][0])


def _gram(block: Block, state: BlockState) -> tuple[BlockState, tuple[Sum]]:
    return state, (Sum(block.gram(block.weights)),)


def _gram_columns(rows: Rows, columns: IndexArray) -> FloatArray:
    """The given columns of ``ZᵀWZ``, without the rest of it."""
    if columns.size == 0:
        return np.zeros((rows.n_columns, 0))
    return np.asarray(rows.run(_columns, None, columns)[1][0])


def _columns(block: Block, state: BlockState, columns: IndexArray) -> tuple[BlockState, tuple[Sum]]:
    width = block.X.shape[1] + int(block.intercept)
    picked = np.empty((block.y.size, columns.size))
    for k, j in enumerate(columns):
        unit = np.zeros(width)
        unit[j] = 1.0
        picked[:, k] = block.weights * block.margins(unit)
    return state, (Sum(block.adjoint(picked)),)


def _product(block: Block, state: BlockState, v: FloatArray) -> tuple[BlockState, tuple[Sum]]:
    return state, (Sum(block.adjoint(block.weights * block.margins(v))),)


def _reduced_product(
    rows: Rows,
    kept: IndexArray,
    scale: FloatArray,
    coupling: FloatArray,
    inverse: FloatArray,
    theta: FloatArray,
) -> FloatArray:
    """``(H_KK - H_KF H_FF⁻¹ H_FK) θ`` by one pass over the data."""
    v = np.zeros(rows.n_columns)
    v[kept] = scale * theta
    product = gram_product(rows, v)[kept]
    return np.asarray(scale * product - coupling.T @ (inverse @ (coupling @ theta)))


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
