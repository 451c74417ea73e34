"""Which features carry the risk: where the worst case spends its budget, and what holding one
saves.

At a radius ε the worst case for the log-loss spends ε on flips of labels and on changes of
features; so much goes into each.  A move of several features together, as in ℓ2 and ℓ∞ transport,
counts for each by its part in what the move gains, ``β_j δ_j / ‖β/c‖_*``.  What nothing can be
bought for stays unspent.  The parts add up to ε.

The other answer is the worst-case loss if a feature could not move at all: how much of the damage
another way round would do as well.

Beside it the coefficients, in the units of the table, and columns that work against each other: two
that are nearly the same, with coefficients that cancel, let a small change of one of them alone do
much, which is a frequent reason for a fragile model, and easy to mend.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from ..rows.arrays import FloatArray, IndexArray
from .adversary import Adversary
from .breakpoints import Breakpoints
from .pair_audit import PairAudit

#: Columns whose correlations are looked at: those with the largest effects.
_COMPARED = 200

#: Correlation from which two columns count as nearly the same: they share nine tenths of their
#: variance.
_SAME = 0.95


def budget(audit: Adversary, radii: FloatArray, n_named: int) -> dict[str, Any]:
    """Where the budget goes at ascending radii, and the worst-case losses without each part.

    Features that take most are named; the others are taken together.
    """
    found = audit.breakpoints()
    use, flips, unspent = _parts(audit, found, radii)
    most = use.max(axis=0)
    order = np.argsort(-most, kind="stable")
    order = order[most[order] > 0.0]
    named = [
        {
            "name": audit.features[f].name,
            "use": use[:, f],
            "without": _losses(audit.holding(audit.features[f].columns), radii),
        }
        for f in order[:n_named]
    ]
    return {
        "loss": audit.loss_curve(found).at(radii),
        "features": named,
        "others": use[:, order[n_named:]].sum(axis=1),
        "n_moved": int(order.size),
        "flips": flips,
        "without_flips": _losses(audit.with_labels_right(), radii),
        "unspent": unspent,
    }


def _losses(audit: Adversary, radii: FloatArray) -> FloatArray:
    return audit.loss_curve().at(radii)


def _parts(
    audit: Adversary, found: Breakpoints, radii: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """What goes into each feature (a row per radius), into labels, and into nothing."""
    w = audit.weights
    found = found.begun(w, float(radii[-1]))
    flips = found.curve(w, audit.paid_for_labels(found)).at(radii)
    features = np.zeros((radii.size, len(audit.features)))
    if isinstance(audit, PairAudit) and audit.problem.domains is not None:
        paid = _paid(audit, found.sample, found.after) - _paid(audit, found.sample, found.before)
        columns = sp.csc_array(paid)
        for f in range(features.shape[1]):
            features[:, f] = found.curve(w, columns[:, [f]].toarray().ravel()).at(radii)
    left = np.maximum(radii - found.masses(w).sum(), 0.0)
    if audit.sensitivity > 0.0:
        together = [float(audit.move_shares[feature.columns].sum()) for feature in audit.features]
        return features + np.outer(left, together), flips, np.zeros_like(left)
    return features, flips, left


def _paid(audit: PairAudit, sample: IndexArray, piece: IndexArray) -> Any:
    """What samples have paid for each feature at a piece of theirs."""
    domains, changed = audit.domains, audit.changed_features(sample, piece)
    owner = np.empty(audit.problem.costs.size, dtype=np.intp)
    for f, feature in enumerate(audit.features):
        owner[feature.columns] = f
    first = [*(group[0] for group in domains.groups), *domains.bounded]
    ones = np.ones(len(first)), (np.arange(len(first)), owner[np.array(first, dtype=np.intp)])
    return audit.item_costs(changed) @ sp.csr_array(ones, shape=(len(first), len(audit.features)))


def coefficients(audit: PairAudit) -> list[dict[str, Any]]:
    """All coefficients, largest effects first.

    A ``value`` is the log-odds that one unit of a feature adds, in the units of the table, or that
    a level adds to the average sample; an ``effect`` that of one standard deviation of the number,
    or of the 0 or 1 of the level.
    """
    beta = audit.coefficients[:-1]
    deviations, means = deviations_and_means(audit)
    found: list[dict[str, Any]] = []
    for feature in audit.features:
        columns, own = feature.columns, beta[feature.columns]
        values, levels = own * feature.scale, feature.levels or (None,)
        if feature.levels is not None:
            values = own = own - own @ means[columns]
        effects = own * deviations[columns]
        found += [
            {"feature": feature.name, "level": level, "value": value, "effect": effect}
            for level, value, effect in zip(levels, values, effects, strict=True)
        ]
    return sorted(found, key=lambda each: -abs(each["effect"]))


def opposites(audit: PairAudit) -> list[dict[str, Any]]:
    """Numbers that are nearly the same (or nearly opposite) and whose effects cancel.

    What cancels most comes first.
    """
    deviations, _ = deviations_and_means(audit)
    effects = audit.coefficients[:-1] * deviations
    numbers = {
        int(feature.columns[0]): feature.name
        for feature in audit.features
        if feature.levels is None and effects[feature.columns[0]] != 0.0
    }
    chosen = np.array(sorted(numbers, key=lambda j: -abs(effects[j]))[:_COMPARED], dtype=np.intp)
    if chosen.size < 2:
        return []
    covariances = np.cov(audit.values_of(chosen), rowvar=False, ddof=0, aweights=audit.weights)
    scale = np.sqrt(np.maximum(np.diag(covariances), np.finfo(float).tiny))
    correlations = covariances / np.outer(scale, scale)
    found = []
    for a, b in zip(*np.nonzero(np.triu(np.abs(correlations) >= _SAME, 1)), strict=True):
        pair, correlation = chosen[[a, b]], float(correlations[a, b])
        if np.prod(effects[pair]) * correlation < 0.0:
            one, other = (numbers[int(j)] for j in pair)
            found.append(
                {"one": one, "other": other, "correlation": correlation, "effects": effects[pair]}
            )
    return sorted(found, key=lambda pair: -np.abs(pair["effects"]).min())


def deviations_and_means(audit: Adversary) -> tuple[FloatArray, FloatArray]:
    """Standard deviations and means of all columns of the matrix."""
    rows = audit.problem.rows
    means = rows.column_means[: audit.measured.costs.size]
    squares = rows.column_scale[: means.size] ** 2
    deviations = np.sqrt(np.maximum(squares - means**2, 0.0))
    return deviations, means if rows.shift is None else means + rows.shift
