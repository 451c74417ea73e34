"""NPZ archives of NumPy arrays; pickled objects, which could run code, are refused.

Either dense, with arrays ``X`` and ``y``, or a sparse matrix as ``scipy.sparse.save_npz`` writes
it, with an array ``y`` added or the labels in a file of their own.  An array ``feature_names`` is
used if there is one.
"""

from __future__ import annotations

import errno
import struct
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ...rows.arrays import Matrix
from ..columns import (
    FileSamples,
    Header,
    Wanted,
    as_double,
    check_finite,
    check_text,
    take_columns,
    tidy_labels,
)
from ..limits import check_claim, check_memory
from .array import read_array

#: What NumPy writes.  The other methods that zip archives know have no bound on what they unpack.
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)

_SPARSE = {"format", "shape", "data"}

#: The arrays that hold the positions of the entries, by the format of a sparse matrix.
_POSITIONS = {
    "csr": ("indices", "indptr"),
    "csc": ("indices", "indptr"),
    "bsr": ("indices", "indptr"),
    "coo": ("row", "col"),
    "dia": ("offsets",),
}


def read_npz(path: Path, wanted: Wanted) -> FileSamples:
    """Samples of an NPZ archive; target and weights are names of arrays in it."""
    target = wanted.target or "y"
    with open_archive(path) as archive:
        X = _matrix(archive)
        names = _names(archive)
        label_array = archive.read(target, "--target") if wanted.labels else None
        weights = None
        if wanted.weights is not None:
            weights = as_double(_numbers(archive, wanted.weights, "--weights"))
    if names is not None and len(names) != X.shape[1]:
        raise ValueError(f"{path}: {len(names)} feature_names for {X.shape[1]} columns of X")
    header = Header(names, X.shape[1], str(path))
    # Labels and weights are arrays of their own, so every column is a feature.
    roles = header.roles(Wanted(labels=False, features=wanted.features, drop=wanted.drop))
    check_finite(X, header.names, str(path))
    labels = None
    if label_array is not None:
        labels = tidy_labels(label_array, f"{path} ({target})")
        if labels.size != X.shape[0]:
            raise ValueError(
                f"{path}: {labels.size} labels in {target!r:.60} for {X.shape[0]} rows"
            )
    return FileSamples(
        X=take_columns(X, roles.features),
        labels=labels,
        weights=weights,
        feature_names=header.feature_names(roles, wanted),
        target=target,
        source=str(path),
    )


class Archive:
    """The arrays of an NPZ archive, read one by one as they are wanted."""

    def __init__(self, archive: zipfile.ZipFile, path: Path) -> None:
        self._archive, self.path = archive, path
        members = archive.infolist()
        names = [member.filename.removesuffix(".npy") for member in members]
        repeated = [name for name, times in Counter(names).items() if times > 1]
        if repeated:
            raise ValueError(f"{path} has two arrays named {repeated[0]!r:.60}")
        self._members = dict(zip(names, members, strict=True))
        self._taken = 0

    def __contains__(self, name: str) -> bool:
        return name in self._members

    def holds(self, names: Iterable[str]) -> bool:
        return all(name in self._members for name in names)

    def listed(self) -> str:
        """Names of the arrays, for people."""
        names = sorted(self._members)
        plain = [name if name.isidentifier() else repr(name) for name in names[:8]]
        more = ", …" if len(names) > 8 else ""
        return ", ".join(name[:60] for name in plain) + more or "none"

    def read(self, name: str, purpose: str) -> NDArray[Any]:
        """One array, as long as there is room for it beside those already read."""
        if name not in self._members:
            raise ValueError(
                f"{self.path} has no array {name!r:.60} ({purpose}); its arrays: {self.listed()}"
                + ("; labels can come from a file of their own: --labels" if name == "y" else "")
            )
        member = self._members[name]
        source = f"{self.path} ({name[:60]!r})"
        if member.compress_type not in _METHODS:
            raise ValueError(f"{source} is compressed by a method that NumPy does not write")
        self._taken += member.file_size
        check_memory(self._taken, f"{self.path}, as far as it is wanted,")
        with _damage_named(self.path):
            file = self._archive.open(member)
        with file:
            return read_array(file, member.file_size, source)


