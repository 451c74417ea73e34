"""Fit a model in one hospital and use it in three others (bundled data).

Heart disease in four hospitals is a textbook case of a shift.  Four models are fitted to 200
patients of Cleveland and used in Budapest, Switzerland and Long Beach: a tuned logistic regression,
one with ten times the penalty, the tuned one mixed with coin flips, and a robust one.

    drlogit demo
    drlogit demo -o demo.html
    drlogit demo --write tables
    drlogit demo --tolerate labels=0.02 cholesterol=20 categories=0.05
"""

from __future__ import annotations

import copy
import textwrap
from argparse import ArgumentParser, Namespace
from dataclasses import asdict
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import StandardScaler

from ..datasets.bundled import load_heart_disease, write_hospitals
from ..estimators.classifier import DRLogisticRegression
from ..estimators.training_data import matrix_of
from ..problem.ball import Ball
from ..report.audits import audit
from ..robustness.shifts import shift
from ..robustness.worst_case import worst_case
from . import options
from .console import DONE, NOT_CONVERGED, Console

#: How many patients of Cleveland are fitted, in a random order; the others are kept aside.  The
#: order of the file would be the most favourable of eleven splits (benchmarks/demo_splits.py).
_FITTED, _SEED = 200, 0

#: What may be wrong with the data, unless something else is said; all else has its default.
_TOLERATED = {"labels": 0.05}

_KINDS = ("labels", "numbers", "categories")
_PLACES = {"budapest": "Budapest", "switzerland": "Switzerland", "long-beach": "Long Beach"}
_COIN = 0.1

#: What it costs to miss a case, in false alarms.
_MISSED = 5


def add_options(parser: ArgumentParser) -> None:
    """Add the options."""
    add = options.group(parser)
    add("-o --output FILE", "web page to write: the robust model and the tuned one (.html)")
    add("--write DIR", "folder to write the four tables to, as CSV")
    add("--tolerate NAME=AMOUNT...", "what may be wrong, as in drlogit fit", type=options.amount)


def run(arguments: Namespace, console: Console) -> int:
    """Run the command."""
    if arguments.write is not None:
        written = write_hospitals(arguments.write)
        console.answer({"files": written}, f"Written: {', '.join(written)}")
        return DONE
    parts = {
        name: (rows.drop(columns=["hospital", "disease"]), rows["disease"].to_numpy())
        for name, rows in load_heart_disease().groupby("hospital")
    }
    X, y = parts.pop("cleveland")
    order = np.random.default_rng(_SEED).permutation(y.size)
    X, y = X.iloc[order], y[order]
    fitted, kept = (X[:_FITTED], y[:_FITTED]), (X[_FITTED:], y[_FITTED:])
    declared = dict(arguments.tolerate or _TOLERATED)
    stated = dict(declared)
    kinds = {kind: stated.pop(kind) for kind in _KINDS if kind in stated}
    ball = Ball.tolerating(**kinds, columns=stated)
    robust = DRLogisticRegression(ball=ball, missing="median").fit(*fitted)
    models = _compared(robust, *fitted)
    tuned = models["tuned"]
    places = {"Cleveland, kept aside": kept, **{_PLACES[name]: parts[name] for name in _PLACES}}
    report = audit(
        {"robust": robust, "tuned": tuned},
        *kept,
        epsilons=[robust.ball_.epsilon * k / 4 for k in range(9)],
        holdout=kept,
    )
    moved = shift(robust, *kept, *parts["long-beach"])
    if arguments.output is not None:
        subtitle = "Robust and tuned logistic regression on 103 patients of Cleveland"
        report.to_html(arguments.output, subtitle=subtitle)
    record = {
        "tolerated": declared,
        "fit": {"objective": robust.worst_case_loss_, "gap": robust.dual_gap_}
        | {"dual_bound": robust.result_.dual_objective},
        "places": [
            {"place": place, "n": len(own[1]), **_losses(models, *own)}
            for place, own in places.items()
        ],
        "worst_case": {
            name: _worst(report, name, robust.ball_.epsilon) for name in report.guarantees
        },
        "guarantees": {name: asdict(each) for name, each in report.guarantees.items()},
        "cut_offs": [_cut_off(robust, *kept, threshold) for threshold in (0.5, 0.2)],
        "shift_to_long_beach": moved.to_dict(),
    }
    console.answer(record, lambda: _text(record, robust, moved, arguments.output))
    return DONE if robust.result_.converged else NOT_CONVERGED


def compared_losses(robust: Any, X: Any, y: Any, places: dict[str, Any]) -> dict[str, Any]:
    """Log-loss and error of the four models in each place; ``X``, ``y`` are the rows of the fit."""
    models = _compared(robust, X, y)
    return {place: _losses(models, *rows) for place, rows in places.items()}


def _compared(robust: Any, X: Any, y: Any) -> dict[str, Any]:
    """The four models of the demo; the coin changes probabilities of the tuned one."""
    tuned, strong = _ridges(robust, X, y)
    return {"tuned": tuned, "strong": strong, "coin": tuned, "robust": robust}


def _ridges(model: Any, X: Any, y: Any) -> list[Any]:
    """Two ℓ2-penalised models of the same features: tuned by cross-validation, and ten times it."""
    matrix = matrix_of(model, X)
    scaler = StandardScaler()
    Z = scaler.fit_transform(np.asarray(matrix))
    strengths = {"C": np.logspace(-4.0, 4.0, 10)}
    search = GridSearchCV(LogisticRegression(max_iter=2000), strengths, scoring="neg_log_loss")
    tuned = search.fit(Z, y).best_estimator_
    strong = LogisticRegression(C=tuned.C / 10.0, max_iter=2000).fit(Z, y)
    found = []
    for fit in (tuned, strong):
        own = copy.copy(model)
        own.coef_ = fit.coef_ / scaler.scale_
        own.intercept_ = fit.intercept_ - own.coef_ @ scaler.mean_
        own.ball_, own.result_ = (
            model.ball_.replace(epsilon=0.0),
            None,
        )  # fitted for no radius, and without a certificate
        found.append(own)
    return found


