"""Matrices: svmlight text through scikit-learn, archives through NumPy and SciPy."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..rows.arrays import Matrix
from .columns import FileSamples, Header, Wanted
from .formats import opened
from .values import as_double, check_finite, tidy_labels


def parse_svmlight(text: bytes, path: Path, *, zero_based: bool) -> tuple[Matrix, Any]:
    """Features and labels of whole lines; ``ValueError`` if they are not svmlight text.

    scikit-learn is told whether columns count from 0: it would guess, differently for each part.
    """
    from sklearn.datasets import load_svmlight_file  # brings a tenth of a second of other imports

    if b"_" in text:  # 1_2 would be read as 12
        for line in text.split(b"\n"):
            if b"_" in line.partition(b"#")[0]:
                raise ValueError(f"{path} is not svmlight text: found {line[:40]!r}")
    try:
        X, labels = load_svmlight_file(io.BytesIO(text), zero_based=zero_based)
    except (ValueError, OverflowError) as error:
        if "Invalid index 0" in str(error):
            raise ValueError(
                f"{path} numbers its columns from 0: say so with --zero-based"
            ) from None
        reason = " ".join(str(error).split())
        raise ValueError(
            f"{path} is not svmlight text (label index:value index:value …): {reason:.90}"
        ) from error
    return X, labels


def read_svmlight(path: Path, wanted: Wanted) -> FileSamples:
    """Samples of a svmlight file; columns are numbered from 1 unless ``wanted.zero_based``.

    A target is not looked for: labels stand at the start of each line.
    """
    if wanted.weights is not None:
        raise ValueError(f"{path} is svmlight text, which has no column for --weights")
    first = 0 if wanted.zero_based else 1
    with opened(path) as file:
        X, labels = parse_svmlight(file.read(), path, zero_based=wanted.zero_based)
    if not X.shape[0]:
        raise ValueError(f"{path} is empty")
    # Columns that no sample uses are there all the same: their values are zero.
    chosen = [int(name) for name in (wanted.features or wanted.drop) if name.isdecimal()]
    width = max([X.shape[1], wanted.n_features or 0, *(number - first + 1 for number in chosen)])
    header = Header(None, width, str(path), first)
    check_finite(X, header.names, str(path))
    names = None
    if wanted.features is None and not wanted.drop:
        X = _fit_width(X, wanted.n_features or width, first, path)
    else:
        # The label is no column here, and Header would make the last one the target.
        roles = header.roles(Wanted(labels=False, features=wanted.features, drop=wanted.drop))
        X = _widened(X, width)[:, roles.features]
        names = header.feature_names(roles, wanted)
    y = tidy_labels(labels, str(path)) if wanted.labels else None
    return FileSamples(sp.csr_matrix(X), y, None, names, None, str(path), first)


def _fit_width(X: Matrix, width: int, first: int, path: Path) -> Matrix:
    """The same samples with so many columns: files end at the last column that is not empty."""
    if X.shape[1] <= width:
        return _widened(X, width)
    beyond = X[:, width:].tocoo()
    used = np.flatnonzero(beyond.data)
    if used.size:
        row, column = int(beyond.row[used[0]]), int(beyond.col[used[0]])
        raise ValueError(
            f"{path}: row {row + 1} uses feature {first + width + column}, but the model has only "
            f"{width} features; fit it with --n-features {X.shape[1]} or more"
        )
    return X[:, :width]


def _widened(X: Matrix, width: int) -> Matrix:
    return sp.csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], width))


def read_npz(path: Path, wanted: Wanted) -> FileSamples:
    """Samples of an NPZ archive; target and weights are names of arrays in it.

    Either dense, with arrays ``X`` and ``y``, or a sparse matrix as ``scipy.sparse.save_npz``
    writes it, with an array ``y`` added or the labels in a file of their own.  An array
    ``feature_names`` is used if there is one.
    """
    target = wanted.target or "y"
    labels = weights = names = None
    with _Archive(path) as archive:
        X = archive.matrix()
        if "feature_names" in archive.names:
            names = [str(name) for name in archive.read("feature_names", "names").ravel()]
        if wanted.labels:
            labels = tidy_labels(archive.read(target, "--target"), f"{path} ({target})")
        if wanted.weights is not None:
            weights = as_double(archive.numbers(wanted.weights, "--weights"))
    if names is not None and len(names) != X.shape[1]:
        raise ValueError(f"{path}: {len(names)} feature_names for {X.shape[1]} columns of X")
    if labels is not None and labels.size != X.shape[0]:
        raise ValueError(f"{path}: {labels.size} labels in {target!r:.60} for {X.shape[0]} rows")
    header = Header(names, X.shape[1], str(path))
    # Labels and weights are arrays of their own, so every column is a feature.
    roles = header.roles(Wanted(labels=False, features=wanted.features, drop=wanted.drop))
    check_finite(X, header.names, str(path))
    every = roles.features == list(range(X.shape[1]))
    chosen = header.feature_names(roles, wanted)
    X = X if every else X[:, roles.features]
    return FileSamples(X, labels, weights, chosen, target, str(path))


class _Archive:
    """The arrays of an NPZ archive; pickled objects, which could run code, are refused."""

    def __init__(self, path: Path) -> None:
        self._path = path
        if not zipfile.is_zipfile(path):
            raise ValueError(f"{path} is damaged or no NPZ archive")
        self._file = np.load(path, allow_pickle=False)
        self.names: list[str] = self._file.files

    def __enter__(self) -> _Archive:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def read(self, name: str, purpose: str) -> Any:
        """One array; ``ValueError`` if there is none."""
        if name not in self.names:
            listed = ", ".join(sorted(self.names)[:8]) or "none"
            raise ValueError(
                f"{self._path} has no array {name!r:.60} ({purpose}); its arrays: {listed:.300}"
                + ("; labels can come from a file of their own: --labels" if name == "y" else "")
            )
        try:
            array = self._file[name]
        except (ValueError, OSError, zipfile.BadZipFile) as error:
            found = "it holds pickled Python objects, which could run code and are never read"
            reason = found if "allow_pickle" in str(error) else f"it is damaged: {error!s:.100}"
            raise ValueError(f"{self._path} ({name!r:.60}) is not read: {reason}") from None
        return np.char.decode(array, "utf-8") if array.dtype.kind == "S" else array

    def numbers(self, name: str, purpose: str) -> Any:
        """An array of numbers."""
        array = self.read(name, purpose)
        if array.dtype.kind not in "biuf":
            raise ValueError(f"{self._path}: {name} must hold numbers, got {array.dtype!s:.60}")
        return array

    def matrix(self) -> Matrix:
        """The features: ``X``, or what ``scipy.sparse.save_npz`` wrote."""
        if "X" in self.names:
            X: Any = self.numbers("X", "features")
        elif {"format", "shape", "data"} <= set(self.names):
            try:
                X = sp.csr_matrix(sp.load_npz(self._path))
                X.check_format()
            except (ValueError, TypeError, IndexError, KeyError, AttributeError) as error:
                raise ValueError(
                    f"{self._path} is not a sound SciPy sparse matrix: {error!s:.120}"
                ) from error
            X.sum_duplicates()
        else:
            self.read("X", "features")
        if X.ndim != 2 or not X.shape[0]:
            raise ValueError(
                f"{self._path}: X must be 2-D and not empty, got shape {X.shape!s:.60}"
            )
        if X.dtype in (np.float32, np.float64):
            return X
        return X.astype(np.float64) if sp.issparse(X) else as_double(X)
