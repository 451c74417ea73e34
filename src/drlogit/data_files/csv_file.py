"""CSV files, and other text with one sample per line and a delimiter."""

from __future__ import annotations

import csv
import re
from array import array
from collections.abc import Sequence
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from .columns import MISSING, Header, Samples, Wanted, check_finite, parse_labels
from .opening import DELIMITERS, opened, text_of


def read_csv(path: Path, wanted: Wanted) -> Samples:
    """Samples of a CSV file."""
    try:
        with opened(path) as file, text_of(file) as text:
            return _read(text, path, wanted)
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 text: {error}") from error
    except csv.Error as error:
        raise ValueError(f"{path} is not a CSV file: {error}") from error


def _read(text: Any, path: Path, wanted: Wanted) -> Samples:
    first_line = text.readline()
    delimiter = wanted.delimiter or _delimiter(first_line, path)
    text.seek(0)
    reader = csv.reader(text, delimiter=delimiter, skipinitialspace=True)
    start = [row for row in islice(reader, 20) if row]
    if not start:
        raise ValueError(f"{path} is empty")
    has_header = _looks_like_header(start) if wanted.header is None else wanted.header
    names = [name.strip() for name in start[0]] if has_header else None
    header = Header(names, len(start[0]), str(path))
    roles = header.roles(wanted)

    text.seek(0)
    reader = csv.reader(text, delimiter=delimiter, skipinitialspace=True)
    if has_header:
        next(row for row in reader if row)
    values, labels, weights = array("d"), [], array("d")
    pick = _picker(roles.features)
    width = len(start[0])
    for row in reader:
        if not row:
            continue
        if len(row) != width:
            raise ValueError(
                f"{path}, line {reader.line_num}: found {len(row)} fields, expected {width}"
            )
        try:
            values.extend(map(float, pick(row)))
            if roles.weights is not None:
                weights.append(float(row[roles.weights]))
        except ValueError:
            used = [*roles.features, *([] if roles.weights is None else [roles.weights])]
            _explain(row, used, header, f"{path}, line {reader.line_num}")
        if roles.target is not None:
            label = row[roles.target].strip()
            if wanted.labels and label.lower() in MISSING - {"-"}:
                name = header.names[roles.target]
                raise ValueError(
                    f"{path}, line {reader.line_num}: the label (column {name!r}) is missing"
                )
            labels.append(label)

    if not values:
        raise ValueError(f"{path} has a header but no samples")
    X = np.frombuffer(values, dtype=np.float64).reshape(-1, len(roles.features))
    feature_names = header.feature_names(roles, wanted)
    check_finite(X, [header.names[j] for j in roles.features], str(path))
    return Samples(
        X=X,
        labels=parse_labels(labels) if wanted.labels and roles.target is not None else None,
        weights=np.array(weights) if roles.weights is not None else None,
        feature_names=feature_names,
        target=None if roles.target is None else header.names[roles.target],
        source=str(path),
    )


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
    if all(_is_number(field) for field in first):
        return False
    if not rest:
        return True
    numeric = [j for j in range(len(first)) if all(_is_number(row[j]) for row in rest if row[j:])]
    if numeric:
        return not any(_is_number(first[j]) for j in numeric if first[j].strip())
    return len(set(first)) == len(first)


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def _picker(columns: Sequence[int]) -> Any:
    if len(columns) == 1:
        only = columns[0]
        return lambda row: (row[only],)
    return itemgetter(*columns)


def _explain(row: Sequence[str], columns: Sequence[int], header: Header, place: str) -> NoReturn:
    """``ValueError`` about the first field that is not a number."""
    for j in columns:
        field = row[j].strip()
        if _is_number(field):
            continue
        column = repr(header.names[j])
        if field.lower() in MISSING:
            found = f" ({field!r})" if field else ""
            raise ValueError(
                f"{place}: the value of column {column} is missing{found}; fill in or leave out "
                "such rows first"
            )
        if re.fullmatch(r"[-+]?\d*,\d+", field):
            raise ValueError(
                f"{place}: column {column} holds {field!r}: write a decimal point, not a comma"
            )
        raise ValueError(
            f"{place}: column {column} holds {field[:40]!r}, but features must be numbers: "
            f"leave it out with --drop {column}, or code it as numbers (a column per category)"
        )
    raise ValueError(f"{place}: found something other than numbers")
