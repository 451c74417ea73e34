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

from ..rows.arrays import FloatArray, IndexArray
from .adversary import Adversary
from .breakpoints import Breakpoints
from .domain_breakpoints import changed_features, item_costs
from .features import Feature
from .pair_audit import PairAudit


@dataclass(frozen=True, eq=False)
class BudgetUse:
    """What each feature, flips of labels and nothing take of each radius; ``features`` is a row per
    radius and a column per feature.
    """

    radii: FloatArray
    features: FloatArray
    flips: FloatArray
    unspent: FloatArray


def budget_use(audit: Adversary, found: Breakpoints, radii: FloatArray) -> BudgetUse:
    """Where the budget goes at ascending radii; ``found`` are the breakpoints up to the last."""
    w = audit.weights
    found = found.begun(w, float(radii[-1]))
    mass = w[found.sample]
    flips = found.totals(w, mass * audit.paid_for_labels(found), radii)
    features = np.zeros((radii.size, len(audit.features)))
    if isinstance(audit, PairAudit) and audit.problem.domains is not None:
        paid = _paid(audit, found.sample, found.after) - _paid(audit, found.sample, found.before)
        columns = sp.csc_array(sp.diags_array(mass) @ paid)
        for f in range(features.shape[1]):
            features[:, f] = found.totals(w, columns[:, [f]].toarray().ravel(), radii)
    left = np.maximum(radii - found.masses(w).sum(), 0.0)
    rate = audit.sensitivity
    if rate > 0.0:
        together = [float(audit.move_shares[feature.columns].sum()) for feature in audit.features]
        features = features + np.outer(left, together)
        left = np.zeros_like(left)
    return BudgetUse(radii, features, flips, left)


def _paid(audit: PairAudit, sample: IndexArray, piece: IndexArray) -> Any:
    """What samples have paid for each feature at a piece of theirs."""
    domains = audit.problem.domains
    assert domains is not None
    changed = changed_features(audit.domain_loss, domains, audit.signs, sample, piece)
    owner = np.empty(audit.problem.costs.size, dtype=np.intp)
    for f, feature in enumerate(audit.features):
        owner[feature.columns] = f
    first = [*(group[0] for group in domains.groups), *domains.bounded]
    ones = np.ones(len(first)), (np.arange(len(first)), owner[np.array(first, dtype=np.intp)])
    return item_costs(domains, changed) @ sp.csr_array(
        ones, shape=(len(first), len(audit.features))
    )


def losses_without(audit: Adversary, feature: Feature | None, radii: FloatArray) -> FloatArray:
    """Worst-case losses if a feature could not move; None for the labels."""
    held = audit.with_labels_right() if feature is None else audit.holding(feature.columns)
    return held.loss_curve(held.breakpoints(float(radii[-1]))).at(radii)
