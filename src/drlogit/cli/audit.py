"""Show how much must go wrong until models fail, and what can be promised.

Prints how far errors and losses can rise when the data are wrong, through which column, and which
rows break first. -o writes a web page that needs no network. The models are not refitted. With
--unseen, for rows that no model was fitted to, limits for new data are stated, too.

    drlogit audit model.json test.csv
    drlogit audit robust.json tuned.json kept.csv --unseen --by sex -o report.html
    drlogit audit model.json kept.csv --cost well:sick=1 sick:well=5 --json
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import Any

from ..files.model_file import read_model
from ..report.audit import audit
from . import options
from .console import Console, Exit
from .data import read_asked


def add_options(parser: ArgumentParser) -> None:
    """Add the options."""
    add = options.group(parser)
    add(*options.MODEL)
    add("OTHERS", "other models of the same features", nargs="*")
    add(*options.DATA)
    add("-o --output FILE", "web page to write (.html)")
    add = options.group(parser, "audit")
    add("--unseen", "the models have not seen these rows: state limits for new data, too")
    add("--by COLUMN", "report each value of this column separately")
    options.add_cost(add)
    options.add_threshold(parser)
    options.add_file_options(parser)


def run(arguments: Namespace, console: Console) -> int:
    """Run the command."""
    asked = read_asked(arguments, console, arguments.data)
    models, samples = {arguments.model: asked.model}, asked.samples
    for path in arguments.others:
        models[path], _ = read_model(path)
        if _names(models[path]) != _names(asked.model):
            raise ValueError(f"{path} and {arguments.model} have different features")
    by = samples.column(arguments.by, "by")
    with console.progress("audit"):
        report = audit(
            models,
            samples.X,
            samples.labels,
            sample_weight=samples.sample_weight,
            by=None if by is None else {arguments.by: by.astype(str).to_numpy()},
            holdout=(samples.X, samples.labels) if arguments.unseen else None,
            metric=asked.costs(arguments.cost) or "error",
            threshold=asked.threshold(arguments.threshold),
            pos_label=asked.positive,
        )
        if arguments.output is not None:
            report.to_html(arguments.output, title=f"Audit on {samples.file.name}")
    record = {"files": [*models], "data": samples.file.name, "positive": asked.positive}
    for part in ("radii", "columns", "rows", "groups", "promises"):
        record[part] = report.to_frame(part).to_dict("records")
    written = f"\n\nWritten: {arguments.output}" if arguments.output is not None else ""
    console.answer(record | {"verdict": report.verdict()}, lambda: f"{report}{written}")
    return Exit.DONE


def _names(model: Any) -> list[str]:
    return list(getattr(model, "feature_names_in_", []))
