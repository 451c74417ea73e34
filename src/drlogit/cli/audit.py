"""``drlogit audit``: how robust are these models?  A report in words, and an interactive page."""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from ..estimators.tables.frames import levels_of
from .asking import ModelAndSamples, read_asked, read_column
from .console import DONE, Console
from .labels import find_label
from .options import DATA_HELP, Commands, add_sample_options, check_numbers, new_parser, numbers
from .outputs import check_outputs

#: What to compare with.
_AGAINST = ("lr", "constant", "none")


def add_parser(commands: Commands) -> None:
    """Add the command."""
    parser = new_parser(
        commands,
        "audit",
        help="how robust are these models? worst-case loss and error against epsilon",
        description="Worst-case log-loss and error of models over a range of radii, and the "
        "samples that matter most, beside a plain logistic regression fitted to the same data. "
        "With -o, an interactive web page that explains itself and needs no network. No model is "
        "refitted. Use samples that the models were not fitted to, if there are any.",
        examples="""
        drlogit audit model.json test.csv
        drlogit audit robust.json tuned.json test.csv --groups sex -o report.html
        drlogit audit model.json test.csv --epsilons 0,0.05,0.1 --kappa inf --against none --json
        """,
    )
    parser.add_argument(
        "models", metavar="MODEL", nargs="+", help="model files, as drlogit fit writes them"
    )
    parser.add_argument("data", metavar="DATA", help=DATA_HELP)
    parser.add_argument("-o", "--output", metavar="FILE", help="web page to write (.html)")
    group = parser.add_argument_group("audit")
    group.add_argument(
        "--against",
        choices=_AGAINST,
        default="lr",
        help="what to compare with: a plain logistic regression fitted to these very samples, "
        "which favours it, or a constant model, or nothing",
    )
    group.add_argument(
        "--groups", metavar="COLUMN", help="column whose values are subgroups, on the page"
    )
    group.add_argument(
        "--epsilons", type=numbers, metavar="E,E", help="radii (default: chosen, with the models')"
    )
    group.add_argument("--kappa", type=float, metavar="COST", help="(default: the first model's)")
    group.add_argument(
        "--own-balls",
        action="store_true",
        help="measure each model with the costs and bounds of its own fit, not all with the "
        "first's; the same radius then allows different things, and models are not ranked",
    )
    group.add_argument(
        "--id", metavar="COLUMN", help="column that names the samples (default: by number from 0)"
    )
    group.add_argument(
        "--class",
        dest="of_class",
        metavar="LABEL",
        help="of more than two classes, the only one to audit against the rest (default: each)",
    )
    group.add_argument("--n-listed", type=int, default=10, metavar="N", help="samples to list")
    add_sample_options(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    from ..plots.audits import audit_of
    from ..robustness.subgroups import subgroups

    console = Console(arguments)
    check_numbers(arguments)
    check_outputs(arguments)
    if arguments.n_listed < 0:
        raise ValueError(f"--n-listed must be at least 0, got {arguments.n_listed}")
    read = {}
    for name, file in _named(arguments.models).items():
        read[name] = read_asked(
            argparse.Namespace(**{**vars(arguments), "model": file}), labels=True
        )
    first = next(iter(read.values()))
    questions = _questions(read, arguments)
    parts: Any = ()
    if arguments.groups is not None:
        column = np.array(read_column(first, arguments, arguments.groups), dtype=object)
        values = levels_of(column)
        parts = subgroups({arguments.groups: values}, None, len(values))
    names = None if arguments.id is None else read_column(first, arguments, arguments.id)
    common = next(iter(read)) if len(read) == 1 or not arguments.own_balls else ""
    report = audit_of(
        questions, arguments.epsilons, arguments.n_listed, parts, ball=common, row_names=names
    )
    if arguments.output is not None:
        shown = ", ".join(report_name for report_name in questions)
        source = Path(first.samples.source).name
        report.to_html(
            arguments.output, subtitle=f"{shown}, on {report.n_samples:,} samples of {source}"
        )
    record = {"files": arguments.models, "data": first.samples.source, **report.to_dict()}
    written = f"\n\nReport written to {arguments.output}" if arguments.output else ""
    console.answer(record, lambda: f"{report}{written}")
    return DONE


def _named(files: list[str]) -> dict[str, str]:
    """The files by their names, or by their paths where names are the same."""
    names = Counter(Path(file).name for file in files)
    named = {Path(file).name if names[Path(file).name] == 1 else file: file for file in files}
    if len(named) < len(files):
        raise ValueError(f"the same model is named twice: {' '.join(files)}")
    return named


def _questions(read: dict[str, ModelAndSamples], arguments: argparse.Namespace) -> dict[str, Any]:
    """What is asked of every model, one class at a time, and of what they are compared with.

    All in the ball of the first model, unless each is to have its own costs and bounds.
    """
    found: dict[str, Any] = {}
    first = next(iter(read.values())).file.model
    ball: dict[str, Any] = {
        "kappa": float(first.kappa) if arguments.kappa is None else arguments.kappa,
        "norm": first.norm,
    }
    for position, (name, asked) in enumerate(read.items()):
        for k, label in _classes(asked, arguments):
            own = name if label is None else f"{name}, {label}"
            found[own] = _ask(asked, k, label, None, ball)
            if position == 0 and arguments.against != "none":
                other = "plain LR" if arguments.against == "lr" else "constant"
                compared = other if label is None else f"{other}, {label}"
                found[compared] = _ask(asked, k, label, arguments.against, ball)
        if position == 0 and not arguments.own_balls:
            ball["ball"] = next(iter(found.values())).audit.ball_of(name)
    return found


def _classes(asked: ModelAndSamples, arguments: argparse.Namespace) -> list[tuple[int, Any]]:
    """The fits to ask about: the only one, or those of classes against the rest."""
    classes = asked.classes
    if len(classes) == 2:
        return [(0, None)]
    if arguments.of_class is None:
        return list(enumerate(classes))
    k = find_label(arguments.of_class, classes, arguments.models[0])
    return [(k, classes[k])]


def _ask(
    asked: ModelAndSamples, k: int, label: Any, instead: str | None, ball: dict[str, Any]
) -> Any:
    """One fit of a model, or what it is compared with ``instead``."""
    from ..robustness.audit_problem import audit_problem_of
    from ..robustness.audited_models import AuditedModel
    from ..robustness.linear_model import rest_and_class
    from ..robustness.measured_model import FittedWith, fitted_with

    classes, codes = asked.classes, asked.codes
    if label is not None:
        codes = (codes == k).astype(np.intp)
        classes = list(rest_and_class(label))
    share = float(np.average(codes, weights=asked.samples.weights))
    if not 0.0 < share < 1.0:
        raise ValueError(
            f"all labels of {asked.samples.source} are {classes[int(share)]!r}; an audit wants both"
        )
    question = audit_problem_of(
        asked.measured(k, (classes[0], classes[1]), instead, codes), np.asarray(classes)[codes],
        epsilon=0.0, feature_costs=None, sample_weight=asked.samples.weights, **ball,
    )  # fmt: skip
    if instead is not None:
        return AuditedModel(question, FittedWith())
    fitted = fitted_with(asked.file.model)
    return AuditedModel(question, fitted if label is None else fitted.of_class(k))
