"""The adversary's breakpoints, and everything that is built from them.

For a fixed model, the gain of the adversary on sample i at the price λ is convex and piecewise
linear in λ:

    R_i(λ)  =  loss_i  +  Σ over the sample's breakpoints e of  (gain_e - λ cost_e)_+

Each breakpoint takes the sample from one piece to the next: another label, or one more moved item.
It pays off at prices below its ``rate = gain / cost``, and rates fall along a sample.  So the
adversary solves a fractional knapsack problem: it takes breakpoints in the order of their rates,
each for the whole mass of its sample, until ε is spent.  The rest of ε goes into unbounded moves,
which gain ``L = ‖β/c‖_*`` per unit of cost.  The worst-case loss is therefore a concave, piecewise
linear function of the radius.  One sort gives this function, the worst-case distribution, and the
cost of each part of it.

Flips of labels are one breakpoint per sample, ``(u/κ, κ, u)``; domains give several
(:mod:`drlogit.problem.domain_loss`), and so do several classes, the upper hull of the lines
``s_y - s_k - κ(k) λ``.

Every other metric with finitely many values per sample, such as the cost of a decision, has the
same form: each value is an option with a cost and a gain, and the edges of the upper hull of the
options are the breakpoints (:meth:`Breakpoints.of_hulls`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
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
    is, and a negative piece has another label than the sample's own.  The rest of the numbering is
    up to the code that creates the breakpoints.
    """

    sample: IndexArray
    rate: FloatArray
    cost: FloatArray
    gain: FloatArray
    before: IndexArray
    after: IndexArray

    @classmethod
    def in_order(cls, *columns: Any) -> Breakpoints:
        """Sorted into knapsack order; those of one sample must come with falling rates."""
        found = cls(*columns)
        return found._at(np.argsort(-found.rate, kind="stable"))

    @classmethod
    def of_hulls(
        cls, costs: FloatArray, gains: FloatArray, some: IndexArray, pieces: IndexArray,
        least: float = 0.0,
    ) -> Breakpoints:  # fmt: skip
        """The edges of the upper hulls of options, down to a least rate; not yet in order.

        ``costs`` and ``gains`` have a row for each option, which is one of the ``pieces``, and a
        column for each sample in ``some``.  Staying as it is costs and gains nothing.
        """
        cost, gain = np.zeros((2, some.size))  # where each sample is on its hull
        piece, last = np.zeros(some.size, dtype=np.intp), np.full(some.size, np.inf)
        going, found = np.arange(some.size), []
        for _ in pieces:
            further, more = costs[:, going] - cost[going], gains[:, going] - gain[going]
            worth = (more > 0.0) & (further > 0.0) & np.isfinite(further)
            with np.errstate(over="ignore"):
                rates = np.divide(more, further, out=np.full_like(more, -np.inf), where=worth)
            option = rates.argmax(axis=0)
            rate = rates[option, np.arange(going.size)]
            on = np.flatnonzero((rate > 0.0) & (rate >= least))
            going, option = going[on], option[on]
            # Rounding must not let a sample's later edge go before an earlier one.
            last[going] = np.minimum(rate[on], last[going])
            edges = last[going], further[option, on], more[option, on]
            found.append((some[going], *edges, piece[going], pieces[option]))
            cost[going], gain[going] = costs[option, going], gains[option, going]
            piece[going] = pieces[option]
            if not going.size:
                break
        return cls(*map(np.concatenate, zip(*found, strict=True)))

    @classmethod
    def joined(cls, parts: Iterable[Breakpoints]) -> Breakpoints:
        """The breakpoints of several sets of samples, in knapsack order."""
        none, no = np.empty(0, dtype=np.intp), np.empty(0)
        return cls.in_order(
            *map(np.concatenate, zip((none, no, no, no, none, none), *parts, strict=True))
        )

    def _at(self, places: IndexArray) -> Breakpoints:
        columns: tuple[Any, ...] = self
        return Breakpoints(*(column[places] for column in columns))

    def price(self, weights: FloatArray, budget: float) -> float:
        """The rate of the breakpoint at which a budget ends; 0 if it pays for all of them."""
        beyond = np.flatnonzero(np.cumsum(self.masses(weights)) > budget)
        return float(self.rate[beyond[0]]) if beyond.size else 0.0

    def masses(self, weights: FloatArray) -> FloatArray:
        """The cost of each breakpoint for the whole mass of its sample."""
        return np.asarray(weights[self.sample] * self.cost)

    def flipped(self) -> FloatArray:
        """1 where a breakpoint changes the sample's own label, -1 where it goes back to it."""
        return (self.after < 0).astype(np.float64) - (self.before < 0)

    def begun(self, weights: FloatArray, budget: float) -> Breakpoints:
        """The breakpoints that a budget pays for, the last one possibly in part."""
        masses = self.masses(weights)
        return self._at(np.flatnonzero(np.cumsum(masses) - masses < budget))

    def curve(
        self, weights: FloatArray, values: FloatArray, start: float = 0.0, slope: float = 0.0
    ) -> Curve:
        """Sums of ``values`` per unit of mass over the breakpoints that each radius pays for."""
        total = np.append(0.0, np.cumsum(weights[self.sample] * values))
        return Curve(np.append(0.0, np.cumsum(self.masses(weights))), start + total, slope)

    def flipped_first(self, weights: FloatArray) -> tuple[IndexArray, FloatArray]:
        """Samples in the order in which labels are flipped, and radii that flip them fully."""
        some = (self.flipped() > 0.0) & (weights[self.sample] > 0.0)
        return self.sample[some], np.cumsum(self.masses(weights))[some]


class Hulls(NamedTuple):
    """A metric of each sample, and how the adversary can raise it.

    ``start`` has the values at no cost, ``edges`` has the edges of the hulls of all samples, and
    ``slope`` is the gain of unbounded moves per unit of cost.
    """

    start: FloatArray
    edges: Breakpoints
    slope: float = 0.0
    begins: IndexArray | None = None  # of decisions, the option that each sample begins with

    def curve(self, weights: FloatArray) -> Curve:
        """The largest mean at every radius."""
        start = float(weights @ self.start)
        return self.edges.curve(weights, self.edges.gain, start, self.slope)

    def at_price(self, price: float) -> tuple[FloatArray, FloatArray]:
        """The value of each sample to the adversary at a price, and the cost of reaching it."""
        edges, size = self.edges, self.start.size
        taken = edges.gain > price * edges.cost
        sample, cost, gain = edges.sample[taken], edges.cost[taken], edges.gain[taken]
        most = self.start + np.bincount(sample, gain - price * cost, minlength=size)
        return most, np.asarray(np.bincount(sample, cost, minlength=size), dtype=np.float64)

    def other_curve(self, weights: FloatArray, table: FloatArray) -> Curve:
        """The mean of another table, under the distributions that make this one largest."""
        assert self.begins is not None
        edges, values = self.edges, table.ravel()
        before = np.where(edges.before > 0, edges.before - 1, self.begins[edges.sample])
        changes = values[edges.after - 1] - values[before]
        return edges.curve(weights, changes, float(weights @ values[self.begins]))
