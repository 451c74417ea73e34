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
    """``½ θᵀHθ``, and what solvers want to know of H once."""

    matrix: FloatArray

    @property
    def size(self) -> int:
        return len(self.matrix)

    @property
    def product(self) -> Callable[[FloatArray], FloatArray]:
        return self.matrix.__matmul__

    @cached_property
    def largest_eigenvalue(self) -> float:
        """An upper bound on ``λ_max(H)``, tight to a percent."""
        if self.size == 0:
            return 1.0
        last = self.size - 1
        top = float(eigvalsh(self.matrix, subset_by_index=[last, last])[0])
        return max(top * 1.0001, np.finfo(float).tiny)

    @cached_property
    def row_sums(self) -> FloatArray:
        """``Σ_k |H_jk|``: the diagonal matrix of these is at least H."""
        sums = np.abs(self.matrix).sum(axis=1)
        return np.where(sums > 0.0, sums, 1.0)

    @cached_property
    def eigen(self) -> tuple[FloatArray, FloatArray]:
        """Eigenvalues, negative rounding removed, and eigenvectors of H."""
        values, vectors = eigh(self.matrix)
        return np.maximum(values, 0.0), vectors


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
