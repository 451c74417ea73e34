"""Svmlight text as the plain binary files that row blocks are read from, a piece at a time."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..binary_files import save_labels
from ..compressed import opened
from ..limits import Allowance, check_claim, check_disk, check_line, longest_line
from .text import parse_svmlight

#: Bytes of text that are converted at a time.
_TEXT_BYTES = 1 << 24


def convert_svmlight(
    path: Path, n_features: int | None, zero_based: bool | str, folder: Path
) -> dict[str, Any]:
    """Svmlight text as CSR arrays, a piece at a time."""
    labels: list[NDArray[Any]] = []
    n_entries, n_rows, least, greatest = 0, 0, np.inf, -1
    allowance = Allowance(f"{path}: the labels")
    with (
        open(folder / "data", "wb") as data,
        open(folder / "indices", "wb") as indices,
        open(folder / "indptr", "wb") as indptr,
    ):
        np.zeros(1, dtype=np.int64).tofile(indptr)
        for text in _pieces(path):
            X, y = parse_svmlight(io.BytesIO(text), str(path), zero_based=True)
            n_rows += y.size
            allowance.check(16 * n_rows)  # as pieces and as a whole
            check_disk(12 * X.nnz + 8 * y.size, folder, f"the next part of the copy of {path}")
            if X.nnz:
                least, greatest = min(least, X.indices.min()), max(greatest, X.indices.max())
            X.data.tofile(data)
            X.indices.astype(np.int32).tofile(indices)
            (X.indptr[1:].astype(np.int64) + n_entries).tofile(indptr)
            n_entries += X.nnz
            labels.append(y)
    if not labels:
        raise ValueError(f"{path} is empty")
    first = 0 if zero_based is True or (zero_based == "auto" and least == 0) else 1
    if least < first:
        raise ValueError(f"{path} has the index {int(least)}, but indices were to begin with 1")
    if first:
        _shift(folder / "indices", -first)
    found = int(greatest) + 1 - first
    if n_features is not None and found > n_features:
        raise ValueError(f"{path} has {found} features, expected at most {n_features}")
    width = found if n_features is None else n_features
    if width < 1:
        raise ValueError(f"{path} has no features, only labels")
    check_claim(0, width, str(path))
    save_labels(folder, labels, path)
    return {
        "shape": [n_rows, width],
        "dtype": "float64",
        "sparse": True,
        "n_entries": n_entries,
    }


def _pieces(path: Path) -> Iterator[bytes]:
    """The text in pieces of whole lines."""
    most = longest_line()
    with opened(path) as file:
        rest = b""
        while text := file.read(_TEXT_BYTES):
            lines, end, rest_of_line = (rest + text).rpartition(b"\n")
            if lines.strip():
                yield lines + end
            rest = rest_of_line
            check_line(len(rest), most, str(path))
        if rest.strip():
            yield rest


def _shift(path: Path, by: int) -> None:
    """Add to all of a file of 32-bit integers."""
    with open(path, "r+b") as file:
        while (part := np.fromfile(file, np.int32, 1 << 22)).size:
            file.seek(-part.nbytes, os.SEEK_CUR)
            (part + np.int32(by)).tofile(file)
            file.seek(0, os.SEEK_CUR)
