"""Reading proofs: nothing in the file is trusted, and no file can do harm."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from ..files.npy.archive import Archive, open_archive
from ..problem.moves import Moves
from ..problem.proof import MOVES, Proof


class BrokenProofError(ValueError):
    """A file that is no proof, or no longer the one that was written."""


def read_proof(path: str | os.PathLike[str]) -> Proof:
    """Read what :meth:`drlogit.Result.save_proof` wrote; refuse what is not that."""
    try:
        with open_archive(Path(path)) as archive:
            s, flip_share = (_table(archive, name) for name in ("s", "flip_share"))
            data, model = (_names(archive, name) for name in ("data", "model"))
            (ball,), (digest,) = (_names(archive, name) for name in ("ball", "digest"))
            moves = _moves(archive, len(s))
    except ValueError as error:
        raise BrokenProofError(f"the proof cannot be read: {error}") from None
    proof = Proof(s, flip_share, data, model, ball, moves)
    if s.shape != flip_share.shape or len(data) != len(s) or len(model) != len(s):
        raise BrokenProofError(f"{path} is no proof: its arrays do not belong together")
    if proof.digest != digest:
        raise BrokenProofError(f"{path} was changed after it was written: its digest is another")
    return proof


#: Type and dimensions of the arrays of moves.
_KINDS = (("<i8", 1), ("|b1", 1), ("|u1", 2), ("<f8", 1), ("<f8", 1))


def _moves(archive: Archive, n_fits: int) -> tuple[Moves | None, ...]:
    """The moves of each fit, if there are any."""
    if "moves" not in archive:
        return (None,) * n_fits
    counts, *arrays = (archive.read(name, "of a proof") for name in ("moves", *MOVES))
    for array, (kind, n_dimensions) in zip((counts, *arrays), (_KINDS[0], *_KINDS), strict=True):
        if array.dtype.str != kind or array.ndim != n_dimensions:
            raise ValueError(
                f"{archive.path}: moves must be {n_dimensions}-D of {kind}, got {array.ndim}-D of "
                f"{array.dtype!s:.20}"
            )
    ends = np.cumsum(counts)
    if counts.size != n_fits or (counts < 0).any() or any(len(a) != ends[-1] for a in arrays):
        raise ValueError(f"{archive.path}: its arrays of moves do not belong together")
    return tuple(
        Moves(*(array[end - count : end] for array in arrays))
        for end, count in zip(ends.tolist(), counts.tolist(), strict=True)
    )


def _table(archive: Archive, name: str) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    found = archive.read(name, "of a proof")
    if found.dtype != np.float64 or found.ndim != 2:
        raise ValueError(
            f"{archive.path}: {name} must be a 2-D array of doubles, got {found.ndim}-D "
            f"of {found.dtype!s:.20}"
        )
    return np.asarray(found)


def _names(archive: Archive, name: str) -> tuple[str, ...]:
    found = archive.read(name, "of a proof")
    if found.dtype.kind != "U" or found.ndim > 1 or not found.size:
        raise ValueError(f"{archive.path}: {name} must hold text, got {found.dtype!s:.20}")
    if found.ndim == 0 or name not in ("ball", "digest"):
        return tuple(str(value) for value in found.ravel())
    raise ValueError(f"{archive.path}: {name} must be one text, got {found.size}")
