"""NPZ archives of NumPy arrays; pickled objects, which could run code, are refused.

Either dense, with arrays ``X`` and ``y``, or a sparse matrix as ``scipy.sparse.save_npz`` writes
it, with an array ``y`` added or the labels in a file of their own.  An array ``feature_names`` is
used if there is one.
"""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..matrix import Matrix
from .columns import Header, Samples, Wanted, check_finite, take_columns, tidy_labels

_SPARSE = {"format", "shape", "data"}


def read_npz(path: Path, wanted: Wanted) -> Samples:
    """Samples of an NPZ archive; target and weights are names of arrays in it."""
    arrays = _load(path)
    X = _matrix(arrays, path)
    listed = arrays.get("feature_names")
    names = None if listed is None else [str(name) for name in listed.ravel().tolist()]
    if names is not None and len(names) != X.shape[1]:
        raise ValueError(f"{path}: {len(names)} feature_names for {X.shape[1]} columns of X")
    header = Header(names, X.shape[1], str(path))
    # Labels and weights are arrays of their own, so every column is a feature.
    roles = header.roles(Wanted(labels=False, features=wanted.features, drop=wanted.drop))
    check_finite(X, header.names, str(path))
    target = wanted.target or "y"
    labels = None
    if wanted.labels:
        labels = tidy_labels(_member(arrays, target, path, "--target"), f"{path} ({target})")
        if labels.size != X.shape[0]:
            raise ValueError(f"{path}: {labels.size} labels in {target!r} for {X.shape[0]} rows")
    weights = None
    if wanted.weights is not None:
        weights = np.asarray(_member(arrays, wanted.weights, path, "--weights"), dtype=np.float64)
    return Samples(
        X=take_columns(X, roles.features),
        labels=labels,
        weights=weights,
        feature_names=header.feature_names(roles, wanted),
        target=target,
        source=str(path),
    )


def _load(path: Path) -> dict[str, Any]:
    try:
        with open(path, "rb") as file:
            if file.read(2) != b"PK":  # NumPy would take it for a pickle
                raise ValueError(f"{path} is damaged or no NPZ archive")
            file.seek(0)
            with np.load(file, allow_pickle=False) as archive:
                return {name: archive[name] for name in archive.files}
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise ValueError(f"{path} is damaged or no NPZ archive: {error}") from error
    except ValueError as error:
        if "pickle" in str(error):
            raise ValueError(
                f"{path} holds pickled Python objects, which could run code and are never read; "
                "save numbers and text as arrays of their own type"
            ) from error
        raise


def _matrix(arrays: dict[str, Any], path: Path) -> Matrix:
    if "X" in arrays:
        X = arrays["X"]
        if X.ndim != 2 or X.dtype.kind not in "biuf":
            raise ValueError(
                f"{path}: X must be a 2-D array of numbers, got shape {X.shape} of {X.dtype}"
            )
        matrix: Matrix = X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
    elif arrays.keys() >= _SPARSE:
        matrix = _sparse(arrays, path)
    else:
        found = ", ".join(sorted(arrays)) or "none"
        raise ValueError(
            f"{path} has no array 'X' (and is no SciPy sparse matrix); its arrays: {found}"
        )
    if not matrix.shape[0]:
        raise ValueError(f"{path} has no samples: X has shape {matrix.shape}")
    return matrix


def _sparse(arrays: dict[str, Any], path: Path) -> Matrix:
    """What ``scipy.sparse.load_npz`` does, which would not have the labels beside it."""
    form = arrays["format"].item()
    form = form.decode("ascii") if isinstance(form, bytes) else str(form)
    shape = tuple(int(size) for size in arrays["shape"])
    data = arrays["data"]
    try:
        if form in ("csr", "csc", "bsr"):
            kind = getattr(sp, f"{form}_array")
            matrix = kind((data, arrays["indices"], arrays["indptr"]), shape=shape)
            matrix.check_format()
        elif form == "coo":
            matrix = sp.coo_array((data, (arrays["row"], arrays["col"])), shape=shape)
        elif form == "dia":
            matrix = sp.dia_array((data, arrays["offsets"]), shape=shape)
        else:
            raise ValueError(f"the sparse format {form!r} is not known")
        csr = sp.csr_matrix(matrix)
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is not a sound SciPy sparse matrix: {error}") from error
    if csr.dtype not in (np.float32, np.float64):
        csr = csr.astype(np.float64)
    csr.sum_duplicates()
    return csr


def _member(arrays: dict[str, Any], name: str, path: Path, purpose: str) -> Any:
    if name not in arrays:
        found = ", ".join(sorted(arrays)) or "none"
        raise ValueError(
            f"{path} has no array {name!r} ({purpose}); its arrays: {found}"
            + ("; labels can come from a file of their own: --labels" if name == "y" else "")
        )
    return arrays[name]
