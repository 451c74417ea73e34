"""Measure how far new data have moved, and what that does to a model.

Compares new rows with reference rows for one model: which columns moved and how far, whether that
is outside of the ball of the model, and whether the rows or the labels at equal scores changed.
Where the new rows have no labels, the loss is estimated.

    drlogit shift model.json old.csv new.csv
    drlogit shift model.json old.csv new.csv --json
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from ..robustness.shift import measure_shift
from . import options
from .console import Console, Exit
from .data import read_asked, stated_ball


def add_options(parser: ArgumentParser) -> None:
    """Add the options."""
    add = options.group(parser)
    add(*options.MODEL)
    add("DATA", "reference rows with labels, preferably not those of the fit")
    add("NEW", "new rows")
    options.add_file_options(parser)
    options.add_ball_options(parser, "the ball of the model")


def run(arguments: Namespace, console: Console) -> int:
    """Run the command."""
    asked = read_asked(arguments, console, arguments.data)
    old, new = asked.samples, read_asked(arguments, console, arguments.new).samples
    if new.y is None:
        console.note(f"{new.file.name} has no labels, so the loss there is estimated")
    ball = stated_ball(arguments, old, asked.classes, asked.model.ball_)
    with console.progress("shift"):
        found = measure_shift(asked.model, old.X, old.labels, new.X, new.y, ball=ball)
    columns = found.columns.to_dict("records")
    record = {**vars(found), "ball": found.ball.allowed(), "columns": columns}
    console.answer(record, lambda: str(found))
    return Exit.DONE
