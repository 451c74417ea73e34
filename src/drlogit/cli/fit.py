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
from ..files.model_file import write_model
from ..files.writing import write_text
from ..problem.norms import NORMS
from . import options
from .console import DONE, INTERRUPTED, NOT_CONVERGED, Console
from .data import FileSamples, read_training, stated_ball


def add_options(parser: ArgumentParser) -> None:
    """Add the options."""
    add = options.group(parser)
    add(*options.DATA)
    add("-o --output MODEL", "file to write the model to (JSON)")
    add("--proof FILE", "file to write the proof to (.npz), for drlogit verify")
    add("--cv FOLDS", "choose epsilon and kappa by cross-validation", type=int)
    add(
        "--holdout SHARE FILE",
        "leave this share of the rows out of the fit and write them to a file, for drlogit audit "
        "--unseen and drlogit threshold",
    )
    add("--seed N", "seed of --holdout", type=int, default=0)
    options.add_file_options(parser, "svmlight files have their own")
    add = options.group(parser, "columns and classes")
    add(
        "--positive LABEL",
        "of two classes, the one that decisions are about, in all commands "
        "(default: the class that sorts last)",
    )
    add("--features COLUMN...", "use only these columns")
    add("--drop COLUMN...", "ignore these columns")
    add(
        "--categorical COLUMN...",
        "columns of numbers that are categories",
        dest="categorical_features",
    )
    add(
        "--missing",
        "replacement for missing numbers; error refuses them; missing text is a "
        "category of its own",
        choices=("error", "mean", "median"),
        default="error",
    )
    add("--balanced", "give every class the same total weight")
    add = options.add_ball_options(parser, "sampling error alone, and labels are correct")
    add("--norm", "norm in which moves of several numbers are added", choices=tuple(NORMS))
    add(
        "--feature-costs COLUMN=COST...", "cost of moving a column by one unit", type=options.amount
    )
    add("--bounds COLUMN=LOW..HIGH...", "range in which a column stays", type=options.interval)
    add("--no-intercept", "fit no intercept")
    add("--tol GAP", "largest duality gap, in nats of log-loss", type=float, default=1e-6)
    add("--max-iter N", "largest number of iterations", type=int)
    add("--max-time SECONDS", "time limit; the best certified model so far is kept", type=float)


def run(arguments: Namespace, console: Console) -> int:
    """Run the command."""
    samples, notes = read_training(arguments)
    if arguments.holdout is not None:
        samples = _keep_rows_out(samples, arguments)
    classes = np.unique(samples.labels).tolist()
    estimator = _estimator(arguments, samples, classes)
    _describe(samples, notes, classes, console)
    model, interrupted = _fitted(estimator, samples, console)
    if arguments.proof is not None and not interrupted:
        model.save_proof(arguments.proof, samples.X, samples.labels, samples.sample_weight)
    if arguments.output is not None:
        write_model(model, arguments.output, notes)
    record = _record(model, samples, notes) | {"model": arguments.output, "proof": arguments.proof}
    if not (console.quiet and arguments.output) or console.json:
        console.answer(record, lambda: _text(record, model, arguments))
    if interrupted:
        return INTERRUPTED
    return DONE if record["gap"] <= arguments.tol else NOT_CONVERGED


def _keep_rows_out(samples: FileSamples, arguments: Namespace) -> FileSamples:
    """The samples without a share of each class, which is written to a file."""
    from sklearn.model_selection import train_test_split

    share, path = arguments.holdout
    try:
        size = float(share)
    except ValueError:
        size = 0.0
    if not 0.0 < size < 1.0:
        raise ValueError(f"--holdout must be a share between 0 and 1 and a file, got {share!r:.20}")
    fitted, kept = train_test_split(
        np.arange(samples.labels.size),
        test_size=size,
        stratify=samples.labels,
        random_state=arguments.seed,
    )
    text = samples.rows(np.sort(kept)).as_text(zero_based=bool(arguments.zero_based))
    write_text(path, text)
    return samples.rows(np.sort(fitted))


