"""Svmlight text and Parquet tables as the plain binary files that row blocks are read from.

A piece of the file is in memory at a time.  What is written says what it is in a few words, which
:mod:`drlogit.files.block_files` keeps beside it.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..rows.row_blocks import BLOCK_BYTES
from .compressed import opened
from .limits import Allowance, check_claim, check_disk, check_line, check_memory, longest_line
from .parquet_table import doubles, is_number, open_table
from .svmlight_text import parse_svmlight

#: Bytes of text, or rows of a table, that are converted at a time.
_TEXT_BYTES = 1 << 24
_TABLE_ROWS = 1 << 16


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
    _save_labels(folder, labels, path)
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


def convert_parquet(path: Path, target: str, folder: Path) -> dict[str, Any]:
    """Columns of numbers as rows: float32 if all of them are, else float64."""
    labels: list[NDArray[Any]] = []
    with open_table(path) as file, open(folder / "data", "wb") as data:
        schema, n_rows = file.schema_arrow, file.metadata.num_rows
        if schema.names.count(target) != 1:
            listed = ", ".join(
                name if name.isidentifier() else repr(name) for name in schema.names[:8]
            )
            raise ValueError(f"{path} has no column {target!r:.60}; it has {listed:.300}")
        features = [name for name in schema.names if name != target]
        if not features or len(set(features)) != len(features):
            raise ValueError(f"{path} must have columns of different names beside {target!r:.60}")
        for name in features:
            if not is_number(schema.field(name).type):
                raise ValueError(f"column {name!r:.60} of {path} does not hold numbers")
        kinds = {str(schema.field(name).type) for name in features}
        dtype = np.dtype(np.float32 if kinds <= {"float", "halffloat"} else np.float64)
        what = f"the copy of {path}, {n_rows} rows of {len(features)} columns,"
        check_disk(n_rows * len(features) * dtype.itemsize, folder, what)
        check_memory(16 * n_rows, f"{path}: {n_rows} labels")
        n_read = 0
        for batch in file.iter_batches(_batch_rows(len(features))):
            if not batch.num_rows:
                continue
            rows = np.column_stack([doubles(batch.column(name), name, path) for name in features])
            rows.astype(dtype).tofile(data)
            labels.append(_label_part(batch.column(target)))
            n_read += batch.num_rows
    if n_read != n_rows:
        raise ValueError(f"{path} is damaged: it says {n_rows} rows and holds {n_read}")
    if not n_rows:
        raise ValueError(f"{path} has no samples")
    _save_labels(folder, labels, path)
    return {
        "shape": [n_rows, len(features)],
        "dtype": dtype.name,
        "sparse": False,
        "n_entries": n_rows * len(features),
        "names": features,
    }


def _batch_rows(n_features: int) -> int:
    """Rows of a table to convert at a time: fewer of a wide one."""
    return max(1, min(_TABLE_ROWS, 4 * BLOCK_BYTES // (8 * n_features)))


def _label_part(column: Any) -> NDArray[Any]:
    """Labels of a batch; a text that is repeated stays one object."""
    if column.null_count or not hasattr(column, "dictionary"):
        return np.asarray(column.to_numpy(zero_copy_only=False))
    texts = np.array(column.dictionary.to_pylist(), dtype=object)
    return np.asarray(texts[column.indices.to_numpy()])


def _save_labels(folder: Path, parts: list[NDArray[Any]], path: Path) -> None:
    labels = np.concatenate(parts)
    if labels.dtype == object:  # text, which a file holds at a fixed width
        if not all(isinstance(label, str) for label in labels):
            raise ValueError(f"{path}: the labels must all be numbers or all be text, none missing")
        longest = max(map(len, labels))
        check_memory(4 * longest * labels.size, f"{path}: labels of {longest} letters")
        labels = labels.astype(str)
    np.save(folder / "labels.npy", labels)
