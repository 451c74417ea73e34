"""An audit as a model card: Markdown with Hugging Face metadata, and a reporting checklist.

The checklist follows TRIPOD+AI (Collins et al. 2024, BMJ 385, e078378) and names the domain of
PROBAST+AI (Moons et al. 2025, BMJ 388, e082505) that each item supports.  Items that only the
authors can answer say so.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

from ..estimators.tolerances import allowances
from ..problem.label_costs import kappa_text
from ..robustness.adversary import Adversary
from ..robustness.audited_models import AuditOutcome, own_radius
from ..robustness.extremes import Extremes
from ..robustness.metrics import metric_of
from ..robustness.worst_case import worst_case_of
from ..rows.arrays import FloatArray

#: Resamples of the rows for confidence intervals.
_RESAMPLES = 200

_TO_FILL_IN = "*to be filled in by the authors*"

#: Items of TRIPOD+AI that the numbers of an audit do not answer, with the domain of PROBAST+AI.
_FOR_AUTHORS = (
    ("4", "", "Objectives of the study"),
    ("5", "Participants and data sources", "Sources and dates of the data"),
    ("6", "Participants and data sources", "Setting and eligibility"),
    ("8", "Outcome", "Definition and assessment of the outcome"),
    ("9", "Predictors", "Choice and measurement of the predictors"),
    ("10", "Analysis", "Sample size of the development data"),
    ("16", "Participants and data sources", "How the rows of fit and evaluation differ"),
    ("17–19", "", "Ethics, funding, sharing of data and code, patient involvement"),
)


def model_card(report: AuditOutcome, name: str, threshold: float) -> str:
    """The card of one model of an audit."""
    audit, rows = report.audited[name], _performance(report, name, threshold)
    fit = audit.measured.fit
    parts = {
        "Model": _table(["", ""], _facts(audit)),
        "What may be wrong with the data": [f"- {line}" for line in allowances(fit)] if fit else [],
        "Performance": [
            f"{report.n_samples} rows. The intervals are 95 % percentile intervals of "
            f"{_RESAMPLES} resamples of the rows. The worst case is over all distributions within "
            "the radius of these rows.",
            "",
            *_table(["", "as the rows are", "95 % interval", "worst case"], rows.values()),
        ],
        "Subgroups": _subgroups(report, audit),
        "Guarantee": _guarantee(report, name),
        "TRIPOD+AI and PROBAST+AI": _checklist(report, audit, rows),
    }
    lines = [_metadata(name, report.n_samples, rows), f"# {name}", "", paragraph(report, name), ""]
    for title, content in parts.items():
        lines += [f"## {title}", "", *content, ""] if content else []
    return "\n".join(lines)


def paragraph(report: AuditOutcome, name: str) -> str:
    """The model, its tolerances, its certificate and its guarantee, for a methods section."""
    audit, outcome = report.audited[name], next(m for m in report.models if m.name == name)
    fit, said = audit.measured.fit, [f"{name} is a linear classifier."]
    if fit is not None and fit.result_ is not None:
        from .. import __version__

        result, allowed = fit.result_, "; ".join(allowances(fit))
        said = [
            f"The model was fitted by distributionally robust logistic regression (drlogit "
            f"{__version__}). The fit minimises the largest expected log-loss over all "
            f"distributions within a Wasserstein ball around the data. The ball allows these "
            f"errors in the data: {allowed}.",
            f"On the data of the fit, the worst-case log-loss is {result.objective:.3f}; no linear "
            f"model is lower by more than {max(result.gap, fit.tol):.0e}."
            if result.converged
            else f"The fit is not certified: its duality gap is {result.gap:.1e}.",
        ]
    found = report.guarantees.get(name)
    if found is None:
        said.append(
            f"On {report.n_samples} rows, the log-loss is {outcome.loss:.3f} and the error is "
            f"{outcome.error:.1%}."
        )
        return " ".join(said)
    loss = f"at most {found.loss:.3f}" if not found.no_limit else f"not limited ({found.no_limit})"
    said += [
        f"On {found.n} rows that the model had not seen, the log-loss is {found.mean_loss:.3f} and "
        f"the error is {found.mean_error:.1%}.",
        f"With {found.confidence:.0%} confidence, in the population of these rows and in every "
        f"population within the same ball around it, the expected log-loss is {loss} and the error "
        f"is at most {found.error:.1%}.",
        *([found.says_nothing] if found.says_nothing else []),
    ]
    return " ".join(said)


def _metadata(name: str, n_samples: int, rows: dict[str, list[str]]) -> str:
    """The front matter that the Hugging Face hub reads; JSON text is YAML, too."""
    metrics = [
        {"type": kind, "name": rows[kind][0], "value": float(rows[kind][1])}
        for kind in ("log_loss", "error", "roc_auc", "brier")
        if rows.get(kind, ["", "–"])[1] != "–"
    ]
    results = {
        "task": {"type": "tabular-classification"},
        "dataset": {"name": f"{n_samples} audited rows", "type": "tabular"},
        "metrics": metrics,
    }
    content = {
        "library_name": "drlogit",
        "pipeline_tag": "tabular-classification",
        "tags": ["tabular-classification", "logistic-regression", "distributionally-robust"],
        "model-index": [{"name": name, "results": [results]}],
    }
    return "\n".join(["---", *(f"{key}: {json.dumps(v)}" for key, v in content.items()), "---", ""])


def _facts(audit: Adversary) -> list[list[str]]:
    """What the model is, and its certificate where it is one of ours."""
    facts = [["classes", ", ".join(map(str, audit.classes))]]
    fit = audit.measured.fit
    if fit is None or fit.result_ is None:
        return [*facts, ["certificate", "none: the model was not fitted by drlogit"]]
    result = fit.result_
    return [
        *facts,
        ["columns", str(fit.n_features_in_)],
        ["radius ε, flip cost κ, norm", f"{fit.epsilon_:g}, {kappa_text(fit.kappa_)}, {fit.norm}"],
        ["worst-case log-loss on the data of the fit", f"{result.objective:.4f}"],
        ["lower bound for every linear model", f"{result.dual_objective:.4f}"],
        ["certificate", f"duality gap {result.gap:.1e}, {result.status}"],
    ]


def _performance(report: AuditOutcome, name: str, threshold: float) -> dict[str, list[str]]:
    """Each measure: its name, its value, its interval, and its worst case within the radius."""
    audit = report.audited[name]
    radius, two = own_radius([audit], report.epsilons), len(audit.classes) == 2
    score, y = audit.scores[-1] - audit.scores[0], audit.codes == 1
    measures: dict[str, tuple[str, Callable[[FloatArray], Any], str]] = {
        "log_loss": ("log-loss", lambda w: w @ audit.losses, "log_loss"),
        "error": ("error", lambda w: w @ audit.wrong, "error"),
    }
    if two:
        p, odds = expit(score), threshold / (1.0 - threshold)
        decided = p >= threshold
        benefit = decided * np.where(y, 1.0, -odds)
        measures |= {
            "roc_auc": ("area under the ROC curve", lambda w: _auc(y, score, w), ""),
            "brier": ("Brier score", lambda w: w @ (p - y) ** 2, "brier"),
            "slope": ("calibration slope", lambda w: _slope(score, y, w), ""),
            "intercept": ("calibration intercept", lambda w: _intercept(score, y, w), ""),
            "tpr": (f"sensitivity at {threshold:g}", lambda w: w @ (decided & y) / (w @ y), "tpr"),
            "fpr": (
                f"false positive rate at {threshold:g}",
                lambda w: w @ (decided & ~y) / (w @ ~y),
                "fpr",
            ),
            "net_benefit": (f"net benefit at {threshold:g}", lambda w: w @ benefit, "net_benefit"),
        }
    rng, n = np.random.default_rng(0), audit.weights.size
    draws = [np.ones(n), *rng.multinomial(n, np.full(n, 1.0 / n), size=_RESAMPLES)]
    shares = [w / w.sum() for w in (audit.weights * counts for counts in draws)]
    if two:  # rates need both classes
        shares = [w for w in shares if 0.0 < w @ y < 1.0]
    found = {}
    for key, (title, measure, metric) in measures.items():
        values = np.array([measure(w) for w in shares])
        worst = "–"
        if metric and shares:
            asked = Extremes(audit, metric_of(audit, metric, threshold))
            worst = f"{worst_case_of(asked, radius).value:.4f}"
        cells = ["–", "–"]
        if values.size and np.isfinite(values[0]):
            low, high = np.quantile(values[np.isfinite(values)], [0.025, 0.975])
            cells = [f"{values[0]:.4f}", f"{low:.4f} to {high:.4f}"]
        found[key] = [title, *cells, worst]
    return found


def _auc(y: Any, score: FloatArray, weights: FloatArray) -> float:
    """The share of pairs that are in the right order; ties count half."""
    _, place = np.unique(score, return_inverse=True)
    positive, negative = (np.bincount(place, weights * each) for each in (y, ~y))
    below = np.cumsum(negative) - 0.5 * negative
    return float(positive @ below / (positive.sum() * negative.sum()))


def _intercept(score: FloatArray, y: Any, weights: FloatArray) -> float:
    """The number to add to every score so that the mean probability is the share of positives."""
    end = float(np.abs(score).max()) + 40.0
    return float(brentq(lambda b: float(weights @ (expit(score + b) - y)), -end, end))


def _slope(score: FloatArray, y: Any, weights: FloatArray) -> float:
    """The slope of a logistic regression of the labels on the scores; NaN if there is none."""
    Z, theta = np.column_stack([np.ones(score.size), score]), np.zeros(2)
    for _ in range(50):
        p = expit(Z @ theta)
        hessian = (Z * (weights * p * (1.0 - p))[:, None]).T @ Z
        if np.linalg.cond(hessian) > 1e12:
            return float("nan")  # the scores separate the classes, or do not vary
        step = np.linalg.solve(hessian, Z.T @ (weights * (y - p)))
        theta = theta + step / max(1.0, float(np.abs(step).max()))
        if np.abs(step).max() < 1e-10:
            return float(theta[1])
    return float("nan")


def _subgroups(report: AuditOutcome, audit: Adversary) -> list[str]:
    """Loss and error in each subgroup."""
    rows = []
    for part in report.subgroups:
        w = audit.weights[part.members]
        if w.sum() > 0.0:
            loss, wrong = (w @ each[part.members] / w.sum() for each in (audit.losses, audit.wrong))
            size = str(part.members.size)
            rows.append([part.column, part.value, size, f"{loss:.4f}", f"{wrong:.1%}"])
    return _table(["column", "value", "rows", "log-loss", "error"], rows) if rows else []


def _guarantee(report: AuditOutcome, name: str) -> list[str]:
    if name not in report.guarantees:
        return ["None: the audit had no rows that the model had not seen (`holdout`)."]
    return str(report.guarantees[name]).splitlines()


def _checklist(report: AuditOutcome, audit: Adversary, rows: dict[str, list[str]]) -> list[str]:
    fit, shares = audit.measured.fit, np.bincount(audit.codes, audit.weights)
    classes = [str(label) for label in audit.classes]
    measured = "; ".join(f"{title} {value} ({ci})" for title, value, ci, _ in rows.values())
    groups = ", ".join(dict.fromkeys(part.column for part in report.subgroups))
    balance = ", ".join(f"{c} {s:.1%}" for c, s in zip(classes, shares, strict=True))
    answers = {
        ("13", "Analysis", "Class imbalance"): balance,
        ("14", "Analysis", "Fairness"): f"subgroups by {groups}" if groups else _TO_FILL_IN,
        ("15", "Analysis", "Output of the model"): f"probabilities of {' and '.join(classes)}",
        ("20–21", "Participants and data sources", "Rows of the evaluation"): f"{report.n_samples}",
        ("22", "Analysis", "Full model"): "the table of `coefficient_table()`, and the model file",
        ("23", "Analysis", "Performance with intervals"): measured,
        ("26", "Analysis", "Limitations"): "the worst case holds within the stated tolerances",
    }
    if fit is not None:
        answers |= {
            ("11", "Analysis", "Missing data"): f"missing numbers: {fit.missing}",
            ("12", "Analysis", "Type of model, and how it was fitted"): (
                f"linear; worst-case log-loss minimised with ε = {fit.epsilon_:g}, "
                f"κ = {kappa_text(fit.kappa_)}, {fit.norm} norm, class weights {fit.class_weight}"
            ),
            ("27", "Predictors", "Poor or unavailable input data"): "; ".join(allowances(fit)),
        }
    answers |= dict.fromkeys(_FOR_AUTHORS, _TO_FILL_IN)
    order = sorted(answers, key=lambda item: int(item[0].split("–")[0]))
    heads = ["TRIPOD+AI", "PROBAST+AI domain", "asked", "answer"]
    return _table(heads, ([*item, answers[item]] for item in order))


def _table(columns: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    heads = list(columns)
    cells = [heads, ["---"] * len(heads), *rows]
    return ["| " + " | ".join(str(c).replace("|", "\\|") for c in row) + " |" for row in cells]
