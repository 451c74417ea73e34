"""``drlogit path``: the model over a range of radii."""

from __future__ import annotations

import argparse
import math
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..problem.label_costs import kappa_text
from . import options
from .chosen_classes import keyed_by_label
from .console import DONE, NOT_CONVERGED, Console
from .outputs import explain_written, save_plot, table
from .training import Training, parameters, read_training


def add_parser(commands: options.Commands) -> None:
    """Add the command."""
    parser = options.new_parser(
        commands,
        "path",
        run,
        help="the model over a range of radii",
        description="Fit the model over a range of radii, from the one that makes it constant "
        "downwards, each fit started from the one before. Coefficients are those of the fit: of a "
        "standardised matrix per standard deviation, of a table in its own units.",
        examples="""
        drlogit path data.csv --standardize
        drlogit path data.csv --standardize --plot path.png
        drlogit path data.csv --epsilons 0.5,0.1,0.01 --kappa inf --json
        """,
    )
    add = options.group(parser)
    add("DATA", options.DATA_HELP)
    add("--plot FILE", "picture to draw: .png, .pdf or .svg")
    options.add_model_options(parser, kappa=1.0)
    add = options.group(parser, "radii")
    add("--epsilons E,E", "radii (default: chosen)", type=options.numbers)
    add("--n-epsilons N", "how many to choose", type=int, default=30)
    add("--min-fraction SHARE", "the smallest radius chosen, as a share of the largest",
        type=float, default=1e-3)  # fmt: skip
    options.add_data_options(parser)
    options.add_solver_options(parser)


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Run the command."""
    from sklearn.preprocessing import StandardScaler

    from ..estimators.choosing import regularization_path
    from ..estimators.training_data import with_class_weights

    standardized = arguments.standardize
    training = read_training(arguments, console)
    X, weights = training.samples.X, training.samples.weights
    n_classes = len(training.classes)
    if arguments.balanced:
        weights = with_class_weights(weights, "balanced", training.classes, training.codes)
    if arguments.standardize and not (training.categorical or arguments.missing != "error"):
        center = not arguments.no_intercept and not sp.issparse(X)
        X = StandardScaler(with_mean=center).fit_transform(X, sample_weight=weights)
        arguments.standardize = False
    settings = parameters(arguments, training)
    del settings["class_weight"], settings["label_noise"]  # nothing is predicted
    samples = training.samples
    kappa = keyed_by_label(arguments.kappa, training.classes, range(n_classes), samples.source)
    kappa = kappa if samples.kappa is None else samples.kappa
    if not hasattr(X, "columns"):
        settings["categorical_features"] = None
    count = arguments.n_epsilons if arguments.epsilons is None else len(arguments.epsilons)
    done = 0
    with console.progress("path") as bar:

        def tell(result: Any) -> None:
            nonlocal done
            done += 1
            bar(lambda: f"{done} of {count}, gap {result.gap:.1e}")

        path = regularization_path(
            X, training.codes, arguments.epsilons,
            n_epsilons=arguments.n_epsilons, min_fraction=arguments.min_fraction,
            kappa=kappa, sample_weight=weights,
            callback=tell,
            **settings,
        )  # fmt: skip
    if isinstance(path.kappa, dict):
        path = replace(path, kappa={training.classes[k]: v for k, v in path.kappa.items()})
    names = path.feature_names or training.samples.names
    if arguments.plot is not None:
        from ..report import RegularizationPathDisplay

        unit = "standard deviation" if standardized else "unit of the feature"
        display = RegularizationPathDisplay.from_path(
            path, feature_names=names, unit=unit, classes=training.classes
        )
        save_plot(display.figure_, arguments.plot)
    console.answer(_record(path, names, training), lambda: _text(path, arguments))
    return DONE if (path.gaps <= arguments.tol).all() else NOT_CONVERGED


def _record(path: Any, names: list[str], training: Training) -> dict[str, Any]:
    return {
        "data": training.origin,
        "classes": training.classes,
        "positive": training.positive,
        "kappa": path.kappa,
        "norm": path.norm,
        "epsilon_max": path.epsilon_max,
        "feature_names": names,
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


def _text(path: Any, arguments: argparse.Namespace) -> str:
    finite = isinstance(path.kappa, float) and math.isfinite(path.kappa)
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
    return "\n".join([
        f"The model is constant from epsilon = {path.epsilon_max:.5g} on "
        f"({path.norm} transport, kappa = {kappa_text(path.kappa)}).",
        "",
        table(columns, rows),
        *explain_written(arguments.plot),
    ])  # fmt: skip
