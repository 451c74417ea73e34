"""Tables: CSV through pandas, Parquet through pyarrow, columns by what they are for."""

from __future__ import annotations

import csv
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from ..estimators.tables.frames import is_number
from ..estimators.tables.text_columns import numbers_in_text
from ..rows.row_blocks import BLOCK_BYTES
from .columns import FileSamples, Header, Roles, Wanted
from .formats import DELIMITERS, open_text, opened, refuse_spreadsheet
from .values import (
    check_finite,
    check_whole,
    is_missing,
    parse_labels,
    text_column,
    tidy_labels,
)

#: How pandas calls an index without a name: no feature.
_PANDAS_INDEX = "__index_level_"


# --- CSV -------------------------------------------------------------------------------------


def read_csv(path: Path, wanted: Wanted) -> FileSamples:
    """Samples of a CSV file."""
    layout = csv_layout(path, wanted)
    header = Header(layout["names"], layout["width"], str(path))
    roles = header.roles(wanted)
    texts = {header.find(name, "--categorical") for name in wanted.texts}
    as_text = texts | {header.find(name, "--numbers") for name in wanted.numbers}
    as_text |= {roles.target} if roles.target is not None and wanted.labels else set()
    options = csv_options(layout, wanted, as_text)
    with _errors_of(path):
        frame = _pandas().read_csv(path, **options)
        if not len(frame):
            raise ValueError(f"{path} has a header but no samples")
        if frame[layout["width"] - 1].isna().any():  # which may be a row that is cut short
            _check_widths(path, layout)
        # "TRUE" is a level like others, not a truth value: its spelling is wanted back.
        truths = {j for j in roles.features if frame[j].dtype.kind == "b"} - texts
        if truths:
            again = _pandas().read_csv(path, **csv_options(layout, wanted, as_text | truths))
            frame = frame.astype(dict.fromkeys(truths, object))
            frame[[*truths]] = again[[*truths]]
    return _samples(frame, header, roles, wanted, {header.names[j] for j in texts})


def csv_layout(path: Path, wanted: Wanted) -> dict[str, Any]:
    """Delimiter, width and names of a CSV file, found out from its beginning."""
    with opened(path) as file:
        refuse_spreadsheet(file.read(512), path)
    with _errors_of(path), open_text(path) as text:
        lines = text.readlines(1 << 16)
    delimiter = wanted.delimiter or _delimiter(lines[0] if lines else "", path)
    with _errors_of(path):
        reader = csv.reader(lines, delimiter=delimiter, skipinitialspace=True)
        rows = list(islice((row for row in reader if row), 20))
    if not rows:
        raise ValueError(f"{path} is empty")
    has_header = _looks_like_header(rows) if wanted.header is None else wanted.header
    names = [name.strip() for name in rows[0]] if has_header else None
    return {"delimiter": delimiter, "names": names, "width": len(rows[0])}


def csv_options(layout: dict[str, Any], wanted: Wanted, as_text: set[int]) -> dict[str, Any]:
    """How pandas is to read such a file: columns by position, rows as wide as the first."""
    return {
        "sep": layout["delimiter"],
        "header": None if layout["names"] is None else 0,
        "names": list(range(layout["width"])),
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


def _check_widths(path: Path, layout: dict[str, Any]) -> None:
    """``ValueError`` for a row with too few fields, which pandas fills up with missing ones."""
    with open_text(path) as text:
        reader = csv.reader(text, delimiter=layout["delimiter"], skipinitialspace=True)
        for row in reader:
            if row and len(row) != layout["width"]:
                raise ValueError(
                    f"{path}, line {reader.line_num}: found {len(row)} fields, expected "
                    f"{layout['width']}"
                )


@contextmanager
def _errors_of(path: Path) -> Iterator[None]:
    """What pandas, csv and decompressors say, in one line that names the file."""
    from pandas.errors import ParserError

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path} is not UTF-8 text: it holds the byte 0x{error.object[error.start]:02x}, as "
            "text in Latin-1 or another encoding does; save it as UTF-8 (in Excel: CSV UTF-8), or "
            "convert it: iconv -f latin1 -t utf-8"
        ) from None
    except ParserError as error:
        found = re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", str(error))
        if found is None:
            raise ValueError(f"{path} is not a CSV file: {error!s:.120}") from None
        raise ValueError(
            f"{path}, line {found[2]}: found {found[3]} fields, expected {found[1]}"
        ) from None
    except csv.Error as error:
        raise ValueError(f"{path} is not a CSV file: {error}") from None


