"""Types of the arrays in the library, and tests for where a user's array is stored."""

from __future__ import annotations

import sys
from mmap import mmap
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
SingleArray = NDArray[np.float32]
BoolArray = NDArray[np.bool_]
IndexArray: TypeAlias = np.ndarray[Any, np.dtype[np.intp]]

#: A 2-D float array or a CSR matrix with sorted, unique indices.
Matrix: TypeAlias = Any


def is_dask(X: Any) -> bool:
    """Whether X is a Dask collection; this does not import Dask."""
    return "dask" in sys.modules and bool(sys.modules["dask"].is_dask_collection(X))


def is_dataset(X: Any) -> bool:
    """Whether X is a ``pyarrow.dataset.Dataset``; this does not import pyarrow."""
    return type(X).__module__.startswith("pyarrow") and hasattr(X, "scanner")


def in_memory(values: Any) -> Any:
    """A vector of the length of the samples; a Dask collection is computed."""
    return np.asarray(values.compute() if is_dask(values) else values)


def refuse_elsewhere(what: str, *given: Any) -> None:
    """``TypeError`` for what is not in memory, where rows are needed there."""
    for each in given:
        if is_dask(each) or is_dataset(each):
            kind = "Dask" if is_dask(each) else "pyarrow"
            raise TypeError(
                f"{what} needs its rows in memory, got a {kind} {type(each).__name__}: draw a "
                "sample, or predict lazily"
            )


def is_mapped(X: Any) -> bool:
    """Whether X is, or is a view of, an array in a file (``np.memmap``), dense or sparse."""
    return file_of(X.data if hasattr(X, "indptr") else X) is not None


def file_of(X: Any) -> Any:
    """The array in a file that X is a view of, by NumPy or Cython; None if there is none."""
    while isinstance(X, np.ndarray) or "memoryview" in type(X).__name__:  # Cython's, too
        base = X.obj if isinstance(X, memoryview) else X.base
        if isinstance(base, mmap):
            return X
        X = base
    return None


def beyond_memory(X: Any) -> bool:
    """Whether X may be larger than memory, so that it must not be copied."""
    return is_dask(X) or is_mapped(X)
