"""Parquet datasets: their rows part by part, and rows of matrices in temporary files.

Rows are stored as they would be in memory, dense or sparse, so that the same loops read them;
categories as codes would take a third of the space and products of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from tempfile import TemporaryFile
from typing import Any

import numpy as np
import scipy.sparse as sp

from .arrays import Matrix

#: Rows of a part.
_ROWS = 1 << 16


def parts_of(X: Any, columns: Sequence[str], verbose: int = 0) -> Iterator[Any]:
    """Some columns as data frames, a part of the rows at a time; perhaps with lines of progress."""
    done, total = 0, X.count_rows()
    for batch in X.to_batches(
        columns=list(columns), batch_size=_ROWS, batch_readahead=1, fragment_readahead=1
    ):
        if batch.num_rows:
            yield batch.to_pandas()
            before, done = done, done + batch.num_rows
            if verbose and 10 * done // total > 10 * before // total:
                print(f"{done} of {total} rows read", flush=True)


def labels_in(X: Any, y: Any) -> np.ndarray[Any, Any]:
    """The column of labels, which fits in memory."""
    if not isinstance(y, str) or y not in X.schema.names:
        raise ValueError(f"y must be the name of a column of the dataset, got {y!r:.60}")
    return np.concatenate([part[y].to_numpy() for part in parts_of(X, [y])])


def levels_in(X: Any) -> set[str]:
    """Columns of a dataset that hold text or truth values."""
    import pyarrow.types as kinds

    tests = kinds.is_dictionary, kinds.is_boolean, kinds.is_string, kinds.is_large_string
    return {field.name for field in X.schema if any(test(field.type) for test in tests)}


def mapped(parts: Iterable[Matrix], n_entries: int) -> Matrix:
    """The rows of matrices, all dense or all sparse, in files that are read as memory maps.

    ``n_entries`` are the entries of a sparse matrix at most.  The files are in the folder for
    temporary files (``TMPDIR``), and are gone with the map.
    """
    number = np.int32 if n_entries < 2**31 else np.int64  # as SciPy has them
    shape, stored = (0, 0), 0
    with TemporaryFile() as values, TemporaryFile() as places, TemporaryFile() as ends:
        np.zeros(1, number).tofile(ends)
        for part in parts:
            shape = shape[0] + part.shape[0], part.shape[1]
            if not sp.issparse(part):
                part.tofile(values)
                continue
            part.data.tofile(values)
            part.indices.astype(number).tofile(places)
            (part.indptr[1:].astype(number) + stored).tofile(ends)
            stored += part.nnz
        entries = np.memmap(values, np.float64, "r")
        if not stored:
            return entries.reshape(shape)
        found = sp.csr_array(shape)  # its constructor might copy them
        found.data, found.indices = entries, np.memmap(places, number, "r")
        found.indptr = np.memmap(ends, number, "r")
    found.has_canonical_format = True
    return found
