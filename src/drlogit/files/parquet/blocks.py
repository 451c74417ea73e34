"""Parquet tables as the plain binary files that row blocks are read from, a piece at a time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...rows.row_blocks import BLOCK_BYTES
from ..binary_files import save_labels
from ..limits import check_disk, check_memory
from .table import doubles, is_number, open_table

#: Rows of a table that are converted at a time.
_TABLE_ROWS = 1 << 16


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
        for batch in file.iter_batches(_batch_rows(len(features)), use_threads=False):
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
    save_labels(folder, labels, path)
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