def _losses(models: dict[str, Any], X: Any, y: Any) -> dict[str, dict[str, float]]:
    """Log-loss and error of each model on the rows of one place."""
    found = {}
    for name, model in models.items():
        # Quietly: in Switzerland, blood sugar was not measured in most patients.
        Z = np.asarray(matrix_of(model, X, quiet=True))
        p = expit(Z @ model.coef_[0] + model.intercept_[0])
        p = (1.0 - _COIN) * p + 0.5 * _COIN if name == "coin" else p
        own = np.where(y == model.classes_[1], p, 1.0 - p)
        found[name] = {"log_loss": float(-np.log(own).mean()), "error": float((own <= 0.5).mean())}
    return found


def _worst(report: Any, name: str, epsilon: float) -> dict[str, float]:
    row = next(row for row in report[name].rows if row.epsilon == epsilon)
    return {"log_loss": row.worst_case_loss, "error": row.worst_error}


def _cut_off(model: Any, X: Any, y: Any, threshold: float) -> dict[str, float]:
    """What decisions at a cut-off cost, as the rows are and in the worst case."""
    found = worst_case(model, X, y, {("yes", "no"): _MISSED, ("no", "yes"): 1}, threshold=threshold)
    return {"threshold": threshold, "cost": found.nominal, "worst_case": found.value}


def _text(record: dict[str, Any], robust: Any, moved: Any, page: str | None) -> str:
    names = {"tuned": "tuned l2", "strong": "l2 x 10", "coin": "with coin", "robust": "robust"}
    head = f"{'':31}" + "".join(f"{word:>11}" for word in names.values())

    def line(place: dict[str, Any], what: str, form: str) -> str:
        words = f"  {place['place']} ({place['n']})"
        return f"{words:31}" + "".join(f"{place[name][what]:>11{form}}" for name in names)

    losses = "\n".join(line(place, "log_loss", ".3f") for place in record["places"])
    errors = "\n".join(line(place, "error", ".1%") for place in record["places"])
    worst, promised = record["worst_case"], record["guarantees"]
    cuts = "\n".join(
        f"  {each['threshold']:g}: {each['cost']:.2f} as the data are, at most "
        f"{each['worst_case']:.2f} within the tolerances"
        for each in record["cut_offs"]
    )
    tolerated = " ".join(f"{name}={share:g}" for name, share in record["tolerated"].items())
    kept = record["places"][0]["n"]
    remark = ""
    if min(each["loss"] for each in promised.values()) > np.log(2.0):
        remark = f"\n  A coin has 0.693: {kept} patients are too few to promise more."
    return f"""\
Heart disease in four hospitals (UCI, CC BY 4.0). Four models are fitted to {_FITTED} patients of
Cleveland and used on patients that they have not seen, there and in three other hospitals:
  tuned l2   logistic regression, its l2 penalty chosen by cross-validation
  l2 x 10    the same with ten times the penalty
  with coin  the tuned model, its probabilities moved a tenth of the way to 1/2
  robust     drlogit

The robust model is told how much may be wrong with the data, or change elsewhere:
{_indented(robust.ball_.allowed())}

Log-loss (patients); lower is better, and a coin has 0.693
{head}
{losses}
Wrong predictions
{head}
{errors}

What if the data are wrong by that much? For the {kept} patients of Cleveland kept aside:
  worst-case log-loss of these patients: robust {worst["robust"]["log_loss"]:.3f}, \
tuned l2 {worst["tuned"]["log_loss"]:.3f}
  limit for new patients, with {promised["robust"]["confidence"]:.0%} confidence: \
robust {promised["robust"]["loss"]:.3f}, tuned l2 {promised["tuned"]["loss"]:.3f}{remark}

Which cut-off is safe? A missed case costs {_MISSED} false alarms. Patients count as ill if
the robust model gives at least this probability. The mean cost per patient is then:
{cuts}

What changed from Cleveland to Long Beach? The robust model's log-loss went from \
{moved.loss_ref:.3f} to {moved.loss_new:.3f}:
  {moved.from_rows:+.3f} because other patients came, and
  {moved.from_answers:+.3f} because patients with equal scores are ill more or less often.
  A shift of {moved.multiple:.2f} times the tolerances is enough to explain the rise.
  Columns that moved most: {", ".join(moved.features["feature"][:3])}.

Is there a better model? On the fitted patients, the robust model's worst-case log-loss is \
{record["fit"]["objective"]:.6f}.
No linear model has a lower worst case than {record["fit"]["dual_bound"]:.6f}: this bound is proven.

This is a textbook case of a shift, and a typical split of Cleveland. At home the tuned model is a
little better; in the worst place the robust one is. On other tables the models tie on average. The
worst place is much better on some of them, and no better where shifts are mild.

{"The same with files:" if page is None else f"Interactive page: {page}"}
  drlogit demo --write .
  drlogit fit cleveland.csv --target disease --missing median --holdout 0.34 kept.csv \
-o model.json --tolerate {tolerated}
  drlogit shift model.json kept.csv long-beach.csv"""


def _indented(sentences: list[str]) -> str:
    return "\n".join(
        textwrap.fill(sentence, 96, initial_indent="  ", subsequent_indent="    ")
        for sentence in sentences
    )
