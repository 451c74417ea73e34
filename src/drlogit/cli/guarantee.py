"""State limits of loss and error for new data, from held-out rows.

Prints upper limits of log-loss and error at a stated confidence. They hold for every distribution
within the radius of the one that the rows come from. The model must not have been fitted to these
rows or chosen by them. The output names all other assumptions.

    drlogit guarantee model.json holdout.csv
    drlogit guarantee model.json holdout.csv --confidence 0.99 --groups sex
    drlogit guarantee model.json holdout.csv --epsilon 0.05 --kappa inf --json
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from ..robustness.guarantees import guarantee
from . import options
from .asking import read_asked, read_groups, warn_of_fitted_rows, warn_of_neglect
from .console import DONE, Console
from .outputs import guarantee_record


def add_options(parser: ArgumentParser) -> None:
    """Add the options."""
    add = options.group(parser)
    add(*options.MODEL)
    add(*options.DATA)
    add = options.add_ball_options(parser, "guarantee")
    add("--confidence SHARE", "confidence of all limits together", type=float, default=0.95)
    add("--groups COLUMN", "report each value of this column separately")
    options.add_sample_options(parser)


def run(arguments: Namespace, console: Console) -> int:
    """Run the command."""
    asked = read_asked(arguments, console)
    warn_of_fitted_rows(asked, console)
    found = guarantee(
        asked.model, asked.samples.X, asked.labels, epsilon=arguments.epsilon,
        kappa=asked.kappa(arguments.kappa), confidence=arguments.confidence,
        sample_weight=asked.samples.weights, groups=read_groups(asked, arguments),
    )  # fmt: skip
    recall = asked.recall()
    warn_of_neglect(asked, recall, console)
    record = {"model": arguments.model, "data": asked.samples.source, **guarantee_record(found)}
    text = "\n".join([str(found), "On these rows as they are:", *recall.lines()])
    console.answer(record | recall.record, text)
    return DONE
