"""CSV files, and other text with one sample per line and a delimiter."""

from __future__ import annotations

import csv
from array import array
from collections.abc import Iterator, Sequence
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from ..estimators.tables.frames import ColumnTable, is_number
from .columns import FileSamples, Header, Roles, Wanted, check_finite, is_missing, parse_labels
from .compressed import opened
from .limits import Allowance, check_claim
from .opening import DELIMITERS, TextLines, not_utf8, refuse_spreadsheet, text_of
from .text_column import CODE_BYTES, TextColumn, about_comma, is_comma_number

#: Bytes of fields after which a table asks again how much memory it may take.
_CHECK_EVERY = 2**20

#: Bytes that a number takes while it is read, as its array grows; a label; a letter of one.
_NUMBER, _LABEL, _LETTER = 16, 128, 4


def read_csv(path: Path, wanted: Wanted) -> FileSamples:
    """Samples of a CSV file."""
    try:
        with opened(path) as file, text_of(file) as text:
            refuse_spreadsheet(file.read(512), path)
            file.seek(0)
            return _read(text, path, wanted)
    except UnicodeDecodeError as error:
        raise not_utf8(path, error) from error
    except csv.Error as error:
        raise ValueError(f"{path} is not a CSV file: {error}") from error


def _read(text: Any, path: Path, wanted: Wanted) -> FileSamples:
    first_line = next(iter(TextLines(text, str(path))), "")
    delimiter = wanted.delimiter or _delimiter(first_line, path)
    start = list(islice(_Rows(text, path, delimiter), 20))
    if not start:
        raise ValueError(f"{path} is empty")
    has_header = _looks_like_header(start) if wanted.header is None else wanted.header
    check_claim(0, len(start[0]), str(path))
    names = [name.strip() for name in start[0]] if has_header else None
    header = Header(names, len(start[0]), str(path))
    roles = header.roles(wanted)

    def as_table() -> FileSamples:
        return _read_table(_Rows(text, path, delimiter), has_header, header, roles, wanted, path)

    if wanted.texts:
        return as_table()
    rows = _Rows(text, path, delimiter)
    each = iter(rows)
    if has_header:
        next(each)
    values, labels, weights = array("d"), [], array("d")
    pick = _picker(roles.features)
    width, label_bytes, allowance = len(start[0]), 0, Allowance(str(path))
    used = [*roles.features, *([] if roles.weights is None else [roles.weights])]
    for row in each:
        if len(row) != width:
            raise ValueError(f"{rows.place}: found {len(row)} fields, expected {width}")
        fields = pick(row)
        try:
            if "_" in "".join(fields):  # float would read 1_2 as 12
                raise ValueError
            values.extend(map(float, fields))
            if roles.weights is not None:
                weights.append(_number(row[roles.weights]))
        except ValueError:
            if wanted.table:
                return as_table()
            _explain(row, used, header, rows.place)
        if roles.target is not None:
            label = row[roles.target].strip()
            if wanted.labels and is_missing(label):
                name = header.names[roles.target]
                raise ValueError(f"{rows.place}: the label (column {name!r:.60}) is missing")
            labels.append(label)
            label_bytes += _LABEL + _LETTER * len(label)
        allowance.check(_NUMBER * len(values) + label_bytes)

    if not values:
        raise ValueError(f"{path} has a header but no samples")
    X = np.frombuffer(values, dtype=np.float64).reshape(-1, len(roles.features))
    feature_names = header.feature_names(roles, wanted)
    if wanted.table and np.isnan(X).any():
        return as_table()
    check_finite(X, [header.names[j] for j in roles.features], str(path))
    return FileSamples(
        X=X,
        labels=(
            parse_labels(labels, str(path)) if wanted.labels and roles.target is not None else None
        ),
        weights=np.array(weights) if roles.weights is not None else None,
        feature_names=feature_names,
        target=None if roles.target is None else header.names[roles.target],
        source=str(path),
    )


