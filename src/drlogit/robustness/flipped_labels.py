"""Which labels the worst case for the log-loss flips.

Without domains they are those of the largest margins, as long as these exceed κL: below, moves
yield more (:mod:`drlogit.robustness.worst_case`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..rows.arrays import FloatArray
from .questions import Question


def flip_order(question: Question) -> NDArray[np.intp]:
    """The samples whose labels the worst case flips, in the order in which it does."""
    u, kappa = question.u, question.problem.kappa
    if math.isinf(kappa):
        return np.empty(0, dtype=np.intp)
    worth = (u > 0.0) & (u >= kappa * question.sensitivity) & (question.weights > 0.0)
    chosen = np.flatnonzero(worth)
    return chosen[np.argsort(-u[chosen], kind="stable")]


def flipped_within(question: Question, budget: float) -> tuple[FloatArray, float]:
    """Mass of each sample whose label is flipped, and what that leaves of the budget.

    Largest margins first, down to κL: there a flip yields what a move approaches.
    """
    kappa, w = question.problem.kappa, question.weights
    flips = np.zeros_like(w)
    order = flip_order(question)
    if order.size == 0:
        return flips, budget
    spent = kappa * np.cumsum(w[order])
    full = int(np.searchsorted(spent, budget, side="right"))
    before = float(spent[full - 1]) if full else 0.0
    flips[order[:full]] = w[order[:full]]
    if full == order.size:
        return flips, budget - before
    part = order[full]
    flips[part] = min((budget - before) / kappa, float(w[part]))
    return flips, 0.0


class Flips(Protocol):
    """Labels that the worst case flips, as a function of the radius.

    ``samples`` are those whose label is flipped, in that order, and ``reached`` the radii at
    which the whole of it is.
    """

    @property
    def samples(self) -> NDArray[np.intp]: ...

    @property
    def reached(self) -> FloatArray: ...

    def at(self, epsilon: float) -> float:
        """The share of flipped labels."""
        ...


@dataclass(frozen=True, eq=False)
class _PlainFlips:
    """Those of features without domains: the largest margins, as long as they are worth κL."""

    samples: NDArray[np.intp]
    reached: FloatArray
    kappa: float
    flippable: float

    def at(self, epsilon: float) -> float:
        return min(epsilon / self.kappa, self.flippable)


def flips_of(question: Question) -> Flips:
    """What the worst case for the log-loss flips."""
    if question.problem.domains is not None:
        from .bought_moves import FlipCurve  # compiled

        return FlipCurve.of(question)
    order, kappa, w = flip_order(question), question.problem.kappa, question.weights
    reached = kappa * np.cumsum(w[order]) if order.size else np.empty(0)
    return _PlainFlips(order, reached, kappa, float(w[order].sum()))
