"""The worst case of the number that people act on, and how much may go wrong until it is reached.

Any number that is a function of score and label can be asked about: log-loss, errors, the cost of
decisions at a threshold, rates such as precision, Brier score and calibration.  All of them are
exact over the Wasserstein ball (:mod:`.extremes`), but for what ``exact`` says.
"""

from __future__ import annotations

import itertools
import math
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..problem.label_costs import StatedKappa, flips_in_words
from ..problem.norms import Norm
from ..problem.parameters import check_epsilon
from ..rows.arrays import FloatArray
from ..rows.threads import one_blas_thread
from .audit_problem import audit_problem
from .extremes import Extremes
from .feature_risk import allowed_at
from .measured_model import radius_of_fit
from .metrics import metric_of
from .subgroups import Subgroup, subgroups


@dataclass(frozen=True)
class GroupGap:
    """The largest difference between two groups: ``over`` less ``under``, of all pairs."""

    value: float
    nominal: float
    over: str
    under: str


@dataclass(frozen=True)
class WorstCase:
    """A metric over the Wasserstein ball; ``float()`` is the worst value.

    Attributes
    ----------
    value, best, nominal : float
        The metric in the worst case, in the best case, and of the samples as they are.  The worst
        calibration is the one that is furthest from 0, on either side.
    low, high : float
        The least and the largest value in the ball.
    epsilon, kappa : float, or κ by label, or "by sample"
        The ball.
    metric : str
        What it is, with its threshold.
    n : int
        Samples.
    exact : bool
        Whether the worst value is attained in the limit; otherwise it may be a little too far out.
    group : str
        The part of the samples that this is about; empty for all of them.
    groups : tuple of WorstCase
        Each group of samples alone, within the same radius.
    gap : GroupGap or None
        The largest difference between two groups over the ball around all samples.
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
    gap: GroupGap | None = None

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        if self.metric == "calibration":
            said = f"between {self.low:.4g} and {self.high:.4g}"
        else:
            said = f"at {'least' if self.value < self.high else 'most'} {self.value:.4g}"
        lines = [
            f"{self.metric}: {said} for every distribution within epsilon = {self.epsilon:g} "
            f"({flips_in_words(self.epsilon, self.kappa)}) of these {self.n} rows; "
            f"{self.nominal:.4g} as they are, {self.best:.4g} in the best case"
        ]
        lines += [
            f"  {part.group} ({part.n} rows): {part.value:.4g} ({part.nominal:.4g} as they are)"
            for part in self.groups
        ]
        if self.gap is not None:
            lines.append(
                f"  {self.gap.over} over {self.gap.under}: by at most {self.gap.value:.4g} "
                f"({self.gap.nominal:.4g} as they are), the largest gap between two groups"
            )
        return "\n".join(lines)


def worst_case(
    model: Any,
    X: Any,
    y: ArrayLike,
    metric: Any,
    *,
    threshold: Any = 0.5,
    epsilon: float | None = None,
    kappa: Any = None,
    norm: str | Norm | None = None,
    feature_costs: Any = None,
    categories: Any = None,
    bounds: Any = None,
    space: str = "fitted",
    sample_weight: ArrayLike | None = None,
    groups: Any = None,
) -> WorstCase:
    """The worst and the best value of a metric over the Wasserstein ball around the samples.

    Parameters
    ----------
    model, X, y, kappa, norm, feature_costs, categories, bounds, space, sample_weight
        As in :func:`drlogit.worst_case_loss`; κ is by default the model's own, else 1.
    metric : str or dict
        ``"log_loss"``, ``"error"``, ``"brier"``, ``"calibration"`` (mean probability less share of
        positives), ``"tpr"``, ``"fpr"``, ``"precision"``, ``"npv"``, ``"net_benefit"``
        (``TP - FP·p/(1 - p)`` at the threshold p), or costs ``{(label, decision): cost}``, where
        pairs that are left out cost nothing.  For two classes also values
        ``{label: [v_0, …, v_m]}`` of the ranges between m ascending thresholds.  The positive class
        is the last of the two.
    threshold : float or list of float
        The probability from which on the decision is for the positive class.  Models of more than
        two classes decide for the most probable one.
    epsilon : float, optional
        Radius of the ball; by default the model's own.
    groups : optional
        Groups of samples, as in :func:`drlogit.audit`: each alone within the radius, and the
        largest difference between two of them.

    Returns
    -------
    WorstCase
        ``.value``, ``.best``, ``.nominal``; ``str()`` says it in words.
    """
    epsilon = check_epsilon(radius_of_fit(model) if epsilon is None else epsilon)
    with one_blas_thread:
        audit = audit_problem(
            model, X, y, epsilon=epsilon, kappa=kappa, norm=norm, feature_costs=feature_costs,
            categories=categories, bounds=bounds, space=space, sample_weight=sample_weight,
        )  # fmt: skip
    asked = Extremes(audit, metric_of(audit, metric, threshold))
    return with_groups(asked, epsilon, subgroups(groups, X, audit.weights.size))


def with_groups(asked: Extremes, epsilon: float, parts: tuple[Subgroup, ...]) -> WorstCase:
    """The record of a metric, with each group of samples and the largest gap between two."""
    whole, defined = worst_case_of(asked, epsilon), _defined(asked, parts)
    if not defined:
        return whole
    found = [
        worst_case_of(asked, epsilon, weights, f"{part.column} = {part.value}", part.members.size)
        for part, weights in defined
    ]
    gaps = [
        GroupGap(
            asked.gap(epsilon, w, v), found[i].nominal - found[j].nominal,
            found[i].group, found[j].group,
        )
        for (i, (one, w)), (j, (other, v)) in itertools.permutations(enumerate(defined), 2)
        if one.column == other.column
    ]  # fmt: skip
    largest = max(gaps, key=lambda gap: gap.value, default=None)
    return replace(whole, groups=tuple(found), gap=largest)


def worst_case_of(
    asked: Extremes,
    epsilon: float,
    weights: FloatArray | None = None,
    group: str = "",
    n: int | None = None,
) -> WorstCase:
    """The record of a metric, of all samples or of those that ``weights`` are for."""
    audit, sign = asked.audit, asked.metric.worst_sign
    if weights is not None:
        weights = weights / float(weights.sum())
    low, high = (asked.end(side, epsilon, weights) for side in (-1.0, 1.0))
    value, best = (high, low) if sign > 0.0 else (low, high)
    if asked.metric.name == "calibration":
        value = max(low, high, key=abs)
        best = min(max(low, 0.0), high)
        sign = math.copysign(1.0, value)
    return WorstCase(
        value, best, asked.nominal(weights), low, high, epsilon, audit.kappa, str(asked.metric),
        audit.weights.size if n is None else n, asked.is_exact(sign), group,
    )  # fmt: skip


def _defined(asked: Extremes, parts: tuple[Subgroup, ...]) -> list[tuple[Subgroup, FloatArray]]:
    """Groups in which the metric is defined, with the weights of their samples among all."""
    found = []
    for part in parts:
        weights = np.zeros_like(asked.audit.weights)
        weights[part.members] = asked.audit.weights[part.members]
        try:
            if float(weights.sum()) == 0.0:
                raise ValueError("the group has no weight")
            asked.nominal(weights)
        except ValueError as error:
            warnings.warn(
                f"{part.column} = {part.value} is left out: {error}", UserWarning, stacklevel=4
            )
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
    norm: str | Norm | None = None,
    feature_costs: Any = None,
    categories: Any = None,
    bounds: Any = None,
    space: str = "fitted",
    sample_weight: ArrayLike | None = None,
) -> float:
    """The largest expected log-loss of a model over the Wasserstein ball around the samples.

    Nothing is fitted: the model is taken as it is.  It is exact, not a bound; only of several
    classes with categories or bounds, which are taken as numbers, it is an upper bound.

    Parameters
    ----------
    model : estimator, Result or tuple (coef, intercept)
        One of ours, any fitted linear binary classifier or softmax of scikit-learn, a pipeline that
        ends in one, a search over them, or plain numbers.  Its score is read as log-odds, which is
        right for logistic models; the scores of other classifiers (``LinearSVC``,
        ``RidgeClassifier``) are not on that scale, so compare their errors
        (:func:`~drlogit.misclassification_bounds`) rather than their losses.
    X : array, sparse matrix or data frame of shape (n_samples, n_features)
        Samples, as the model takes them.
    y : array of shape (n_samples,)
        Labels, those of the model's ``classes_`` where it has them; else two kinds, of which the
        one that sorts last is the positive class.
    epsilon : float
        Radius of the ball, at least 0 (0: the samples as they are).
    kappa : float, dict, array of shape (n_samples,) or matrix
        Cost of flipping a label, positive; ``inf`` if labels are certain.  The adversary can
        flip at most a share ``epsilon / kappa`` of the labels.  By label or by sample as in
        :func:`~drlogit.solve`.
    norm : {"l1", "l2", "linf"}, optional
        Transport norm on the features; that of the fit, if the model is ours, else ``"l1"``.
    feature_costs : array of shape (n_features,), dict or "std", optional
        How hard each feature is to move; ``inf`` for features that cannot move.  As in
        :class:`~drlogit.DRLogisticRegression`; by default those of the fit, if the model is ours.
    categories, bounds : optional
        What features can be, as in :func:`~drlogit.solve`: the worst case is then one that could be
        in the table.  By default those of the fit, if the model is ours; else, in a pipeline, the
        columns of each ``OneHotEncoder`` are categories (``categories=[]``: they are not).
    space : {"fitted", "given"}
        Where distance is measured: in the space in which the classifier was fitted, for a pipeline
        what its last step sees, so that the answer on the training data is that of the fit; or in
        the units of X as given, if all steps scale, shift or choose columns.
    sample_weight : array of shape (n_samples,), optional
        Non-negative weights, of which only the proportions matter.

    Returns
    -------
    float
        Expected log-loss in nats.
    """
    with one_blas_thread:
        audit = audit_problem(
            model, X, y, epsilon=epsilon, kappa=kappa, norm=norm,
            feature_costs=feature_costs, categories=categories, bounds=bounds, space=space,
            sample_weight=sample_weight,
        )  # fmt: skip
        return Extremes(audit, metric_of(audit, "log_loss")).end(1.0, audit.problem.epsilon)


@dataclass(frozen=True)
class BreakingPoint:
    """How much may go wrong until a metric reaches a limit.

    Attributes
    ----------
    epsilon : float
        The least radius of a ball in which the limit is reached: 0 if it is already, ``inf`` if no
        radius does.
    limit, nominal : float
        The limit, and the metric of the samples as they are.
    metric : str
        What it is, with its threshold.
    allowed : tuple of str
        What the radius means: which share of labels wrong, numbers off by how much.
    exact : bool
        Whether the limit is reached at that radius; otherwise it may be a little too small.
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
        now = f"{self.metric} is {self.nominal:.4g} on the rows as they are"
        if math.isinf(self.epsilon):
            return f"{now}; no radius takes it to {self.limit:.4g}"
        if self.epsilon == 0.0:
            return f"{now}, which is beyond {self.limit:.4g} already"
        means = "".join(f"\n  {sentence}" for sentence in self.allowed)
        return f"{now} and can reach {self.limit:.4g} from epsilon = {self.epsilon:.4g} on:{means}"


