"""The Newton system where an n×n matrix is too large, or larger than need be: conjugate gradients.

Solves the equations of ``_newton`` with ``K = C + Zᵀ diag(d) Z`` known only through products.  λ is
eliminated by its Schur complement.  The preconditioner is the diagonal ``T`` of the cone's part
(for large N plus the diagonal of ``Zᵀ diag(d) Z``), completed, for one block of at most
``FACTOR_LIMIT`` samples, by the identity of Woodbury:

    (T + BᵀB)⁻¹ = T⁻¹ - T⁻¹Bᵀ (I + B T⁻¹ Bᵀ)⁻¹ B T⁻¹,        B = diag(√d) Z.

With one block that is the exact inverse, up to the small numbers that stand in for T on
free columns, and a few steps suffice; the matrix that is factored is N×N and never less
than the identity.  Everything of size N stays with its block.

Derivation: docs/algorithm.md, (19b).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from ..rows.arrays import FloatArray
from ..rows.blocks import Block
from ..rows.interface import Rows, State
from ..rows.reductions import Sum

#: Coefficients beyond which no n×n matrix is formed, and from which an N×N one is preferred.
DENSE_LIMIT = 4000
_OUTER_LIMIT = 300

#: Samples up to which a block factors its N×N matrix, of 2 GB then.
FACTOR_LIMIT = 16_384

#: Steps of conjugate gradients and their goal.  With a factored block few are needed, and more
#: than a few mean that rounding, not the preconditioner, sets the accuracy.
_RTOL = 1e-8
_MAX_STEPS = 1000
_MAX_STEPS_FACTORED = 20


def is_wide(rows: Rows) -> bool:
    """Whether the Newton system is to be solved without forming it."""
    outer = rows.n_columns > _OUTER_LIMIT and 2 * rows.n_samples < rows.n_columns
    return rows.n_columns > DENSE_LIMIT or outer


class WideSystem:
    """The system behind products; ``weights`` gives d per block for a state of the samples."""

    def __init__(self, rows: Rows, scale: FloatArray) -> None:
        self.rows, self.scale = rows, scale[:-1]
        # Blocks that are factored apart give corrections whose sum is too large: the preconditioner
        # is positive definite with one block only.
        self.factored = rows.largest_block == rows.n_samples <= FACTOR_LIMIT
        self.weights: State | None = None

    def build(self, weights: State, data: FloatArray, cone: FloatArray, pinned: bool) -> bool:
        """Set up from d per block and arrays in scaled coordinates, λ last.

        ``data`` has the diagonal of ``Zᵀ diag(d) Z`` and λ's column, ``cone`` the diagonal of the
        cone's part, the v of its ``v vᵀ``, and λ's column.  ``pinned``: λ stays.
        """
        own, self.rank_one = cone[0, :-1], cone[1, :-1]
        coupling = (data[1] + cone[2]) * (not pinned)
        self.own, self.coupling, self.corner = own, coupling[:-1], float(coupling[-1])
        data = data[0, :-1]
        # The cone adds nothing to free columns; a small share of the data's diagonal replaces it.
        base = own + (1e-9 * data if self.factored else data)
        self.inverse = np.where(base > 0.0, 1.0 / np.where(base > 0.0, base, 1.0), 0.0)
        scale = self.scale * np.sqrt(self.inverse) if self.factored else None
        self.weights = self.rows.run(_factor, weights, scale)[0]
        self.coupling_solved = np.zeros(own.size)
        if self.coupling.any():
            self.coupling_solved = self._solved(self.coupling)
        return bool(np.isfinite(self.coupling_solved).all())

    def solve(self, rhs: FloatArray, _: float) -> FloatArray:
        """(dx, dλ) for a right-hand side."""
        y = self._solved(np.array(rhs[:-1]))
        schur = self.corner - float(self.coupling @ self.coupling_solved)
        schur = max(schur, 1e-14 * abs(self.corner)) or 1.0
        dlam = (rhs[-1] - float(self.coupling @ y)) / schur
        return np.append(y - dlam * self.coupling_solved, dlam)

    def data_product(self, v: FloatArray) -> FloatArray:
        """``Zᵀ diag(d) Z v``, in scaled coordinates."""
        _, (data,) = self.rows.run(_weighted_product, self.weights, self.scale * v)
        return np.asarray(self.scale * data)

    def _product(self, v: FloatArray) -> FloatArray:
        rank = float(self.rank_one @ v)
        return self.data_product(v) + self.own * v + rank * self.rank_one

    def _precondition(self, r: FloatArray) -> FloatArray:
        first = self.inverse * r
        if not self.factored:
            return first
        _, (correction,) = self.rows.run(_woodbury, self.weights, self.scale * first)
        return np.asarray(first - self.inverse * self.scale * correction)

    def _solved(self, rhs: FloatArray) -> FloatArray:
        return conjugate_gradients(
            self._product, self._precondition, rhs, rtol=_RTOL,
            max_steps=_MAX_STEPS_FACTORED if self.factored else _MAX_STEPS,
        )  # fmt: skip


def _weighted_product(
    block: Block, weights: tuple[FloatArray, Any], v: FloatArray
) -> tuple[Any, tuple[Sum]]:
    """``Zᵀ diag(d) Z v``."""
    return weights, (Sum(block.adjoint(weights[0] * block.margins(v))),)


def _factor(
    block: Block, d: FloatArray, column_scale: FloatArray | None
) -> tuple[tuple[FloatArray, Any], tuple[()]]:
    """Cholesky factor of ``I + B T⁻¹ Bᵀ``, with ``column_scale = scale · T^{-1/2}``; or none."""
    if column_scale is None:
        return (d, None), ()
    matrix = block.outer_gram(np.sqrt(d), column_scale)
    matrix[np.diag_indices_from(matrix)] += 1.0
    # The transpose has the upper triangle as its lower one, in the order of LAPACK.
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


def conjugate_gradients(
    product: Callable[[FloatArray], FloatArray],
    precondition: Callable[[FloatArray], FloatArray],
    right: FloatArray,
    *,
    rtol: float,
    max_steps: int,
) -> FloatArray:
    """``x`` with ``A x ≈ right``: ``product`` is ``v ↦ A v``, ``precondition`` is ``r ↦ M⁻¹ r``.

    SciPy's ``cg`` ends at a residual of ``rtol ‖b‖``.  Here columns differ in scale by many orders
    of magnitude and a system may be singular, so the residual is measured in the norm of the
    preconditioner, ``√(rᵀ M⁻¹ r)``, which does not depend on scales, and the method ends at a
    direction without curvature instead of dividing by it.
    """
    x = np.zeros_like(right)
    r = right.copy()
    z = precondition(r)
    if rtol >= 1.0:
        return z
    direction = z
    rho = first = float(r @ z)
    for _ in range(max_steps):
        if not rho > rtol**2 * first:
            break
        image = product(direction)
        curvature = float(direction @ image)
        if not curvature > 0.0:
            break
        alpha = rho / curvature
        x += alpha * direction
        r -= alpha * image
        z = precondition(r)
        rho, previous = float(r @ z), rho
        direction = z + (rho / previous) * direction
    return x
