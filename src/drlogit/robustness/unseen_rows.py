"""What the adversary gets of each unseen row at a price that was fixed without these rows.

Weak duality holds at every price γ: for the unknown distribution P of the rows

    sup { E_Q f : W(Q, P) ≤ ε }  ≤  γε + E_P[R_γ].

``E_P[R_γ]`` is the mean of independent numbers, one for each row, so it has an upper confidence
limit (:mod:`.limits`).  The price is chosen on other rows: on a part of the rows at hand, or, out
of fold, on the rows that a fold's model was fitted to.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..rows.arrays import FloatArray, IndexArray
from ..rows.threads import one_blas_thread
from .extremes import Extremes
from .limits import LEAST_ROWS, approximate_limit, bounded_limit
from .old_adversary import Adversary
from .old_metrics import Metric

#: The share of the rows on which prices are chosen; it costs the limits a tenth of their precision.
_CHOOSING = 0.2


class Fold(NamedTuple):
    """A model with rows to choose prices on and rows that it has not seen.

    ``known`` are rows of the first kind from which a model without features takes its shares.
    """

    seen: Adversary
    choosing: IndexArray
    known: IndexArray
    unseen: Adversary


@dataclass(frozen=True, eq=False)
class UnseenRows:
    """Rows that no model has seen, fold after fold; without cross-validation there is one fold.

    ``order`` has the rows of positive weight in random order, and ``rest`` those of them on which
    no price was chosen.
    """

    folds: tuple[Fold, ...]
    weights: FloatArray  # as they were given
    order: IndexArray
    rest: IndexArray
    largest_weight: float | None = None  # an upper bound of the weights in the population
    tried: int = 1  # candidates among which these rows have chosen
    assumed: str = ""
    out_of_fold: bool = False

    @classmethod
    def held_out(
        cls, audit: Adversary, random_state: int, weights: Any = None, largest: float | None = None
    ) -> UnseenRows:
        """The rows of an audit, some of which choose the prices."""
        order = in_random_order(audit.weights, random_state)
        choosing, rest = np.split(order, [max(int(_CHOOSING * order.size), 2)])
        given = audit.weights if weights is None else np.asarray(weights, dtype=np.float64)
        return cls((Fold(audit, choosing, order, audit),), given, order, rest, largest)

    @property
    def audit(self) -> Adversary:
        return self.folds[-1].unseen

    @property
    def largest(self) -> float:
        """An upper bound of the weights in the population, stated or assumed."""
        return float(self.weights.max()) if self.largest_weight is None else self.largest_weight

    def assumptions(self, *further: str) -> str:
        """The assumptions of a limit on these rows, in words."""
        said = ["Assumed: the rows are independent draws from one population"]
        some = self.weights[self.order]
        if self.largest_weight is None and some.max() > some.min() * (1.0 + 1e-9):
            said.append("no row of that population weighs more than the heaviest of these")
        last = "the model was chosen without them"
        if self.out_of_fold:
            last = "leaving out one row changes the model little"
        found = f"{', '.join([*said, *further])}, and {last}."
        return f"{found} {self.assumed}".rstrip()

    def ignoring_features(self) -> UnseenRows:
        """The same rows with models that ignore the features."""
        folds = tuple(
            fold._replace(
                seen=constant_model(fold.seen, fold.seen, fold.known),
                unseen=constant_model(fold.unseen, fold.seen, fold.known),
            )
            for fold in self.folds
        )
        return replace(self, folds=folds)


@dataclass(frozen=True, eq=False)
class AskedRows:
    """Unseen rows, and the metric that a limit is asked for."""

    rows: UnseenRows
    metric: Metric

    @cached_property
    def _folds(self) -> list[tuple[Extremes, FloatArray, Extremes]]:
        """For each fold the metric on rows that choose prices, their weights, and unseen rows."""
        found = []
        for seen, choosing, _, unseen in self.rows.folds:
            asked = Extremes(unseen, self.metric)
            share = np.zeros_like(seen.weights)
            share[choosing] = seen.weights[choosing] / seen.weights[choosing].sum()
            found.append((asked if seen is unseen else Extremes(seen, self.metric), share, asked))
        return found

    @one_blas_thread
    def priced(self, sign: float = 1.0, theta: float = 0.0, *, own: bool = False) -> PricedRows:
        """What the adversary gets of each row; of a ratio ``E[a]/E[b]``, in terms of ``a - θ b``.

        With ``own``, the price of the log-loss is the λ of the fit where there is one.
        """
        columns, ends = [], []
        for chooser, share, asked in self._folds:
            audit, part = asked.audit, asked.part(sign, theta)
            epsilon, price = audit.problem.epsilon, own_lambda(audit) if own else None
            if price is None:
                choosing = part if chooser is asked else chooser.part(sign, theta)
                price = chooser.price_of(choosing, share, epsilon)
            gained = part.at_price(price if epsilon > 0.0 else max(price, 1e300))[0]
            paid = np.full_like(gained, price * epsilon if epsilon > 0.0 else 0.0)
            labels = np.asarray(audit.classes)[audit.codes]
            columns.append((*asked.values(), gained, paid, labels))
            ends.append(_ends(asked, sign, theta, gained))
        low, high = zip(*ends, strict=True)
        classes = tuple({label: None for *_, asked in self._folds for label in asked.audit.classes})
        values, below, gained, paid, labels = map(np.concatenate, zip(*columns, strict=True))
        return PricedRows(
            values, below, gained, paid, labels, self.rows.weights, min(low), max(high),
            self.rows.largest, classes,
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class PricedRows:
    """What the adversary gets of each row at a price, between ``low`` and ``high``."""

    values: FloatArray  # of the metric as the rows are; of a ratio its numerator
    below: FloatArray  # the denominator of a ratio; 1 for a mean
    gained: FloatArray  # R_γ
    paid: FloatArray  # γε
    labels: NDArray[Any]
    weights: FloatArray
    low: float
    high: float
    largest: float  # of the weights in the population
    classes: tuple[Any, ...]

    def nominal(self, rows: IndexArray) -> float:
        """The metric of some rows as they are; NaN if it is not defined there."""
        w = self.weights[rows]
        below = float(w @ self.below[rows])
        return float(w @ self.values[rows]) / below if below > 0.0 else math.nan

    @one_blas_thread
    def limit(self, rows: IndexArray, alpha: float) -> float:
        """An upper limit that fails with a probability of ``alpha``; infinite if there is none."""
        w, confidence, low, high = self.weights[rows], 1.0 - alpha, self.low, self.high
        if rows.size == 0 or self.why_no_limit(rows):
            return high
        if math.isinf(high):
            found = approximate_limit(self.gained[rows], w, confidence)
        else:
            gained = np.clip(self.gained[rows], low, high)
            found = bounded_limit(
                gained, w, confidence, low=low, high=high, largest_weight=self.largest
            )
        return min(found + float(w @ self.paid[rows]) / float(w.sum()), high)

    def why_no_limit(self, rows: IndexArray) -> str:
        """Why the mean of numbers without an upper bound has no limit on these rows; else empty.

        The loss of a label that hardly occurs in the rows is not known, and it may be most of the
        mean.
        """
        if math.isfinite(self.high):
            return ""
        counts = [np.count_nonzero(self.labels[rows] == label) for label in self.classes]
        rare = [k for k, count in enumerate(counts) if count < LEAST_ROWS]
        many = sum(counts[k] for k in rare)
        if rare and many < LEAST_ROWS:
            labels = " or ".join(f"{self.classes[k]!r:.30}" for k in rare[:3])
            have = "row has" if many == 1 else "rows have"
            return f"only {many} {have} the label {labels}, expected at least {LEAST_ROWS}"
        if self.weights[rows].sum() < LEAST_ROWS * self.largest:
            return f"the rows weigh less than {LEAST_ROWS} rows of the largest weight"
        return ""


def _ends(asked: Extremes, sign: float, theta: float, gained: FloatArray) -> tuple[float, float]:
    """The least and the largest value that R can have."""
    metric, audit = asked.metric, asked.audit
    if metric.table is not None:
        table = sign * metric.less(theta)
        return float(table.min()), float(table.max())
    if metric.name != "log_loss":
        return 0.0, 1.0
    most = _greatest_loss(audit)
    if audit.measured.bounds_from_rows:  # these rows may lie beyond them
        most = max(most, float(gained.max()))
    return 0.0, most


def in_random_order(weights: FloatArray, random_state: int) -> IndexArray:
    """The rows of positive weight, if there are enough of them."""
    some = np.flatnonzero(weights > 0.0)
    if some.size < LEAST_ROWS:
        raise ValueError(
            f"a guarantee needs at least {LEAST_ROWS} rows of positive weight, got {some.size}"
        )
    return np.random.default_rng(random_state).permutation(some)


def own_lambda(audit: Adversary) -> float | None:
    """The λ of the fit, if the model has one and radius, κ and norm are those of the fit."""
    fit, problem = audit.measured.fit, audit.problem
    if fit is None or fit.result_ is None or not np.all(fit.ball_.kappa == audit.kappa):
        return None
    same = (fit.ball_.epsilon, fit.ball_.norm) == (problem.epsilon, problem.norm.name)
    return max(fit.result_.lam, audit.sensitivity) if same else None


def _greatest_loss(audit: Adversary) -> float:
    """An upper bound of the loss where rows keep to their domains; infinite if a feature has none.

    An unknown level has zeros in all columns of its category.
    """
    if not audit.coefficients[:, :-1].any():  # constant scores: only labels change
        return float(np.logaddexp.reduce(audit.scores[:, 0]) - audit.scores[:, 0].min())
    if audit.domain_moves is None:
        return math.inf
    domains, costs, b = audit.domain_moves.domains, audit.problem.costs, audit.coefficients[1]
    # Any number may stand in a column that has no domain, whether it can move or not.
    free = b[:-1] != 0.0
    free[domains.columns] = False
    if free.any() or ((b != 0.0) & np.isfinite(costs)).any():
        return math.inf
    low, high = domains.ranges(b)
    ends = np.stack([domains.lower * b[domains.bounded], domains.upper * b[domains.bounded]])
    least = b[-1] + np.minimum(low, 0.0).sum() + ends.min(axis=0).sum()
    greatest = b[-1] + np.maximum(high, 0.0).sum() + ends.max(axis=0).sum()
    return float(np.logaddexp(0.0, max(greatest, -least)))


def constant_model(audit: Adversary, seen: Adversary, rows: IndexArray) -> Adversary:
    """The rows of ``audit`` with a model that ignores the features.

    Its probabilities are the shares of the labels in some ``rows`` of ``seen``, with half a row
    added for each label.
    """
    counts = np.bincount(seen.codes[rows], seen.weights[rows], minlength=len(seen.classes))
    odds = np.log(rows.size * counts / counts.sum() + 0.5)
    b = np.zeros_like(audit.coefficients)
    b[:, -1] = odds - odds[0]
    scores = np.repeat(b[:, -1:], audit.codes.size, axis=1)
    return replace(audit, coefficients=b, scores=scores)
