"""Sums of a dual point of pieces over categories, bounded features and costs."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..rows.arrays import FloatArray
from .domain import Domain
from .given import Given
from .piece_point import PieceMasses, item_bits
from .products import add_scattered
from .rounding import TINY, UNIT, UP, Enclosed, Total, exact_sum, gamma, pair_product, two_sum


@dataclass(frozen=True, eq=False)
class DomainSums:
    """Entries of g at categories, low, high and bounded features, and ``Σ q d`` upwards.

    Those of bounded features are only what moves add to the samples as they are.
    """

    groups: Enclosed
    bounded: Enclosed
    spent: float

    @classmethod
    def of(cls, given: Given, point: PieceMasses) -> DomainSums:
        domain, moves = given.domain, point.moves
        assert domain is not None
        n, n_groups = given.coef.size, domain.n_groups
        groups, bounded = Total(n + 2 * n_groups), Total(domain.bounded.size)
        r = point.coefficients
        change = tuple(point.signs * part for part in point.moved_p)
        cost = np.where(moves.flipped, given.ball.kappa, 0.0)
        for rows, part in given.rows():
            now = domain.present(part.X)
            first, last = np.searchsorted(moves.sample, [rows.start, rows.stop])
            some = slice(int(first), int(last))
            own = moves.sample[some] - rows.start
            bits = item_bits(moves.items[some], domain)
            there = now >= 0
            k, g = np.nonzero(bits[:, :n_groups])
            column = now[own[k], g]
            end = n + g + n_groups * (point.signs[some][k] < 0.0)
            for each, v in zip((r.high, r.low), change, strict=True):
                add_scattered(groups, now[there], np.repeat(each[rows], there.sum(axis=1)))
                add_scattered(groups, column[column >= 0], -v[some][k][column >= 0])
                add_scattered(groups, end, v[some][k])
            cost[some] += bits[:, :n_groups] @ domain.group_costs
            k, item = np.nonzero(bits[:, n_groups:])
            j = item // 2
            if not j.size:
                continue
            values = part.columns(domain.bounded) + given.shift[domain.bounded]
            to = np.where(item % 2 == 1, domain.upper[j], domain.lower[j])
            distance = two_sum(to, -values[own[k], j])
            products = pair_product((change[0][some][k], change[1][some][k]), distance)
            for product in products:
                add_scattered(bounded, j, product)
            sizes = np.bincount(j, np.abs(products[0]), minlength=bounded.size)
            bounded.add(np.zeros(1), np.asarray(64.0 * UNIT**2 * sizes + TINY))
            cost[some] += np.bincount(k, domain.bounded_costs[j] * np.abs(distance[0]), own.size)
        spent = exact_sum(point.moved_mass[0] * cost) * (1.0 + gamma(domain.n_items + 8)) * UP
        return cls(groups.enclosed(), bounded.enclosed(), spent)


def excess_of_groups(n_features: int, domain: Domain, entries: Enclosed) -> FloatArray:
    """E of each group, upwards, before it is cut off at zero."""
    excess = np.empty(domain.n_groups)
    for g, group in enumerate(domain.groups):
        places = [*group.tolist(), n_features + g, n_features + domain.n_groups + g]
        G, low, high = _at_group(n_features, g, domain, entries)
        if domain.with_none[g]:
            up = math.fsum([*np.maximum(G, 0.0).tolist(), high])
            found = max(up, math.fsum([*np.maximum(-G, 0.0).tolist(), -low]))
        else:
            found = 0.5 * math.fsum([*np.abs(G).tolist(), -low, high])
        excess[g] = found + UNIT * abs(found) + exact_sum(entries.error[places]) * UP
    return excess


def surplus_of_groups(n_features: int, domain: Domain, entries: Enclosed) -> FloatArray:
    """What the entries at categories, those of one group after the other, have too much."""
    found = [np.zeros(0)]
    for g in range(domain.n_groups):
        G, low, high = _at_group(n_features, g, domain, entries)
        surplus = np.zeros_like(G)
        for part, room in ((np.maximum(G, 0.0), -high), (np.minimum(G, 0.0), low)):
            size = float(np.abs(part).sum())
            surplus += part * (max(size - room, 0.0) / size if size > 0.0 else 0.0)
        found.append(surplus)
    return np.concatenate(found)


def _at_group(
    n_features: int, g: int, domain: Domain, entries: Enclosed
) -> tuple[FloatArray, float, float]:
    """Those of a group at its categories, low and high."""
    low, high = n_features + g, n_features + domain.n_groups + g
    return entries.value[domain.groups[g]], entries.value[low], entries.value[high]
