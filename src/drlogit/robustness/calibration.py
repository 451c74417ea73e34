"""Probabilities against what happens, and right against wrong, as things are and in the worst case.

Two worst cases, because two things are asked.  Calibration is that of the distribution that is
worst for the log-loss.  Confusion is that of the one that is worst for the error, whose wrong share
is the worst-case error: a sample predicted right goes wrong by a move, which changes the
prediction, or by a flip, which changes the label, whichever is cheaper.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit

from ..rows.arrays import FloatArray, IndexArray
from .adversary import Adversary
from .breakpoints import Crossings
from .pair_audit import PairAudit
from .worst_case import WorstCaseDistribution

_BINS = 10

#: Classes whose confusion is shown: a table of more columns fits no page.
CONFUSED = 10


def calibration(audit: PairAudit, distribution: WorstCaseDistribution) -> dict[str, Any]:
    """Of each tenth of the probabilities: mass, mean probability, and share of positive labels.

    Of empty tenths the latter two are 0; the expected calibration ``error`` is how far apart they
    are on average.
    """
    scores = (audit.signs * audit.u)[distribution.index] + audit.sensitivity * distribution.shift
    if distribution.changes is not None:
        scores = scores + distribution.changes @ audit.coefficients[:-1]
    positive = (audit.codes[distribution.index] == 1) != distribution.flipped
    p, w = expit(scores), distribution.mass
    places = np.minimum((p * _BINS).astype(np.intp), _BINS - 1)
    mass, predicted, observed = (
        np.bincount(places, values, minlength=_BINS).astype(np.float64)
        for values in (w, w * p, w * positive)
    )
    some = np.where(mass > 0.0, mass, 1.0)
    probability, share = predicted / some, observed / some
    error = float(mass @ np.abs(probability - share))
    return {"mass": mass, "probability": probability, "observed": share, "error": error}


def confusion(audit: Adversary) -> FloatArray:
    """Shares of actual labels (rows) by predicted ones, as things are.

    On the boundary the first class is predicted, as scikit-learn does.
    """
    return _table(audit, audit.codes, audit.predicted, audit.weights)


def worst_confusions(audit: Adversary, radii: FloatArray) -> FloatArray:
    """The same in the worst case for the error, at each radius; on the boundary all are wrong.

    A moved sample keeps its label and goes to the nearest other class; a flipped one keeps its
    prediction and gets the cheapest other label.
    """
    w, own, least = audit.weights, audit.codes, audit.costs_to_break
    right = audit.u > 0.0
    start = _table(audit, own, np.where(right, own, audit.nearest_class), w)
    cost = np.minimum(least, audit.flip_costs)
    crossed, spent, _ = Crossings.of(cost, np.flatnonzero(right), w)
    flips, own, paid = least[crossed] > audit.flip_costs[crossed], own[crossed], np.diff(spent)
    label = np.where(flips, audit.cheapest_label[crossed], own)
    predicted = np.where(flips, own, audit.nearest_class[crossed])
    found = []
    for radius in radii:
        part = np.minimum(radius - spent[:-1], paid)
        share = np.divide(part, paid, out=np.ones_like(paid), where=paid > 0.0)
        moved = w[crossed] * np.maximum(share, 0.0)
        change = _table(audit, label, predicted, moved) - _table(audit, own, own, moved)
        found.append(np.maximum(start + change, 0.0))
    return np.array(found)


def _table(
    audit: Adversary, label: IndexArray, predicted: IndexArray, mass: FloatArray
) -> FloatArray:
    size = len(audit.classes)
    cells = np.bincount(size * label + predicted, mass, minlength=size * size)
    return cells.astype(np.float64).reshape(size, size)
