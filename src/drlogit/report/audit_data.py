"""The content of the page of an audit as numbers and text, ready for JSON.

The figures follow a slider over the radii of the audit and steps between them.  Numbers come from
:mod:`drlogit.robustness` and are rounded to seven digits.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from ..problem.label_costs import StatedKappa, can_flip, kappa_text
from ..robustness.audited_models import AuditOutcome, AuditSample, ModelAudit, own_radius
from ..robustness.feature_risk import allowed_at, budget
from ..robustness.fragile_samples import fragile_samples
from ..robustness.misclassification import (
    CONFUSED,
    best_error,
    confusion,
    worst_confusions,
    worst_error,
)
from ..robustness.old_adversary import Adversary
from ..robustness.old_worst import WorstCase
from ..robustness.subgroups import subgroup_risks
from ..rows.arrays import FloatArray
from ..rows.threads import one_blas_thread

#: Steps of the slider, beside the radii of the audit.
_STEPS = 20

#: The number of features with a row of their own, in the order of their budget.
_NAMED_FEATURES = 15

#: Samples listed for each model.
_LISTED_SAMPLES = 8

#: Points of the curve of broken predictions.
_CURVE_POINTS = 60


@one_blas_thread
def audit_data(report: AuditOutcome) -> dict[str, Any]:
    """Everything that the page of an audit shows."""
    largest = report.epsilons[-1]
    steps = np.linspace(0.0, largest, _STEPS + 1) if largest > 0.0 else np.zeros(1)
    radii = np.array(sorted({*np.round(steps, 15).tolist(), *report.epsilons}))
    audits = list(report.audited.values())
    models = [
        _model(outcome, audit, radii, report.row_names)
        for outcome, audit in zip(report.models, audits, strict=True)
    ]
    for model, broken in zip(models, _broken(audits), strict=True):
        model["broken"] = broken
    # The slider starts at a radius that a model was fitted for, or in the middle.
    start = np.abs(radii - own_radius(audits, report.epsilons)).argmin()
    content = {
        "n_samples": report.n_samples,
        "kappa": _flip_cost(report.kappa),
        "flip_limits": audits[0].flip_limits(radii),
        "norm": report.norm,
        "spaces": report.spaces,
        "ball": report.ball,
        "rows_named": report.row_names is not None
        and list(report.row_names) != list(range(report.n_samples)),
        "radii": radii,
        "tables_at": np.searchsorted(radii, report.epsilons),
        "start": start,
        "allowed": allowed_at(audits[0], radii),
        "classes": [str(label) for label in audits[0].classes],
        "two_classes": len(audits[0].classes) == 2,
        "models": models,
        "groups": subgroup_risks(audits, report.subgroups, radii),
        "guarantees": [
            {
                "model": name,
                **asdict(found),
                "says_nothing": found.says_nothing,
                "about_price": found.about_price,
            }
            for name, found in report.guarantees.items()
        ],
        "decided": [
            {"model": name, "radii": [_worst(each) for each in found[:-1]], **_worst(found[-1])}
            for name, found in report.decided.items()
        ],
        "decides": "" if report.metric is None else report.metric.decides(audits[0].classes),
    }
    plain: dict[str, Any] = _plain(content)
    return plain


def _plain(value: Any) -> Any:
    """Dictionaries, lists, text and numbers of seven digits for JSON; None for infinite numbers."""
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, float):
        return float(f"{value:.7g}") if math.isfinite(value) else None
    return value


def _model(
    outcome: ModelAudit, audit: Adversary, radii: FloatArray, row_names: Sequence[Any] | None
) -> dict[str, Any]:
    found = audit.breakpoints
    # Where flips are cheap, the worst case may consist of flips only.
    moving = audit.with_labels_right() if can_flip(audit.kappa) else audit
    spent = budget(audit, radii, _NAMED_FEATURES)
    content: dict[str, Any] = {
        "name": outcome.name,
        "classes": [str(label) for label in audit.classes],
        "facts": _facts(audit),
        "loss": outcome.loss,
        "error": outcome.error,
        "half_wrong": outcome.half_wrong_radius,
        "worst_loss": audit.loss_curve().at(radii),
        "worst_error": worst_error(audit).at(radii),
        "best_error": best_error(audit).at(radii),
        "exact": audit.exact_crossings,
        "flips": found.curve(audit.weights, found.flipped()).at(radii),
        "budget": spent,
        "moves": spent if moving is audit else budget(moving, radii, _NAMED_FEATURES),
        "surprising": [_sample(each) for each in outcome.most_surprising],
        "first_flipped": [_sample(each) for each in outcome.first_flipped],
    }
    if len(audit.classes) <= CONFUSED:
        content["confusion"] = confusion(audit).ravel()
        content["worst_confusion"] = [cells.ravel() for cells in worst_confusions(audit, radii)]
    if len(audit.classes) == 2:
        content["fragile"] = fragile = fragile_samples(audit, _LISTED_SAMPLES)
        for sample in fragile:
            sample["row"] = _row(sample["row"] if row_names is None else row_names[sample["row"]])
    return content


def _worst(found: WorstCase) -> dict[str, Any]:
    """The record of a worst case without κ, which the page shows elsewhere."""
    return {name: value for name, value in asdict(found).items() if name != "kappa"}


def _row(name: Any) -> Any:
    """The name of a row, for JSON."""
    return name if isinstance(name, int | float | str) and name == name else str(name)


def _sample(sample: AuditSample) -> dict[str, Any]:
    return asdict(sample) | {"row": _row(sample.row), "label": str(sample.label)}


def _facts(audit: Adversary) -> dict[str, Any]:
    """How the model was fitted, and its certificate, where it is one of ours."""
    fit = audit.measured.fit
    result = None if fit is None else fit.result_
    if fit is None or result is None:
        return {}
    return {
        "epsilon": fit.ball_.epsilon,
        "kappa": _flip_cost(fit.ball_.kappa),
        "objective": result.objective,
        "bound": result.dual_objective,
        "gap": result.gap,
    }


def _flip_cost(kappa: StatedKappa) -> float | str | None:
    """κ as a number, or in words; None where no label can flip."""
    if not can_flip(kappa):
        return None
    return kappa if isinstance(kappa, float) else kappa_text(kappa)


def _broken(audits: list[Adversary]) -> list[dict[str, Any]]:
    """The share of right predictions that a change of at most a given cost breaks."""
    costs = []
    for audit in audits:
        right = (audit.u > 0.0) & (audit.weights > 0.0)
        costs.append((audit.costs_to_break[right], audit.weights[right]))
    ends = [float(np.quantile(c[np.isfinite(c)], 0.98)) for c, _ in costs if np.isfinite(c).any()]
    grid = np.linspace(0.0, max(ends, default=1.0), _CURVE_POINTS + 1)
    found = []
    for cost, weights in costs:
        order = np.argsort(cost, kind="stable")
        total = np.append(0.0, np.cumsum(weights[order]))
        shares = total[np.searchsorted(cost[order], grid, side="right")] / max(total[-1], 1e-300)
        middle = int(np.searchsorted(total, 0.5 * total[-1]))
        median = float(cost[order][max(middle - 1, 0)]) if cost.size else math.inf
        found.append({"costs": grid, "shares": shares, "median": median})
    return found


# --- flat records ---------------------------------------------------------------------------


def _features(content: dict[str, Any]) -> Iterable[dict[str, Any]]:
    for model in content["models"]:
        budget = model["budget"]
        entries = [
            *((each["name"], each["use"], each["without"]) for each in budget["features"]),
            ("(other features)", budget["others"], None),
            ("(labels)", budget["flips"], budget["without_flips"]),
            ("(unspent)", budget["unspent"], None),
        ]
        for k, radius in enumerate(content["radii"]):
            for name, use, without in entries:
                yield {
                    "model": model["name"],
                    "epsilon": radius,
                    "feature": name,
                    "budget": use[k],
                    "worst_case_loss_if_immovable": None if without is None else without[k],
                }


def _samples(content: dict[str, Any]) -> Iterable[dict[str, Any]]:
    for model in content["models"]:
        for sample in model.get("fragile", ()):
            yield {"model": model["name"], **sample, "changes": "; ".join(sample["changes"])}


def _groups(content: dict[str, Any]) -> Iterable[dict[str, Any]]:
    for group in content["groups"]:
        for model, risk in zip(content["models"], group["models"], strict=True):
            if risk is None:
                continue
            for k, radius in enumerate(content["radii"]):
                yield {
                    "model": model["name"],
                    "epsilon": radius,
                    "column": group["column"],
                    "value": group["value"],
                    "size": group["size"],
                    "loss": risk["loss"],
                    "error": risk["error"],
                    "worst_case_loss": risk["worst_loss"][k],
                    "worst_error": risk["worst_error"][k],
                }


#: Parts of the content as flat records.
RECORDS = {"features": _features, "samples": _samples, "groups": _groups}
