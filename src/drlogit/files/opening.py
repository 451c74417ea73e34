"""Telling the format of data files, and reading text by lines of bounded length."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from .compressed import SUFFIXES, opened
from .limits import check_line, longest_line

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

_SVMLIGHT_LINE = re.compile(r"[-+.\deE]+(\s+qid:\d+)?(\s+\d+:[-+.\w]+)+\s*(#.*)?")

DELIMITERS = ",;\t|"


def format_of(path: Path, given: str | None) -> str:
    """The format of a file: as given, by its name, or else by how it begins."""
    if given is not None:
        return given
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in SUFFIXES:
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


#: How a workbook begins: old Excel's, and what is in the first part of the others, zip archives.
_OLD_WORKBOOK = b"\xd0\xcf\x11\xe0"
_WORKBOOK_PARTS = (b"[Content_Types].xml", b"_rels/", b"xl/", b"opendocument.spreadsheet")


def refuse_spreadsheet(start: bytes, path: Path) -> None:
    """``ValueError`` if a file that begins so is a workbook, whatever its name is."""
    zipped = start.startswith(b"PK\x03\x04") and any(p in start[:512] for p in _WORKBOOK_PARTS)
    if zipped or start.startswith(_OLD_WORKBOOK):
        raise ValueError(
            f"{path} is a spreadsheet, which is not read: save the sheet as CSV (in Excel: "
            "CSV UTF-8)"
        )


def not_utf8(path: Path, error: UnicodeDecodeError) -> ValueError:
    """What to say of text in another encoding."""
    return ValueError(
        f"{path} is not UTF-8 text: it holds the byte 0x{error.object[error.start]:02x}, as text "
        "in Latin-1 or another encoding does; save it as UTF-8 (in Excel: CSV UTF-8), or convert "
        "it: iconv -f latin1 -t utf-8"
    )


def text_of(file: IO[bytes]) -> io.TextIOWrapper:
    """A file as text, line ends as they are (as the csv module wants it)."""
    return io.TextIOWrapper(file, encoding="utf-8-sig", newline="")


class TextLines:
    """The lines of a text file, with their ends.

    ``pending`` counts the characters since whoever reads last set it to zero, and may not exceed
    the length of the longest line that memory allows: a quoted field can span many lines.
    """

    def __init__(self, text: io.TextIOWrapper, source: str) -> None:
        self._text, self._source = text, source
        self._most = longest_line()
        self.pending = 0

    def __iter__(self) -> Iterator[str]:
        number = 0
        while line := self._text.readline(self._most):
            number += 1
            self.pending += len(line)
            check_line(self.pending, self._most, f"{self._source}, line {number}")
            if "\0" in line:
                raise ValueError(f"{self._source}, line {number}: a NUL byte, which text has not")
            yield line
