"""The adversary's breakpoints, and everything that is built from them.

For a fixed model, what the adversary gets of sample i at the price λ is convex, piecewise linear:

    R_i(λ)  =  loss_i  +  Σ over the sample's breakpoints e of  (gain_e - λ cost_e)_+

Each breakpoint takes the sample from one piece to the next: another label, moved items.  It pays
from the ``rate = gain / cost`` downwards, and rates fall along a sample.  So the adversary solves a
fractional knapsack: it takes breakpoints in the order of their rates, each for the whole mass of
its sample, until ε is spent; what is left goes into moves without end, at the slope
``L = ‖β/c‖_*``.  The worst-case loss is therefore a concave, piecewise linear function of the
radius, and one sort gives all of it, the worst-case distribution, and what each part of it costs.

Flips of labels are one breakpoint per sample, ``(u/κ, κ, u)``; domains give several
(:mod:`drlogit.problem.domain_loss`), and so do several classes, the upper hull of the lines
``s_y - s_k - κ(k) λ``: :meth:`Breakpoints.in_order` takes whatever a model of the samples lists.

Errors are a knapsack, too, with one item per sample: what it costs to bring it across the boundary
(:meth:`Breakpoints.by_cost`).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ..rows.arrays import FloatArray, IndexArray


class Curve(NamedTuple):
    """A piecewise linear, rising function of the radius, with a slope after its last corner."""

    radii: FloatArray
    values: FloatArray
    slope: float = 0.0

    def at(self, radii: FloatArray | float) -> FloatArray:
        """The value at each radius."""
        beyond = np.maximum(radii - self.radii[-1], 0.0)
        return np.asarray(np.interp(radii, self.radii, self.values) + self.slope * beyond)

    def radius_of(self, value: float) -> float:
        """The least radius at which the curve reaches a value; inf if it never does."""
        k = int(np.searchsorted(self.values, value))
        if k == 0:
            return 0.0
        if k < self.values.size:
            (r, s), (v, w) = self.radii[k - 1 : k + 1], self.values[k - 1 : k + 1]
            return float(r + (s - r) * ((value - v) / (w - v)))
        above = value - float(self.values[-1])
        return float(self.radii[-1]) + above / self.slope if self.slope > 0.0 else math.inf


class Breakpoints(NamedTuple):
    """The breakpoints of all samples in knapsack order: falling rates.

    ``before`` and ``after`` are the pieces between which a breakpoint lies: 0 is the sample as it
    is, and a negative piece has another label than the sample's own.  What else a number means is
    known to who made it.
    """

    sample: IndexArray
    rate: FloatArray
    cost: FloatArray
    gain: FloatArray
    before: IndexArray
    after: IndexArray

    @classmethod
    def in_order(cls, *columns: Any) -> Breakpoints:
        """In knapsack order; given so that each sample's are in the order in which it goes on."""
        found = cls(*columns)
        return found._at(np.argsort(-found.rate, kind="stable"))

    @classmethod
    def by_cost(cls, costs: FloatArray, some: IndexArray) -> Breakpoints:
        """One for each of some samples that has a finite cost, with a gain of one."""
        some = some[np.isfinite(costs[some])]
        cost, as_it_is = costs[some], np.zeros(some.size, dtype=np.intp)
        with np.errstate(divide="ignore", over="ignore"):
            rate = 1.0 / cost
        return cls.in_order(some, rate, cost, np.ones(some.size), as_it_is, as_it_is - 1)

    def _at(self, places: IndexArray) -> Breakpoints:
        columns: tuple[Any, ...] = self
        return Breakpoints(*(column[places] for column in columns))

    def price(self, weights: FloatArray, budget: float) -> float:
        """The rate at which a budget is spent, 0 if it pays for all."""
        beyond = np.flatnonzero(np.cumsum(self.masses(weights)) > budget)
        return float(self.rate[beyond[0]]) if beyond.size else 0.0

    def masses(self, weights: FloatArray) -> FloatArray:
        """What each breakpoint costs in all."""
        return np.asarray(weights[self.sample] * self.cost)

    def flipped(self) -> FloatArray:
        """1 where a breakpoint changes the sample's own label, -1 where it goes back to it."""
        return (self.after < 0).astype(np.float64) - (self.before < 0)

    def begun(self, weights: FloatArray, budget: float) -> Breakpoints:
        """Those that a budget pays for, the last in part."""
        masses = self.masses(weights)
        return self._at(np.flatnonzero(np.cumsum(masses) - masses < budget))

    def curve(
        self, weights: FloatArray, values: FloatArray, start: float = 0.0, slope: float = 0.0
    ) -> Curve:
        """Sums over what each radius pays for, of ``values`` per breakpoint and unit of mass."""
        total = np.append(0.0, np.cumsum(weights[self.sample] * values))
        return Curve(np.append(0.0, np.cumsum(self.masses(weights))), start + total, slope)

    def flipped_first(self, weights: FloatArray) -> tuple[IndexArray, FloatArray]:
        """Samples whose label is flipped, in that order, and radii at which the whole of it is."""
        some = (self.flipped() > 0.0) & (weights[self.sample] > 0.0)
        return self.sample[some], np.cumsum(self.masses(weights))[some]

    def pieces(
        self, weights: FloatArray, budget: float
    ) -> tuple[IndexArray, IndexArray, FloatArray, float]:
        """Where a budget takes the mass of the samples, and what it leaves.

        Samples in their order, the piece and the mass of each part.
        """
        masses = self.masses(weights)
        total = np.append(0.0, np.cumsum(masses))
        spent, left = total[:-1], max(budget - float(total[-1]), 0.0)
        some = (masses > 0.0) & (spent < budget) | (masses == 0.0) & (weights[self.sample] > 0.0)
        own, before, after = self.sample[some], self.before[some], self.after[some]
        share = np.ones(own.size)
        paid = masses[some] > 0.0
        share[paid] = np.minimum((budget - spent[some][paid]) / masses[some][paid], 1.0)
        # Each takes its share of the sample's mass from the piece where it begins to where it ends.
        moved = weights[own] * share
        every = np.arange(weights.size)
        sample = np.concatenate([every, own, own])
        piece = np.concatenate([np.zeros(weights.size, dtype=np.intp), before, after])
        mass = np.concatenate([weights, -moved, moved])
        span = int(np.abs(piece).max(initial=0)) + 1
        keys = sample * (2 * span) + piece + span
        _, first, place = np.unique(keys, return_index=True, return_inverse=True)
        mass = np.bincount(place, mass, minlength=first.size)
        sample, piece = sample[first], piece[first]
        # What is left of a piece that a sample has gone through is rounding.
        kept = mass > 1e-12 * weights[sample]
        sample, piece, mass = sample[kept], piece[kept], mass[kept]
        mass *= weights[sample] / np.bincount(sample, mass, minlength=weights.size)[sample]
        return sample, piece, mass, left