def read_csv_blocks(path: Path, wanted: Wanted, block_rows: int | None) -> Iterator[Any]:
    """Features, labels and names of a CSV file of numbers, some rows at a time."""
    layout = csv_layout(path, wanted)
    header = Header(layout["names"], layout["width"], str(path))
    roles = header.roles(wanted)
    rows = block_rows or max(1, BLOCK_BYTES // (8 * layout["width"]))
    options = csv_options(layout, wanted, {roles.target} if roles.target is not None else set())
    done = 0
    with _errors_of(path), _pandas().read_csv(path, chunksize=rows, **options) as chunks:
        for frame in chunks:
            header.source = f"{path}, from row {done + 1} on"
            found = _samples(frame.reset_index(drop=True), header, roles, wanted, set())
            names = [header.names[j] for j in roles.features]
            yield found.X.to_numpy(np.float64), found.labels, names
            done += len(frame)


# --- Parquet ---------------------------------------------------------------------------------


def read_parquet(path: Path, wanted: Wanted) -> FileSamples:
    """Samples of a Parquet file; only the columns wanted are read."""
    with parquet_file(path) as file:
        names = [n for n in file.schema_arrow.names if not n.startswith(_PANDAS_INDEX)]
        header = Header(names, len(names), str(path))
        roles = header.roles(wanted)
        used = [j for j in (*roles.features, roles.target, roles.weights) if j is not None]
        chosen = [header.names[j] for j in used]
        frame = parquet_frame(file.read(columns=list(dict.fromkeys(chosen))))[chosen]
    if not len(frame):
        raise ValueError(f"{path} has no samples")
    texts = {header.names[header.find(name, "--categorical")] for name in wanted.texts}
    for j in roles.features:
        check_whole(frame[header.names[j]], header.names[j], str(path))
    # The file knows what is text: codes such as 007 are not numbers.
    texts |= {name for name in chosen if _holds_text(frame[name])}
    frame.columns = used
    return _samples(frame, header, roles, wanted, texts)


def read_parquet_blocks(path: Path, wanted: Wanted, block_rows: int | None) -> Iterator[Any]:
    """Features, labels and names of a table of numbers, some rows at a time.

    float32 if all columns are, else float64.
    """
    with parquet_file(path) as file:
        names = [n for n in file.schema_arrow.names if not n.startswith(_PANDAS_INDEX)]
        header = Header(names, len(names), str(path))
        roles = header.roles(wanted)
        features = [header.names[j] for j in roles.features]
        kinds = {str(file.schema_arrow.field(name).type) for name in features}
        dtype = np.float32 if kinds <= {"float", "halffloat"} else np.float64
        rows, done = block_rows or max(1, BLOCK_BYTES // (8 * len(names))), 0
        for batch in file.iter_batches(rows, columns=names):
            if not batch.num_rows:
                continue
            frame = parquet_frame(_pyarrow().Table.from_batches([batch]))[names]
            header.source = f"{path}, from row {done + 1} on"
            for name in features:
                check_whole(frame[name], name, header.source)
            texts = {name for name in features if _holds_text(frame[name])}
            frame.columns = list(range(len(names)))
            found = _samples(frame, header, roles, wanted, texts)
            yield found.X.to_numpy(dtype), found.labels, features
            done += batch.num_rows


def _holds_text(column: Any) -> bool:
    return getattr(column.dtype, "kind", "O") == "O" and isinstance(
        next((value for value in column if value is not None), None), str
    )


@contextmanager
def parquet_file(path: Path) -> Iterator[Any]:
    """A ``pyarrow.parquet.ParquetFile``; whatever pyarrow has to say is a ``ValueError``."""
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
            yield file
    except (pa.ArrowException, OSError) as error:
        if getattr(error, "errno", None) is not None:  # the system's own
            raise
        found = " ".join(str(error).split())
        raise ValueError(f"{path} is damaged or no Parquet file: {found:.120}") from error


def parquet_frame(table: Any) -> Any:
    """A table of pyarrow as a data frame; decimal numbers are numbers."""
    import pyarrow as pa

    fields = [
        field.with_type(pa.float64()) if pa.types.is_decimal(field.type) else field
        for field in table.schema
    ]
    return table.cast(pa.schema(fields)).to_pandas(ignore_metadata=True)


# --- both ------------------------------------------------------------------------------------


def _samples(
    frame: Any, header: Header, roles: Roles, wanted: Wanted, texts: set[str]
) -> FileSamples:
    """What the columns of a frame, which go by position, are for; each by its meaning."""
    source = header.source
    remarks: list[str] = []
    numbers = {header.find(name, "--numbers") for name in wanted.numbers}
    features = {
        j: _numbers_in(frame[j], header.names[j], remarks)
        if j in numbers
        else feature(frame[j], header.names[j], texts, wanted, source)
        for j in roles.features
    }
    numeric = [j for j, values in features.items() if values.dtype.kind in "iuf"]
    matrix = np.empty((len(frame), len(numeric)))  # by rows, as it will be used
    for place, j in enumerate(numeric):
        matrix[:, place] = features[j]
    check_finite(matrix, [header.names[j] for j in numeric], source, gaps=wanted.table)
    names = header.feature_names(roles, wanted)
    if len(numeric) == len(features):
        X = _pandas().DataFrame(matrix, copy=False)
    else:
        X = _pandas().DataFrame(features, copy=False)
    if names is None and (len(numeric) < len(features) or np.isnan(matrix).any()):
        names = [header.names[j] for j in roles.features]  # a table, whose columns have names
    X.columns = list(range(len(features))) if names is None else names
    target = None if roles.target is None else header.names[roles.target]
    labels = None
    if wanted.labels and roles.target is not None:
        labels = _labels(frame[roles.target], header.names[roles.target], source)
    weights = None
    if roles.weights is not None:
        name = header.names[roles.weights]
        plain = Wanted(missing_marks=wanted.missing_marks)
        weights = np.asarray(feature(frame[roles.weights], name, set(), plain, source), dtype=float)
        check_finite(weights[:, None], [name], source)
    return FileSamples(X, labels, weights, names, target, source, remarks=tuple(remarks))


def _numbers_in(column: Any, name: str, remarks: list[str]) -> Any:
    """The numbers that a column of text holds; what else is in it is remarked, and missing."""
    codes, found = _pandas().factorize(column)
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


def feature(column: Any, name: str, texts: set[str], wanted: Wanted, source: str) -> Any:
    """A column as numbers, truth values or a categorical; ``ValueError`` if it is none of these."""
    kind = getattr(column.dtype, "kind", "O")
    if name not in texts:
        if kind in "iuf":
            return column.to_numpy()
        if kind == "b":
            return column.to_numpy() if wanted.table else column.to_numpy(np.float64)
        if kind in "mM":
            raise ValueError(
                f"{source}: column {name!r:.60} holds {column.dtype}, but features must be numbers "
                f"or text: leave it out with --drop {name!r:.60}, or make it a number"
            )
    try:
        codes, found = _pandas().factorize(column)
    except TypeError:
        raise ValueError(
            f"{source}: column {name!r:.60} holds values of several parts, but features must be "
            "numbers or text"
        ) from None
    values = list(found)
    if name not in texts and not all(isinstance(value, str) for value in values):
        if all(isinstance(value, bool) for value in values):
            return column.to_numpy(dtype=object)  # with gaps
        return column.to_numpy(dtype=np.float64)  # whole numbers beyond 64 bits
    spelt = [str(value).strip() for value in values]
    return text_column(
        codes, spelt, name, source, as_text=name in texts, table=wanted.table,
        marks=wanted.missing_marks,
    )  # fmt: skip


def _labels(column: Any, name: str, source: str) -> Any:
    gone = np.flatnonzero(column.isna())
    if gone.size:
        raise ValueError(
            f"{source}: the label (column {name!r:.60}) of row {gone[0] + 1} is missing"
        )
    codes, found = _pandas().factorize(column)
    if not all(isinstance(label, str) for label in found):
        return tidy_labels(column.to_numpy(), f"{source} ({name})")
    texts = [str(label) for label in found]
    blank = [k for k, text in enumerate(texts) if is_missing(text)]
    if blank:
        row = int(np.flatnonzero(codes == blank[0])[0])
        raise ValueError(f"{source}: the label (column {name!r:.60}) of row {row + 1} is missing")
    return parse_labels(texts, source)[codes]


def _pyarrow() -> Any:
    import pyarrow

    return pyarrow


def _pandas() -> Any:
    import pandas  # not for who has a matrix

    return pandas
