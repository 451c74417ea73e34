"""Rows on disk: one JSON object per line, one file per suite, only ever appended to."""

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


def case_key(row: Row) -> tuple[Any, ...]:
    """Which problem a row is about, and under which limit on threads."""
    return tuple(row[name] for name in CASE)


def append(folder: Path, suite: str, rows: Iterable[Row]) -> None:
    """Add rows in one write: those of one case belong together."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = "".join(json.dumps(_encoded(row), allow_nan=False) + "\n" for row in rows)
    with (folder / f"{suite}.jsonl").open("a", encoding="utf-8") as file:
        file.write(lines)


def read(folder: Path, suite: str) -> list[Row]:
    """All rows of a suite, oldest first."""
    path = folder / f"{suite}.jsonl"
    if not path.exists():
        return []
    return [_decoded(json.loads(line)) for line in path.read_text("utf-8").splitlines()]


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


def _encoded(row: Row) -> Row:
    """κ = ∞ and failed numbers in words that JSON has."""
    return {
        name: _word(value) if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in row.items()
    }


def _word(value: float) -> str | None:
    return None if math.isnan(value) else ("inf" if value > 0.0 else "-inf")


def _decoded(row: Row) -> Row:
    return {name: float(v) if v in ("inf", "-inf") else v for name, v in row.items()}
