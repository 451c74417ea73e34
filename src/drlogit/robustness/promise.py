"""What holds for a fixed model in the population that unseen rows come from.

Weak duality holds at every price γ of transport that was fixed without the rows of the limit:

    sup { E_Q f : W(Q, P) ≤ ε }  ≤  γε + E_P[R_γ]        (P the unknown distribution of the rows).

``E_P[R_γ]`` is the mean of independent numbers, one for each row, that lie between the ends of f,
so it has an upper confidence limit for every number of rows (:mod:`.limits`).  A fifth of the rows,
drawn at random, chooses γ; the others give the limit.

The log-loss has no largest value.  Its limit takes for one the largest loss that any of these rows
would have with another label, so it holds approximately.

A ratio ``E[a]/E[b]`` is at most θ where ``sup E[a - θ b] ≤ 0``.  Values of θ are tested one after
another, from the safe end on, and the last one before the first failure is promised.  A false
promise needs a false rejection of the least true one, so each test takes the whole confidence
(fixed-sequence testing).

Limits that are given together hold at once: each may fail with an equal share of what the
confidence leaves (a union bound).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import bdtrc

from ..estimators.robust_classifier import result_of
from ..problem.ball import Ball
from ..rows.arrays import FloatArray, IndexArray
from ..rows.checks import ParameterError
from .adversary import Adversary
from .limits import bounded_limit
from .metrics import Metric
from .words import Record, warning_once, wrapped
from .worst_case import groups_of

#: The share of the rows that choose prices; it costs the limits a tenth of their precision.
_CHOOSING = 0.2

#: With fewer rows nothing is promised.
LEAST_ROWS = 10

#: Scores are the same up to this share of their size.
_SAME = 1e-10

#: Rows are refused if chance would have as many scores of the fit among them less often than this.
_CHANCE = 1e-4

#: Ratios are promised in steps of this size.
_STEP = 0.01


@dataclass(frozen=True, eq=False, kw_only=True)
class Promise(Record):
    """A limit of a metric in the population that unseen rows come from; ``float()`` is the limit.

    Attributes
    ----------
    value, nominal : float
        The limit, from above or, for benefits such as recall, from below; and the metric on the
        rows as they are.
    metric : str
        Its name, with the positive class and the threshold.
    is_benefit : bool
        Whether the limit is one from below.
    ball : Ball
        What may be wrong, in plain numbers.
    confidence : float
        The probability with which all limits hold, those of groups included.
    n : int
        The number of rows that the limit rests on; a quarter as many chose the price of transport.
    assumptions : str
        What the limit assumes, in a sentence.
    group : str
        The group of rows that this is about; empty for all rows.
    by_group : tuple of Promise
        The promise for each group of ``by``.
    """

    confidence: float
    assumptions: str
    _more = ("confidence",)

    def __str__(self) -> str:
        return wrapped(self.sentences())

    def sentences(self) -> Iterator[str]:
        """The statement, then what it rests on."""
        start = "Approximately, with" if self.metric.startswith("log_loss") else "With"
        yield (
            f"{start} {100.0 * self.confidence:.10g} % confidence, {self.metric} is {self.bound} "
            f"in the population of these {self.n} rows and in every one within the ball around it. "
            f"On these rows it is {self.nominal:.4g}."
        )
        for part in self.by_group:
            yield f"  {part.group}: {part.bound} ({part.nominal:.4g} on {part.n} rows)"
        yield "What the ball allows:"
        for sentence in self.ball.allowed():
            yield f"  {sentence}"
        yield self.assumptions


@warning_once
def guarantee(
    model: Any,
    X: Any,
    y: ArrayLike,
    metric: Any = "error",
    *,
    ball: Ball | None = None,
    threshold: float = 0.5,
    pos_label: Any = None,
    by: Any = None,
    confidence_level: float = 0.95,
    random_state: Any = None,
) -> Promise:
    """Limit a metric of a model in the population that unseen rows come from.

    The limit holds in every population within the ball around that of the rows.  For all metrics
    but the log-loss it holds for every number of rows; how close it is to the truth depends on that
    number.

    Parameters
    ----------
    model : estimator, Result or tuple (coef, intercept)
        As in :func:`drlogit.worst_case`.
    X, y
        Rows that were used neither to fit nor to choose the model; they all count alike.
    metric, threshold, pos_label
        As in :func:`drlogit.worst_case`.
    ball : Ball, optional
        By default that of the fit.  In a ball that needs standard deviations, they must be those of
        the rows of the fit: for models that do not know them, ``ball.resolve(X_train, y_train)``.
    by : optional
        Groups of rows that get limits of their own, as in :func:`drlogit.worst_case`.
    confidence_level : float
        The probability with which all limits hold together.
    random_state : int, Generator or None
        Draws the fifth of the rows that chooses the price of transport.

    Returns
    -------
    Promise
        ``.value`` is the limit; ``str()`` is the statement in words, with its assumptions.

    Examples
    --------
    >>> import drlogit
    >>> X, y = drlogit.datasets.make_synthetic(400, 3, random_state=0)
    >>> model = drlogit.DRLogisticRegression(epsilon=0.02).fit(X[:200], y[:200])
    >>> promise = drlogit.guarantee(model, X[200:], y[200:], random_state=0)
    >>> promise.value >= promise.nominal
    True
    """
    rows = UnseenRows.of(model, X, y, ball, confidence_level, random_state)
    asked = rows.adversary.metric(metric, threshold, pos_label)
    if math.isnan(rows.nominal(asked, rows.judging)):
        raise ValueError(f"{asked} is not defined in these rows: none counts for its denominator")
    judging = np.isin(np.arange(rows.adversary.codes.size), rows.judging)
    groups = groups_of(by, X, rows.adversary, asked, judging)
    alpha = (1.0 - confidence_level) / (1 + len(groups))
    parts = []
    for name, weights in groups.items():
        members = rows.judging[weights[rows.judging] > 0.0]
        parts.append(replace(rows.promise(asked, alpha, members), group=name))
    return replace(rows.promise(asked, alpha), by_group=tuple(parts))


@dataclass(frozen=True, eq=False)
class UnseenRows:
    """Rows that a model has not seen: some choose prices, the others judge.

    Both are in random order.
    """

    adversary: Adversary
    choosing: IndexArray
    judging: IndexArray
    confidence: float

    @classmethod
    def of(
        cls, model: Any, X: Any, y: Any, ball: Ball | None, confidence: Any, random_state: Any
    ) -> UnseenRows:
        """Check the rows and draw those that choose; ``ValueError`` says what is wrong."""
        if not (isinstance(confidence, int | float) and 0.0 < confidence < 1.0):
            raise ParameterError(
                "confidence_level", f"must lie between 0 and 1, got {confidence!r}"
            )
        adversary = Adversary.of(model, X, y, ball)
        size = adversary.codes.size
        if size < LEAST_ROWS:
            raise ValueError(
                f"a promise needs at least {LEAST_ROWS} rows that the model has not seen, and is "
                f"of use from about 100 on, got {size}"
            )
        if adversary.from_rows:
            raise ValueError(
                "the ball is stated in shares and standard deviations of the rows of the fit, "
                "which this model does not know: pass ball=ball.resolve(X_train, y_train)"
            )
        _refuse_seen_rows(adversary)
        order = np.random.default_rng(random_state).permutation(size)
        choosing, judging = np.split(order, [max(int(_CHOOSING * size), 2)])
        return cls(adversary, choosing, judging, confidence)

    def nominal(self, metric: Metric, some: IndexArray) -> float:
        """The metric of some rows as they are; NaN if it is not defined there."""
        return self.adversary.nominal(metric, _alike(some, self.adversary.codes.size))

    def promise(
        self,
        metric: Metric,
        alpha: float,
        some: IndexArray | None = None,
        wanted: float | None = None,
    ) -> Promise:
        """The limit on the rows that judge, or on some of them, that fails with probability α.

        Of a ratio with a ``wanted`` limit it is that one, or what is promised in its place.
        """
        some = self.judging if some is None else some
        priced = self.priced(metric)
        if metric.below is not None:
            value = self._limit_of_ratio(metric, some, alpha, wanted)
        else:
            value = metric.sign * priced.limit(some, alpha)
        assumed = "the rows are independent draws from one population"
        if metric.name == "log_loss":
            assumed += f", no row of which has a loss above {priced.high:.3g}"
        return Promise(
            value=value,
            nominal=self.nominal(metric, some),
            metric=str(metric),
            is_benefit=metric.sign < 0.0,
            ball=self.adversary.ball,
            confidence=self.confidence,
            n=some.size,
            assumptions=f"Assumed: {assumed}, and the model was chosen without them.",
        )

    def priced(self, metric: Metric, theta: float = 0.0) -> PricedRows:
        """What each row is worth to the adversary; of a ratio ``E[a]/E[b]`` in ``±(a - θ b)``."""
        hull = self.adversary.hull(metric, theta=theta)
        high = hull.most
        if math.isinf(high):  # the largest loss that these rows can have
            flipped = hull.start + np.maximum(self.adversary.leads, 0.0)
            high = float(np.maximum(flipped, hull.at_price(0.0)).max())
        epsilon = self.adversary.ball.epsilon
        if not epsilon:
            return PricedRows(hull.start, 0.0, hull.least, high)
        chosen = replace(hull, weights=_alike(self.choosing, hull.start.size))
        price = chosen.price(epsilon)
        return PricedRows(hull.at_price(price), price * epsilon, hull.least, high)

    def _limit_of_ratio(
        self, metric: Metric, some: IndexArray, alpha: float, wanted: float | None
    ) -> float:
        """The last θ that passes, from the safe end on; a ``wanted`` one after fewer steps."""
        sign = metric.sign
        promised = 0.5 + 0.5 * sign
        steps = np.round(promised - sign * np.arange(_STEP, 1.0, _STEP), 6)
        if wanted is not None:
            steps = np.append(steps[9::10][sign * steps[9::10] > sign * wanted], wanted)
        for theta in steps.tolist():
            if self.priced(metric, theta).limit(some, alpha) > 0.0:
                break
            promised = theta
        return promised


@dataclass(frozen=True, eq=False)
class PricedRows:
    """What each row is worth to the adversary at a price, and what the whole budget costs."""

    values: FloatArray
    paid: float
    low: float
    high: float

    def mean(self, some: IndexArray) -> float:
        """The bound on the worst case of some rows themselves."""
        return float(self.values[some].mean()) + self.paid

    def limit(self, some: IndexArray, alpha: float) -> float:
        """An upper limit that fails with a probability of at most ``alpha``."""
        values = np.clip(self.values[some], self.low, self.high)
        limit = bounded_limit(values, 1.0 - alpha, low=self.low, high=self.high)
        return min(limit + self.paid, self.high)


def _alike(some: IndexArray, size: int) -> FloatArray:
    """Weights of rows that count alike, 0 for the others."""
    weights = np.zeros(size)
    weights[some] = 1.0 / max(some.size, 1)
    return weights


def _refuse_seen_rows(adversary: Adversary) -> None:
    """``ValueError`` if more of the fit's rows are here than rows of one population share.

    A fit keeps the scores of some of its rows.  A row of the population has the score of one of
    these rows with a probability of about the share of these that have a score in common (Good and
    Turing), 0 if numbers are continuous.
    """
    fit = adversary.model.fit
    if fit is None:
        return
    seen = result_of(fit).info["seen_scores"]
    if not seen.size or np.ptp(seen) == 0.0:  # not in memory; a constant model
        return
    here = np.sort(adversary.scores[:, 0] if adversary.several else adversary.scores)
    near = _SAME * (1.0 + np.abs(here).max())
    found = np.searchsorted(here, seen + near) > np.searchsorted(here, seen - near)
    apart = np.concatenate([[True], np.diff(here) > near, [True]])
    common = 1.0 - float((apart[1:] & apart[:-1]).mean())
    likely = min(common + 4.0 * math.sqrt(2.0 * common / here.size) + 6.0 / here.size, 1.0)
    if bdtrc(found.sum() - 1, seen.size, likely) < _CHANCE:
        raise ValueError(
            "these are the rows that the model was fitted to, or some of them are: a promise needs "
            "rows that the model has not seen"
        )
