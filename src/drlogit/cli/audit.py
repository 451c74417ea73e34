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
from pathlib import Path
from typing import Any

from ..files.model_file import read_model
from ..report.audits import audit
from . import options
from .console import DONE, Console
from .data import (
    Asked,
    costs_by_pair,
    decision_threshold,
    read_asked,
    read_column,
    warn_of_fitted_rows,
)


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
    add(*options.COST, **options.COST_SETTINGS)
    options.add_threshold(parser)
    options.add_file_options(parser)


def run(arguments: Namespace, console: Console) -> int:
    """Run the command."""
    asked = read_asked(arguments, console, arguments.data)
    models, samples = _named(arguments, asked), asked.samples
    if arguments.unseen:
        warn_of_fitted_rows(asked, console)
    by = read_column(asked, arguments.by, "by")
    with console.progress("audit"):
        report = audit(
            models,
            samples.X,
            samples.labels,
            sample_weight=samples.sample_weight,
            groups=None if by is None else {arguments.by: by.astype(str).to_numpy()},
            holdout=(samples.X, samples.labels) if arguments.unseen else None,
            metric=costs_by_pair(arguments.cost, asked.classes),
            threshold=decision_threshold(asked, arguments),
        )
        if arguments.output is not None:
            subtitle = f"{', '.join(models)}, on {samples.labels.size:,} rows of {samples.source}"
            report.to_html(arguments.output, subtitle=subtitle)
    files = [arguments.model, *arguments.others]
    record = {"files": files, "data": samples.source, "positive": asked.positive}
    written = f"\n\nWritten: {arguments.output}" if arguments.output is not None else ""
    console.answer(record | report.to_dict(), lambda: f"{report}{written}")
    return DONE


def _named(arguments: Namespace, asked: Asked) -> dict[str, Any]:
    """The models by the names of their files, or by their paths where names are the same."""
    files = [arguments.model, *arguments.others]
    short = [Path(file).name for file in files]
    first, *names = short if len({*short}) == len(files) else files
    if len({first, *names}) < len(files):
        raise ValueError(f"the same model is named twice: {first}")
    models = {first: asked.model}
    for name, file in zip(names, arguments.others, strict=True):
        models[name], _ = read_model(file)
        features = (getattr(model, "feature_names_in_", None) for model in models.values())
        if len({str(each) for each in features}) > 1:
            raise ValueError(f"{file} and {first} have different features: audit them separately")
    return models
