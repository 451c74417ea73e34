"""Rows on disk: one JSON object per line, one file per suite, only ever appended to."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from drlogit.reproduce import store
from drlogit.reproduce.store import Row

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
    store.append(folder / f"{suite}.jsonl", rows)


def read(folder: Path, suite: str) -> list[Row]:
    """All rows of a suite, oldest first; a line torn by a kill is none."""
    return store.read(folder / f"{suite}.jsonl").rows


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
