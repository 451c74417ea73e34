"""Rows on disk: one JSON object per line, only ever appended to.

A process can be killed at any moment, so the last line may be cut anywhere: a line counts only if
it is a whole JSON object, and the next to append begins a new line first.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

Row = dict[str, Any]

#: Results that are kept.
RESULTS = Path(__file__).parent / "results"


def append_rows(path: Path, rows: Iterable[Row]) -> None:
    """Add rows with one write: those given together belong together."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = "".join(json.dumps({n: _plain(v) for n, v in row.items()}) + "\n" for row in rows)
    torn = path.exists() and path.stat().st_size and not path.read_bytes().endswith(b"\n")
    with path.open("ab") as file:
        file.write(b"\n" * bool(torn) + lines.encode())


def read_rows(path: Path) -> list[Row]:
    """The rows of a file, oldest first; none if there is no file."""
    lines = path.read_bytes().split(b"\n") if path.exists() else []
    return [row for line in lines if (row := _row(line)) is not None]


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, float) and math.isinf(value) else value


def _row(line: bytes) -> Row | None:
    try:
        row = json.loads(line)
    except ValueError:
        return None
    if not isinstance(row, dict):
        return None
    return {name: float(v) if v in ("inf", "-inf") else v for name, v in row.items()}
