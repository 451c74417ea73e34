"""What holds for new data, from rows that a model has not seen.

Upper limits of log-loss and error, at a stated confidence, for every distribution within the
radius of the one that these rows come from. The rows must be ones that the model was neither
fitted to nor chosen by; what else is assumed is said beside the limits.

    drlogit guarantee model.json holdout.csv
    drlogit guarantee model.json holdout.csv --confidence 0.99 --groups sex
    drlogit guarantee model.json holdout.csv --epsilon 0.05 --kappa inf --json
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from dataclasses import asdict
from typing import Any

from ..robustness.guarantees import guarantee
from . import options
from .asking import read_asked, read_groups, warn_of_fitted_rows, warn_of_neglect
from .console import DONE, Console


def add_options(parser: ArgumentParser) -> None:
    """Add the options."""
    add = options.group(parser)
    add(*options.MODEL)
    add(*options.DATA)
    add = options.add_ball_options(parser, "guarantee")
    add("--confidence SHARE", "of all limits together", type=float, default=0.95)
    add("--groups COLUMN", "column whose values are parts of the rows to speak of apart")
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
    text = "\n".join([str(found), "On these rows as they are", *recall.lines()])
    console.answer(record | recall.record, text)
    return DONE


def guarantee_record(found: Any) -> dict[str, Any]:
    """A guarantee for a script, with what it assumes."""
    assumed = str(found).rpartition("Assumed: ")[2]
    return {**asdict(found), "assumed": assumed}
