"""Files as row blocks: NumPy arrays where they lie, text and Parquet by way of a binary copy.

A fit passes over the data some dozens of times.  A ``.npy`` file is read in place; svmlight text
would have to be parsed anew in every pass, and a column store be turned into rows, which takes
many times as long as the fit's own work.  So those are converted once, block by block, into a
folder of plain binary files, which is temporary or, with ``cache``, kept and found again.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import uuid
import weakref
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..rows.row_blocks import RowBlocks, cut_rows
from . import strict_json
from .binary_files import DenseFile, SparseFiles
from .compressed import SUFFIXES
from .limits import free_memory
from .npy.array import load_array
from .npy.blocks import npy_blocks
from .parquet.blocks import convert_parquet
from .svmlight.blocks import convert_svmlight

#: Changes whenever older copies could no longer be read.
_LAYOUT = 2


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
        By its ending: ``.npy`` (a 2-D array of numbers, read in place), ``.parquet`` (columns of
        numbers), or anything else for svmlight text (``.gz``, ``.bz2`` and ``.xz`` too).
    target : str or path
        The labels: another ``.npy`` file, or the name of a column of a Parquet file.  svmlight
        text has its own.
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
    if path.suffix == ".npy":
        if target is None:
            raise ValueError(f"{path} holds features only; target must name a .npy file of labels")
        return OpenedBlocks(npy_blocks(path, block_rows), load_array(Path(target)))
    if path.suffix in (".parquet", ".pq"):
        if target is None:
            raise ValueError(f"target must name the column of {path} that holds the labels")
        convert = partial(convert_parquet, path, str(target))
    else:
        convert = partial(convert_svmlight, path, n_features, zero_based)
    options = [str(target), n_features, zero_based]
    return _opened(_converted(path, convert, options, cache), block_rows)


def is_large(path: str | os.PathLike[str]) -> bool:
    """Whether a file of svmlight text or Parquet had better not be read as a whole.

    In memory it takes about as much as it does as text, more if it is compressed, and a fit needs
    room for its vectors besides.
    """
    path = Path(path)
    growth = 6 if path.suffix in (*SUFFIXES, ".parquet", ".pq") else 1
    return 2 * growth * path.stat().st_size > free_memory()


# --- binary copies --------------------------------------------------------------------------


def _opened(folder: _Folder, block_rows: int | None) -> OpenedBlocks:
    about = strict_json.read(folder.path / "about.json")
    n_rows, n_features = about["shape"]
    dtype = np.dtype(about["dtype"])
    row_bytes = about["n_entries"] * (dtype.itemsize + 4 * about["sparse"]) // max(n_rows, 1)
    lengths = cut_rows(n_rows, row_bytes, block_rows)
    read: Any = (
        SparseFiles(folder.path, dtype, lengths, n_features)
        if about["sparse"]
        else DenseFile(folder.path / "data", 0, dtype, lengths, n_features)
    )
    X = RowBlocks(read, lengths, n_features, about.get("names"))
    y = load_array(folder.path / "labels.npy")
    if folder.temporary:
        weakref.finalize(X, shutil.rmtree, folder.path, ignore_errors=True)
    return OpenedBlocks(X, y)


class _Folder(NamedTuple):
    path: Path
    temporary: bool


def _converted(
    path: Path,
    convert: Callable[[Path], dict[str, Any]],
    options: list[Any],
    cache: str | os.PathLike[str] | None,
) -> _Folder:
    """The folder with the binary copy of a file, made if there is none yet."""
    facts = path.stat()
    wanted = {"layout": _LAYOUT, "bytes": facts.st_size, "time": facts.st_mtime_ns, "as": options}
    if cache is None:
        folder = Path(tempfile.mkdtemp(prefix="drlogit-"))
        try:
            _write(folder, convert, wanted)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return _Folder(folder, temporary=True)
    folder = Path(cache) / f"{path.name}.blocks"
    if _is_copy(folder, wanted):
        return _Folder(folder, temporary=False)
    # Under another name until it is complete, so that nobody ever reads half a copy.
    unfinished = folder.with_name(f".{folder.name}.{uuid.uuid4().hex}")
    unfinished.mkdir(parents=True)
    try:
        _write(unfinished, convert, wanted)
        shutil.rmtree(folder, ignore_errors=True)
        os.replace(unfinished, folder)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise
    return _Folder(folder, temporary=False)


def _write(folder: Path, convert: Callable[[Path], dict[str, Any]], wanted: dict[str, Any]) -> None:
    about = convert(folder)
    (folder / "about.json").write_text(strict_json.dumps({**about, "of": wanted}), "utf-8")


def _is_copy(folder: Path, wanted: dict[str, Any]) -> bool:
    """Whether a folder holds such a copy, all of it: what is damaged is made again."""
    try:
        about = strict_json.read(folder / "about.json")
        (n_rows, n_features), n_entries = about["shape"], about["n_entries"]
        sizes = {"data": n_entries * {"float32": 4, "float64": 8}[about["dtype"]]}
        if about["sparse"] is True:
            sizes |= {"indices": 4 * n_entries, "indptr": 8 * (n_rows + 1)}
        elif n_entries != n_rows * n_features:
            return False
        whole = all((folder / name).stat().st_size == size for name, size in sizes.items())
        return bool(
            about["of"] == wanted
            and whole
            and n_features >= 1
            and load_array(folder / "labels.npy").shape == (n_rows,)
        )
    except (OSError, ValueError, KeyError, TypeError):
        return False
