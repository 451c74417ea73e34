"""What is measured, and what has been.

A task says in flat fields everything that decides its figures, and gives one row.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

from ..files.strict_json import dumps
from . import store
from .data import why_missing
from .environment import environment
from .store import Row

#: To be raised when the meaning of a task changes though its fields do not.
PROTOCOL = 1


class Obstacle(NamedTuple):
    """Why a task is not run: in a word or two for a cell, and in a sentence."""

    short: str
    long: str


@dataclass(frozen=True)
class Task(ABC):
    """One measurement.  The fields of a subclass are numbers and text, and its row repeats them."""

    experiment: str
    data: str

    @property
    def name(self) -> str:
        """A digest of all fields: equal for equal tasks, in every process."""
        fields = {"kind": type(self).__name__, "protocol": PROTOCOL, **asdict(self)}
        return hashlib.sha256(dumps(fields, indent=None).encode()).hexdigest()[:16]

    def obstacle(self, results: Results) -> Obstacle | None:
        """Why not to run it, judged by the rows so far; None if nothing speaks against it."""
        return None

    def without_data(self) -> Obstacle | None:
        """For tasks on real data, which may not be there."""
        reason = why_missing(self.data)
        return None if reason is None else Obstacle("no data", reason)

    @abstractmethod
    def run(self, results: Results) -> Row:
        """Measure: the fields that the row has besides those of the task."""

    @abstractmethod
    def line(self, row: Row) -> str:
        """What a person who waits wants to see of the row."""


class Results:
    """The rows that count: measured by one version of the library on one kind of machine.

    ``stale`` and ``damaged`` count the other lines of the file, which are left alone.
    """

    def __init__(self, path: Path, circumstances: Row) -> None:
        found = store.read(path)
        self.path = path
        self.circumstances = circumstances
        self.damaged = found.damaged
        self._rows: dict[str, Row] = {
            row["task"]: row for row in found.rows if _measured(row, circumstances)
        }
        self.stale = sum(not _measured(row, circumstances) for row in found.rows)

    @classmethod
    def of_last_run(cls, path: Path) -> Results:
        """Those measured like the last row of the file, whatever is installed now."""
        rows = store.read(path).rows
        if not rows:
            raise ValueError(f"{path.name} holds no results in {path.parent}")
        return cls(path, {name: rows[-1].get(name) for name in circumstances(1)})

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, task: Task) -> bool:
        return task.name in self._rows

    def get(self, task: Task) -> Row | None:
        """The row of a task, if it is done."""
        return self._rows.get(task.name)

    def of(self, tasks: Iterable[Task]) -> list[Row]:
        """The rows there are of some tasks."""
        return [self._rows[task.name] for task in tasks if task.name in self._rows]

    def where(self, **fields: object) -> list[Row]:
        """All rows with these values."""
        wanted = fields.items()
        return [
            row
            for row in self._rows.values()
            if all(row.get(name) == value for name, value in wanted)
        ]

    def add(self, task: Task, fields: Row) -> Row:
        """Keep what a task gave, here and on disk."""
        row = {"task": task.name, **asdict(task), **fields, **self.circumstances}
        store.append(self.path, [row])
        self._rows[task.name] = row
        return row


def circumstances(threads: int) -> Row:
    """What must agree for two rows to be compared."""
    return {"threads": threads, **environment()}


def _measured(row: Row, circumstances: Row) -> bool:
    known = all(row.get(name, ()) == value for name, value in circumstances.items())
    return known and isinstance(row.get("task"), str)
