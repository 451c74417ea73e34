"""Svmlight (libsvm) text: a label and ``index:value`` pairs on each line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import IO

import numpy as np
import scipy.sparse as sp

from ...rows.arrays import Matrix
from ..columns import FileSamples, Header, Wanted, check_finite, take_columns, tidy_labels
from ..compressed import opened
from ..limits import check_claim, check_line, longest_line
from .text import ZeroBasedError, parse_svmlight


def read_svmlight(path: Path, wanted: Wanted) -> FileSamples:
    """Samples of a svmlight file; columns are numbered from 1 unless ``wanted.zero_based``.

    A target is not looked for: labels stand at the start of each line.
    """
    if wanted.weights is not None:
        raise ValueError(f"{path} is svmlight text, which has no column for --weights")
    first = 0 if wanted.zero_based else 1
    try:
        with opened(path) as file:
            X, labels = parse_svmlight(_lines(file, path), str(path), zero_based=wanted.zero_based)
    except ZeroBasedError:
        raise ValueError(f"{path} numbers its columns from 0: say so with --zero-based") from None
    if not X.shape[0]:
        raise ValueError(f"{path} is empty")
    check_finite(X, None, str(path), first=first)
    if wanted.n_features is not None:
        check_claim(0, wanted.n_features, str(path))
    if wanted.features is None and not wanted.drop:
        X, names = _fit_width(X, wanted.n_features, first, path), None
    else:
        # Columns that no sample uses are there all the same: their values are zero.
        chosen = [int(name) for name in (wanted.features or wanted.drop) if name.isdecimal()]
        width = max([X.shape[1], *(number - first + 1 for number in chosen)])
        check_claim(0, width, str(path))
        X = _widen(X, width)
        header = Header(None, X.shape[1], str(path), first)
        # The label is no column here, and Header would make the last one the target.
        roles = header.roles(Wanted(labels=False, features=wanted.features, drop=wanted.drop))
        X, names = take_columns(X, roles.features), header.feature_names(roles, wanted)
    return FileSamples(
        X=sp.csr_matrix(X),
        labels=tidy_labels(labels, str(path)) if wanted.labels else None,
        weights=None,
        feature_names=names,
        target=None,
        source=str(path),
        first_number=first,
    )


def _fit_width(X: Matrix, width: int | None, first: int, path: Path) -> Matrix:
    """The same samples with so many columns: files end at the last column that is not empty."""
    if width is None or X.shape[1] == width:
        return X
    if X.shape[1] < width:
        return _widen(X, width)
    beyond = X[:, width:].tocoo()
    used = np.flatnonzero(beyond.data)
    if used.size:
        row, column = int(beyond.row[used[0]]), int(beyond.col[used[0]])
        raise ValueError(
            f"{path}: row {row + 1} uses feature {first + width + column}, but the model has only "
            f"{width} features; fit it with --n-features {X.shape[1]} or more"
        )
    return X[:, :width]


def _widen(X: Matrix, width: int) -> Matrix:
    if X.shape[1] == width:
        return X
    return sp.csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], width))


def _lines(file: IO[bytes], path: Path) -> Iterator[bytes]:
    most, number = longest_line(), 0
    while line := file.readline(most):
        number += 1
        check_line(len(line), most, f"{path}, line {number}")
        yield line
