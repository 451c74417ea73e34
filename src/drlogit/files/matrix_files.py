"""Matrices: svmlight text through scikit-learn, archives through NumPy and SciPy."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..rows.arrays import Matrix
from .columns import FileSamples, Header, Wanted
from .formats import opened
from .values import check_finite, tidy_labels


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
        found = " ".join(str(error).split())
        if "Invalid index 0" in found:
            raise ValueError(
                f"{path} numbers its columns from 0: say so with --zero-based"
            ) from None
        raise ValueError(
            f"{path} is not svmlight text (label index:value index:value …): {found:.90}"
        ) from error
    return X, labels


def read_svmlight(path: Path, wanted: Wanted) -> FileSamples:
    """Samples of a svmlight file; columns are numbered from 1 unless ``wanted.zero_based``.

    A target is not looked for: labels stand at the start of each line.
    """
    for name, option in ((wanted.weights, "--weights"), (wanted.kappa, "--kappa-column")):
        if name is not None:
            raise ValueError(f"{path} is svmlight text, which has no column for {option}")
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
    X.resize(X.shape[0], width)
    names = None
    if wanted.features is not None or wanted.drop:
        # The label is no column here, and Header would make the last one the target.
        roles = header.roles(Wanted(labels=False, features=wanted.features, drop=wanted.drop))
        X, names = X[:, roles.features], header.feature_names(roles, wanted)
    elif wanted.n_features is not None:
        X = _cut(X, wanted.n_features, first, path)
    y = tidy_labels(labels, str(path)) if wanted.labels else None
    return FileSamples(sp.csr_matrix(X), y, None, names, None, str(path), first)


def _cut(X: Matrix, width: int, first: int, path: Path) -> Matrix:
    """The same samples with so many columns, if the others are empty."""
    beyond = X[:, width:].tocoo()
    beyond.eliminate_zeros()
    if beyond.nnz:
        row, column = int(beyond.row[0]), int(beyond.col[0])
        raise ValueError(
            f"{path}: row {row + 1} uses feature {first + width + column}, but the model has only "
            f"{width} features; fit it with --n-features {X.shape[1]} or more"
        )
    return X[:, :width]


def read_npz(path: Path, wanted: Wanted) -> FileSamples:
    """Samples of an NPZ archive; target and weights are names of arrays in it.

    Either dense, with arrays ``X`` and ``y``, or a sparse matrix as ``scipy.sparse.save_npz``
    writes it, with an array ``y`` added or the labels in a file of their own.  An array
    ``feature_names`` is used if there is one.  Pickled objects, which could run code, are refused.
    """
    target, names, labels, weights, kappa = wanted.target or "y", None, None, None, None
    with np.load(path, allow_pickle=False) as archive:

        def read(name: str, purpose: str) -> Any:
            if name not in archive.files:
                listed = ", ".join(sorted(archive.files)[:8]) or "none"
                beside = "; labels can come from a file of their own: --labels" * (name == "y")
                raise ValueError(
                    f"{path} has no array {name!r:.60} ({purpose}); its arrays: {listed:.300}"
                    + beside
                )
            return archive[name]

        if {"format", "shape", "data"} <= set(archive.files):
            X = sp.csr_matrix(sp.load_npz(path))
            X.check_format()
            X.sum_duplicates()
        else:
            X = read("X", "features")
        if X.ndim != 2 or not X.shape[0] or X.dtype.kind not in "biuf":
            raise ValueError(
                f"{path}: X must hold numbers, 2-D and not empty, got {X.dtype!s:.60} of shape "
                f"{X.shape!s:.60}"
            )
        if X.dtype != np.float32:
            X = X.astype(np.float64)
        if "feature_names" in archive.files:
            names = [str(name) for name in archive["feature_names"].ravel()]
        if wanted.labels:
            labels = tidy_labels(read(target, "--target"), f"{path} ({target})")
        if wanted.weights is not None:
            weights = read(wanted.weights, "--weights").astype(np.float64)
        if wanted.kappa is not None:
            kappa = read(wanted.kappa, "--kappa-column").astype(np.float64)
    if names is not None and len(names) != X.shape[1]:
        raise ValueError(f"{path}: {len(names)} feature_names for {X.shape[1]} columns of X")
    if labels is not None and labels.size != X.shape[0]:
        raise ValueError(f"{path}: {labels.size} labels in {target!r:.60} for {X.shape[0]} rows")
    header = Header(names, X.shape[1], str(path))
    # Labels and weights are arrays of their own, so every column is a feature.
    roles = header.roles(Wanted(labels=False, features=wanted.features, drop=wanted.drop))
    check_finite(X, header.names, str(path))
    if roles.features != list(range(X.shape[1])):
        X = X[:, roles.features]
    chosen = header.feature_names(roles, wanted)
    return FileSamples(X, labels, weights, chosen, target, str(path), kappa=kappa)
