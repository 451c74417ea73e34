"""The least and the largest value of a metric over the ball around the samples of an audit.

The largest mean of f is ``sup { E_Q f : W(Q, P) ≤ ε } = min over γ ≥ 0 of  γε + Σ w_i R_i(γ)``.
Where f has finitely many values per sample, one sort gives it for every ε
(:class:`.breakpoints.Hulls`).  A smooth f needs a search over γ: the slope of the dual function is
``ε - Σ w_i c_i(γ)``, where ``c_i`` is the cost of the option that attains ``R_i``, and two tangents
bound the minimum from below.

The largest ratio ``θ = E[a] / E[b]``, such as precision, is the root of ``sup E_Q[a - θ b]``.
Dinkelbach's method (1967, Management Science 13) finds it by Newton steps from the ratio of the
samples as they are.  Each step is the worst case of a mean, and the iterates reach the root from
one side.

The difference of a mean between two groups of shares p and q is itself a mean: of ``f/p`` in one
group and of ``-f/q`` in the other.  For a difference of ratios, the budget is shared between the
groups in the best way.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import expit

from ..rows.arrays import FloatArray
from ..rows.threads import one_blas_thread
from .adversary import Adversary
from .breakpoints import Hulls
from .decisions import Decisions
from .metrics import Metric
from .smooth_metrics import Smooth, smooth

#: Every so many rows are the part that a ratio starts from, if these are more than so many.
_PART, _MANY = 16, 10_000

#: How exact the gap between two ratios is, and after how many ways to share the budget to stop.
_GAP_TOL, _MOST_SHARES = 1e-6, 400


@dataclass(frozen=True, eq=False)
class Extremes:
    """A metric on the samples of an audit.

    The sign 1 asks for the largest value of the metric, -1 for the least.
    """

    audit: Adversary
    metric: Metric

    @cached_property
    def _audit(self) -> Adversary:
        """The audit; for smooth metrics with domains as numbers, which is a larger ball."""
        audit, metric = self.audit, self.metric
        if metric.table is not None or audit.domain_moves is None:
            return audit
        return replace(audit, problem=audit.problem.as_numbers)

    @cached_property
    def decisions(self) -> Decisions:
        cuts = self.metric.cuts
        return self.audit.predictions if cuts in (None, (0.0,)) else self.audit.decisions(cuts)

    def is_exact(self, sign: float) -> bool:
        """Whether an end is attained in the limit; otherwise it is a bound."""
        audit, metric = self.audit, self.metric
        if metric.name == "log_loss" and sign > 0.0:
            return audit.as_given
        if metric.table is None:
            return audit.domain_moves is None and len(audit.classes) == 2
        if len(audit.classes) > 3 and (metric.name != "error" or sign < 0.0):
            return False
        return audit.exact_crossings

    def values(self) -> tuple[FloatArray, FloatArray]:
        """The metric of each sample as it is, and 1; of a ratio, numerator and denominator."""
        audit, metric = self.audit, self.metric
        ones = np.ones(audit.codes.size)
        if metric.table is not None:
            above = self.decisions.values(metric.table)
            return above, ones if metric.below is None else self.decisions.values(metric.below)
        if metric.name == "log_loss":
            return audit.losses, ones
        off = expit(audit.scores[1]) - audit.codes
        return (off if metric.name == "calibration" else off**2), ones

    def nominal(self, weights: FloatArray | None = None) -> float:
        """The metric of the samples as they are."""
        w = self.audit.weights if weights is None else weights
        above, below = (float(w @ each) for each in self.values())
        if below == 0.0:
            raise ValueError(f"{self.metric} is not defined: no row counts for its denominator")
        return above / below

    @one_blas_thread
    def end(self, sign: float, epsilon: float, weights: FloatArray | None = None) -> float:
        """The largest value (sign 1) or the least (-1); other ``weights`` must sum to one."""
        w, metric = self.audit.weights if weights is None else weights, self.metric
        if metric.below is not None:
            return self._ratio_end(sign, epsilon, w)
        part = self.part(sign)
        if isinstance(part, Smooth):
            return sign * _least_dual(part, w, epsilon)[0]
        value = sign * float(part.curve(w).at(epsilon))
        if metric.table is not None:
            value = min(max(value, float(metric.table.min())), float(metric.table.max()))
        return value

    def _ratio_end(self, sign: float, epsilon: float, weights: FloatArray) -> float:
        """The largest ratio (sign 1) or the least (-1)."""
        every, limit = replace(self.decisions, weights=weights), 0.5 + 0.5 * sign
        # Near 0 and 1 Newton steps are slow, because the denominator may vanish there, too.
        if every.cost_to_enter(self.metric.less(limit) == 0.0) <= epsilon:
            return limit
        start = self.nominal(weights), 0.0
        some = np.arange(0, weights.size, _PART)
        if some.size > _MANY:  # a part of the rows brings the start close to the root
            start = self._ratio_root(sign, epsilon, every.picked(some), *start)
        return self._ratio_root(sign, epsilon, every, *start)[0]

    def _ratio_root(
        self, sign: float, epsilon: float, every: Decisions, theta: float, least: float
    ) -> tuple[float, float]:
        """Newton steps from a ratio θ to the root, and a rate that the budget reaches."""
        weights, below = every.weights, self.metric.below
        assert below is not None
        for step in range(100):
            table = sign * self.metric.less(theta)
            # The last price tells which options the budget reaches; the others are left out.
            found = every.hulls(table, least)
            if least > 0.0 and float(found.edges.masses(weights).sum()) <= epsilon:
                found = every.hulls(table)
            least = 0.7 * found.edges.price(weights, epsilon)
            value = float(found.curve(weights).at(epsilon))
            total = float(found.other_curve(weights, below).at(epsilon))
            if total <= 0.0 and step == 0:
                theta = 0.5 - 0.5 * sign  # from here the denominator is positive
                continue
            # From beyond the root, the first step leads to the side where the others stay:
            # the value is a convex function of θ, so its tangent lies below it.
            if total <= 0.0 or (value <= 1e-14 * total and (step > 0 or value > -1e-14 * total)):
                break
            theta = min(max(theta + sign * value / total, 0.0), 1.0)
        return float(theta), least

    @staticmethod
    def price_of(part: Hulls | Smooth, weights: FloatArray, epsilon: float) -> float:
        """The price γ of a mean at a radius: the gain per cost at the end of the budget."""
        if isinstance(part, Smooth):
            return _least_dual(part, weights, epsilon)[1]
        return max(part.edges.price(weights, epsilon), part.slope)

    def part(self, sign: float, theta: float = 0.0) -> Hulls | Smooth:
        """The adversary's options for each sample; for a ratio, those of ``a - θ b``."""
        metric = self.metric
        if metric.table is not None:
            return self.decisions.hulls(sign * metric.less(theta))
        if metric.name == "log_loss" and (sign > 0.0 or len(self.audit.classes) > 2):
            return self.audit.loss_hulls if sign > 0.0 else self.audit.least_loss_hulls
        return smooth(self._audit, metric.name, sign)

    def radius_of(self, limit: float, sign: float) -> float:
        """The least radius at which the end on one side reaches a limit; inf if none does."""
        w, part, goal = self.audit.weights, self.part(sign, limit), sign * limit
        if isinstance(part, Hulls):
            if self.metric.below is None:
                return part.curve(w).radius_of(goal)
            radius = part.curve(w).radius_of(0.0)
            # There the denominator may have vanished, which is no ratio.
            if math.isinf(radius) or sign * self.end(sign, radius * (1.0 + 1e-9)) < goal - 1e-6:
                return math.inf
            return radius
        # γε + R(γ) reaches the goal for every γ: ε is the largest (goal - R(γ)) / γ, which rises
        # with γ as long as it is less than the cost at γ.
        low, high, price, radius = 0.0, math.inf, 1.0, 0.0
        while high > low * (1.0 + 1e-14) and 1e-200 < price < 1e200:
            most, cost = _sums(part, w, price)
            bound = (goal - most) / price
            radius = max(radius, bound)
            low, high = (price, high) if float(cost) > bound else (low, price)
            if math.isinf(high):
                price = 4.0 * low
            else:
                price = math.sqrt(low * high) if low > 0.0 else 0.25 * high
        return radius if price >= 1e-200 else math.inf

    def gap(self, epsilon: float, one: FloatArray, other: FloatArray) -> float:
        """The largest amount by which the metric of one group can exceed that of another.

        ``one`` and ``other`` are the weights of the two groups among all samples; the radius is
        that of the ball around all samples.
        """
        if self.metric.below is not None:
            return _largest_gap(
                lambda share: (
                    self.end(1.0, share * epsilon, one),
                    self.end(-1.0, (1.0 - share) * epsilon, other),
                )
            )
        shares = float(one.sum()), float(other.sum())
        parts = self.part(1.0), self.part(-1.0)

        def at(price: float) -> tuple[float, float]:
            most, cost = 0.0, 0.0
            for part, w, share in zip(parts, (one, other), shares, strict=True):
                found = _sums(part, w, price * share)
                most, cost = most + found[0] / share, cost + found[1]
            return most, cost

        slopes = (
            part.slope / share if isinstance(part, Hulls) else 0.0
            for part, share in zip(parts, shares, strict=True)
        )
        return least_dual(at, epsilon, max(slopes))[0]


