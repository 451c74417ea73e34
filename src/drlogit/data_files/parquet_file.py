"""Parquet files, through pyarrow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ..losses import FloatArray
from .columns import Header, Samples, Wanted, check_finite, tidy_labels

#: How pandas calls an index without a name: no feature.
_PANDAS_INDEX = "__index_level_"


def read_parquet(path: Path, wanted: Wanted) -> Samples:
    """Samples of a Parquet file; only the columns wanted are read."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise ImportError(
            f"reading {path} needs pyarrow, which is not installed: "
            'pip install "drlogit[parquet]", or save the data as CSV'
        ) from error
    try:
        with open(path, "rb") as raw, pq.ParquetFile(raw) as file:
            names = [n for n in file.schema_arrow.names if not n.startswith(_PANDAS_INDEX)]
            header = Header(names, len(names), str(path))
            roles = header.roles(wanted)
            used = [*roles.features, roles.target, roles.weights]
            chosen = {header.names[j] for j in used if j is not None}
            table = file.read(columns=sorted(chosen))
    except pa.ArrowInvalid as error:
        raise ValueError(f"{path} is damaged or no Parquet file: {error}") from error
    if not table.num_rows:
        raise ValueError(f"{path} has no samples")

    X = np.empty((table.num_rows, len(roles.features)))
    features = [header.names[j] for j in roles.features]
    for j, name in enumerate(features):
        X[:, j] = _numbers(table.column(name), name, path)
    check_finite(X, features, str(path))
    target = None if roles.target is None else header.names[roles.target]
    labels = None
    if wanted.labels and target is not None:
        labels = _labels(table.column(target), target, path)
    weights = None
    if roles.weights is not None:
        name = header.names[roles.weights]
        weights = _numbers(table.column(name), name, path)
    return Samples(X, labels, weights, features, target, str(path))


def _numbers(column: Any, name: str, path: Path) -> FloatArray:
    import pyarrow as pa

    _check_missing(column, name, path)
    kind = column.type
    numeric = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    if not numeric and not pa.types.is_boolean(kind):
        raise ValueError(
            f"{path}: column {name!r} holds {kind}, but features must be numbers: leave it out "
            f"with --drop {name!r}, or code it as numbers (a column per category)"
        )
    if pa.types.is_boolean(kind):
        column = column.cast(pa.uint8())
    return np.asarray(column.cast(pa.float64(), safe=False).to_numpy(), dtype=np.float64)


def _labels(column: Any, name: str, path: Path) -> Any:
    import pyarrow as pa

    _check_missing(column, name, path)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return np.array(column.to_pylist(), dtype=np.str_)
    return tidy_labels(column.to_numpy(), f"{path} ({name})")


def _check_missing(column: Any, name: str, path: Path) -> None:
    if column.null_count:
        row = int(np.flatnonzero(column.is_null().to_numpy())[0])
        raise ValueError(
            f"{path}: the value of column {name!r} in row {row + 1} is missing; fill in or leave "
            "out such rows first"
        )
