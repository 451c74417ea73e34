"""Measure how far new data have moved, and what that does to a model.

Compares new rows with reference rows for one model: how large the shift is in the tolerances of the
model, whether the rows or the labels at equal scores changed, and which columns moved. The new rows
need no labels; without them the loss is estimated.

    drlogit shift model.json old.csv new.csv
    drlogit shift model.json old.csv new.csv --unlabelled
    drlogit shift model.json old.csv new.csv --json
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from ..robustness.shifts import shift
from . import options
from .asking import read_asked
from .console import DONE, Console


def add_options(parser: ArgumentParser) -> None:
    """Add the options."""
    add = options.group(parser)
    add(*options.MODEL)
    add("DATA", "reference rows with labels, preferably not those of the fit")
    add("NEW", "new rows")
    add = options.add_ball_options(parser, "shift")
    add("--unlabelled", "the new rows have no labels, or ignore them")
    options.add_sample_options(parser)


def run(arguments: Namespace, console: Console) -> int:
    """Run the command."""
    asked = read_asked(arguments, console)
    there = Namespace(**{**vars(arguments), "data": arguments.new})
    try:
        new = read_asked(there, console, with_labels=not arguments.unlabelled)
    except ValueError as error:
        if "(--target)" not in str(error):
            raise
        raise ValueError(f"{error}; use --unlabelled if the new rows have no labels") from None
    found = shift(
        asked.model, asked.samples.X, asked.labels, new.samples.X,
        None if arguments.unlabelled else new.labels, epsilon=arguments.epsilon,
        kappa=asked.kappa(arguments.kappa),
    )  # fmt: skip
    record = {
        "model": arguments.model, "reference": asked.samples.source, "new": new.samples.source,
        **found.to_dict(),
    }  # fmt: skip
    console.answer(record, lambda: str(found))
    return DONE
