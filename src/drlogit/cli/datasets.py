"""List the bundled data, or write them to a file.

The data need no network and serve to try the other commands.

    drlogit datasets
    drlogit datasets export breast-cancer cancer.csv
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from ..datasets.bundled import BUNDLED, load_bundled
from ..files.writing import write_text
from .console import DONE, Console
from .outputs import table


def add_options(parser: ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("action", nargs="?", choices=("list", "export"), default="list")
    parser.add_argument("name", metavar="NAME", nargs="?", help="export: name of the data set")
    parser.add_argument("file", metavar="FILE", nargs="?", help="export: CSV file to write")


def run(arguments: Namespace, console: Console) -> int:
    """Run the command."""
    if arguments.action == "export":
        if Path(arguments.file or "").suffix.lower() != ".csv":
            raise ValueError(
                f"export needs a data set and a file that ends in .csv, got {arguments.file}"
            )
        frame = load_bundled(arguments.name)
        write_text(arguments.file, frame.to_csv(index=False, lineterminator="\n"))
        n_samples, n_features = len(frame), frame.shape[1] - 1
        record = {"file": arguments.file, "n_samples": n_samples, "n_features": n_features}
        text = f"{n_samples} rows with {n_features} features written to {arguments.file}"
        console.answer(record, text)
        return DONE
    rows = [
        {"name": name, "rows": len(frame), "features": frame.shape[1] - 1, "description": words}
        for name, (words, load) in BUNDLED.items()
        for frame in [load()]
    ]
    cells = [[str(value) for value in row.values()] for row in rows]
    console.answer(rows, table(["name", "samples", "features", "description"], cells))
    return DONE
