"""Which features carry the risk.

At a radius ε the worst case for the log-loss spends ε on flips of labels and on changes of
features.  A joint move of several features, as in ℓ2 and ℓ∞ transport, is attributed to each
feature by its share of the gain, ``β_j δ_j / ‖β/c‖_*``.  Where no change raises the loss, a part of
ε stays unspent.  The parts add up to ε.

A second answer is the worst-case loss with one feature immovable: it shows how much of the damage
other features could do instead.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from ..problem.ball_words import sentences
from ..problem.features import Feature, Features
from ..rows.arrays import FloatArray, IndexArray
from .domain_moves import DomainMoves
from .old_adversary import Adversary


def budget(audit: Adversary, radii: FloatArray, n_named: int) -> dict[str, Any]:
    """Where the budget goes at ascending radii, and the worst-case losses without each part.

    Features that take most are named; the others are taken together.
    """
    use, flips, unspent = _parts(audit, radii)
    most = use.max(axis=0)
    order = np.argsort(-most, kind="stable")
    order = order[most[order] > 0.0]
    named = [
        {
            "name": audit.features[f].name,
            "use": use[:, f],
            "without": audit.holding(audit.features[f].columns).loss_curve().at(radii),
        }
        for f in order[:n_named]
    ]
    return {
        "loss": audit.loss_curve().at(radii),
        "features": named,
        "others": use[:, order[n_named:]].sum(axis=1),
        "n_moved": int(order.size),
        "flips": flips,
        "without_flips": audit.with_labels_right().loss_curve().at(radii),
        "unspent": unspent,
    }


def _parts(audit: Adversary, radii: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """What goes into each feature (a row per radius), into labels, and into nothing."""
    w, moves = audit.weights, audit.domain_moves
    found = audit.breakpoints.begun(w, float(radii[-1]))
    flips = found.curve(w, audit.paid_for_labels(found)).at(radii)
    features = np.zeros((radii.size, len(audit.features)))
    if moves is not None:
        ends = (_paid(audit, moves, found.sample, piece) for piece in (found.after, found.before))
        columns = sp.csc_array(next(ends) - next(ends))
        for f in range(features.shape[1]):
            features[:, f] = found.curve(w, columns[:, [f]].toarray().ravel()).at(radii)
    left = np.maximum(radii - found.masses(w).sum(), 0.0)
    if audit.sensitivity > 0.0:
        together = [float(audit.move_shares[feature.columns].sum()) for feature in audit.features]
        return features + np.outer(left, together), flips, np.zeros_like(left)
    return features, flips, left


def _paid(audit: Adversary, moves: DomainMoves, sample: IndexArray, piece: IndexArray) -> Any:
    """The cost of each feature in pieces of samples."""
    signs = np.where(audit.label_of(sample, piece) > 0, 1.0, -1.0)
    changed, domains = moves.changed_features(sample, signs, piece), moves.domains
    owner = np.empty(audit.problem.costs.size, dtype=np.intp)
    for f, feature in enumerate(audit.features):
        owner[feature.columns] = f
    first = [*(group[0] for group in domains.groups), *domains.bounded]
    ones = np.ones(len(first)), (np.arange(len(first)), owner[np.array(first, dtype=np.intp)])
    return moves.item_costs(changed) @ sp.csr_array(ones, shape=(len(first), len(audit.features)))


def allowed_at(audit: Adversary, radii: FloatArray) -> list[list[str]]:
    """What each radius allows to be wrong, in words."""
    costs = audit.measured.costs
    spread = audit.problem.rows.column_deviations[: costs.size]
    each = tuple(
        Feature(
            feature.name,
            feature.columns,
            feature.levels,
            deviation=float(spread[feature.columns[0]] / abs(feature.scale)) or 1.0,
        )
        for feature in audit.features
    )
    prices = np.array([costs[f.columns[0]] * abs(f.scale) for f in audit.features])
    features = Features(each, costs.size, float(audit.weights.size))
    return [sentences(float(radius), audit.kappa, prices, None, features) for radius in radii]
