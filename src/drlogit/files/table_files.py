"""Tables: CSV through pandas, Parquet through pyarrow, columns by what they are for."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..estimators.tables.frames import is_number
from ..estimators.tables.text_columns import numbers_in_text
from .columns import FileSamples, Header, Roles, Wanted
from .formats import DELIMITERS, open_text
from .values import check_finite, feature, tidy_labels

#: How pandas calls an index without a name: no feature.
_PANDAS_INDEX = "__index_level_"


class _Columns(NamedTuple):
    """The columns of a file, what they are for, and which are text or hold numbers in text."""

    header: Header
    roles: Roles
    texts: set[int]
    numbers: set[int]

    @classmethod
    def of(cls, header: Header, wanted: Wanted) -> _Columns:
        roles = header.roles(wanted)
        texts = {header.find(name, "--categorical") for name in wanted.texts}
        return cls(
            header, roles, texts, {header.find(name, "--numbers") for name in wanted.numbers}
        )


# --- CSV -------------------------------------------------------------------------------------


def read_csv(path: Path, wanted: Wanted) -> FileSamples:
    """Samples of a CSV file."""
    import pandas as pd

    columns, options = _csv_layout(path, wanted)
    frame = pd.read_csv(path, **options)
    if not len(frame):
        raise ValueError(f"{path} has a header but no samples")
    if frame[frame.shape[1] - 1].isna().any():  # which may be a row that is cut short
        _check_widths(path, options)
    return _samples(frame, columns, wanted)


def _csv_layout(path: Path, wanted: Wanted) -> tuple[_Columns, dict[str, Any]]:
    """The columns, and how pandas is to read them: by position, rows as wide as the first."""
    with open_text(path) as text:
        lines = text.readlines(1 << 16)
    delimiter = wanted.delimiter or _delimiter(lines[0], path)
    reader = csv.reader(lines, delimiter=delimiter, skipinitialspace=True)
    rows = list(islice((row for row in reader if row), 20))
    has_header = _looks_like_header(rows) if wanted.header is None else wanted.header
    names = [name.strip() for name in rows[0]] if has_header else None
    columns = _Columns.of(Header(names, len(rows[0]), str(path)), wanted)
    as_text = columns.texts | columns.numbers | ({columns.roles.target} if wanted.labels else set())
    return columns, {
        "sep": delimiter,
        "header": 0 if has_header else None,
        "names": list(range(len(rows[0]))),
        "index_col": False,
        "dtype": dict.fromkeys(as_text, str),
        "na_values": list(wanted.missing_marks),
        "keep_default_na": False,
        "na_filter": bool(wanted.missing_marks),
        "skipinitialspace": True,
        "encoding": "utf-8-sig",
        "low_memory": False,
    }


def _delimiter(line: str, path: Path) -> str:
    if ".tsv" in path.suffixes:
        return "\t"
    outside = "".join(line.split('"')[::2])  # what stands in quotes delimits nothing
    best = max(DELIMITERS, key=outside.count)
    return best if best in outside else ","


def _looks_like_header(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first row names the columns: text where the rows below have numbers."""
    first, rest = rows[0], rows[1:]
    if all(is_number(field) for field in first):
        return False
    if not rest:
        return True
    numeric = [j for j in range(len(first)) if all(is_number(row[j]) for row in rest if row[j:])]
    if numeric:
        return not any(is_number(first[j]) for j in numeric if first[j].strip())
    return len(set(first)) == len(first)


def _check_widths(path: Path, options: dict[str, Any]) -> None:
    """``ValueError`` for a row with too few fields, which pandas fills up with missing ones."""
    width = len(options["names"])
    with open_text(path) as text:
        reader = csv.reader(text, delimiter=options["sep"], skipinitialspace=True)
        for row in reader:
            if row and len(row) != width:
                raise ValueError(
                    f"{path}: found {len(row)} fields in line {reader.line_num}, expected {width}"
                )


# --- Parquet ---------------------------------------------------------------------------------


