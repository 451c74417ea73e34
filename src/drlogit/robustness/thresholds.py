"""Choose a threshold by its confidence limit in the worst case.

Each of M candidates has a limit for the population of the rows (:mod:`.promises`) at a
confidence of ``1 - α/M``.  All limits therefore hold at once, including that of the chosen
candidate.  The candidates are the usual threshold, quantiles of the scores of the rows that choose
the dual prices and, for costs, the two constant decisions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from ..rows.arrays import FloatArray, IndexArray
from .audit_problem import BallOptions, audit_problem
from .extremes import Extremes
from .old_adversary import Adversary
from .old_metrics import Metric, metric_of
from .promises import MetricPromise, promise_of
from .unseen_rows import UnseenRows

if TYPE_CHECKING:
    from typing_extensions import Unpack

#: The number of quantiles among the candidates, half of them among positives.
_QUANTILES = 20


class NoThresholdError(ValueError):
    """No threshold keeps the stated limit on these rows."""


@dataclass(frozen=True)
class ThresholdChoice:
    """A threshold with a promise; ``float()`` is the threshold.

    Attributes
    ----------
    threshold : float
        Predict the positive class if its probability is at least this: always at 0, never at 1.
    promise, usual_promise : MetricPromise
        The promise at this threshold, and the promise at the usual one.
    usual : float
        The usual threshold: the best one for exact probabilities, or one half.
    tpr : float
        The share of positives that the threshold finds, on the rows as they are.
    negative, positive : label
        The two classes.
    tried : int
        The number of candidates; all their promises hold together.
    """

    threshold: float
    promise: MetricPromise
    usual: float
    usual_promise: MetricPromise
    tpr: float
    positive: Any
    tried: int
    negative: Any = None

    def __float__(self) -> float:
        return self.threshold

    def __str__(self) -> str:
        decide = f"Predict {self.positive} if its probability is at least {self.threshold:.4g}."
        if self.threshold in (0.0, 1.0):
            always = self.positive if self.threshold == 0.0 else self.negative
            decide = (
                f"Always predict {always}: at this radius and with these rows, no threshold of the "
                "model has a lower limit."
            )
        usual = "This is the usual threshold."
        if self.usual != self.threshold:
            usual = (
                f"At the usual threshold {self.usual:.4g} it is {self.promise.bound} "
                f"{self.usual_promise.value:.4g} ({self.usual_promise.nominal:.4g} on these rows)."
            )
        return (
            f"{decide}\n{self.promise} The threshold finds {self.tpr:.1%} of {self.positive} on "
            f"these rows.\n{usual} The limits are corrected for comparing {self.tried} candidates."
            f"\n{self.promise.about_price}\n{self.promise.assumed}"
        )


def choose_threshold(
    model: Any,
    X: Any,
    y: ArrayLike,
    *,
    costs: Any = None,
    max_fpr: float | None = None,
    min_precision: float | None = None,
    epsilon: float | None = None,
    kappa: Any = None,
    confidence: float = 0.95,
    random_state: int = 0,
    **ball: Unpack[BallOptions],
) -> ThresholdChoice:
    """Choose the threshold with the lowest limit on the cost, or the best one that meets a limit.

    Parameters
    ----------
    model : estimator, Result or tuple (coef, intercept)
        As in :func:`drlogit.worst_case_loss`, of two classes.
    X, y : the rows
        Rows that were used neither to fit nor to choose the model.
    costs : dict, optional
        ``{(label, decision): cost}``; omitted pairs cost nothing.  The two constant decisions are
        among the candidates.
    max_fpr, min_precision : float, optional
        Instead of costs: an upper limit on the false positive rate, or a lower limit on the
        precision.  Among the thresholds that meet it with the stated confidence, the one that finds
        most positives is chosen.
    epsilon, kappa : optional
        The ball; by default that of the model's fit.
    confidence : float
        The probability with which the promises of all candidates hold, between 0 and 1.
    random_state : int
        Seed for drawing the fifth of the rows that sets the candidates and the dual prices.
    **ball
        ``norm``, ``feature_costs``, ``categories``, ``bounds``, ``space`` and ``sample_weight`` as
        in :func:`drlogit.worst_case_loss`.

    Returns
    -------
    ThresholdChoice
        ``.threshold`` goes into scikit-learn's ``FixedThresholdClassifier``; ``.promise`` is the
        limit at this threshold; ``str()`` is the statement in words, with its assumptions.

    Examples
    --------
    >>> import drlogit
    >>> X, y = drlogit.datasets.make_synthetic(900, 3, random_state=0)
    >>> model = drlogit.DRLogisticRegression(epsilon=0.005, kappa=1.0).fit(X[:300], y[:300])
    >>> choice = drlogit.choose_threshold(model, X[300:], y[300:], max_fpr=0.6)
    >>> choice.promise.value <= 0.6
    True
    """
    goals = {"costs": costs, "max_fpr": max_fpr, "min_precision": min_precision}
    stated = {name: goal for name, goal in goals.items() if goal is not None}
    if len(stated) != 1:
        raise ValueError(
            "the threshold is chosen by one of costs, max_fpr and min_precision, got "
            f"{' and '.join(stated) or 'none of them'}"
        )
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence must lie between 0 and 1, got {confidence!r}")
    ((goal, limit),) = stated.items()
    if costs is None and not 0.0 < limit < 1.0:
        raise ValueError(f"{goal} must lie between 0 and 1, got {limit!r}")
    audit = audit_problem(model, X, y, epsilon=epsilon, kappa=kappa, **ball)
    if len(audit.classes) > 2:
        raise ValueError(f"choose_threshold needs a model of two classes, got {len(audit.classes)}")
    rows = UnseenRows.held_out(audit, random_state)
    name = costs if costs is not None else "fpr" if max_fpr is not None else "precision"
    usual = 0.5 if costs is None else _usual(metric_of(audit, costs).less(0.0))
    tried = sorted({usual, *_candidates(audit, rows.folds[0].choosing)})
    if costs is not None:
        tried = [0.0, *tried, 1.0]
    metrics = {at: metric_of(audit, name, at) for at in tried}
    found = {at: _found(audit, rows.rest, at) for at in tried if _is_defined(rows, metrics[at])}
    wanted = None if costs is not None else float(limit)

    def promise(at: float, finer: bool) -> MetricPromise:
        return promise_of(
            rows, metrics[at], confidence, tried=len(tried), wanted=wanted, finer=finer
        )

    promises = {at: promise(at, finer=False) for at in found}
    if usual not in promises:
        raise NoThresholdError(f"no row is predicted positive at the usual threshold {usual:.4g}")
    if wanted is None:
        # Prefer a constant decision if its limit is as low: then no model is needed.
        best = min(promises, key=lambda at: (promises[at].value, at not in (0.0, 1.0), -found[at]))
    else:
        sign = metrics[usual].worst_sign
        kept = [at for at in found if sign * promises[at].value <= sign * wanted]
        if not kept:
            raise NoThresholdError(
                f"no threshold keeps {name} {promises[usual].bound} {wanted:g} within epsilon = "
                f"{audit.problem.epsilon:g} with {confidence:.0%} confidence on {rows.rest.size} "
                "rows: use more rows, a smaller epsilon or another limit"
            )
        best = max(kept, key=lambda at: (found[at], at))
    # Only the reported promises are refined; the coarse ones suffice for the comparison.
    return ThresholdChoice(
        best, promise(best, finer=True), usual, promise(usual, finer=True), found[best],
        audit.classes[1], len(tried), audit.classes[0],
    )  # fmt: skip


def _usual(table: FloatArray) -> float:
    """The best threshold if probabilities are exact."""
    false_alarm, missed = table[0, 1] - table[0, 0], table[1, 0] - table[1, 1]
    if false_alarm <= 0.0 or missed <= 0.0:
        raise ValueError(
            "each wrong decision must cost more than the right one, got costs "
            f"{table.tolist()} by label and decision"
        )
    return float(false_alarm / (false_alarm + missed))


def _candidates(audit: Adversary, choosing: IndexArray) -> list[float]:
    """Quantiles of the probabilities of the rows that choose, half of them among positives."""
    scores, positive = audit.scores[1][choosing], audit.codes[choosing] == 1
    found = []
    for some in (scores, scores[positive]):
        if some.size > 1:
            found += np.quantile(some, np.linspace(0.02, 0.98, _QUANTILES // 2)).tolist()
    # Rounded, so that no score lies on a threshold, where both decisions would count.
    return [p for p in np.round(expit(np.array(found)), 6).tolist() if 0.0 < p < 1.0]


def _is_defined(rows: UnseenRows, metric: Metric) -> bool:
    """Whether some row that judges counts for the denominator of a ratio."""
    if metric.below is None:
        return True
    below = Extremes(rows.audit, metric).values()[1]
    return float(rows.audit.weights[rows.rest] @ below[rows.rest]) > 0.0


def _found(audit: Adversary, judged: IndexArray, threshold: float) -> float:
    """The share of positives that a threshold finds."""
    positive = audit.weights[judged] * (audit.codes[judged] == 1)
    above = expit(audit.scores[1][judged]) > threshold
    # Two sums of the same kind, so that all of them are a share of exactly one.
    return float((positive * above).sum() / max(positive.sum(), 1e-300))
