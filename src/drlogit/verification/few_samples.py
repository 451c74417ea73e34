"""Equations of free columns levelled by few samples, where weights differ by many orders.

The matrix M of :mod:`drlogit.verification.free_columns` weighs samples by ``D_i``. If these differ
by twenty orders, no inverse of M can be verified in doubles, however independent the columns are.
But as many samples as there are columns can take up what is left, and their matrix has no weights:

*Lemma.* Let B be as many samples as independent columns, ``Σ_B η_i z_iF = ρ`` and ``|η_i| ≤ r_i
D_i`` with ``r_i ≤ 1/2`` and ``D_i = ω_i s_i (1-s_i)``. Then ``s'_i = s_i - s_i (1-s_i) η_i/D_i``
for i in B, and ``s' = s`` elsewhere, lies in [0, 1] and satisfies the equations exactly; ``Σ ω
H(s')`` is smaller than ``Σ ω H(s)`` by at most ``Σ_B ω_i r_i/2``; and ``Σ ω |s - s'| = Σ_B |η_i|``.

*Proof.* ``Σ_B ω_i (s_i - s'_i) z_iF = Σ_B η_i z_iF = ρ``. What is lost is as there, r in the place
of T. ∎

Again a sample may be several pieces, which then all change by the same ``η_i/D_i``, and doubts may
be scaled: nothing in this depends on how large they are.

Bounds on η come from a verified inverse of the samples' rows, likewise.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import qr

from ..rows.arrays import FloatArray, IndexArray
from .free_columns import ACCURACY, defect_of_inverse
from .rounding import TINY, UP, powers_above

#: Entries of columns up to which all of them are factored at once, in a second or two.
MOST_ENTRIES = 1 << 20


@dataclass(frozen=True, eq=False)
class Few:
    """Samples B, the columns that they level, and a verified inverse of their rows."""

    samples: IndexArray
    columns: IndexArray
    inverse: FloatArray  # of the columns (down) of the samples (across), both scaled
    doubt: float
    column_powers: FloatArray
    sample_powers: FloatArray

    @classmethod
    def of(
        cls, Z: FloatArray, curvature: FloatArray, samples: IndexArray, columns: IndexArray
    ) -> Few | None:
        """The choice among samples with these rows and curvatures; None without a proof."""
        sizes = powers_above(np.abs(Z).max(axis=0, initial=0.0))
        scaled = Z / sizes
        _, _, order = qr((np.sqrt(curvature)[:, None] * scaled).T, mode="economic", pivoting=True)
        chosen = order[: columns.size]
        matrix = scaled[chosen].T
        lengths = powers_above(np.abs(matrix).max(axis=0, initial=0.0))
        matrix = matrix / lengths
        try:
            inverse: FloatArray = np.linalg.inv(matrix).astype(np.float64)
        except np.linalg.LinAlgError:
            return None
        doubt = defect_of_inverse(inverse, matrix, np.full_like(matrix, TINY))
        if not doubt <= ACCURACY:
            return None
        return cls(samples[chosen], columns, inverse, doubt, sizes, lengths)

    def bounds(self, residual: FloatArray) -> FloatArray:
        """Bounds on ``|η|`` for residuals of at most these sizes."""
        first = np.abs(self.inverse) @ (residual[self.columns] / self.column_powers)
        excess = self.doubt / (1.0 - self.doubt) * float(np.max(first, initial=0.0))
        return np.asarray((first + excess) / self.sample_powers * UP)

    def along(self, residual: FloatArray, curvature: FloatArray) -> FloatArray:
        """About ``η_i/D_i``, zero for samples that do not change."""
        scaled = self.inverse @ (residual[self.columns] / self.column_powers)
        found = np.zeros(curvature.size)
        at = curvature[self.samples]
        np.divide(scaled / self.sample_powers, at, out=at, where=at > 0.0)
        found[self.samples] = np.clip(at, -1.0, 1.0)
        return found
