"""Measure a model on labelled rows, as they are and in the worst case.

Prints log-loss, accuracy and area under the ROC curve on the rows as they are, and the worst case
within the radius of the model around these rows. All numbers are about recorded labels: for a model
with --label-noise, recorded labels are compared with probabilities of recorded labels.

    drlogit evaluate model.json test.csv
    drlogit evaluate model.json test.csv --epsilon 0.05 --json
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import Any

import numpy as np
from sklearn.metrics import confusion_matrix, roc_auc_score

from ..estimators.class_recall import ClassRecall
from ..problem.label_costs import BY_SAMPLE, kappa_text
from ..robustness.measured_model import where_measured
from ..robustness.misclassification import misclassification_bounds
from ..robustness.worst_case import worst_case_loss
from . import options
from .asking import ModelAndSamples, read_asked, warn_of_neglect
from .console import DONE, Console
from .outputs import table

#: What is compared where labels are known to be wrong at a rate.
_COMPARED = "recorded labels with probabilities of recorded labels"


def add_options(parser: ArgumentParser) -> None:
    """Add the options."""
    add = options.group(parser)
    add(*options.MODEL)
    add(*options.DATA)
    options.add_threshold(parser)
    options.add_ball_options(parser, "worst case")
    options.add_sample_options(parser)


def run(arguments: Namespace, console: Console) -> int:
    """Run the command."""
    asked = read_asked(arguments, console)
    model, X, weights = asked.of_recorded.model, asked.samples.X, asked.samples.weights
    codes, classes = asked.codes, asked.classes
    noisy = asked.model.label_noise_ is not None
    # In logarithms, so that a sure mistake is a large loss and not an infinite one.
    losses = -model.predict_log_proba(X)[np.arange(codes.size), codes]
    predicted = asked.of_recorded.predicted(arguments.threshold)
    recall = ClassRecall.of(classes, codes, predicted, weights)
    record: dict[str, Any] = {
        "model": arguments.model,
        "data": asked.samples.source,
        "n_samples": int(codes.size),
        "classes": classes,
        "compared": _COMPARED if noisy else "labels with their probabilities",
        "log_loss": float(np.average(losses, weights=weights)),
        **recall.record,
        "threshold": arguments.threshold,
        "confusion": confusion_matrix(codes, predicted, labels=np.arange(len(classes))),
        "roc_auc": None,
        "worst_case": _worst_case(asked, arguments),
        "training": {
            "converged": model.result_.converged,
            "gaps": model.dual_gap_,
            "objectives": model.worst_case_loss_,
        },
    }
    if len(classes) == np.unique(codes).size == 2:
        scores = model.decision_function(X)
        record["roc_auc"] = float(roc_auc_score(codes, scores, sample_weight=weights))
    warn_of_neglect(asked, recall, console)
    console.answer(record, lambda: _text(record, recall, asked))
    return DONE


def _worst_case(asked: ModelAndSamples, arguments: Namespace) -> dict[str, Any]:
    model, samples = asked.model, asked.samples
    epsilon = model.epsilon_ if arguments.epsilon is None else arguments.epsilon
    kappa = asked.kappa(arguments.kappa)
    stated = model.kappa_ if kappa is None else kappa
    ball = {"epsilon": epsilon, "kappa": kappa, "sample_weight": samples.weights}
    error = misclassification_bounds(model, samples.X, asked.labels, **ball)
    return {
        "epsilon": epsilon,
        "kappa": stated if samples.kappa is None else BY_SAMPLE,
        "log_loss": worst_case_loss(model, samples.X, asked.labels, **ball),
        "best_error": error.best,
        "worst_error": error.worst,
    }


def _text(record: dict[str, Any], recall: ClassRecall, asked: ModelAndSamples) -> str:
    auc, worst, training = record["roc_auc"], record["worst_case"], record["training"]
    names = [str(label)[:20] for label in record["classes"]]
    counts = zip(names, record["confusion"].tolist(), strict=True)
    noisy = record["compared"] == _COMPARED
    rows = [[f"{'recorded' if noisy else 'truly'} {name}", *map(str, row)] for name, row in counts]
    lines = [
        f"{record['data']}: {record['n_samples']} samples",
        "",
        f"As they are ({_COMPARED})" if noisy else "As they are",
        f"  log-loss              {record['log_loss']:.4f}",
        *([] if auc is None else [f"  ROC AUC               {auc:.4f}"]),
        *recall.lines(),
        "",
        table(["", *(f"called {name}" for name in names)], rows),
        "",
        f"In the worst case within epsilon = {worst['epsilon']:g} of these rows (kappa = "
        f"{kappa_text(worst['kappa'])})",
        f"  (distances {where_measured(asked.model)})",
        f"  log-loss              {worst['log_loss']:.4f}",
        f"  error                 {worst['worst_error']:.1%} (in the best case "
        f"{worst['best_error']:.1%})",
    ]
    if not training["converged"]:
        lines += ["", f"The fit did not converge; its duality gap is {max(training['gaps']):.1e}"]
    return "\n".join(lines)
