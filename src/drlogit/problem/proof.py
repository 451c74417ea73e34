"""The proof of a fit as a file: a NumPy archive that everybody can read.

    doubt, flip_share   s and a, float64, one row per fit and one column per sample
    data                SHA-256 of the samples, labels and weights of each fit ("" if not told)
    model               SHA-256 of the coefficients and intercept of each fit
    ball                SHA-256 of ε, κ, norm, costs and whether there is an intercept
    digest              SHA-256 of all of the above

The bounds are computed from ``doubt`` and ``flip_share`` alone; the digests only serve to say what
is wrong when they prove nothing.
"""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..rows.arrays import FloatArray


@dataclass(frozen=True, eq=False)
class Proof:
    """Dual points of one fit or, for several classes, of one fit each."""

    doubt: FloatArray  # (n_fits, n_samples)
    flip_share: FloatArray
    data: tuple[str, ...]
    model: tuple[str, ...]
    ball: str

    @property
    def digest(self) -> str:
        """SHA-256 of everything else."""
        total = hashlib.sha256(repr((self.doubt.shape, self.data, self.model, self.ball)).encode())
        for values in (self.doubt, self.flip_share):
            total.update(np.ascontiguousarray(values, dtype="<f8").tobytes())
        return total.hexdigest()

    def to_bytes(self) -> bytes:
        """The archive; shares are mostly 0 or 1, and compressed to next to nothing."""
        buffer = io.BytesIO()
        np.savez_compressed(
            buffer,
            doubt=self.doubt,
            flip_share=self.flip_share,
            data=np.array(self.data),
            model=np.array(self.model),
            ball=np.array(self.ball),
            digest=np.array(self.digest),
        )
        return buffer.getvalue()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the archive; if that is cut short, its digest tells."""
        Path(path).write_bytes(self.to_bytes())

    @classmethod
    def together(cls, proofs: Sequence[Proof]) -> Proof:
        """Proofs of several fits to the same samples as one."""
        return cls(
            np.concatenate([proof.doubt for proof in proofs]),
            np.concatenate([proof.flip_share for proof in proofs]),
            tuple(name for proof in proofs for name in proof.data),
            tuple(name for proof in proofs for name in proof.model),
            proofs[0].ball,
        )

    def split(self, n_fits: int) -> list[Proof]:
        """A proof for each fit; as it is, for all of them, if it has another number of fits."""
        if len(self.data) != n_fits:
            return [self] * n_fits
        return [
            Proof(
                self.doubt[k : k + 1],
                self.flip_share[k : k + 1],
                self.data[k : k + 1],
                self.model[k : k + 1],
                self.ball,
            )
            for k in range(n_fits)
        ]


def model_digest(coef: FloatArray, intercept: float) -> str:
    """SHA-256 of a linear model."""
    numbers = np.append(np.asarray(coef, dtype="<f8"), intercept)
    return hashlib.sha256(numbers.astype("<f8").tobytes()).hexdigest()
