"""What has been measured: one row per run, all of one format, in a file of JSON lines.

The first line says under which circumstances.  Rows of other code than this are not continued.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..environment import environment, unchanged_since

Row = dict[str, Any]

#: Results that are kept.
RESULTS = Path(__file__).parents[1] / "results" / "paper"

#: What tells one run from another.
KEY = ("experiment", "data", "method", "trial")

#: What is measured: a curve is a list of pairs, (seconds, F - F*) or (K, F - F*, bound).
VALUES = ("seconds", "gap", "objective", "lam", "n_iter", "status", "accuracy", "curve", "notes")


def task(experiment: str, data: str, method: str, trial: int = 0) -> Row:
    """One run."""
    return dict(zip(KEY, (experiment, data, method, trial), strict=True))


def read_rows(path: Path) -> list[Row]:
    """The rows of a file, oldest first.  The last one may be cut: a run can be killed."""
    lines = path.read_text("utf-8").splitlines(keepends=True) if path.exists() else []
    return [json.loads(line) for line in lines if line.endswith("\n")]


class Rows:
    """The rows of a file, to be continued by the code that measured them, or only ``reported``."""

    def __init__(self, path: Path, *, reported: bool = False) -> None:
        self.circumstances, *found = read_rows(path) or [environment()]
        commit = self.circumstances.get("drlogit_commit")
        # The exact solver only says where the optimum is: other code of it changes no row.
        if found and not reported and not unchanged_since(str(commit), "src/drlogit/paper"):
            raise SystemExit(f"{path} was measured by other code ({commit}): move it away")
        self._path, self._rows = path, {_key(row): row for row in found}
        if not reported:
            path.write_text("".join(map(_line, [self.circumstances, *found])), "utf-8")

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
        with self._path.open("a", encoding="utf-8") as file:
            file.write(_line(row))
        self._rows[_key(row)] = row
        return row


def _line(row: Row) -> str:
    return json.dumps(row) + "\n"


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
