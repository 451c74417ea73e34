"""``drlogit fit``: fit a robust model to a file and write it as JSON."""

from __future__ import annotations

import argparse
from typing import Any

from .console import DONE, NOT_CONVERGED, Console
from .options import (
    DATA_HELP,
    Commands,
    add_block_option,
    add_data_options,
    add_model_options,
    add_solver_options,
    add_table_options,
    amounts,
    check_numbers,
    new_parser,
)
from .outputs import certificate_record, check_outputs, explain_fits, explain_radius
from .training import Training, fit_options, read_training, tolerated


def add_parser(commands: Commands) -> None:
    """Add the command."""
    parser = new_parser(
        commands,
        "fit",
        help="fit a robust model to a file and write it as JSON",
        description="Fit distributionally robust logistic regression and certify it. Numbers are "
        "used as given: scale them so that a step of one means the same everywhere, or let "
        "--standardize do so. Text columns are categories. More than two classes are fitted one "
        "against the rest.",
        examples="""
        drlogit fit data.csv --target diagnosis --standardize --epsilon 0.1 -o model.json
        drlogit fit table.csv --target income --standardize --missing median --bounds age=0..120
        drlogit fit train.libsvm.bz2 --epsilon auto --kappa inf -o model.json
        drlogit fit data.parquet --drop id,name --immovable age --weights w -o model.json
        drlogit fit huge.svm --block-rows 100000 --epsilon 0.1 -o model.json
        drlogit fit data.csv --epsilon 0.1 -o model.json --proof proof.npz
        drlogit fit cancer.csv --standardize --json
        """,
    )
    parser.add_argument("data", metavar="DATA", help=DATA_HELP)
    parser.add_argument("-o", "--output", metavar="MODEL", help="file to write the model to (JSON)")
    parser.add_argument(
        "--proof",
        metavar="FILE",
        help="file to write the proof to (.npz), with which drlogit verify checks the bounds",
    )
    add_model_options(parser, epsilon=0.01, kappa=1.0)
    add_data_options(parser)
    add_table_options(parser)
    add_block_option(parser)
    add_solver_options(parser)
    parser.add_argument(
        "--tolerate",
        type=amounts,
        metavar="labels=0.02,A=0.1",
        help="in place of --epsilon, --kappa and costs, what may be wrong: shares of labels and "
        "categories, numbers in standard deviations, and columns by name (a number in its own "
        "units); each alone would use up the budget",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    from ..estimators.classifier import DRLogisticRegression
    from ..files.model_file import write_model

    console = Console(arguments)
    check_numbers(arguments)
    check_outputs(arguments)
    training = read_training(arguments, console)
    options = {
        "epsilon": arguments.epsilon,
        "kappa": arguments.kappa,
        **fit_options(arguments, training),
    }
    if arguments.tolerate is not None:
        options |= tolerated(arguments, training).parameters
    estimator = DRLogisticRegression(**options)
    with console.progress("fit") as bar:
        n_fits = 1 if len(training.classes) == 2 else len(training.classes)
        estimator._callback = bar.iterations(arguments.tol, n_fits)
        estimator._keep_dual = arguments.proof is not None
        model = training.fit(estimator)
    if arguments.proof is not None:
        model.save_proof(arguments.proof, training.X, training.labels, training.weights)
    if arguments.output is not None:
        write_model(model, arguments.output, training.origin)
    _answer(model, training, arguments, console)
    return DONE if all(result.converged for result in model.results_) else NOT_CONVERGED


def _answer(
    model: Any, training: Training, arguments: argparse.Namespace, console: Console
) -> None:
    from ..estimators.tolerances import allowances

    record = {
        "model": arguments.output,
        "proof": arguments.proof,
        "data": training.origin,
        "n_features": int(model.n_features_in_),
        "classes": training.classes,
        "positive": training.positive,
        "epsilon": model.epsilon_,
        "kappa": model.kappa,
        "norm": model.norm,
        "tol": model.tol,
        "allows": allowances(model),
        "fits": [certificate_record(result) for result in model.results_],
    }
    if console.json or not (console.quiet and arguments.output):
        console.answer(record, lambda: _text(model, training, arguments))


def _text(model: Any, training: Training, arguments: argparse.Namespace) -> str:
    from ..estimators.tolerances import allowances

    lines = [
        explain_radius(model.epsilon_, model.kappa, training.X.shape[0]),
        *(f"  {sentence}" for sentence in allowances(model)),
        "",
        "How good is it, on the data it was fitted to?",
        *explain_fits(model.results_, training.classes),
    ]
    if arguments.output is None:
        lines += ["", "The model is not kept: name a file to write it to with -o model.json"]
    else:
        lines += ["", f"Model written to {arguments.output}"]
    if arguments.proof is not None:
        lines.append(f"Proof written to {arguments.proof}: check it with drlogit verify")
    return "\n".join(lines)
