"""Fit a robust model to a file and write it as JSON.

State with --tolerate what may be wrong with the data; nothing stated is sampling error alone. The
fit has the smallest worst-case log-loss within that, with proof. Text columns become categories.
With --cv, cross-validation chooses how much robustness pays on data like these.

    drlogit fit table.csv --target label --tolerate labels=0.05 age=2 -o model.json
    drlogit fit table.csv --target label --missing median --holdout 0.3 kept.csv -o model.json
    drlogit fit table.csv --target label --positive sick --drop id name --cv 5 -o model.json
    drlogit fit train.svm.bz2 --tolerate labels=0.02 -o model.json --proof proof.npz
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import Any

import numpy as np

from ..estimators.classifier import DRLogisticRegression
from ..estimators.classifier_cv import DRLogisticRegressionCV
from ..estimators.robust_classifier import result_of
from ..estimators.tables.encoding import FILLS
from ..estimators.tables.frames import listed
from ..files.model_file import write_model
from ..files.writing import write_text
from ..problem.norms import NORMS
from ..rows.checks import ParameterError
from . import options
from .console import Console, Exit
from .data import FileSamples, read_training, stated_ball


def add_options(parser: ArgumentParser) -> None:
    """Add the options."""
    add = options.group(parser)
    add(*options.DATA)
    add("-o --output MODEL", "file to write the model to (JSON)")
    add("--proof FILE", "file to write the proof to (.npz), for drlogit verify")
    add("--cv FOLDS", "choose epsilon and kappa by cross-validation", type=int)
    add("--holdout SHARE FILE", "leave a share of the rows out of the fit, in a file")
    add("--seed N", "seed of --holdout (default: 0)", type=int, default=0)
    options.add_file_options(parser, "svmlight files have their own")
    add = options.group(parser, "columns and classes")
    add("--positive LABEL", "the class that decisions are about (default: that which sorts last)")
    add("--drop COLUMN...", "ignore these columns")
    add("--categorical-features COLUMN...", "columns of numbers that are categories")
    said = "what replaces missing numbers (default: error)"
    add("--missing", said, choices=FILLS, default="error")
    add("--class-weight", "give every class the same total weight", choices=("balanced",))
    add = options.add_ball_options(parser, "sampling error alone, and labels are correct")
    add("--norm", "norm in which moves of several numbers are added", choices=tuple(NORMS))
    add("--tol GAP", "largest duality gap, in nats (default: 1e-6)", type=float, default=1e-6)
    add("--max-iter N", "largest number of iterations", type=int)
    add("--max-time SECONDS", "time limit; the best certified model so far is kept", type=float)


def run(arguments: Namespace, console: Console) -> int:
    """Run the command."""
    samples, notes = read_training(arguments)
    if arguments.holdout is not None:
        samples = _keep_rows_out(samples, arguments)
    classes = np.unique(samples.labels).tolist()
    estimator = _estimator(arguments, samples, classes)
    positive = notes.get("positive", classes[1]) if len(classes) == 2 else None
    counts = listed([f"{label} ({np.sum(samples.labels == label)})" for label in classes], 8)
    said = "" if positive is None else f"; positive class: {positive} (--positive names another)"
    console.note(
        f"{samples.file.name}: {samples.X.shape[0]} rows, {samples.X.shape[1]} features; labels: "
        f"{counts}{said}"
    )
    interrupted = False
    with console.progress("fit") as progress:
        estimator.on_iteration = lambda at: progress.gap(at.gap, arguments.tol)
        estimator.on_fold = progress.folds
        try:
            estimator.fit(samples.X, samples.labels, sample_weight=samples.sample_weight)
        except KeyboardInterrupt:  # the best point so far is a model
            if not hasattr(estimator, "coef_"):
                raise
            interrupted = True
    if arguments.proof is not None and not interrupted:
        estimator.save_proof(arguments.proof, samples.X, samples.labels, samples.sample_weight)
    if arguments.output is not None:
        write_model(estimator, arguments.output, notes)
    record = {**notes, "positive": positive, **_record(estimator, samples)}
    if console.json or not (console.quiet and arguments.output):
        console.answer(record, lambda: _text(record, arguments))
    if interrupted:
        return Exit.INTERRUPTED
    return Exit.DONE if record["gap"] <= arguments.tol else Exit.NOT_CONVERGED


def _keep_rows_out(samples: FileSamples, arguments: Namespace) -> FileSamples:
    """The samples without a share of each class, which is written to a file."""
    from sklearn.model_selection import train_test_split

    share, path = arguments.holdout
    if not share.replace(".", "", 1).isdigit() or not 0.0 < float(share) < 1.0:
        raise ParameterError("holdout", f"must be a share between 0 and 1 and a file, got {share}")
    if samples.table is None:
        raise ParameterError("holdout", "needs a table, and svmlight text is none")
    places, labels = np.arange(samples.labels.size), samples.labels
    split = {"test_size": float(share), "random_state": arguments.seed}
    fitted, kept = map(np.sort, train_test_split(places, stratify=labels, **split))
    write_text(path, samples.table.iloc[kept].to_csv(index=False, lineterminator="\n"))
    weights = None if samples.sample_weight is None else samples.sample_weight[fitted]
    return FileSamples(samples.file, samples.X.iloc[fitted], labels[fitted], weights)


def _estimator(arguments: Namespace, samples: FileSamples, classes: list[Any]) -> Any:
    """The estimator that the options state."""
    settings = {
        name: getattr(arguments, name)
        for name in ("missing", "class_weight", "tol", "max_iter", "max_time")
    }
    ball = stated_ball(arguments, samples, classes, None)
    if arguments.cv is not None:
        return DRLogisticRegressionCV(cv=arguments.cv, ball=ball, **settings)
    return DRLogisticRegression(ball=ball, **settings)


def _record(model: Any, samples: FileSamples) -> dict[str, Any]:
    """A fitted model for a script: its ball, its certificate and how often it is right."""
    labels, weights, classes = samples.labels, samples.sample_weight, model.classes_.tolist()
    right, result = model.predict(samples.X) == labels, result_of(model)
    record = {
        "n_samples": int(labels.size),
        "classes": classes,
        "epsilon": model.ball_.epsilon,
        "kappa": model.ball_.kappa,
        "allows": model.ball_.allowed(),
        "worst_case_loss": model.worst_case_loss_,
        "lower_bound": result.dual_objective,
        "gap": model.dual_gap_,
        "status": str(result.status),
        "n_iter": result.n_iter,
        "seconds": result.solve_time,
        "accuracy": float(np.average(right, weights=weights)),
        "constant_accuracy": max(np.average(labels == each, weights=weights) for each in classes),
    }
    if hasattr(model, "best_score_"):
        record |= {"cv_log_loss": -model.best_score_, "cv_folds": model.n_splits_}
    return record


def _text(record: dict[str, Any], arguments: Namespace) -> str:
    lines = ["What may be wrong with the data?", *(f"  {each}" for each in record["allows"])]
    if arguments.cv is not None:
        loss = f"log-loss {record['cv_log_loss']:.4f} on rows left out"
        lines.append(f"  (chosen on {record['cv_folds']} folds: {loss})")
    lines += [
        "",
        "How good is the model on the rows of the fit?",
        f"  worst-case log-loss   {record['worst_case_loss']:.7f}",
        f"  no model is below     {record['lower_bound']:.7f}",
        f"  gap                   {record['gap']:.1e}, after {record['n_iter']} iterations, "
        f"{record['seconds']:.2f} s",
        f"  accuracy              {record['accuracy']:.1%}; a constant model has "
        f"{record['constant_accuracy']:.1%}",
    ]
    kept = arguments.holdout and arguments.holdout[1]
    files = {"Model": arguments.output, "Proof": arguments.proof, "Rows left out": kept}
    lines += ["", *(f"{what} written to {path}" for what, path in files.items() if path)]
    if arguments.output is None:
        lines.append("The model was not written. To keep it, add -o model.json")
    return "\n".join(lines)
