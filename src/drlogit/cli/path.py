"""``drlogit path``: the model over a range of radii."""

from __future__ import annotations

import argparse
import itertools
import math
from typing import Any

import numpy as np
import scipy.sparse as sp

from .console import DONE, NOT_CONVERGED, Console
from .options import (
    DATA_HELP,
    Commands,
    add_data_options,
    add_model_options,
    add_solver_options,
    add_table_options,
    check_numbers,
    new_parser,
    numbers,
)
from .outputs import check_outputs, csv_text, save_plot, table
from .training import Training, fit_options, read_training


def add_parser(commands: Commands) -> None:
    """Add the command."""
    parser = new_parser(
        commands,
        "path",
        help="the model over a range of radii",
        description="Fit the model over a range of radii, from the one that makes it constant "
        "downwards, each fit started from the one before. Coefficients are those of the fit: of a "
        "standardised matrix per standard deviation, of a table in its own units.",
        examples="""
        drlogit path data.csv --standardize
        drlogit path data.csv --standardize --plot path.png -o path.csv
        drlogit path data.csv --epsilons 0.5,0.1,0.01 --kappa inf --json
        """,
    )
    parser.add_argument("data", metavar="DATA", help=DATA_HELP)
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="CSV file for the coefficients at every radius"
    )
    parser.add_argument("--plot", metavar="FILE", help="picture to draw: .png, .pdf or .svg")
    add_model_options(parser, epsilon=None, kappa=1.0)
    group = parser.add_argument_group("radii")
    group.add_argument("--epsilons", type=numbers, metavar="E,E", help="radii (default: chosen)")
    group.add_argument("--n-epsilons", type=int, default=30, metavar="N", help="how many to choose")
    group.add_argument(
        "--min-fraction",
        type=float,
        default=1e-3,
        metavar="SHARE",
        help="the smallest radius chosen, as a share of the largest",
    )
    add_data_options(parser)
    add_table_options(parser)
    add_solver_options(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    from sklearn.preprocessing import StandardScaler

    from ..estimators.choosing import regularization_path
    from ..estimators.training_data import balanced_weights

    console = Console(arguments)
    check_numbers(arguments)
    check_outputs(arguments)
    training = read_training(arguments, console, two_classes=True)
    X, weights, options = training.X, training.weights, fit_options(arguments, training)
    if options.pop("class_weight"):
        weights = balanced_weights(training.codes, weights, 2)
    if arguments.standardize and not (training.categorical or arguments.missing != "error"):
        center = not arguments.no_intercept and not sp.issparse(X)
        X = StandardScaler(with_mean=center).fit_transform(X, sample_weight=weights)
        options |= {"feature_costs": training.costs, "categorical_features": None}
    count = arguments.n_epsilons if arguments.epsilons is None else len(arguments.epsilons)
    done = itertools.count(1)
    with console.progress("path") as bar:
        path = regularization_path(
            X, training.codes, arguments.epsilons,
            n_epsilons=arguments.n_epsilons, min_fraction=arguments.min_fraction,
            kappa=arguments.kappa, sample_weight=weights,
            callback=lambda result: bar.parts(next(done), count, f"gap {result.gap:.1e}"),
            **options,
        )  # fmt: skip
    if arguments.output is not None:
        _write(path, training, arguments.output)
    if arguments.plot is not None:
        _draw(path, training, arguments)
    console.answer(_record(path, training), lambda: _text(path, training, arguments))
    return DONE if (path.gaps <= arguments.tol).all() else NOT_CONVERGED


def _record(path: Any, training: Training) -> dict[str, Any]:
    return {
        "data": training.origin,
        "positive": training.classes[1],
        "kappa": path.kappa,
        "norm": path.norm,
        "epsilon_max": path.epsilon_max,
        "feature_names": path.feature_names or training.names,
        "radii": [
            {
                "epsilon": path.epsilons[i],
                "objective": path.objectives[i],
                "gap": path.gaps[i],
                "lambda": path.lambdas[i],
                "n_iter": path.n_iters[i],
                "intercept": path.intercepts[i],
                "coefficients": path.coefs[i],
            }
            for i in range(len(path))
        ],
    }


def _text(path: Any, training: Training, arguments: argparse.Namespace) -> str:
    finite = math.isfinite(path.kappa)
    columns = ["epsilon", *(["flips up to"] if finite else []), "worst-case loss", "gap"]
    columns += ["largest coef", "coefs not 0"]
    rows = []
    for i in range(len(path)):
        size = np.abs(path.coefs[i])
        share = [f"{min(path.epsilons[i] / path.kappa, 1.0):.2%}"] if finite else []
        rows.append(
            [
                f"{path.epsilons[i]:.5g}", *share, f"{path.objectives[i]:.6f}",
                f"{path.gaps[i]:.1e}", f"{size.max():.4g}",
                str(int(np.count_nonzero(size > 1e-6 * max(size.max(), 1e-6)))),
            ]
        )  # fmt: skip
    lines = [
        f"The model is constant from epsilon = {path.epsilon_max:.5g} on "
        f"({path.norm} transport, kappa = {path.kappa:g}).",
        "",
        table(columns, rows),
    ]
    written = [name for name in (arguments.output, arguments.plot) if name is not None]
    if written:
        lines += ["", f"Written: {', '.join(written)}"]
    return "\n".join(lines)


def _write(path: Any, training: Training, output: str) -> None:
    from ..files.atomic import write_text

    header = ["epsilon", "objective", "gap", "lambda", "intercept"]
    header += path.feature_names or training.names
    columns = (path.epsilons, path.objectives, path.gaps, path.lambdas, path.intercepts, path.coefs)
    write_text(output, csv_text(header, np.column_stack(columns).tolist()))


def _draw(path: Any, training: Training, arguments: argparse.Namespace) -> None:
    from ..plots import RegularizationPathDisplay

    unit = "standard deviation" if arguments.standardize else "unit of the feature"
    names = path.feature_names or training.names
    display = RegularizationPathDisplay.from_path(path, feature_names=names, unit=unit)
    save_plot(display.figure_, arguments.plot)
