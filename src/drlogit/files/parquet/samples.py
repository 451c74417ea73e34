"""Parquet files, through pyarrow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ...estimators.tables.frames import ColumnTable
from ...rows.arrays import FloatArray
from ..columns import FileSamples, Header, Wanted, check_finite, text_labels, tidy_labels
from ..limits import check_memory
from .table import doubles, is_number, is_text, open_table

#: How pandas calls an index without a name: no feature.
_PANDAS_INDEX = "__index_level_"


def read_parquet(path: Path, wanted: Wanted) -> FileSamples:
    """Samples of a Parquet file; only the columns wanted are read."""
    with open_table(path) as file:
        return _read(file, path, wanted)


def _read(file: Any, path: Path, wanted: Wanted) -> FileSamples:
    schema, n_rows = file.schema_arrow, file.metadata.num_rows
    names = [name for name in schema.names if not name.startswith(_PANDAS_INDEX)]
    header = Header(names, len(names), str(path))
    roles = header.roles(wanted)
    texts = {header.names[header.find(name, "--categorical")] for name in wanted.texts}
    as_table = wanted.table and (
        bool(texts)
        or any(_is_level(schema.field(header.names[j]).type) for j in roles.features)
        or _has_gaps(file, [header.names[j] for j in roles.features])
    )
    numeric = [] if as_table else roles.features
    for j in [*numeric, *([] if roles.weights is None else [roles.weights])]:
        _check_kind(schema.field(header.names[j]).type, header.names[j], path)
    used = [*roles.features, roles.target, roles.weights]
    chosen = {header.names[j] for j in used if j is not None}
    # Once as columns and once as rows.
    check_memory(16 * n_rows * len(chosen), f"{path}, {n_rows} rows of {len(chosen)} columns,")
    table = file.read(columns=sorted(chosen), use_threads=False)  # see open_table
    if table.num_rows != n_rows:
        raise ValueError(f"{path} is damaged: it says {n_rows} rows and holds {table.num_rows}")
    if not n_rows:
        raise ValueError(f"{path} has no samples")

    X: Any
    features = [header.names[j] for j in roles.features]
    if as_table:
        X = ColumnTable(features, [_values(table.column(n), n, n in texts, path) for n in features])
    else:
        X = np.empty((table.num_rows, len(roles.features)))
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
    return FileSamples(X, labels, weights, features, target, str(path))


def _is_level(kind: Any) -> bool:
    """Whether a column of that type is a category: text or truth values."""
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return pa.types.is_boolean(kind) or is_text(kind)


def _has_gaps(file: Any, names: list[str]) -> bool:
    """Whether a number is missing, by what the file says of its parts."""
    return any(
        column.statistics is None
        or column.statistics.null_count is None
        or column.statistics.null_count > 0
        for group in map(file.metadata.row_group, range(file.metadata.num_row_groups))
        for column in map(group.column, range(group.num_columns))
        if column.path_in_schema in names
    )


def _values(column: Any, name: str, as_text: bool, path: Path) -> Any:
    """A column of a table: doubles with NaN for gaps, or levels with None for them."""
    if is_number(column.type) and not _is_level(column.type) and not as_text:
        return doubles(column, name, path)
    if not is_number(column.type) and not _is_level(column.type):
        _check_kind(column.type, name, path)
    values = np.empty(len(column), dtype=object)
    values[:] = column.to_pylist()
    return values


def _check_kind(kind: Any, name: str, path: Path) -> None:
    if not is_number(kind):
        shown = getattr(kind, "value_type", kind)  # text is read as a dictionary
        raise ValueError(
            f"{path}: column {name!r:.60} holds {shown!s:.60}, but features must be numbers: leave "
            f"it out with --drop {name!r:.60}, or code it as numbers (a column per category)"
        )


def _numbers(column: Any, name: str, path: Path) -> FloatArray:
    _check_missing(column, name, path)
    return doubles(column, name, path)


def _labels(column: Any, name: str, path: Path) -> Any:
    import pyarrow as pa

    _check_missing(column, name, path)
    source = f"{path} ({name})"
    if not pa.types.is_dictionary(column.type):
        return tidy_labels(column.to_numpy(), source)
    coded = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    if isinstance(coded, pa.ChunkedArray):
        coded = coded.unify_dictionaries().combine_chunks()
    values = coded.dictionary.to_pylist()
    if not all(isinstance(value, str) for value in values):
        return tidy_labels(np.array(values), source)[coded.indices.to_numpy()]
    return text_labels([values[code] for code in coded.indices.to_pylist()], source)


def _check_missing(column: Any, name: str, path: Path) -> None:
    if column.null_count:
        row = int(np.flatnonzero(column.is_null().to_numpy())[0])
        raise ValueError(
            f"{path}: the value of column {name!r:.60} in row {row + 1} is missing; fill in or "
            "leave out such rows first"
        )
