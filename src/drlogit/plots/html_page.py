"""One self-contained HTML page: headings, text, tables and figures, and nothing from elsewhere.

    page = Page("Robustness report", subtitle="breast cancer, 569 samples")
    page.heading("Worst case")
    page.text("What the adversary can do.")
    page.table(["ε", "log-loss"], [[0.1, 0.517], [0.2, 0.641]], caption="Worst-case log-loss")
    page.figure(figure, alt="The worst-case log-loss rises from 0.3 to 0.6.", caption="…")
    page.write("report.html")

No external resources: the page reads the same from a mail attachment as from a server.  Everything
given is text and is escaped.  Colours follow the reader's light or dark scheme, figures included,
and a button; tables sort; on a phone, wide tables scroll inside their own box.  Styles and script
are the files ``page.css`` and ``page.js`` beside this one.
"""

from __future__ import annotations

import base64
import io
import json
import numbers
import os
import re
from collections.abc import Iterable, Sequence
from html import escape
from importlib import resources
from typing import Any, Literal

from ..files.atomic import write_text


def packaged(name: str) -> str:
    """The text of a file beside this one."""
    return resources.files(__package__).joinpath(name).read_text("utf-8")


#: Columns above which a table is set smaller and wider than the text, so that it fits on a screen:
#: all tables of the reproduction do on one of 1280 pixels.
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
        self._n_figures = 0
        self._anchors: set[str] = set()

    def heading(self, text: str, level: int = 2) -> None:
        """A heading, level 2 or 3; it can be linked to as ``#`` and its words joined by hyphens."""
        if level not in (2, 3):
            raise ValueError(f"level must be 2 or 3, got {level!r}")
        anchor = self._anchor(text)
        self._parts.append(f'<h{level} id="{anchor}">{escape(text)}</h{level}>')

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

    def table(
        self,
        columns: Sequence[str],
        rows: Iterable[Sequence[Any]],
        *,
        caption: str | None = None,
        row_headers: bool = True,
    ) -> None:
        """A table; numbers, and text that reads as one, stand to the right.

        Numbers are written with four significant digits: format those that want more or fewer.
        None is an empty cell.  ``row_headers`` says that the first column names the rows.
        """
        cells = [[_cell(value) for value in row] for row in rows]
        for row in cells:
            if len(row) != len(columns):
                raise ValueError(f"a row of the table must have {len(columns)} cells: {row}")
        numeric = [
            any(row[j] for row in cells) and all(_reads_as_number(row[j]) for row in cells)
            for j in range(len(columns))
        ]
        kinds = [' class="number"' if right else "" for right in numeric]
        head = "".join(
            f'<th scope="col"{kind}>{escape(column)}</th>'
            for column, kind in zip(columns, kinds, strict=True)
        )
        body = "\n".join(f"<tr>{_row(row, kinds, row_headers)}</tr>" for row in cells)
        title = f"<caption><span>{escape(caption)}</span></caption>\n" if caption else ""
        name = escape(caption or "table")
        # Focusable, so that who has no mouse can scroll it too.
        wide = " wide" if len(columns) > _MANY_COLUMNS else ""
        self._parts.append(
            f'<div class="scroll{wide}" role="region" tabindex="0" aria-label="{name}">\n'
            f"<table>\n{title}<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>\n"
            "</div>"
        )

    def figure(
        self,
        figure: Any,
        *,
        alt: str,
        caption: str | None = None,
        format: Literal["svg", "png"] = "svg",
    ) -> None:
        """A matplotlib figure, with what it shows in words for who cannot see it.

        ``"png"`` is for figures of very many points; it keeps a white ground in dark schemes.
        """
        if not alt.strip():
            raise ValueError("alt must say what the figure shows, got no text")
        self._n_figures += 1
        if format == "svg":
            picture = _inline_svg(figure, alt, f"figure{self._n_figures}-")
        elif format == "png":
            picture = _inline_png(figure, alt)
        else:
            raise ValueError(f"format must be 'svg' or 'png', got {format!r}")
        below = f"\n<figcaption>{escape(caption)}</figcaption>" if caption else ""
        self._parts.append(f'<figure>\n<div class="scroll">{picture}</div>{below}\n</figure>')

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

    def _anchor(self, text: str) -> str:
        """A name for a heading that no other heading of the page has."""
        base = "-".join(re.findall(r"\w+", text.lower())) or "section"
        anchor, number = base, 1
        while anchor in self._anchors:
            number += 1
            anchor = f"{base}-{number}"
        self._anchors.add(anchor)
        return anchor


# --- tables ---------------------------------------------------------------------------------


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, numbers.Real) and not isinstance(value, bool | numbers.Integral):
        return f"{float(value):.4g}"
    return str(value)


#: Digits, with what surrounds them: signs, units, powers of ten, "≤".
_QUANTITY = r"(?:[<>≤≥~≈]\s?)?[-+−]?[\d.,]+(?:[eE][-+]?\d+)?\s?(?:%|×|x|s|ms|nats)?"
#: One of these, a range, or what stands for none.
_NUMBER = re.compile(rf"{_QUANTITY}(?:\s?(?:to|–|±)\s?{_QUANTITY})?|inf|∞|[-–—]|n/a|nan|")


def _reads_as_number(text: str) -> bool:
    return _NUMBER.fullmatch(text) is not None


def _row(cells: Sequence[str], kinds: Sequence[str], row_headers: bool) -> str:
    written = []
    for j, (cell, kind) in enumerate(zip(cells, kinds, strict=True)):
        tag = 'th scope="row"' if row_headers and j == 0 else "td"
        written.append(f"<{tag}{kind}>{escape(cell)}</{tag[:2]}>")
    return "".join(written)


# --- figures --------------------------------------------------------------------------------


def _inline_svg(figure: Any, alt: str, prefix: str) -> str:
    """The drawing itself, its greys in the colours of the page."""
    import matplotlib

    buffer = io.StringIO()
    # A fixed salt and no date, so that equal figures give equal pages.
    with matplotlib.rc_context({"svg.hashsalt": "drlogit", "svg.fonttype": "path"}):
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    drawing = buffer.getvalue()
    drawing = drawing[drawing.index("<svg") :].rstrip()
    drawing = re.sub(r"<metadata>.*?</metadata>", "", drawing, flags=re.S)
    # Names are shared by all figures of a page, so each figure gets its own.
    drawing = re.sub(r'(\bid="|href="#|url\(#)', lambda found: found[1] + prefix, drawing)
    drawing = re.sub(r"#([0-9a-f]{2})\1\1\b", _grey, drawing)
    label = f'role="img" aria-label="{escape(alt)}" fill="currentColor" {_least_width(figure)}'
    return drawing.replace("<svg", f"<svg {label}", 1)


def _grey(found: re.Match[str]) -> str:
    """Black becomes the colour of the text, white that of the page, and what is between follows."""
    level = int(found[1], 16)
    if level in (0, 255):
        return "var(--paper)" if level else "currentColor"
    return "var(--line)" if level > 0xB0 else "var(--quiet)"


def _inline_png(figure: Any, alt: str) -> str:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=150, facecolor="white")
    width, height = (round(96 * inches) for inches in figure.get_size_inches())
    data = base64.b64encode(buffer.getvalue()).decode("ascii")
    return (
        f'<img alt="{escape(alt)}" width="{width}" height="{height}" {_least_width(figure)} '
        f'src="data:image/png;base64,{data}">'
    )


def _least_width(figure: Any) -> str:
    """Figures shrink on a phone until their text would be too small to read, then scroll."""
    return f'style="min-width: {round(0.64 * 96 * figure.get_size_inches()[0])}px"'