def _sums(part: Hulls | Smooth, weights: FloatArray, price: float) -> tuple[float, float]:
    most, cost = part.at_price(price)
    some = weights > 0.0
    return float(weights[some] @ most[some]), float(weights[some] @ cost[some])


def _least_dual(part: Smooth, weights: FloatArray, epsilon: float) -> tuple[float, float]:
    """The largest mean of a smooth function, and the price γ there."""
    if epsilon == 0.0:
        own = part.label_costs.argmin(axis=0)
        return float(weights @ part.values[own, np.arange(weights.size)]), 1e300
    return least_dual(lambda price: _sums(part, weights, price), epsilon)


def least_dual(
    at: Callable[[float], tuple[float, float]], epsilon: float, floor: float = 0.0
) -> tuple[float, float]:
    """The minimum over ``γ ≥ floor`` of ``γε + R(γ)``, and γ.

    ``at(γ)`` is R and minus its slope.
    """

    def tangent(price: float) -> tuple[float, float, float]:
        most, cost = at(price)
        return price, price * epsilon + most, epsilon - cost

    left = right = tangent(2.0 * floor or 1.0)
    while right[2] < 0.0:
        left, right = right, tangent(4.0 * right[0])
    while left[2] >= 0.0:
        # Further down the minimum can only fall by what γε still is.
        if left[0] <= floor or left[0] * epsilon <= 1e-16:
            return left[1], left[0]
        left, right = tangent(max(0.25 * left[0], floor)), left
    for step in range(200):
        (a, f, g), (b, h, k) = left, right
        price = a + (h - f - k * (b - a)) / (g - k)  # where the two tangents meet
        least, best = f + g * (price - a), min(f, h)
        if best - least <= 1e-15 * (1.0 + abs(best)) or not a < price < b:
            break
        # The meeting point is exact where R has corners; where R is smooth, the zero of the secant
        # of the slopes is far closer.
        if step % 3:
            price = math.sqrt(a * b) if b > 2.0 * a else a - g * (b - a) / (k - g)
        new = tangent(price)
        left, right = (new, right) if new[2] < 0.0 else (left, new)
    return best, left[0] if f < h else right[0]


def _largest_gap(ends: Callable[[float], tuple[float, float]]) -> float:
    """The largest ``high - low`` over the share of the budget that the first of two groups gets.

    ``ends(share)`` is the largest ratio of the first group, which rises with its share, and the
    least of the second group, which rises as well, because the second group gets the rest.  So
    between two shares the gap is at most the high of the larger less the low of the smaller share.
    """
    at = {share: ends(share) for share in np.linspace(0.0, 1.0, 9).tolist()}
    best = max(high - low for high, low in at.values())
    bounds = [(at[a][1] - at[b][0], a, b) for a, b in itertools.pairwise(sorted(at))]
    heapq.heapify(bounds)
    while -bounds[0][0] > best + _GAP_TOL and len(at) < _MOST_SHARES:
        _, a, b = heapq.heappop(bounds)
        middle = 0.5 * (a + b)
        at[middle] = ends(middle)
        best = max(best, at[middle][0] - at[middle][1])
        for left, right in ((a, middle), (middle, b)):
            heapq.heappush(bounds, (at[left][1] - at[right][0], left, right))
    return max(best, -bounds[0][0])
