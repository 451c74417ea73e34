"""The worst case of a ratio ``E[a] / E[b]``, such as precision, over the Wasserstein ball.

The largest ratio θ is the root of ``sup E_Q[a - θ b]``.  Dinkelbach's method (1967, Management
Science 13) finds it by Newton steps from the ratio of the samples as they are.  Each step is the
worst case of a mean (:mod:`.breakpoints`), and the iterates reach the root from one side.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ..rows.arrays import FloatArray
from .decisions import Decisions

#: With more samples than this, Newton's method starts from the solution for a part of them.
_MANY = 50_000

#: How exact the gap between two ratios is, and after how many ways to share the budget to stop.
_GAP_TOL, _MOST_SHARES = 1e-6, 400


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
        if weights.size > _MANY:
            few = every.some(np.flatnonzero(weights > 0.0)[:: weights.size // _MANY + 1])
            few = replace(few, weights=few.weights * float(weights.sum() / few.weights.sum()))
            theta = self._dinkelbach(few, sign, epsilon, theta)
        return self._dinkelbach(every, sign, epsilon, theta)

    def _dinkelbach(self, decisions: Decisions, sign: float, epsilon: float, theta: float) -> float:
        """The ratio, from any start θ."""
        w = decisions.weights
        for step in range(100):
            found = decisions.hulls(sign * (self.above - theta * self.below))
            value = float(found.curve(w).at(epsilon))
            total = float(found.other_curve(w, self.below).at(epsilon))
            if total <= 0.0 and step == 0:
                theta = 0.5 - 0.5 * sign  # from here the denominator is positive
                continue
            # From beyond the root, the first step leads to the side where the others stay:
            # the value is a convex function of θ, so its tangent lies below it.
            if total <= 0.0 or (value <= 1e-14 * total and (step > 0 or value > -1e-14 * total)):
                break
            theta = min(max(theta + sign * value / total, 0.0), 1.0)
        return float(theta)


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
