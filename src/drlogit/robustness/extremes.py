"""The least and the largest value of a metric over the ball around the samples of an audit.

The largest mean of f is ``sup { E_Q f : W(Q, P) ≤ ε } = min over γ ≥ 0 of  γε + Σ w_i R_i(γ)``.
Where f has finitely many values per sample, one sort gives it for every ε
(:class:`.breakpoints.Hulls`).  A smooth f needs a search over γ.  There ``ε - Σ w_i c_i(γ)`` is
a slope, with the costs ``c_i`` of what attains R, and two tangents bound the minimum from below.

Ratios ``E[a] / E[b]`` take Dinkelbach's method (1967, Management Science 13): the largest ratio θ
is the root of ``sup E_Q[a - θ b]``, and Newton's steps from the ratio of the samples as they are
reach it from one side, each by a supremum as above.

Differences between two groups of samples are means, too, of ``f/p`` in one group and ``-f/p`` in
the other.  A difference of ratios is one over the part of the budget that each group gets.
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

from ..rows.arrays import FloatArray, IndexArray
from .adversary import Adversary
from .breakpoints import Hulls
from .decisions import Decisions
from .metrics import Metric
from .smooth_metrics import Smooth, smooth

#: With more samples, ratios are computed on those that are cheap to change, and checked on all.
_ALL_AT_ONCE = 50_000

#: How sure a difference of ratios is, and after how many ways to share the budget to stop.
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
        """Smooth functions take features with domains as numbers: a larger ball."""
        audit, metric = self.audit, self.metric
        if metric.table is not None or audit.domain_moves is None:
            return audit
        return replace(audit, problem=audit.problem.as_numbers)

    @cached_property
    def decisions(self) -> Decisions:
        cuts = self.metric.cuts
        return self.audit.predictions if cuts in (None, (0.0,)) else self.audit.decisions(cuts)

    def is_exact(self, sign: float) -> bool:
        """Whether an end is attained in the limit, and not a little beyond what is."""
        audit, metric = self.audit, self.metric
        if metric.name == "log_loss" and sign > 0.0:
            return audit.as_given
        if metric.table is None:
            return audit.domain_moves is None and len(audit.classes) == 2
        if len(audit.classes) > 3 and (metric.name != "error" or sign < 0.0):
            return False
        return audit.exact_crossings

    def nominal(self, weights: FloatArray | None = None) -> float:
        """The metric of the samples as they are."""
        w, metric = self.audit.weights if weights is None else weights, self.metric
        if metric.table is not None:
            above = float(w @ self.decisions.values(metric.table))
            if metric.below is None:
                return above / float(w.sum())
            below = float(w @ self.decisions.values(metric.below))
            if below == 0.0:
                raise ValueError(f"{metric} is not defined: no row counts for its denominator")
            return above / below
        if metric.name == "log_loss":
            return float(w @ self.audit.losses) / float(w.sum())
        off = expit(self.audit.scores[1]) - self.audit.codes
        return float(w @ (off if metric.name == "calibration" else off**2)) / float(w.sum())

    def end(self, sign: float, epsilon: float, weights: FloatArray | None = None) -> float:
        """The largest value (sign 1) or the least (-1); ``weights`` are others that sum to one."""
        w, metric = self.audit.weights if weights is None else weights, self.metric
        if metric.below is not None:
            return self._ratio(sign, epsilon, w)
        part = self.part(sign)
        if isinstance(part, Smooth):
            return sign * _least_dual(part, w, epsilon)[0]
        value = sign * float(part.curve(w).at(epsilon))
        if metric.table is not None:
            value = min(max(value, float(metric.table.min())), float(metric.table.max()))
        return value

    def price(self, sign: float, epsilon: float) -> float:
        """The price γ of a mean at a radius: what the last of the budget gains per cost."""
        return self.price_of(self.part(sign), self.audit.weights, epsilon)

    @staticmethod
    def price_of(part: Hulls | Smooth, weights: FloatArray, epsilon: float) -> float:
        """The same for what the adversary can make of each sample, and other weights."""
        if isinstance(part, Smooth):
            return _least_dual(part, weights, epsilon)[1]
        return max(part.edges.price(weights, epsilon), part.slope)

    def part(self, sign: float, theta: float = 0.0) -> Hulls | Smooth:
        """What the adversary can make of each sample; of a ratio, of ``a - θ b``."""
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
        """The most by which the metric of one group can exceed that of another.

        ``one`` and ``other`` are the weights of their samples among all; the budget is of all.
        """
        if self.metric.below is not None:
            return self._gap_of_ratios(epsilon, one, other)
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

    # --- ratios -----------------------------------------------------------------------------

    def _ratio(self, sign: float, epsilon: float, weights: FloatArray) -> float:
        """Dinkelbach's method, on the samples that can be worth their cost if they are many."""
        every, start = replace(self.decisions, weights=weights), self.nominal(weights)
        if weights.size <= _ALL_AT_ONCE:
            return self._dinkelbach(every, sign, epsilon, start)[0]
        few, w = _few(weights)
        theta, price = self._dinkelbach(replace(every.some(few), weights=w), sign, epsilon, start)
        theta, price = start + 0.98 * (theta - start), 0.7 * price
        active = np.zeros(weights.size, dtype=bool)
        while True:
            # Samples that are left out stay as they are, which is best for them at this price.
            paying = every.paying(sign * self.metric.less(theta), price)
            if active[paying].all() and active.any():
                return theta
            active[paying] = True
            some, rest = every.some(np.flatnonzero(active)), np.where(active, 0.0, weights)
            theta, price = self._dinkelbach(some, sign, epsilon, theta, rest)

    def _dinkelbach(
        self, decisions: Decisions, sign: float, epsilon: float, theta: float,
        rest: FloatArray | None = None,
    ) -> tuple[float, float]:  # fmt: skip
        """The ratio, and the price γ there; ``rest`` are weights of samples that stay."""
        w, below, metric = decisions.weights, self.metric.below, self.metric
        assert below is not None
        staying = np.zeros(2)
        if rest is not None:
            tables = metric.less(0.0), below
            staying = np.array([rest @ self.decisions.values(table) for table in tables])
        for step in range(100):
            found = decisions.hulls(sign * metric.less(theta))
            value = float(found.curve(w).at(epsilon)) + sign * (staying[0] - theta * staying[1])
            total = float(staying[1] + found.other_curve(w, below).at(epsilon))
            if step == 0 and rest is not None and (value < -1e-12 or total <= 0.0):
                theta = 0.5 - 0.5 * sign  # the guess was beyond the root, which this never is
                continue
            if value <= 1e-14 * total or total <= 0.0:
                break
            theta = min(max(theta + sign * value / total, 0.0), 1.0)
        return float(theta), found.edges.price(w, epsilon)

    def _gap_of_ratios(self, epsilon: float, one: FloatArray, other: FloatArray) -> float:
        """The best way to share the budget: both ends rise with what a group gets.

        So between two shares the gap is at most that of the larger share for both.
        """

        def ends(share: float) -> tuple[float, float]:
            return (
                self._ratio(1.0, share * epsilon, one),
                self._ratio(-1.0, (1.0 - share) * epsilon, other),
            )

        at = {share: ends(share) for share in np.linspace(0.0, 1.0, 9).tolist()}
        best = max(high - low for high, low in at.values())
        shares = sorted(at)
        bounds = [(at[a][1] - at[b][0], a, b) for a, b in itertools.pairwise(shares)]
        heapq.heapify(bounds)
        while -bounds[0][0] > best + _GAP_TOL and len(at) < _MOST_SHARES:
            _, a, b = heapq.heappop(bounds)
            middle = 0.5 * (a + b)
            at[middle] = ends(middle)
            best = max(best, at[middle][0] - at[middle][1])
            for left, right in ((a, middle), (middle, b)):
                heapq.heappush(bounds, (at[left][1] - at[right][0], left, right))
        return max(best, -bounds[0][0])


