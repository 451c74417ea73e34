"""``drlogit fit``: fit a robust model to a file and write it as JSON."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Any

import numpy as np

from .console import DONE, NOT_CONVERGED, Console
from .options import (
    DATA_HELP,
    Commands,
    add_block_option,
    add_data_options,
    add_model_options,
    add_solver_options,
    new_parser,
)
from .outputs import certificate_record, check_writable, explain_certificate, explain_radius
from .training import Training, read_training

#: Scores that differ by less are those of a model that has learnt nothing.
_CONSTANT = 1e-2


def add_parser(commands: Commands) -> None:
    """Add the command."""
    parser = new_parser(
        commands,
        "fit",
        help="fit a robust model to a file and write it as JSON",
        description="Fit distributionally robust logistic regression and certify it. Features are "
        "used as given: scale them so that a step of one means the same everywhere, or let "
        "--standardize do so. More than two classes are fitted one against the rest.",
        examples="""
        drlogit fit data.csv --target diagnosis --standardize --epsilon 0.1 -o model.json
        drlogit fit train.libsvm.bz2 --epsilon auto --kappa inf -o model.json
        drlogit fit data.parquet --drop id,name --immovable age --weights w -o model.json
        drlogit fit huge.svm --block-rows 100000 --epsilon 0.1 -o model.json
        drlogit fit breast-cancer --standardize --json
        """,
    )
    parser.add_argument("data", metavar="DATA", help=DATA_HELP)
    parser.add_argument("-o", "--output", metavar="MODEL", help="file to write the model to (JSON)")
    add_model_options(parser, epsilon=0.01, kappa=1.0)
    add_data_options(parser)
    add_block_option(parser)
    add_solver_options(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    from ..files.model_file import write_model

    console = Console(arguments)
    check_writable(arguments.output)
    training = read_training(arguments, console)
    model = fit_training(training, arguments, console)
    if arguments.output is not None:
        write_model(model, arguments.output, training.origin)
    _answer(model, training, arguments, console)
    return DONE if all(result.converged for result in model.results_) else NOT_CONVERGED


def fit_training(training: Training, arguments: argparse.Namespace, console: Console) -> Any:
    """A fitted estimator for the data as they were read.

    Through :func:`drlogit.solve` and not the estimator's own ``fit``, which has no place for a
    callback to show progress.
    """
    from ..files.model_file import fitted_model
    from ..fitting.solving import solve
    from ..fitting.suggested_radius import suggest_radius

    problem = {
        "norm": arguments.norm,
        "fit_intercept": not arguments.no_intercept,
        "feature_costs": training.costs,
        "sample_weight": training.weights,
    }
    epsilon = arguments.epsilon
    if epsilon == "auto":
        radii = [float(suggest_radius(training.X, t, **problem)) for t in training.targets]
        epsilon = max(radii)
    results = []
    for number, target in enumerate(training.targets):
        title = "fit" if len(training.targets) == 1 else f"class {number + 1}"
        with console.progress(title) as progress:
            result = solve(
                training.X, target, epsilon=epsilon, kappa=arguments.kappa, **problem,
                solver=arguments.solver, tol=arguments.tol, max_iter=arguments.max_iter,
                callback=progress.iterations(arguments.tol),
            )  # fmt: skip
        _remark_on_constant(result, training, target, epsilon, arguments.kappa, problem, console)
        # Nothing of the length of the data stays with a model.
        results.append(training.original_units(replace(result, flip_share=np.zeros(0))))
    return fitted_model(
        results, training.classes, training.feature_names,
        epsilon=epsilon, kappa=arguments.kappa, norm=arguments.norm, tol=arguments.tol,
        fit_intercept=not arguments.no_intercept, feature_costs=training.original_costs,
    )  # fmt: skip


def _remark_on_constant(
    result: Any, training: Training, target: Any, epsilon: float, kappa: float,
    problem: dict[str, Any], console: Console,
) -> None:  # fmt: skip
    """Say so if the radius leaves nothing to learn, and which radius would."""
    from ..fitting.critical_radius import epsilon_max
    from ..rows.matrix import matvec
    from ..rows.row_blocks import RowBlocks

    if epsilon == 0.0 or isinstance(training.X, RowBlocks):  # not worth another pass over a file
        return
    if np.ptp(matvec(training.X, result.coef)) > _CONSTANT:
        return
    limit = epsilon_max(training.X, target, kappa=kappa, **problem)
    if epsilon >= limit:
        console.note(
            f"remark: the model is constant, as it is for every epsilon from {limit:.4g} on: the "
            "worst case then leaves nothing to learn from the features"
        )


def _answer(
    model: Any, training: Training, arguments: argparse.Namespace, console: Console
) -> None:
    record = {
        "model": arguments.output,
        "data": training.origin,
        "n_features": int(model.n_features_in_),
        "classes": training.classes,
        "epsilon": model.epsilon_,
        "kappa": model.kappa,
        "norm": model.norm,
        "tol": model.tol,
        "fits": [certificate_record(result) for result in model.results_],
    }
    if console.json or not (console.quiet and arguments.output):
        console.answer(record, lambda: _text(model, training, arguments))


def _text(model: Any, training: Training, arguments: argparse.Namespace) -> str:
    lines = [
        explain_radius(model.epsilon_, model.kappa, training.X.shape[0]),
        "",
        "How good is it?",
    ]
    for label, result in zip(training.classes[-len(model.results_) :], model.results_, strict=True):
        if len(model.results_) > 1:
            lines.append(f" class {label} against the rest")
        lines.append(explain_certificate(result))
    if arguments.output is None:
        lines += ["", "The model is not kept: name a file to write it to with -o model.json"]
    else:
        lines += ["", f"Model written to {arguments.output}"]
    return "\n".join(lines)
