"""The worst mean of a metric as a concave, piecewise linear function of the radius.

For a fixed model the adversary has a few options for each row: another label, another decision, or
some moved features.  An option costs transport and gains value.  At the price γ of transport, a row
is worth to the adversary

    R(γ)  =  start  +  Σ over the edges e of its upper hull  (gain_e - γ cost_e)_+ ,

where the edges connect the options that are best at some price.  The largest mean over the ball is
``min over γ ≥ slope of  γε + Σ w_i R_i(γ)`` (strong duality; Kuhn, Mohajerin Esfahani, Nguyen and
Shafieezadeh-Abadeh 2019).  It is a fractional knapsack: the adversary takes the edges of all rows
in the order of their rates gain/cost until ε is spent.  What is left of ε goes into unbounded
moves, which gain ``slope`` per unit of cost.

The largest ratio ``E[a] / E[b]`` over the distributions with ``E[b] > 0`` is the least θ at which
``sup E[a - θ b] ≤ 0``.  Dinkelbach's method (1967, Management Science 13) finds it by Newton steps
from the ratio of the rows as they are: each step takes the ratio of the distribution that attains
the supremum.  Where b can vanish, the supremum is 0 at every larger θ, and proves nothing; so the
steps end when the ratio no longer improves.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ..rows.arrays import BoolArray, FloatArray, IndexArray
from .metrics import Metric

#: Every so many rows are the part whose ratio the steps start from, if these are more than so many.
#: At a million rows this halves the time of a ratio.
_PART, _MANY = 16, 10_000

#: Ratios that are closer than this are equal.
_EQUAL = 1e-15


class Edges(NamedTuple):
    """The edges of the hulls of all rows; those of one row come with falling rates.

    ``option`` is the option that a row has after the edge; :class:`.adversary.Adversary` numbers
    them.
    """

    sample: IndexArray
    rate: FloatArray
    cost: FloatArray
    gain: FloatArray
    option: IndexArray


_NO_EDGES = Edges(*(np.empty(0, dtype) for dtype in (np.intp, float, float, float, np.intp)))


def single_edges(
    some: BoolArray, cost: FloatArray, gain: FloatArray, option: int, least: float = 0.0
) -> Edges:
    """The edges of rows that have one each, if its rate is above the ``least``."""
    with np.errstate(divide="ignore", over="ignore"):
        rate = gain / cost
    rows = np.flatnonzero(some & (rate > least))
    return Edges(rows, rate[rows], cost[rows], gain[rows], np.full(rows.size, option))


class Spent(NamedTuple):
    """What a budget pays for: the option of each row, and one row whose mass is divided.

    A share of the mass of row ``divided`` takes the option ``next`` instead; ``left`` is what is
    not spent.
    """

    option: IndexArray
    divided: int
    next: int
    share: float
    left: float


@dataclass(frozen=True, eq=False)
class Hull:
    """The worst mean of a metric at every radius.

    ``start`` has the values of the rows as they are and ``option`` their options; ``weights`` sum
    to one; ``least`` and ``most`` are the ends of the range of the metric.
    """

    start: FloatArray
    option: IndexArray
    edges: Edges
    weights: FloatArray
    slope: float = 0.0
    most: float = math.inf
    least: float = 0.0

    def at(self, epsilon: float) -> float:
        """The largest mean within a radius; at 0 that of the rows as they are."""
        if epsilon == 0.0:
            return self.nominal
        beyond = max(epsilon - float(self._costs[-1]), 0.0)
        value = self.nominal + _interpolated(epsilon, self._costs, self._gains)
        value += self.slope * beyond
        return self.most if value > self.most - self._rounding else value

    def radius_of(self, limit: float) -> float:
        """The least radius at which the largest mean reaches a limit; inf if none does."""
        missing = limit - self.nominal
        if missing <= self._rounding:
            return 0.0
        whole, beyond = float(self._costs[-1]), missing - float(self._gains[-1])
        if beyond <= 0.0:
            return _interpolated(missing, self._gains, self._costs)
        if beyond <= self._rounding:  # the end of the range, but for the rounding of sums
            return whole
        return whole + beyond / self.slope if self.slope > 0.0 else math.inf

    def price(self, epsilon: float) -> float:
        """The gain per unit of cost at which a budget ends."""
        last = int(np.searchsorted(self._costs[1:], epsilon, side="right"))
        found = float(self.edges.rate[self._order[last]]) if last < self._order.size else 0.0
        return max(found, self.slope)

    def at_price(self, price: float) -> FloatArray:
        """What each row is worth to the adversary at a price of at least ``slope``."""
        gain = np.maximum(self.edges.gain - price * self.edges.cost, 0.0)
        return self.start + np.bincount(self.edges.sample, gain, minlength=self.start.size)

    def spend(self, budget: float) -> Spent:
        """What a budget pays for, in the order of the rates."""
        option, n_whole = self.option.copy(), int(np.searchsorted(self._costs, budget, "right")) - 1
        whole = self._order[:n_whole]
        # Of several edges of a row the last one counts, as in every assignment.
        option[self.edges.sample[whole]] = self.edges.option[whole]
        left = budget - float(self._costs[n_whole])
        if n_whole == self._order.size:
            return Spent(option, 0, int(option[0]), 0.0, left)
        last = self._order[n_whole]
        row = int(self.edges.sample[last])
        share = min(left / float(self.weights[row] * self.edges.cost[last]), 1.0)
        return Spent(option, row, int(self.edges.option[last]), share, 0.0)

    @cached_property
    def nominal(self) -> float:
        """The mean of the rows as they are."""
        return float(self.weights @ self.start)

    @cached_property
    def _order(self) -> IndexArray:
        """The edges in the order of the rates."""
        return np.argsort(-self.edges.rate, kind="stable")

    @cached_property
    def _costs(self) -> FloatArray:
        """Costs of the first edges together, from zero."""
        return self._summed(self.edges.cost)

    @cached_property
    def _gains(self) -> FloatArray:
        """Gains of the first edges together, from zero."""
        return self._summed(self.edges.gain)

    def _summed(self, amounts: FloatArray) -> FloatArray:
        each = self.weights[self.edges.sample] * amounts
        return np.append(0.0, np.cumsum(each[self._order]))

    @property
    def _rounding(self) -> float:
        """How far sums of masses can be off, where the metric has a largest value."""
        if math.isinf(self.most):
            return 0.0
        return self.weights.size * 2.0**-52 * max(float(np.abs(self.start).max()), abs(self.most))


def _interpolated(x: float, xs: FloatArray, ys: FloatArray) -> float:
    """``ys`` at the last place where ``xs`` is at most x, and a share of the next step.

    Unlike ``np.interp`` it takes all of the edges that cost nothing.
    """
    k = int(np.searchsorted(xs, x, side="right"))
    if k == xs.size:
        return float(ys[-1])
    share = (x - float(xs[k - 1])) / float(xs[k] - xs[k - 1])
    return float(ys[k - 1] + share * (ys[k] - ys[k - 1]))


def upper_hull(
    costs: FloatArray, gains: FloatArray, sample: IndexArray, options: IndexArray
) -> Edges:
    """The edges of the hulls of rows whose options gain ``gains``, one number for each option.

    ``costs`` has a row for each option and a column for each of the samples.
    """
    cost, gain, last = np.zeros(sample.size), np.zeros(sample.size), np.full(sample.size, np.inf)
    going, found = np.arange(sample.size), [_NO_EDGES]
    for _ in options:
        further, more = costs[:, going] - cost[going], gains[:, None] - gain[going]
        worth = (more > 0.0) & (further >= 0.0) & np.isfinite(further)
        with np.errstate(divide="ignore", over="ignore"):
            rates = np.divide(more, further, out=np.zeros_like(further), where=worth)
        best = rates.argmax(axis=0)
        rate = rates[best, np.arange(going.size)]
        some = np.flatnonzero(rate > 0.0)
        going, best = going[some], best[some]
        # Rounding must not let a later edge of a row go before an earlier one.
        last[going] = np.minimum(rate[some], last[going])
        step = further[best, some], more[best, some]
        found.append(Edges(sample[going], last[going], *step, options[best]))
        cost[going], gain[going] = costs[best, going], gains[best]
    return Edges(*map(np.concatenate, zip(*found, strict=True)))


@dataclass(frozen=True, eq=False)
class Decisions:
    """Labels and decisions of two classes, and what it costs to change them.

    ``label`` and ``decided`` say whether a row is positive.  It costs ``reach`` to change the
    decision of a row, ``flips`` to change its label, and the sum to change both.  Option
    ``2·label + decision`` has this label and decision.
    """

    label: BoolArray
    decided: BoolArray
    reach: FloatArray
    flips: FloatArray
    weights: FloatArray

    @cached_property
    def option(self) -> IndexArray:
        """The option of each row as it is."""
        return np.asarray(2 * self.label + self.decided, dtype=np.intp)

    def hull(self, table: FloatArray) -> Hull:
        """The hull of the mean of a table by label and decision."""
        values, parts = table.ravel(), [_NO_EDGES]
        for here in range(4):
            others = here ^ np.array([1, 2, 3])  # the decision, the label, or both
            gains = values[others] - values[here]
            gains[2] *= gains[2] > gains[:2].max()  # costs more than either
            paying, some = gains > 0.0, self._members[here]
            if paying.any():
                costs = np.stack([self.reach[some], self.flips[some]])
                costs = np.vstack([costs, costs.sum(axis=0)])[paying]
                parts.append(upper_hull(costs, gains[paying], some, others[paying]))
        start, edges = values[self.option], Edges(*map(np.concatenate, zip(*parts, strict=True)))
        most, least = float(values.max()), float(values.min())
        return Hull(start, self.option, edges, self.weights, most=most, least=least)

    def picked(self, some: IndexArray) -> Decisions:
        """Some of the rows, with weights that sum to one."""
        weights = self.weights[some]
        labels, costs = (self.label[some], self.decided[some]), (self.reach[some], self.flips[some])
        return Decisions(*labels, *costs, weights / weights.sum())

    def nominal(self, metric: Metric) -> float:
        """The metric of the rows as they are; NaN for a ratio that is not defined there."""
        return self._ratio(metric, Spent(self.option, 0, 0, 0.0, 0.0))

    def ratio(self, metric: Metric, sign: float, epsilon: float) -> tuple[float, Spent]:
        """The largest (sign 1) or least (-1) ratio, and what to spend for it."""
        theta, spent = self.nominal(metric), Spent(self.option, 0, 0, 0.0, epsilon)
        start, some = theta, np.flatnonzero(self.weights)[::_PART]
        if some.size > _MANY:
            near = self.picked(some).ratio(metric, sign, epsilon)[0]
            start = theta if math.isnan(near) else near
        for _ in range(100 if epsilon > 0.0 else 0):
            found = self.hull(sign * metric.mean(start)).spend(epsilon)
            ratio = self._ratio(metric, found)
            if sign * (ratio - theta) > _EQUAL:
                start, theta, spent = ratio, ratio, found
            elif start != theta:  # the part has a ratio that lies beyond that of all rows
                start = theta
            else:
                break
        return theta, spent

    def radius_of_ratio(self, metric: Metric, sign: float, limit: float) -> float:
        """The least radius at which a ratio reaches a limit; inf if none does."""
        # Where b vanishes, the tilted mean is 0 at every radius, but that is no ratio.
        if sign * (self.ratio(metric, sign, math.inf)[0] - limit) < -_EQUAL:
            return math.inf
        return self.hull(sign * metric.mean(limit)).radius_of(0.0)

    def _ratio(self, metric: Metric, spent: Spent) -> float:
        """The ratio of what a budget pays for; NaN for 0/0."""
        assert metric.table is not None
        above, below = self._mean(metric.table, spent), 1.0
        if metric.below is not None:
            below = self._mean(metric.below, spent)
        return above / below if below > 0.0 else math.nan

    def _mean(self, table: FloatArray, spent: Spent) -> float:
        """The mean of a table: a sum of its values, so that it vanishes where all of them do."""
        values = table.ravel()
        mean = float(self.weights @ values[spent.option])
        change = values[spent.next] - values[spent.option[spent.divided]]
        return mean + float(self.weights[spent.divided] * spent.share * change)

    @cached_property
    def _members(self) -> list[IndexArray]:
        """Rows of positive weight, by option."""
        heavy = self.weights > 0.0
        return [np.flatnonzero((self.option == here) & heavy) for here in range(4)]
