"""An audit as one web page: text, tables and a picture, with a slider among precomputed radii."""

from __future__ import annotations

import math
from collections.abc import Iterable
from html import escape
from importlib import resources
from string import Template
from typing import Any

import numpy as np

from ..robustness.words import rounded
from .plots import LEFT, WIDTH, curves_as_svg
from .sentences import amount


def page_of(report: Any, title: str) -> str:
    """The page of an audit."""
    template = Template(resources.files(__package__).joinpath("page.html").read_text("utf-8"))
    frames = [frame for part in ("radii", "groups") if len(frame := report.to_frame(part))]
    distances = np.abs(np.array(report.epsilons) - (report.ball.epsilon or 0.0))
    return template.substitute(
        title=escape(title),
        subtitle=escape(report.subtitle()),
        verdict="".join(f'<p class="verdict">{escape(line)}</p>' for line in report.verdict()),
        next_steps=_listed(report.next_steps(), "ol"),
        promises=_promises(report),
        curves=_curves(report),
        last=len(report.epsilons) - 1,
        start=int(distances.argmin()),
        radii="\n".join(_radius(report, epsilon, frames) for epsilon in report.epsilons),
        columns=_table(report, _columns(report.to_frame("columns"))),
        rows=_table(report, _rows(report.to_frame("rows"))),
        limits=_listed(report.caveats()),
    )


def _listed(lines: Iterable[str], tag: str = "ul") -> str:
    return f"<{tag}>{''.join(f'<li>{escape(line)}</li>' for line in lines)}</{tag}>"


def _table(report: Any, frame: Any) -> str:
    """A data frame as a table; pandas escapes its texts."""
    shown = frame if len(report.models) > 1 else frame.drop(columns="model")
    return f'<div class="table">{shown.to_html(index=False, border=0, justify="left")}</div>'


def _promises(report: Any) -> str:
    """What holds for new rows."""
    words = ""
    for name, each in report.models.items():
        if each.promise is not None:
            first, *rest = each.promise.sentences()
            details = f"<details><summary>What this rests on</summary>{_listed(rest)}</details>"
            words += f"<p>{escape(f'{name}: {first}')}</p>{details}"
    return f"<h2>For new rows</h2>\n{words}" if words else ""


def _curves(report: Any) -> str:
    svg = curves_as_svg(report)
    if not svg:
        note = 'There are no curves, because matplotlib is missing: pip install "drlogit[plot]".'
        return f'<p class="quiet">{escape(note)}</p>'
    words = "The worst value of each model against the radius; the tables have the numbers."
    return (
        f'<div class="figure" role="img" aria-label="{words}">{svg}<div class="marker"></div></div>'
    )


def _radius(report: Any, epsilon: float, frames: Iterable[Any]) -> str:
    """What one radius allows, and the worst values within it."""
    place = LEFT + WIDTH * epsilon / (report.epsilons[-1] or 1.0)
    sign, tables = report.first.metric.sign, ""
    for frame in frames:
        some = frame[frame["epsilon"] == epsilon].drop(columns=["epsilon", "nominal", "value"])
        some["as the data are"] = [f"{value:.4g}" for value in frame.loc[some.index, "nominal"]]
        some["at worst"] = [rounded(value, sign) for value in frame.loc[some.index, "value"]]
        tables += _table(report, some)
    own = " (the ball)" if epsilon == report.ball.epsilon else ""
    return (
        f'<section class="radius" data-place="{100.0 * place:.2f}%">'
        f"<h3>Radius {epsilon:.4g}{own}</h3>"
        f"{_listed(report.ball.replace(epsilon=epsilon).allowed())}{tables}</section>"
    )


def _columns(frame: Any) -> Any:
    """The breaking points of labels and columns, as far as there are any."""
    some = frame[frame["breaks_at"] < math.inf]
    shown = some[["model", "column"]].copy()
    shown["breaks once"] = [amount(row) for row in some.itertuples()]
    shown["times what the ball allows"] = [
        "–" if math.isnan(radii) else rounded(radii, -1.0, 3) for radii in some["radii"]
    ]
    return shown


def _rows(frame: Any) -> Any:
    """The rows that break first, with the change that does it."""
    shown = frame[["model", "row", "label", "column"]].copy()
    shown["from"] = [_value(row.value) for row in frame.itertuples()]
    shown["to"] = [
        _value(row.changed_to) + ("" if row.observed else " (outside of these rows' range)")
        for row in frame.itertuples()
    ]
    return shown


def _value(value: Any) -> str:
    return f"{value:.5g}" if isinstance(value, float) else str(value)
