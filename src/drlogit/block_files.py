"""Files as row blocks: NumPy arrays where they lie, text and Parquet by way of a binary copy.

A fit passes over the data some dozens of times.  A ``.npy`` file is read in place; svmlight text
would have to be parsed anew in every pass, and a column store be turned into rows, which takes
many times as long as the fit's own work.  So those are converted once, block by block, into a
folder of plain binary files, which is temporary or, with ``cache``, kept and found again.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import sys
import tempfile
import uuid
import weakref
from collections.abc import Callable, Iterator
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .compressed import OPENERS
from .matrix import Matrix
from .row_blocks import RowBlocks, cut_rows

#: Changes whenever older copies could no longer be read.
_LAYOUT = 2

#: Bytes of text, or rows of a table, that are converted at a time.
_TEXT_BYTES = 1 << 24
_TABLE_ROWS = 1 << 16


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
        return OpenedBlocks(_npy_blocks(path, block_rows), np.load(target, allow_pickle=False))
    if path.suffix in (".parquet", ".pq"):
        if target is None:
            raise ValueError(f"target must name the column of {path} that holds the labels")
        convert = partial(_convert_parquet, path, str(target))
    else:
        convert = partial(_convert_svmlight, path, n_features, zero_based)
    options = [str(target), n_features, zero_based]
    return _opened(_converted(path, convert, options, cache), block_rows)


def is_large(path: str | os.PathLike[str]) -> bool:
    """Whether a file of svmlight text or Parquet had better not be read as a whole.

    In memory it takes about as much as it does as text, more if it is compressed, and a fit needs
    room for its vectors besides.
    """
    path = Path(path)
    growth = 6 if path.suffix in (*OPENERS, ".parquet", ".pq") else 1
    return 2 * growth * path.stat().st_size > free_memory()


def free_memory() -> int:
    """Bytes that this process can still get, as far as the system tells."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        found = dict(line.split(":", 1) for line in lines)
        return int(found["MemAvailable"].split()[0]) << 10
    except (OSError, KeyError, ValueError, IndexError):
        return sys.maxsize  # nobody knows: let the user decide


# --- NumPy files ----------------------------------------------------------------------------


def _npy_blocks(path: Path, block_rows: int | None) -> RowBlocks:
    with open(path, "rb") as file:
        try:
            version = np.lib.format.read_magic(file)
            # Version 2 differs from 1 in the length of its header, and 3 in its encoding.
            reader = "read_array_header_1_0" if version == (1, 0) else "read_array_header_2_0"
            shape, by_column, dtype = getattr(np.lib.format, reader)(file)
        except ValueError as error:
            raise ValueError(f"{path} is not a .npy file: {error}") from error
        offset = file.tell()
    if len(shape) != 2 or dtype.kind not in "biuf":
        raise ValueError(f"{path} must hold a 2-D array of numbers, got {dtype} of shape {shape}")
    if by_column:  # rows are scattered over the file: let the system find them
        return RowBlocks.from_array(np.load(path, mmap_mode="r"), block_rows)
    lengths = cut_rows(shape[0], shape[1] * dtype.itemsize, block_rows)
    return RowBlocks(_DenseFile(path, offset, dtype, lengths, shape[1]), lengths, shape[1])


class _DenseFile:
    """``read`` for rows that follow each other in a file.

    Reads rather than maps: a map of all of the file would count against a limit on memory.
    """

    def __init__(
        self, path: Path, offset: int, dtype: Any, lengths: list[int], n_features: int
    ) -> None:
        self._path, self._offset = path, offset
        self._dtype, self._lengths, self._n_features = np.dtype(dtype), lengths, n_features

    def __call__(self, index: int) -> Matrix:
        row = self._n_features * self._dtype.itemsize
        count = self._lengths[index] * self._n_features
        first = self._offset + row * sum(self._lengths[:index])
        values = np.fromfile(self._path, self._dtype, count, offset=first)
        if values.size != count:
            raise ValueError(f"{self._path} ends before block {index}: was it changed?")
        return values.reshape(self._lengths[index], self._n_features)


# --- binary copies --------------------------------------------------------------------------


class _SparseFiles:
    """``read`` for CSR rows: entries, column numbers and row ends in a file each."""

    def __init__(self, folder: Path, dtype: Any, lengths: list[int], n_features: int) -> None:
        self._folder, self._dtype = folder, np.dtype(dtype)
        self._starts, self._n_features = [0, *accumulate(lengths)], n_features

    def __call__(self, index: int) -> Matrix:
        first, last = self._starts[index], self._starts[index + 1]
        ends = self._part("indptr", np.int64, first, last + 1)
        start, stop = int(ends[0]), int(ends[-1])
        data = self._part("data", self._dtype, start, stop)
        indices = self._part("indices", np.int32, start, stop)
        matrix = sp.csr_array(
            (data, indices, (ends - start).astype(np.int32)), shape=(last - first, self._n_features)
        )
        matrix.has_canonical_format = True  # made so when it was converted
        return matrix

    def _part(self, name: str, dtype: Any, first: int, last: int) -> NDArray[Any]:
        size = np.dtype(dtype).itemsize
        part = np.fromfile(self._folder / name, dtype, last - first, offset=size * first)
        if part.size != last - first:
            raise ValueError(f"{self._folder / name} is shorter than it was when it was written")
        return part