def breaking_point(
    model: Any,
    X: Any,
    y: ArrayLike,
    metric: Any,
    limit: float,
    *,
    threshold: Any = 0.5,
    kappa: Any = None,
    norm: str | Norm | None = None,
    feature_costs: Any = None,
    categories: Any = None,
    bounds: Any = None,
    space: str = "fitted",
    sample_weight: ArrayLike | None = None,
) -> BreakingPoint:
    """The least radius at which the worst case of a metric reaches a limit.

    Parameters
    ----------
    model, X, y, metric, threshold, kappa, norm, feature_costs, categories, bounds, space, \
sample_weight
        As in :func:`worst_case`.
    limit : float
        The value that is not to be exceeded or, of precision and other benefits, not to be fallen
        short of.  A negative limit of the calibration is one from below.

    Returns
    -------
    BreakingPoint
        ``.epsilon``; ``str()`` says what that radius allows to be wrong.
    """
    if not math.isfinite(limit):
        raise ValueError(f"limit must be a finite number, got {limit!r}")
    with one_blas_thread:
        audit = audit_problem(
            model, X, y, epsilon=0.0, kappa=kappa, norm=norm, feature_costs=feature_costs,
            categories=categories, bounds=bounds, space=space, sample_weight=sample_weight,
        )  # fmt: skip
    asked = Extremes(audit, metric_of(audit, metric, threshold))
    sign = asked.metric.worst_sign
    if asked.metric.name == "calibration":
        sign = math.copysign(1.0, limit)
    epsilon = asked.radius_of(float(limit), sign)
    allowed = allowed_at(audit, np.array([epsilon]))[0] if math.isfinite(epsilon) else []
    return BreakingPoint(
        epsilon, float(limit), asked.nominal(), str(asked.metric), tuple(allowed),
        asked.is_exact(sign),
    )  # fmt: skip
