"""``drlogit datasets``: list, fetch and export the data sets known by name."""

from __future__ import annotations

import argparse
import csv
import io
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from .console import DONE, Console
from .options import Commands, new_parser
from .outputs import check_writable, table


def add_parser(commands: Commands) -> None:
    """Add the command."""
    parser = new_parser(
        commands,
        "datasets",
        help="list, fetch and export the data sets known by name",
        description="Data sets that every command takes by name: those of the experiments of Li, "
        "Huang and So (2019), and scikit-learn's breast cancer data, which need no network. "
        "They are looked for in the folder DRLOGIT_DATA, then in the cache, then at their public "
        "source.",
        examples="""
        drlogit datasets
        drlogit datasets fetch a9a a9a.t
        drlogit datasets export breast-cancer cancer.csv
        """,
    )
    parser.set_defaults(run=run, action="list")
    actions = parser.add_subparsers(dest="action", metavar="list | fetch | export")
    actions.add_parser("list", help="what there is (the default)")
    fetch = actions.add_parser("fetch", help="download sets to the cache; prints where they are")
    fetch.add_argument("names", nargs="+", metavar="NAME")
    fetch.add_argument("--data-home", metavar="DIR", help="folder to keep them in, not the cache")
    export = actions.add_parser("export", help="write a set to a file of its own")
    export.add_argument("name", metavar="NAME")
    export.add_argument("file", metavar="FILE", help=".csv, or .svm for svmlight text")
    for action in (fetch, export):
        for option in ("--json", "--quiet"):
            action.add_argument(
                option, action="store_true", default=argparse.SUPPRESS, help=argparse.SUPPRESS
            )


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    console = Console(arguments)
    if arguments.action == "fetch":
        _fetch(arguments, console)
    elif arguments.action == "export":
        _export(arguments, console)
    else:
        _list(console)
    return DONE


def _list(console: Console) -> None:
    from .. import datasets
    from ..datasets.known import BUNDLED, load_known

    cancer = load_known(BUNDLED)
    rows: list[dict[str, Any]] = [
        {
            "name": BUNDLED,
            "rows": cancer.X.shape[0],
            "features": cancer.X.shape[1],
            "description": "Tumours, malignant or benign; comes with scikit-learn.",
        }
    ]
    for name in datasets.names():
        entry = datasets.info(name)
        rows.append(
            {
                "name": name,
                "rows": entry.rows,
                "features": entry.features,
                "description": entry.description,
            }
        )
    cells = [[row["name"], str(row["rows"]), str(row["features"])] for row in rows]
    lines = table(["name", "samples", "features"], cells).split("\n")
    starts = ["", *(row["description"].split(".")[0] for row in rows)]
    shown = (f"{line}  {start[:70]}".rstrip() for line, start in zip(lines, starts, strict=True))
    console.answer(rows, "\n".join(shown))


def _fetch(arguments: argparse.Namespace, console: Console) -> None:
    from .. import datasets

    found = {}
    for name in arguments.names:
        console.note(f"{name} …")
        found[name] = [
            str(path) for path in datasets.load(name, data_home=arguments.data_home).paths
        ]
    console.answer(found, "\n".join(path for paths in found.values() for path in paths))


def _export(arguments: argparse.Namespace, console: Console) -> None:
    from ..datasets.known import is_known, load_known
    from ..files.atomic import write_bytes

    suffix = Path(arguments.file).suffix.lower()
    if suffix not in (".csv", ".svm", ".libsvm", ".svmlight"):
        raise ValueError(
            f"{arguments.file}: the file must be .csv or .svm, got {suffix or 'no suffix'}"
        )
    if not is_known(arguments.name):
        raise ValueError(f"no data set is named {arguments.name!r}: drlogit datasets lists them")
    check_writable(arguments.file)
    samples = load_known(arguments.name)
    contents = _csv(samples) if suffix == ".csv" else _svmlight(samples)
    write_bytes(arguments.file, contents)
    n_samples, n_features = samples.X.shape
    record = {"file": arguments.file, "n_samples": n_samples, "n_features": n_features}
    text = f"{n_samples} samples with {n_features} features written to {arguments.file}"
    console.answer(record, text)


def _csv(samples: Any) -> bytes:
    names = samples.feature_names or [f"x{j}" for j in range(samples.X.shape[1])]
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow([*names, samples.target or "target"])
    for row, label in zip(samples.X, samples.labels.tolist(), strict=True):
        values = row.toarray().ravel() if sp.issparse(row) else row
        writer.writerow([*values.tolist(), label])
    return buffer.getvalue().encode()


def _svmlight(samples: Any) -> bytes:
    from sklearn.datasets import dump_svmlight_file

    # Text has no place there: labels become 1 (the one that sorts last) and -1.
    y = samples.labels
    if y.dtype.kind == "U":
        y = np.where(y == np.unique(y)[-1], 1, -1)
    buffer = io.BytesIO()
    dump_svmlight_file(samples.X, y, buffer, zero_based=False)
    return buffer.getvalue()
