"""Svmlight (libsvm) text: a label and ``index:value`` pairs on each line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file

from ..matrix import Matrix
from .columns import Header, Samples, Wanted, check_finite, take_columns, tidy_labels
from .opening import opened


def read_svmlight(path: Path, wanted: Wanted) -> Samples:
    """Samples of a svmlight file; columns are numbered from 1 unless ``wanted.zero_based``.

    A target is not looked for: labels stand at the start of each line.
    """
    if wanted.weights is not None:
        raise ValueError(f"{path} is svmlight text, which has no column for --weights")
    first = 0 if wanted.zero_based else 1
    with opened(path) as file:
        try:
            # scikit-learn would guess whether columns count from 0, differently for each file.
            X, labels = load_svmlight_file(file, zero_based=wanted.zero_based)
        except (ValueError, OverflowError) as error:
            raise ValueError(_explain(path, str(error))) from error
    if not X.shape[0]:
        raise ValueError(f"{path} is empty")
    X.sum_duplicates()
    numbers = [str(first + j) for j in range(X.shape[1])]
    check_finite(X, numbers, str(path))
    if wanted.features is None and not wanted.drop:
        X, names = _fit_width(X, wanted.n_features, first, path), None
    else:
        # Columns that no sample uses are there all the same: their values are zero.
        chosen = [int(name) for name in (wanted.features or wanted.drop) if name.isdecimal()]
        X = _widen(X, max([X.shape[1], *(number - first + 1 for number in chosen)]))
        header = Header(None, X.shape[1], str(path), first)
        # The label is no column here, and Header would make the last one the target.
        roles = header.roles(Wanted(labels=False, features=wanted.features, drop=wanted.drop))
        X, names = take_columns(X, roles.features), header.feature_names(roles, wanted)
    return Samples(
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


def _explain(path: Path, reason: str) -> str:
    if "Invalid index 0" in reason:
        return f"{path} numbers its columns from 0: say so with --zero-based"
    return f"{path} is not svmlight text (label index:value index:value …): {reason:.90}"
