"""Which cut-off is safe? the threshold with the best promise about new data.

Choose the probability from which on to decide for the positive class: the least worst-case cost
that can be promised, or the threshold that finds most positives and keeps a limit. The promise
holds at the stated confidence, for every distribution within the radius of the one that these rows
come from. The rows must be ones that the model was neither fitted to nor chosen by.

    drlogit threshold model.json holdout.csv --costs good:bad=1,bad:good=5
    drlogit threshold model.json holdout.csv --max-fpr 0.3 --epsilon 0.02
    drlogit predict model.json new.csv --threshold 0.21
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from dataclasses import asdict

from ..robustness.thresholds import choose_threshold
from . import options
from .asking import costs_by_pair, read_asked, warn_of_fitted_rows
from .console import DONE, Console


def add_options(parser: ArgumentParser) -> None:
    """Add the options."""
    add = options.group(parser)
    add(*options.MODEL)
    add(*options.DATA)
    add = options.group(parser, "what to decide by (one of them)")
    add(*options.COSTS, type=options.amounts)
    add("--max-fpr SHARE", "largest share of negatives decided positive", type=float)
    add("--min-precision SHARE", "least share of positives among those decided positive",
        type=float)  # fmt: skip
    add = options.add_ball_options(parser, "promise")
    add("--confidence SHARE", "of the promises of all thresholds", type=float, default=0.95)
    options.add_sample_options(parser)


def run(arguments: Namespace, console: Console) -> int:
    """Run the command."""
    asked = read_asked(arguments, console)
    warn_of_fitted_rows(asked, console)
    costs = costs_by_pair(arguments.costs, asked.classes)
    found = choose_threshold(
        asked.model, asked.samples.X, asked.labels, costs=costs,
        max_fpr=arguments.max_fpr, min_precision=arguments.min_precision,
        epsilon=arguments.epsilon, kappa=asked.kappa(arguments.kappa),
        confidence=arguments.confidence, sample_weight=asked.samples.weights,
    )  # fmt: skip
    record = {"model": arguments.model, "data": asked.samples.source, **asdict(found)}
    console.answer(record, str(found))
    return DONE
