"""Fit a model for a range of radii.

Fit the model for radii from the one that makes it constant downwards; each fit starts from the one
before. Coefficients of a standardised matrix are per standard deviation, those of a table are per
unit.

    drlogit path data.csv --standardize
    drlogit path data.csv --standardize --plot path.png
    drlogit path data.csv --epsilons 0.5,0.1,0.01 --kappa inf --json
"""

from __future__ import annotations

import math
from argparse import ArgumentParser, Namespace
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import StandardScaler

from ..estimators.choosing import regularization_path
from ..estimators.training_data import with_class_weights
from ..problem.label_costs import kappa_text
from . import options
from .console import DONE, NOT_CONVERGED, Console
from .outputs import explain_written, save_plot, table
from .training import Training, parameters, read_training


def add_options(parser: ArgumentParser) -> None:
    """Add the options."""
    add = options.group(parser)
    add(*options.DATA)
    add("--plot FILE", "picture to write (.png, .pdf or .svg)")
    options.add_model_options(parser, kappa=1.0)
    add = options.group(parser, "radii")
    add("--epsilons E,E", "the radii (default: a grid)", type=options.numbers)
    add("--n-epsilons N", "number of radii in the grid", type=int, default=30)
    options.add_data_options(parser)
    options.add_solver_options(parser)


def run(arguments: Namespace, console: Console) -> int:
    """Run the command."""
    training = read_training(arguments, console)
    samples, unit = training.samples, "unit of the feature"
    X, y, weights = samples.X, training.labels, samples.weights
    if arguments.balanced:
        weights = with_class_weights(
            weights, "balanced", training.classes, np.searchsorted(training.classes, y)
        )
    if arguments.standardize and not (training.categorical or arguments.missing != "error"):
        center = not arguments.no_intercept and not sp.issparse(X)
        X = StandardScaler(with_mean=center).fit_transform(X, sample_weight=weights)
        arguments.standardize, unit = False, "standard deviation"
    settings = parameters(arguments, training)
    del settings["class_weight"], settings["label_noise"]  # nothing is predicted
    kappa = training.by_label(arguments.kappa) if samples.kappa is None else samples.kappa
    if not hasattr(X, "columns"):
        settings["categorical_features"] = settings["numbers"] = settings["ordinal"] = None
    with console.progress("path") as bar:
        path = regularization_path(
            X, y, arguments.epsilons, n_epsilons=arguments.n_epsilons,
            kappa=kappa, sample_weight=weights,
            callback=lambda at: bar(lambda: f"lambda {at.lam:.3g}, gap {at.gap:.1e}"),
            **settings,
        )  # fmt: skip
    classes = training.classes
    if training.positive == classes[0]:
        path = replace(path, coefs=-path.coefs, intercepts=-path.intercepts)
        classes = classes[::-1]
    names = path.feature_names or training.samples.names
    if arguments.plot is not None:
        from ..report import RegularizationPathDisplay

        display = RegularizationPathDisplay.from_path(
            path, feature_names=names, unit=unit, classes=classes
        )
        save_plot(display.figure_, arguments.plot)
    console.answer(_record(path, names, training), lambda: _text(path, arguments))
    return DONE if (path.gaps <= arguments.tol).all() else NOT_CONVERGED


def _record(path: Any, names: list[str], training: Training) -> dict[str, Any]:
    of_radii = {
        "epsilon": path.epsilons,
        "objective": path.objectives,
        "gap": path.gaps,
        "lambda": path.lambdas,
        "n_iter": path.n_iters,
        "intercept": path.intercepts,
        "coefficients": path.coefs,
    }
    return {
        **training.record,
        "kappa": path.kappa,
        "norm": path.norm,
        "epsilon_max": path.epsilon_max,
        "feature_names": names,
        "radii": [{name: each[i] for name, each in of_radii.items()} for i in range(len(path))],
    }


def _text(path: Any, arguments: Namespace) -> str:
    finite = isinstance(path.kappa, float) and math.isfinite(path.kappa)
    columns = ["epsilon", "flips up to", "worst-case loss", "gap", "largest coef", "coefs not 0"]
    rows = []
    for i in range(len(path)):
        size = np.abs(path.coefs[i])
        rows.append([
            f"{path.epsilons[i]:.5g}",
            f"{min(path.epsilons[i] / path.kappa, 1.0):.2%}" if finite else "",
            f"{path.objectives[i]:.6f}",
            f"{path.gaps[i]:.1e}",
            f"{size.max():.4g}",
            str(np.count_nonzero(size > 1e-6 * max(size.max(), 1e-6))),
        ])  # fmt: skip
    return "\n".join([
        f"The model is constant from epsilon = {path.epsilon_max:.5g} on "
        f"({path.norm} transport, kappa = {kappa_text(path.kappa)}).",
        "",
        table(columns, rows),
        *explain_written(arguments.plot),
    ])  # fmt: skip
