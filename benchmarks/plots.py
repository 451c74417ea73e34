"""Pictures of the rows; nothing is measured here.

    python -m benchmarks.plots [--quick] [--results DIR] [--out FILE]

Left, the paper's data sets: time of a robust fit over that of a plain one.  Right, time
against N at n = 100, with the iterations at every point.  Needs matplotlib.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from . import store
from .tables import OURS, PLAIN, Group, converted, geometric_mean, ordered

COLOURS = {OURS: "#0b6e99", PLAIN: "#8a8a8a"}


def draw(folder: Path, out: Path) -> None:
    """Draw what rows there are."""
    plt = _import_pyplot()
    paper = [group for group in _complete(folder, "paper") if not converted(group)]
    scaling = [g for g in _complete(folder, "scaling") if g[OURS]["n_features"] == 100]
    # The same rows give the same file: no date, no random names.
    with plt.rc_context({"svg.hashsalt": "drlogit", "font.size": 9}):
        height = max(3.5, 0.22 * len(paper) + 1.2)
        figure, (left, right) = plt.subplots(1, 2, figsize=(10, height), layout="constrained")
        _ratios(left, paper)
        _growth(right, scaling)
        out.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(out, metadata={"Date": None} if out.suffix == ".svg" else None, dpi=150)
        plt.close(figure)


def _complete(folder: Path, suite: str) -> list[Group]:
    """Groups in which both sides reached a gap, at the smallest limit on threads."""
    groups = [
        group
        for group in ordered(store.latest(store.read(folder, suite)))
        if all(name in group and group[name]["gap"] is not None for name in (OURS, PLAIN))
    ]
    fewest = min((group[OURS]["threads"] for group in groups), default=1)
    return [group for group in groups if group[OURS]["threads"] == fewest]


def _ratios(axes: Any, groups: list[Group]) -> None:
    """A dot per data set, left of the line where we are faster."""
    axes.set_xlabel("time of the robust fit / time of a plain fit")
    axes.set_title(f"the paper's data sets, {_gaps(groups)}")
    if not groups:
        return
    ratios = [group[OURS]["seconds"] / group[PLAIN]["seconds"] for group in groups]
    names = [group[OURS]["data"] for group in groups]
    axes.scatter(ratios, range(len(ratios)), color=COLOURS[OURS], s=22, zorder=3)
    axes.set_yticks(range(len(ratios)), names)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.axvline(1.0, color="black", linewidth=0.8)
    mean = geometric_mean(ratios)
    axes.axvline(mean, color=COLOURS[OURS], linewidth=0.8, linestyle="--",
                 label=f"geometric mean {mean:.2f}")  # fmt: skip
    ticks = [t for t in (0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50)
             if min(*ratios, 1) / 2.5 <= t <= 2.5 * max(*ratios, 1)]  # fmt: skip
    axes.set_xticks(ticks, [f"{t:g}×" for t in ticks])
    axes.minorticks_off()
    axes.grid(axis="x", alpha=0.3)
    axes.legend(frameon=False)


def _growth(axes: Any, groups: list[Group]) -> None:
    """Time against N, both sides."""
    axes.set_xlabel("N (n = 100, dense)")
    axes.set_ylabel("seconds")
    axes.set_title(f"growing data, {_gaps(groups)}")
    if not groups:
        return
    for name, label in ((OURS, "drlogit, robust"), (PLAIN, "scikit-learn, plain")):
        rows = sorted((group[name] for group in groups), key=lambda row: row["n_samples"])
        sizes, seconds = [r["n_samples"] for r in rows], [r["seconds"] for r in rows]
        axes.loglog(sizes, seconds, marker="o", markersize=4, color=COLOURS[name], label=label)
        for row in rows:
            axes.annotate(
                str(row["iterations"]), (row["n_samples"], row["seconds"]),
                xytext=(0, 6), textcoords="offset points", ha="center", color=COLOURS[name],
            )  # fmt: skip
    axes.margins(y=0.1)
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, title="numbers: iterations")


def _gaps(groups: list[Group]) -> str:
    """No time without its gap."""
    gaps = [group[OURS]["gap"] for group in groups]
    return f"certified gaps up to {max(gaps):.0e}" if gaps else "no rows yet"


def _import_pyplot() -> Any:
    try:
        import matplotlib
    except ImportError as error:
        raise SystemExit("plots need matplotlib: pip install 'drlogit[plot]'") from error
    matplotlib.use("Agg")
    import matplotlib.pyplot

    return matplotlib.pyplot


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.plots", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--quick", action="store_true", help="a picture of the trial runs")
    parser.add_argument("--results", type=Path, help="folder of the rows")
    parser.add_argument("--out", type=Path, help="the file, .svg or .png")
    options = parser.parse_args(arguments)
    folder = options.results or (store.TRIALS if options.quick else store.RESULTS)
    out = options.out or folder / "speed.svg"
    draw(folder, out)
    print(f"wrote {out.name}")


if __name__ == "__main__":
    main()
