"""The linear system of one interior-point step, after all N-sized unknowns are eliminated.

    [ G + C    k ] [dx]   [r_x]        G = Zᵀ diag(d) Z      (samples)
    [  kᵀ      q ] [dλ] = [r_λ]        C, and parts of k, q   (norm cone)

with ``k = -κ Zᵀω + …`` and ``q = κ² Σω + …``, ω being the curvature of the smoothed hinge.  The
matrix is scaled to unit diagonal, shifted by a hair so that duplicated or empty columns
factor, and solutions are refined against the unshifted matrix.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.linalg import LinAlgError
from scipy.linalg.blas import dsymv
from scipy.linalg.lapack import dpotrs

from ...problem.shifted_cholesky import shifted_cholesky, unit_scale
from ...rows.arrays import FloatArray, IndexArray
from .norm_cone import Curvature
from .scaled import Scaled

#: Shifts of the unit diagonal, until the matrix factors.
_SHIFTS = (1e-14, 1e-12, 1e-10, 1e-8, 1e-6, 1e-4)
#: Share of columns with non-zeros up to which they are picked out of the matrix.
_MOST = 0.9


@dataclass(frozen=True, eq=False)
class ReducedSystem:
    """Factored reduced system; :meth:`solve` answers for any right-hand side.

    Coefficients of columns without a non-zero stay where they are.
    """

    active: IndexArray
    matrix: FloatArray  # the lower triangle, in the order LAPACK wants
    scale: FloatArray
    factor: FloatArray
    refine: bool

    @classmethod
    def build(
        cls,
        scaled: Scaled,
        gram: FloatArray,
        hinge_adjoint: FloatArray,
        hinge_total: float,
        cone: Curvature | None,
        fixed_lam: bool = False,
        *,
        refine: bool = True,
    ) -> ReducedSystem:
        """Assemble and factor.  ``gram`` and ``hinge_adjoint`` are in the user's coordinates.

        Of ``gram`` only the upper triangle is read.  ``cone`` is None when there is neither
        constraint nor λ (ε = 0); with ``fixed_lam`` λ stays.  ``refine`` says whether solutions
        are to be as exact as the matrix is.
        """
        # Empty columns do no harm; picking the others pays if they are much fewer.
        whole = scaled.active.size >= _MOST * gram.shape[0]
        active = np.arange(gram.shape[0]) if whole else scaled.active
        p = active.size
        scale = scaled.scale[active]
        diagonal = np.append(scale**2 * np.diagonal(gram)[active], 1.0)
        coupling, rank_one, weight = np.zeros(p), np.zeros(p), 0.0
        if cone is not None:
            places = np.searchsorted(active, scaled.kept)
            diagonal[places] += cone.diagonal
            rank_one[places], weight = cone.column, cone.weight
            if not fixed_lam:
                coupling = -scaled.kappa * scale * hinge_adjoint[active] + weight * rank_one
                coupling[places] += cone.coupling
                diagonal[p] = scaled.kappa**2 * hinge_total + cone.corner + weight
            diagonal[:p] += weight * np.square(rank_one)
        # Scaled to unit diagonal in the same stroke.
        unit = unit_scale(diagonal)
        both = scale * unit[:p]
        matrix = np.zeros((p + 1, p + 1))
        body = matrix[:p, :p]
        np.multiply(gram if whole else gram[np.ix_(active, active)], both, out=body)
        body *= both[:, None]
        if weight:
            rank_one *= unit[:p]
            body += np.outer(weight * rank_one, rank_one)
        matrix[:p, p] = coupling * unit[:p] * unit[p]
        np.fill_diagonal(matrix, diagonal * unit**2)
        return cls._factor(active, matrix.T, unit, refine)

    @classmethod
    def _factor(
        cls, active: IndexArray, matrix: FloatArray, scale: FloatArray, refine: bool
    ) -> ReducedSystem:
        factor = shifted_cholesky(matrix, _SHIFTS)
        if factor is None:
            raise LinAlgError("the reduced matrix is not positive definite")
        return cls(active, matrix, scale, factor, refine)

    def solve(self, rhs_x: FloatArray, rhs_lam: float) -> tuple[FloatArray, float]:
        """``(dx, dλ)`` for a right-hand side."""
        rhs = self.scale * np.append(rhs_x[self.active], rhs_lam)
        solution, _ = dpotrs(self.factor, rhs, lower=1)
        if self.refine:
            correction, _ = dpotrs(
                self.factor, rhs - dsymv(1.0, self.matrix, solution, lower=1), lower=1
            )
            solution += correction
        solution *= self.scale
        dx = np.zeros_like(rhs_x)
        dx[self.active] = solution[:-1]
        return dx, float(solution[-1])
