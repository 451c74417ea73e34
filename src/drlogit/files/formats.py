"""Telling the format of data files, and opening them compressed or not."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

FORMATS = ("csv", "npz", "parquet", "svmlight")

_SUFFIXES = {
    ".csv": "csv",
    ".tsv": "csv",
    ".npz": "npz",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".libsvm": "svmlight",
    ".svm": "svmlight",
    ".svmlight": "svmlight",
}

_OPENERS: dict[str, Callable[..., Any]] = {".bz2": bz2.open, ".gz": gzip.open, ".xz": lzma.open}

_SVMLIGHT_LINE = re.compile(r"[-+.\deE]+(\s+qid:\d+)?(\s+\d+:[-+.\w]+)+\s*(#.*)?")

DELIMITERS = ",;\t|"

#: How a workbook begins: old Excel's, and what is in the first part of the others, zip archives.
_OLD_WORKBOOK = b"\xd0\xcf\x11\xe0"
_WORKBOOK_PARTS = (b"[Content_Types].xml", b"_rels/", b"xl/", b"opendocument.spreadsheet")


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """The uncompressed bytes of a file; what is wrong with the compression is a ``ValueError``."""
    try:
        with _OPENERS.get(path.suffix.lower(), open)(path, "rb") as file:
            yield file
    except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile) as error:
        raise ValueError(f"{path} is damaged or incomplete: {error}") from error
    except OSError as error:
        if error.errno is not None:  # bz2 raises a bare one for damage
            raise
        raise ValueError(f"{path} is damaged or incomplete: {error}") from error


@contextmanager
def open_text(path: Path) -> Iterator[IO[str]]:
    """The same as text."""
    with opened(path) as file, io.TextIOWrapper(file, encoding="utf-8-sig", newline="") as text:
        yield text


def format_of(path: Path, given: str | None) -> str:
    """The format of a file: as given, by its name, or else by how it begins."""
    if given is not None:
        return given
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in _OPENERS:
        suffixes.pop()
    if suffixes and suffixes[-1] in _SUFFIXES:
        return _SUFFIXES[suffixes[-1]]
    with opened(path) as file:
        start = file.read(1 << 16)
    refuse_spreadsheet(start, path)
    if start.startswith(b"PAR1"):
        return "parquet"
    if start.startswith(b"PK\x03\x04"):
        return "npz"
    if not start.strip():
        raise ValueError(f"{path} is empty")
    lines = start.decode("utf-8", errors="replace").splitlines()
    lines = [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]
    # A sample without any feature is a bare label, so a few lines may have to be looked at.
    if any(_SVMLIGHT_LINE.fullmatch(line) for line in lines[:100]):
        return "svmlight"
    if lines and any(delimiter in lines[0] for delimiter in DELIMITERS):
        return "csv"
    raise ValueError(
        f"cannot tell what {path} is by its name or contents: say --format {'|'.join(FORMATS)}"
    )


def refuse_spreadsheet(start: bytes, path: Path) -> None:
    """``ValueError`` if a file that begins so is a workbook, whatever its name is."""
    zipped = start.startswith(b"PK\x03\x04") and any(p in start[:512] for p in _WORKBOOK_PARTS)
    if zipped or start.startswith(_OLD_WORKBOOK):
        raise ValueError(
            f"{path} is a spreadsheet, which is not read: save the sheet as CSV (in Excel: "
            "CSV UTF-8)"
        )
