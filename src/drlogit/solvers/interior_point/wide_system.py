"""The reduced system when n is too large for an n×n matrix: conjugate gradients.

Solves the same equations as ``reduced_system``, with ``K = C + Zᵀ diag(d) Z`` known only through
products.  λ is eliminated by its Schur complement.  The preconditioner is the diagonal ``T`` of the
cone's part (for large N plus the diagonal of ``Zᵀ diag(d) Z``), completed, for blocks of at most
``FACTOR_LIMIT`` samples, by the identity of Woodbury:

    (T + BᵀB)⁻¹ = T⁻¹ - T⁻¹Bᵀ (I + B T⁻¹ Bᵀ)⁻¹ B T⁻¹,        B = diag(√d) Z.

With one such block that is the exact inverse, up to the small numbers that stand in for T on
free columns, and a few steps suffice; the matrix that is factored is N×N and never less
than the identity.  Everything of size N stays with its block.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from ...problem.conjugate_gradients import conjugate_gradients
from ...rows.arrays import FloatArray
from ...rows.blocks import Block
from ...rows.interface import Rows, State
from ...rows.reductions import Sum
from .norm_cone import Curvature
from .reduced_system import ReducedSystem
from .scaled import Scaled

#: Coefficients beyond which no n×n matrix is formed.
DENSE_LIMIT = 4000

#: Samples up to which a block factors its N×N matrix, of 2 GB then.
FACTOR_LIMIT = 16_384

#: Steps of conjugate gradients and their goal.  With a factored block few are needed, and more
#: than a few mean that rounding, not the preconditioner, sets the accuracy.
_RTOL = 1e-8
_MAX_STEPS = 1000
_MAX_STEPS_FACTORED = 20


def wide(rows: Rows) -> bool:
    """Whether the reduced system is to be solved without forming it."""
    return rows.n_columns > DENSE_LIMIT


@dataclass(frozen=True, eq=False)
class WideSystem:
    """Reduced system behind products; :meth:`solve` answers for any right-hand side."""

    scaled: Scaled
    weights: State  # per block: d, or d with its factor
    diagonal: FloatArray
    inverse: FloatArray  # diagonal of the preconditioner
    rank_one: FloatArray
    rank_weight: float
    coupling: FloatArray
    corner: float
    coupling_solved: FloatArray
    max_steps: int

    @classmethod
    def build(
        cls,
        scaled: Scaled,
        weights: State,
        gram_diagonal: FloatArray,
        hinge_adjoint: FloatArray,
        hinge_total: float,
        cone: Curvature | None,
        fixed_lam: bool = False,
    ) -> WideSystem:
        """Set up; ``weights`` holds d per block, ``gram_diagonal`` is ``Σ d_i z_ij²``."""
        rows, kept = scaled.problem.rows, scaled.kept
        p = scaled.scale.size
        own = np.zeros(p)
        rank_one, coupling, corner, rank_weight = np.zeros(p), np.zeros(p), 1.0, 0.0
        if cone is not None:
            own[kept] = cone.diagonal
            rank_one[kept], rank_weight = cone.column, cone.weight
            if not fixed_lam:
                coupling = -scaled.kappa * scaled.scaled(hinge_adjoint)
                coupling[kept] += cone.coupling + cone.weight * cone.column
                corner = scaled.kappa**2 * hinge_total + cone.corner + cone.weight
        data = scaled.scale**2 * gram_diagonal
        factored = rows.largest_block <= FACTOR_LIMIT
        # Free columns have no diagonal of their own: a small share of the data's stands in.
        base = own + (1e-9 * data if factored else data)
        inverse = np.where(base > 0.0, 1.0 / np.where(base > 0.0, base, 1.0), 0.0)
        if factored:
            weights, _ = rows.run(_factor, weights, scaled.scale * np.sqrt(inverse))
        system = cls(
            scaled, weights, own, inverse, rank_one, rank_weight, coupling, corner,
            coupling_solved=np.zeros(p),
            max_steps=_MAX_STEPS_FACTORED if factored else _MAX_STEPS,
        )  # fmt: skip
        if not coupling.any():
            return system
        return replace(system, coupling_solved=system._solved(coupling))

    def solve(self, rhs_x: FloatArray, rhs_lam: float) -> tuple[FloatArray, float]:
        """``(dx, dλ)`` for a right-hand side."""
        y = self._solved(rhs_x)
        schur = self.corner - float(self.coupling @ self.coupling_solved)
        dlam = (rhs_lam - float(self.coupling @ y)) / max(schur, 1e-14 * abs(self.corner))
        return y - dlam * self.coupling_solved, dlam

    def _product(self, v: FloatArray) -> FloatArray:
        rows, scaled = self.scaled.problem.rows, self.scaled
        _, (data,) = rows.run(_weighted_product, self.weights, scaled.coefficients(v))
        rank = self.rank_weight * float(self.rank_one @ v)
        return np.asarray(scaled.scaled(data) + self.diagonal * v + rank * self.rank_one)

    def _precondition(self, r: FloatArray) -> FloatArray:
        rows, scaled = self.scaled.problem.rows, self.scaled
        first = self.inverse * r
        _, (correction,) = rows.run(_woodbury, self.weights, scaled.coefficients(first))
        return np.asarray(first - self.inverse * scaled.scaled(correction))

    def _solved(self, rhs: FloatArray) -> FloatArray:
        return conjugate_gradients(
            self._product, self._precondition, rhs, rtol=_RTOL, max_steps=self.max_steps
        )


System: TypeAlias = ReducedSystem | WideSystem


def reduced_system(
    scaled: Scaled,
    gram: FloatArray,
    weights: Callable[[], State],
    *rest: Any,
    refine: bool = True,
) -> System:
    """The system in the form that suits its size; ``rest`` is what both builders take.

    ``gram`` is the Gram matrix or, when that is too large, its diagonal, and ``weights`` gives
    (d, None) per block.
    """
    if wide(scaled.problem.rows):
        return WideSystem.build(scaled, weights(), gram, *rest)
    return ReducedSystem.build(scaled, gram, *rest, refine=refine)


def _weighted_product(
    block: Block, weights: tuple[FloatArray, Any], v: FloatArray
) -> tuple[Any, tuple[Sum]]:
    """``Zᵀ diag(d) Z v``."""
    return weights, (Sum(block.adjoint(weights[0] * block.margins(v))),)


def _factor(
    block: Block, weights: tuple[FloatArray, Any], column_scale: FloatArray
) -> tuple[tuple[FloatArray, Any], tuple[()]]:
    """Cholesky factor of ``I + B T⁻¹ Bᵀ``, with ``column_scale = scale · T^{-1/2}``."""
    d = weights[0]
    matrix = block.outer_gram(np.sqrt(d), column_scale)
    matrix[np.diag_indices_from(matrix)] += 1.0
    # The transpose has the upper triangle as its lower one, in the order LAPACK wants.
    factor, failed = dpotrf(matrix.T, lower=1, clean=0, overwrite_a=1)
    return (d, None if failed else factor), ()


def _woodbury(
    block: Block, weights: tuple[FloatArray, Any], v: FloatArray
) -> tuple[Any, tuple[Sum]]:
    """``Zᵀ√d (I + B T⁻¹ Bᵀ)⁻¹ √d Z v``; zero where nothing was factored."""
    d, factor = weights
    if factor is None:
        return weights, (Sum(np.zeros(block.n_columns)),)
    root = np.sqrt(d)
    solved, _ = dpotrs(factor, root * block.margins(v), lower=1)
    return weights, (Sum(block.adjoint(root * solved)),)
