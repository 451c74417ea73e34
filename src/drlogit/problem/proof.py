"""The proof of a fit as a file: a NumPy archive that everybody can read.

    s, flip_share       s and a, float64, one for each sample
    data                SHA-256 of the samples, labels and weights ("" if not told)

and, with categories or bounds, the pieces of samples that are moved or flipped
(:class:`~drlogit.problem.dual_point.Moves`):

    moves_sample        whose piece it is, int64
    moves_flipped       whether its label is flipped
    moves_items         what is moved, uint8, a bit for each item
    moves_share         its share of the sample's weight, float64
    moves_s             its s, float64

With several classes (:class:`~drlogit.problem.dual_point.ClassDualPoint`) there are instead

    probabilities       p, float64, a row for each sample
    labels              a, likewise
    codes               the labels as positions among the classes, int64
    flow                what is carried between classes, a row for each pair; none under ℓ1

The bounds are computed from these arrays alone; the digest only serves to say what is wrong when
they prove nothing.
"""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..rows.chunks import in_memory
from .dual_point import ClassDualPoint, DualPoint, Moves

#: Type and dimensions of the arrays of each kind of proof, in the order of the points' attributes.
_DATA = {"data": ("U", 0)}
_PAIR = {"s": ("<f8", 1), "flip_share": ("<f8", 1)}
_MOVES = {
    "moves_sample": ("<i8", 1), "moves_flipped": ("|b1", 1), "moves_items": ("|u1", 2),
    "moves_share": ("<f8", 1), "moves_s": ("<f8", 1),
}  # fmt: skip
_CLASSES = {
    "probabilities": ("<f8", 2), "labels": ("<f8", 2), "codes": ("<i8", 1), "flow": ("<f8", 2),
}  # fmt: skip


class BrokenProofError(ValueError):
    """A file that is no proof, or no longer the one that was written; or a proof of nothing."""


@dataclass(frozen=True, eq=False)
class Proof:
    """A dual point, and the digest of the samples that it is about, if it tells."""

    point: DualPoint | ClassDualPoint
    data: str = ""


def save_proof(path: str | os.PathLike[str], proof: Proof) -> None:
    """Write a proof; if that is cut short or changed, the archive's checksums tell."""
    point = proof.point
    if isinstance(point, ClassDualPoint):
        flow = np.zeros((0, 0)) if point.flow is None else point.flow
        codes = np.asarray(point.codes, dtype=np.int64)
        values: tuple[Any, ...] = (point.probabilities, point.labels, codes, flow)
        arrays = dict(zip(_CLASSES, values, strict=True))
    else:
        arrays = {"s": in_memory(point.s), "flip_share": in_memory(point.flip_share)}
    arrays |= {"data": np.array(proof.data)}
    if isinstance(point, DualPoint) and point.moves is not None:
        arrays["flip_share"] = np.zeros_like(arrays["s"])  # flips are among the moves
        arrays |= dict(zip(_MOVES, point.moves.arrays, strict=True))
    with open(path, "wb") as file:  # of a path, ``savez`` would change the name
        np.savez_compressed(file, **arrays)


def read_proof(path: str | os.PathLike[str]) -> Proof:
    """Read what :func:`save_proof` wrote; nothing in the file is trusted."""
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
            kinds = _PAIR | _DATA | (_MOVES if "moves_s" in archive else {})
            kinds = _CLASSES | _DATA if "probabilities" in archive else kinds
            arrays = {name: _checked(archive[name], name, *kinds[name]) for name in kinds}
    except Exception as error:  # whatever is wrong with it
        if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
            raise  # a place that cannot be read
        found = " ".join(str(error).split())
        raise BrokenProofError(f"the proof cannot be read: {path}: {found:.160}") from None
    data = str(arrays.pop("data"))
    if "probabilities" in arrays:
        p, a, codes, flow = arrays.values()
        return Proof(ClassDualPoint(p, a, codes, flow if flow.size else None), data)
    s, a = (arrays.pop(name) for name in _PAIR)
    if s.shape != a.shape or len({len(array) for array in arrays.values()}) > 1:
        raise BrokenProofError(f"{path} is no proof: its arrays do not belong together")
    moves = Moves(*arrays.values()) if arrays else None
    return Proof(DualPoint(s, a, moves), data)


def _checked(array: Any, name: str, kind: str, n_dimensions: int) -> Any:
    if kind not in (array.dtype.str, array.dtype.kind) or array.ndim != n_dimensions:
        raise ValueError(
            f"{name} must be {n_dimensions}-D of {kind}, got {array.ndim}-D of {array.dtype!s:.20}"
        )
    return array
