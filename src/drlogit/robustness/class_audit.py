"""The adversary of a softmax: several labels that a sample may get, at a cost each.

With scores ``s = B x + b`` the loss of label k is ``lse(s) - s_k``, and turning the label y into k
costs ``κ(y, k)``.  What the adversary gets of a sample at the price λ ≥ L is

    lse(s) - s_y  +  max over k of  [ (s_y - s_k) - κ(y, k) λ ],       L = max ‖(B_j - B_k)/c‖_*,

the upper hull of K lines: its corners are the sample's breakpoints, and everything else is as for
two classes.  A prediction breaks at the nearest of K - 1 boundaries, ``(s_y - s_j) / ‖(B_y -
B_j)/c‖_*`` away.  To mend one, all of them must be crossed, of which the furthest is a bound from
below: the best error of several classes is one, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import logsumexp

from ..problem.classes import ClassProblem, Scored
from ..problem.label_costs import LabelCosts
from ..rows.arrays import BoolArray, FloatArray, IndexArray
from ..rows.blocks import Block
from .adversary import Adversary, Ends
from .breakpoints import Breakpoints


@dataclass(frozen=True, eq=False)
class ClassAudit(Adversary):
    """That of a softmax; ``coefficients`` are (K, columns), the intercepts last."""

    problem: ClassProblem

    @cached_property
    def scores(self) -> FloatArray:
        rows = self.problem.rows
        state = rows.run(_scores, self.problem.scores(self.coefficients))[0]
        return np.asarray(rows.gather(state))

    @cached_property
    def codes(self) -> IndexArray:
        """The labels as positions among the classes."""
        return np.asarray(self.problem.rows.gather(self.problem.codes)).astype(np.intp)

    @cached_property
    def gaps(self) -> FloatArray:
        """``s_y - s_k``: what each label is behind the sample's own."""
        own = np.take_along_axis(self.scores, self.codes[:, None], axis=1)
        return np.asarray(own - self.scores)

    @cached_property
    def others(self) -> BoolArray:
        """Labels that are not the sample's own."""
        return np.asarray(self.codes[:, None] != np.arange(len(self.classes)))

    @cached_property
    def u(self) -> FloatArray:
        return np.asarray(np.where(self.others, self.gaps, np.inf).min(axis=1))

    @cached_property
    def losses(self) -> FloatArray:
        return np.asarray(logsumexp(-self.gaps, axis=1))

    @cached_property
    def label_costs(self) -> FloatArray:
        """What each sample's label costs to turn into the others."""
        problem, rows = self.problem, self.problem.rows
        costs = problem.label_costs._replace(free=False)  # at every radius
        return np.asarray(rows.gather(rows.run(_costs, problem.codes, costs)[0]))

    @cached_property
    def flip_costs(self) -> FloatArray:
        return np.asarray(np.where(self.others, self.label_costs, np.inf).min(axis=1))

    @cached_property
    def flip_unit(self) -> float:
        return float(np.min(self.flip_costs[self.flip_costs > 0.0], initial=np.inf))

    @cached_property
    def pair_norms(self) -> FloatArray:
        """``‖(B_j - B_k)/c‖_*`` of all pairs."""
        models, dual = self.coefficients, self.problem.cost.dual_norm
        return np.array([[dual(one - other) for other in models] for one in models])

    @cached_property
    def steepest(self) -> tuple[int, int]:
        """The two labels between which a move counts most, the first of which a sample can have."""
        had = np.asarray(np.isfinite(self.label_costs[self.weights > 0.0]).any(axis=0))
        norms = np.where(had[:, None], self.pair_norms, -1.0)
        one, other = np.unravel_index(int(norms.argmax()), norms.shape)
        return int(one), int(other)

    @cached_property
    def sensitivity(self) -> float:
        return float(self.pair_norms[self.steepest])

    @cached_property
    def worst_loss(self) -> float:
        radius = self.problem.epsilon
        return float(self.loss_curve(self.breakpoints(radius)).at(np.array(radius)))

    @cached_property
    def falling(self) -> int:
        return self.steepest[0]

    @cached_property
    def steepest_model(self) -> FloatArray:
        one, other = self.steepest
        return np.asarray(self.coefficients[one] - self.coefficients[other])

    def costs_of_labels(self, index: IndexArray, codes: IndexArray) -> FloatArray:
        return np.asarray(self.label_costs[index, codes])

    def ends(self, index: IndexArray, piece: IndexArray) -> Ends:
        """Where these pieces of samples end; what moves on gets one of the two steepest labels.

        With the label c it moves towards the other one, o, and loses
        ``lse(s) - s_o - lse(s(d) - s_o(d))`` against ``L d``; what a label costs more than it
        gains comes on top.
        """
        every, codes = np.arange(index.size), np.where(piece < 0, -1 - piece, self.codes[index])
        scores, costs = self.scores[index], self.label_costs[index]
        level, paid = logsumexp(scores, axis=1), costs[every, codes]
        options = []
        for label, opposite in (self.steepest, self.steepest[::-1]):
            can = np.isfinite(costs[:, label])
            # A label that costs less than the piece's own is not paid back.
            toll = np.maximum(np.where(can, costs[:, label], 0.0) - paid, 0.0)
            gain = scores[every, codes] - scores[:, label]
            limit = self.sensitivity * toll - gain + level - scores[:, opposite]
            options.append((toll, np.where(can, limit, np.inf)))
        second = (options[1][1] < options[0][1]).astype(np.intp)
        tolls, limits = (np.choose(second, column) for column in zip(*options, strict=True))
        towards = np.choose(second, self.steepest[::-1])
        signs = np.where(second == 1, 1.0, -1.0)
        slopes = self.coefficients[:, :-1] @ self.direction

        def lost(some: IndexArray, far: float) -> FloatArray:
            ahead = scores[some] - scores[some, towards[some]][:, None]
            ahead += far * signs[some, None] * (slopes - slopes[towards[some]][:, None])
            return np.asarray(limits[some] - logsumexp(ahead, axis=1))

        return Ends(
            codes, level - scores[every, codes], np.zeros(index.size), None,
            np.choose(second, self.steepest), tolls, limits, lost,
        )  # fmt: skip

    def breakpoints(self, upto: float | None = None) -> Breakpoints:
        """Corners of the hulls, one of each sample at a time: at most K - 1 times."""
        costs, going = self.label_costs, np.flatnonzero(self.weights > 0.0)
        label = self.codes
        none, nothing = np.empty(0, dtype=np.intp), np.empty(0)
        found = [(none, nothing, nothing, nothing, none)]
        while going.size:
            now = label[going, None]
            further = costs[going] - np.take_along_axis(costs[going], now, axis=1)
            more = self.gaps[going] - np.take_along_axis(self.gaps[going], now, axis=1)
            worth = (more > 0.0) & (further >= 0.0) & np.isfinite(further)
            with np.errstate(divide="ignore", invalid="ignore"):  # a label may cost nothing
                rates = np.where(worth, more / further, -np.inf)
            # Of labels with the same rate the one that gains most: among those that cost nothing
            # more, the others do not count.
            rate = rates.max(axis=1)
            k = np.where(rates == rate[:, None], more, -np.inf).argmax(axis=1)
            some = np.flatnonzero((rate > 0.0) & (rate >= self.sensitivity))
            going, k = going[some], k[some]
            found.append((going, rate[some], further[some, k], more[some, k], -1 - k))
            label = label.copy()
            label[going] = k
        columns = [np.concatenate(column) for column in zip(*found, strict=True)]
        by_sample = np.argsort(columns[0], kind="stable")
        return Breakpoints.in_order(*(column[by_sample] for column in columns))

    @cached_property
    def costs_to_break(self) -> FloatArray:
        return np.where(self.u > 0.0, self._distances(self.gaps, np.inf).min(axis=1), 0.0)

    @cached_property
    def costs_to_mend(self) -> FloatArray:
        return np.where(self.u < 0.0, self._distances(-self.gaps, 0.0).max(axis=1), 0.0)

    def _distances(self, gaps: FloatArray, own: float) -> FloatArray:
        """From the boundaries with other labels; ``own`` for the sample's own."""
        gaps = np.maximum(gaps, 0.0)
        norms = self.pair_norms[self.codes]
        with np.errstate(divide="ignore", invalid="ignore"):
            far = np.where(gaps > 0.0, gaps / norms, 0.0)
        return np.where(self.others, far, own)

    @cached_property
    def exact_crossings(self) -> bool:
        return self.problem.as_given

    @cached_property
    def predicted(self) -> IndexArray:
        return np.asarray(self.scores.argmax(axis=1))

    @cached_property
    def nearest_class(self) -> IndexArray:
        ahead = np.where(self.others, self.gaps, np.inf).argmin(axis=1)
        near = self._distances(self.gaps, np.inf).argmin(axis=1)
        return np.asarray(np.where(self.u > 0.0, near, ahead))

    @cached_property
    def cheapest_label(self) -> IndexArray:
        return np.asarray(np.where(self.others, self.label_costs, np.inf).argmin(axis=1))

    def paid_for_labels(self, found: Breakpoints) -> FloatArray:
        return found.cost


def _scores(block: Block, scored: Scored) -> tuple[FloatArray, tuple[()]]:
    return scored[0], ()


def _costs(block: Block, codes: FloatArray, costs: LabelCosts) -> tuple[FloatArray, tuple[()]]:
    return costs.of(block, codes.astype(np.intp)), ()
