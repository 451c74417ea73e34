"""One text in two forms, a page and Markdown, with the tables' numbers and the figures as files."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from ..files.atomic import write_bytes, write_text
from ..plots.html_page import Page
from .table import Table


class Document:
    """What is added goes to both forms; ``write`` puts them into the folder."""

    def __init__(self, folder: Path, title: str, footer: str) -> None:
        self._folder = folder
        self._page = Page(title, footer=footer)
        self._lines = [f"# {title}", ""]

    def heading(self, words: str, level: int = 2) -> None:
        """A heading of level 2 or 3."""
        self._page.heading(words, level)
        self._lines += [f"{'#' * level} {words}", ""]

    def text(self, words: str, *, note: bool = False) -> None:
        """Paragraphs, with empty lines between them."""
        self._page.text(words, note=note)
        for part in words.strip().split("\n\n"):
            self._lines += [("> " if note else "") + " ".join(part.split()), ""]

    def bullets(self, items: Iterable[str]) -> None:
        """A list."""
        listed = list(items)
        self._page.bullets(listed)
        self._lines += [*(f"- {item}" for item in listed), ""]

    def table(self, table: Table) -> None:
        """A table, and its numbers as a CSV file; nothing if it has no rows."""
        if not table.rows:
            return
        self._page.table(table.columns, table.rows, caption=table.caption)
        self._lines += [table.markdown(), ""]
        if table.records:
            write_text(self._folder / f"{table.name}.csv", table.csv())

    def figure(self, name: str, draw: Callable[[], tuple[Any, str]]) -> None:
        """A figure, with what it shows in words, and the same as an SVG file."""
        try:
            figure, words = draw()
        except ImportError as error:
            self.text(f"Not drawn: {error}.", note=True)
            return
        self._page.figure(figure, alt=words)
        import matplotlib

        buffer = io.BytesIO()
        # A fixed salt and no date, so that equal figures give equal files.
        with matplotlib.rc_context({"svg.hashsalt": "drlogit"}):
            figure.savefig(buffer, format="svg", metadata={"Date": None})
        write_bytes(self._folder / f"{name}.svg", buffer.getvalue())
        self._lines += [f"![{words}]({name}.svg)", ""]

    def write(self) -> Path:
        """Write both forms; the page is last, for who waits for it."""
        self._folder.mkdir(parents=True, exist_ok=True)
        write_text(self._folder / "report.md", "\n".join(self._lines))
        page = self._folder / "index.html"
        self._page.write(page)
        return page
