"""What a model promises where features have domains, rounded upwards.

For any ``λ ≥ ‖β_U/c‖_*`` the model promises at most ``ελ + Σ w_i R_i``, where ``R_i`` is the
largest ``h(y u - G) - λ C`` over labels y (the other one costs κ) and sets of *items*: a group
changed to its worst category, a bounded feature at its adverse end, with gains that add up to G
and costs that add up to C.

*Only prefixes of the items, sorted by gain per cost, have to be looked at* (the function is convex
in ``(G, C)``, and they are the vertices that matter of the zonotope that partial moves fill), and
only items that gain more than λ per cost (its slope in G is at most 1).

*Rounding.* R rises with gains and falls with costs. So costs are rounded downwards, rates
gain/cost upwards, and the gain of an item is taken to be their product: then the rates are the
numbers that are sorted, the order is right, and what is left is the rounding of prefix sums.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..rows.arrays import FloatArray
from .domain import Domain
from .instance import DOWN, LOGARITHMS, TINY, UP, Instance, exact_sum, gamma

#: Looks at λ that a search for the best one takes at most.
_LOOKS = 100


def worst_case(given: Instance, lam: float | None, wanted: float) -> float:
    """What the model promises at most; at λ, if that is below ``wanted``, else at the best one."""
    best = math.inf
    if lam is not None and math.isfinite(lam):
        best = _at(given, max(lam, given.least_lambda))[0]
    return best if best <= wanted else min(best, _least(given))


def _least(given: Instance) -> float:
    """The least value over λ: where two tangents cross, again and again, as the value is convex."""
    low = given.least_lambda
    best, slope = _at(given, low)
    left = (low, best, slope)
    if slope >= 0.0:
        return best
    high = max(2.0 * low, 1.0)
    right = (high, *_at(given, high))
    while right[2] < 0.0 and high < 1e300:
        left, high = right, 4.0 * high
        right = (high, *_at(given, high))
    best = min(best, left[1], right[1])
    for _ in range(_LOOKS):
        (low, value, slope), (high, other, rise) = left, right
        if rise <= slope:
            break
        middle = (value - other + rise * high - slope * low) / (rise - slope)
        if not low < middle < high or best <= value + slope * (middle - low) + 1e-15:
            break
        found = (middle, *_at(given, middle))
        best = min(best, found[1])
        left, right = (found, right) if found[2] < 0.0 else (left, found)
    return best


def _at(given: Instance, lam: float) -> tuple[float, float]:
    """``ελ + Σ w_i R_i`` rounded upwards, and about its slope in λ."""
    assert given.domain is not None
    ball, margins = given.ball, given.margins
    worst, spent = np.empty(given.signs.size), np.empty(given.signs.size)
    for rows, part in given.parts():
        table = _Table.of(given, given.domain, part)
        u, y = margins.value[rows], given.signs[rows]
        value, cost = table.worst(u, y, lam)
        kappa = given.flip_costs[rows]
        if np.isfinite(kappa).any():
            other, more = table.worst(-u, -y, lam)
            flips = np.isfinite(kappa)
            kappa = np.where(flips, kappa, 0.0)
            other = np.where(flips, other - kappa * lam * DOWN, 0.0)
            cost = np.where(other > value, more + kappa, cost)
            value = np.maximum(value, other)
        worst[rows] = np.maximum(value, 0.0) + margins.error[rows]
        spent[rows] = cost
    total = given.total_weight
    mean = exact_sum(given.weights * worst * UP + TINY) / total
    slope = ball.epsilon - float(given.weights @ spent) / total
    return float((mean + ball.epsilon * lam) * UP), slope


@dataclass(frozen=True, eq=False)
class _Table:
    """Rates and costs of the items of some samples, for either label, in two arrays each."""

    rates: tuple[FloatArray, FloatArray]  # for the labels +1 and -1
    costs: tuple[FloatArray, FloatArray]

    @classmethod
    def of(cls, given: Instance, domain: Domain, part: Any) -> _Table:
        beta = given.coef
        rates: list[list[FloatArray]] = [[], []]
        costs: list[list[FloatArray]] = [[], []]
        now = domain.present(part)
        here = np.where(now >= 0, beta[now], 0.0)
        for g, group in enumerate(domain.groups):
            ends = np.append(beta[group], 0.0) if domain.with_none[g] else beta[group]
            gains = here[:, g] - ends.min(), ends.max() - here[:, g]
            for k, gain in enumerate(gains):
                rates[k].append(gain / domain.group_costs[g] * UP)
                costs[k].append(np.full(gain.size, domain.group_costs[g]))
        values = domain.values(part)
        for j, column in enumerate(domain.bounded):
            rate = abs(beta[column]) / domain.bounded_costs[j] * UP * UP
            down, up = values[:, j] - domain.lower[j], domain.upper[j] - values[:, j]
            for k, distance in enumerate((down, up) if beta[column] > 0.0 else (up, down)):
                rates[k].append(np.full(distance.size, rate))
                costs[k].append(domain.bounded_costs[j] * distance * DOWN)
        plus, minus = (np.column_stack(each) for each in rates)
        return cls((plus, minus), (np.column_stack(costs[0]), np.column_stack(costs[1])))

    def worst(self, u: FloatArray, y: FloatArray, lam: float) -> tuple[FloatArray, FloatArray]:
        """``max h(u - G) - λC`` rounded upwards, and C; u are the margins under the labels y."""
        positive = (y > 0.0)[:, None]
        rates, costs = (np.where(positive, *each) for each in (self.rates, self.costs))
        paying = rates > lam
        rows = np.flatnonzero(paying.any(axis=1))
        value, spent = _loss(u), np.zeros(u.size)
        if not rows.size:
            return value, spent
        rates, costs = rates[rows], np.where(paying[rows], costs[rows], 0.0)
        rates = np.where(paying[rows], rates, 0.0)
        most = int(paying[rows].sum(axis=1).max())
        order = np.argsort(-rates, axis=1, kind="stable")[:, :most]
        rates, costs = (np.take_along_axis(each, order, axis=1) for each in (rates, costs))
        gained, paid = np.cumsum(rates * costs, axis=1), np.cumsum(costs, axis=1)
        wrong = gamma(most + 4)
        prefixes = _loss(u[rows, None] - gained) - lam * paid * (1.0 - wrong) * DOWN
        top = prefixes.argmax(axis=1)
        best = prefixes[np.arange(rows.size), top] + wrong * gained[:, -1] * UP
        better = best > value[rows]
        value[rows[better]] = best[better]
        spent[rows[better]] = paid[better, top[better]]
        return value, spent


def _loss(u: FloatArray) -> FloatArray:
    """``log(1 + e^{-u})``, rounded upwards."""
    loss = np.log1p(np.exp(-np.abs(u))) + np.maximum(-u, 0.0)
    return np.asarray(loss * (1.0 + LOGARITHMS) * UP)
