"""The adversary of a linear model of two classes, with domains or without.

With margins ``u_i = y_i (x_i·β + b)`` and flips at a cost κ_i, a sample without domains has one
breakpoint, ``(u_i/κ_i, κ_i, u_i)``; domains give several (:mod:`.domain_breakpoints`).  A
prediction breaks at the distance ``u_i / L``, or by the cheapest set of changes
(:mod:`.crossing_costs`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..problem.domain_loss import Prices, prices_of
from ..problem.losses import log_loss
from ..problem.problem import Problem
from ..rows.arrays import FloatArray, IndexArray
from .adversary import Adversary, Ends
from .breakpoints import Breakpoints
from .crossing_costs import crossing_costs, is_exact
from .domain_breakpoints import changed_features, domain_breakpoints, item_costs


@dataclass(frozen=True, eq=False)
class PairAudit(Adversary):
    """That of a linear model: β, then b; the signs -1 and +1 stand for the two classes."""

    problem: Problem
    falling = 1

    @cached_property
    def u(self) -> FloatArray:
        return np.asarray(self.problem.rows.gather(self.problem.margins(self.coefficients)))

    @cached_property
    def losses(self) -> FloatArray:
        return log_loss(self.u)

    @cached_property
    def signs(self) -> FloatArray:
        """The labels as ±1."""
        return self.problem.rows.signs()

    @cached_property
    def codes(self) -> IndexArray:
        return (self.signs > 0.0).astype(np.intp)

    @cached_property
    def predicted(self) -> IndexArray:
        """On the boundary scikit-learn predicts the negative class."""
        return (self.signs * self.u > 0.0).astype(np.intp)

    @cached_property
    def nearest_class(self) -> IndexArray:
        return np.asarray(1 - self.codes)

    @cached_property
    def cheapest_label(self) -> IndexArray:
        return np.asarray(1 - self.codes)

    @cached_property
    def flip_costs(self) -> FloatArray:
        return self.problem.rows.flip_costs(self.problem.kappa)

    @cached_property
    def flip_unit(self) -> float:
        return self.problem.kappa

    def costs_of_labels(self, index: IndexArray, codes: IndexArray) -> FloatArray:
        return np.where(codes == self.codes[index], 0.0, self.flip_costs[index])

    def paid_for_labels(self, found: Breakpoints) -> FloatArray:
        flipped = found.flipped()
        return flipped * np.where(flipped != 0.0, self.flip_costs[found.sample], 0.0)

    @cached_property
    def sensitivity(self) -> float:
        """``‖β/c‖_*``, of features without a domain if some have one."""
        return self.problem.cost.dual_norm(self.coefficients)

    @property
    def steepest_model(self) -> FloatArray:
        return self.coefficients

    @cached_property
    def worst_loss(self) -> float:
        return float(self.problem.objective(self.coefficients))

    @cached_property
    def domain_loss(self) -> Prices:
        """What the adversary makes of samples whose features have domains."""
        return prices_of(self.problem.rows, self.problem.cost, self.coefficients)

    def breakpoints(self, upto: float | None = None) -> Breakpoints:
        if self.problem.domains is not None:
            return domain_breakpoints(self.domain_loss, upto)
        u, kappa = self.u, self.flip_costs
        with np.errstate(divide="ignore", invalid="ignore"):  # a flip may cost nothing
            rate = u / kappa
        worth = (u > 0.0) & (rate >= self.sensitivity) & (self.weights > 0.0)
        own = np.flatnonzero(worth & np.isfinite(kappa))
        flipped = np.full(own.size, -1, dtype=np.intp)
        return Breakpoints.in_order(own, rate[own], kappa[own], u[own], flipped)

    def ends(self, index: IndexArray, piece: IndexArray) -> Ends:
        """Where these pieces of samples end; what moves on keeps its label.

        Moved by d, a margin of v loses ``h(-v) - h(L d - v)`` against the limit ``L d``.
        """
        signs = self.signs[index] * np.where(piece < 0, -1.0, 1.0)
        scores = (self.signs * self.u)[index]
        changes, distance = None, np.zeros(index.size)
        domains = self.problem.domains
        if domains is not None:
            changes = changed_features(self.domain_loss, domains, self.signs, index, piece)
            scores = scores + changes @ self.coefficients[:-1]
            distance = np.asarray(item_costs(domains, changes).sum(axis=1)).ravel()
        margins, codes = signs * scores, (signs > 0.0).astype(np.intp)
        limits = log_loss(-margins)

        def lost(some: IndexArray, far: float) -> FloatArray:
            return np.asarray(limits[some] - log_loss(self.sensitivity * far - margins[some]))

        tolls = np.zeros(index.size)
        return Ends(codes, log_loss(margins), distance, changes, codes, tolls, limits, lost)

    @cached_property
    def costs_to_break(self) -> FloatArray:
        return self._crossing_costs(self.u, 1.0)

    @cached_property
    def costs_to_mend(self) -> FloatArray:
        return self._crossing_costs(-self.u, -1.0)

    @cached_property
    def exact_crossings(self) -> bool:
        domains = self.problem.domains
        return domains is None or is_exact(domains.group_costs)

    def _crossing_costs(self, gap: FloatArray, label: float) -> FloatArray:
        """Least cost of moves that gain ``gap``.

        ``label`` is 1 if samples are to leave their own label's side, -1 if the other's.
        """
        if self.problem.domains is None:
            with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
                return np.asarray(np.maximum(gap, 0.0) / self.sensitivity)
        costs = self.problem.domains.group_costs
        return crossing_costs(self.domain_loss, costs, self.sensitivity, gap, label)
