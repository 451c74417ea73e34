"""What has been measured: one row per run, all of one format, in a file of JSON lines.

The first line says under which circumstances; rows that other code measured are measured again.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..environment import environment, source_digest
from ..store import Row, append_rows, read_rows

#: What tells one run from another.
KEY = ("experiment", "data", "method", "trial")

#: What is measured: a curve is a list of pairs, (seconds, F - F*) or (K, F - F*, bound).
VALUES = ("seconds", "gap", "objective", "lam", "n_iter", "status", "accuracy", "curve", "notes")


def task(experiment: str, data: str, method: str, trial: int = 0) -> Row:
    """One run."""
    return dict(zip(KEY, (experiment, data, method, trial), strict=True))


def circumstances() -> Row:
    """The machine and the code.

    The digest is of ``drlogit.paper`` alone, without comments, docstrings and imports: the exact
    solver only says where the optimum is, so that other code of it does not change these rows.
    """
    known = {name: value for name, value in environment().items() if value is not None}
    return {**known, "drlogit_source": source_digest("paper")}


class Rows:
    """The rows of a file; those of other code are left aside unless ``stale`` ones are wanted."""

    def __init__(self, path: Path, *, stale: bool = False) -> None:
        now = circumstances()
        first, *found = read_rows(path) or [now]
        current = first["drlogit_source"] == now["drlogit_source"]
        self.circumstances = first if stale or current else now
        self._path, self._rows = path, {_key(row): row for row in found if current or stale}
        if not stale and not (found and current):
            path.unlink(missing_ok=True)
            append_rows(path, [self.circumstances])

    def get(self, wanted: Row) -> Row | None:
        """The row of a run, if it is done."""
        return self._rows.get(_key(wanted))

    def of(self, tasks: Sequence[Row]) -> list[Row]:
        """The rows there are of some runs."""
        return [row for wanted in tasks if (row := self.get(wanted)) is not None]

    def add(self, wanted: Row, **measured: Any) -> Row:
        """Keep what a run gave, here and on disk."""
        assert set(measured) <= set(VALUES), "one format for all rows"
        row = {**wanted, **{name: _short(measured.get(name)) for name in VALUES}}
        append_rows(self._path, [row])
        self._rows[_key(row)] = row
        return row


def _short(value: Any) -> Any:
    """Numbers of curves and times to as many digits as mean something."""
    if isinstance(value, list):
        return [[float(f"{number:.4g}") for number in point] for point in value]
    return float(f"{value:.10g}") if isinstance(value, float) else value


def _key(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in KEY)


def data_of(tasks: Sequence[Row]) -> list[str]:
    """The data sets of some runs, in order."""
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
