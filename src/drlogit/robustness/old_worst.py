"""The worst case of a metric over the Wasserstein ball, and the radius at which it breaks a limit.

A metric is a function of score and label: log-loss, error, the cost of decisions at a threshold,
or rates such as precision.  Worst cases are exact (:mod:`.extremes`),
except where ``exact`` is False.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ..problem.label_costs import StatedKappa, flips_in_words
from ..rows.arrays import FloatArray
from .audit_problem import BallOptions, audit_problem
from .extremes import Extremes
from .feature_risk import allowed_at
from .old_metrics import metric_of
from .subgroups import Subgroup, subgroups

if TYPE_CHECKING:
    from typing_extensions import Unpack


@dataclass(frozen=True)
class WorstCase:
    """A metric over the Wasserstein ball; ``float()`` is the worst value.

    Attributes
    ----------
    value, best, nominal : float
        The metric in the worst case, in the best case, and on the samples as they are.
    low, high : float
        The least and the largest value in the ball.
    epsilon, kappa : float, or κ by label, or "by sample"
        The ball.
    metric : str
        Its name, with the threshold.
    n : int
        The number of samples.
    exact : bool
        Whether some distribution in the ball comes arbitrarily close to the worst value; otherwise
        it is a bound that may be slightly too pessimistic.
    group : str
        The group of samples that the record describes; empty for all samples.
    groups : tuple of WorstCase
        The record of each group, in a ball of the same radius around the group alone.
    """

    value: float
    best: float
    nominal: float
    low: float
    high: float
    epsilon: float
    kappa: StatedKappa
    metric: str
    n: int
    exact: bool
    group: str = ""
    groups: tuple[WorstCase, ...] = ()

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        said = f"at {'least' if self.value < self.high else 'most'} {self.value:.4g}"
        lines = [
            f"{self.metric} is {self.nominal:.4g} on these {self.n} rows. Within epsilon = "
            f"{self.epsilon:g} of them ({flips_in_words(self.epsilon, self.kappa)}) it is {said}; "
            f"the best case is {self.best:.4g}."
        ]
        lines += [
            f"  {part.group} ({part.n} rows): {part.nominal:.4g}; worst case {part.value:.4g}"
            for part in self.groups
        ]
        return "\n".join(lines)


@dataclass(frozen=True)
class BreakingPoint:
    """The radius at which the worst case of a metric reaches a limit; ``float()`` is the radius.

    Attributes
    ----------
    epsilon : float
        The smallest radius of a ball that contains a distribution at the limit: 0 if the samples
        are already past it, ``inf`` if no radius is large enough.
    limit, nominal : float
        The limit, and the metric on the samples as they are.
    metric : str
        Its name, with the threshold.
    allowed : tuple of str
        The errors in the data that the radius allows, one sentence each.
    exact : bool
        Whether the radius is exact; otherwise it may be slightly too small.
    """

    epsilon: float
    limit: float
    nominal: float
    metric: str
    allowed: tuple[str, ...]
    exact: bool

    def __float__(self) -> float:
        return self.epsilon

    def __str__(self) -> str:
        now = f"{self.metric} is {self.nominal:.4g} on these rows"
        if math.isinf(self.epsilon):
            return f"{now}. It cannot reach {self.limit:.4g} at any radius."
        if self.epsilon == 0.0:
            return f"{now}, which is already past the limit {self.limit:.4g}."
        means = "".join(f"\n  {sentence}" for sentence in self.allowed)
        at = f"It can reach {self.limit:.4g} at epsilon = {self.epsilon:.4g}"
        return f"{now}. {at}, which allows:{means}"


def worst_case(
    model: Any,
    X: Any,
    y: ArrayLike,
    metric: Any,
    *,
    threshold: float = 0.5,
    epsilon: float | None = None,
    kappa: Any = None,
    groups: Any = None,
    **ball: Unpack[BallOptions],
) -> WorstCase:
    """Find the worst and the best value of a metric over the Wasserstein ball around the samples.

    Parameters
    ----------
    model, X, y
        As in :func:`drlogit.worst_case_loss`.
    metric : str or dict
        ``"log_loss"``, ``"error"``, ``"tpr"``, ``"fpr"``, ``"precision"``, ``"npv"``,
        ``"net_benefit"``
        (``TP - FP·p/(1 - p)`` at the threshold p), or costs ``{(label, decision): cost}``, where
        omitted pairs cost nothing.  The positive class is the second of the two.
    threshold : float
        The model predicts the positive class if its probability is at least this: always at 0,
        never at 1.  Models of more than two classes predict the most probable class and take no
        threshold.
    epsilon, kappa : optional
        Radius of the ball and cost of a flipped label; by default those of the model's fit (κ = 1
        for other models, which need an epsilon).
    groups : optional
        Groups of samples, as in :func:`drlogit.audit`.  The record then has the worst case of each
        group alone, and the largest difference between two groups.
    **ball
        ``norm``, ``feature_costs``, ``categories``, ``bounds``, ``space`` and ``sample_weight`` as
        in :func:`drlogit.worst_case_loss`.

    Returns
    -------
    WorstCase
        ``.value``, ``.best`` and ``.nominal``; ``str()`` is a summary in words.

    Examples
    --------
    >>> import drlogit
    >>> X, y = drlogit.datasets.make_synthetic(200, 3, random_state=0)
    >>> model = drlogit.DRLogisticRegression(epsilon=0.05, kappa=1.0).fit(X, y)
    >>> found = drlogit.worst_case(model, X, y, "fpr", threshold=0.4)
    >>> found.best <= found.nominal <= found.value
    True
    """
    audit = audit_problem(model, X, y, epsilon=epsilon, kappa=kappa, **ball)
    asked = Extremes(audit, metric_of(audit, metric, threshold))
    return with_groups(asked, audit.problem.epsilon, subgroups(groups, X, audit.weights.size))


def breaking_point(
    model: Any,
    X: Any,
    y: ArrayLike,
    metric: Any,
    limit: float,
    *,
    threshold: float = 0.5,
    kappa: Any = None,
    **ball: Unpack[BallOptions],
) -> BreakingPoint:
    """Find the smallest radius at which the worst case of a metric reaches a limit.

    Parameters
    ----------
    model, X, y, metric, threshold, kappa, **ball
        As in :func:`drlogit.worst_case`.
    limit : float
        The value that the metric must not exceed or, for benefits such as precision, must not fall
        below.

    Returns
    -------
    BreakingPoint
        ``.epsilon``; ``str()`` also lists the errors in the data that this radius allows.

    Examples
    --------
    >>> import drlogit
    >>> X, y = drlogit.datasets.make_synthetic(200, 3, random_state=0)
    >>> model = drlogit.DRLogisticRegression(epsilon=0.05, kappa=1.0).fit(X, y)
    >>> drlogit.breaking_point(model, X, y, "error", 0.5).epsilon > 0.0
    True
    """
    if not math.isfinite(limit):
        raise ValueError(f"limit must be a finite number, got {limit!r}")
    audit = audit_problem(model, X, y, epsilon=0.0, kappa=kappa, **ball)
    asked = Extremes(audit, metric_of(audit, metric, threshold))
    sign = asked.metric.worst_sign
    epsilon = asked.radius_of(float(limit), sign)
    allowed = allowed_at(audit, np.array([epsilon]))[0] if math.isfinite(epsilon) else []
    return BreakingPoint(
        epsilon, float(limit), asked.nominal(), str(asked.metric), tuple(allowed),
        asked.is_exact(sign),
    )  # fmt: skip


def with_groups(asked: Extremes, epsilon: float, parts: tuple[Subgroup, ...]) -> WorstCase:
    """The record of a metric, with each group of samples and the largest gap between two."""
    whole, defined = worst_case_of(asked, epsilon), _defined(asked, parts)
    if not defined:
        return whole
    found = [
        worst_case_of(asked, epsilon, weights, str(part), part.members.size)
        for part, weights in defined
    ]
    return replace(whole, groups=tuple(found))


def worst_case_of(
    asked: Extremes,
    epsilon: float,
    weights: FloatArray | None = None,
    group: str = "",
    n: int | None = None,
) -> WorstCase:
    """The record of a metric on all samples, or on those with positive ``weights``."""
    audit, sign = asked.audit, asked.metric.worst_sign
    if weights is not None:
        weights = weights / float(weights.sum())
    low, high = (asked.end(side, epsilon, weights) for side in (-1.0, 1.0))
    value, best = (high, low) if sign > 0.0 else (low, high)
    return WorstCase(
        value, best, asked.nominal(weights), low, high, epsilon, audit.kappa, str(asked.metric),
        audit.weights.size if n is None else n, asked.is_exact(sign), group,
    )  # fmt: skip


def _defined(asked: Extremes, parts: tuple[Subgroup, ...]) -> list[tuple[Subgroup, FloatArray]]:
    """The groups in which the metric is defined, each with weights that are 0 elsewhere."""
    found = []
    for part in parts:
        weights = part.part_of(asked.audit.weights)
        try:
            if float(weights.sum()) == 0.0:
                raise ValueError("the group has no weight")
            asked.nominal(weights)
        except ValueError as error:
            warnings.warn(f"group {part} is skipped: {error}", UserWarning, stacklevel=4)
        else:
            found.append((part, weights))
    return found


def worst_case_loss(
    model: Any,
    X: Any,
    y: ArrayLike,
    *,
    epsilon: float,
    kappa: Any,
    **ball: Unpack[BallOptions],
) -> float:
    """Compute the largest expected log-loss over the Wasserstein ball around the samples.

    The model is not refitted.  The value is exact, with one exception: for models of several
    classes, categories and bounds are treated as free numbers, which gives an upper bound.

    Parameters
    ----------
    model : estimator, Result or tuple (coef, intercept)
        A model of this package, any fitted linear binary classifier or softmax of scikit-learn, a
        pipeline that ends in one, a search over such models, or plain numbers.  The score is read
        as log-odds, which is right for logistic models.  Other classifiers (``LinearSVC``,
        ``RidgeClassifier``) have scores on another scale: compare their errors
        (:func:`~drlogit.misclassification_bounds`), not their losses.
    X : array, sparse matrix or data frame of shape (n_samples, n_features)
        Samples in the form in which the model takes them.
    y : array of shape (n_samples,)
        Labels among the model's ``classes_``.  For plain numbers, two different labels, of which
        the one that sorts last is the positive class.
    epsilon : float
        Radius of the ball, at least 0 (0: the samples as they are).
    kappa : float, dict or array of shape (n_samples,)
        Cost of flipping a label, positive; ``inf`` if labels are certain.  The adversary can
        flip at most a share ``epsilon / kappa`` of the labels.  By label or by sample as in
        :func:`~drlogit.solve`.
    norm : {"l1", "l2", "linf"}, optional
        Transport norm on the features; by default that of the fit, or ``"l1"`` for other models.
    feature_costs : array of shape (n_features,), dict or "std", optional
        How hard each feature is to move; ``inf`` for features that cannot move.  As in
        :class:`~drlogit.DRLogisticRegression`; by default those of the fit.
    categories, bounds : optional
        The values that features can take, as in :func:`~drlogit.solve`, so that the worst case
        keeps to them.  By default those of the fit.  In other pipelines the columns of each
        ``OneHotEncoder`` are a category; ``categories=[]`` turns this off.
    space : {"fitted", "given"}
        Where distance is measured.  ``"fitted"`` is the space in which the classifier was fitted
        (for a pipeline, the input of its last step), so that the answer on the training data is
        that of the fit.  ``"given"`` means the units of X, for pipelines whose steps only scale,
        shift or choose columns.
    sample_weight : array of shape (n_samples,), optional
        Non-negative weights; only their proportions matter.

    Returns
    -------
    float
        Expected log-loss in nats.

    Examples
    --------
    >>> import drlogit
    >>> X, y = drlogit.datasets.make_synthetic(200, 5, random_state=0)
    >>> model = drlogit.DRLogisticRegression(epsilon=0.05).fit(X, y)
    >>> worst = drlogit.worst_case_loss(model, X, y, epsilon=0.05, kappa=1.0)
    >>> bool(abs(worst - model.worst_case_loss_[0]) < 1e-6)  # the number of the fit itself
    True
    """
    audit = audit_problem(model, X, y, epsilon=epsilon, kappa=kappa, **ball)
    return Extremes(audit, metric_of(audit, "log_loss")).end(1.0, audit.problem.epsilon)
