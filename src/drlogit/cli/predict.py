"""Predict labels and probabilities.

Features are matched by name if the file has names, otherwise by position. Labels in the file are
not used. Writes CSV with the predicted label and the probability of the positive class, or of every
class if there are more than two; the column names say which. The cut-off is that of drlogit
threshold, if the model has one, and one half otherwise.

    drlogit predict model.json new.csv
    drlogit predict model.json new.csv --id patient -o predictions.csv
    drlogit predict model.json new.csv --threshold 0.21
    drlogit predict model.json test.svm.bz2 --json
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

import numpy as np
import pandas as pd

from ..files.writing import safe_cell, write_text
from . import options
from .console import Console, Exit
from .data import read_asked


def add_options(parser: ArgumentParser) -> None:
    """Add the options."""
    add = options.group(parser)
    add(*options.MODEL)
    add(*options.DATA)
    add("-o --output FILE", "CSV file to write (default: standard output)")
    add("--id COLUMN", "column that identifies the rows, copied to the output")
    add("--raw", "put no apostrophe before texts that a spreadsheet would run as formulas")
    options.add_threshold(parser)
    options.add_file_options(parser)


def run(arguments: Namespace, console: Console) -> int:
    """Run the command."""
    asked = read_asked(arguments, console, arguments.data, with_labels=False)
    threshold = asked.threshold(arguments.threshold)
    probabilities, classes = asked.model.predict_proba(asked.samples.X), asked.classes
    chosen = probabilities.argmax(axis=1)
    shown = [*range(len(classes))]
    if asked.positive is not None:  # whose probability says all
        positive = classes.index(asked.positive)
        shown = [positive]
        decided = probabilities[:, positive] >= threshold
        chosen = np.where(decided, positive, 1 - positive)
        console.note(
            f"{asked.positive} is predicted from a probability of {threshold:g} on"
            f"{' (from drlogit threshold)' if threshold == asked.notes.get('threshold') else ''}"
        )
    predictions = asked.model.classes_[chosen].tolist()
    cells = [["prediction", *predictions]]
    cells += [[f"probability_{classes[k]}", *probabilities[:, k].tolist()] for k in shown]
    record = {"classes": classes, "positive": asked.positive, "threshold": threshold}
    record |= {"predictions": predictions, "probabilities": probabilities}
    ids = asked.samples.column(arguments.id, "id")
    if ids is not None:
        record["ids"] = ids.tolist()
        cells.insert(0, [arguments.id, *record["ids"]])
    if console.json:
        console.answer(record, "")
    safe = cells if arguments.raw else [[safe_cell(cell) for cell in each] for each in cells]
    if safe != cells and not console.json:
        console.note(
            "warning: texts that begin like a formula have an apostrophe in front; --raw writes "
            "them unchanged"
        )
    frame = pd.DataFrame({head: values for head, *values in safe})
    text = frame.to_csv(index=False, lineterminator="\n")
    if arguments.output is not None:
        write_text(arguments.output, text)
        console.note(f"{len(predictions)} predictions written to {arguments.output}")
    elif not console.json:
        print(text, end="")
    return Exit.DONE