def read_parquet(path: Path, wanted: Wanted) -> FileSamples:
    """Samples of a Parquet file; only the columns wanted are read."""
    with _parquet_columns(path, wanted) as (file, columns):
        header, roles = columns.header, columns.roles
        every = (*roles.features, roles.target, roles.weights, roles.kappa)
        used = [j for j in every if j is not None]
        frame = file.read(columns=[header.names[j] for j in used]).to_pandas(ignore_metadata=True)
    if not len(frame):
        raise ValueError(f"{path} has no samples")
    frame = frame[[header.names[j] for j in used]].set_axis(used, axis=1)
    return _samples(frame, columns, wanted)


@contextmanager
def _parquet_columns(path: Path, wanted: Wanted) -> Iterator[tuple[Any, _Columns]]:
    """A ``pyarrow.parquet.ParquetFile`` and its columns; the file knows which are text."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise ImportError(
            f"reading {path} needs pyarrow, which is not installed: "
            'pip install "drlogit[parquet]", or save the data as CSV'
        ) from error
    with open(path, "rb") as raw, pq.ParquetFile(raw) as file:
        fields = [f for f in file.schema_arrow if not f.name.startswith(_PANDAS_INDEX)]
        names = [field.name for field in fields]
        columns = _Columns.of(Header(names, len(names), str(path)), wanted)
        for j, field in enumerate(fields):  # codes such as 007 are not numbers there
            kind = getattr(field.type, "value_type", field.type)  # of levels that have codes
            if pa.types.is_string(kind) or pa.types.is_large_string(kind):
                columns.texts.add(j)
        yield file, columns


# --- both ------------------------------------------------------------------------------------


def _samples(frame: Any, columns: _Columns, wanted: Wanted) -> FileSamples:
    """What the columns of a frame, which go by position, are for; each by its meaning."""
    import pandas as pd

    header, roles, source = columns.header, columns.roles, columns.header.source
    remarks: list[str] = []
    features = {}
    for j in roles.features:
        name = header.names[j]
        features[j] = (
            _numbers_in(frame[j], name, remarks)
            if j in columns.numbers
            else feature(
                frame[j], name, source, as_text=j in columns.texts, table=wanted.table,
                marks=wanted.missing_marks,
            )
        )  # fmt: skip
        if features[j].dtype.kind == "f":
            check_finite(features[j][:, None], [name], source, gaps=wanted.table)
    X = pd.DataFrame(features)
    names = header.feature_names(roles, wanted)
    plain = all(dtype.kind in "iuf" for dtype in X.dtypes) and not X.isna().any(axis=None)
    if names is None and not plain:
        names = [header.names[j] for j in roles.features]  # a table, whose columns have names
    X.columns = list(range(len(features))) if names is None else names
    labels = weights = None
    if wanted.labels and roles.target is not None:
        where = f"{source} (column {header.names[roles.target]!r:.60})"
        labels = tidy_labels(frame[roles.target].to_numpy(), where)

    def numbers(place: int) -> Any:
        """A column that is no feature."""
        found = feature(
            frame[place], header.names[place], source, as_text=False, table=False,
            marks=wanted.missing_marks,
        )  # fmt: skip
        return np.asarray(found, dtype=np.float64)

    if roles.weights is not None:
        weights = numbers(roles.weights)
        check_finite(weights[:, None], [header.names[roles.weights]], source)
    kappa = None if roles.kappa is None else numbers(roles.kappa)
    target = None if roles.target is None else header.names[roles.target]
    return FileSamples(
        X, labels, weights, names, target, source, remarks=tuple(remarks), kappa=kappa
    )


def _numbers_in(column: Any, name: str, remarks: list[str]) -> Any:
    """The numbers that a column of text holds; what else is in it is remarked, and missing."""
    import pandas as pd

    codes, found = pd.factorize(column)
    if not all(isinstance(text, str) for text in found):
        return column.to_numpy(np.float64)
    numbers = np.append(numbers_in_text(found), np.nan)
    other = [text for text, number in zip(found, numbers, strict=False) if np.isnan(number)]
    if other:
        count = int(np.isnan(numbers[codes]).sum() - (codes < 0).sum())
        remarks.append(
            f"{count} texts of column {name!r:.60} are no numbers, and missing, such as "
            f"{other[0]!r:.40}"
        )
    return numbers[codes]
