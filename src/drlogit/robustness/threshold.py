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

#: Smaller balls that are tried, as shares of the one that was asked for.
_SMALLER = (0.75, 0.5, 0.25, 0.1, 0.05, 0.01, 0.0)


class NoThresholdError(ValueError):
    """No threshold keeps the stated limit on these rows."""


@dataclass(frozen=True, kw_only=True)
class ThresholdChoice:
    """A threshold with a promise; ``float()`` is the threshold.

    Attributes
    ----------
    threshold : float
        Predict ``positive`` if its probability is at least this: always at 0, never at 1.
    promise : Promise
        What holds at this threshold.
    usual, usual_promise : float and Promise
        The usual threshold, and what holds there.
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
    usual: float
    usual_promise: Promise
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
            decide = f"Always predict {always!r}. {self.remark}"
        usual = "This is the usual threshold."
        if self.usual != self.threshold:
            usual = (
                f"At the usual threshold {self.usual:.4g} the limit is {self.usual_promise.bound} "
                f"({self.usual_promise.nominal:.4g} on these rows)."
            )
        tried = f"The limits are corrected for comparing {self.tried} thresholds."
        return wrapped([decide, *self.promise.sentences(), f"{usual} {tried}"])

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
    name = costs if costs is not None else goal.partition("_")[2]
    usual = 0.5 if costs is None else _usual(resolve(costs, classes, 0.5, pos_label))
    tried = sorted({usual, *_candidates(rows, pos_label)})
    if costs is not None:
        tried = [0.0, *tried, 1.0]
    metrics = {at: resolve(name, classes, at, pos_label) for at in tried}
    recall = {at: resolve("recall", classes, at, pos_label) for at in tried}
    found = {at: rows.nominal(metric, rows.judging) for at, metric in recall.items()}
    choosing = _Choosing(rows, metrics, found, None if costs is not None else float(limit))
    best = choosing.best()
    positive = metrics[best].positive
    return ThresholdChoice(
        threshold=best,
        promise=choosing.promise(best),
        usual=usual,
        usual_promise=choosing.promise(usual),
        positive=classes[positive],
        negative=classes[1 - positive],
        recall=found[best],
        tried=len(tried),
        remark=choosing.why_constant(best) if best in (0.0, 1.0) else "",
    )


@dataclass(frozen=True, eq=False)
class _Choosing:
    """The candidates: the metric of each, its recall, and the limit that is ``wanted``."""

    rows: UnseenRows
    metrics: dict[float, Metric]
    found: dict[float, float]
    wanted: float | None

    @property
    def alpha(self) -> float:
        return (1.0 - self.rows.confidence) / len(self.metrics)

    @cached_property
    def defined(self) -> list[float]:
        """The candidates whose metric is defined on these rows."""
        rows, metrics = self.rows, self.metrics.items()
        return [at for at, metric in metrics if not math.isnan(rows.nominal(metric, rows.judging))]

    def promise(self, at: float) -> Promise:
        """What is promised at a candidate."""
        return self.rows.promise(self.metrics[at], self.alpha, wanted=self.wanted)

    def best(self) -> float:
        """The best candidate; :class:`NoThresholdError` if none keeps the limit."""
        promised = {at: self.promise(at).value for at in self.defined}
        if self.wanted is None:
            # A constant decision is preferred if its limit is as low: then no model is needed.
            return min(promised, key=lambda at: (promised[at], at not in (0.0, 1.0)))
        metric = next(iter(self.metrics.values()))
        kept = [at for at in promised if metric.sign * promised[at] <= metric.sign * self.wanted]
        if not kept:
            word = "at most" if metric.sign > 0.0 else "at least"
            raise NoThresholdError(
                f"no threshold keeps {metric.name} {word} {self.wanted:g} with "
                f"{100.0 * self.rows.confidence:.10g} % confidence on {self.rows.judging.size} "
                f"rows (positive: {metric.classes[metric.positive]!r:.40}): {self._needed()}"
            )
        if metric.name == "recall":
            return max(kept)
        return max(kept, key=lambda at: (self.found[at], at))

    def why_constant(self, at: float) -> str:
        """Why the same decision for everybody is best, and what would change it."""
        why = "No threshold of the model has a lower limit of the cost on these rows"
        return f"{why}: {self._needed(at)}"

    def _needed(self, constant: float | None = None) -> str:
        """How many rows, or how small a ball, would let some threshold be chosen."""
        tried = [at for at in self.defined if 0.0 < at < 1.0]
        for share in (1.0, *_SMALLER):
            epsilon, adversary = share * self.rows.epsilon, self.rows.adversary
            smaller = adversary.with_ball(adversary.ball.replace(epsilon=epsilon))
            rows = replace(self.rows, adversary=smaller)
            size = min((self._size_for(rows, at, constant) for at in tried), default=math.inf)
            if math.isfinite(size) and share == 1.0:
                more = max(_two_digits((size - rows.judging.size) / 0.8), 10)
                return f"about {more} more rows would change that, or a smaller ball."
            if math.isfinite(size):
                return (
                    "within this ball no number of rows would change that. A smaller ball would, "
                    f"with enough rows, such as ball.replace(epsilon={epsilon:.3g})."
                )
        return "neither more rows nor a smaller ball would change that; the model may be of no use."

    def _size_for(self, rows: UnseenRows, at: float, constant: float | None) -> float:
        """How many rows that judge a candidate needs, if margins fall as one over the root."""
        ahead, margin = self._apart(rows, at)
        if constant is not None:
            ahead, margin = np.subtract((ahead, margin), self._apart(rows, constant))
        if ahead >= 0.0:
            return math.inf
        return float(rows.judging.size * max(margin / -ahead, 1.0) ** 2)

    def _apart(self, rows: UnseenRows, at: float) -> tuple[float, float]:
        """The worst case on these rows, and how far the limit is above it."""
        priced = rows.priced(self.metrics[at], 0.0 if self.wanted is None else self.wanted)
        mean = priced.mean(rows.judging)
        return mean, priced.limit(rows.judging, self.alpha) - mean


def _two_digits(number: float) -> int:
    """A number of rows, rounded up to two digits."""
    if number <= 0.0:
        return 0
    unit = 10.0 ** max(math.floor(math.log10(number)) - 1, 0)
    return int(math.ceil(number / unit) * unit)


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
