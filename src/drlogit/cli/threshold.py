"""Choose the cut-off of decisions with the best promise for new data.

Chooses the probability from which on the positive class is decided: the one with the smallest
promised cost, or the one that finds most positives within a limit. The promise holds at the stated
confidence, for every distribution within the ball of the one that the rows come from. The model
must not have been fitted to these rows or chosen by them. With -o, the model keeps the cut-off, and
drlogit predict decides by it.

    drlogit threshold model.json kept.csv --cost well:sick=1 sick:well=5 -o model.json
    drlogit threshold model.json kept.csv --max-fpr 0.3
    drlogit predict model.json new.csv
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from ..files.model_file import write_model
from ..robustness.threshold import choose_threshold
from . import options
from .console import Console, Exit
from .data import read_asked, stated_ball


def add_options(parser: ArgumentParser) -> None:
    """Add the options."""
    add = options.group(parser)
    add(*options.MODEL)
    add(*options.DATA)
    add("-o --output MODEL", "model file to write, with the cut-off; may be MODEL itself")
    add = options.group(parser, "what to decide by (one of these)", one_of_them=True)
    options.add_cost(add)
    add("--max-fpr SHARE", "largest false positive rate", type=float)
    add("--min-precision SHARE", "smallest share of positives among decided ones", type=float)
    add("--min-recall SHARE", "smallest share of positives that are found", type=float)
    add = options.group(parser, "promise")
    said = "confidence for all cut-offs together (default: 0.95)"
    add("--confidence SHARE", said, type=float, default=0.95, dest="confidence_level")
    options.add_file_options(parser)
    options.add_ball_options(parser, "the ball of the model")


def run(arguments: Namespace, console: Console) -> int:
    """Run the command."""
    asked = read_asked(arguments, console, arguments.data)
    stated = {name: getattr(arguments, name) for name in ("max_fpr", "min_precision", "min_recall")}
    with console.progress("threshold"):
        found = choose_threshold(
            asked.model,
            asked.samples.X,
            asked.samples.labels,
            costs=asked.costs(arguments.cost),
            ball=stated_ball(arguments, asked.samples, asked.classes, asked.model.ball_),
            pos_label=asked.positive,
            confidence_level=arguments.confidence_level,
            random_state=0,
            **stated,
        )
    if arguments.output is not None:
        write_model(asked.model, arguments.output, {**asked.notes, "threshold": found.threshold})
        console.note(f"{arguments.output} has the cut-off, and drlogit predict decides by it")
    record = {"positive": asked.positive, "threshold": found.threshold}
    console.answer({**record, "promise": float(found.promise)}, str(found))
    return Exit.DONE
