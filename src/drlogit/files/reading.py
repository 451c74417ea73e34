"""Samples from files: CSV through pandas, Parquet through pyarrow, svmlight text through
scikit-learn; each column by what it is for.
"""

from __future__ import annotations

import csv
import errno
import os
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import scipy.sparse as sp

from ..estimators.tables.frames import is_number
from .columns import FileSamples, Header, Roles, Wanted
from .formats import DELIMITERS, STANDARD_INPUT, format_of, open_text, opened, plain_errors
from .values import feature, tidy_labels

#: How pandas calls an index without a name: no feature.
_PANDAS_INDEX = "__index_level_"


def read_samples(path: str | os.PathLike[str], wanted: Wanted) -> FileSamples:
    """The samples in a file."""
    path = STANDARD_INPUT if str(path) == "-" else Path(path)
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "Is a directory, not a data file", str(path))
    with plain_errors(path):
        return _READERS[format_of(path, wanted.format)](path, wanted)


# --- tables ----------------------------------------------------------------------------------


def _read_csv(path: Path, wanted: Wanted) -> FileSamples:
    import pandas as pd

    with open_text(path, wanted.encoding) as text:
        lines = text.readlines(1 << 16)
    if any("\0" in line for line in lines):
        raise ValueError(
            f"{path} contains NUL bytes, which occur in UTF-16: state --encoding utf-16, or save "
            "the file as UTF-8"
        )
    delimiter = wanted.delimiter or _delimiter(lines[0], wanted.decimal)
    rows = csv.reader(lines, delimiter=delimiter, skipinitialspace=True)
    first = list(islice(filter(None, rows), 20))
    has_header = wanted.header
    if has_header is None:
        has_header = _looks_like_header([
            [field.replace(wanted.decimal, ".") for field in row] for row in first
        ])  # fmt: skip
    width = len(first[0])
    header = Header([n.strip() for n in first[0]] if has_header else None, width, str(path))
    roles = header.roles(wanted)
    as_text = roles.texts | ({roles.target} if wanted.with_labels else set())
    with opened(path) as file:
        frame = pd.read_csv(
            file,
            sep=delimiter,
            decimal=wanted.decimal,
            header=0 if has_header else None,
            names=range(width),
            index_col=False,
            dtype=dict.fromkeys(as_text, str),
            na_values=list(wanted.missing_marks),
            keep_default_na=False,
            na_filter=bool(wanted.missing_marks),
            skipinitialspace=True,
            encoding=wanted.encoding,
            low_memory=False,
        )
    if not len(frame):
        raise ValueError(f"{path} has a header but no rows")
    if frame[width - 1].isna().any():  # which may be a row that is cut short
        _check_widths(path, wanted.encoding, delimiter, width)
    return _samples(frame, header, roles, wanted)


def _delimiter(line: str, decimal: str) -> str:
    outside = "".join(line.split('"')[::2])  # what stands in quotes delimits nothing
    outside = outside.replace(decimal, "")
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


def _check_widths(path: Path, encoding: str, delimiter: str, width: int) -> None:
    """``ValueError`` for a row with too few fields, which pandas fills up with missing ones."""
    with open_text(path, encoding) as text:
        reader = csv.reader(text, delimiter=delimiter, skipinitialspace=True)
        for row in reader:
            if row and len(row) != width:
                raise ValueError(
                    f"{path}: line {reader.line_num} has {len(row)} fields, expected {width}"
                )


def _read_parquet(path: Path, wanted: Wanted) -> FileSamples:
    """Only the columns wanted are read; the file knows which are text."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise ImportError(
            f"reading {path} needs pyarrow, which is not installed: "
            'pip install "drlogit[parquet]", or save the data as CSV'
        ) from error
    with opened(path) as raw, pq.ParquetFile(raw) as file:
        fields = [f for f in file.schema_arrow if not f.name.startswith(_PANDAS_INDEX)]
        header = Header([field.name for field in fields], len(fields), str(path))
        roles = header.roles(wanted)
        names = [header.names[j] for j in roles.every]
        frame = file.read(columns=names).to_pandas(ignore_metadata=True)[names]
    if not len(frame):
        raise ValueError(f"{path} has no rows")
    # Codes such as 007 are no numbers there, nor are levels that have codes.
    kinds = {j: getattr(field.type, "value_type", field.type) for j, field in enumerate(fields)}
    roles.texts.update(
        j for j, k in kinds.items() if pa.types.is_string(k) or pa.types.is_large_string(k)
    )
    return _samples(frame.set_axis(roles.every, axis=1), header, roles, wanted)


def _samples(frame: Any, header: Header, roles: Roles, wanted: Wanted) -> FileSamples:
    """What the columns of a frame, which go by position, are for; each by its meaning."""
    import pandas as pd

    source = header.source
    features = {
        j: feature(
            frame[j], header.names[j], source, served=wanted.served, marks=wanted.missing_marks,
            decimal=wanted.decimal,
            as_text=j in roles.texts,
        )
        for j in roles.features
    }  # fmt: skip
    X = pd.DataFrame(features)
    names = header.feature_names(roles, wanted)
    plain = all(dtype.kind in "iuf" for dtype in X.dtypes) and not X.isna().any(axis=None)
    if names is None and not plain:
        names = [header.names[j] for j in roles.features]  # a table, whose columns have names
    X.columns = list(range(len(features))) if names is None else names
    labels, target = None, None if roles.target is None else header.names[roles.target]
    if wanted.with_labels and target is not None:
        where = f"{source} (column {target!r:.60})"
        labels = tidy_labels(frame[roles.target].to_numpy(), where)
    weights, kappa = (
        None if place is None else frame[place].to_numpy() for place in (roles.weights, roles.kappa)
    )
    return FileSamples(X, labels, weights, names, target, source, kappa=kappa)


# --- matrices --------------------------------------------------------------------------------


def _read_svmlight(path: Path, wanted: Wanted) -> FileSamples:
    """Columns are numbered from 1 unless ``wanted.zero_based``; all of them are features."""
    from sklearn.datasets import load_svmlight_file  # brings a tenth of a second of other imports

    if wanted.features is not None or wanted.drop or wanted.weights or wanted.kappa_column:
        raise ValueError(
            f"{path} is svmlight text, whose columns have no names and are all features: "
            "--features, --drop, --weights and --kappa-column cannot be used"
        )
    width, from_zero = wanted.n_features, bool(wanted.zero_based)
    try:
        with opened(path) as file:
            X, labels = load_svmlight_file(file, n_features=width, zero_based=from_zero)
    except (ValueError, OverflowError) as error:
        found = " ".join(str(error).split())
        if "Invalid index 0" in found:
            found = "its columns are numbered from 0: state --zero-based"
        raise ValueError(
            f"{path} cannot be read as svmlight text (label index:value …): {found:.90}"
        ) from error
    if not X.shape[0]:
        raise ValueError(f"{path} is empty")
    y = tidy_labels(labels, str(path)) if wanted.with_labels else None
    return FileSamples(sp.csr_matrix(X), y, None, None, None, str(path), int(not from_zero))


_READERS = {
    "csv": _read_csv,
    "parquet": _read_parquet,
    "svmlight": _read_svmlight,
}
