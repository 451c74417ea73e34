"""Metrics of a classifier as functions of the label and the decision.

The log-loss depends on the score.  Every other metric of two classes is the mean of a table with a
value for each label and decision, such as the error or a cost, or the ratio of two such means:
precision is ``E[true positive] / E[decided positive]``.  In tables, 0 is the negative and 1 the
positive class.  A row is decided positive if its probability is at least the threshold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ..problem.parameters import is_number
from ..rows.arrays import FloatArray
from ..rows.checks import ParameterError, as_numbers

#: Values by label and decision; of ratios those of the numerator and of the denominator.
_TABLES: Final = {
    "error": (np.array([[0.0, 1.0], [1.0, 0.0]]), None),
    "recall": (np.array([[0.0, 0.0], [0.0, 1.0]]), np.array([[0.0, 0.0], [1.0, 1.0]])),
    "fpr": (np.array([[0.0, 1.0], [0.0, 0.0]]), np.array([[1.0, 1.0], [0.0, 0.0]])),
    "precision": (np.array([[0.0, 0.0], [0.0, 1.0]]), np.array([[0.0, 1.0], [0.0, 1.0]])),
    "npv": (np.array([[1.0, 0.0], [0.0, 0.0]]), np.array([[1.0, 0.0], [1.0, 0.0]])),
}
#: Metrics whose larger values are better.
_BENEFITS: Final = ("recall", "precision", "npv", "net_benefit")
NAMES: Final = ("log_loss", *_TABLES, "net_benefit")
#: What a share says, of the positive class and the other one.
WORDS: Final = {
    "error": "of the predictions are wrong",
    "recall": "of {positive} are found",
    "fpr": "of {other} are predicted {positive}",
    "precision": "of those predicted {positive} are right",
    "npv": "of those predicted {other} are right",
}


@dataclass(frozen=True, eq=False)
class Metric:
    """A metric of a model with known classes.

    Attributes
    ----------
    name : str
        One of :data:`NAMES`, or ``"cost"``.
    classes : tuple
        The labels of the model.
    positive : int
        The position of the positive class in ``classes``; 1 for several classes, where it has no
        meaning.
    threshold : float or None
        The probability of the positive class from which on it is decided; None for the log-loss and
        for several classes.
    table, below : array of shape (2, 2) or None
        The values by label and decision; of a ratio the numerator and the denominator.  None for
        the log-loss and for several classes.
    """

    name: str
    classes: tuple[Any, ...]
    positive: int = 1
    threshold: float | None = None
    table: FloatArray | None = None
    below: FloatArray | None = None

    @property
    def sign(self) -> float:
        """1 if the worst case is the largest value, -1 if it is the least."""
        return -1.0 if self.name in _BENEFITS else 1.0

    def mean(self, theta: float = 0.0) -> FloatArray:
        """The table of a mean; of a ratio ``E[a] / E[b]`` that of ``a - θ b``."""
        assert self.table is not None
        return self.table if self.below is None else self.table - theta * self.below

    def __str__(self) -> str:
        if self.threshold is None:
            return self.name
        positive = self.classes[self.positive]
        return f"{self.name} (positive: {positive!r:.40}, threshold {self.threshold:.4g})"


def resolve(
    metric: Any, classes: Sequence[Any], threshold: float = 0.5, pos_label: Any = None
) -> Metric:
    """The metric that a user asks for; ``ValueError`` if there is none such.

    ``metric`` is one of :data:`NAMES` or costs ``{(label, decision): cost}``.
    """
    known, several = tuple(classes), len(classes) > 2
    is_cost = isinstance(metric, Mapping) and bool(metric)
    if not is_cost and not (isinstance(metric, str) and metric in NAMES):
        raise ParameterError(
            "metric",
            f"must be one of {', '.join(map(repr, NAMES))}, or costs {{(label, decision): cost}}, "
            f"got {metric!r:.60}",
        )
    if several:
        if metric not in ("log_loss", "error"):
            raise ValueError(
                f"metric must be 'log_loss' or 'error' for a model of {len(known)} classes, got "
                f"{metric!r:.60}"
            )
        if pos_label is not None or threshold != 0.5:
            raise ValueError(
                "threshold and pos_label are for two classes; a model of several classes decides "
                "for the most probable one"
            )
        return Metric(metric, known)
    positive = _positive(known, pos_label)
    if metric == "log_loss":
        return Metric(metric, known, positive)
    if not (is_number(threshold) and 0.0 <= threshold <= 1.0):
        raise ValueError(f"threshold must be a probability from 0 to 1, got {threshold!r:.60}")
    at, below = float(threshold), None
    if is_cost:
        metric, table = "cost", _costs(metric, known, positive)
    elif metric != "net_benefit":
        table, below = _TABLES[metric]
    elif 0.0 < at < 1.0:
        table = np.array([[0.0, -at / (1.0 - at)], [0.0, 1.0]])
    else:
        raise ValueError(f"threshold must lie between 0 and 1 for net_benefit, got {threshold!r}")
    return Metric(metric, known, positive, at, table, below)


def _positive(classes: tuple[Any, ...], pos_label: Any) -> int:
    """The position of the positive class, by default the second."""
    if pos_label is None:
        return 1
    if pos_label not in classes:
        raise ValueError(f"pos_label must be one of {list(classes)!r:.80}, got {pos_label!r:.60}")
    return classes.index(pos_label)


def _costs(given: Mapping[Any, Any], classes: tuple[Any, ...], positive: int) -> FloatArray:
    """Costs by label and decision; pairs that are not named cost nothing."""
    table, places = np.zeros((2, 2)), {label: j == positive for j, label in enumerate(classes)}
    for pair, cost in given.items():
        is_pair = isinstance(pair, tuple) and len(pair) == 2 and set(pair) <= set(classes)
        if not is_pair:
            raise ValueError(
                f"costs must go by (label, decision), both among {list(classes)!r:.80}, got "
                f"{pair!r:.60}"
            )
        table[int(places[pair[0]]), int(places[pair[1]])] = as_numbers(cost, "cost")
    if not np.isfinite(table).all():
        raise ValueError("costs must be finite numbers, got NaN or infinity")
    return table
