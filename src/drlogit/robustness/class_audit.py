"""The adversary of a softmax: several labels that a sample may get, at a cost each.

Features move as numbers do: those with domains, too, so that worst cases are upper bounds there.
The best error of several classes is a bound from below.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import logsumexp

from ..problem.classes import ClassProblem, Scored
from ..problem.label_costs import LabelCosts
from ..rows.arrays import FloatArray, IndexArray
from ..rows.blocks import Block
from .adversary import Adversary, Ends


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
    def label_costs(self) -> FloatArray:
        """What each sample's label costs to turn into the others."""
        problem, rows = self.problem, self.problem.rows
        costs = problem.label_costs._replace(free=False)  # at every radius
        return np.asarray(rows.gather(rows.run(_costs, problem.codes, costs)[0]))

    @cached_property
    def flip_unit(self) -> float:
        return float(np.min(self.flip_costs[self.flip_costs > 0.0], initial=np.inf))

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

    @cached_property
    def exact_crossings(self) -> bool:
        return self.problem.as_given


def _scores(block: Block, scored: Scored) -> tuple[FloatArray, tuple[()]]:
    return scored[0], ()


def _costs(block: Block, codes: FloatArray, costs: LabelCosts) -> tuple[FloatArray, tuple[()]]:
    return costs.of(block, codes.astype(np.intp)), ()
