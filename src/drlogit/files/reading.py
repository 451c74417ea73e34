"""Reading a file in whatever format it is."""

from __future__ import annotations

import errno
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .columns import FileSamples, Wanted
from .formats import format_of, open_text, plain_errors
from .matrix_files import read_npz, read_svmlight
from .table_files import read_csv, read_parquet
from .values import tidy_labels

_READERS = {
    "csv": read_csv,
    "npz": read_npz,
    "parquet": read_parquet,
    "svmlight": read_svmlight,
}


def read_samples(
    path: str | os.PathLike[str],
    wanted: Wanted,
    *,
    label_file: str | os.PathLike[str] | None = None,
) -> FileSamples:
    """The samples in a file, with labels from another file if one is given."""
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "Is a directory, not a data file", str(path))
    with plain_errors(path):
        reader = _READERS[format_of(path, wanted.format)]
        if label_file is None:
            return reader(path, wanted)
        # Labels come from elsewhere, so every column is a feature.
        samples = reader(path, replace(wanted, labels=False, target=None))
    labels = read_labels(Path(label_file))
    if labels.size != samples.X.shape[0]:
        raise ValueError(f"{label_file} has {labels.size} labels for {samples.X.shape[0]} samples")
    return replace(samples, labels=labels if wanted.labels else None, target=None)


def read_labels(path: Path) -> NDArray[Any]:
    """Labels from a file of their own: a NumPy array (.npy), or text with one per line."""
    if path.suffix == ".npy":
        return tidy_labels(load_array(path), str(path))
    with plain_errors(path), open_text(path) as text:
        lines = text.read().rstrip().splitlines()
    if not lines:
        raise ValueError(f"{path} is empty")
    return tidy_labels(lines, str(path))


def load_array(path: Path, **options: Any) -> NDArray[Any]:
    """The array in a ``.npy`` file; pickled objects, which could run code, are refused."""
    with plain_errors(path):
        array: NDArray[Any] = np.load(path, allow_pickle=False, **options)
        if not isinstance(array, np.ndarray):
            raise ValueError(f"{path} is an archive of arrays, and one array is wanted")
    return array
