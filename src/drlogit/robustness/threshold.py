"""Choose the threshold whose promise is best.

Each of M candidates has a limit for the population of the rows (:mod:`.promise`) that fails with a
probability of at most ``α/M``.  So all limits hold at once, including that of the candidate that is
chosen.  The candidates are the usual threshold, quantiles of the probabilities of the rows that
choose the prices, and the two constant decisions if costs are given.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from ..problem.ball import Ball
from ..rows.arrays import FloatArray
from ..rows.checks import ParameterError
from .metrics import Metric, resolve
from .promise import Promise, UnseenRows
from .words import warning_once, wrapped

#: The number of quantiles among the candidates, half of them among positives.
_QUANTILES = 20


@dataclass(frozen=True, kw_only=True)
class ThresholdChoice:
    """A threshold with a promise; ``float()`` is the threshold.

    Attributes
    ----------
    threshold : float
        Predict ``positive`` if its probability is at least this: always at 0, never at 1.
    promise : Promise
        What holds at this threshold.
    positive, negative : label
        The two classes.
    recall : float
        The share of positives that the threshold finds, on the rows as they are.
    tried : int
        The number of candidates, whose promises all hold together.
    remark : str
        Where the decision is the same for everybody: why, and what would change it.
    """

    threshold: float
    promise: Promise
    positive: Any
    negative: Any
    recall: float
    tried: int
    remark: str = ""

    def __float__(self) -> float:
        return self.threshold

    def __str__(self) -> str:
        decide = (
            f"Predict {self.positive!r} if its probability is at least {self.threshold:.4g}. On "
            f"these rows this finds {100.0 * self.recall:.3g} % of {self.positive!r}."
        )
        if self.threshold in (0.0, 1.0):
            always = self.positive if self.threshold == 0.0 else self.negative
            decide = (
                f"Always predict {always!r}. No threshold of the model has a lower limit of the "
                f"cost on these rows: {self.remark}"
            )
        tried = f"The limits are corrected for comparing {self.tried} thresholds."
        return wrapped([decide, *self.promise.sentences(), tried])

    def to_sklearn(self, model: Any) -> Any:
        """The model with this threshold, as a ``FixedThresholdClassifier`` of scikit-learn."""
        from sklearn.frozen import FrozenEstimator
        from sklearn.model_selection import FixedThresholdClassifier

        # A probability of 1 is still less than a threshold that nothing reaches.
        threshold = math.inf if self.threshold == 1.0 else self.threshold
        return FixedThresholdClassifier(
            FrozenEstimator(model),
            threshold=threshold,
            pos_label=self.positive,
            response_method="predict_proba",
        )


@warning_once
def choose_threshold(
    model: Any,
    X: Any,
    y: ArrayLike,
    *,
    costs: Any = None,
    max_fpr: float | None = None,
    min_precision: float | None = None,
    min_recall: float | None = None,
    ball: Ball | None = None,
    pos_label: Any = None,
    confidence_level: float = 0.95,
    random_state: Any = None,
) -> ThresholdChoice:
    """Choose the threshold with the least promised cost, or the best one that keeps a limit.

    Parameters
    ----------
    model : estimator, Result or tuple (coef, intercept)
        As in :func:`drlogit.worst_case`, of two classes.
    X, y
        Rows that were used neither to fit nor to choose the model.
    costs : dict, optional
        ``{(label, decision): cost}``; omitted pairs cost nothing.  The two constant decisions are
        among the candidates.
    max_fpr, min_precision, min_recall : float, optional
        Instead of costs, a limit that is to be kept with the stated confidence.  Among the
        thresholds that do, the one is chosen that finds most positives, or, for the recall, the
        one that predicts fewest rows positive.
    ball, pos_label, confidence_level, random_state
        As in :func:`drlogit.guarantee`.

    Returns
    -------
    ThresholdChoice
        ``.threshold``, ``.promise`` and ``.to_sklearn(model)``; ``str()`` is the statement in
        words.

    Examples
    --------
    >>> import drlogit
    >>> X, y = drlogit.datasets.make_synthetic(900, 3, random_state=0)
    >>> model = drlogit.DRLogisticRegression(epsilon=0.005).fit(X[:300], y[:300])
    >>> choice = drlogit.choose_threshold(model, X[300:], y[300:], max_fpr=0.6, random_state=0)
    >>> choice.promise.value <= 0.6
    True
    """
    goals = {"max_fpr": max_fpr, "min_precision": min_precision, "min_recall": min_recall}
    stated = {name: goal for name, goal in {"costs": costs, **goals}.items() if goal is not None}
    if len(stated) != 1:
        raise ValueError(
            f"the threshold is chosen by one of costs, {', '.join(goals)}, got "
            f"{' and '.join(stated) or 'none of them'}"
        )
    ((goal, limit),) = stated.items()
    if costs is None and not 0.0 < limit < 1.0:
        raise ParameterError(goal, f"must lie between 0 and 1, got {limit!r}")
    rows = UnseenRows.of(model, X, y, ball, confidence_level, random_state)
    classes = rows.adversary.classes
    if len(classes) > 2:
        raise ValueError(f"choose_threshold needs a model of two classes, got {len(classes)}")
    name, wanted = (costs, None) if costs is not None else (goal.partition("_")[2], float(limit))
    usual = 0.5 if costs is None else _usual(resolve(costs, classes, 0.5, pos_label))
    tried = {usual, *_candidates(rows, pos_label), *([] if costs is None else [0.0, 1.0])}
    metrics = {at: resolve(name, classes, at, pos_label) for at in sorted(tried)}
    choosing = _Choosing(rows, metrics, wanted)
    best, positive = choosing.best(), metrics[usual].positive
    return ThresholdChoice(
        threshold=best,
        promise=choosing.promise(best),
        positive=classes[positive],
        negative=classes[1 - positive],
        recall=choosing.recall(best),
        tried=len(tried),
        remark=choosing.needed(best) if best in (0.0, 1.0) else "",
    )


@dataclass(frozen=True, eq=False)
class _Choosing:
    """The metric of each candidate, and the limit that is ``wanted``, if it is not a cost."""

    rows: UnseenRows
    metrics: dict[float, Metric]
    wanted: float | None

    @property
    def alpha(self) -> float:
        return (1.0 - self.rows.confidence) / len(self.metrics)

    def promise(self, at: float) -> Promise:
        """What is promised at a candidate."""
        return self.rows.promise(self.metrics[at], self.alpha, wanted=self.wanted)

    def recall(self, at: float) -> float:
        """The share of positives that a candidate finds in these rows."""
        metric = self.metrics[at]
        found = resolve("recall", metric.classes, at, metric.classes[metric.positive])
        return self.rows.nominal(found, self.rows.judging)

    @cached_property
    def defined(self) -> list[float]:
        """The candidates whose metric is defined on these rows."""
        rows, metrics = self.rows, self.metrics.items()
        return [at for at, metric in metrics if not math.isnan(rows.nominal(metric, rows.judging))]

    def best(self) -> float:
        """The best candidate; ``ValueError`` if none keeps the limit."""
        promised = {at: self.promise(at).value for at in self.defined}
        if self.wanted is None:
            # A constant decision is preferred if its limit is as low: then no model is needed.
            return min(promised, key=lambda at: (promised[at], at not in (0.0, 1.0)))
        metric = next(iter(self.metrics.values()))
        kept = [at for at in promised if metric.sign * promised[at] <= metric.sign * self.wanted]
        if not kept:
            word = "at most" if metric.sign > 0.0 else "at least"
            raise ValueError(
                f"no threshold keeps {metric.name} {word} {self.wanted:g} with "
                f"{100.0 * self.rows.confidence:.10g} % confidence on {self.rows.judging.size} "
                f"rows (positive: {metric.classes[metric.positive]!r:.40}): {self.needed()}"
            )
        return max(kept, key=lambda at: (metric.name != "recall" and self.recall(at), at))

    def needed(self, constant: float | None = None) -> str:
        """What would let some threshold be chosen: more rows, and how many, or a smaller ball."""
        size = self._size(self.rows, constant)
        if math.isfinite(size):
            more = max((size - self.rows.judging.size) / 0.8, 10.0)
            return (
                f"about {float(f'{more:.1e}'):.0f} more rows would change that, or a smaller ball."
            )
        adversary = self.rows.adversary
        point = adversary.with_ball(adversary.ball.replace(epsilon=0.0))
        if math.isfinite(self._size(replace(self.rows, adversary=point), constant)):
            return (
                "no number of rows would change that, but a smaller ball would, with enough rows."
            )
        return "neither more rows nor a smaller ball would change that; the model may be of no use."

    def _size(self, rows: UnseenRows, constant: float | None) -> float:
        """The least number of rows that some candidate needs to be better than a constant decision.

        Margins of limits fall as one over its root.
        """

        def apart(at: float) -> FloatArray:
            priced = rows.priced(self.metrics[at], self.wanted or 0.0)
            mean = priced.mean(rows.judging)
            return np.array([mean, priced.limit(rows.judging, self.alpha) - mean])

        start = np.zeros(2) if constant is None else apart(constant)
        found = [apart(at) - start for at in self.defined if 0.0 < at < 1.0]
        sizes = [max(margin / -ahead, 1.0) ** 2 for ahead, margin in found if ahead < 0.0]
        return float(rows.judging.size * min(sizes, default=math.inf))


def _usual(metric: Metric) -> float:
    """The best threshold if probabilities are exact."""
    table: FloatArray = metric.mean()
    false_alarm, missed = table[0, 1] - table[0, 0], table[1, 0] - table[1, 1]
    if false_alarm <= 0.0 or missed <= 0.0:
        raise ValueError(
            "each wrong decision must cost more than the right one, got costs "
            f"{table.tolist()} by label and decision (first the negative class, then "
            f"{metric.classes[metric.positive]!r:.40})"
        )
    return float(false_alarm / (false_alarm + missed))


def _candidates(rows: UnseenRows, pos_label: Any) -> list[float]:
    """Quantiles of the probabilities of the rows that choose, half of them among positives."""
    metric = resolve("error", rows.adversary.classes, 0.5, pos_label)
    scores = rows.adversary.scores[rows.choosing] * (1.0 if metric.positive else -1.0)
    positive = rows.adversary.codes[rows.choosing] == metric.positive
    found: list[float] = []
    for some in (scores, scores[positive]):
        if some.size > 1:
            found += np.quantile(some, np.linspace(0.02, 0.98, _QUANTILES // 2)).tolist()
    return [p for p in np.round(expit(np.array(found)), 6).tolist() if 0.0 < p < 1.0]
