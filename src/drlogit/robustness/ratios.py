"""The worst case of a ratio ``E[a] / E[b]``, such as precision, over the Wasserstein ball.

The largest ratio θ is the root of ``sup E_Q[a - θ b]``.  Dinkelbach's method (1967, Management
Science 13) finds it by Newton steps from the ratio of the samples as they are.  Each step is the
worst case of a mean (:mod:`.breakpoints`), and the iterates reach the root from one side.

Many samples are first reduced to few.  By duality θ is feasible if, for some price γ,

    F(γ, θ)  =  γε + Σ w_i max over options o of  [ a_o - θ b_o - γ cost_io ]  ≤  0.

An option that is best for a sample at all four corners of a box of (γ, θ) is best in the whole box,
because the points where it is best form a convex set.  Such a sample counts for a constant in a, b
and cost.  The other samples are solved exactly.  The answer is that of all samples if it lies in
the box, because outside the box the constants bound F from below.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ..rows.arrays import FloatArray
from .decisions import Decisions

#: With more samples than this, a box is solved first on a part of them.
_MANY, _FEW = 50_000, 20_000

#: The first box: γ within this factor, θ within this distance of the solution for few samples.
_FACTOR, _DISTANCE = 1.3, 0.02

#: A box of all prices, for budgets that pay for everything.
_EVERY_PRICE = (1e-300, 1e300)

#: How exact the gap between two ratios is, and after how many ways to share the budget to stop.
_GAP_TOL, _MOST_SHARES = 1e-6, 400


class _Constant(NamedTuple):
    """What samples whose option is known add to ``E[a]``, to ``E[b]`` and to the cost."""

    above: float = 0.0
    below: float = 0.0
    cost: float = 0.0


_NOTHING = _Constant()

_Ends = tuple[float, float]


@dataclass(frozen=True, eq=False)
class Ratio:
    """A ratio of two tables of labels and decisions."""

    decisions: Decisions
    above: FloatArray
    below: FloatArray

    def end(self, sign: float, epsilon: float, weights: FloatArray, theta: float) -> float:
        """The largest ratio (sign 1) or the least (-1), from that of the samples as they are."""
        every = replace(self.decisions, weights=weights)
        limit = 0.5 + 0.5 * sign
        # Near 0 and 1 Newton steps are slow, because the denominator may vanish there, too.
        if every.cost_to_enter(self.above == limit * self.below) <= epsilon:
            return limit
        if weights.size <= _MANY or epsilon == 0.0:
            return self._dinkelbach(every, sign, epsilon, theta)[0]
        some = np.flatnonzero(weights > 0.0)
        few = every.some(some[:: max(some.size // _FEW, 1)])
        few = replace(few, weights=few.weights * float(weights.sum() / few.weights.sum()))
        theta, price = self._dinkelbach(few, sign, epsilon, theta)
        factor, distance = _FACTOR, _DISTANCE
        while factor < 100.0:
            low, high = (price / factor, price * factor) if price > 0.0 else _EVERY_PRICE
            thetas = theta - distance, theta + distance
            rest, constant = self._undecided(every, sign, (low, high), thetas)
            if constant.cost > epsilon:  # the price is too low
                price = high
            else:
                theta, price = self._dinkelbach(rest, sign, epsilon, theta, constant)
                inside = max(price, _EVERY_PRICE[0]) >= low and price <= high
                if inside and thetas[0] <= theta <= thetas[1]:
                    return theta
            factor, distance = factor**2, 2.0 * distance
        return self._dinkelbach(every, sign, epsilon, theta)[0]

    def _undecided(
        self, every: Decisions, sign: float, prices: _Ends, thetas: _Ends
    ) -> tuple[Decisions, _Constant]:
        """Samples without an option that is best in a whole box, and what the others add."""
        corners = itertools.product(thetas, prices)
        option, *others = (
            every.best_options(sign * (self.above - theta * self.below), price)
            for theta, price in corners
        )
        same = np.logical_and.reduce([option == other for other in others])
        weights = np.where(same, every.weights, 0.0)
        mass = np.bincount(option, weights, minlength=self.above.size)
        constant = _Constant(
            float(mass @ self.above.ravel()),
            float(mass @ self.below.ravel()),
            every.total_cost(option, weights),
        )
        return every.some(np.flatnonzero(~same & (every.weights > 0.0))), constant

    def _dinkelbach(
        self,
        decisions: Decisions,
        sign: float,
        epsilon: float,
        theta: float,
        constant: _Constant = _NOTHING,
    ) -> tuple[float, float]:
        """The ratio and the price γ there; ``constant`` is what other samples add."""
        w, budget = decisions.weights, max(epsilon - constant.cost, 0.0)
        for step in range(100):
            found = decisions.hulls(sign * (self.above - theta * self.below))
            value = sign * (constant.above - theta * constant.below)
            value += float(found.curve(w).at(budget))
            total = constant.below + float(found.other_curve(w, self.below).at(budget))
            if total <= 0.0 and step == 0:
                theta = 0.5 - 0.5 * sign  # from here the denominator is positive
                continue
            # From beyond the root, the first step leads to the side where the others stay:
            # the value is a convex function of θ, so its tangent lies below it.
            if total <= 0.0 or (value <= 1e-14 * total and (step > 0 or value > -1e-14 * total)):
                break
            theta = min(max(theta + sign * value / total, 0.0), 1.0)
        return float(theta), found.edges.price(w, budget)


def largest_gap(ends: Callable[[float], tuple[float, float]]) -> float:
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
