"""The picture of an audit; matplotlib is imported when it is drawn."""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from .sentences import said

#: The number of radii at which curves are drawn.
_POINTS = 61

#: Colours of Okabe and Ito (2008), which colour-blind readers can tell apart.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DASHES = ("-", "--", "-.", ":")

#: The axes of a picture on the page, as shares of its width and height.
LEFT, BOTTOM, WIDTH, HEIGHT = 0.14, 0.16, 0.83, 0.8


def draw_curves(report: Any, ax: Any = None) -> Any:
    """Draw the worst value of each model against the radius."""
    if ax is None:
        import matplotlib.pyplot as plt

        ax = plt.subplots(figsize=(7.0, 4.0), layout="constrained")[1]
    radii = np.linspace(0.0, report.epsilons[-1], _POINTS)
    for k, (name, each) in enumerate(report.models.items()):
        values = [each.adversary.value(each.metric, radius) for radius in radii.tolist()]
        style = {"color": COLORS[k % len(COLORS)], "linestyle": DASHES[k % len(DASHES)]}
        ax.plot(radii, values, label=name, **style)
    metric = report.first.metric
    limit = f"limit: {said(metric, report.limit)}"
    ax.axhline(report.limit, color="0.4", linewidth=0.9, label=limit)
    if report.ball.epsilon:
        ax.axvline(report.ball.epsilon, color="0.4", linewidth=0.9, linestyle=":")
    ax.set_xlabel("radius ε (dotted: the ball)")
    ax.set_ylabel(f"worst {metric.name.replace('_', ' ')}")
    ax.margins(x=0.0)
    ax.legend(frameon=False, fontsize="small")
    return ax


def curves_as_svg(report: Any) -> str:
    """The curves as SVG for a page; empty without matplotlib."""
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError:
        return ""
    # Text stays text, and the same report gives the same file.
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "drlogit"}):
        figure = Figure(figsize=(5.6, 3.6))
        draw_curves(report, figure.add_axes((LEFT, BOTTOM, WIDTH, HEIGHT)))
        stream = io.StringIO()
        nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        figure.savefig(stream, format="svg", metadata=nothing)
    text = stream.getvalue()
    return text[text.index("<svg") :]
