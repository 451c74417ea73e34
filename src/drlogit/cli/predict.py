"""``drlogit predict``: labels and probabilities for samples."""

from __future__ import annotations

import argparse
import csv
import io

from .asking import ModelAndSamples, read_asked
from .console import DONE, Console
from .options import DATA_HELP, Commands, add_sample_options, new_parser
from .outputs import check_writable


def add_parser(commands: Commands) -> None:
    """Add the command."""
    parser = new_parser(
        commands,
        "predict",
        help="labels and probabilities for samples",
        description="Predict the label of each sample. The features of the model are found by name "
        "where files have names, else by position; labels in the file are not used. Writes "
        "CSV: the predicted label, and the probability of the positive class (of every class, if "
        "there are more than two).",
        examples="""
        drlogit predict model.json new.csv
        drlogit predict model.json new.csv -o predictions.csv
        drlogit predict model.json test.libsvm.bz2 --json
        """,
    )
    parser.add_argument("model", metavar="MODEL", help="model file, as drlogit fit writes it")
    parser.add_argument("data", metavar="DATA", help=DATA_HELP)
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="CSV file to write (default: standard output)"
    )
    add_sample_options(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    from ..files.atomic import write_text

    console = Console(arguments)
    check_writable(arguments.output)
    asked = read_asked(arguments, labels=False)
    probabilities = asked.probabilities
    if console.json:
        record = {
            "classes": asked.classes,
            "predictions": asked.predictions,
            "probabilities": probabilities,
        }
        console.answer(record, "")
    if arguments.output is not None:
        write_text(arguments.output, _csv(asked))
        console.note(f"{len(probabilities)} predictions written to {arguments.output}")
    elif not console.json:
        print(_csv(asked), end="")
    return DONE


def _csv(asked: ModelAndSamples) -> str:
    binary = len(asked.classes) == 2
    shown = asked.probabilities[:, 1:] if binary else asked.probabilities
    names = ["probability"] if binary else [f"probability_{label}" for label in asked.classes]
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(["prediction", *names])
    writer.writerows(
        [label, *row] for label, row in zip(asked.predictions, shown.tolist(), strict=True)
    )
    return buffer.getvalue()
