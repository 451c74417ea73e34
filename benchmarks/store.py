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

#: Results that are kept, and those of trials.
RESULTS = Path(__file__).parent / "results"
TRIALS = Path(__file__).parent.parent / "build" / "benchmarks"

#: The fields that tell one problem from another.
CASE = ("suite", "data", "storage", "epsilon", "kappa", "norm", "tol", "fit_intercept", "threads")


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


def case_key(row: Row) -> tuple[Any, ...]:
    """Which problem a row is about, and under which limit on threads."""
    return tuple(row[name] for name in CASE)


def append(folder: Path, suite: str, rows: Iterable[Row]) -> None:
    """Add rows to the file of a suite."""
    append_rows(folder / f"{suite}.jsonl", rows)


def read(folder: Path, suite: str) -> list[Row]:
    """All rows of a suite, oldest first."""
    return read_rows(folder / f"{suite}.jsonl")


def latest(rows: Iterable[Row]) -> dict[tuple[Any, ...], dict[str, Row]]:
    """For every problem its last run: rows by solver, measured side by side in one process."""
    groups: dict[tuple[Any, ...], dict[str, Row]] = {}
    for row in rows:
        key = case_key(row)
        group = groups.get(key)
        if group is None or next(iter(group.values()))["run"] != row["run"]:
            groups[key] = group = {}
        group[row["solver"]] = row
    return groups
