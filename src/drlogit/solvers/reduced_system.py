"""The linear system of one interior-point step, after all N-sized unknowns are eliminated.

    [ G + C    k ] [dx]   [r_x]        G = Zᵀ diag(d) Z      (samples)
    [  kᵀ      q ] [dλ] = [r_λ]        C, and parts of k, q   (norm cone)

with ``k = -κ Zᵀω + …`` and ``q = κ² Σω + …``, ω being the curvature of the smoothed hinge.  The
matrix is scaled to unit diagonal, shifted by a hair so that duplicated or empty columns
factor, and every solution is refined twice against the unshifted matrix.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from ..losses import FloatArray
from .norm_cone import Curvature
from .scaled import Scaled

#: First shift of the unit diagonal; it grows a hundredfold until the matrix factors.
_SHIFT = 1e-14
_LARGEST_SHIFT = 1e-4
_REFINEMENTS = 2


@dataclass(frozen=True, eq=False)
class ReducedSystem:
    """Factored reduced system; :meth:`solve` answers for any right-hand side."""

    matrix: FloatArray
    scale: FloatArray
    factor: Any

    @classmethod
    def build(
        cls,
        scaled: Scaled,
        gram: FloatArray,
        hinge_adjoint: FloatArray,
        hinge_total: float,
        cone: Curvature | None,
    ) -> ReducedSystem:
        """Assemble and factor.  ``gram`` and ``hinge_adjoint`` are in the user's coordinates.

        ``cone`` is None when there is neither constraint nor λ (ε = 0).
        """
        p = gram.shape[0]
        matrix = np.zeros((p + 1, p + 1))
        matrix[:p, :p] = gram * np.outer(scaled.scale, scaled.scale)
        matrix[p, p] = 1.0
        if cone is not None:
            kept, kappa = scaled.kept, scaled.kappa
            coupling = -kappa * scaled.scaled(hinge_adjoint)
            coupling[kept] += cone.coupling
            corner = kappa**2 * hinge_total + cone.corner
            matrix[kept, kept] += cone.diagonal
            if cone.weight:
                matrix[np.ix_(kept, kept)] += cone.weight * np.outer(cone.column, cone.column)
                coupling[kept] += cone.weight * cone.column
                corner += cone.weight
            matrix[:p, p] = matrix[p, :p] = coupling
            matrix[p, p] = corner
        return cls._factor(matrix)

    @classmethod
    def _factor(cls, matrix: FloatArray) -> ReducedSystem:
        diagonal = np.diagonal(matrix)
        scale = 1.0 / np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
        matrix = matrix * np.outer(scale, scale)
        shift = _SHIFT
        while True:
            shifted = matrix.copy()
            # Also for empty columns, which have a zero there and nothing beside it.
            np.fill_diagonal(shifted, 1.0 + shift)
            try:
                factor = cho_factor(shifted, lower=True, overwrite_a=True, check_finite=False)
            except LinAlgError:
                shift *= 100.0
                if shift > _LARGEST_SHIFT:
                    raise
                continue
            return cls(matrix, scale, factor)

    def solve(self, rhs_x: FloatArray, rhs_lam: float) -> tuple[FloatArray, float]:
        """``(dx, dλ)`` for a right-hand side."""
        rhs = self.scale * np.append(rhs_x, rhs_lam)
        solution = cho_solve(self.factor, rhs, check_finite=False)
        for _ in range(_REFINEMENTS):
            residual = rhs - self.matrix @ solution
            solution += cho_solve(self.factor, residual, check_finite=False)
        solution *= self.scale
        return solution[:-1], float(solution[-1])
