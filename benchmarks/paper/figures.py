"""Figures 2 and 3, with matplotlib."""

from __future__ import annotations

from typing import Any

from ..store import Row
from . import curves, published, times
from .datasets import size_of, title_of
from .rows import Rows, data_of

#: Colours that can be told apart without colour vision (Okabe and Ito), with markers besides.
_STYLES: dict[str, dict[str, Any]] = {
    "clarabel": {"color": "#D55E00", "marker": "s"},
    "ipopt": {"color": "#CC79A7", "marker": "D"},
    "paper-growing": {"color": "#E69F00", "marker": "v"},
    "lp-admm-golden": {"color": "#56B4E9", "marker": "<"},
    "lp-admm-derivative": {"color": "#0072B2", "marker": "^"},
    "interior-point": {"color": "#009E73", "marker": "o"},
}
#: The same style for a method with the authors' parameters and with tuned ones.
_LINES: dict[str, dict[str, Any]] = {
    "LP-ADMM, ρ = 0.001·1.05ᵏ": {"color": "#0072B2"},
    "LP-ADMM, balanced ρ": {"color": "#0072B2"},
    "LP-ADMM, ρ = 0.001·1.01ᵏ": {"color": "#56B4E9", "linestyle": "--"},
    "LP-ADMM": {"color": "#009E73", "linestyle": "-."},
    "linearised ADMM": {"color": "#E69F00", "linestyle": (0, (1, 1))},
    "standard ADMM, ρ = 10 for sums": {"color": "#882255", "linestyle": (0, (4, 1, 1, 1))},
    "standard ADMM": {"color": "#CC79A7", "linestyle": (0, (5, 1))},
    "PDHG": {"color": "#D55E00", "linestyle": (0, (3, 1, 1, 1, 1, 1))},
    "subgradient": {"color": "#888888"},
}


def _line(name: str) -> dict[str, Any]:
    """The style of the first entry that the name begins with."""
    return next(style for start, style in _LINES.items() if name.startswith(start))


def _new_figure(width: float, height: float) -> Any:
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def figure2(rows: Rows, synthetic: list[Row], real: list[Row]) -> Any:
    """Time against size: a panel for Table 1 and one for Table 2."""
    figure = _new_figure(9.0, 4.6)
    axes = figure.subplots(1, 2, sharey=True)
    for axis, tasks, title in (
        (axes[0], synthetic, "synthetic, (N, n)"),
        (axes[1], real, "a1a to a9a, samples"),
    ):
        sets = data_of(tasks)
        if axis is axes[0]:
            xs = list(range(len(sets)))  # two of the sizes have equally many entries
            lines = [published.TABLE_1[size_of(data)] for data in sets]
            yalmip, theirs = [p.yalmip[0] for p in lines], [p.adaptive[0] for p in lines]
            axis.set_xticks(xs, [title_of(data) for data in sets], rotation=60, ha="right")
        else:
            xs = [published.TABLE_2[data].n_samples for data in sets]
            yalmip = [published.TABLE_2[data].yalmip for data in sets]
            theirs = [published.TABLE_2[data].ours for data in sets]
            axis.set_xscale("log")
            axis.set_xticks([2000, 5000, 10000, 20000], ["2,000", "5,000", "10,000", "20,000"])
            axis.minorticks_off()
        quiet = {"color": "#888888", "linewidth": 1.0}
        axis.plot(xs, yalmip, linestyle=":", label="paper, YALMIP", **quiet)
        axis.plot(xs, theirs, linestyle="--", label="paper, adaptive LP-ADMM", **quiet)
        for method, style in _STYLES.items():
            found = [times.timing(rows, tasks, data, method) for data in sets]
            points = [(x, t.seconds) for x, t in zip(xs, found, strict=True) if t is not None]
            if points:
                axis.plot(*zip(*points, strict=True), label=times.METHODS[method].label,
                          markersize=4, linewidth=1.2, **style)  # fmt: skip
        axis.set(yscale="log", title=title)
        axis.grid(alpha=0.3, linewidth=0.5)
    axes[0].set_ylabel("seconds of processor time")
    known = [axis.get_legend_handles_labels() for axis in axes]
    legend = {label: handle for found in known for handle, label in zip(*found, strict=True)}
    figure.legend(legend.values(), legend.keys(), loc="outside lower center", ncols=3,
                  frameon=False, fontsize=9)  # fmt: skip
    return figure


def figure3(rows: Rows, tasks: list[Row]) -> Any:
    """How far above the optimum, against time: the authors' parameters above, tuned ones below."""
    sets = data_of(tasks)
    theirs = {curve.name: (curve,) for curve in curves.AUTHORS}
    per_part = -(-len(sets) // 3)
    figure = _new_figure(9.0, 2 * (2.5 * per_part + 1.1))
    above, below = figure.subfigures(2, 1)
    above.suptitle("the authors' parameters")
    _panels(above, rows, tasks, theirs)
    below.suptitle("tuned parameters")
    _panels(below, rows, tasks, curves.TUNED)
    return figure


def _panels(part: Any, rows: Rows, tasks: list[Row], groups: dict[str, Any]) -> None:
    sets = data_of(tasks)
    axes = part.subplots(-(-len(sets) // 3), 3, squeeze=False)
    found = {(row["data"], row["method"]): row for row in rows.of(tasks)}
    handles = {}
    for axis, data in zip(axes.flat, sets, strict=False):
        for name, group in groups.items():
            row = curves.best_of(found, data, group)
            if row is not None:
                heights = [max(value, 1e-13) for value in row["above"]]
                (handles[name],) = axis.plot(
                    row["at_seconds"], heights, linewidth=1.3, **_line(name)
                )
        axis.set(xscale="log", yscale="log", title=title_of(data))
        axis.grid(alpha=0.3, linewidth=0.5)
    for axis in axes.flat[len(sets) :]:
        axis.set_axis_off()
    for axis in axes[-1]:
        axis.set_xlabel("seconds of processor time")
    for axis in axes[:, 0]:
        axis.set_ylabel("F − F*")
    part.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=3,
                frameon=False, fontsize=9)  # fmt: skip
