"""Metrics of a model, as functions of score and label.

A metric of *decisions* is the mean of a table with a value for each label and decision, or the
ratio of two such means: precision is ``E[true positive] / E[decided positive]``.  The other metric
is the log-loss, a smooth function of the score.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import logit

from ..rows.arrays import FloatArray
from ..rows.checks import as_numbers
from .old_adversary import Adversary

#: Numerator and denominator, by label and decision; 1 is the positive class.
_RATIOS = {
    "tpr": ([[0, 0], [0, 1]], [[0, 0], [1, 1]]),
    "fpr": ([[0, 1], [0, 0]], [[1, 1], [0, 0]]),
    "precision": ([[0, 0], [0, 1]], [[0, 1], [0, 1]]),
    "npv": ([[1, 0], [0, 0]], [[1, 0], [1, 0]]),
}

#: Metrics whose larger values are better.
_BENEFITS = ("tpr", "precision", "npv", "net_benefit")

SMOOTH = ("log_loss",)
NAMES = (*SMOOTH, "error", *_RATIOS, "net_benefit")


@dataclass(frozen=True, eq=False)
class Metric:
    """A metric of a model with known classes."""

    name: str
    table: FloatArray | None = None  # by label and decision; None for smooth functions
    below: FloatArray | None = None  # the denominator, if it is a ratio
    cuts: tuple[float, ...] | None = None  # scores between which decisions lie; None: by class
    threshold: float | None = None  # the probability from which on the second class is decided

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
        if self.table is None:
            return ""
        if self.threshold is None:
            said = "The model predicts the most probable class."
        elif self.threshold in (0.0, 1.0):
            said = f"Always predict {names[int(self.threshold == 0.0)]}."
        else:
            said = f"Predict {names[1]} if its probability is at least {self.threshold:.4g}."
        if self.name != "cost":
            return said
        prices = [
            f"a sample of class {label} predicted as {names[d]} costs {cost:g}"
            for label, row in zip(names, self.table.tolist(), strict=True)
            for d, cost in enumerate(row)
            if cost != 0.0
        ]
        return f"{said} Costs: {', '.join(prices[:12])}{', …' if prices[12:] else ''}."

    def __str__(self) -> str:
        at = "" if self.threshold is None else f" at threshold {self.threshold:.4g}"
        return f"{self.name}{at}"


def metric_of(audit: Adversary, metric: Any, threshold: Any = 0.5) -> Metric:
    """The metric that a user asks for; ``ValueError`` if there is none such."""
    several = len(audit.classes) > 2
    if isinstance(metric, Metric):
        return metric
    known = isinstance(metric, str) and metric in NAMES
    if not known and not (isinstance(metric, Mapping) and metric):
        names = ", ".join(map(repr, NAMES))
        raise ValueError(
            f"metric must be one of {names}, or costs {{(label, decision): cost}}, got "
            f"{metric!r:.60}"
        )
    if several and known and metric not in ("log_loss", "error"):
        raise ValueError(
            f"{metric!r} is for two classes, and this model has {len(audit.classes)}: ask about "
            "one class against the rest, or give costs"
        )
    if metric in SMOOTH:
        return Metric(metric)
    if several and threshold != 0.5:
        raise ValueError(
            f"threshold is for two classes, and this model has {len(audit.classes)}: it decides "
            "for the most probable class. Decisions by least expected cost have no exact worst case"
        )
    if not several and not (isinstance(threshold, int | float) and 0.0 <= threshold <= 1.0):
        raise ValueError(f"threshold must be a probability from 0 to 1, got {threshold!r:.60}")
    at = None if several else float(threshold)
    cuts = None if at is None else (float(logit(at)),)
    if isinstance(metric, Mapping):
        return Metric("cost", _table(metric, audit.classes), None, cuts, at)
    if metric in _RATIOS:
        above, below = np.array(_RATIOS[metric], dtype=np.float64)
        return Metric(metric, above, below, cuts, at)
    table = 1.0 - np.eye(len(audit.classes))
    if metric == "net_benefit":
        if at is None or not 0.0 < at < 1.0:
            raise ValueError(f"net_benefit needs a threshold between 0 and 1, got {threshold!r}")
        table = np.array([[0.0, -at / (1.0 - at)], [0.0, 1.0]])
    return Metric(metric, table, None, cuts, at)


def _table(given: Mapping[Any, Any], classes: tuple[Any, ...]) -> FloatArray:
    """The costs by label and decision."""
    table = np.zeros((len(classes), len(classes)))
    places = {(a, b): (i, j) for i, a in enumerate(classes) for j, b in enumerate(classes)}
    for pair, cost in given.items():
        if pair not in places:
            raise ValueError(
                f"costs must go by (label, decision), both among {list(classes)!r:.80}, got "
                f"{pair!r:.60}"
            )
        table[places[pair]] = as_numbers(cost, "cost")
    if not np.isfinite(table).all():
        raise ValueError("costs must be finite numbers, got NaN or infinity")
    return table
