"""The proof of a fit as a file: a NumPy archive that everybody can read.

    s, flip_share       s and a, float64, one row per fit and one column per sample
    data                SHA-256 of the samples, labels and weights of each fit ("" if not told)
    model               SHA-256 of the coefficients and intercept of each fit
    ball                SHA-256 of ε, κ, norm, costs, domains and whether there is an intercept
    digest              SHA-256 of everything else

and, with categories or bounds, the pieces of samples that are moved or flipped
(:class:`~drlogit.problem.moves.Moves`), those of all fits one after the other:

    moves               how many there are of each fit, int64
    moves_sample        whose piece it is, int64
    moves_flipped       whether its label is flipped
    moves_items         what is moved, uint8, a bit for each item
    moves_share         its share of the sample's weight, float64
    moves_s             its s, float64

The bounds are computed from these arrays alone; the digests only serve to say what is wrong when
they prove nothing.
"""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..rows.arrays import FloatArray
from .moves import Moves

#: The arrays of :class:`~drlogit.problem.moves.Moves`, by their names in a file.
MOVES = ("moves_sample", "moves_flipped", "moves_items", "moves_share", "moves_s")


@dataclass(frozen=True, eq=False)
class Proof:
    """Dual points of one fit or, for several classes, of one fit each."""

    s: FloatArray  # (n_fits, n_samples)
    flip_share: FloatArray
    data: tuple[str, ...]
    model: tuple[str, ...]
    ball: str
    moves: tuple[Moves | None, ...] = ()  # one for each fit, if there are categories or bounds

    @property
    def digest(self) -> str:
        """SHA-256 of everything else."""
        total = hashlib.sha256(repr((self.s.shape, self.data, self.model, self.ball)).encode())
        for values in (self.s, self.flip_share):
            total.update(np.ascontiguousarray(values, dtype="<f8").tobytes())
        for name, array in self._moves_arrays().items():
            plain = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
            total.update(f"{name} {array.shape}".encode() + plain.tobytes())
        return total.hexdigest()

    def _moves_arrays(self) -> dict[str, Any]:
        """The arrays of the moves, by their names in the file."""
        there = [moves for moves in self.moves if moves is not None]
        if not there:
            return {}
        columns = zip(*(moves.arrays for moves in there), strict=True)
        joined = [np.concatenate(column) for column in columns]
        counts = np.array([moves.sample.size for moves in there], dtype=np.int64)
        return {"moves": counts, **dict(zip(MOVES, joined, strict=True))}

    def to_bytes(self) -> bytes:
        """The archive; shares are mostly 0 or 1, and compressed to next to nothing."""
        buffer = io.BytesIO()
        np.savez_compressed(
            buffer,
            s=self.s,
            flip_share=self.flip_share,
            data=np.array(self.data),
            model=np.array(self.model),
            ball=np.array(self.ball),
            digest=np.array(self.digest),
            **self._moves_arrays(),
        )
        return buffer.getvalue()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the archive; if that is cut short, its digest tells."""
        Path(path).write_bytes(self.to_bytes())

    @classmethod
    def together(cls, proofs: Sequence[Proof]) -> Proof:
        """Proofs of several fits to the same samples as one."""
        return cls(
            np.concatenate([proof.s for proof in proofs]),
            np.concatenate([proof.flip_share for proof in proofs]),
            tuple(name for proof in proofs for name in proof.data),
            tuple(name for proof in proofs for name in proof.model),
            proofs[0].ball,
            tuple(moves for proof in proofs for moves in proof.moves),
        )

    def split(self, n_fits: int) -> list[Proof]:
        """A proof for each fit; as it is, for all of them, if it has another number of fits."""
        if len(self.data) != n_fits:
            return [self] * n_fits
        return [
            Proof(
                self.s[k : k + 1],
                self.flip_share[k : k + 1],
                self.data[k : k + 1],
                self.model[k : k + 1],
                self.ball,
                self.moves[k : k + 1],
            )
            for k in range(n_fits)
        ]


def model_digest(coef: FloatArray, intercept: float) -> str:
    """SHA-256 of a linear model."""
    numbers = np.append(np.asarray(coef, dtype="<f8"), intercept)
    return hashlib.sha256(numbers.astype("<f8").tobytes()).hexdigest()
