"""Metrics of a model, as functions of score and label.

A metric of *decisions* is the mean of a table with a value for each label and decision, or the
ratio of two such means: precision is ``E[true positive] / E[decided positive]``.  The other metrics
are smooth functions of the score: log-loss, Brier score, and calibration in the large (mean
probability minus share of positives).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import logit

from ..rows.arrays import FloatArray
from ..rows.checks import as_numbers
from .adversary import Adversary

#: Numerator and denominator, by label and decision; 1 is the positive class.
_RATIOS = {
    "tpr": ([[0, 0], [0, 1]], [[0, 0], [1, 1]]),
    "fpr": ([[0, 1], [0, 0]], [[1, 1], [0, 0]]),
    "precision": ([[0, 0], [0, 1]], [[0, 1], [0, 1]]),
    "npv": ([[1, 0], [0, 0]], [[1, 0], [1, 0]]),
}

#: Metrics whose larger values are better.
_BENEFITS = ("tpr", "precision", "npv", "net_benefit")

SMOOTH = ("log_loss", "brier", "calibration")
NAMES = (*SMOOTH, "error", *_RATIOS, "net_benefit")


@dataclass(frozen=True, eq=False)
class Metric:
    """A metric of a model with known classes."""

    name: str
    table: FloatArray | None = None  # by label and decision; None for smooth functions
    below: FloatArray | None = None  # the denominator, if it is a ratio
    cuts: tuple[float, ...] | None = None  # scores between which decisions lie; None: by class
    thresholds: tuple[float, ...] = ()  # the same as probabilities

    @property
    def worst_sign(self) -> float:
        """1 if the worst case is the largest value, -1 if it is the smallest."""
        return -1.0 if self.name in _BENEFITS else 1.0

    def less(self, theta: float) -> FloatArray:
        """The table of a mean, or ``a - θ b`` of a ratio ``E[a] / E[b]``."""
        assert self.table is not None
        return self.table if self.below is None else self.table - theta * self.below

    def decides(self, classes: tuple[Any, ...]) -> str:
        """How decisions are made and what they cost, in sentences."""
        names = [str(label) for label in classes]
        if self.table is None or len(self.thresholds) > 1:
            said = ""
        elif not self.thresholds:
            said = "The model predicts the most probable class."
        elif self.thresholds[0] in (0.0, 1.0):
            said = f"Always predict {names[int(self.thresholds[0] == 0.0)]}."
        else:
            said = f"Predict {names[1]} if its probability is at least {self.thresholds[0]:.4g}."
        if self.name != "cost" or self.table is None or self.table.shape != (len(names),) * 2:
            return said
        prices = [
            f"a sample of class {label} predicted as {names[d]} costs {cost:g}"
            for label, row in zip(names, self.table.tolist(), strict=True)
            for d, cost in enumerate(row)
            if cost != 0.0
        ]
        return f"{said} Costs: {', '.join(prices[:12])}{', …' if prices[12:] else ''}."

    def __str__(self) -> str:
        at = ", ".join(f"{threshold:.4g}" for threshold in self.thresholds)
        return f"{self.name} at threshold {at}" if at else self.name


def metric_of(audit: Adversary, metric: Any, threshold: Any = 0.5) -> Metric:
    """The metric that a user asks for; ``ValueError`` if there is none such."""
    several = len(audit.classes) > 2
    if isinstance(metric, Metric):
        return metric
    known = isinstance(metric, str) and metric in NAMES
    if not known and not (isinstance(metric, Mapping) and metric):
        names = ", ".join(map(repr, NAMES))
        raise ValueError(
            f"metric must be one of {names}, costs {{(label, decision): cost}}, or values by label "
            f"{{label: [a value for each range of scores]}}, got {metric!r:.60}"
        )
    if several and known and metric not in ("log_loss", "error"):
        raise ValueError(
            f"{metric!r} is for two classes, and this model has {len(audit.classes)}: ask about "
            "one class against the rest, or give costs"
        )
    if metric in SMOOTH:
        return Metric(metric)
    if several and not (np.ndim(threshold) == 0 and threshold == 0.5):
        raise ValueError(
            f"threshold is for two classes, and this model has {len(audit.classes)}: it decides "
            "for the most probable class. Decisions by least expected cost have no exact worst case"
        )
    thresholds = () if several else _thresholds(threshold)
    cuts = tuple(logit(thresholds).tolist()) or None
    if known and len(thresholds) > 1:
        raise ValueError(f"{metric!r} needs one threshold, got {len(thresholds)}")
    if isinstance(metric, Mapping):
        return Metric("cost", *_table(metric, audit.classes, cuts), thresholds)
    if metric in _RATIOS:
        above, below = np.array(_RATIOS[metric], dtype=np.float64)
        return Metric(metric, above, below, cuts, thresholds)
    table = 1.0 - np.eye(len(audit.classes))
    if metric == "net_benefit":
        if not 0.0 < thresholds[0] < 1.0:
            raise ValueError(f"net_benefit needs a threshold between 0 and 1, got {threshold!r}")
        odds = thresholds[0] / (1.0 - thresholds[0])
        table = np.array([[0.0, -odds], [0.0, 1.0]])
    return Metric(metric, table, None, cuts, thresholds)


def _thresholds(given: Any) -> tuple[float, ...]:
    values = np.atleast_1d(as_numbers(given, "threshold"))
    if (
        values.ndim != 1
        or not ((values >= 0.0) & (values <= 1.0)).all()
        or (np.diff(values) <= 0).any()
    ):
        raise ValueError(
            "threshold must be a probability from 0 to 1, or several in ascending order, got "
            f"{given!r:.60}"
        )
    return tuple(values.tolist())


def _table(
    given: Mapping[Any, Any], classes: tuple[Any, ...], cuts: tuple[float, ...] | None
) -> tuple[FloatArray, None, tuple[float, ...] | None]:
    """The values by label and decision, where a decision is a label or a range of scores."""
    size = len(classes) if cuts is None else len(cuts) + 1
    by_label = {label: given[label] for label in classes if label in given}
    if by_label and len(by_label) == len(given):
        rows = [as_numbers(by_label.get(label, np.zeros(size)), "metric") for label in classes]
        if cuts is None or any(row.shape != (size,) for row in rows):
            raise ValueError(
                f"values by label must be {size} for each label of a model of two classes, one for "
                "each range of scores between the thresholds"
            )
        return _finite(np.array(rows)), None, cuts
    table = np.zeros((len(classes), len(classes)))
    places = {(a, b): (i, j) for i, a in enumerate(classes) for j, b in enumerate(classes)}
    for pair, cost in given.items():
        if pair not in places:
            raise ValueError(
                f"costs must go by (label, decision), both among {list(classes)!r:.80}, got "
                f"{pair!r:.60}"
            )
        table[places[pair]] = as_numbers(cost, "cost")
    if cuts is not None and len(cuts) != 1:
        raise ValueError(f"costs by (label, decision) need one threshold, got {len(cuts)}")
    return _finite(table), None, cuts


def _finite(table: FloatArray) -> FloatArray:
    if not np.isfinite(table).all():
        raise ValueError("costs must be finite numbers, got NaN or infinity")
    return table
