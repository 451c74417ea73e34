"""What has been measured: rows in a file, found again by what they measure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .. import store
from ..environment import environment, source_digest
from ..store import Row

#: What tells one measurement from another.
KEY = ("experiment", "data", "method", "trial", "limit")


def task(experiment: str, data: str, method: str, trial: int = 0, limit: float = 0.0) -> Row:
    """One measurement; ``limit`` is on its seconds."""
    return dict(zip(KEY, (experiment, data, method, trial, limit), strict=True))


#: The packages that a method runs.  The paper's methods are certified by ``dual`` and do not run
#: the engine; the exact solver does not run ``paper``.
_COMMON = ("dual", "problem", "rows")
_FIRST_ORDER, _EXACT = ("paper", *_COMMON), ("engine", "fitting", *_COMMON)


def code_of(run: Row) -> str:
    """The digest of the code that a task runs.

    The names of the paper's own methods begin with ``lp-admm`` or ``paper``.  Clarabel is called
    from the package ``paper``, too.
    """
    first_order = run["experiment"] in ("figure3", "theory") or run["method"].startswith(
        ("lp-admm", "paper", "clarabel")
    )
    return source_digest(*(_FIRST_ORDER if first_order else _EXACT))


class Rows:
    """The rows of a folder, the newest of each measurement.

    A run goes on from the rows that this processor measured with the code that is installed now.
    With ``stale``, all rows of the last row's processor count, whatever code measured them.
    """

    def __init__(self, path: Path, *, stale: bool = False) -> None:
        found = store.read_rows(path)
        last = found[-1] if stale and found else environment()
        self.circumstances = {name: last.get(name) for name in environment()}
        self._path = path
        newest = {_key(row): row for row in found if row["cpu"] == last["cpu"]}
        self._rows = {
            key: row
            for key, row in newest.items()
            if stale or row["drlogit_source"] == code_of(row)
        }
        self.left_aside = len(newest) - len(self._rows)

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
        row = {
            **wanted, **measured, "threads": 1, **self.circumstances,
            "drlogit_source": code_of(wanted),
        }  # fmt: skip
        store.append_rows(self._path, [row])
        self._rows[_key(row)] = row
        return row

    def digests(self, tasks: Sequence[Row]) -> Counter[str]:
        """How many rows of some tasks were measured with which code: commit and digest."""
        return Counter(
            f"{row.get('drlogit_commit') or 'unknown'}: {row['drlogit_source']}"
            for row in self.of(tasks)
        )

    def stale(self, tasks: Sequence[Row]) -> int:
        """How many rows of some tasks were measured with other code than is installed now."""
        return sum(_is_stale(row) for row in self.of(tasks))


def _is_stale(row: Row) -> bool:
    return bool(row["drlogit_source"] != code_of(row))


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
