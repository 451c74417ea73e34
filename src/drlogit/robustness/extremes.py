"""The least and the largest value of a metric over the ball around the samples of an audit.

The largest mean of f is ``sup { E_Q f : W(Q, P) ≤ ε } = min over γ ≥ 0 of  γε + Σ w_i R_i(γ)``.
One sort gives it for every ε
(:class:`.breakpoints.Hulls`).

The largest ratio ``θ = E[a] / E[b]``, such as precision, is the root of ``sup E_Q[a - θ b]``.
Dinkelbach's method (1967, Management Science 13) finds it by Newton steps from the ratio of the
samples as they are.  Each step is the worst case of a mean, and the iterates reach the root from
one side.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ..rows.arrays import FloatArray
from ..rows.threads import one_blas_thread
from .breakpoints import Hulls
from .decisions import Decisions
from .old_adversary import Adversary
from .old_metrics import Metric

#: Every so many rows are the part that a ratio starts from, if these are more than so many.
_PART, _MANY = 16, 10_000


@dataclass(frozen=True, eq=False)
class Extremes:
    """A metric on the samples of an audit.

    The sign 1 asks for the largest value of the metric, -1 for the least.
    """

    audit: Adversary
    metric: Metric

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
            return False
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
        return audit.losses, ones

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
    def price_of(part: Hulls, weights: FloatArray, epsilon: float) -> float:
        """The price γ of a mean at a radius: the gain per cost at the end of the budget."""
        return max(part.edges.price(weights, epsilon), part.slope)

    def part(self, sign: float, theta: float = 0.0) -> Hulls:
        """The adversary's options for each sample; for a ratio, those of ``a - θ b``."""
        metric = self.metric
        if metric.table is not None:
            return self.decisions.hulls(sign * metric.less(theta))
        return self.audit.loss_hulls if sign > 0.0 else self.audit.least_loss_hulls