def _opened(folder: _Folder, block_rows: int | None) -> OpenedBlocks:
    about = json.loads((folder.path / "about.json").read_text())
    n_rows, n_features = about["shape"]
    dtype = np.dtype(about["dtype"])
    row_bytes = about["n_entries"] * (dtype.itemsize + 4 * about["sparse"]) // max(n_rows, 1)
    lengths = cut_rows(n_rows, row_bytes, block_rows)
    read: Any = (
        _SparseFiles(folder.path, dtype, lengths, n_features)
        if about["sparse"]
        else _DenseFile(folder.path / "data", 0, dtype, lengths, n_features)
    )
    X = RowBlocks(read, lengths, n_features, about.get("names"))
    y = np.load(folder.path / "labels.npy", allow_pickle=False)
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
    (folder / "about.json").write_text(json.dumps({**about, "of": wanted}))


def _is_copy(folder: Path, wanted: dict[str, Any]) -> bool:
    try:
        return bool(json.loads((folder / "about.json").read_text())["of"] == wanted)
    except (OSError, ValueError, KeyError):
        return False


# --- conversions ----------------------------------------------------------------------------


def _convert_svmlight(
    path: Path, n_features: int | None, zero_based: bool | str, folder: Path
) -> dict[str, Any]:
    """Svmlight text as CSR arrays, a piece at a time."""
    from sklearn.datasets import load_svmlight_file  # a tenth of a second to import

    labels: list[NDArray[Any]] = []
    n_entries, least, greatest = 0, np.inf, -1
    with (
        open(folder / "data", "wb") as data,
        open(folder / "indices", "wb") as indices,
        open(folder / "indptr", "wb") as indptr,
    ):
        np.zeros(1, dtype=np.int64).tofile(indptr)
        for text in _pieces(path):
            try:
                X, y = load_svmlight_file(io.BytesIO(text), zero_based=True)
            except (ValueError, OverflowError) as error:
                raise ValueError(f"{path} is not svmlight text: {error}") from error
            X.sum_duplicates()
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
    n_rows = _save_labels(folder, labels)
    return {
        "shape": [n_rows, found if n_features is None else n_features],
        "dtype": "float64",
        "sparse": True,
        "n_entries": n_entries,
    }


def _pieces(path: Path) -> Iterator[bytes]:
    """The text in pieces of whole lines."""
    with OPENERS.get(path.suffix, open)(path, "rb") as file:
        rest = b""
        while text := file.read(_TEXT_BYTES):
            lines, end, rest_of_line = (rest + text).rpartition(b"\n")
            if lines.strip():
                yield lines + end
            rest = rest_of_line
        if rest.strip():
            yield rest


def _shift(path: Path, by: int) -> None:
    """Add to all of a file of 32-bit integers."""
    with open(path, "r+b") as file:
        while (part := np.fromfile(file, np.int32, 1 << 22)).size:
            file.seek(-part.nbytes, os.SEEK_CUR)
            (part + np.int32(by)).tofile(file)
            file.seek(0, os.SEEK_CUR)


def _convert_parquet(path: Path, target: str, folder: Path) -> dict[str, Any]:
    """Columns of numbers as rows: float32 if all of them are, else float64."""
    import pyarrow.parquet as pq

    file = pq.ParquetFile(path)
    names = file.schema_arrow.names
    if target not in names:
        raise ValueError(f"{path} has no column {target!r}; it has {', '.join(names[:8])}")
    features = [name for name in names if name != target]
    kinds = {str(file.schema_arrow.field(name).type) for name in features}
    dtype = np.dtype(np.float32 if kinds <= {"float", "halffloat"} else np.float64)
    labels = []
    with open(folder / "data", "wb") as data:
        for batch in file.iter_batches(_TABLE_ROWS):
            columns = []
            for name in features:
                try:
                    column = batch.column(name).to_numpy(zero_copy_only=False)
                    columns.append(np.asarray(column, dtype=dtype))
                except (TypeError, ValueError):
                    raise ValueError(f"column {name!r} of {path} does not hold numbers") from None
            np.column_stack(columns).tofile(data)
            labels.append(np.asarray(batch.column(target).to_numpy(zero_copy_only=False)))
    n_rows = _save_labels(folder, labels)
    return {
        "shape": [n_rows, len(features)],
        "dtype": dtype.name,
        "sparse": False,
        "n_entries": n_rows * len(features),
        "names": features,
    }


def _save_labels(folder: Path, parts: list[NDArray[Any]]) -> int:
    labels = np.concatenate(parts)
    if labels.dtype == object:  # text, which a file holds at a fixed width
        labels = labels.astype(str)
    np.save(folder / "labels.npy", labels)
    return int(labels.size)
