"""``drlogit reproduce``: the paper's tables and figures, run here and set beside the paper."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from .console import DONE, Console
from .options import Commands, new_parser

_NAMES = ("table1", "table2", "figure2", "figure3", "table3", "table4")


def add_parser(commands: Commands) -> None:
    """Add the command."""
    parser = new_parser(
        commands,
        "reproduce",
        help="run the experiments of Li, Huang and So (2019) and set them beside the paper",
        description="Run the experiments of Li, Huang and So (2019), from which the methods "
        "here come, and write a page with every table and figure beside what the paper prints. "
        "What is done is kept: a run that was stopped goes on where it stopped.",
        examples="""
        drlogit reproduce all --quick
        drlogit reproduce table2 figure3 --out results
        """,
    )
    parser.add_argument(
        "what", nargs="+", choices=(*_NAMES, "all"), metavar="WHAT",
        help=f"one or more of {', '.join(_NAMES)}, or all",
    )  # fmt: skip
    parser.add_argument(
        "--quick", action="store_true", help="smaller sizes and fewer trials: about two minutes"
    )
    parser.add_argument(
        "--out", type=Path, default=Path("drlogit-reproduce"), metavar="DIR",
        help="folder for the page and the rows",
    )  # fmt: skip
    parser.add_argument(
        "--page-only",
        action="store_true",
        help="run nothing: write the page of what is there, whichever version measured it last",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    from ..reproduce import report, runner
    from ..reproduce.environment import THREAD_VARIABLES
    from ..reproduce.experiments import tasks_of
    from ..reproduce.tasks import Results, circumstances

    console = Console(arguments)
    names = _NAMES if "all" in arguments.what else [n for n in _NAMES if n in arguments.what]
    rows = arguments.out / "rows.jsonl"
    if arguments.page_only:
        results = Results.of_last_run(rows)
    else:
        for variable in THREAD_VARIABLES:  # for libraries and processes that are loaded later
            os.environ[variable] = "1"
        results = Results(rows, circumstances(threads=1))
        _remark(console, results)
        runner.run(tasks_of(names, arguments.quick), results, console.note)
    page, findings = report.write(arguments.out, names, results, arguments.quick)
    record = {"page": str(page), "rows": str(rows), "findings": findings}
    text = "\n".join([*(f"- {finding}" for finding in findings), f"Page: {page}"])
    console.answer(record, text)
    return DONE


def _remark(console: Console, results: object) -> None:
    """What is in the folder already."""
    from ..reproduce.tasks import Results

    assert isinstance(results, Results)
    if len(results):
        console.note(f"{len(results)} rows are there already and are not measured again")
    if results.stale:
        console.note(f"{results.stale} rows of other versions or machines are left aside")
    if results.damaged:
        console.note(f"{results.damaged} damaged lines are ignored")
