"""The proof of a fit as a file: a NumPy archive that any program can read.

    s, flip_share       s and a, float64, one for each sample

and, with categories or bounds, the pieces of samples that are moved or flipped
(:class:`~drlogit.problem.dual_point.Moves`):

    moves_sample        the sample of the piece, int64
    moves_flipped       whether its label is flipped
    moves_items         the moved items, uint8, a bit for each item
    moves_share         the piece's share of the sample's weight, float64
    moves_s             s of the piece, float64

With several classes (:class:`~drlogit.problem.dual_point.ClassDualPoint`) there are instead

    probabilities       p, float64, a row for each sample
    labels              a, likewise
    codes               the labels as positions among the classes, int64
    flow                the flow between classes, a row for each pair; none under ℓ1

The bounds follow from these arrays, the samples and the ball.
"""

from __future__ import annotations

import errno
import io
import math
import os
import zipfile
from typing import Any

import numpy as np

from ..rows.arrays import in_memory
from ..rows.whole_files import write_bytes
from .dual_point import ClassDualPoint, DualPoint, Moves

#: Type and dimensions of the arrays of each kind of proof, in the order of the points' attributes.
_PAIR = {"s": ("<f8", 1), "flip_share": ("<f8", 1)}
_MOVES = {
    "moves_sample": ("<i8", 1),
    "moves_flipped": ("|b1", 1),
    "moves_items": ("|u1", 2),
    "moves_share": ("<f8", 1),
    "moves_s": ("<f8", 1),
}
_CLASSES = {
    "probabilities": ("<f8", 2),
    "labels": ("<f8", 2),
    "codes": ("<i8", 1),
    "flow": ("<f8", 2),
}

#: The largest average number of pieces per sample that is accepted; fits have one to six.
_PIECES = 16


class BrokenProofError(ValueError):
    """The file is not a proof, was changed after it was written, or proves nothing."""


def save_proof(path: str | os.PathLike[str], point: DualPoint | ClassDualPoint) -> None:
    """Write a proof, completely or not at all; the archive's checksums reveal later changes."""
    if isinstance(point, ClassDualPoint):
        flow = np.zeros((0, 0)) if point.flow is None else point.flow
        codes = np.asarray(point.codes, dtype=np.int64)
        values: tuple[Any, ...] = (point.probabilities, point.labels, codes, flow)
        arrays = dict(zip(_CLASSES, values, strict=True))
    else:
        arrays = {"s": in_memory(point.s), "flip_share": in_memory(point.flip_share)}
    if isinstance(point, DualPoint) and point.moves is not None:
        arrays["flip_share"] = np.zeros_like(arrays["s"])  # flips are among the moves
        arrays |= dict(zip(_MOVES, point.moves.arrays, strict=True))
    contents = io.BytesIO()
    np.savez_compressed(contents, **arrays)
    write_bytes(path, contents.getvalue())


def read_proof(
    path: str | os.PathLike[str],
    n_samples: int | None = None,
    n_features: int = 0,
    n_classes: int = 1,
) -> DualPoint | ClassDualPoint:
    """Read a file of :func:`save_proof`; nothing in the file is trusted.

    If the numbers of samples, features and classes are given, an archive that is too large for them
    is refused before any of it is decompressed.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(member.file_size for member in archive.infolist())
            if n_samples is not None and size > _largest(n_samples, n_features, n_classes):
                raise ValueError(f"its arrays would take {size} bytes, too many for these data")
            names = archive.namelist()
            kinds = _PAIR | (_MOVES if "moves_s.npy" in names else {})
            kinds = _CLASSES if "probabilities.npy" in names else kinds
            arrays = {name: _array(archive, name, *kinds[name]) for name in kinds}
    except Exception as error:  # whatever is wrong with it
        if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
            raise  # a place that cannot be read
        found = " ".join(str(error).split())
        raise BrokenProofError(f"the proof cannot be read: {path}: {found:.160}") from None
    if "probabilities" in arrays:
        p, a, codes, flow = arrays.values()
        return ClassDualPoint(p, a, codes, flow if flow.size else None)
    s, a = (arrays.pop(name) for name in _PAIR)
    if s.shape != a.shape or len({len(array) for array in arrays.values()}) > 1:
        raise BrokenProofError(f"{path} is not a proof: its arrays differ in length")
    moves = Moves(*arrays.values()) if arrays else None
    return DualPoint(s, a, moves)


def _largest(n_samples: int, n_features: int, n_classes: int) -> int:
    """An upper bound on the bytes of a proof for data of this size."""
    n_pieces = _PIECES * n_samples + 100_000
    of_classes = 16 * n_samples * (n_classes + 1) + 4 * n_classes**2 * n_features
    return n_pieces * (26 + 3 * n_features // 8) + of_classes


def _array(archive: zipfile.ZipFile, name: str, kind: str, n_dimensions: int) -> Any:
    """An array of the archive; it is read only if its header is valid and fits its size."""
    member = archive.getinfo(f"{name}.npy")
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError(f"{name} must be deflated, got compression {member.compress_type}")
    with archive.open(member) as file:
        if np.lib.format.read_magic(file) != (1, 0):  # whose headers are short
            raise ValueError(f"{name} must have version 1.0 of the format of arrays")
        shape, _, dtype = np.lib.format.read_array_header_1_0(file)
        if kind not in (dtype.str, dtype.kind) or len(shape) != n_dimensions:
            raise ValueError(
                f"{name} must be {n_dimensions}-D of {kind}, got {len(shape)}-D of {dtype!s:.20}"
            )
        size = member.file_size - file.tell()
        if min((0, *shape)) < 0 or size != dtype.itemsize * math.prod(shape):
            raise ValueError(f"{name} must hold what its header says, {shape!s:.60}")
    with archive.open(member) as file:
        return np.lib.format.read_array(file, allow_pickle=False)
