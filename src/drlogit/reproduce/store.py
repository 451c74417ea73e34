"""Rows on disk: one JSON object per line, only ever appended to.

A process can be killed at any moment, so the last line may be cut anywhere.  A line counts only
if it is a whole JSON object, which the beginning of one never is.  The next to append begins a
new line first, so that nothing is ever glued to a torn one.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..files.limits import check_memory
from ..files.strict_json import dumps, loads

Row = dict[str, Any]


@dataclass(frozen=True)
class Contents:
    """What a file holds: its rows, oldest first, and how many lines were not rows."""

    rows: list[Row]
    damaged: int = 0


def append(path: Path, rows: Iterable[Row]) -> None:
    """Add rows with one write: those given together belong together."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = "".join(dumps(row, indent=None) + "\n" for row in rows)
    # In one call of the system, so that two processes do not write into each other's lines.
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)  # as is on Windows
    descriptor = os.open(path, flags, 0o666)
    try:
        if _is_torn(descriptor):
            lines = "\n" + lines
        contents = memoryview(lines.encode())
        while contents:
            contents = contents[os.write(descriptor, contents) :]
    finally:
        os.close(descriptor)


def read(path: Path) -> Contents:
    """The rows of a file; none if there is no file."""
    try:
        check_memory(path.stat().st_size, str(path))
        contents = path.read_bytes()
    except FileNotFoundError:
        return Contents([])
    rows, damaged = [], 0
    for line in contents.split(b"\n"):
        row = _row(line)
        if row is not None:
            rows.append(row)
        elif line:
            damaged += 1
    return Contents(rows, damaged)


def _is_torn(descriptor: int) -> bool:
    """Whether the file ends within a line."""
    size = os.fstat(descriptor).st_size
    if size == 0:
        return False
    os.lseek(descriptor, size - 1, os.SEEK_SET)
    return os.read(descriptor, 1) != b"\n"


def _row(line: bytes) -> Row | None:
    try:
        row = loads(line.decode())
    except ValueError:  # also of text that is not UTF-8
        return None
    if not isinstance(row, dict):
        return None
    return {name: float(v) if v in ("inf", "-inf") else v for name, v in row.items()}
