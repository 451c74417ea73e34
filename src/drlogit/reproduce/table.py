"""A table as cells, for the page, Markdown and CSV alike."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from .tasks import Task


@dataclass(frozen=True)
class Table:
    """Cells as text, for people; ``records`` holds the numbers, for programs."""

    name: str
    caption: str
    columns: list[str]
    rows: list[list[str]] = field(default_factory=list)
    records: list[dict[str, Any]] = field(default_factory=list)

    def add(self, *cells: str) -> None:
        """A row; its cells stay on one line each, and a table too wide for the page scrolls."""
        self.rows.append([_unbroken(cell) for cell in cells])

    def markdown(self) -> str:
        """As a Markdown table under its caption."""
        lines = [self.columns, ["---"] * len(self.columns), *self.rows]
        cells = [[cell.replace("|", "\\|") for cell in line] for line in lines]
        return f"**{self.caption}**\n\n" + "\n".join(f"| {' | '.join(line)} |" for line in cells)

    def csv(self) -> str:
        """The numbers, with the names of all columns that any record has."""
        names = list(dict.fromkeys(name for record in self.records for name in record))
        buffer = io.StringIO()
        writer = csv.DictWriter(buffer, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.records)
        return buffer.getvalue()


def data_of(tasks: Sequence[Task]) -> list[str]:
    """The data sets of some tasks, in order."""
    return list(dict.fromkeys(task.data for task in tasks))


def _unbroken(text: str) -> str:
    """Text that stays on one line."""
    return text.replace(" ", "\N{NO-BREAK SPACE}").replace("-", "\N{NON-BREAKING HYPHEN}")
