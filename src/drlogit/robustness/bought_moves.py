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

from ..problem.domain_loss import Edges, Purchases
from ..problem.losses import log_loss
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


def atoms_of(question: Question, budget: float) -> tuple[Atoms, float]:
    """The atoms that a budget pays for, and what it leaves."""
    bought = Purchases.of(question.prices)
    share = bought.bought(budget)
    some = share > 0.0
    own, after = bought.own[some], bought.after[some]
    before, share = bought.before[some], share[some]
    # Each edge bought takes its share of the sample's mass from where it begins to where it ends.
    w = question.weights
    index = np.concatenate([np.arange(w.size), own, own])
    vertex = np.concatenate([np.zeros(w.size, dtype=np.intp), before, after])
    mass = np.concatenate([w, -w[own] * share, w[own] * share])
    keys = index * (2 * _span(bought) + 1) + vertex + _span(bought)
    _, first, place = np.unique(keys, return_index=True, return_inverse=True)
    mass = np.bincount(place, mass, minlength=first.size)
    index, vertex = index[first], vertex[first]
    # What is left of a vertex that a sample has gone through is rounding.
    kept = mass > 1e-12 * w[index]
    index, vertex, mass = index[kept], vertex[kept], mass[kept]
    mass *= w[index] / np.bincount(index, mass, minlength=w.size)[index]
    flipped = vertex < 0
    signs = question.signs[index] * np.where(flipped, -1.0, 1.0)
    lengths = np.where(flipped, -1 - vertex, vertex)
    changed = _changes(question, index, signs, lengths)
    gained = changed @ question.coefficients[:-1]
    margin = signs * (question.signs * question.u)[index] + signs * gained
    distance = _distance(question, changed)
    spent = float(bought.mass[some] @ share)
    atoms = Atoms(index, mass, flipped, margin, distance, changed)
    return atoms, max(budget - spent, 0.0)


def _span(bought: Purchases) -> int:
    return int(np.abs(bought.after).max(initial=0)) + 1


def _distance(question: Question, changed: Any) -> FloatArray:
    """What changes cost: a group once, bounded features by how far they go."""
    domains = question.problem.domains
    assert domains is not None
    moved = abs(changed[:, domains.bounded])
    cost = np.asarray(moved @ domains.bounded_costs)
    for group, price in zip(domains.groups, domains.group_costs, strict=True):
        touched = np.asarray(abs(changed[:, group]).sum(axis=1)).ravel()
        cost = cost + price * (touched > 0.0)
    return cost


def _changes(question: Question, index: IndexArray, signs: FloatArray, lengths: IndexArray) -> Any:
    """What the atoms change in the features, block by block."""
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
    import scipy.sparse as sp

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
    table = np.column_stack([inside[found.coords[0]], found.coords[1], found.data])
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


def loss_of(atoms: Atoms) -> float:
    """The expected log-loss of the atoms as they are."""
    return float(atoms.mass @ log_loss(atoms.margin))
