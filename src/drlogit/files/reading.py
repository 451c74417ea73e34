"""Reading a file in whatever format it is."""

from __future__ import annotations

import errno
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from .columns import FileSamples, Wanted, is_missing, parse_labels, tidy_labels
from .compressed import opened
from .csv_file import read_csv
from .limits import Allowance
from .npy.archive import read_npz
from .npy.array import load_array
from .opening import TextLines, format_of, text_of
from .parquet.samples import read_parquet
from .svmlight.samples import read_svmlight

_READERS = {
    "csv": read_csv,
    "npz": read_npz,
    "parquet": read_parquet,
    "svmlight": read_svmlight,
}


#: Bytes that a line of text takes while it is read, beside its letters.
_LABEL = 128


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
    reader = _READERS[format_of(path, wanted.format)]
    if label_file is None:
        return reader(path, wanted)
    # Labels come from elsewhere, so every column is a feature.
    samples = reader(path, replace(wanted, labels=False, target=None))
    labels = read_labels(label_file)
    if labels.size != samples.X.shape[0]:
        raise ValueError(f"{label_file} has {labels.size} labels for {samples.X.shape[0]} samples")
    return replace(samples, labels=labels if wanted.labels else None, target=None)


def read_labels(path: str | os.PathLike[str]) -> NDArray[Any]:
    """Labels from a file of their own: a NumPy array (.npy), or text with one per line."""
    path = Path(path)
    if path.suffix == ".npy":
        return tidy_labels(load_array(path), str(path))
    labels: list[str] = []
    held, allowance, gap = 0, Allowance(str(path)), 0
    try:
        with opened(path) as file, text_of(file) as text:
            lines = TextLines(text, str(path))
            for number, line in enumerate(lines, 1):
                lines.pending = 0
                label = line.strip()
                if not label:  # empty lines at the end are none
                    gap = gap or number
                    continue
                if gap or is_missing(label):
                    raise ValueError(f"{path}, line {gap or number}: the label is missing")
                labels.append(label)
                held += _LABEL + 4 * len(label)
                allowance.check(held)
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is neither .npy nor text with one label per line") from error
    if not labels:
        raise ValueError(f"{path} is empty")
    return parse_labels(labels, str(path))
