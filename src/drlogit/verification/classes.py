"""Both bounds of a softmax, rounded outwards; those of two classes are in ``lower`` and ``upper``.

For probabilities p and label shares a of each sample, ``G = Σ w (p - a) xᵀ`` and every model,

    promise  ≥  Σ w H(p) + λ (ε - N(G) - Σ w κ·a) + ⟨G, B⟩ over the free columns

where ``N(G)`` is at most ``½ Σ c |G|`` under ℓ1 transport, and else ``Σ ‖c M‖`` of a flow M between
the classes whose divergence is G: what that of the given one misses, r, is made up for by
``(r_j - r_k)/K``.  Columns of G total zero, so that ``⟨G, B⟩`` is at most half of ``Σ |G|`` times
the largest difference between two classes.  A model promises at most
``ελ + Σ w [lse(s) + max_k(-s_k - κ_k λ)]`` for any λ that all differences of its rows allow.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..problem.dual_point import ClassDualPoint
from ..problem.proof import BrokenProofError
from ..rows.arrays import FloatArray
from .lower import charged, constant_of, proven
from .rounding import DOWN, TINY, UNIT, UP, Enclosed, EnclosedSum, exact_sum, gamma, norm_of
from .samples import SamplesInBall
from .upper import lambda_and_price, margins


def class_lower_bound(samples: SamplesInBall, point: ClassDualPoint) -> float:
    """What a point proves."""
    costs = samples.label_costs
    p, a = _settled(point.probabilities, costs.shape), _settled(point.labels, costs.shape)
    if (a[np.isinf(costs)] > 0.0).any():
        raise BrokenProofError("infeasible dual point: it gives samples labels they cannot get")
    K, w, most = p.shape[1], samples.weights, p.shape[1] + 8
    r, size = w * (p - a).T, w * (p + a).T
    found = [EnclosedSum(samples.costs.size) for _ in range(K)]
    for rows, part in samples.parts():
        Z = samples.shifted(part)
        for k in range(K):
            found[k].add(r[k, rows], size[k, rows], Z)
    G, charge = [], 0.0
    for k in range(K):
        constant = constant_of(r[k], size[k], most)
        columns, left = charged(samples, found[k].value(most + 4), constant)
        G.append(columns.part(samples.in_norm))
        charge += left
    used = _flow_norm(samples, G, point.flow)
    spent = exact_sum(w * (a * np.where(np.isinf(costs), 0.0, costs)).sum(axis=1))
    # Of p whose sum is 1 + δ, that of p/(1 + δ) is meant.
    entropies = -(p * np.log(np.where(p > 0.0, p, 1.0))).sum(axis=1) * (1.0 - gamma(most + 32))
    total = exact_sum(w * entropies) - 4.0 * gamma(most) * samples.total_weight * UP
    return proven(samples, total, 0.5 * charge, used + spent * (1.0 + gamma(most)) * UP)


def _settled(shares: Any, shape: tuple[int, ...]) -> FloatArray:
    """On the simplex, up to rounding; ``BrokenProofError`` if that is far away."""
    found = np.asarray(shares, dtype=np.float64)
    if found.shape != shape or not (found >= 0.0).all() or not (found <= 1.0).all():
        raise BrokenProofError("infeasible dual point: it is not made of shares of the samples")
    totals = found.sum(axis=1, keepdims=True)
    if not (np.abs(totals - 1.0) <= 1e-9).all():
        raise BrokenProofError("infeasible dual point: shares of a sample do not add up to it")
    return np.asarray(found / totals)


def _flow_norm(samples: SamplesInBall, G: list[Enclosed], given: FloatArray | None) -> float:
    """At least N(G)."""
    costs, K = samples.costs[samples.in_norm], len(G)
    if samples.norm == "l1":
        return 0.5 * exact_sum(np.stack([one.size for one in G]) * costs) * UP
    k, j = np.tril_indices(K, -1)
    flow = np.zeros((k.size, costs.size)) if given is None else np.asarray(given, dtype=np.float64)
    if flow.shape != (k.size, costs.size) or not np.isfinite(flow).all():
        raise BrokenProofError("infeasible dual point: its flow is of other features")
    missing = np.stack([one.value for one in G])
    error = np.stack([one.error for one in G]).max(axis=0)
    size = np.abs(missing).sum(axis=0) + 2.0 * np.abs(flow).sum(axis=0)
    np.subtract.at(missing, j, flow)
    np.add.at(missing, k, flow)
    flow = np.abs(flow + (missing[j] - missing[k]) / K) + 2.0 / K * error + 8.0 * K * UNIT * size
    return math.fsum(norm_of(samples.norm, costs * row * UP) for row in flow) * UP


def class_upper_bound(
    samples: SamplesInBall, coef: FloatArray, intercept: Any, lam: float
) -> float:
    """What a softmax promises at most, at λ or the least that is allowed."""
    inside, K = samples.in_norm, len(coef)
    steps = (coef[j, inside] - coef[k, inside] for k in range(K) for j in range(k))
    lam, price = lambda_and_price(samples, steps, lam)
    found = [margins(samples, coef[k], float(intercept[k])) for k in range(K)]
    scores, error = (np.column_stack([one[part] for one in found]) for part in (0, 1))
    most = scores.max(axis=1, keepdims=True)
    lse = most + np.log(np.exp(scores - most).sum(axis=1, keepdims=True))
    paid = samples.label_costs * DOWN
    paid[(paid > 0.0) & np.isfinite(paid)] *= lam
    worst = (lse - scores - paid).max(axis=1)
    hidden = 2.0 * error.max(axis=1) + gamma(2 * K + 40) + gamma(8) * np.abs(scores).max(axis=1)
    mean = exact_sum(samples.weights * (worst + hidden) * UP + TINY) / samples.total_weight
    return float((mean + price) * UP)
