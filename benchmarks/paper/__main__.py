"""The paper's tables and figures, run here and set beside the paper.

Rows are kept in ``rows.jsonl``: a run that was stopped continues where it stopped.  Writes
``report.md`` with every table, and the figures as SVG.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..environment import THREAD_VARIABLES
from . import accuracy, curves, figures, theory, times
from .rows import Row, Rows

NAMES = ("table1", "table2", "table4", "table3", "figure3", "theory")

ABOUT = """# Li, Huang and So (2019), reproduced

Every table and figure of "A first-order algorithmic framework for (Wasserstein) distributionally
robust logistic regression", run here and set beside what the paper prints. One thread, ℓ1 transport
and no intercept throughout. Every time stands beside its certified duality gap: how far above the
optimum the answer can be at most, in nats.
"""


def plan(name: str, quick: bool) -> list[Row]:
    """What is measured for a table or figure."""
    modules: dict[str, Any] = {"figure3": curves, "theory": theory, "table3": accuracy}
    return modules[name].plan(quick) if name in modules else times.plan(name, quick)


def measure(run: Row) -> dict[str, Any] | str:
    """The values of a run, or in a word or two why there are none."""
    modules: dict[str, Any] = {"figure3": curves, "theory": theory, "official": accuracy}
    modules["splits"] = accuracy
    try:
        found: dict[str, Any] | str = modules.get(run["experiment"], times).measure(run)
    except FileNotFoundError as error:
        return str(error)
    return found


def text(rows: Rows, quick: bool) -> str:
    """The report: every table, and where the figures are."""
    tasks = {name: plan(name, quick) for name in NAMES}
    parts = [ABOUT, "## Tables 1, 2 and 4, Figure 2\n", times.HOW_TO_READ]
    for name in ("table1", "table2", "table4"):
        parts.append(times.tables(name, rows, tasks[name]))
    parts += ["![Figure 2](figure2.svg)\n", "![growth](growth.svg)\n"]
    parts += ["## Table 3\n", accuracy.tables(rows, tasks["table3"])]
    parts += ["## Figure 3\n", "![Figure 3](figure3.svg)\n", curves.table(rows, tasks["figure3"])]
    found = rows.of(tasks["theory"])
    parts += ["## Theory\n", "![theory](theory.svg)\n", theory.HOW_TO_READ, theory.table(found)]
    known = ", ".join(f"{name} {value}" for name, value in rows.circumstances.items())
    return "\n".join([*parts, f"## Circumstances\n\n{known}."]) + "\n"


def draw(folder: Path, rows: Rows, quick: bool) -> None:
    """Write the figures."""
    import matplotlib

    one, two, four = (plan(name, quick) for name in ("table1", "table2", "table4"))
    drawn = {
        "figure2": figures.figure2(rows, one, two),
        "growth": figures.growth(rows, two + four),
        "figure3": figures.figure3(rows, plan("figure3", quick)),
    }
    if found := rows.of(plan("theory", quick)):
        drawn["theory"] = figures.theory(found)
    # A fixed salt and no date, so that equal figures give equal files.
    with matplotlib.rc_context({"svg.hashsalt": "drlogit", "svg.fonttype": "none"}):
        for name, figure in drawn.items():
            figure.savefig(folder / f"{name}.svg", metadata={"Date": None})


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.paper", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument(
        "what",
        nargs="+",
        choices=(*NAMES, "all"),
        metavar="WHAT",
        help=f"one or more of {', '.join(NAMES)}, or all",
    )
    parser.add_argument("--quick", action="store_true", help="a few minutes, to see that it works")
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("build/paper"),
        metavar="DIR",
        help="folder for the report and the rows",
    )
    parser.add_argument(
        "--report-only", action="store_true", help="run nothing: the report of what is there"
    )
    options = parser.parse_args(arguments)
    for variable in THREAD_VARIABLES:  # for libraries and processes that are loaded later
        os.environ[variable] = "1"
    options.out.mkdir(parents=True, exist_ok=True)
    rows = Rows(options.out / "rows.jsonl", reported=options.report_only)
    begun = time.monotonic()
    wanted = [name for name in NAMES if "all" in options.what or name in options.what]
    for run in [run for name in wanted for run in plan(name, options.quick)]:
        if options.report_only or rows.get(run) is not None:
            continue
        measured = measure(run)
        if isinstance(measured, str):
            print(f"{run['experiment']} {run['data']} {run['method']}: {measured}")
            continue
        row = rows.add(run, **measured)
        said = " ".join(
            f"{name} {row[name]:.3g}"
            for name in ("seconds", "gap", "accuracy")
            if row[name] is not None
        )
        minutes = (time.monotonic() - begun) / 60.0
        print(
            f"{run['experiment']} {run['data']} {run['method']}: {said} [{minutes:.1f} min]",
            flush=True,
        )
    draw(options.out, rows, options.quick)
    report = options.out / "report.md"
    report.write_text(text(rows, options.quick), encoding="utf-8")
    print(report)


if __name__ == "__main__":
    main()
