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

from ..problem.worst_moves import reach
from ..rows.arrays import BoolArray, FloatArray, IndexArray
from ..rows.blocks import Block
from ..rows.reductions import Stack
from .adversary import Adversary
from .domain_moves import DomainMoves
from .features import Feature

#: Features of a change that are named; a move of all features together names the largest parts.
_NAMED = 4


def fragile_samples(audit: Adversary, n_listed: int) -> list[dict[str, Any]]:
    """The samples that take least to break, of those that something can break."""
    least = audit.costs_to_break
    some = np.flatnonzero((audit.u > 0.0) & (audit.weights > 0.0) & np.isfinite(least))
    index = some[np.argsort(least[some], kind="stable")[:n_listed]]
    signs, costs, found = audit.signs[index], least[index], audit.domain_moves
    if found is None:
        return _listed(audit, index, np.outer(-signs * costs, audit.direction), costs, True)
    crossing, domains = found.cheapest(index, audit.u[index], signs), found.domains
    moves = _changed_levels(audit, found, index, crossing.changed)
    adverse = signs[:, None] * np.sign(audit.coefficients[1, domains.bounded])
    moves[:, domains.bounded] -= adverse * crossing.bounded / domains.bounded_costs
    moves -= np.outer(signs * crossing.further, audit.direction)
    costs = crossing.cost(domains.group_costs)
    return _listed(audit, index, moves, costs, found.exact_crossings)


def broken_by_one_level(audit: Adversary, n_listed: int) -> tuple[list[dict[str, Any]], float]:
    """The surest predictions that another level of one category breaks, and the share of right
    predictions that are broken so.

    Of several such categories, the one that takes a sample furthest across the boundary.
    """
    u, w, found = audit.u, audit.weights, audit.domain_moves
    if found is None or not found.domains.n_groups:
        return [], 0.0
    gains = reach(audit.signs, found.items, found.weighed).groups
    right = (u > 0.0) & (w > 0.0)
    broken = np.flatnonzero(right & (gains.max(axis=1) > u))
    share = float(w[broken].sum() / w[right].sum()) if right.any() else 0.0
    index = broken[np.argsort(-u[broken], kind="stable")[:n_listed]]
    chosen = gains[index].argmax(axis=1)
    changed = chosen[:, None] == np.arange(found.domains.n_groups)
    moves = _changed_levels(audit, found, index, changed)
    return _listed(audit, index, moves, found.domains.group_costs[chosen], False), share


def _listed(
    audit: Adversary,
    index: IndexArray,
    moves: FloatArray,
    costs: FloatArray,
    cheapest: bool,
) -> list[dict[str, Any]]:
    """Samples by position, with the probability of their label, and what breaks the prediction.

    ``cheapest`` is whether nothing costs less, and ``n_changed`` how many features change, of which
    ``changes`` names the first.
    """
    before = _rows(audit, index)
    found = []
    for k, label in enumerate(audit.observed(index)):
        n_changed, named = _named(audit, before[k], moves[k])
        found.append(
            {
                "row": int(index[k]),
                "label": str(label),
                "probability": float(expit(audit.u[index[k]])),
                "cost": float(costs[k]),
                "cheapest": cheapest,
                "n_changed": n_changed,
                "changes": named,
            }
        )
    return found


def _changed_levels(
    audit: Adversary, found: DomainMoves, index: IndexArray, changed: BoolArray
) -> FloatArray:
    """The moves that change some categories of samples to their worst levels."""
    now, targets = found.items.now[index], found.weighed.targets(found.domains)
    moves = np.zeros((index.size, audit.direction.size))
    for k, g in zip(*np.nonzero(changed), strict=True):
        for column, step in ((now[k, g], -1.0), (targets[1 - audit.codes[index[k]], g], 1.0)):
            if column >= 0:
                moves[k, column] += step
    return moves


def _rows(audit: Adversary, index: IndexArray) -> FloatArray:
    """The features of samples, as they were before any shift."""
    rows = audit.problem.rows
    order = np.argsort(index, kind="stable")
    _, (found,) = rows.run(_chosen, rows.offsets, index[order])
    found = np.asarray(found)[np.argsort(order)]
    return found if rows.shift is None else found + rows.shift


def _chosen(block: Block, first: int, index: IndexArray) -> tuple[int, tuple[Stack]]:
    part = block.X[index[(index >= first) & (index < first + block.y.size)] - first]
    dense = part.toarray() if sp.issparse(part) else part
    return first, (Stack(np.asarray(dense, dtype=np.float64)),)


def _named(audit: Adversary, before: FloatArray, move: FloatArray) -> tuple[int, list[str]]:
    """How many features a move changes, and those that matter most, in words."""
    gains = np.abs(move * audit.coefficients[1, :-1])
    least = 1e-9 * gains.sum()  # below is what rounding leaves of a move that ended elsewhere
    parts = [
        (gain, feature)
        for feature in audit.features
        if (gain := float(gains[feature.columns].sum())) > least
    ]
    parts.sort(key=lambda part: -part[0])
    changes = [
        _in_words(feature, before[feature.columns], (before + move)[feature.columns])
        for _, feature in parts[:_NAMED]
    ]
    return len(parts), changes


def _in_words(feature: Feature, before: FloatArray, after: FloatArray) -> str:
    """One feature of a sample before and after, as the table would show it."""
    if feature.levels is not None:
        here, there = (
            feature.level(int(feature.columns[values.argmax()]) if values.any() else -1)
            for values in (before > 0.5, after > 0.5)
        )
    else:
        numbers = ((x[0] - feature.shift) / feature.scale for x in (before, after))
        here, there = _told_apart(*numbers)
    return f"{feature.name}: {here} → {there}"


def _told_apart(*numbers: float) -> tuple[str, ...]:
    """Different numbers with as few digits as tell them apart, and no powers of ten."""
    for digits in range(4, 17):
        texts = tuple(
            np.format_float_positional(x, digits, fractional=False, trim="-") for x in numbers
        )
        if texts[0] != texts[1]:
            break
    return texts
