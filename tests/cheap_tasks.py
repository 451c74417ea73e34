"""Tasks of no cost, for tests of what happens around tasks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from drlogit.reproduce.tasks import Results, Task, circumstances


@dataclass(frozen=True)
class Square(Task):
    """A task of no cost."""

    number: int

    def run(self, results):
        return {"square": self.number**2, "filler": "x" * 200}

    def line(self, row):
        return f"{row['square']}"


def squares(count: int) -> list[Square]:
    return [Square("test", "none", number) for number in range(count)]


def results_in(folder: Path, **other) -> Results:
    return Results(folder / "rows.jsonl", {**circumstances(1), **other})
