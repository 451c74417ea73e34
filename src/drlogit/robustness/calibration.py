"""Probabilities against what happens, and right against wrong, as things are and in the worst case.

Two worst cases, because two things are asked.  Calibration is that of the distribution that is
worst for the log-loss.  Confusion is that of the one that is worst for the error, whose wrong share
is the worst-case error: a sample predicted right goes wrong by a move, which changes the
prediction, or by a flip, which changes the label, whichever is cheaper.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import expit

from ..rows.arrays import FloatArray
from .audit_problem import AuditProblem
from .breakpoints import Crossings
from .worst_case import WorstCaseDistribution

_BINS = 10


class Calibration(NamedTuple):
    """Of each tenth of the probabilities: mass, mean probability, and share of positive labels.

    Of empty tenths the latter two are 0.
    """

    mass: FloatArray
    probability: FloatArray
    observed: FloatArray

    @property
    def error(self) -> float:
        """The expected calibration error: how far apart the latter two are on average."""
        return float(self.mass @ np.abs(self.probability - self.observed))


def calibration(audit: AuditProblem, distribution: WorstCaseDistribution) -> Calibration:
    """The calibration of a model under a distribution."""
    scores = scores_of(audit, distribution)
    flip = np.where(distribution.flipped, -1.0, 1.0)
    positive = audit.signs[distribution.index] * flip > 0.0
    p, w = expit(scores), distribution.mass
    places = np.minimum((p * _BINS).astype(np.intp), _BINS - 1)
    mass, predicted, observed = (
        np.bincount(places, values, minlength=_BINS).astype(np.float64)
        for values in (w, w * p, w * positive)
    )
    some = np.where(mass > 0.0, mass, 1.0)
    return Calibration(mass, predicted / some, observed / some)


def scores_of(audit: AuditProblem, distribution: WorstCaseDistribution) -> FloatArray:
    """``x·β + b`` of the atoms of a distribution."""
    scores = (audit.signs * audit.u)[distribution.index]
    scores = scores + audit.sensitivity * distribution.shift
    if distribution.changes is not None:
        scores = scores + distribution.changes @ audit.coefficients[:-1]
    return np.asarray(scores)


def confusion(audit: AuditProblem) -> FloatArray:
    """Shares of actual by predicted labels, negative first, as things are.

    On the boundary the negative class is predicted, as scikit-learn does.
    """
    positive = audit.signs > 0.0
    predicted = np.where(positive, audit.u, -audit.u) > 0.0
    places = 2 * positive + predicted
    cells = np.bincount(places, audit.weights, minlength=4).astype(np.float64)
    return cells.reshape(2, 2)


def worst_confusions(audit: AuditProblem, radii: FloatArray) -> FloatArray:
    """The same in the worst case for the error, at each radius; on the boundary all are wrong."""
    u, w, least = audit.u, audit.weights, audit.costs_to_break
    positive, right = (audit.signs > 0.0).astype(np.intp), u > 0.0
    start = np.bincount(np.where(right, 3 * positive, positive + 1), w, minlength=4)
    cost = np.minimum(least, audit.flip_costs)
    crossed, spent, _ = Crossings.of(cost, np.flatnonzero(right), w)
    # A moved sample keeps its label and a flipped one its prediction: cell 2·label + prediction.
    side, flips = positive[crossed], least[crossed] > audit.flip_costs[crossed]
    cells = np.repeat(start[None, :], radii.size, axis=0)
    for sign, places in ((-1.0, 3 * side), (1.0, np.where(side != flips, 2, 1))):
        for cell in range(4):
            taken = np.append(0.0, np.cumsum(np.where(places == cell, w[crossed], 0.0)))
            cells[:, cell] += sign * np.interp(radii, spent, taken)
    return np.maximum(cells, 0.0).reshape(-1, 2, 2)
