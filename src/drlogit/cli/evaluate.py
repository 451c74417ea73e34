"""``drlogit evaluate``: how good a model is on labelled samples, as they are and at worst."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from ..problem.label_costs import BY_SAMPLE, kappa_text
from . import options
from .asking import ModelAndSamples, read_asked
from .chosen_classes import match_labels
from .console import DONE, Console
from .outputs import table


def add_parser(commands: options.Commands) -> None:
    """Add the command."""
    parser = options.new_parser(
        commands,
        "evaluate",
        run,
        help="how good a model is on labelled samples, as they are and in the worst case",
        description="Log-loss, accuracy and area under the ROC curve on the samples as they are, "
        "and the worst case within the model's radius around these samples.",
        examples="""
        drlogit evaluate model.json test.csv
        drlogit evaluate model.json test.csv --epsilon 0.05 --json
        """,
    )
    add = options.group(parser)
    add("MODEL", options.MODEL_HELP)
    add("DATA", options.DATA_HELP)
    options.add_ball_options(parser, "worst case")
    options.add_sample_options(parser)


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Run the command."""
    asked = read_asked(arguments, console)
    record = _measure(asked, arguments)
    console.answer(record, lambda: _text(record, asked))
    return DONE


def _measure(asked: ModelAndSamples, arguments: argparse.Namespace) -> dict[str, Any]:
    from sklearn.metrics import confusion_matrix, roc_auc_score

    codes, classes = asked.codes, asked.classes
    weights = asked.samples.weights
    model, X = asked.model, asked.samples.X
    # In logarithms, so that a sure mistake is a large loss and not an infinite one.
    losses = -model.predict_log_proba(X)[np.arange(codes.size), codes]
    predicted = match_labels(model.predict(X), classes, asked.samples.source)
    record: dict[str, Any] = {
        "model": arguments.model,
        "data": asked.samples.source,
        "n_samples": int(codes.size),
        "classes": classes,
        "log_loss": float(np.average(losses, weights=weights)),
        "accuracy": float(np.average(predicted == codes, weights=weights)),
        "confusion": confusion_matrix(codes, predicted, labels=np.arange(len(classes))),
    }
    if len(classes) == 2:
        record["roc_auc"] = None
        if np.unique(codes).size == 2:
            scores = model.decision_function(X)
            record["roc_auc"] = float(roc_auc_score(codes, scores, sample_weight=weights))
        record["worst_case"] = _worst_case(asked, arguments)
    record["training"] = {
        "converged": model.result_.converged,
        "gaps": model.dual_gap_,
        "objectives": model.worst_case_loss_,
    }
    return record


def _worst_case(asked: ModelAndSamples, arguments: argparse.Namespace) -> dict[str, float]:
    from ..robustness.misclassification import misclassification_bounds
    from ..robustness.worst_case import worst_case_loss

    model, data = asked.model, (asked.samples.X, asked.labels)
    ball = {
        "epsilon": model.epsilon_ if arguments.epsilon is None else arguments.epsilon,
        "kappa": asked.kappa(model.kappa_ if arguments.kappa is None else arguments.kappa),
    }
    weights = asked.samples.weights
    error = misclassification_bounds(model, *data, **ball, sample_weight=weights)
    shown = ball if asked.samples.kappa is None else {**ball, "kappa": BY_SAMPLE}
    return {
        **shown,
        "log_loss": worst_case_loss(model, *data, **ball, sample_weight=weights),
        "best_error": error.best,
        "worst_error": error.worst,
    }


def _text(record: dict[str, Any], asked: ModelAndSamples) -> str:
    from ..robustness.measured_model import where_measured

    lines = [
        f"{record['data']}: {record['n_samples']} samples",
        "",
        "As they are",
        f"  log-loss   {record['log_loss']:.4f}",
        f"  accuracy   {record['accuracy']:.1%}",
    ]
    if record.get("roc_auc") is not None:
        lines.append(f"  ROC AUC    {record['roc_auc']:.4f}")
    names = [str(label)[:20] for label in record["classes"]]
    rows = [
        [f"truly {name}", *map(str, row)]
        for name, row in zip(names, record["confusion"].tolist(), strict=True)
    ]
    lines += ["", table(["", *(f"called {name}" for name in names)], rows)]
    worst = record.get("worst_case")
    if worst is not None:
        kappa = kappa_text(worst["kappa"])
        lines += [
            "",
            f"In the worst case within epsilon = {worst['epsilon']:g} (kappa = {kappa}) of them",
            f"  (distances {where_measured(asked.model)})",
            f"  log-loss   {worst['log_loss']:.4f}",
            f"  error      {worst['worst_error']:.1%} (in the best case {worst['best_error']:.1%})",
        ]
    if not record["training"]["converged"]:
        lines += ["", f"The fit did not converge: its gap is {max(record['training']['gaps']):.1e}"]
    return "\n".join(lines)
