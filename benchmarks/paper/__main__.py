"""The paper's tables and figures, run here and set beside the paper.

What is done is kept in ``rows.jsonl``: a run that was stopped goes on where it stopped.  Writes
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
from ..store import Row
from . import accuracy, curves, figures, times
from .rows import Rows

NAMES = ("table1", "table2", "figure2", "figure3", "table3", "table4")

ABOUT = """# Li, Huang and So (2019), reproduced

Every table and figure of "A first-order algorithmic framework for (Wasserstein) distributionally
robust logistic regression", run here and set beside what the paper prints. The paper's times are
from MATLAB R2018a on an Intel Core i5-8600; compare ratios, not seconds. "Off the shelf" is YALMIP
in the paper; here it is Clarabel through cvxpy, in the form measured to be fastest, and IPOPT
through casadi on the paper's problem (A). ℓ1 transport and no intercept throughout.

No time stands without its certified duality gap: how far above the optimum the answer can be at
most, in nats.
"""


def plan(name: str, quick: bool) -> list[Row]:
    """What is measured for a table or figure; Figure 2 draws the times of Tables 1 and 2."""
    if name == "figure2":
        return plan("table1", quick) + plan("table2", quick)
    if name == "figure3":
        return curves.plan(quick)
    return accuracy.plan(quick) if name == "table3" else times.plan(name, quick)


def measure(run: Row, rows: Rows, quick: bool) -> Row | str:
    """The row of a run, or in a word or two why there is none."""
    try:
        if run["experiment"] == "figure3":
            return curves.measure(run)
        if run["experiment"].startswith("table3"):
            return accuracy.measure(run, rows)
        return times.measure(run, rows, quick)
    except FileNotFoundError as error:
        print(error)
        return "no data"


def run_all(names: Sequence[str], rows: Rows, quick: bool) -> dict[Any, str]:
    """Measure what has no row yet; why the rest was left out."""
    missing: dict[Any, str] = {}
    begun = time.monotonic()
    tasks = {tuple(run.values()): run for name in names for run in plan(name, quick)}
    for number, run in enumerate(tasks.values(), start=1):
        if rows.get(run) is not None:
            continue
        place = (run["data"], run["method"])
        if missing.get(place) in ("no data", "too large", "not installed"):
            continue
        measured = measure(run, rows, quick)
        if isinstance(measured, str):
            missing[place] = measured
            continue
        row = rows.add(run, measured)
        words = [
            f"{name} {row[name]:.3g}" for name in ("score", "accuracy", "gap") if row.get(name)
        ]
        print(
            f"{number}/{len(tasks)} {run['experiment']} {run['data']} {run['method']}: "
            f"{row['cpu_seconds']:.3g} s, {', '.join(words) or 'no answer in time'} "
            f"[{(time.monotonic() - begun) / 60.0:.1f} min]",
            flush=True,
        )
    return missing


def report(
    folder: Path, names: Sequence[str], rows: Rows, quick: bool, missing: dict[Any, str]
) -> Path:
    """Write the tables and figures; where."""
    parts = [ABOUT]
    if quick:
        parts.append("> A quick run, to see that everything works: smaller sizes, fewer trials.\n")
    if {"table1", "table2", "table4"} & set(names):
        parts += ["## How to read the times\n", times.HOW_TO_READ + "\n"]
    for name in names:
        parts.append(f"## {name.replace('table', 'Table ').replace('figure', 'Figure ')}\n")
        tasks = plan(name, quick)
        parts.append(f"{len(rows.of(tasks))} of {len(tasks)} runs.\n")
        if name.startswith("figure"):
            figure = (
                figures.figure3(rows, tasks)
                if name == "figure3"
                else figures.figure2(rows, plan("table1", quick), plan("table2", quick))
            )
            # A fixed salt and no date, so that equal figures give equal files.
            import matplotlib

            with matplotlib.rc_context({"svg.hashsalt": "drlogit"}):
                figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
            parts.append(f"![{name}]({name}.svg)\n")
        if name == "figure3":
            parts.append(curves.table(rows, tasks))
        elif name == "table3":
            parts.append(accuracy.tables(rows, tasks))
        elif name != "figure2":
            parts.append(times.tables(name, rows, tasks, missing))
    known = [f"{key.replace('_', '-')} {value}" for key, value in rows.circumstances.items()]
    parts += ["## Circumstances\n", ", ".join(known) + "."]
    path = folder / "report.md"
    path.write_text("\n".join(parts) + "\n", encoding="utf-8")
    return path


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.paper", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("what", nargs="+", choices=(*NAMES, "all"), metavar="WHAT",
                        help=f"one or more of {', '.join(NAMES)}, or all")  # fmt: skip
    parser.add_argument("--quick", action="store_true", help="a few minutes, to see that it works")
    parser.add_argument("--out", type=Path, default=Path("build/paper"), metavar="DIR",
                        help="folder for the report and the rows")  # fmt: skip
    parser.add_argument("--report-only", action="store_true",
                        help="run nothing: the report of what is there")  # fmt: skip
    options = parser.parse_args(arguments)
    names = [name for name in NAMES if "all" in options.what or name in options.what]
    for variable in THREAD_VARIABLES:  # for libraries and processes that are loaded later
        os.environ[variable] = "1"
    options.out.mkdir(parents=True, exist_ok=True)
    rows = Rows(options.out / "rows.jsonl", last=options.report_only)
    if rows.left_aside:
        print(f"{rows.left_aside} rows of other versions or machines are left aside")
    missing = {} if options.report_only else run_all(names, rows, options.quick)
    print(report(options.out, names, rows, options.quick, missing))


if __name__ == "__main__":
    main()
