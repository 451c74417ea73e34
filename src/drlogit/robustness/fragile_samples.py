"""The predictions that break first, and the cheapest change of features that breaks each.

A sample predicted right with margin u is taken to the decision boundary: along the steepest
direction, or where features have domains by the set of changed categories and moves of numbers
that is cheapest (:mod:`.domain_moves`).  Labels stay as they are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import expit

from ..rows.arrays import FloatArray, IndexArray
from .measured_features import MeasuredFeature
from .old_adversary import Adversary

#: Features of a change that are named; a move of all features together names the largest parts.
_NAMED = 4


def fragile_samples(audit: Adversary, n_listed: int) -> list[dict[str, Any]]:
    """The samples whose predictions are cheapest to break, by position.

    ``probability`` is that of the label, and ``cheapest`` says whether no cheaper change breaks the
    prediction.  ``n_changed`` features change, and ``changes`` names the first of them.
    """
    least = audit.costs_to_break
    some = np.flatnonzero((audit.u > 0.0) & (audit.weights > 0.0) & np.isfinite(least))
    index = some[np.argsort(least[some], kind="stable")[:n_listed]]
    moves, costs = _cheapest(audit, index)
    rows, gains = audit.problem.rows, np.abs(moves * audit.coefficients[1, :-1])
    part = rows.together().X[index]
    before = np.asarray(part.toarray() if sp.issparse(part) else part, dtype=np.float64)
    before = before if rows.shift is None else before + rows.shift
    found = []
    for k, label in enumerate(audit.observed(index)):
        by_feature = np.array([gains[k, feature.columns].sum() for feature in audit.features])
        order = np.argsort(-by_feature, kind="stable")
        # Smaller gains are rounding errors.
        order = order[by_feature[order] > 1e-9 * gains[k].sum()]
        found.append(
            {
                "row": int(index[k]),
                "label": str(label),
                "probability": float(expit(audit.u[index[k]])),
                "cost": float(costs[k]),
                "cheapest": audit.exact_crossings,
                "n_changed": order.size,
                "changes": [
                    _in_words(audit.features[f], before[k], before[k] + moves[k])
                    for f in order[:_NAMED]
                ],
            }
        )
    return found


def _cheapest(audit: Adversary, index: IndexArray) -> tuple[FloatArray, FloatArray]:
    """The cheapest moves of samples to the boundary, and what they cost."""
    signs, costs, found = audit.signs[index], audit.costs_to_break[index], audit.domain_moves
    if found is None:
        return np.outer(-signs * costs, audit.direction), costs
    crossing, moves = found.moves_across(index, audit.u[index], signs)
    moves += np.outer(-signs * crossing.further, audit.direction)
    return moves, crossing.cost


def _in_words(feature: MeasuredFeature, before: FloatArray, after: FloatArray) -> str:
    """The value of one feature before and after, in the terms of the table."""
    here, there = before[feature.columns], after[feature.columns]
    if feature.levels is not None:
        known = [*feature.levels, feature.otherwise]
        shown = [known[int(np.append(values, 0.5).argmax())] for values in (here, there)]
    else:
        shown = _told_apart(*((x[0] - feature.shift) / feature.scale for x in (here, there)))
    return f"{feature.name}: {shown[0]} → {shown[1]}"


def _told_apart(*numbers: float) -> list[str]:
    """Numbers with as few digits as distinguish them, without powers of ten."""
    for digits in range(4, 17):
        texts = [np.format_float_positional(x, digits, fractional=False, trim="-") for x in numbers]
        if texts[0] != texts[1]:
            break
    return texts