def _sums(part: Hulls | Smooth, weights: FloatArray, price: float) -> tuple[float, float]:
    most, cost = part.at_price(price)
    some = weights > 0.0
    return float(weights[some] @ most[some]), float(weights[some] @ cost[some])


def _few(weights: FloatArray) -> tuple[IndexArray, FloatArray]:
    """Samples that stand for all where a rough answer will do, and their weights."""
    some = np.flatnonzero(weights > 0.0)
    some = some[:: max(some.size // 20_000, 1)]
    return some, weights[some] * float(weights.sum() / weights[some].sum())


def _least_dual(part: Smooth, weights: FloatArray, epsilon: float) -> tuple[float, float]:
    """The largest mean of a smooth function, and the price γ there."""
    if epsilon == 0.0:
        own = part.label_costs.argmin(axis=0)
        return float(weights @ part.values[own, np.arange(weights.size)]), 1e300
    floor = staying = 0.0
    if weights.size > _ALL_AT_ONCE:
        # What stays where it is at some price stays there at every higher one.
        few, w = _few(weights)
        floor = 0.7 * least_dual(lambda price: _sums(part.some(few), w, price), epsilon)[1]
        most, cost = part.at_price(floor)
        while float(weights @ cost) < epsilon:
            floor *= 0.5
            most, cost = part.at_price(floor)
        moving = np.flatnonzero((cost > 0.0) & (weights > 0.0))
        staying = float(weights @ most) - float(weights[moving] @ most[moving])
        part, weights = part.some(moving), weights[moving]
    value, price = least_dual(lambda price: _sums(part, weights, price), epsilon, floor)
    return staying + value, price


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
        if step % 3 == 2 and b > 2.0 * a:
            price = math.sqrt(a * b)
        new = tangent(price)
        left, right = (new, right) if new[2] < 0.0 else (left, new)
    return best, left[0] if f < h else right[0]