@contextmanager
def open_archive(path: Path) -> Iterator[Archive]:
    """Open an archive for reading its arrays one by one."""
    with open(path, "rb") as file:
        if file.read(2) != b"PK":
            raise ValueError(f"{path} is damaged or no NPZ archive")
        file.seek(0)
        with _damage_named(path):
            archive = zipfile.ZipFile(file)
        with archive:
            yield Archive(archive, path)


@contextmanager
def _damage_named(path: Path) -> Iterator[None]:
    """Turns every way in which the directory of an archive can be wrong into a ``ValueError``."""
    try:
        yield
    except (zipfile.BadZipFile, zlib.error, struct.error, EOFError, NotImplementedError,
            RuntimeError, IndexError, OverflowError, ValueError) as error:  # fmt: skip
        found = " ".join(str(error).split())
        raise ValueError(f"{path} is damaged or no NPZ archive: {found:.120}") from error
    except OSError as error:
        if error.errno != errno.EINVAL:  # of a place before the start of the file
            raise
        raise ValueError(f"{path} is damaged or no NPZ archive") from error


def _names(archive: Archive) -> list[str] | None:
    if "feature_names" not in archive:
        return None
    names = archive.read("feature_names", "names of the features")
    if names.dtype.kind == "S":
        names = np.char.decode(names, "utf-8")
    if names.dtype.kind == "U":
        check_text(names, f"{archive.path}: feature_names")
    return [str(name) for name in names.ravel().tolist()]


def _numbers(archive: Archive, name: str, purpose: str, kinds: str = "biuf") -> NDArray[Any]:
    array = archive.read(name, purpose)
    if array.dtype.kind not in kinds:
        wanted = "numbers" if "f" in kinds else "whole numbers"
        raise ValueError(f"{archive.path}: {name} must hold {wanted}, got {array.dtype!s:.60}")
    return array


def _matrix(archive: Archive) -> Matrix:
    path = archive.path
    if "X" in archive:
        X = archive.read("X", "features")
        if X.ndim != 2 or X.dtype.kind not in "biuf":
            raise ValueError(
                f"{path}: X must be a 2-D array of numbers, got shape {X.shape!s:.60} of "
                f"{X.dtype!s:.60}"
            )
        matrix: Matrix = X if X.dtype in (np.float32, np.float64) else as_double(X)
    elif archive.holds(_SPARSE):
        matrix = _sparse(archive)
    else:
        raise ValueError(
            f"{path} has no array 'X' (and is no SciPy sparse matrix); its arrays: "
            f"{archive.listed()}"
        )
    if not matrix.shape[0]:
        raise ValueError(f"{path} has no samples: X has shape {matrix.shape}")
    return matrix


def _sparse(archive: Archive) -> Matrix:
    """What ``scipy.sparse.load_npz`` does, which would not have the labels beside it."""
    path = archive.path
    form = archive.read("format", "of a sparse matrix").ravel()[:1].astype(str).tolist()
    shape = _numbers(archive, "shape", "of a sparse matrix", "iu").ravel().tolist()
    if not form or form[0] not in _POSITIONS:
        raise ValueError(
            f"{path} is not a sound SciPy sparse matrix: its format {form!r:.60} is not known"
        )
    if len(shape) != 2:
        raise ValueError(f"{path}: shape must be two numbers, got {shape!r:.60}")
    check_claim(shape[0], shape[1], str(path))
    data = _numbers(archive, "data", "of a sparse matrix")
    at = [_numbers(archive, name, "of a sparse matrix", "iu") for name in _POSITIONS[form[0]]]
    make = getattr(sp, f"{form[0]}_array")
    try:
        if form[0] == "coo":
            matrix = make((data, tuple(at)), shape=shape)
        else:
            matrix = make((data, *at), shape=shape)
        if form[0] in ("csr", "csc", "bsr"):
            matrix.check_format()
        csr = sp.csr_matrix(matrix)
    except (IndexError, TypeError, ValueError, ZeroDivisionError, OverflowError) as error:
        found = " ".join(str(error).split())
        raise ValueError(f"{path} is not a sound SciPy sparse matrix: {found:.120}") from error
    if csr.dtype not in (np.float32, np.float64):
        csr = sp.csr_matrix((as_double(csr.data), csr.indices, csr.indptr), shape=csr.shape)
    csr.sum_duplicates()
    return csr
