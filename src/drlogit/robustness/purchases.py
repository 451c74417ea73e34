"""What the adversary buys at every radius at once, and the worst-case loss that it makes.

The worst case for the log-loss buys changes of samples in the order of their yield per cost until
ε is spent (:mod:`drlogit.problem.domain_loss`); without domains these are flips of labels, and what
they leave of ε goes into moves.  So the worst-case loss is a concave, piecewise linear function of
the radius, and one sort gives all of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..problem.domain_loss import Purchases
from ..problem.losses import log_loss
from ..rows.arrays import FloatArray
from .flipped_labels import flip_order
from .questions import Question


def purchases_of(question: Question, upto: float | None = None) -> Purchases:
    """The purchases in their order; only those of a budget of ``upto``, if that is given."""
    if question.problem.domains is not None:
        return Purchases.of(question.prices, upto)
    kappa, own = question.problem.kappa, flip_order(question)
    cost = np.full(own.size, kappa)
    start, flipped = np.zeros(own.size, dtype=np.intp), np.full(own.size, -1, dtype=np.intp)
    return Purchases(
        own, question.u[own] / kappa, cost, question.weights[own] * cost, start, flipped
    )


@dataclass(frozen=True, eq=False)
class LossCurve:
    """The worst-case log-loss as a function of the radius."""

    spent: FloatArray
    losses: FloatArray
    slope: float  # after the last purchase

    def at(self, radii: FloatArray) -> FloatArray:
        beyond = np.maximum(radii - self.spent[-1], 0.0)
        return np.asarray(np.interp(radii, self.spent, self.losses) + self.slope * beyond)


def loss_curve(
    question: Question, bought: Purchases, weights: FloatArray | None = None
) -> LossCurve:
    """The curve of all samples, or with other weights of theirs, which sum to one.

    Good up to the budget of the purchases; with other weights they must be all there are.
    """
    w = question.weights if weights is None else weights
    mass = w[bought.own] * bought.cost
    return LossCurve(
        np.append(0.0, np.cumsum(mass)),
        float(w @ log_loss(question.u)) + np.append(0.0, np.cumsum(mass * bought.rate)),
        question.sensitivity,
    )
