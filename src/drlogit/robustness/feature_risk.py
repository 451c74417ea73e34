"""Which features carry the risk: where the worst case spends its budget, and what holding one
saves.

At a radius ε the worst case for the log-loss spends ε on flips of labels and on changes of
features; so much goes into each.  A move of several features together, as in ℓ2 and ℓ∞ transport,
counts for each by its part in what the move gains, ``β_j δ_j / ‖β/c‖_*``.  What nothing can be
bought for stays unspent.  The parts add up to ε.

The other answer is the worst-case loss if a feature could not move at all: how much of the damage
another way round would do as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..problem.domain_loss import Purchases
from ..rows.arrays import FloatArray, IndexArray
from .features import Feature
from .purchases import loss_curve, purchases_of
from .questions import Question


@dataclass(frozen=True, eq=False)
class BudgetUse:
    """What each feature, flips of labels and nothing take of each radius; ``features`` is a row per
    radius and a column per feature.
    """

    radii: FloatArray
    features: FloatArray
    flips: FloatArray
    unspent: FloatArray


def budget_use(question: Question, bought: Purchases, radii: FloatArray) -> BudgetUse:
    """Where the budget goes at ascending radii; ``bought`` are the purchases up to the last."""
    spent = np.cumsum(bought.mass)
    begun = spent - bought.mass < radii[-1]
    bought = Purchases(*(column[begun] for column in bought))
    spent = spent[begun]
    w, kappa = question.weights[bought.own], question.problem.kappa
    flipped = (bought.after < 0).astype(float) - (bought.before < 0).astype(float)
    flips = w * flipped * (kappa if np.isfinite(kappa) else 0.0)
    moves = sp.csr_array((bought.own.size, len(question.features)))
    if question.problem.domains is not None:
        moves = sp.csr_array(
            sp.diags_array(w)
            @ (_paid(question, bought, bought.after) - _paid(question, bought, bought.before))
        )
    costs = sp.hstack([moves, sp.csr_array(flips[:, None])], format="csr")
    parts = _summed(costs, spent, bought.mass, radii)
    features, by_flips = parts[:, :-1], parts[:, -1]
    left = np.maximum(radii - (spent[-1] if spent.size else 0.0), 0.0)
    rate = question.sensitivity
    if rate > 0.0:
        gains = question.coefficients[:-1] * question.direction / rate
        together = [float(gains[feature.columns].sum()) for feature in question.features]
        features = features + np.outer(left, together)
        left = np.zeros_like(left)
    return BudgetUse(radii, features, by_flips, left)


def _paid(question: Question, bought: Purchases, vertex: IndexArray) -> Any:
    """What samples have paid for each feature at a vertex of their envelopes."""
    from .bought_moves import changes_of, item_costs  # compiled

    domains = question.problem.domains
    assert domains is not None
    flipped = vertex < 0
    signs = question.signs[bought.own] * np.where(flipped, -1.0, 1.0)
    lengths = np.where(flipped, -1 - vertex, vertex)
    paid = item_costs(domains, changes_of(question, bought.own, signs, lengths))
    owner = np.empty(question.problem.costs.size, dtype=np.intp)
    for f, feature in enumerate(question.features):
        owner[feature.columns] = f
    first = [*(group[0] for group in domains.groups), *domains.bounded]
    ones = np.ones(len(first)), (np.arange(len(first)), owner[np.array(first, dtype=np.intp)])
    return paid @ sp.csr_array(ones, shape=(len(first), len(question.features)))


def _summed(costs: Any, spent: FloatArray, mass: FloatArray, radii: FloatArray) -> FloatArray:
    """Sums over what each radius buys, the last purchase in part."""
    n_parts = costs.shape[1]
    paid = costs.tocoo()
    complete = np.searchsorted(radii, spent)[paid.row]
    there = complete < radii.size
    totals = np.bincount(
        complete[there] * n_parts + paid.col[there],
        paid.data[there],
        minlength=radii.size * n_parts,
    )
    totals = np.cumsum(totals.reshape(radii.size, n_parts), axis=0)
    for k, radius in enumerate(radii):
        e = int(np.searchsorted(spent, radius, side="right"))
        if e < spent.size and spent[e] > radius > spent[e] - mass[e]:
            share = (radius - (spent[e] - mass[e])) / mass[e]
            totals[k] += share * costs[[e]].toarray().ravel()
    return np.asarray(totals)


def losses_without(question: Question, feature: Feature | None, radii: FloatArray) -> FloatArray:
    """Worst-case losses if a feature could not move; None for the labels."""
    held = question.with_labels_right() if feature is None else question.holding(feature.columns)
    return loss_curve(held, purchases_of(held, float(radii[-1]))).at(radii)
