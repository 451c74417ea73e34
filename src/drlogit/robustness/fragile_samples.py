"""The predictions that break first, and the cheapest change of features that breaks each.

A sample predicted right with margin u is taken to the decision boundary: along the steepest
direction, or where features have domains by the set of changed categories and moves of numbers
that is cheapest (:mod:`.crossing_costs`).  Labels stay as they are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit

from ..problem.domains import Domains, ItemTable
from ..problem.worst_moves import reach
from ..rows.arrays import FloatArray, IndexArray
from ..rows.blocks import Block
from .crossing_costs import cheapest, is_exact
from .features import Feature, plain_number
from .pair_audit import PairAudit
from .sample_values import rows_of

#: Features of a change that are named; a move of all features together names the largest parts.
_NAMED = 4


def fragile_samples(audit: PairAudit, n_listed: int) -> list[dict[str, Any]]:
    """The samples that take least to break, of those that something can break."""
    least = audit.costs_to_break
    some = np.flatnonzero((audit.u > 0.0) & (audit.weights > 0.0) & np.isfinite(least))
    index = some[np.argsort(least[some], kind="stable")[:n_listed]]
    before = rows_of(audit, index)
    if audit.problem.domains is None:
        moves = np.outer(-audit.signs[index] * least[index], audit.direction)
        return _listed(audit, index, before, moves, least[index], True)
    return _listed(audit, index, before, *_with_domains(audit, index, before))


def broken_by_one_level(audit: PairAudit, n_listed: int) -> tuple[list[dict[str, Any]], float]:
    """The surest predictions that another level of one category breaks, and the share of right
    predictions that are broken so.

    Of several such categories, the one that takes a sample furthest across the boundary.
    """
    domains, u, w = audit.problem.domains, audit.u, audit.weights
    if domains is None or not domains.n_groups:
        return [], 0.0
    rows = audit.problem.rows
    state, _ = rows.run(_largest_gain, audit.domain_loss.edges, audit.domain_loss.model)
    gain, group = np.asarray(rows.gather(state)).T
    right = (u > 0.0) & (w > 0.0)
    broken = np.flatnonzero(right & (gain > u))
    share = float(w[broken].sum() / w[right].sum()) if right.any() else 0.0
    index = broken[np.argsort(-u[broken], kind="stable")[:n_listed]]
    before, chosen = rows_of(audit, index), group[index].astype(np.intp)
    changed = chosen[:, None] == np.arange(domains.n_groups)
    moves = _changed_levels(audit, _levels_now(domains, before), changed, audit.signs[index])
    return _listed(audit, index, before, moves, domains.group_costs[chosen], False), share


def _largest_gain(block: Block, edges: Any, model: Any) -> tuple[FloatArray, tuple[()]]:
    """What the best change of one category gains of each sample, and which category it is."""
    gains = reach(block.y, edges.table, model).groups
    return np.column_stack([gains.max(axis=1), gains.argmax(axis=1)]), ()


def _listed(
    audit: PairAudit,
    index: IndexArray,
    before: FloatArray,
    moves: FloatArray,
    costs: FloatArray,
    cheapest: bool,
) -> list[dict[str, Any]]:
    """Samples by position, with the probability of their label, and what breaks the prediction.

    ``cheapest`` is whether nothing costs less, and ``n_changed`` how many features change, of which
    ``changes`` names the first.
    """
    shift = audit.problem.rows.shift
    before = before if shift is None else before + shift
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


def _with_domains(
    audit: PairAudit, index: IndexArray, before: FloatArray
) -> tuple[FloatArray, FloatArray, bool]:
    """Cheapest moves of samples with domains, what they cost, and whether nothing is cheaper."""
    domains, model = audit.problem.domains, audit.domain_loss.model
    assert domains is not None
    now, signs, costs = _levels_now(domains, before), audit.signs[index], domains.group_costs
    table = ItemTable(now, np.ascontiguousarray(before[:, domains.bounded]))
    crossing = cheapest(reach(signs, table, model), audit.u[index], costs, audit.sensitivity)
    moves = _changed_levels(audit, now, crossing.changed, signs)
    adverse = signs[:, None] * np.sign(model.beta[domains.bounded])
    moves[:, domains.bounded] -= adverse * crossing.bounded / domains.bounded_costs
    moves -= np.outer(signs * crossing.further, audit.direction)
    return moves, crossing.cost(costs), is_exact(costs)


def _levels_now(domains: Domains, before: FloatArray) -> Any:
    """The column of each sample's level in each group; -1 for none."""
    now = np.full((before.shape[0], domains.n_groups), -1, dtype=np.int32)
    for g, group in enumerate(domains.groups):
        some = before[:, group].any(axis=1)
        now[some, g] = group[before[:, group].argmax(axis=1)[some]]
    return now


def _changed_levels(audit: PairAudit, now: Any, changed: Any, signs: FloatArray) -> FloatArray:
    """The moves that change some categories of samples to their worst levels."""
    domains = audit.problem.domains
    assert domains is not None
    targets = audit.domain_loss.model.targets(domains)
    moves = np.zeros((now.shape[0], audit.coefficients.size - 1))
    for k, g in zip(*np.nonzero(changed), strict=True):
        if now[k, g] >= 0:
            moves[k, now[k, g]] -= 1.0
        target = targets[0 if signs[k] > 0.0 else 1, g]
        if target >= 0:
            moves[k, target] += 1.0
    return moves


def _named(audit: PairAudit, before: FloatArray, move: FloatArray) -> tuple[int, list[str]]:
    """How many features a move changes, and those that matter most, in words."""
    gains = np.abs(move * audit.coefficients[:-1])
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


def _told_apart(one: float, other: float) -> tuple[str, str]:
    """Two different numbers with as few digits as tell them apart."""
    for digits in range(4, 17):
        texts = plain_number(one, digits), plain_number(other, digits)
        if texts[0] != texts[1]:
            return texts
    return repr(one), repr(other)
