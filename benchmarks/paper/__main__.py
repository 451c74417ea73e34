"""The paper's tables and figures, run here and set beside the paper.

Rows are kept in ``rows.jsonl``: a run that was stopped continues where it stopped, and rows that
were measured with other code are measured again.  Writes ``report.md`` with every table, and the
figures as SVG.  ``--report-only`` writes the report of the rows that are there, and says how many
of them were measured with other code.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ..environment import THREAD_VARIABLES
from ..store import Row
from . import accuracy, curves, figures, theory, times
from .rows import Rows, task

NAMES = ("table1", "table2", "figure2", "figure3", "table3", "table4", "theory")

#: The problems of ``theory.instances``, of which a quick run has the first.
_INSTANCES = ("synthetic (60, 5)", "synthetic (1000, 50)", "a1a")

ABOUT = """# Li, Huang and So (2019), reproduced

Every table and figure of "A first-order algorithmic framework for (Wasserstein) distributionally
robust logistic regression", run here and set beside what the paper prints. The paper's times are
from MATLAB R2018a on an Intel Core i5-8600; compare ratios, not seconds. The paper's solver off the
shelf is YALMIP with IPOPT. Here it is Clarabel through cvxpy, in the form that was measured to be
fastest, and IPOPT through casadi on the paper's problem (A). All methods have one thread. ℓ1
transport and no intercept throughout.

