"""``drlogit audit``: how robust is this model?  A report in words, numbers and pictures."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..rows.arrays import FloatArray
from ..rows.matrix import rmatvec, squared_columns
from .asking import Asked, read_asked
from .console import DONE, Console
from .labels import find_label
from .options import DATA_HELP, Commands, add_sample_options, check_numbers, new_parser, numbers
from .outputs import check_writable, need_matplotlib

_CURVE_POINTS = 81


def add_parser(commands: Commands) -> None:
    """Add the command."""
    parser = new_parser(
        commands,
        "audit",
        help="how robust is this model? worst-case loss and error against epsilon",
        description="Worst-case log-loss and error of a model over a range of radii, beside a "
        "constant model, and the samples that matter most. With -o, a web page that explains "
        "itself and needs no network. No model is refitted. Use samples that the model was not "
        "fitted to, if there are any.",
        examples="""
        drlogit audit model.json test.csv
        drlogit audit model.json test.csv -o report.html
        drlogit audit model.json test.csv --epsilons 0,0.05,0.1 --kappa inf --json
        """,
    )
    parser.add_argument("model", metavar="MODEL", help="model file, as drlogit fit writes it")
    parser.add_argument("data", metavar="DATA", help=DATA_HELP)
    parser.add_argument("-o", "--output", metavar="FILE", help="web page to write (.html)")
    group = parser.add_argument_group("audit")
    group.add_argument(
        "--epsilons", type=numbers, metavar="E,E", help="radii (default: chosen, with the model's)"
    )
    group.add_argument("--kappa", type=float, metavar="COST", help="(default: the model's)")
    group.add_argument(
        "--class",
        dest="of_class",
        metavar="LABEL",
        help="of more than two classes, the one to audit against the rest",
    )
    group.add_argument("--n-listed", type=int, default=10, metavar="N", help="samples to list")
    add_sample_options(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    from ..robustness.audits import audit

    console = Console(arguments)
    check_numbers(arguments)
    check_writable(arguments.output)
    if arguments.output is not None:
        need_matplotlib("the report")
    if arguments.n_listed < 0:
        raise ValueError(f"--n-listed must be at least 0, got {arguments.n_listed}")
    asked = read_asked(arguments, labels=True)
    models, labels, k = _models(asked, arguments)
    model = asked.file.model
    question: dict[str, Any] = {
        "kappa": model.kappa if arguments.kappa is None else arguments.kappa,
        **asked.moves,
        "sample_weight": asked.samples.weights,
    }
    radii = arguments.epsilons
    if radii is None:
        chosen = audit(models, asked.matrix, labels, n_listed=0, **question).epsilons
        radii = [*(radius for radius in chosen if radius != model.epsilon_), model.epsilon_]
    report = audit(
        models, asked.matrix, labels, epsilons=radii, n_listed=arguments.n_listed, **question
    )
    if arguments.output is not None:
        _write_page(report, models, labels, k, asked, arguments, question)
    record = {"model": arguments.model, "data": asked.samples.source, **report.to_dict()}
    console.answer(record, lambda: _text(report, arguments))
    return DONE


def _text(report: Any, arguments: argparse.Namespace) -> str:
    """The model's part of the report, and the constant model in a line."""
    model, constant = report.models
    first, last = constant.rows[0], constant.rows[-1]
    lines = [
        str(replace(report, models=(replace(model, name=Path(arguments.model).name),))),
        "",
        f"A constant model has a worst-case log-loss of {first.worst_case_loss:.4f} at epsilon = "
        f"{first.epsilon:.4g} and {last.worst_case_loss:.4f} at epsilon = {last.epsilon:.4g}.",
    ]
    if arguments.output:
        lines += ["", f"Report written to {arguments.output}"]
    return "\n".join(lines)


def _models(
    asked: Asked, arguments: argparse.Namespace
) -> tuple[dict[str, Any], np.ndarray[Any, Any], int]:
    """The model and a constant one, the labels to ask about, and which fit it is."""
    from ..robustness.linear_model import LinearModel

    classes, codes, k = asked.classes, asked.codes, 0
    if len(classes) > 2:
        if arguments.of_class is None:
            shown = ", ".join(map(str, classes[:8])) + (", …" if len(classes) > 8 else "")
            raise ValueError(
                f"{arguments.model} has {len(classes)} classes ({shown}): choose the one to audit "
                "against the rest with --class LABEL"
            )
        k = find_label(arguments.of_class, classes, arguments.model)
        codes = (codes == k).astype(np.intp)
        classes = [f"not {classes[k]}", str(classes[k])]
    weights = asked.samples.weights
    share = float(np.average(codes, weights=weights))
    if not 0.0 < share < 1.0:
        raise ValueError(
            f"all labels of {asked.samples.source} are {classes[int(share)]!r}; an audit wants both"
        )
    pair = (classes[0], classes[1])
    ours = asked.linear(k)
    model = LinearModel(ours.coef, ours.intercept, pair)
    odds = float(np.log(share) - np.log1p(-share))
    constant = LinearModel(np.zeros_like(ours.coef), odds, pair)
    return {"model": model, "constant": constant}, np.asarray(classes)[codes], k


def _write_page(
    report: Any, models: dict[str, Any], labels: Any, k: int, asked: Asked,
    arguments: argparse.Namespace, question: dict[str, Any],
) -> None:  # fmt: skip
    from ..plots.audit_page import Subject, audit_page
    from ..robustness.audits import audit

    model = asked.file.model
    fine = np.linspace(0.0, max(report.epsilons[-1], 1e-6), _CURVE_POINTS)
    curves = audit(models, asked.matrix, labels, epsilons=fine, n_listed=0, **question)
    negative, positive = models["model"].classes
    subject = Subject(
        name=Path(arguments.model).name,
        data=Path(asked.samples.source).name,
        epsilon=float(model.epsilon_),
        kappa=float(model.kappa),
        norm=model.norm,
        feature_names=asked.names,
        effects=model.coef_[k] * _deviations(asked.matrix),
        negative=negative,
        positive=positive,
        result=model.results_[k],
    )
    audit_page(report, curves, subject).write(arguments.output)


def _deviations(X: Any) -> FloatArray:
    """Standard deviation of every feature."""
    rows = np.full(X.shape[0], 1.0 / X.shape[0])
    variance = squared_columns(X, rows) - rmatvec(X, rows) ** 2
    return np.sqrt(np.maximum(variance, 0.0))
