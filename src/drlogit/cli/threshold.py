"""Choose the threshold with the best guarantee for new data.

Chooses the probability from which on the positive class is decided: the one with the smallest
guaranteed cost, or the one that finds most positives within a limit. The guarantee holds at the
stated confidence, for every distribution within the radius of the one that the rows come from. The
model must not have been fitted to these rows or chosen by them.

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
    add = options.group(parser, "what to decide by (one of these)", one_of_them=True)
    add(*options.COSTS, type=options.amounts)
    add("--max-fpr SHARE", "largest false positive rate", type=float)
    add("--min-precision SHARE", "smallest share of positives among the rows decided positive",
        type=float)  # fmt: skip
    add = options.add_ball_options(parser, "guarantee")
    add("--confidence SHARE", "confidence for all thresholds together", type=float, default=0.95)
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
