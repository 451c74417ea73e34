"""The threshold whose promised worst case is best.

Every threshold that is tried has a limit on the population behind the rows
(:mod:`.metric_promises`), each at a confidence of ``1 - α/M`` for M thresholds, so that all hold at
once and the one chosen does.  The thresholds come from the scores of the rows that choose prices;
the usual one is always among them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from ..problem.norms import Norm
from ..rows.arrays import FloatArray, IndexArray
from ..rows.threads import one_blas_thread
from .adversary import Adversary
from .audit_problem import audit_problem
from .extremes import Extremes
from .measured_model import radius_of_fit
from .metric_promises import MetricPromise, promise_of, split_rows
from .metrics import metric_of

#: Thresholds that are tried, beside the usual one: quantiles of scores of all rows and positives.
_TRIED = 20


class NoThresholdError(ValueError):
    """No threshold keeps the stated limit on these rows."""


@dataclass(frozen=True)
class ThresholdChoice:
    """A threshold with a promise; ``float()`` is the threshold.

    Attributes
    ----------
    threshold : float
        Decide for the positive class from this probability on.
    promise, usual_promise : MetricPromise
        What is promised at this threshold, and what the usual one would have promised.
    usual : float
        The usual threshold: the one that is best for exact probabilities, or one half.
    tpr : float
        The share of positives found, on the rows as they are.
    positive : label
        The positive class.
    tried : int
        Thresholds for which the promises hold together.
    """

    threshold: float
    promise: MetricPromise
    usual: float
    usual_promise: MetricPromise
    tpr: float
    positive: Any
    tried: int

    def __float__(self) -> float:
        return self.threshold

    def __str__(self) -> str:
        return (
            f"Decide for {self.positive} from a probability of {self.threshold:.4g} on.\n"
            f"{self.promise}, and {self.tpr:.1%} of {self.positive} are found.\n"
            f"The usual threshold {self.usual:.4g} promises {self.promise.bound} "
            f"{self.usual_promise.value:.4g} ({self.usual_promise.nominal:.4g} on the rows as they "
            f"are). All {self.tried} thresholds that were tried are allowed for.\n"
            f"{self.promise.assumed}"
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
    norm: str | Norm | None = None,
    feature_costs: Any = None,
    categories: Any = None,
    bounds: Any = None,
    space: str = "fitted",
    sample_weight: ArrayLike | None = None,
    random_state: int = 0,
) -> ThresholdChoice:
    """The threshold with the least promised worst-case cost, or the most useful that keeps a limit.

    Parameters
    ----------
    model : estimator, Result or tuple (coef, intercept)
        As in :func:`drlogit.worst_case_loss`, of two classes.
    X, y : the rows
        Rows that the model was **not** fitted to, nor chosen by.
    costs : dict, optional
        ``{(label, decision): cost}``; pairs that are left out cost nothing.
    max_fpr, min_precision : float, optional
        In place of costs: the largest share of negatives decided positive, or the least share of
        positives among the rows decided positive.  Of the thresholds that keep it for certain, the
        one that finds most positives.
    epsilon, kappa : optional
        The ball; by default the model's own.
    confidence : float
        Of the promises of all thresholds together, between 0 and 1.
    norm, feature_costs, categories, bounds, space, sample_weight
        As in :func:`drlogit.worst_case_loss`.
    random_state : int
        Which fifth of the rows choose the thresholds to try and the prices.

    Returns
    -------
    ThresholdChoice
        ``.threshold`` goes into scikit-learn's ``FixedThresholdClassifier``; ``.promise`` is what
        holds there; ``str()`` is the statement in words, with what it assumes.
    """
    stated = [each for each in (costs, max_fpr, min_precision) if each is not None]
    if len(stated) != 1:
        raise ValueError(f"give one of costs, max_fpr and min_precision, got {len(stated)}")
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence must lie between 0 and 1, got {confidence!r}")
    if costs is None and not 0.0 < stated[0] < 1.0:
        raise ValueError(f"max_fpr and min_precision must lie between 0 and 1, got {stated[0]!r}")
    with one_blas_thread:
        audit = audit_problem(
            model, X, y, epsilon=radius_of_fit(model) if epsilon is None else epsilon, kappa=kappa,
            norm=norm, feature_costs=feature_costs, categories=categories, bounds=bounds,
            space=space, sample_weight=sample_weight,
        )  # fmt: skip
    if len(audit.classes) > 2:
        raise ValueError(f"a threshold is for two classes, and this model has {len(audit.classes)}")
    if audit.measured.fit is not None and audit.measured.fit.label_noise_ is not None:
        raise ValueError(
            "this model's probabilities are of true labels (label_noise), and the labels of these "
            "rows are recorded ones: choose the threshold of a model fitted without label_noise"
        )
    metric = costs if costs is not None else "fpr" if max_fpr is not None else "precision"
    choosing, judged = split_rows(audit.weights, random_state)
    usual = 0.5 if costs is None else _usual(metric_of(audit, costs).less(0.0))
    tried = sorted({usual, *_candidates(audit, choosing)})
    asked = {at: Extremes(audit, metric_of(audit, metric, at)) for at in tried}
    found = {at: _found(audit, judged, at) for at in tried if _is_defined(asked[at], judged)}
    wanted = None if costs is not None else float(stated[0])
    promises = {
        at: promise_of(asked[at], confidence, choosing, judged, len(tried), wanted) for at in found
    }
    if usual not in promises:
        raise NoThresholdError(f"no row is decided positive at the usual threshold {usual:.4g}")
    if wanted is None:
        best = min(promises, key=lambda at: (promises[at].value, -found[at]))
    else:
        sign = asked[usual].metric.worst_sign
        kept = [at for at in found if sign * promises[at].value <= sign * wanted]
        if not kept:
            raise NoThresholdError(
                f"no threshold promises {metric} {promises[usual].bound} {wanted:g} within epsilon "
                f"= {audit.problem.epsilon:g} on these {judged.size} rows: take more rows, a "
                "smaller radius or another limit"
            )
        best = max(kept, key=lambda at: (found[at], at))
    return ThresholdChoice(
        best, promises[best], usual, promises[usual], found[best], audit.classes[1], len(tried)
    )


def _usual(table: FloatArray) -> float:
    """The threshold that is best where probabilities are exact."""
    false_alarm, missed = table[0, 1] - table[0, 0], table[1, 0] - table[1, 1]
    if false_alarm <= 0.0 or missed <= 0.0:
        raise ValueError(
            "costs must make both wrong decisions dearer than the right ones, got "
            f"{table.tolist()} by label and decision"
        )
    return float(false_alarm / (false_alarm + missed))


def _candidates(audit: Adversary, choosing: IndexArray) -> list[float]:
    """Thresholds between scores of the rows that choose, half of them between positives'."""
    scores, positive = audit.scores[1][choosing], audit.codes[choosing] == 1
    found = []
    for some in (scores, scores[positive]):
        if some.size > 1:
            found += np.quantile(some, np.linspace(0.02, 0.98, _TRIED // 2)).tolist()
    # Not at a score, where both decisions would count.
    return [p for p in np.round(expit(np.array(found)), 6).tolist() if 0.0 < p < 1.0]


def _is_defined(asked: Extremes, judged: IndexArray) -> bool:
    """Whether the metric is, on the rows that judge."""
    below, weights = asked.metric.below, asked.audit.weights
    return below is None or float(weights[judged] @ asked.decisions.values(below)[judged]) > 0.0


def _found(audit: Adversary, judged: IndexArray, threshold: float) -> float:
    """The share of positives that are found at a threshold."""
    positive = audit.weights[judged] * (audit.codes[judged] == 1)
    above = expit(audit.scores[1][judged]) > threshold
    return float(positive @ above) / max(float(positive.sum()), 1e-300)