def _read_table(
    rows: _Rows, has_header: bool, header: Header, roles: Roles, wanted: Wanted, path: Path
) -> FileSamples:
    """Samples with columns of text or gaps, column by column."""
    each = iter(rows)
    if has_header:
        next(each)
    features = [
        TextColumn(header.names[j], str(path), wanted.missing_marks) for j in roles.features
    ]
    labels, weights = TextColumn("labels", str(path)), array("d")
    width, allowance = len(header.names), Allowance(str(path))
    held = checked = 0
    for row in each:
        if len(row) != width:
            raise ValueError(f"{rows.place}: found {len(row)} fields, expected {width}")
        for column, j in zip(features, roles.features, strict=True):
            column.add(row[j])
        if roles.weights is not None:
            try:
                weights.append(_number(row[roles.weights]))
            except ValueError:
                _explain(row, [roles.weights], header, rows.place)
        if roles.target is not None:
            if wanted.labels and is_missing(row[roles.target]):
                name = header.names[roles.target]
                raise ValueError(f"{rows.place}: the label (column {name!r:.60}) is missing")
            labels.add(row[roles.target])
        held += len(row) * CODE_BYTES + sum(map(len, row))  # at most, as texts repeat
        if held > checked:
            allowance.check(sum(column.size for column in features) + labels.size)
            checked = held + _CHECK_EVERY
    texts = {header.names[header.find(name, "--categorical")] for name in wanted.texts}
    arrays = [column.array(as_text=column.name in texts) for column in features]
    return FileSamples(
        X=ColumnTable([column.name for column in features], arrays),
        labels=(
            parse_labels(labels.array(as_text=True).tolist(), str(path))
            if wanted.labels and roles.target is not None
            else None
        ),
        weights=np.array(weights) if roles.weights is not None else None,
        feature_names=[column.name for column in features],
        target=None if roles.target is None else header.names[roles.target],
        source=str(path),
    )


class _Rows:
    """The rows of a file from its start, without those that are empty."""

    def __init__(self, text: Any, path: Path, delimiter: str) -> None:
        text.seek(0)
        self._path, self._lines = path, TextLines(text, str(path))
        # Strict, because a quotation mark that nobody closes would swallow the rows after it.
        self._reader = csv.reader(
            self._lines, delimiter=delimiter, skipinitialspace=True, strict=True
        )

    def __iter__(self) -> Iterator[list[str]]:
        for row in self._reader:
            self._lines.pending = 0
            if row:
                yield row

    @property
    def place(self) -> str:
        """Where the last row was."""
        return f"{self._path}, line {self._reader.line_num}"


def _delimiter(line: str, path: Path) -> str:
    if ".tsv" in path.suffixes:
        return "\t"
    outside = "".join(line.split('"')[::2])  # what stands in quotes delimits nothing
    counts = {delimiter: outside.count(delimiter) for delimiter in DELIMITERS}
    best = max(counts, key=lambda delimiter: counts[delimiter])
    return best if counts[best] else ","


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


def _number(field: str) -> float:
    if "_" in field:
        raise ValueError
    return float(field)


def _picker(columns: Sequence[int]) -> Any:
    if len(columns) == 1:
        only = columns[0]
        return lambda row: (row[only],)
    return itemgetter(*columns)


def _explain(row: Sequence[str], columns: Sequence[int], header: Header, place: str) -> NoReturn:
    """``ValueError`` about the first field that is not a number."""
    for j in columns:
        field = row[j].strip()
        if is_number(field):
            continue
        column = f"{header.names[j]!r:.60}"
        if is_missing(field) or field == "-":
            found = f" ({field!r:.60})" if field else ""
            raise ValueError(
                f"{place}: the value of column {column} is missing{found}; fill in or leave out "
                "such rows first"
            )
        if is_comma_number(field):
            raise ValueError(f"{place}: column {column} holds {field!r:.60}: {about_comma(field)}")
        raise ValueError(
            f"{place}: column {column} holds {field[:40]!r}, but features must be numbers: "
            f"leave it out with --drop {column}, or code it as numbers (a column per category)"
        )
    raise ValueError(f"{place}: found something other than numbers")
