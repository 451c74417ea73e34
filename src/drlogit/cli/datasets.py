"""``drlogit datasets``: list the bundled data, and write them to a file to try things on."""

from __future__ import annotations

import argparse
from pathlib import Path

from .console import DONE, Console
from .options import Commands, new_parser
from .outputs import check_writable, table


def add_parser(commands: Commands) -> None:
    """Add the command."""
    parser = new_parser(
        commands,
        "datasets",
        help="list the bundled data, and write them to a file",
        description="Data to try the other commands on; they need no network.",
        examples="""
        drlogit datasets
        drlogit datasets export breast-cancer cancer.csv
        """,
    )
    parser.set_defaults(run=run, action="list")
    actions = parser.add_subparsers(dest="action", metavar="list | export")
    actions.add_parser("list", help="what there is (the default)")
    export = actions.add_parser("export", help="write a set to a CSV file")
    export.add_argument("name", metavar="NAME")
    export.add_argument("file", metavar="FILE", help="a .csv file")
    for option in ("--json", "--quiet"):
        export.add_argument(
            option, action="store_true", default=argparse.SUPPRESS, help=argparse.SUPPRESS
        )


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    from ..datasets.bundled import BUNDLED, load_bundled
    from ..files.atomic import write_text

    console = Console(arguments)
    if arguments.action == "export":
        if Path(arguments.file).suffix.lower() != ".csv":
            raise ValueError(f"{arguments.file}: the file must be .csv")
        check_writable(arguments.file)
        frame = load_bundled(arguments.name)
        write_text(arguments.file, frame.to_csv(index=False, lineterminator="\n"))
        n_samples, n_features = len(frame), frame.shape[1] - 1
        record = {"file": arguments.file, "n_samples": n_samples, "n_features": n_features}
        text = f"{n_samples} samples with {n_features} features written to {arguments.file}"
        console.answer(record, text)
        return DONE
    rows = []
    for name, (description, load) in BUNDLED.items():
        shape = load().shape
        rows.append(
            {"name": name, "rows": shape[0], "features": shape[1] - 1, "description": description}
        )
    cells = [[row["name"], str(row["rows"]), str(row["features"])] for row in rows]
    lines = table(["name", "samples", "features"], cells).split("\n")
    starts = ["", *(str(row["description"]) for row in rows)]
    shown = (f"{line}  {start}".rstrip() for line, start in zip(lines, starts, strict=True))
    console.answer(rows, "\n".join(shown))
    return DONE
