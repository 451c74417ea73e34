"""The figures, with matplotlib, and what they show in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import paper, summaries
from .curves import METHODS as CURVES
from .data import size_of, title_of
from .speed import ADAPTIVE, CLARABEL, INTERIOR_POINT, IPOPT, PUBLISHED_ADAPTIVE
from .table import data_of
from .tasks import Results, Task

#: Colours that can be told apart without colour vision (Okabe and Ito), with markers besides.
_STYLES: dict[str, dict[str, str]] = {
    CLARABEL.name: {"color": "#D55E00", "marker": "s"},
    IPOPT.name: {"color": "#CC79A7", "marker": "D"},
    PUBLISHED_ADAPTIVE.name: {"color": "#56B4E9", "marker": "v"},
    ADAPTIVE.name: {"color": "#0072B2", "marker": "^"},
    INTERIOR_POINT.name: {"color": "#009E73", "marker": "o"},
}
_DRAWN = (CLARABEL, IPOPT, PUBLISHED_ADAPTIVE, ADAPTIVE, INTERIOR_POINT)

_CURVE_STYLES: dict[str, dict[str, Any]] = dict(
    zip(
        CURVES,
        (
            {"color": "#0072B2"},
            {"color": "#56B4E9", "linestyle": "--"},
            {"color": "#009E73", "linestyle": "-."},
            {"color": "#E69F00", "linestyle": ":"},
            {"color": "#CC79A7", "linestyle": (0, (5, 1))},
            {"color": "#D55E00", "linestyle": (0, (3, 1, 1, 1))},
            {"color": "#888888"},
        ),
        strict=True,
    )
)


def _new_figure(width: float, height: float) -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(
            "the figures need matplotlib, which is not installed: pip install 'drlogit[plot]'"
        ) from error
    return Figure(figsize=(width, height), layout="constrained")


def figure2(results: Results, synthetic: Sequence[Task], real: Sequence[Task]) -> tuple[Any, str]:
    """Time against size: a panel for Table 1 and one for Table 2; the figure and its words."""
    figure = _new_figure(9.0, 4.6)
    axes = figure.subplots(1, 2, sharey=True)
    words = []
    for axis, tasks, title in (
        (axes[0], synthetic, "synthetic, (N, n)"),
        (axes[1], real, "a1a to a9a, samples"),
    ):
        sets = data_of(tasks)
        if axis is axes[0]:
            xs = list(range(len(sets)))  # two of the sizes have equally many entries
            printed = [paper.TABLE_1[size_of(data)] for data in sets]
            yalmip, theirs = [p.yalmip[0] for p in printed], [p.adaptive[0] for p in printed]
            axis.set_xticks(xs, [title_of(data) for data in sets], rotation=60, ha="right")
        else:
            xs = [paper.TABLE_2[data].n_samples for data in sets]
            yalmip = [paper.TABLE_2[data].yalmip for data in sets]
            theirs = [paper.TABLE_2[data].ours for data in sets]
            axis.set_xscale("log")
            axis.set_xticks([2000, 5000, 10000, 20000], ["2,000", "5,000", "10,000", "20,000"])
            axis.minorticks_off()
        quiet = {"color": "#888888", "linewidth": 1.0}
        axis.plot(xs, yalmip, linestyle=":", label="paper, YALMIP", **quiet)
        axis.plot(xs, theirs, linestyle="--", label="paper, adaptive LP-ADMM", **quiet)
        for method in _DRAWN:
            found = [summaries.timing(results, tasks, data, method) for data in sets]
            points = [(x, t.seconds) for x, t in zip(xs, found, strict=True) if t is not None]
            if points:
                axis.plot(*zip(*points, strict=True), label=method.label, markersize=4,
                          linewidth=1.2, **_STYLES[method.name])  # fmt: skip
                seconds = [point[1] for point in points]
                words.append(f"{title}, {method.label}: {seconds[0]:.2g} s to {seconds[-1]:.2g} s")
        axis.set(yscale="log", title=title)
        axis.grid(alpha=0.3, linewidth=0.5)
    axes[0].set_ylabel("seconds of the processor")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    return (
        figure,
        "Processor time, logarithmic, from the smallest to the largest data. "
        + "; ".join(words)
        + ".",
    )


def figure3(results: Results, tasks: Sequence[Task]) -> tuple[Any, str]:
    """A panel for each size: how far above the optimum, against iterations."""
    sets = data_of(tasks)
    columns = 3
    lines = -(-len(sets) // columns)
    figure = _new_figure(9.0, 2.7 * lines + 1.0)
    axes = figure.subplots(lines, columns, squeeze=False)
    found = {(row["data"], row["method"]): row for row in results.of(tasks)}
    words, handles = [], {}
    for axis, data in zip(axes.flat, sets, strict=False):
        ends = {}
        for method in CURVES:
            row = found.get((data, method))
            if row is None:
                continue
            heights = [max(value, 1e-13) for value in row["above"]]
            (line,) = axis.plot(row["at"], heights, linewidth=1.3, **_CURVE_STYLES[method])
            handles[method] = line
            ends[method] = row["above"][-1]
        axis.set(xscale="log", yscale="log", title=title_of(data))
        axis.grid(alpha=0.3, linewidth=0.5)
        if ends:
            best, worst = min(ends, key=ends.__getitem__), max(ends, key=ends.__getitem__)
            words.append(
                f"{title_of(data)}: lowest {best} at {ends[best]:.0e}, highest "
                f"{worst} at {ends[worst]:.0e}"
            )
    for axis in axes.flat[len(sets) :]:
        axis.set_axis_off()
    for axis in axes[-1]:
        axis.set_xlabel("iterations")
    for axis in axes[:, 0]:
        axis.set_ylabel("F − F*")
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=3,
                  frameon=False, fontsize=9)  # fmt: skip
    return figure, "Convergence at fixed λ = 0.1; at the end of each panel: " + "; ".join(
        words
    ) + "."
