"""List the bundled data, and write them to a file.

Data to try the other commands on; they need no network.

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
    parser.add_argument("name", metavar="NAME", nargs="?", help="export: which data")
    parser.add_argument("file", metavar="FILE", nargs="?", help="export: a .csv file to write")


def run(arguments: Namespace, console: Console) -> int:
    """Run the command."""
    if arguments.action == "export":
        if Path(arguments.file or "").suffix.lower() != ".csv":
            raise ValueError(f"export wants NAME and FILE, a .csv file, got {arguments.file}")
        frame = load_bundled(arguments.name)
        write_text(arguments.file, frame.to_csv(index=False, lineterminator="\n"))
        n_samples, n_features = len(frame), frame.shape[1] - 1
        record = {"file": arguments.file, "n_samples": n_samples, "n_features": n_features}
        text = f"{n_samples} samples with {n_features} features written to {arguments.file}"
        console.answer(record, text)
        return DONE
    rows = []
    for name, (description, load) in BUNDLED.items():
        n_samples, width = load().shape
        rows.append({"name": name, "rows": n_samples, "features": width - 1,
                     "description": description})  # fmt: skip
    cells = [[str(row[key]) for key in ("name", "rows", "features")] for row in rows]
    lines = table(["name", "samples", "features"], cells).split("\n")
    told = ["", *(str(row["description"]) for row in rows)]
    shown = (f"{line}  {words}".rstrip() for line, words in zip(lines, told, strict=True))
    console.answer(rows, "\n".join(shown))
    return DONE
