"""The linear system of one interior-point step, after all N-sized unknowns are eliminated.

    [ G + C    k ] [dx]   [r_x]        G = Zᵀ diag(d) Z      (samples)
    [  kᵀ      q ] [dλ] = [r_λ]        C, and parts of k, q   (norm cone)

with ``k = -κ Zᵀω + …`` and ``q = κ² Σω + …``, ω being the curvature of the smoothed hinge.  The
matrix is scaled to unit diagonal, shifted by a hair so that duplicated or empty columns
factor, and every solution is refined against the unshifted matrix.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.linalg import LinAlgError
from scipy.linalg.lapack import dpotrf, dpotrs

from ..losses import FloatArray
from ..matrix import IndexArray
from .norm_cone import Curvature
from .scaled import Scaled

#: First shift of the unit diagonal; it grows a hundredfold until the matrix factors.
_SHIFT = 1e-14
_LARGEST_SHIFT = 1e-4
_REFINEMENTS = 1

# LAPACK is called directly: on small problems SciPy's checks cost more than the work.


@dataclass(frozen=True, eq=False)
class ReducedSystem:
    """Factored reduced system; :meth:`solve` answers for any right-hand side.

    Columns without a non-zero are left out: their coefficients stay where they are.
    """

    active: IndexArray
    matrix: FloatArray
    scale: FloatArray
    factor: FloatArray

    @classmethod
    def build(
        cls,
        scaled: Scaled,
        gram: FloatArray,
        hinge_adjoint: FloatArray,
        hinge_total: float,
        cone: Curvature | None,
        fixed_lam: bool = False,
    ) -> ReducedSystem:
        """Assemble and factor.  ``gram`` and ``hinge_adjoint`` are in the user's coordinates.

        ``cone`` is None when there is neither constraint nor λ (ε = 0); with ``fixed_lam`` λ stays.
        """
        active, p = scaled.active, scaled.active.size
        whole = p == gram.shape[0]
        scale = scaled.scale[active]
        matrix = np.zeros((p + 1, p + 1))
        np.multiply(gram if whole else gram[np.ix_(active, active)], scale, out=matrix[:p, :p])
        matrix[:p, :p] *= scale[:, None]
        matrix[p, p] = 1.0
        if cone is not None:
            kappa = scaled.kappa
            places = np.searchsorted(active, scaled.kept)
            coupling = -kappa * scale * hinge_adjoint[active]
            coupling[places] += cone.coupling
            corner = kappa**2 * hinge_total + cone.corner
            matrix[places, places] += cone.diagonal
            if cone.weight:
                rank_one = np.zeros(p)
                rank_one[places] = cone.column
                matrix[:p, :p] += np.outer(cone.weight * rank_one, rank_one)
                coupling += cone.weight * rank_one
                corner += cone.weight
            if not fixed_lam:
                matrix[:p, p] = matrix[p, :p] = coupling
                matrix[p, p] = corner
        return cls._factor(active, matrix)

    @classmethod
    def _factor(cls, active: IndexArray, matrix: FloatArray) -> ReducedSystem:
        diagonal = np.diagonal(matrix)
        scale = 1.0 / np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
        matrix *= scale
        matrix *= scale[:, None]
        shift = _SHIFT
        while shift <= _LARGEST_SHIFT:
            shifted = matrix.copy(order="F")
            np.fill_diagonal(shifted, 1.0 + shift)
            factor, failed = dpotrf(shifted, lower=1, clean=0, overwrite_a=1)
            if not failed:
                return cls(active, matrix, scale, factor)
            shift *= 100.0
        raise LinAlgError("the reduced matrix is not positive definite")

    def solve(self, rhs_x: FloatArray, rhs_lam: float) -> tuple[FloatArray, float]:
        """``(dx, dλ)`` for a right-hand side."""
        rhs = self.scale * np.append(rhs_x[self.active], rhs_lam)
        solution, _ = dpotrs(self.factor, rhs, lower=1)
        for _ in range(_REFINEMENTS):
            correction, _ = dpotrs(self.factor, rhs - self.matrix @ solution, lower=1)
            solution += correction
        solution *= self.scale
        dx = np.zeros_like(rhs_x)
        dx[self.active] = solution[:-1]
        return dx, float(solution[-1])