def _estimator(arguments: Namespace, samples: FileSamples, classes: list[Any]) -> Any:
    """The estimator that the options state."""
    settings = {
        "ball": stated_ball(arguments, classes, None),
        "fit_intercept": not arguments.no_intercept,
        "missing": arguments.missing,
        "class_weight": "balanced" if arguments.balanced else None,
        "tol": arguments.tol,
        "max_iter": arguments.max_iter,
        "max_time": arguments.max_time,
    }
    if arguments.cv is None:
        return DRLogisticRegression(**settings)
    return DRLogisticRegressionCV(cv=arguments.cv, **settings)


def _fitted(estimator: Any, samples: FileSamples, console: Console) -> tuple[Any, bool]:
    """The fitted estimator, and whether the user interrupted it, which keeps the best point."""
    with console.progress("fit") as progress:
        estimator.on_iteration = lambda at: progress.gap(at.gap, estimator.tol)
        estimator.on_fold = progress.folds
        try:
            estimator.fit(samples.X, samples.labels, sample_weight=samples.sample_weight)
        except KeyboardInterrupt:
            if not hasattr(estimator, "coef_"):
                raise
            return estimator, True
    return estimator, False


def _describe(
    samples: FileSamples, notes: dict[str, Any], classes: list[Any], console: Console
) -> None:
    """What was read, in a line."""
    counts = [f"{label} ({np.sum(samples.labels == label)})" for label in classes[:8]]
    positive = ""
    if len(classes) == 2:
        named = "" if "positive" in notes else " (change it with --positive)"
        positive = f"; positive class: {notes.get('positive', classes[1])}{named}"
    console.note(
        f"{samples.source}: {samples.X.shape[0]} rows, {samples.X.shape[1]} features; labels: "
        f"{', '.join(counts)}{positive}"
    )


def _record(model: Any, samples: FileSamples, notes: dict[str, Any]) -> dict[str, Any]:
    """A fitted model for a script: its data, ball, certificate and accuracy."""
    predicted, classes = model.predict(samples.X), model.classes_.tolist()
    right, weights = predicted == samples.labels, samples.sample_weight
    shares = {
        label: float(np.average(samples.labels == label, weights=weights)) for label in classes
    }
    result = model.result_
    record = {
        **notes,
        "n_samples": int(right.size),
        "classes": classes,
        "positive": notes.get("positive", classes[1] if len(classes) == 2 else None),
        "epsilon": model.ball_.epsilon,
        "kappa": model.ball_.kappa,
        "norm": model.ball_.norm,
        "allows": model.ball_.allowed(),
        "worst_case_loss": model.worst_case_loss_,
        "lower_bound": result.dual_objective,
        "gap": model.dual_gap_,
        "status": str(result.status),
        "n_iter": result.n_iter,
        "seconds": result.solve_time,
        "accuracy": float(np.average(right, weights=weights)),
        "recall": {label: float(right[samples.labels == label].mean()) for label in classes},
        "constant_accuracy": max(shares.values()),
    }
    if hasattr(model, "best_score_"):
        record |= {"cv_log_loss": -model.best_score_, "cv_folds": model.n_splits_}
    return record


def _text(record: dict[str, Any], model: Any, arguments: Namespace) -> str:
    recalls = ", ".join(f"{label} {share:.1%}" for label, share in record["recall"].items())
    lines = ["What may be wrong with the data?", *(f"  {each}" for each in record["allows"])]
    if arguments.cv is not None:
        lines.append(
            f"  (chosen on {record['cv_folds']} folds: log-loss {record['cv_log_loss']:.4f} on "
            "rows left out)"
        )
    lines += [
        "",
        "How good is the model on the rows of the fit?",
        f"  worst-case log-loss   {record['worst_case_loss']:.7f}",
        f"  no model is below     {record['lower_bound']:.7f}",
        f"  gap                   {record['gap']:.1e}, after {record['n_iter']} iterations, "
        f"{record['seconds']:.2f} s",
        f"  accuracy              {record['accuracy']:.1%}; a constant model has "
        f"{record['constant_accuracy']:.1%}",
        f"  recall by class       {recalls}",
    ]
    if record["gap"] > arguments.tol:
        lines.append(f"  not converged         {record['status']}")
    written = {"Model": arguments.output, "Proof": arguments.proof}
    written["Rows left out"] = arguments.holdout and arguments.holdout[1]
    lines += ["", *(f"{what} written to {path}" for what, path in written.items() if path)]
    if arguments.output is None:
        lines.append("The model was not written. To keep it, add -o model.json")
    return "\n".join(lines)
