"""Files as row blocks: NumPy arrays where they lie, text and Parquet by way of a binary copy.

A fit passes over the data some dozens of times.  A ``.npy`` file is read in place; text would have
to be parsed anew in every pass, and a column store be turned into rows, which takes many times as
long as the fit's own work.  So those are converted once, block by block, into a folder of arrays,
which is temporary or, with ``cache``, kept and found again.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..rows.arrays import Matrix
from ..rows.row_blocks import BLOCK_BYTES, RowBlocks, cut_rows
from .columns import Wanted
from .formats import opened, plain_errors
from .matrix_files import parse_svmlight
from .reading import load_array
from .table_files import table_blocks
from .values import tidy_labels

#: Features, labels and names of the columns, some rows at a time.
Parts = Iterator[tuple[Matrix, NDArray[Any], list[str] | None]]


class OpenedBlocks(NamedTuple):
    """Features in row blocks, and labels."""

    X: RowBlocks
    y: NDArray[Any]


def open_blocks(
    path: str | os.PathLike[str],
    *,
    target: str | os.PathLike[str] | None = None,
    block_rows: int | None = None,
    cache: str | os.PathLike[str] | None = None,
    n_features: int | None = None,
    zero_based: bool | str = "auto",
) -> OpenedBlocks:
    """Open a file that is too large for memory as row blocks and labels.

    Parameters
    ----------
    path : path
        By its ending: ``.npy`` (a 2-D array of numbers, read in place), ``.parquet`` or ``.csv``
        (columns of numbers), or anything else for svmlight text; text also ``.gz``, ``.bz2`` and
        ``.xz``.
    target : str or path
        The labels: another ``.npy`` file, or the name of a column of a table.  svmlight text has
        its own.
    block_rows : int, optional
        Rows of a block; None for blocks of about 32 MB.
    cache : path, optional
        A folder in which to keep the binary copy of text or Parquet, to be used again as long as
        the file does not change.  None for a temporary one, which goes when X does.  It takes 12
        bytes for each non-zero of svmlight text, 4 or 8 for each number of a table.
    n_features : int, optional
        Columns of svmlight text; None for the largest index found.
    zero_based : bool or "auto"
        Whether indices of svmlight text begin with 0; ``"auto"``: if 0 occurs.

    Returns
    -------
    X : RowBlocks
        Features, to be given to :func:`~drlogit.solve` and the estimators.
    y : array of shape (n_samples,)
        Labels, in memory.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"no such file: {path}")
    cut_rows(1, 1, block_rows)  # says what is wrong with block_rows
    if path.suffix == ".npy":
        return _open_array(path, target, block_rows)
    if {".csv", ".tsv", ".parquet", ".pq"} & set(path.suffixes):
        if target is None:
            raise ValueError(f"target must name the column of {path} that holds the labels")
        kind = "parquet" if path.suffix in (".parquet", ".pq") else "csv"
        parts: Parts = table_blocks(path, kind, Wanted(target=str(target)), block_rows)
    else:
        parts = _svmlight_blocks(path, block_rows)
    facts = path.stat()
    options = [str(target), n_features, zero_based, block_rows]
    wanted = {"bytes": facts.st_size, "time": facts.st_mtime_ns, "as": options}
    folder = Path(tempfile.mkdtemp(prefix="drlogit-") if cache is None else cache)
    folder /= f"{path.name}.blocks"
    try:
        if not _is_copy(folder, wanted):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            with plain_errors(path):
                _convert(parts, path, n_features, zero_based, wanted, folder)
        found = _open_copy(folder)
    except BaseException:
        shutil.rmtree(folder if cache is not None else folder.parent, ignore_errors=True)
        raise
    if cache is None:
        weakref.finalize(found.X, shutil.rmtree, folder.parent, ignore_errors=True)
    return found


