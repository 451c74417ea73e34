"""Everything on the page of an audit as numbers and text, ready for JSON.

The figures follow a slider over the radii: those of the audit, and steps between them.  Numbers are
those of :mod:`drlogit.robustness`, to seven digits.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ..estimators.tolerances import Priced, allowed_by
from ..problem.label_costs import StatedKappa, can_flip, kappa_text
from ..robustness.adversary import Adversary
from ..robustness.audited_models import AuditOutcome, AuditSample, ModelAudit, own_radius
from ..robustness.breakpoints import Breakpoints, FlipCurve
from ..robustness.calibration import (
    CONFUSED,
    Calibration,
    calibration,
    confusion,
    worst_confusions,
)
from ..robustness.coefficients import coefficients, deviations_and_means, opposites
from ..robustness.feature_risk import budget_use, losses_without
from ..robustness.features import Feature
from ..robustness.fragile_samples import FragileSample, broken_by_one_level, fragile_samples
from ..robustness.guarantees import Guarantee
from ..robustness.misclassification import best_error, worst_error
from ..robustness.pair_audit import PairAudit
from ..robustness.shifted_features import bins_of
from ..robustness.subgroups import subgroup_risks
from ..robustness.worst_case import WorstCaseDistribution, distribution_at
from ..rows.arrays import FloatArray

#: Steps of the slider, beside the radii of the audit.
_STEPS = 20

#: How close to the worst case the distributions are that are drawn, in nats: closer ones move less
#: mass, but further, which is harder to see and to believe.
_DRAWN_TOL = 1e-3

#: Features with a row of their own, those that take most; the others share one.
_NAMED_FEATURES = 15

#: Features whose distribution is drawn, and levels of a category that are.
_DRAWN_FEATURES = 4
_DRAWN_LEVELS = 8

#: Samples and coefficients listed, for each model.
_LISTED_SAMPLES = 8
_LISTED_COEFFICIENTS = 60

#: Points of the curve of broken predictions.
_CURVE_POINTS = 60


@dataclass(frozen=True, eq=False)
class AuditData:
    """What the page shows; ``content`` is plain dictionaries, lists, numbers and text."""

    content: dict[str, Any]

    def records(self, part: str) -> list[dict[str, Any]]:
        """A part as flat records."""
        return list(_RECORDS[part](self.content))


def audit_data(report: AuditOutcome) -> AuditData:
    """Compute everything that the page of an audit shows."""
    largest = report.epsilons[-1]
    steps = np.linspace(0.0, largest, _STEPS + 1) if largest > 0.0 else np.zeros(1)
    radii = np.array(sorted({*np.round(steps, 15).tolist(), *report.epsilons}))
    audits = list(report.audited.values())
    models = [
        _model(outcome, audit, radii, report.row_names)
        for outcome, audit in zip(report.models, audits, strict=True)
    ]
    _add_broken(models, audits)
    groups: list[dict[str, Any]] = [
        {"column": part.column, "value": part.value, "size": int(part.members.size), "models": []}
        for part in report.subgroups
    ]
    for audit in audits:
        risks = {id(risk.subgroup): risk for risk in subgroup_risks(audit, report.subgroups, radii)}
        for entry, part in zip(groups, report.subgroups, strict=True):
            risk = risks.get(id(part))
            entry["models"].append(
                risk
                and {
                    "loss": _short(risk.loss),
                    "error": _short(risk.error),
                    "worst_loss": _list(risk.worst_losses),
                    "worst_error": _list(risk.worst_errors),
                }
            )
    allowed = [_allowed(audit, radii) for audit in audits[: 1 if report.ball else None]]
    content = {
        "n_samples": report.n_samples,
        "kappa": _flip_cost(report.kappa),
        "flip_limits": _list(audits[0].flip_limits(radii)),
        "norm": report.norm,
        "spaces": list(report.spaces),
        "ball": report.ball,
        "rows_named": report.row_names is not None
        and list(report.row_names) != list(range(report.n_samples)),
        "radii": _list(radii),
        "tables_at": [int(np.searchsorted(radii, e)) for e in report.epsilons],
        "start": _start(report, radii),
        "allowed": allowed[:1] if report.ball else allowed,
        "classes": [str(label) for label in audits[0].classes],
        "two_classes": all(isinstance(each, PairAudit) for each in audits),
        "models": models,
        "groups": groups,
        "drawn_tol": _DRAWN_TOL,
        "guarantees": [_guarantee(name, each) for name, each in report.guarantees.items()],
    }
    return AuditData(content)


def _guarantee(name: str, found: Guarantee) -> dict[str, Any]:
    return {
        "model": name,
        "n": found.n,
        "epsilon": found.epsilon,
        "confidence": found.confidence,
        "loss": _short(found.loss),
        "error": _short(found.error),
        "mean_loss": _short(found.mean_loss),
        "mean_error": _short(found.mean_error),
        "exact_loss": found.exact_loss,
    }


def _start(report: AuditOutcome, radii: FloatArray) -> int:
    """Where the slider begins: at a radius that a model was fitted for, or in the middle."""
    wanted = own_radius(report.audited.values(), report.epsilons)
    return int(np.abs(radii - wanted).argmin())


def _model(
    outcome: ModelAudit, audit: Adversary, radii: FloatArray, row_names: Sequence[Any] | None
) -> dict[str, Any]:
    found = audit.breakpoints(float(radii[-1]))
    losses = audit.loss_curve(found).at(radii)
    half = outcome.half_wrong_radius
    content: dict[str, Any] = {
        "name": outcome.name,
        "classes": [str(label) for label in audit.classes],
        "space": audit.measured.space,
        "facts": _facts(audit),
        "loss": _short(outcome.loss),
        "error": _short(outcome.error),
        "half_wrong": None if math.isinf(half) else _short(half),
        "worst_loss": _list(losses),
        "worst_error": _list(worst_error(audit).at(radii)),
        "best_error": _list(best_error(audit).at(radii)),
        "exact": audit.exact_crossings,
        "flips": _list(FlipCurve.of(found, audit.weights).at(radii)),
    }
    content["budget"] = _budget(audit, radii)
    # Where flips are cheap the worst case may do nothing else, and say nothing about features.
    moving = audit if not can_flip(audit.kappa) else audit.with_labels_right()
    content["moves"] = content["budget"] if moving is audit else _budget(moving, radii)
    content["surprising"] = [_sample(each) for each in outcome.most_surprising]
    content["first_flipped"] = [_sample(each) for each in outcome.first_flipped]
    if len(audit.classes) <= CONFUSED:
        content["confusion"] = _list(confusion(audit).ravel())
        content["worst_confusion"] = [
            _list(cells.ravel()) for cells in worst_confusions(audit, radii)
        ]
    if not isinstance(audit, PairAudit):
        return content
    assert isinstance(moving, PairAudit)
    fragile = fragile_samples(audit, _LISTED_SAMPLES)
    content["fragile"] = [_fragile(each, row_names) for each in fragile]
    content["one_level"], content["one_level_share"] = [], 0.0
    if audit.problem.domains is not None and audit.problem.domains.n_groups:
        listed, share = broken_by_one_level(audit, _LISTED_SAMPLES)
        content["one_level"] = [_fragile(each, row_names) for each in listed]
        content["one_level_share"] = _short(share)
    content["calibration"] = [
        _tenths(calibration(audit, each)) for each in _distributions(audit, found, radii, losses)
    ]
    most = [each["name"] for each in content["moves"]["features"][:_DRAWN_FEATURES]]
    content["shifted"] = _shifted(
        moving, radii, [feature for feature in audit.features if feature.name in most]
    )
    weighed, intercept = coefficients(audit)
    weighed.sort(key=lambda c: -abs(c.effect))
    content["coefficients"] = [
        {**asdict(c), "value": _short(c.value), "effect": _short(c.effect)}
        for c in weighed[:_LISTED_COEFFICIENTS]
    ]
    content["n_coefficients"] = len(weighed)
    content["intercept"] = _short(intercept)
    content["opposites"] = [
        {
            "one": pair.one,
            "other": pair.other,
            "correlation": _short(pair.correlation),
            "effects": _list(pair.effects),
        }
        for pair in opposites(audit)[:6]
    ]
    return content


def _fragile(sample: FragileSample, row_names: Sequence[Any] | None) -> dict[str, Any]:
    return {
        "row": _row(sample.index if row_names is None else row_names[sample.index]),
        "label": str(sample.label),
        "probability": _short(sample.probability),
        "cost": _short(sample.cost),
        "cheapest": sample.cheapest,
        "n_changed": sample.n_changed,
        "changes": [str(change) for change in sample.changes],
    }


def _row(name: Any) -> Any:
    """What a row is called, for JSON."""
    return name if isinstance(name, int | float | str) and name == name else str(name)


def _sample(sample: AuditSample) -> dict[str, Any]:
    return {
        "row": _row(sample.row),
        "label": str(sample.label),
        "margin": _short(sample.margin),
        "epsilon": None if math.isinf(sample.epsilon) else _short(sample.epsilon),
    }


def _facts(audit: Adversary) -> dict[str, Any]:
    """How the model was fitted, and its certificate, where it is one of ours."""
    fitted, result = audit.measured.fitted, audit.measured.fitted.result
    if result is None:
        return {}
    return {
        "epsilon": fitted.epsilon,
        "kappa": None if fitted.kappa is None else _flip_cost(fitted.kappa),
        "objective": _short(result.objective),
        "bound": _short(result.dual_objective),
        "gap": float(f"{result.gap:.2g}"),
        "status": str(result.status),
        "solver": result.solver,
    }


def _flip_cost(kappa: StatedKappa) -> float | str | None:
    """κ as a number, or in words; None where no label can flip."""
    if not can_flip(kappa):
        return None
    return kappa if isinstance(kappa, float) else kappa_text(kappa)


def _budget(audit: Adversary, radii: FloatArray) -> dict[str, Any]:
    """Where the budget goes, and what it would do if a feature could not move."""
    found = audit.breakpoints(float(radii[-1]))
    use = budget_use(audit, found, radii)
    most = use.features.max(axis=0)
    named = np.argsort(-most, kind="stable")
    named = named[most[named] > 0.0]
    return {
        "loss": _list(audit.loss_curve(found).at(radii)),
        "features": [
            {
                "name": audit.features[f].name,
                "use": _list(use.features[:, f]),
                "without": _list(losses_without(audit, audit.features[f], radii)),
            }
            for f in named[:_NAMED_FEATURES]
        ],
        "others": _list(use.features[:, named[_NAMED_FEATURES:]].sum(axis=1)),
        "n_moved": int(named.size),
        "n_features": len(audit.features),
        "flips": _list(use.flips),
        "without_flips": _list(losses_without(audit, None, radii)),
        "unspent": _list(use.unspent),
    }


def _distributions(
    audit: PairAudit, found: Breakpoints, radii: FloatArray, losses: FloatArray
) -> Iterable[WorstCaseDistribution]:
    """A distribution next to the worst at each radius, one at a time."""
    for radius, loss in zip(radii.tolist(), losses.tolist(), strict=True):
        yield distribution_at(audit, radius, _DRAWN_TOL, found, loss)


def _tenths(found: Calibration) -> dict[str, Any]:
    return {
        "mass": _list(found.mass),
        "probability": _list(found.probability),
        "observed": _list(found.observed),
        "error": _short(found.error),
    }


def _shifted(audit: PairAudit, radii: FloatArray, features: list[Feature]) -> list[Any]:
    """Features in the data, and in the worst case at each radius."""
    drawn = [bins_of(audit, feature) for feature in features]
    if not drawn:
        return []
    steps = audit.breakpoints(float(radii[-1]))
    worst: list[list[FloatArray]] = [[] for _ in drawn]
    losses = audit.loss_curve(steps).at(radii)
    for distribution in _distributions(audit, steps, radii, losses):
        for shares, bins in zip(worst, drawn, strict=True):
            shares.append(bins.shares_in(distribution))
    found = []
    for shares, bins in zip(worst, drawn, strict=True):
        data, moved, labels = bins.shares(audit.weights), np.array(shares), list(bins.labels)
        if bins.values is None:
            # Levels that change most come first, then the frequent ones; the others share a bar.
            change, most = np.abs(moved - data).max(axis=0), np.maximum(data, moved.max(axis=0))
            order = np.lexsort((-most, -np.round(change, 9)))
            order = order[most[order] > 0.0]
            kept, rest = order[:_DRAWN_LEVELS], order[_DRAWN_LEVELS:]
            labels = [labels[j] for j in kept]
            if rest.size:
                labels.append(f"{rest.size} others")
                data = np.append(data[kept], data[rest].sum())
                moved = np.column_stack([moved[:, kept], moved[:, rest].sum(axis=1)])
            else:
                data, moved = data[kept], moved[:, kept]
        found.append(
            {
                "name": bins.feature.name,
                "edges": None if bins.edges is None else _list(bins.own_edges),
                "labels": labels,
                "data": _list(data),
                "worst": [_list(row) for row in moved],
            }
        )
    return found


def _add_broken(models: list[dict[str, Any]], audits: list[Adversary]) -> None:
    """The share of right predictions that a change of at most so much breaks, for all alike."""
    costs = []
    for audit in audits:
        right = (audit.u > 0.0) & (audit.weights > 0.0)
        costs.append((audit.costs_to_break[right], audit.weights[right]))
    ends = [float(np.quantile(c[np.isfinite(c)], 0.98)) for c, _ in costs if np.isfinite(c).any()]
    grid = np.linspace(0.0, max(ends, default=1.0), _CURVE_POINTS + 1)
    for model, (cost, weights) in zip(models, costs, strict=True):
        order = np.argsort(cost, kind="stable")
        total = np.append(0.0, np.cumsum(weights[order]))
        shares = total[np.searchsorted(cost[order], grid, side="right")] / max(total[-1], 1e-300)
        middle = int(np.searchsorted(total, 0.5 * total[-1]))
        median = float(cost[order][max(middle - 1, 0)]) if cost.size else math.inf
        model["broken"] = {
            "costs": _list(grid),
            "shares": _list(shares),
            "median": None if math.isinf(median) else _short(median),
        }


def _allowed(audit: Adversary, radii: FloatArray) -> list[list[str]]:
    """What each radius allows to be wrong, in sentences."""
    costs = audit.measured.costs
    deviations, _ = deviations_and_means(audit)
    columns = [
        Priced(
            feature.name,
            float(costs[feature.columns[0]] * abs(feature.scale)),
            feature.levels is not None,
            float(deviations[feature.columns[0]] / abs(feature.scale)) or None,
        )
        for feature in audit.features
    ]
    return [allowed_by(float(radius), audit.kappa, columns) for radius in radii]


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
        for kind in ("fragile", "one_level"):
            for sample in model.get(kind, ()):
                changes = "; ".join(sample["changes"])
                yield {"model": model["name"], "kind": kind, **sample, "changes": changes}


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


def _coefficients(content: dict[str, Any]) -> Iterable[dict[str, Any]]:
    for model in content["models"]:
        for each in model.get("coefficients", ()):
            yield {"model": model["name"], **each}


_RECORDS = {
    "features": _features,
    "samples": _samples,
    "groups": _groups,
    "coefficients": _coefficients,
}


def _short(value: float) -> float:
    return float(f"{value:.7g}")


def _list(values: Any) -> list[float]:
    return [_short(float(value)) for value in values]
