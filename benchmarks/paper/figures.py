"""Figures 2 and 3, the growth of the gap, and the rate of Theorem 4.2, with matplotlib."""

from __future__ import annotations

from itertools import cycle
from typing import Any

import numpy as np

from . import curves, published, times
from .datasets import size_of, title_of
from .rows import Row, Rows, data_of

#: Colours that can be told apart without colour vision (Okabe and Ito), with markers besides.
_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#882255")
_LINES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)))


def _panels(rows: int, columns: int, width: float = 3.0, height: float = 2.7) -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width * columns, height * rows + 1.0), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False)


def _legend(figure: Any, axes: Any, columns: int = 3) -> Any:
    known = [axis.get_legend_handles_labels() for axis in axes]
    entries = {label: handle for found in known for handle, label in zip(*found, strict=True)}
    figure.legend(
        entries.values(),
        entries.keys(),
        loc="outside lower center",
        ncols=columns,
        frameon=False,
        fontsize=8,
    )
    for axis in axes:
        axis.grid(alpha=0.3, linewidth=0.5)
    return figure


def figure2(rows: Rows, table1: list[Row], table2: list[Row]) -> Any:
    """Time against size: a panel for Table 1 and one for Table 2."""
    figure, ((one, other),) = _panels(1, 2, 4.5, 3.6)
    sizes = [published.TABLE_1[size_of(data)] for data in data_of(table1)]
    adult = [published.TABLE_2[data] for data in data_of(table2)]
    for axis, tasks, yalmip, ours in (
        (one, table1, [s.yalmip[0] for s in sizes], [s.adaptive[0] for s in sizes]),
        (other, table2, [a.yalmip for a in adult], [a.ours for a in adult]),
    ):
        sets = data_of(tasks)
        places = range(len(sets))
        axis.plot(places, yalmip, ":", color="#888888", label="paper: YALMIP")
        axis.plot(places, ours, "--", color="#888888", label="paper: LP-ADMM")
        for method, colour, marker in zip(
            times.METHODS, cycle(_COLOURS), "osv^<>Dx*", strict=False
        ):
            found = [times.timing(rows, tasks, data, method) for data in sets]
            points = [(x, t.seconds) for x, t in zip(places, found, strict=True) if t is not None]
            if points:
                axis.plot(
                    *zip(*points, strict=True),
                    color=colour,
                    marker=marker,
                    markersize=4,
                    linewidth=1.1,
                    label=times.METHODS[method],
                )
        axis.set_xticks(places, map(title_of, sets), rotation=60, ha="right")
        axis.set(yscale="log")
    one.set_ylabel("seconds of processor time")
    return _legend(figure, (one, other))


def figure3(rows: Rows, tasks: list[Row]) -> Any:
    """How far above the optimum, against time: the authors' parameters above, tuned ones below."""
    sets = data_of(tasks)
    figure, axes = _panels(2, len(sets), 2.6)
    # A method looks the same in both rows, since one legend serves them.
    names = dict.fromkeys(name for groups in curves.GROUPS.values() for name in groups)
    k = len(_COLOURS)
    styles = {
        name: {"color": _COLOURS[i % k], "linestyle": _LINES[(i + i // k) % k]}
        for i, name in enumerate(names)
    }
    for row, (which, groups) in zip(axes, curves.GROUPS.items(), strict=True):
        for axis, data in zip(row, sets, strict=True):
            for name, group in groups.items():
                found = curves.best_of(rows, data, group)
                if found is not None:
                    curve = np.array(found["curve"])
                    # Thirty points of a curve are as many as its panel can show.
                    shown = np.unique(np.linspace(0, len(curve) - 1, 30).astype(int))
                    seconds, above = curve[shown].T
                    axis.plot(
                        seconds,
                        np.maximum(above, 1e-12),
                        linewidth=1.2,
                        label=name,
                        **styles[name],
                    )
            axis.set(xscale="log", yscale="log", title=title_of(data))
            axis.minorticks_off()  # they are a third of the file
        row[0].set_ylabel(f"F − F*, {which}")
    return _legend(figure, axes.ravel())


def growth(rows: Rows, tasks: list[Row]) -> Any:
    """Where the published rule ends, against the number of samples, for both penalties."""
    figure, ((axis,),) = _panels(1, 1, 5.5, 3.2)
    for (family, lines), marker in zip(times.growth(rows, tasks).items(), "os", strict=False):
        for (method, points), colour in zip(lines.items(), _COLOURS, strict=False):
            axis.plot(
                *zip(*sorted(points), strict=True),
                color=colour,
                marker=marker,
                label=f"{family}, {times.METHODS[method]}",
            )
    axis.set(xscale="log", yscale="log", xlabel="samples", ylabel="above the optimum, nats")
    axis.set_xticks(
        [2000, 5000, 10_000, 20_000, 50_000], ["2,000", "5,000", "10⁴", "2·10⁴", "5·10⁴"]
    )
    axis.minorticks_off()
    return _legend(figure, (axis,), 2)


def theory(rows: list[Row]) -> Any:
    """``F(x̄^K, ȳ^K) - F*`` and its bound C/K over K, one panel for each problem."""
    names = list(dict.fromkeys(row["data"] for row in rows))
    figure, (axes,) = _panels(1, len(names))
    for axis, name in zip(axes, names, strict=True):
        mine = [row for row in rows if row["data"] == name]
        for row, colour in zip(mine, _COLOURS, strict=False):
            K, above, bound = np.array(row["curve"]).T
            axis.loglog(K, bound, "--", color=colour, label=row["method"])
            for sign, line in ((1.0, "-"), (-1.0, ":")):
                axis.loglog(K, np.where(sign * above > 0.0, sign * above, np.nan), line, c=colour)
        axis.set(title=name, xlabel="K")
    axes[0].set_ylabel("F(x̄, ȳ) − F* (dotted: F* − F); dashed: bound")
    return _legend(figure, axes)
