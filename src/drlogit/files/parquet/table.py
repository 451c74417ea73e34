"""Parquet files, through pyarrow, opened with their own account of themselves checked.

A footer says how many rows there are and a page may repeat one value for all of them, so a file of
a kilobyte can claim, and even hold, a terabyte.  Numbers take what the footer says, which callers
compare with the memory; text is kept as codes and a dictionary, so that a long string that is
repeated is held once.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from ...rows.arrays import FloatArray

#: From here on doubles do not hold every whole number.
_LARGEST_WHOLE = 2**53


@contextmanager
def open_table(path: Path) -> Iterator[Any]:
    """A ``pyarrow.parquet.ParquetFile``; whatever pyarrow has to say is a ``ValueError``.

    To be read with ``use_threads=False``: where one column of a damaged file ends the reading,
    threads that still read others outlive the file, and crash.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise ImportError(
            f"reading {path} needs pyarrow, which is not installed: "
            'pip install "drlogit[parquet]", or save the data as CSV'
        ) from error
    try:
        with open(path, "rb") as raw:
            with pq.ParquetFile(raw) as file:
                texts = [f.name for f in file.schema_arrow if is_text(f.type)]
                _check_rows(file.metadata, path)
            raw.seek(0)
            options = {"read_dictionary": texts, "page_checksum_verification": True}
            with pq.ParquetFile(raw, **options) as file:
                yield file
    except (pa.ArrowException, UnicodeDecodeError) as error:
        raise _damaged(path, error) from error
    except OSError as error:
        if error.errno is not None:  # the system's own; pyarrow's have no number
            raise
        raise _damaged(path, error) from error


def is_number(kind: Any) -> bool:
    """Whether a column of that type can be a feature."""
    import pyarrow as pa

    tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_boolean)
    return any(test(kind) for test in tests)


def doubles(column: Any, name: str, path: Path) -> FloatArray:
    """A column of numbers, in one piece or several; NaN where one is missing.

    ``ValueError`` for whole numbers that doubles do not tell from their neighbours.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    if column.type in (pa.int64(), pa.uint64()):
        for value in pc.min_max(column).values():
            if value.is_valid and abs(value.as_py()) > _LARGEST_WHOLE:
                raise ValueError(
                    f"{path}: column {name!r:.60} holds the whole number {value}, beyond 2^53, "
                    "which double precision would round: leave the column out if it is a key, "
                    "else store it as doubles"
                )
    return np.asarray(column.cast(pa.float64(), safe=False), dtype=np.float64)


def is_text(kind: Any) -> bool:
    """Whether a column of that type holds text."""
    import pyarrow as pa

    view = getattr(pa.types, "is_string_view", None)  # since pyarrow 16
    return bool(
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or (view is not None and view(kind))
    )


def _check_rows(metadata: Any, path: Path) -> None:
    """The footer must agree with itself on how many rows there are."""
    groups = [metadata.row_group(k) for k in range(metadata.num_row_groups)]
    lengths = [group.num_rows for group in groups]
    if min(lengths, default=0) < 0 or sum(lengths) != metadata.num_rows:
        raise ValueError(
            f"{path} is damaged: it says {metadata.num_rows} rows, and its parts {sum(lengths)}"
        )


def _damaged(path: Path, error: Exception) -> ValueError:
    found = " ".join(str(error).split())
    return ValueError(f"{path} is damaged or no Parquet file: {found:.120}")
