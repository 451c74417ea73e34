"""The worst case of a metric over the ball, its distribution, and the radius at a limit."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..problem.ball import Ball
from ..problem.parameters import check_epsilon
from ..rows.arrays import FloatArray
from ..rows.warn import warn
from .adversary import Adversary
from .distribution import WorstCaseDistribution, worst_distribution
from .metrics import Metric
from .words import Record, rounded, warning_once, wrapped

#: The largest number of groups: a table with more would not be read.
MOST_GROUPS = 30


@dataclass(frozen=True, eq=False, kw_only=True)
class WorstCase(Record):
    """A metric over the ball; ``float()`` is the worst value.

    Attributes
    ----------
    value, best, nominal : float
        The metric in the worst case, in the best case, and on the rows as they are.  The best case
        of the log-loss, and of the error of several classes, is a bound: no distribution in the
        ball is better.
    metric : str
        Its name, with the positive class and the threshold.
    is_benefit : bool
        Whether more is better, as of the recall.
    ball : Ball
        In plain numbers.
    n : int
        The number of rows.
    exact : bool
        Whether distributions in the ball come arbitrarily close to ``value``.  Otherwise it is a
        bound that may be too pessimistic.
    group : str
        The group of rows that this is about; empty for all rows.
    by_group : tuple of WorstCase
        The worst case of each group alone, in a ball of the same radius.
    """

    best: float
    exact: bool
    _more = ("best", "exact")
    _adversary: Adversary = field(repr=False)
    _metric: Metric = field(repr=False)
    _weights: FloatArray = field(repr=False)

    def __str__(self) -> str:
        whose = f" with {self.group}" if self.group else ""
        best = rounded(self.best, 1.0 if self.is_benefit else -1.0)
        lines = [
            f"{self.metric} is {self.nominal:.4g} on these {self.n} rows{whose}. Within the ball "
            f"of radius {self.ball.epsilon:.4g} it is {self.bound}, and "
            f"at {'most' if self.is_benefit else 'least'} {best}.",
            *self.ball.allowed(),
        ]
        if not self.exact:
            lines.append("The worst case is a bound, which may be too pessimistic.")
        if self._adversary.from_rows:
            lines.append("Deviations are those of these rows, not those of the rows of the fit.")
        lines += [
            f"  {part.group} ({part.n} rows): {part.nominal:.4g}; {part.bound} in the worst case"
            for part in self.by_group
        ]
        return wrapped(lines)

    def distribution(self) -> WorstCaseDistribution:
        """A distribution in the ball at which the metric has its worst value.

        The worst log-loss is approached, not attained, where features move: the distribution is
        within 1e-4 nats of it.  Decisions change 1e-9 beyond the threshold.
        """
        return worst_distribution(self._adversary, self._metric, self._weights, self.value)

    def breaking_point(self, limit: float) -> BreakingPoint:
        """The least radius at which the worst value reaches a limit.

        Parameters
        ----------
        limit : float
            The value that the metric must not exceed or, for benefits such as recall, must not fall
            below.

        Returns
        -------
        BreakingPoint
        """
        if not math.isfinite(limit):
            raise ValueError(f"limit must be a finite number, got {limit!r}")
        epsilon = self._adversary.radius_of(self._metric, float(limit), self._weights)
        ball = self.ball.replace(epsilon=epsilon) if math.isfinite(epsilon) else None
        return BreakingPoint(epsilon, ball, float(limit), self)


@dataclass(frozen=True, eq=False)
class BreakingPoint:
    """How much may go wrong until a metric reaches a limit; ``float()`` is the radius.

    Attributes
    ----------
    epsilon : float
        The least radius at which the worst value reaches the limit: 0 if the rows are there as they
        are, or if any change brings them there, and ``inf`` if no radius does.
    ball : Ball or None
        The ball of this radius; its sentences say what may be wrong.  None if there is no radius.
    limit : float
        The limit.
    worst : WorstCase
        The worst case that it is about.  If that is not exact, the radius may be too small.
    """

    epsilon: float
    ball: Ball | None
    limit: float
    worst: WorstCase = field(repr=False)

    def __float__(self) -> float:
        return self.epsilon

    def __str__(self) -> str:
        now = f"{self.worst.metric} is {self.worst.nominal:.4g} on these rows"
        limit = f"{self.limit:.6g}"
        if self.ball is None:
            return f"{now}. It cannot reach {limit} at any radius."
        if self.epsilon == 0.0:
            ahead = self.limit - self.worst.nominal
            there = ahead >= 0.0 if self.worst.is_benefit else ahead <= 0.0
            found = "which has reached" if there else "and the least change brings it to"
            return f"{now}, {found} the limit {limit}."
        least = rounded(self.epsilon, -1.0)
        return wrapped([f"{now}. It reaches {limit} at radius {least}:", *self.ball.allowed()])


@warning_once
def worst_case(
    model: Any,
    X: Any,
    y: ArrayLike,
    metric: Any = "log_loss",
    *,
    ball: Ball | None = None,
    threshold: float = 0.5,
    pos_label: Any = None,
    by: Any = None,
    sample_weight: ArrayLike | None = None,
) -> WorstCase:
    """Find the worst and the best value of a metric over the ball around the rows.

    Parameters
    ----------
    model : estimator, Result or tuple (coef, intercept)
        A model of this package or a fitted linear classifier of scikit-learn, also at the end of a
        pipeline and in a search, a ``FrozenEstimator`` or a ``FixedThresholdClassifier``.
    X : array, sparse matrix or data frame
        Rows in the form in which the model takes them.
    y : array of shape (n_samples,)
        Labels among the model's ``classes_``.  For plain numbers, two different labels, of which
        the one that sorts last has positive scores.
    metric : str or dict
        ``"log_loss"``, ``"error"``, ``"recall"``, ``"fpr"``, ``"precision"``, ``"npv"``,
        ``"net_benefit"`` (``TP - FP·p/(1 - p)`` at the threshold p), or costs
        ``{(label, decision): cost}``, where pairs that are not named cost nothing.  Models of
        several classes have ``"log_loss"`` and ``"error"``; their categories and bounds count as
        numbers, and their error is a bound.
    ball : Ball, optional
        What may be wrong with the rows; by default the ball of the fit.  A model that was not
        fitted with a ball needs one, in the units of the columns of X.  Its standard deviations are
        those of the rows of the fit: of the pipeline's ``StandardScaler``, or of
        ``ball.resolve(X_train, y_train)``.  Otherwise they are those of X, and the result says so.
    threshold : float
        Rows are decided positive if the probability of the positive class is at least this.  A
        ``FixedThresholdClassifier`` has its own in place of 0.5.
    pos_label : label, optional
        The positive class; by default the second of ``classes_``.
    by : optional
        Groups of rows: the name of a column of X or a list of names, one value for each row, or a
        dict of such values.
    sample_weight : array of shape (n_samples,), optional
        Non-negative weights; only their proportions matter.

    Returns
    -------
    WorstCase
        ``.value``, ``.best``, ``.nominal`` and ``.by_group``; ``str()`` is a summary in words,
        ``.distribution()`` attains the value, and ``.breaking_point(limit)`` says how much may go
        wrong until the metric reaches a limit.

    Examples
    --------
    >>> import drlogit
    >>> X, y = drlogit.datasets.make_synthetic(200, 3, random_state=0)
    >>> model = drlogit.DRLogisticRegression(epsilon=0.05, kappa=1.0).fit(X, y)
    >>> worst = drlogit.worst_case(model, X, y, "fpr", threshold=0.4)
    >>> worst.best <= worst.nominal <= worst.value
    True
    """
    adversary = Adversary.of(model, X, y, ball, sample_weight)
    asked = adversary.metric(metric, threshold, pos_label)
    whole = _worst_case(adversary, asked, adversary.weights)
    if math.isnan(whole.nominal):
        raise ValueError(f"{asked} is not defined: no row counts for its denominator")
    groups = groups_of(by, X, adversary, asked)
    parts = [_worst_case(adversary, asked, weights, name) for name, weights in groups.items()]
    return replace(whole, by_group=tuple(parts))


def _worst_case(
    adversary: Adversary, metric: Metric, weights: FloatArray, group: str = ""
) -> WorstCase:
    """The record of all rows, or of those with positive weights."""
    epsilon = check_epsilon(adversary.ball.epsilon)
    return WorstCase(
        value=adversary.value(metric, epsilon, None, weights),
        best=adversary.value(metric, epsilon, -metric.sign, weights),
        nominal=adversary.nominal(metric, weights),
        metric=str(metric),
        is_benefit=metric.sign < 0.0,
        ball=adversary.ball,
        n=int(np.count_nonzero(weights)) if group else weights.size,
        exact=adversary.is_exact(metric),
        group=group,
        _adversary=adversary,
        _metric=metric,
        _weights=weights,
    )


def groups_of(
    by: Any, X: Any, adversary: Adversary, metric: Metric, among: Any = True
) -> dict[str, FloatArray]:
    """The weights of the rows ``among`` some of each group in which a metric is defined.

    Groups are those by columns of X (a name or several) or by values of the rows.
    """
    n_samples = adversary.codes.size
    if by is None:
        return {}
    names = [by] if isinstance(by, str) else by
    if isinstance(by, Mapping):
        columns = dict(by)
    elif isinstance(names, list) and set(map(type, names)) == {str} and len(names) != n_samples:
        columns = {name: _column(X, name) for name in names}
    else:
        columns = {getattr(by, "name", None) or "group": by}
    found = {}
    for name, given in columns.items():
        values = np.asarray(given)
        if values.shape != (n_samples,):
            raise ValueError(f"by must have one value per row, {n_samples}, got {values.shape}")
        texts = np.array(["missing" if v is None or v != v else str(v) for v in values.tolist()])
        levels = np.unique(texts)
        if levels.size > MOST_GROUPS:
            raise ValueError(
                f"by must have at most {MOST_GROUPS} different values, got {levels.size} in "
                f"{name!r:.60}: cut it into ranges"
            )
        for level in levels:
            weights = np.where((texts == level) & among, adversary.weights, 0.0)
            weights = weights / weights.sum() if weights.any() else weights
            if weights.any() and not math.isnan(adversary.nominal(metric, weights)):
                found[f"{name} = {level}"] = weights
                continue
            warn(
                f"group {name} = {level} is skipped: {metric} is not defined there",
            )
    return found


def _column(X: Any, name: str) -> Any:
    if name not in list(getattr(X, "columns", ())):
        raise ValueError(f"by names the column {name!r:.60}, which X does not have")
    return X[name]
