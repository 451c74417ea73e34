"""Measure, and append flat rows; what has rows already is skipped.

    python -m benchmarks.runs SUITE [SUITE ...]
        [--quick] [--only DATA ...] [--sparse] [--threads 1] [--again]

Rows go to ``benchmarks/results/SUITE.jsonl``, those of ``--quick`` to ``build/benchmarks``.
A case is done when its last run has a row for each of its competitors and none failed; they
are always measured together, so a missing one means all are measured again.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from . import store
from .cases import SUITES, Case, select
from .environment import THREAD_VARIABLES
from .measure import measure


def run(
    cases: Iterable[Case],
    folder: Path,
    *,
    threads: int = 1,
    budget: float = 20.0,
    again: bool = False,
) -> int:
    """Measure the cases that have no rows yet; how many that were."""
    done: dict[str, set[tuple[object, ...]]] = {}
    count = 0
    for case in cases:
        if case.suite not in done:
            done[case.suite] = set() if again else finished(folder, case.suite)
        key = store.case_key({**case.settings, "threads": threads})
        if (*key, frozenset(case.competitors)) in done[case.suite]:
            continue
        rows = measure(case, threads=threads, budget=budget)
        store.append(folder, case.suite, rows)
        count += 1
        print(_line(case, rows), flush=True)
    return count


def finished(folder: Path, suite: str) -> set[tuple[object, ...]]:
    """The cases that need not be measured again, each with its competitors."""
    groups = store.latest(store.read(folder, suite))
    return {
        (*key, frozenset(group))
        for key, group in groups.items()
        if all(row["status"] != "ERROR" for row in group.values())
    }


def _line(case: Case, rows: list[store.Row]) -> str:
    """What a person who waits wants to see; no time without its gap."""
    head = f"{case.suite} {case.data} {case.storage} ε={case.epsilon:g} κ={case.kappa:g}"
    parts = [
        f"{row['solver']} {row['status']} {row.get('info_error', '')}"
        if row["gap"] is None
        else f"{row['solver']} {row['seconds']:.3g} s, gap {row['gap']:.1e}"
        f" after {row['iterations']}"
        for row in rows
    ]
    return f"{head} {case.norm} tol={case.tol:g}: " + "; ".join(parts)


def limit_memory(gigabytes: float | None) -> None:
    """Let whoever asks for too much fail by itself instead of taking the machine down."""
    with suppress(ImportError, AttributeError, OSError, ValueError):
        import resource  # not on Windows

        machine = 0.9 * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        limit = int(machine if gigabytes is None else 1e9 * gigabytes)
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.runs", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("suites", nargs="+", choices=[*SUITES, "all"], metavar="SUITE",
                        help=f"one of {', '.join(SUITES)}, or all")  # fmt: skip
    parser.add_argument("--quick", action="store_true", help="a small trial, not kept")
    parser.add_argument("--only", nargs="+", default=[], metavar="DATA", help="these data sets")
    parser.add_argument("--threads", type=int, default=1, help="limit for everyone")
    parser.add_argument("--repeats", type=int, help="at most so many timed runs of each")
    parser.add_argument("--budget", type=float, default=20.0,
                        help="seconds one competitor may take for its repetitions")  # fmt: skip
    parser.add_argument("--memory", type=float, metavar="GB",
                        help="limit on memory; 0.9 of the machine's unless given")  # fmt: skip
    parser.add_argument("--again", action="store_true", help="measure what has rows, too")
    parser.add_argument("--results", type=Path, help="folder of the rows")
    options = parser.parse_args(arguments)
    for name in THREAD_VARIABLES:  # for libraries loaded from here on; ``measure`` limits the rest
        os.environ[name] = str(options.threads)
    limit_memory(options.memory)
    folder = options.results or (store.TRIALS if options.quick else store.RESULTS)
    repeats = options.repeats or (2 if options.quick else None)
    for suite in SUITES if "all" in options.suites else options.suites:
        cases = select(suite, quick=options.quick, only=options.only, repeats=repeats)
        count = run(cases, folder, threads=options.threads, budget=options.budget,
                    again=options.again)  # fmt: skip
        print(f"{suite}: {count} of {len(cases)} cases measured, the others had rows")


if __name__ == "__main__":
    main()
