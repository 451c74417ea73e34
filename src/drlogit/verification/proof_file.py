"""Reading proofs: nothing in the file is trusted, and no file can do harm."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from ..files.npy.archive import Archive, open_archive
from ..problem.proof import Proof


class BrokenProofError(ValueError):
    """A file that is no proof, or no longer the one that was written."""


def read_proof(path: str | os.PathLike[str]) -> Proof:
    """Read what :meth:`drlogit.Result.save_proof` wrote; refuse what is not that."""
    try:
        with open_archive(Path(path)) as archive:
            doubt, flip_share = (_table(archive, name) for name in ("doubt", "flip_share"))
            data, model = (_names(archive, name) for name in ("data", "model"))
            (ball,), (digest,) = (_names(archive, name) for name in ("ball", "digest"))
    except ValueError as error:
        raise BrokenProofError(f"the proof cannot be read: {error}") from None
    proof = Proof(doubt, flip_share, data, model, ball)
    if doubt.shape != flip_share.shape or len(data) != len(doubt) or len(model) != len(doubt):
        raise BrokenProofError(f"{path} is no proof: its arrays do not belong together")
    if proof.digest != digest:
        raise BrokenProofError(f"{path} was changed after it was written: its digest is another")
    return proof


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
