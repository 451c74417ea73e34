"""Numbers that people decide by, as the samples are and between their ends over the ball.

The decision curve, the calibration curve and the point of the ROC curve at a threshold, for models
of two classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from ..rows.arrays import FloatArray
from .adversary import Adversary
from .extremes import Extremes
from .metrics import Metric, metric_of


class Band(NamedTuple):
    """A number on the samples as they are, and its least and largest value in the ball."""

    nominal: float
    low: float
    high: float

    @classmethod
    def of(cls, audit: Adversary, metric: Metric) -> Band:
        asked, epsilon = Extremes(audit, metric), audit.problem.epsilon
        return cls(asked.nominal(), asked.end(-1.0, epsilon), asked.end(1.0, epsilon))


def net_benefits(audit: Adversary, thresholds: Sequence[float]) -> tuple[list[Band], list[Band]]:
    """Net benefit of the model and of treating everybody, at each threshold."""
    models, everybody = [], []
    for p in thresholds:
        metric, odds = metric_of(audit, "net_benefit", p), p / (1.0 - p)
        models.append(Band.of(audit, metric))
        table = np.array([[-odds, -odds], [1.0, 1.0]])
        everybody.append(Band.of(audit, Metric("net_benefit", table, None, (0.0,))))
    return models, everybody


def calibration_bands(audit: Adversary, n_bins: int) -> tuple[FloatArray, list[Band]]:
    """Mean probability and share of positives in bins of equal size by probability.

    The ends are those of the share of positives among the samples whose probability lies in the
    bin, wherever they came from.
    """
    scores, w = audit.scores[1], audit.weights
    cuts = np.unique(np.quantile(scores, np.linspace(0.0, 1.0, n_bins + 1)[1:-1]))
    bins = np.searchsorted(cuts, scores)
    kept = [k for k in range(cuts.size + 1) if w[bins == k].sum() > 0.0]
    bands = []
    for k in kept:
        below = np.zeros((2, cuts.size + 1))
        below[:, k] = 1.0
        above = below * np.array([[0.0], [1.0]])
        bands.append(Band.of(audit, Metric("share", above, below, tuple(cuts.tolist()))))
    p = expit(scores)
    predicted = [np.average(p[bins == k], weights=w[bins == k]) for k in kept]
    return np.array(predicted), bands


def rates(audit: Adversary, threshold: float) -> tuple[Band, Band]:
    """False and true positive rate at a threshold; their ends are not reached together."""
    fpr, tpr = (Band.of(audit, metric_of(audit, name, threshold)) for name in ("fpr", "tpr"))
    return fpr, tpr
