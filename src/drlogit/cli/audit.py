"""Show how large loss and error of models can get.

Prints the worst-case log-loss and error of models for a range of radii, and the rows that matter
most, next to a plain logistic regression fitted to the same data. -o writes an interactive web page
that needs no network. The models are not refitted. Use rows that the models were not fitted to, if
you have any.

    drlogit audit model.json test.csv
    drlogit audit robust.json tuned.json test.csv --unseen --groups sex -o report.html
    drlogit audit model.json test.csv --epsilons 0,0.05,0.1 --kappa inf --against none --json
"""

from __future__ import annotations

import copy
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from ..estimators.training_data import matrix_of
from ..files.model_file import read_model
from ..report.audits import audit
from . import options
from .asking import (
    ModelAndSamples,
    costs_by_pair,
    names_of,
    read_asked,
    read_column,
    read_groups,
    warn_of_fitted_rows,
)
from .console import DONE, Console
from .outputs import explain_written


def add_options(parser: ArgumentParser) -> None:
    """Add the options."""
    add = options.group(parser)
    add(*options.MODEL)
    add("OTHERS", "other models of the same features", nargs="*")
    add(*options.DATA)
    add("-o --output FILE", "web page to write (.html)")
    add = options.group(parser, "audit")
    add("--against", "compare with a plain logistic regression fitted to these rows (which favours "
        "it), or with nothing", choices=("lr", "none"), default="lr")  # fmt: skip
    add("--unseen", "the models have not seen these rows: begin with limits for new data, and fit "
        "nothing to the rows")  # fmt: skip
    add("--groups COLUMN", "report each value of this column separately, on the page")
    add(*options.COSTS, type=options.amounts)
    add("--threshold SHARE", "with --costs: probability from which on the positive class "
        "is decided", type=float, default=0.5)  # fmt: skip
    add("--epsilons E,E", "radii (default: chosen, with the models')", type=options.numbers)
    add("--kappa COST", "(default: the first model's)", type=options.by_label)
    add("--id COLUMN", "column that names the samples (default: by number from 0)")
    options.add_sample_options(parser)


def run(arguments: Namespace, console: Console) -> int:
    """Run the command."""
    asked = read_asked(arguments, console)
    models = _named(arguments, asked)
    X = asked.samples.X
    if arguments.id is not None and hasattr(X, "index"):
        X.index = read_column(asked, arguments, "id")
    if arguments.unseen:
        warn_of_fitted_rows(asked, console)
    report = audit(
        models, X, asked.labels, epsilons=arguments.epsilons,
        kappa=asked.kappa(arguments.kappa), sample_weight=asked.samples.weights,
        groups=read_groups(asked, arguments),
        holdout=(X, asked.labels) if arguments.unseen else None,
        metric=costs_by_pair(arguments.costs, asked.classes), threshold=arguments.threshold,
    )  # fmt: skip
    if arguments.output is not None:
        source = Path(asked.samples.source).name
        subtitle = f"{', '.join(models)}, on {report.n_samples:,} samples of {source}"
        report.to_html(arguments.output, subtitle=subtitle)
    files = [arguments.model, *arguments.others]
    record = {"files": files, "data": asked.samples.source, **report.to_dict()}
    written = "\n".join(explain_written(arguments.output))
    console.answer(record, lambda: f"{report}\n{written}".rstrip())
    return DONE


def _named(arguments: Namespace, asked: ModelAndSamples) -> dict[str, Any]:
    """The models by the names of their files, or by their paths where names are the same."""
    files = [arguments.model, *arguments.others]
    short = [Path(file).name for file in files]
    first, *names = short if len({*short}) == len(files) else files
    if len({first, *names}) < len(files):
        raise ValueError(f"the same model is named twice: {first}")
    models, samples = {first: asked.model}, asked.samples
    # A model fitted to these rows has seen them, so it cannot have a guarantee.
    if arguments.against == "lr" and not arguments.unseen:
        share = np.bincount(asked.codes, samples.weights, minlength=len(asked.classes))
        if not share.all():
            raise ValueError(
                f"no row of {samples.source} has the label {asked.classes[share.argmin()]!r}, so "
                "no model can be fitted for comparison: use --against none"
            )
        models["plain LR"] = compared(asked.model, samples.X, asked.codes, samples.weights)
    for name, file in zip(names, arguments.others, strict=True):
        models[name], _ = read_model(file)
        if names_of(models[name]) != names_of(asked.model):
            raise ValueError(f"{file} and {first} have different features: audit them separately")
    return models


def compared(model: Any, X: Any, codes: Any, weights: Any) -> Any:
    """A model with the features of another, fitted to these samples, but not to be robust."""
    other, X = copy.copy(model), matrix_of(model, X)
    other.coef_, other.intercept_ = _plain(X, codes, weights)
    other.epsilon_, other.result_ = 0.0, None  # for no radius, and without a certificate
    return other


def _plain(X: Any, y: Any, weights: Any) -> tuple[Any, Any]:
    """Logistic regression as most fit it: on standardised features, with scikit-learn's penalty."""
    scaler = StandardScaler(with_mean=not sp.issparse(X))
    fit = LogisticRegression(max_iter=10_000).fit(scaler.fit_transform(X), y, weights)
    coef = fit.coef_ / scaler.scale_
    shift = coef @ scaler.mean_ if scaler.with_mean else 0.0
    return coef, fit.intercept_ - shift
