"""What the solvers of the inner problem (C) are given: a quadratic, a ball; what they return."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh, eigvalsh

from ..problem.norms import Norm
from ..rows.arrays import FloatArray

#: Rounding of the gap of (C), relative to ``r‖c‖``.  H and c are sums over N samples, so that they
#: agree on the null space of H to a few thousand units in the last place.
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Quadratic:
    """``½ θᵀHθ``: a matrix, or only its product with vectors if it is too large to keep."""

    size: int
    product: Callable[[FloatArray], FloatArray]
    matrix: FloatArray | None = None

    @classmethod
    def from_matrix(cls, matrix: FloatArray) -> Quadratic:
        return cls(matrix.shape[0], matrix.__matmul__, matrix)

    @cached_property
    def largest_eigenvalue(self) -> float:
        """An upper bound on ``λ_max(H)``, tight to a percent."""
        if self.size == 0:
            return 1.0
        if self.matrix is not None:
            last = self.size - 1
            top = float(eigvalsh(self.matrix, subset_by_index=[last, last])[0])
        else:
            top = self._power_iteration()
        return max(top * 1.0001, np.finfo(float).tiny)

    def _power_iteration(self, max_iter: int = 100) -> float:
        v = np.random.default_rng(0).standard_normal(self.size)
        value = 0.0
        for _ in range(max_iter):
            v /= np.linalg.norm(v)
            v, previous, value = self.product(v), value, 0.0
            value = float(np.linalg.norm(v))
            if value == 0.0 or abs(value - previous) <= 1e-3 * value:
                break
        return 1.01 * value

    @cached_property
    def row_sums(self) -> FloatArray:
        """``Σ_k |H_jk|``: the diagonal matrix of these is at least H."""
        sums = np.abs(self.dense).sum(axis=1)
        return np.where(sums > 0.0, sums, 1.0)

    @cached_property
    def eigen(self) -> tuple[FloatArray, FloatArray]:
        """Eigenvalues, negative rounding removed, and eigenvectors of H."""
        values, vectors = eigh(self.dense)
        return np.maximum(values, 0.0), vectors

    @property
    def dense(self) -> FloatArray:
        if self.matrix is None:
            raise ValueError(
                f"this inner solver needs the {self.size}×{self.size} matrix H, which was not"
                " formed: use 'active-set-cg' (norm 'l1') or 'projected-gradient'"
            )
        return self.matrix


class NormBall(NamedTuple):
    """The set ``‖θ‖_* ≤ radius``."""

    norm: Norm
    radius: float

    def project(self, theta: FloatArray) -> FloatArray:
        return self.norm.project_dual(theta, self.radius)

    def gap(self, gradient: FloatArray, theta: FloatArray) -> float:
        """Gap of (C), ``min ½θᵀHθ - cᵀθ`` over the ball: ``⟨g, θ⟩ + r‖g‖`` for ``g = Hθ - c``."""
        return float(gradient @ theta) + self.radius * self.norm.value(gradient)

    def rounding(self, c: FloatArray) -> float:
        """The gap below which rounding decides: nothing is gained by asking for less."""
        return _ROUNDING * self.radius * self.norm.value(c)


class Inner(NamedTuple):
    """A solution of (C), its gap, and the steps it took."""

    theta: FloatArray
    gap: float
    n_iter: int
