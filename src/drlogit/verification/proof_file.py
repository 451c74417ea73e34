"""Reading proofs: nothing in the file is trusted, and no file can do harm."""

from __future__ import annotations

import errno
import math
import os
import zipfile
import zlib
from typing import Any

import numpy as np

from ..problem.moves import Moves
from ..problem.proof import MOVES, Proof

#: Type and dimensions of the arrays: shares, names, counts of moves, and the moves.
_SHARES, _TEXT, _COUNTS = ("<f8", 2), ("U", 1), ("<i8", 1)
_MOVES = (("<i8", 1), ("|b1", 1), ("|u1", 2), ("<f8", 1), ("<f8", 1))

#: What NumPy writes, and what unpacks to no more than a thousand times its size.
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


class BrokenProofError(ValueError):
    """A file that is no proof, or no longer the one that was written."""


def read_proof(path: str | os.PathLike[str]) -> Proof:
    """Read what :meth:`drlogit.Result.save_proof` wrote; refuse what is not that."""
    try:
        with zipfile.ZipFile(path) as archive:
            s, flip_share = (_read(archive, name, *_SHARES) for name in ("s", "flip_share"))
            data, model = (_names(archive, name, 1) for name in ("data", "model"))
            (ball,), (digest,) = (_names(archive, name, 0) for name in ("ball", "digest"))
            moves = _moves(archive, len(s))
    except (ValueError, KeyError, IndexError, EOFError, NotImplementedError, RuntimeError,
            OSError, zipfile.BadZipFile, zlib.error) as error:  # fmt: skip
        if isinstance(error, OSError) and error.errno != errno.EINVAL:  # a place that cannot be
            raise
        found = " ".join(str(error).split())
        raise BrokenProofError(f"the proof cannot be read: {path}: {found:.160}") from None
    proof = Proof(s, flip_share, data, model, ball, moves)
    if s.shape != flip_share.shape or len(data) != len(s) or len(model) != len(s):
        raise BrokenProofError(f"{path} is no proof: its arrays do not belong together")
    if proof.digest != digest:
        raise BrokenProofError(f"{path} was changed after it was written: its digest is another")
    return proof


def _read(archive: zipfile.ZipFile, name: str, kind: str, n_dimensions: int) -> Any:
    """An array of a known type, if what its header claims is there: NumPy would allocate it."""
    member = archive.getinfo(f"{name}.npy")
    if member.compress_type not in _METHODS:
        raise ValueError(f"{name} is compressed by a method that NumPy does not write")
    with archive.open(member) as file:
        version = np.lib.format.read_magic(file)
        header = getattr(np.lib.format, f"read_array_header_{version[0]}_{version[1]}")
        shape, _, dtype = header(file)
        claimed = math.prod(shape) * dtype.itemsize
        if claimed != member.file_size - file.tell() or min((0, *shape)) < 0:
            raise ValueError(f"{name} is damaged: its header does not agree with its size")
        if kind not in (dtype.str, dtype.kind) or len(shape) != n_dimensions:
            raise ValueError(
                f"{name} must be {n_dimensions}-D of {kind}, got {len(shape)}-D of {dtype!s:.20}"
            )
    with archive.open(member) as file:
        array = np.lib.format.read_array(file, allow_pickle=False)
        file.read(1)  # at the end, where the checksum is compared
    return array


def _names(archive: zipfile.ZipFile, name: str, n_dimensions: int) -> tuple[str, ...]:
    return tuple(str(value) for value in _read(archive, name, "U", n_dimensions).ravel())


def _moves(archive: zipfile.ZipFile, n_fits: int) -> tuple[Moves | None, ...]:
    """The moves of each fit, if there are any."""
    if "moves.npy" not in archive.namelist():
        return (None,) * n_fits
    counts = _read(archive, "moves", *_COUNTS)
    arrays = [_read(archive, name, *kind) for name, kind in zip(MOVES, _MOVES, strict=True)]
    ends = np.cumsum(counts)
    if counts.size != n_fits or (counts < 0).any() or any(len(a) != ends[-1] for a in arrays):
        raise ValueError("its arrays of moves do not belong together")
    return tuple(
        Moves(*(array[end - count : end] for array in arrays))
        for end, count in zip(ends.tolist(), counts.tolist(), strict=True)
    )