Every time stands beside its certified duality gap: how far above the optimum the answer can be at
most, in nats.
"""


THEORY = """Proposition 4.1 and Theorem 4.2 along the iterates of LP-ADMM with a constant penalty
above the proven limit (√3+1) L_f. In (c), m is the quantity of the statement; the paper's proof is
about m′ = m + L_f²/(2ρ) ‖yᵏ − yᵏ⁻¹‖². The figure shows |F(x̄, ȳ) − F*| and, dashed, the bound C/K of
Theorem 4.2. The bound is one-sided: where a curve is above its bound, F(x̄, ȳ) is below F*, which it
can be because Ax̄ ≠ ȳ.
"""


def plan(name: str, quick: bool) -> list[Row]:
    """What is measured for a table or figure; Figure 2 draws the times of Tables 1 and 2."""
    if name == "figure2":
        return plan("table1", quick) + plan("table2", quick)
    if name == "figure3":
        return curves.plan(quick)
    if name == "theory":
        return [task("theory", problem, "lp-admm") for problem in _INSTANCES[: 1 if quick else 3]]
    return accuracy.plan(quick) if name == "table3" else times.plan(name, quick)


def measure(run: Row, rows: Rows, quick: bool) -> Row | str:
    """The row of a run, or in a word or two why there is none."""
    try:
        if run["experiment"] == "figure3":
            return curves.measure(run)
        if run["experiment"] == "theory":
            started = time.process_time()
            known = theory.instances(quick=run["data"] == _INSTANCES[0])
            parts = theory.run([problem for problem in known if problem.name == run["data"]])
            return {"parts": parts, "cpu_seconds": time.process_time() - started}
        if run["experiment"].startswith("table3"):
            return accuracy.measure(run, rows)
        return times.measure(run, rows, quick)
    except FileNotFoundError as error:
        print(error)
        return "no data"


def run_all(
    names: Sequence[str], rows: Rows, quick: bool, chosen: Callable[[Row], bool]
) -> dict[Any, str]:
    """Measure the chosen runs that have no row yet; why the rest was left out."""
    missing: dict[Any, str] = {}
    begun = time.monotonic()
    tasks = {tuple(run.values()): run for name in names for run in plan(name, quick) if chosen(run)}
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
            f"{row['cpu_seconds']:.3g} s, {', '.join(words) or row.get('status', 'done')} "
            f"[{(time.monotonic() - begun) / 60.0:.1f} min]",
            flush=True,
        )
    return missing


def text(names: Sequence[str], rows: Rows, quick: bool, missing: dict[Any, str]) -> str:
    """The report: every table, and where the figures are."""
    parts = [ABOUT]
    if quick:
        parts.append("> A quick run, to see that everything works: smaller sizes, fewer trials.\n")
    if {"table1", "table2", "table4"} & set(names):
        parts += ["## How to read the times\n", times.HOW_TO_READ + "\n"]
    for name in names:
        title = name.replace("table", "Table ").replace("figure", "Figure ")
        parts.append(f"## {title[0].upper()}{title[1:]}\n")
        tasks = plan(name, quick)
        done = len(rows.of(tasks))
        why = "" if done == len(tasks) else "; the others were left out by a limit or not run"
        parts.append(f"{done} of {len(tasks)} planned runs{why}.\n")
        if name.startswith(("figure", "theory")):
            parts.append(f"![{name}]({name}.svg)\n")
        if name == "figure3":
            parts.append(curves.table(rows, tasks))
        elif name == "table3":
            parts.append(accuracy.tables(rows, tasks))
        elif name == "theory":
            parts += [THEORY, theory.table(_theory_rows(rows, tasks))]
        elif name != "figure2":
            parts.append(times.tables(name, rows, tasks, missing))
    everything = [run for name in names if name != "figure2" for run in plan(name, quick)]
    parts += ["## Circumstances\n", circumstances(rows, everything)]
    return "\n".join(parts) + "\n"


def draw(folder: Path, names: Sequence[str], rows: Rows, quick: bool) -> None:
    """Write the figures."""
    for name in names:
        if name == "figure2":
            figure = figures.figure2(rows, plan("table1", quick), plan("table2", quick))
        elif name == "figure3":
            figure = figures.figure3(rows, plan(name, quick))
        elif name == "theory" and (found := _theory_rows(rows, plan(name, quick))):
            figure = theory.figure(found)
        else:
            continue
        # A fixed salt and no date, so that equal figures give equal files.
        import matplotlib

        with matplotlib.rc_context({"svg.hashsalt": "drlogit"}):
            figure.savefig(folder / f"{name}.svg", metadata={"Date": None})


def _theory_rows(rows: Rows, tasks: list[Row]) -> list[Row]:
    return [part for row in rows.of(tasks) for part in row["parts"]]


def circumstances(rows: Rows, tasks: list[Row]) -> str:
    """The machine, the versions, and the digests of the code that measured the rows."""
    known = [
        f"{key.replace('_', '-')} {value}"
        for key, value in rows.circumstances.items()
        if not key.startswith("drlogit_") and value is not None
    ]
    digests = ", ".join(f"{digest} ({n} rows)" for digest, n in rows.digests(tasks).most_common())
    return (
        f"One thread; {', '.join(known)}.\n\nCommits and digests of the library's Python and "
        f"Cython code that measured the rows: {digests}. A first-order method has the digest "
        "of the packages `paper`, `rows`, `problem` and `dual`; that of the exact solver has "
        "`engine` and `fitting` in the place of `paper`."
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.paper", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("what", nargs="+", choices=(*NAMES, "all"), metavar="WHAT",
                        help=f"one or more of {', '.join(NAMES)}, or all")  # fmt: skip
    parser.add_argument("--quick", action="store_true", help="a few minutes, to see that it works")
    parser.add_argument("--out", type=Path, default=Path("build/paper"), metavar="DIR",
                        help="folder for the report and the rows")  # fmt: skip
    parser.add_argument("--methods", nargs="+", metavar="METHOD",
                        help="run only these methods, by the names in rows.jsonl")  # fmt: skip
    parser.add_argument("--sets", nargs="+", metavar="SET", help="run only these data sets")
    parser.add_argument("--trials", type=int, default=1000, metavar="N",
                        help="run at most so many trials of each table")  # fmt: skip
    parser.add_argument("--report-only", action="store_true",
                        help="run nothing: the report of what is there")  # fmt: skip
    options = parser.parse_args(arguments)
    names = [name for name in NAMES if "all" in options.what or name in options.what]
    for variable in THREAD_VARIABLES:  # for libraries and processes that are loaded later
        os.environ[variable] = "1"
    options.out.mkdir(parents=True, exist_ok=True)
    rows = Rows(options.out / "rows.jsonl", stale=options.report_only)
    if rows.left_aside:
        print(f"{rows.left_aside} rows were measured with other code and are measured again")

    def chosen(run: Row) -> bool:
        return (
            run["trial"] < options.trials
            and (options.methods is None or run["method"] in options.methods)
            and (options.sets is None or run["data"] in options.sets)
        )

    missing = {} if options.report_only else run_all(names, rows, options.quick, chosen)
    tables = [name for name in names if name != "figure2"]  # which has no rows of its own
    if stale := rows.stale([run for name in tables for run in plan(name, options.quick)]):
        print(f"{stale} rows were measured with other code than this copy of the library has")
    draw(options.out, names, rows, options.quick)
    report = options.out / "report.md"
    report.write_text(text(names, rows, options.quick, missing), encoding="utf-8")
    print(report)


if __name__ == "__main__":
    main()
