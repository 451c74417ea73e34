"""Predict labels and probabilities.

Features are matched by name if the file has names, otherwise by position. Labels in the file are
not used. Writes CSV with the predicted label and the probability of the positive class, or of every
class if there are more than two; the column names say which.

    drlogit predict model.json new.csv
    drlogit predict model.json new.csv --id patient -o predictions.csv
    drlogit predict model.json new.csv --threshold 0.21
    drlogit predict model.json test.libsvm.bz2 --json
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

import pandas as pd

from ..files.writing import safe_cell, write_text
from . import options
from .asking import read_asked, read_column
from .console import DONE, Console


def add_options(parser: ArgumentParser) -> None:
    """Add the options."""
    add = options.group(parser)
    add(*options.MODEL)
    add(*options.DATA)
    add("-o --output FILE", "CSV file to write (default: standard output)")
    add("--id COLUMN", "column that identifies the rows, copied to the output")
    add("--raw", "write texts unchanged; by default, texts that a spreadsheet would run as "
        "formulas (they begin with = + - @) get an apostrophe in front")  # fmt: skip
    options.add_threshold(parser)
    options.add_sample_options(parser)


def run(arguments: Namespace, console: Console) -> int:
    """Run the command."""
    asked = read_asked(arguments, console, with_labels=False)
    probabilities = asked.model.predict_proba(asked.samples.X)
    predictions = asked.model.classes_[asked.predicted(arguments.threshold)].tolist()
    # Of two, the positive class says all.
    shown = [asked.positive] if len(asked.classes) == 2 else [*range(len(asked.classes))]
    header = ["prediction", *(f"probability_{asked.classes[k]}" for k in shown)]
    columns = [predictions, *probabilities[:, shown].T.tolist()]
    record = {
        "classes": asked.classes,
        "predictions": predictions,
        "probabilities": probabilities,
    }
    if arguments.id is not None:
        record["ids"] = read_column(asked, arguments, "id")
        header, columns = [arguments.id, *header], [record["ids"], *columns]
    if console.json:
        console.answer(record, "")
    if not arguments.raw:
        header, *columns = ([safe_cell(cell) for cell in cells] for cells in (header, *columns))
    frame = pd.DataFrame(zip(*columns, strict=True), columns=header)
    text = frame.to_csv(index=False, lineterminator="\n")
    if arguments.output is not None:
        write_text(arguments.output, text)
        console.note(f"{len(probabilities)} predictions written to {arguments.output}")
    elif not console.json:
        print(text, end="")
    return DONE
