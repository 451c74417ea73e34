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
            f"{asked.positive} is predicted from a probability of {threshold:.4g} on"
            f"{' (from drlogit threshold)' if threshold == asked.notes.get('threshold') else ''}"
        )
    predictions = asked.model.classes_[chosen].tolist()
    frame = pd.DataFrame({"prediction": predictions})
    for k in shown:
        frame[f"probability_{classes[k]}"] = probabilities[:, k]
    record = {"classes": classes, "positive": asked.positive, "threshold": threshold}
    record |= {"predictions": predictions, "probabilities": probabilities}
    ids = asked.samples.column(arguments.id, "id")
    if ids is not None:
        record["ids"] = ids.tolist()
        frame.insert(0, arguments.id, record["ids"])
    safe = frame if arguments.raw else frame.map(safe_cell).rename(columns=safe_cell)
    if not (safe.equals(frame) and list(safe) == list(frame)) and not console.json:
        console.note(
            "warning: texts that begin like a formula have an apostrophe in front; --raw writes "
            "them unchanged"
        )
    text = safe.to_csv(index=False, lineterminator="\n")
    if arguments.output is not None:
        write_text(arguments.output, text)
        console.note(f"{len(predictions)} predictions written to {arguments.output}")
    if console.json:
        console.answer(record, "")
    elif arguments.output is None:
        print(text, end="")
    return Exit.DONE
