"""Telling the format of data files, opening them compressed or not, and what is wrong with them."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import lzma
import re
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import IO, Any, TextIO

FORMATS = ("csv", "parquet", "svmlight")

_SUFFIXES = {
    ".csv": "csv",
    ".tsv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".libsvm": "svmlight",
    ".svm": "svmlight",
    ".svmlight": "svmlight",
}

_OPENERS: dict[str, Callable[..., Any]] = {".bz2": bz2.open, ".gz": gzip.open, ".xz": lzma.open}

_SVMLIGHT_LINE = re.compile(r"[-+.\deE]+(\s+qid:\d+)?(\s+\d+:[-+.\w]+)+\s*(#.*)?")

DELIMITERS = ",;\t|"

#: How old Excel's workbooks begin; the others are archives.
_OLD_WORKBOOK, _ARCHIVE = b"\xd0\xcf\x11\xe0", b"PK\x03\x04"

#: What libraries raise for files that are damaged or something else, besides ``OSError``.
_ERRORS = (
    ValueError, TypeError, EOFError, NotImplementedError, zlib.error, lzma.LZMAError, csv.Error,
    zipfile.BadZipFile,
)  # fmt: skip


#: What ``-`` stands for, as messages call it.
STANDARD_INPUT = Path("standard input")


def opened(path: Path) -> IO[bytes]:
    """The uncompressed bytes of a file, or of standard input."""
    if path is STANDARD_INPUT:
        return io.BytesIO(_contents(sys.stdin))
    file: IO[bytes] = _OPENERS.get(path.suffix.lower(), open)(path, "rb")
    return file


@lru_cache(maxsize=1)
def _contents(stream: TextIO) -> bytes:
    """All bytes of a stream, which can be read only once and is looked at several times."""
    return stream.buffer.read()


def open_text(path: Path, encoding: str) -> IO[str]:
    """The same as text."""
    return io.TextIOWrapper(opened(path), encoding=encoding, newline="")


@contextmanager
def plain_errors(path: Path) -> Iterator[None]:
    """Whatever is wrong with a file as a ``ValueError`` of one line that names it."""
    try:
        yield
    except UnicodeDecodeError as error:
        wide = b"\0" in error.object  # as in no text of single bytes
        name, code = ("UTF-16", "utf-16") if wide else ("Latin-1 or another encoding", "latin1")
        raise ValueError(
            f"{path} is not {error.encoding.upper()} text: it holds the byte "
            f"0x{error.object[error.start]:02x}, which occurs in {name}; name the encoding with "
            f"--encoding {code}, or save the file as UTF-8 (in Excel: CSV UTF-8)"
        ) from None
    except (*_ERRORS, OSError) as error:
        if getattr(error, "errno", None) is not None or str(path) in str(error):
            raise  # the system's, or ours
        found = " ".join(str(error).split())
        raise ValueError(f"{path} cannot be read; it may be damaged: {found:.160}") from error


def format_of(path: Path, given: str | None) -> str:
    """The format of a file: as given, by its name, or else by how it begins."""
    with opened(path) as file:
        start = file.read(1 << 16)
    if start.startswith((_OLD_WORKBOOK, _ARCHIVE)):
        raise ValueError(
            f"{path} is a spreadsheet or an archive, which drlogit does not read: "
            "save the sheet as CSV (in Excel: CSV UTF-8)"
        )
    if not start.strip():
        raise ValueError(f"{path} is empty")
    named = {suffix.lower() for suffix in path.suffixes} & _SUFFIXES.keys()
    if given is not None or named:
        return given or _SUFFIXES[named.pop()]
    if start.startswith(b"PAR1"):
        return "parquet"
    lines = start.decode("utf-8", errors="replace").splitlines()
    lines = [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]
    # A sample without any feature is a bare label, so a few lines may have to be looked at.
    if any(_SVMLIGHT_LINE.fullmatch(line) for line in lines[:100]):
        return "svmlight"
    if lines and any(delimiter in lines[0] for delimiter in DELIMITERS):
        return "csv"
    raise ValueError(
        f"the format of {path} is not clear from its name or contents: state --format "
        f"{'|'.join(FORMATS)}"
    )
