"""A shift as one web page: what changed, how much of it the tolerances cover, which columns moved.

The page is static: sentences, two figures drawn as SVG, and a table.  It uses the style sheet of
the audit page and needs no script.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from importlib import resources
from typing import Any

import numpy as np

from ..robustness.shifts import Shift
from ..rows.arrays import FloatArray

_WIDTH, _HEIGHT, _LEFT, _BOTTOM = 560, 250, 56, 44

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>{title}</title>
<style>
{styles}
figure {{ margin: 1.2rem 0; }}
svg {{ max-width: 100%; height: auto; }}
svg text {{ fill: var(--quiet); font-size: 12px; }}
</style>
</head>
<body>
<header><div><h1>{title}</h1><p class="subtitle">{subtitle}</p></div></header>
<main id="main">
{words}
{figures}
<h2>Which columns moved</h2>
<p>Each column on its own: the distance between its reference and its new distribution, in its own
units (for a category, the share of rows in which it must change), and what that costs.</p>
{table}
<h2>What it does not say</h2>
<ul>
<li>The covering radius is a lower bound on the transport distance between the two samples, not an
estimate of it.</li>
<li>It depends on the model: if its loss did not rise, the covering radius is zero.</li>
<li>It says nothing about the next shift.</li>
</ul>
</main>
</body>
</html>
"""


def shift_page(found: Shift, title: str | None = None, subtitle: str = "") -> str:
    """The page of a shift."""
    return _PAGE.format(
        title=escape(title or "How far have the data moved?"),
        subtitle=escape(subtitle or f"{found.n_ref:,} reference rows, {found.n_new:,} new rows"),
        styles=resources.files(__package__).joinpath("audit.css").read_text("utf-8"),
        words=_words(str(found)),
        figures=_figures(found),
        table=_table(found),
    )


def shift_section(found: Shift) -> str:
    """A shift as a section of another page."""
    return f"<h2>How far have the data moved?</h2>\n{_words(str(found))}\n{_figures(found)}"


def _figures(found: Shift) -> str:
    figures = [_histograms(*found.scores)]
    if found.epsilon is not None and found.loss_new is not None:
        figures.insert(0, _curve(found))
    return "\n".join(figures)


def _words(text: str) -> str:
    """Paragraphs, and the indented lines among them as a list."""
    lines = [
        f"<ul><li>{escape(line.strip())}</li></ul>"
        if line[:2] == "  "
        else f"<p>{escape(line)}</p>"
        for line in text.split("\n")
    ]
    return "\n".join(lines).replace("</ul>\n<ul>", "\n")


