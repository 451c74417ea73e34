"""Show how much must go wrong until models fail, and what can be promised.

Prints how much may go wrong with the data until the errors of a model reach a limit, through which
column, and which rows break first. -o writes a web page that needs no network. The models are not
refitted. With --unseen, for rows that no model was fitted to, limits for new data are stated, too.

    drlogit audit model.json test.csv
    drlogit audit robust.json tuned.json kept.csv --unseen --by sex -o report.html
    drlogit audit model.json kept.csv --metric recall --limit 0.5 --tolerate labels=0.05 age=2
    drlogit audit model.json kept.csv --cost well:sick=1 sick:well=5 --json
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from ..files.model_file import read_model
from ..report.audit import audit
from ..robustness.metrics import NAMES
from . import options
from .console import Console, Exit
from .data import read_asked, stated_ball


def add_options(parser: ArgumentParser) -> None:
    """Add the options."""
    add = options.group(parser)
    add(*options.MODEL)
    add("OTHERS", "other models of the same features", nargs="*")
    add(*options.DATA)
    add("-o --output FILE", "web page to write (.html)")
    add = options.group(parser, "audit")
    add("--unseen", "the models have not seen these rows: state limits for new data, too")
    add("--metric NAME", f"one of {', '.join(NAMES)} (default: error)")
    options.add_cost(add)
    add("--limit VALUE", "what the metric must not reach (default: a constant model's)", type=float)
    add("--by COLUMN", "report each value of this column separately")
    options.add_threshold(parser)
    options.add_file_options(parser)
    options.add_ball_options(parser, "the ball of the model")


def run(arguments: Namespace, console: Console) -> int:
    """Run the command."""
    asked = read_asked(arguments, console, arguments.data)
    models, samples = {arguments.model: asked.model}, asked.samples
    for path in arguments.others:
        models[path], _ = read_model(path)
        if models[path].ball_.features.names != asked.model.ball_.features.names:
            raise ValueError(f"{path} and {arguments.model} have different features")
    by = samples.column(arguments.by, "by")
    with console.progress("audit"):
        report = audit(
            models,
            samples.X,
            samples.labels,
            ball=stated_ball(arguments, samples, asked.classes, asked.model.ball_),
            metric=asked.costs(arguments.cost) or arguments.metric or "error",
            limit=arguments.limit,
            threshold=asked.threshold(arguments.threshold),
            pos_label=asked.positive,
            by=None if by is None else {arguments.by: by.astype(str)},
            holdout=(samples.X, samples.labels) if arguments.unseen else None,
            sample_weight=samples.sample_weight,
        )
        if arguments.output is not None:
            title = f"How much may go wrong in {samples.file.name}?"
            report.to_html(arguments.output, title=title)
    record = {"models": [*models], "data": samples.file.name, "positive": asked.positive}
    for part in ("radii", "columns", "rows", "groups", "promises"):
        record[part] = report.to_frame(part).to_dict("records")
    record |= {"limit": report.limit, "verdict": report.verdict()}
    written = f"\n\nWritten: {arguments.output}" if arguments.output is not None else ""
    console.answer(record, lambda: f"{report}{written}")
    return Exit.DONE
