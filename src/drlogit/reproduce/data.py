"""The data of the experiments by name, in the paper's shape."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any

import numpy as np
import scipy.sparse as sp

from .. import datasets
from ..rows.arrays import Matrix
from .paper import TABLE_4

Samples = tuple[Matrix, np.ndarray[Any, Any]]


def synthetic(n_samples: int, n_features: int) -> str:
    """The name of the paper's synthetic data of a size."""
    return f"synthetic-{n_samples}x{n_features}"


def size_of(data: str) -> tuple[int, int]:
    """The size that a name of synthetic data stands for."""
    n_samples, n_features = data.removeprefix("synthetic-").split("x")
    return int(n_samples), int(n_features)


def title_of(data: str) -> str:
    """How tables and figures call a data set."""
    return "({}, {})".format(*size_of(data)) if data.startswith("synthetic-") else data


def load(data: str, trial: int = 0) -> Samples:
    """X and y; ``trial`` seeds synthetic data and means nothing for real ones."""
    return _draw(data, trial) if data.startswith("synthetic-") else _read(data)


@cache  # a download is tried once
def why_missing(data: str) -> str | None:
    """Why a data set is not to be had; None if it is."""
    if data.startswith("synthetic-"):
        return None
    try:
        _read(data)
    except (FileNotFoundError, ImportError) as error:
        return str(error)
    return None


@lru_cache(maxsize=1)  # tasks on the same data follow each other
def _read(data: str) -> Samples:
    X, y = datasets.load(data, return_X_y=True)
    if data.startswith("mnist-"):
        # The paper's tables count columns up to one past the last pixel ever used; the columns
        # beyond are zero and change nothing but the time.
        X = np.ascontiguousarray(X[:, : TABLE_4[data].n_features])
    return X, y


@lru_cache(maxsize=1)
def _draw(data: str, seed: int) -> Samples:
    """Synthetic data; drawn again in the rare case that ten samples have one label only."""
    random = np.random.default_rng(seed)
    while True:
        X, y = datasets.make_synthetic(*size_of(data), random)
        if np.unique(y).size == 2:
            return X, y


def entries(X: Matrix) -> int:
    """How many numbers of a matrix are not zero."""
    return int(X.nnz if sp.issparse(X) else np.count_nonzero(X))