def _open_array(path: Path, target: Any, block_rows: int | None) -> OpenedBlocks:
    if target is None:
        raise ValueError(f"{path} holds features only; target must name a .npy file of labels")
    array = load_array(path, mmap_mode="r")
    if array.ndim != 2 or array.dtype.kind not in "biuf" or not array.size:
        raise ValueError(
            f"{path} must hold a 2-D array of numbers that is not empty, got {array.dtype} of "
            f"shape {array.shape!s:.60}"
        )
    lengths = cut_rows(array.shape[0], array[0].nbytes, block_rows)
    read = _ArrayBlocks(path, tuple(accumulate(lengths, initial=0)))
    return OpenedBlocks(RowBlocks(read, lengths, array.shape[1]), load_array(Path(target)))


def _svmlight_blocks(path: Path, block_rows: int | None) -> Parts:
    """Some lines at a time, columns counted from 0."""
    with opened(path) as file:
        while (
            lines := list(islice(file, block_rows)) if block_rows else file.readlines(BLOCK_BYTES)
        ):
            X, labels = parse_svmlight(b"".join(lines), path, zero_based=True)
            if X.shape[0]:
                yield X, labels, None


def _convert(
    parts: Parts, path: Path, n_features: int | None, zero_based: bool | str,
    wanted: dict[str, Any], folder: Path,
) -> None:  # fmt: skip
    """Write the blocks and the labels, and at last what there is: then the copy is complete."""
    lengths: list[int] = []
    labels: list[NDArray[Any]] = []
    names, width, least = None, 0, 1
    for X, y, columns in parts:
        if sp.issparse(X):
            sp.save_npz(folder / f"{len(lengths)}.npz", X, compressed=False)
            least = min(least, int(X.indices.min(initial=1)))
        else:
            np.save(folder / f"{len(lengths)}.npy", X)
        width, names = max(width, X.shape[1]), columns
        lengths.append(X.shape[0])
        labels.append(y)
    if not lengths:
        raise ValueError(f"{path} is empty")
    first = 0
    if names is None:
        first = 0 if zero_based is True or (zero_based == "auto" and least == 0) else 1
        if least < first:
            raise ValueError(f"{path} has the index {least}, but indices were to begin with 1")
        if n_features is not None and width - first > n_features:
            raise ValueError(f"{path} has {width - first} features, expected at most {n_features}")
        width = (n_features or width - first) + first
    if width - first < 1:
        raise ValueError(f"{path} has no features, only labels")
    if len({part.dtype.kind in "US" for part in labels}) > 1:
        raise ValueError(f"{path}: labels are numbers in some rows and text in others")
    np.save(folder / "labels.npy", tidy_labels(np.concatenate(labels), str(path)))
    about = {"of": wanted, "lengths": lengths, "width": width - first, "first": first,
             "names": names}  # fmt: skip
    (folder / "about.json").write_text(json.dumps(about), "utf-8")


def _is_copy(folder: Path, wanted: dict[str, Any]) -> bool:
    about = folder / "about.json"
    return about.exists() and bool(json.loads(about.read_text("utf-8"))["of"] == wanted)


def _open_copy(folder: Path) -> OpenedBlocks:
    about = json.loads((folder / "about.json").read_text("utf-8"))
    width, names = about["width"], about["names"]
    read = _CopiedBlocks(folder, width, None if names else about["first"])
    X = RowBlocks(read, about["lengths"], width, names)
    return OpenedBlocks(X, load_array(folder / "labels.npy"))


@dataclass(frozen=True)
class _ArrayBlocks:
    """``read`` for rows of an array in a file, mapped only while a block is copied.

    A map of all of it would count as memory of this process.
    """

    path: Path
    ends: tuple[int, ...]

    def __call__(self, index: int) -> Matrix:
        array = load_array(self.path, mmap_mode="r")
        return np.array(array[self.ends[index] : self.ends[index + 1]])


@dataclass(frozen=True)
class _CopiedBlocks:
    """``read`` for the blocks in a folder; sparse ones count columns from ``first``."""

    folder: Path
    width: int
    first: int | None

    def __call__(self, index: int) -> Matrix:
        if self.first is None:
            return load_array(self.folder / f"{index}.npy")
        found = sp.load_npz(self.folder / f"{index}.npz")
        shape = (found.shape[0], self.width)
        matrix = sp.csr_array((found.data, found.indices - self.first, found.indptr), shape=shape)
        matrix.has_canonical_format = True  # so scikit-learn reads it
        return matrix
