"""Fit a robust model to a file and write it as JSON.

Fit distributionally robust logistic regression and certify it. Numbers are used in their own
units: scale them, or use --standardize to measure them in standard deviations. Text columns become
categories. More than two classes become one softmax model.

    drlogit fit data.csv --target diagnosis --standardize --epsilon 0.1 -o model.json
    drlogit fit table.csv --tolerate labels=0.02,age=2 --holdout 0.2 --holdout-out new.csv
    zcat table.csv.gz | drlogit fit - --decimal , --encoding latin1 -o model.json
    drlogit fit table.csv --target income --standardize --missing median --bounds age=0..120
    drlogit fit train.libsvm.bz2 --epsilon 0.01 --kappa inf -o model.json
    drlogit fit data.parquet --drop id,name --immovable age --weights w -o model.json
    drlogit fit data.csv --epsilon 0.1 -o model.json --proof proof.npz
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import Any

from ..estimators.class_recall import ClassRecall
from ..estimators.classifier import DRLogisticRegression
from ..estimators.tolerances import allowances
from ..files.model_file import write_model
from ..files.writing import write_text
from ..problem.label_costs import kappa_text
from ..robustness.guarantees import guarantee
from . import options
from .asking import ModelAndSamples
from .console import DONE, INTERRUPTED, NOT_CONVERGED, Console
from .outputs import explain_fit, fit_record
from .training import Training, parameters, read_training, tolerated


def add_options(parser: ArgumentParser) -> None:
    """Add the options."""
    add = options.group(parser)
    add(*options.DATA)
    add("-o --output MODEL", "file to write the model to (JSON)")
    add("--proof FILE", "file to write the proof to (.npz), for drlogit verify")
    add("--holdout SHARE", "keep this share of the rows out of the fit, and use it for a "
        "guarantee about new data", type=float)  # fmt: skip
    add("--holdout-out FILE", "file to write the rows of --holdout to, for drlogit audit or "
        "guarantee (CSV, or svmlight text like DATA)")  # fmt: skip
    add("--seed N", "seed of --holdout", type=int, default=0)
    add = options.add_model_options(parser, epsilon=0.01, kappa=1.0)
    add(
        "--tolerate labels=0.02,A=0.1",
        "what may be wrong, in place of --epsilon, --kappa and costs: shares of labels and "
        "categories, numbers in standard deviations, columns by name in their own units; these are "
        "alternatives, not a sum",
        type=options.amounts,
    )
    options.add_data_options(parser)
    options.add_solver_options(parser)


def run(arguments: Namespace, console: Console) -> int:
    """Run the command."""
    training, unseen = read_training(arguments, console), None
    if arguments.holdout is not None:
        if not 0.0 < arguments.holdout < 1.0:
            raise ValueError(
                f"--holdout must be a share between 0 and 1, such as 0.3, got {arguments.holdout:g}"
            )
        training, unseen = training.split(arguments.holdout, arguments.seed)
    if arguments.holdout_out is not None:
        if unseen is None:
            raise ValueError("--holdout-out needs --holdout with a share of the rows, such as 0.2")
        rows = unseen.samples.as_text(arguments.weights, arguments.kappa_column)
        write_text(arguments.holdout_out, rows)
    settings = {"epsilon": arguments.epsilon, "kappa": training.by_label(arguments.kappa)}
    settings |= parameters(arguments, training)
    if arguments.tolerate is not None:
        settings |= tolerated(arguments, training)
    estimator = DRLogisticRegression(**settings)
    interrupted = False
    with console.progress("fit") as bar:
        estimator.on_iteration = console.watcher(
            lambda at: bar(lambda: f"iteration {at.n_iter}, {at.elapsed:.1f} s, gap {at.gap:.1e}")
        )
        try:
            model = training.fit(estimator)
        except KeyboardInterrupt:
            if not hasattr(estimator, "coef_"):
                raise
            # The model is written all the same, without what would take another while.
            model, interrupted, unseen, arguments.proof = estimator, True, None, None
    samples, promised = training.samples, None
    recalls = [
        ModelAndSamples(model, each.origin, each.samples).recall()
        for each in (training, unseen)
        if each is not None
    ]
    if unseen is not None:
        weights = unseen.samples.weights
        X, kappa = unseen.samples.X, unseen.samples.kappa
        promised = guarantee(model, X, unseen.labels, sample_weight=weights, kappa=kappa)
    if arguments.proof is not None:
        data = (samples.X, training.labels, samples.weights, samples.kappa)
        model.save_proof(arguments.proof, *data)
    if arguments.output is not None:
        write_model(model, arguments.output, training.origin)
    if console.json or not (console.quiet and arguments.output):
        record = fit_record(model, promised, recalls[0], training, arguments.output) | {
            "proof": arguments.proof,
            "n_features": int(model.n_features_in_),
            "tol": model.tol,
            "allows": allowances(model),
            **({} if unseen is None else {"holdout": recalls[1].record}),
        }
        console.answer(record, lambda: _text(model, promised, recalls, training, arguments))
    if interrupted:
        return INTERRUPTED
    return DONE if model.result_.converged else NOT_CONVERGED


def _text(
    model: Any, promised: Any, recalls: list[ClassRecall], training: Training, arguments: Namespace
) -> str:
    n_samples = training.labels.size
    lines = []
    if promised is not None:
        lines = ["What holds for new data? (from rows that the model has not seen)"]
        lines += [str(promised), "On these rows as they are:", *recalls[1].lines(), ""]
    lines += [
        f"What may be wrong with the data? (epsilon = {model.epsilon_:g}, kappa = "
        f"{kappa_text(model.kappa_)})",
        *(f"  {sentence}" for sentence in allowances(model)),
        "",
        "How good is the model on the rows of the fit?",
        *explain_fit(model.result_),
        *recalls[0].lines(),
        "",
    ]
    which = "" if promised is None else f", fitted to the other {n_samples} rows,"
    if arguments.output is None:
        lines.append(f"The model{which} was not written. To keep it, add -o model.json")
    else:
        lines.append(f"Model{which} written to {arguments.output}")
    if arguments.holdout_out is not None:
        lines.append(f"Held-out rows written to {arguments.holdout_out}")
    if arguments.proof is not None:
        lines.append(f"Proof written to {arguments.proof}; drlogit verify checks it")
    return "\n".join(lines)