def _table(found: Shift) -> str:
    frame = found.features
    head = "".join(f'<th scope="col">{escape(str(name))}</th>' for name in frame.columns)
    body = "\n".join(
        "<tr>" + "".join(f"<td>{escape(_cell(value))}</td>" for value in row) + "</tr>"
        for row in frame.itertuples(index=False)
    )
    return (
        '<div class="scroll tall" role="region" tabindex="0" aria-label="Columns that moved">'
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _cell(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


# --- figures --------------------------------------------------------------------------------


def _curve(found: Shift) -> str:
    """The worst-case loss around the reference rows, with the losses met and declared."""
    loss, radius = float(found.loss_new or 0.0), float(found.epsilon or 0.0)
    radius = radius if math.isfinite(radius) else 0.0
    end = 1.3 * max(radius, found.declared or 0.0) or 1.0
    x = np.linspace(0.0, end, 121)
    y = found.curve.at(x)
    low, high = 0.9 * min(float(y.min()), loss), 1.05 * max(float(y.max()), loss)
    px, py = _axis(0.0, end, _LEFT, _WIDTH), _axis(low, high, _HEIGHT - _BOTTOM, 8)
    drawn = [
        f'<polyline points="{_points(px(x), py(y))}" fill="none" stroke="var(--link)" '
        'stroke-width="2"/>',
        f'<line x1="{_LEFT}" x2="{_WIDTH}" y1="{py(loss):.1f}" y2="{py(loss):.1f}" '
        'stroke="var(--quiet)" stroke-dasharray="4 3"/>',
        f'<text x="{_LEFT + 6}" y="{py(loss) - 5:.1f}">loss on the new rows {loss:.3f}</text>',
        f'<circle cx="{px(radius):.1f}" cy="{py(found.curve.at(radius)):.1f}" r="4" '
        'fill="var(--link)"/>',
    ]
    if found.declared is not None:
        at = px(found.declared)
        drawn += [
            f'<line x1="{at:.1f}" x2="{at:.1f}" y1="8" y2="{_HEIGHT - _BOTTOM}" '
            'stroke="var(--line)"/>',
            f'<text x="{at + 4:.1f}" y="{_HEIGHT - _BOTTOM - 6}">declared</text>',
        ]
    caption = (
        "Worst-case log-loss around the reference rows. The covering radius, marked by the dot, is "
        "where it reaches the loss on the new rows."
    )
    return _figure(drawn, px, _ticks(0.0, end), py, _ticks(low, high), "radius ε", caption)


def _histograms(reference: FloatArray, new: FloatArray) -> str:
    """The scores of both samples."""
    both = np.concatenate([reference, new])
    low, high = (float(each) for each in np.quantile(both, [0.005, 0.995]))
    edges = np.linspace(low, high if high > low else low + 1.0, 31)
    shares = [
        np.histogram(np.clip(each, edges[0], edges[-1]), edges)[0] / each.size
        for each in (reference, new)
    ]
    top = float(max(each.max() for each in shares))
    px = _axis(float(edges[0]), float(edges[-1]), _LEFT, _WIDTH)
    py = _axis(0.0, top, _HEIGHT - _BOTTOM, 8)
    x = np.repeat(edges, 2)[1:-1]
    drawn = [
        f'<polyline points="{_points(px(x), py(np.repeat(share, 2)))}" fill="none" '
        f'stroke="{colour}" stroke-width="2"{dash}/>'
        for share, colour, dash in (
            (shares[0], "var(--quiet)", ' stroke-dasharray="5 3"'),
            (shares[1], "var(--link)", ""),
        )
    ]
    caption = "Scores of the reference rows (dashed) and of the new rows (solid): share of rows."
    ticks = _ticks(float(edges[0]), float(edges[-1]))
    return _figure(drawn, px, ticks, py, _ticks(0.0, top), "score", caption)


def _axis(low: float, high: float, start: float, end: float) -> Any:
    scale = (end - start) / ((high - low) or 1.0)
    return lambda value: start + (value - low) * scale


def _ticks(low: float, high: float) -> FloatArray:
    """Four or so round numbers between two."""
    unit = 10.0 ** math.floor(math.log10((high - low) / 4.0))
    step = next(m * unit for m in (1.0, 2.0, 5.0, 10.0) if m * unit >= (high - low) / 4.0)
    return np.asarray(np.arange(math.ceil(low / step), math.floor(high / step) + 1) * float(step))


def _points(x: FloatArray, y: FloatArray) -> str:
    return " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))


def _figure(
    drawn: Sequence[str],
    px: Any,
    x_ticks: FloatArray,
    py: Any,
    y_ticks: FloatArray,
    label: str,
    caption: str,
) -> str:
    bottom = _HEIGHT - _BOTTOM
    marks = [
        f'<line x1="{_LEFT}" x2="{_WIDTH}" y1="{bottom}" y2="{bottom}" stroke="var(--quiet)"/>',
        *(
            f'<text x="{px(x):.1f}" y="{bottom + 16}" text-anchor="middle">{x:.3g}</text>'
            for x in x_ticks
        ),
        *(
            f'<text x="{_LEFT - 6}" y="{py(y) + 4:.1f}" text-anchor="end">{y:.2g}</text>'
            for y in y_ticks
        ),
        f'<text x="{(_LEFT + _WIDTH) / 2}" y="{_HEIGHT - 8}" text-anchor="middle">{label}</text>',
    ]
    return (
        f'<figure><svg viewBox="0 0 {_WIDTH + 24} {_HEIGHT}" width="{_WIDTH + 24}" role="img" '
        f'aria-label="{escape(caption)}">{"".join([*marks, *drawn])}</svg>'
        f"<figcaption>{escape(caption)}</figcaption></figure>"
    )
