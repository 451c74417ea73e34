"""One self-contained HTML page: text, tables and a script that draws, and nothing from elsewhere.

    page = Page("Robustness report", subtitle="breast cancer, 569 samples")
    page.text("What the adversary can do.")
    page.table(["ε", "log-loss"], [["0.1", "0.517"], ["0.2", "0.641"]], caption="Worst case")
    page.write("report.html")

No external resources: the page reads the same from a mail attachment as from a server.  Everything
given is text and is escaped.  Colours follow the reader's light or dark scheme, and a button;
tables sort; on a phone, wide tables scroll inside their own box.  Styles and script are the files
``page.css`` and ``page.js`` beside this one.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Sequence
from html import escape
from importlib import resources
from typing import Any

from ..files.atomic import write_text


def packaged(name: str) -> str:
    """The text of a file beside this one."""
    return resources.files(__package__).joinpath(name).read_text("utf-8")


#: Columns above which a table is set smaller and wider than the text, to fit on a screen of 1280
#: pixels.
_MANY_COLUMNS = 6


class Page:
    """A page under construction; the methods add to its end in the order they are called."""

    def __init__(
        self, title: str, *, subtitle: str | None = None, footer: str | None = None
    ) -> None:
        self.title = title
        self.subtitle = subtitle
        self.footer = footer
        self._parts: list[str] = []
        self._styles, self._scripts = [packaged("page.css")], [packaged("page.js")]

    def text(self, text: str, *, note: bool = False) -> None:
        """Paragraphs, separated by empty lines; a note is set off by a line at its side."""
        kind = ' class="note"' if note else ""
        for paragraph in re.split(r"\n\s*\n", text.strip()):
            self._parts.append(f"<p{kind}>{escape(' '.join(paragraph.split()))}</p>")

    def bullets(self, items: Iterable[str]) -> None:
        """A list."""
        listed = "\n".join(f"<li>{escape(item)}</li>" for item in items)
        self._parts.append(f"<ul>\n{listed}\n</ul>")

    def fragment(self, html: str) -> None:
        """Parts of our own, as they are; never anything that was given."""
        self._parts.append(html)

    def style(self, text: str) -> None:
        """More rules, after those of every page."""
        self._styles.append(text)

    def script(self, text: str, data: Any = None) -> None:
        """More of a script, after that of every page, which finds ``data`` in ``#data``."""
        if data is not None:
            # Whatever the data hold, they cannot end the element that they are in.
            written = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
            safe = written.replace("<", "\\u003c")
            self._parts.append(f'<script type="application/json" id="data">{safe}</script>')
        self._scripts.append(text)

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[str]], *, caption: str) -> None:
        """A table of numbers, written as they should be; the first column names the rows."""
        head = "".join(f'<th scope="col" class="number">{escape(name)}</th>' for name in columns)
        body = "\n".join(
            f'<tr><th scope="row" class="number">{escape(first)}</th>'
            + "".join(f'<td class="number">{escape(cell)}</td>' for cell in cells)
            + "</tr>"
            for first, *cells in rows
        )
        name, wide = escape(caption), " wide" if len(columns) > _MANY_COLUMNS else ""
        # Focusable, so that who has no mouse can scroll it too.
        self._parts.append(
            f'<div class="scroll{wide}" role="region" tabindex="0" aria-label="{name}">\n'
            f"<table>\n<caption><span>{name}</span></caption>\n"
            f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>\n</div>"
        )

    def render(self) -> str:
        """The page as text."""
        footer = f"\n<footer><p>{escape(self.footer)}</p></footer>" if self.footer else ""
        under = f'<p class="subtitle">{escape(self.subtitle)}</p>' if self.subtitle else ""
        body = "\n".join(self._parts)
        styles, scripts = "\n".join(self._styles), "\n".join(self._scripts)
        return (
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            # An empty icon, so that no browser asks a server for one.
            '<link rel="icon" href="data:,">\n'
            f"<title>{escape(self.title)}</title>\n<style>\n{styles}</style>\n</head>\n"
            '<body>\n<a class="skip" href="#main">Skip to the text</a>\n'
            f"<header>\n<div><h1>{escape(self.title)}</h1>{under}</div>\n"
            '<div class="tools"><button type="button" id="theme">Dark</button>'
            '<button type="button" id="print">Print</button></div>\n</header>\n'
            f'<main id="main">\n{body}\n</main>{footer}\n<script>\n{scripts}</script>\n'
            "</body>\n</html>\n"
        )

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file, whole or not at all."""
        write_text(path, self.render())
