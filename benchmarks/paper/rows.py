"""What has been measured: rows in a file, found again by what they measure."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .. import store
from ..environment import environment
from ..store import Row

#: What tells one measurement from another.
KEY = ("experiment", "data", "method", "trial", "limit")

#: What must agree for times to be compared.
_SAME = ("cpu", "drlogit_source")


def task(experiment: str, data: str, method: str, trial: int = 0, limit: float = 0.0) -> Row:
    """One measurement; ``limit`` is on its seconds or iterations."""
    return dict(zip(KEY, (experiment, data, method, trial, limit), strict=True))


class Rows:
    """The rows of a folder that this version of the library measured on this processor.

    With ``last``, those measured like the last one there, whatever is installed now.
    """

    def __init__(self, path: Path, *, last: bool = False) -> None:
        found = store.read_rows(path)
        here = found[-1] if last and found else {"threads": 1, **environment()}
        self.circumstances = {name: here.get(name) for name in ("threads", *environment())}
        self._path = path
        kept = [row for row in found if all(row.get(name) == here[name] for name in _SAME)]
        self.left_aside = len(found) - len(kept)
        self._rows = {_key(row): row for row in kept}

    def __len__(self) -> int:
        return len(self._rows)

    def get(self, wanted: Row) -> Row | None:
        """The row of a task, if it is done."""
        return self._rows.get(_key(wanted))

    def of(self, tasks: Sequence[Row]) -> list[Row]:
        """The rows there are of some tasks."""
        return [row for wanted in tasks if (row := self.get(wanted)) is not None]

    def where(self, **fields: object) -> list[Row]:
        """All rows with these values."""
        return [row for row in self._rows.values() if fields.items() <= _simple(row).items()]

    def add(self, wanted: Row, measured: Row) -> Row:
        """Keep what a task gave, here and on disk."""
        row = {**wanted, **measured, **self.circumstances}
        store.append_rows(self._path, [row])
        self._rows[_key(row)] = row
        return row


def _key(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in KEY)


def _simple(row: Row) -> Row:
    return {name: value for name, value in row.items() if not isinstance(value, list)}


def data_of(tasks: Sequence[Row]) -> list[str]:
    """The data sets of some tasks, in order."""
    return list(dict.fromkeys(wanted["data"] for wanted in tasks))


def markdown(caption: str, columns: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """A table under its caption; nothing if it is empty."""
    if not lines:
        return ""
    cells = [columns, ["---"] * len(columns), *lines]
    return f"**{caption}**\n\n" + "\n".join(f"| {' | '.join(line)} |" for line in cells) + "\n"


def short_power(value: float) -> str:
    """``2e-7`` for 2e-07."""
    digits, _, power = f"{value:.0e}".partition("e")
    return f"{digits}e{int(power)}"
