"""What the worst case does to samples with domains: atoms of the distribution, and its flips.

The adversary buys edges of the samples' envelopes in the order of their rates, each for the whole
mass of its sample, until ε is spent (:mod:`drlogit.problem.domain_loss`).  So every sample is at
one vertex of its envelope, except for one that is split between two.  What the edges leave of ε
goes into moves of the features without a domain, which start from there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..problem.domain_loss import Edges, Purchases
from ..problem.domains import Domains
from ..problem.worst_moves import Weighed, changes
from ..rows.arrays import BoolArray, FloatArray, IndexArray
from ..rows.blocks import Block
from .questions import Question


@dataclass(frozen=True, eq=False)
class Atoms:
    """Samples after their moves: mass, margin under the label they then have, and what it took."""

    index: IndexArray
    mass: FloatArray
    flipped: BoolArray
    margin: FloatArray
    distance: FloatArray  # cost of the moves, without that of the flip
    changes: Any


def atoms_of(
    question: Question, budget: float, bought: Purchases | None = None
) -> tuple[Atoms, float]:
    """The atoms that a budget pays for, and what it leaves.

    ``bought`` is everything up to some budget, if that is known already.
    """
    if bought is None:
        bought = Purchases.of(question.prices, budget)
    share = bought.bought(budget)
    some = share > 0.0
    own, after = bought.own[some], bought.after[some]
    before, share = bought.before[some], share[some]
    # Each edge bought takes its share of the sample's mass from where it begins to where it ends.
    # Samples of which nothing was bought stay as they are, and are most of them.
    w = question.weights
    touched = np.zeros(w.size, dtype=bool)
    touched[own] = True
    stay, start = np.flatnonzero(~touched), np.flatnonzero(touched)
    index = np.concatenate([start, own, own])
    vertex = np.concatenate([np.zeros(start.size, dtype=np.intp), before, after])
    mass = np.concatenate([w[start], -w[own] * share, w[own] * share])
    keys = index * (2 * _span(bought) + 1) + vertex + _span(bought)
    _, first, place = np.unique(keys, return_index=True, return_inverse=True)
    # Of no weights at all, the sums are whole numbers to NumPy.
    mass = np.bincount(place, mass, minlength=first.size).astype(np.float64)
    index, vertex = index[first], vertex[first]
    # What is left of a vertex that a sample has gone through is rounding.
    kept = mass > 1e-12 * w[index]
    index, vertex, mass = index[kept], vertex[kept], mass[kept]
    mass *= w[index] / np.bincount(index, mass, minlength=w.size)[index]
    flipped = vertex < 0
    signs = question.signs[index] * np.where(flipped, -1.0, 1.0)
    lengths = np.where(flipped, -1 - vertex, vertex)
    changed = changes_of(question, index, signs, lengths)
    gained = changed @ question.coefficients[:-1]
    margin = signs * (question.signs * question.u)[index] + signs * gained
    distance = _distance(question, changed)
    spent = float(bought.mass[some] @ share)
    still = sp.csr_array((stay.size, changed.shape[1]))
    atoms = Atoms(
        np.concatenate([index, stay]),
        np.concatenate([mass, w[stay]]),
        np.concatenate([flipped, np.zeros(stay.size, dtype=bool)]),
        np.concatenate([margin, question.u[stay]]),
        np.concatenate([distance, np.zeros(stay.size)]),
        sp.vstack([changed, still], format="csr"),
    )
    return atoms, max(budget - spent, 0.0)


def _span(bought: Purchases) -> int:
    return int(np.abs(bought.after).max(initial=0)) + 1


def _distance(question: Question, changed: Any) -> FloatArray:
    """What changes cost."""
    domains = question.problem.domains
    assert domains is not None
    return np.asarray(item_costs(domains, changed).sum(axis=1)).ravel()


def item_costs(domains: Domains, changed: Any) -> Any:
    """What changes cost: a group once, bounded features by how far they go; a column for each."""
    n_groups = domains.n_groups
    columns = np.concatenate([*domains.groups, np.empty(0, dtype=np.intp)]).astype(np.intp)
    ones = np.ones(columns.size), (columns, domains.group_of)
    touched = sp.csr_array(abs(changed) @ sp.csr_array(ones, shape=(changed.shape[1], n_groups)))
    touched.data = domains.group_costs[touched.indices]
    moved = abs(changed[:, domains.bounded]) @ sp.diags_array(domains.bounded_costs)
    return sp.hstack([touched, moved], format="csr")


def changes_of(
    question: Question, index: IndexArray, signs: FloatArray, lengths: IndexArray
) -> Any:
    """What the ``lengths`` best items of samples change in their features, block by block."""
    problem, prices = question.problem, question.prices
    domains = problem.domains
    assert domains is not None
    rows = problem.rows
    targets = prices.model.targets(domains)
    places = rows.scatter(np.arange(rows.n_samples))
    n_features = rows.n_columns - 1
    _, (entries,) = rows.run(
        _block_changes, rows.pair(prices.edges, places), index, signs, lengths, prices.least,
        prices.model, targets, n_features,
    )  # fmt: skip
    parts = entries[:, 2], (entries[:, 0].astype(np.intp), entries[:, 1].astype(np.intp))
    return sp.csr_array(parts, shape=(index.size, n_features))


def _block_changes(
    block: Block,
    state: tuple[Edges, FloatArray],
    index: IndexArray,
    signs: FloatArray,
    lengths: IndexArray,
    least: float,
    model: Weighed,
    targets: Any,
    n_features: int,
) -> tuple[Any, tuple[Any]]:
    from ..rows.reductions import Stack

    edges, places = state
    first = int(places[0]) if places.size else 0
    inside = np.flatnonzero((index >= first) & (index < first + places.size))
    found = changes(
        index[inside] - first, signs[inside], lengths[inside], least, edges.table, model, targets,
        n_features,
    ).tocoo()  # fmt: skip
    table = np.column_stack([inside[found.row], found.col, found.data])
    return state, (Stack(table.astype(np.float64)),)


@dataclass(frozen=True, eq=False)
class FlipCurve:
    """The share of labels that the worst case flips, as a function of the radius."""

    spent: FloatArray
    flipped: FloatArray
    samples: IndexArray  # those whose label is flipped, in that order
    reached: FloatArray  # radii at which the whole of it is

    @classmethod
    def of(cls, question: Question) -> FlipCurve:
        bought = Purchases.of(question.prices)
        spent = np.cumsum(bought.mass)
        change = question.weights[bought.own] * (
            (bought.after < 0).astype(float) - (bought.before < 0).astype(float)
        )
        starts = change > 0.0
        return cls(
            np.append(0.0, spent),
            np.append(0.0, np.cumsum(change)),
            bought.own[starts],
            spent[starts],
        )

    def at(self, epsilon: float) -> float:
        return float(np.interp(epsilon, self.spent, self.flipped))
