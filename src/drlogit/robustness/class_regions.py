"""The cost of moving samples until a given class has the largest of several scores.

The score of class d must pass those of all others: ``(B_j - B_d)·δ ≤ -g_j`` with the gaps
``g_j = s_j - s_d``.  By duality the least cost of such a move is

    max { Σ μ_j g_j :  μ ≥ 0,  ‖Σ μ_j (B_d - B_j)/c‖_* ≤ 1 },

over a set that is the same for all samples.  A single nonzero ``μ_j`` gives the bound
``g_j / ‖(B_d - B_j)/c‖_*``.  Two of them give the vertices of a polygon or, in ℓ2, a quadratic
form.  This is exact for three classes, and a lower bound for more.
"""

from __future__ import annotations

import itertools

import numpy as np
from scipy.spatial import ConvexHull

from ..problem.transport import TransportCost
from ..rows.arrays import FloatArray


def reach_of_classes(
    scores: FloatArray, coefficients: FloatArray, norms: FloatArray, cost: TransportCost
) -> FloatArray:
    """The least cost to give each class the largest score, or less; a column for each sample.

    ``norms`` are those of the differences of all pairs of coefficients.
    """
    kept = ~cost.free
    B = coefficients[:, kept] / cost.costs[kept]
    reach = np.zeros_like(scores)
    for d, least in enumerate(reach):
        others = [j for j in range(len(scores)) if j != d]
        gaps = scores - scores[d]
        for j in others:
            np.maximum(least, lengths(gaps[j], float(norms[j, d])), out=least)
        for i, j in itertools.combinations(others, 2):
            if norms[i, d] == 0.0 or norms[j, d] == 0.0:
                continue
            pair = gaps[[i, j]]
            if cost.norm.name == "l2":
                found = _of_ellipse(pair, norms[i, d], norms[j, d], norms[i, j])
            else:
                corners, ray = _polygon(np.stack([B[d] - B[i], B[d] - B[j]]), cost.norm.name)
                found = (corners @ pair).max(axis=0, initial=0.0)
                found = np.where(ray @ pair > 1e-12 * np.abs(pair).max(axis=0), np.inf, found)
            np.maximum(least, found, out=least)
    return reach


def lengths(gaps: FloatArray, rate: float) -> FloatArray:
    """The cost of closing gaps between scores at a rate per unit of transport."""
    gaps = np.maximum(gaps, 0.0)
    if rate == 0.0:
        return np.where(gaps > 0.0, np.inf, 0.0)
    with np.errstate(over="ignore"):
        return np.asarray(gaps / rate)


def _of_ellipse(gaps: FloatArray, p: float, q: float, between: float) -> FloatArray:
    """The largest ``μ·g`` in ℓ2, from the norms of two vectors and of their difference."""
    product = 0.5 * (p * p + q * q - between * between)
    determinant = (p * q) ** 2 - product**2
    if determinant <= 1e-12 * (p * q) ** 2:  # parallel: nothing that one at a time does not find
        opposite = np.asarray(gaps[0] / p + gaps[1] / q > 1e-12 * np.abs(gaps).max(axis=0))
        return np.where(opposite, np.inf, 0.0) if product < 0.0 else np.zeros(gaps.shape[1])
    mu = np.stack([q * q * gaps[0] - product * gaps[1], p * p * gaps[1] - product * gaps[0]])
    square = np.maximum((mu * gaps).sum(axis=0), 0.0) / determinant
    return np.where((mu >= 0.0).all(axis=0), np.sqrt(square), 0.0)


def _polygon(vectors: FloatArray, norm: str) -> tuple[FloatArray, FloatArray]:
    """Vertices ``μ ≥ 0`` of ``‖μ_1 p + μ_2 q‖_* ≤ 1``, and a direction without end, or zero."""
    points = vectors.T  # one for each feature
    longest = points[np.abs(points).max(axis=1).argmax()]
    across = np.array([-longest[1], longest[0]])
    none, ray = np.empty((0, 2)), np.zeros(2)
    if (np.abs(points @ across) <= 1e-12 * (longest @ longest)).all():  # all on one line
        return none, np.abs(across) if longest[0] * longest[1] < 0.0 else ray
    if norm == "l1":  # the largest |μ·v|: the polar of the hull of ±v
        hull = ConvexHull(np.concatenate([points, -points]))
        corners = -hull.equations[:, :2] / hull.equations[:, 2:]
    else:  # the sum of |μ·v|: corners where one of them vanishes
        turned = points[:, ::-1] * np.array([-1.0, 1.0])
        turned = turned[np.abs(points).max(axis=1) > 0.0]
        corners = turned / np.abs(turned @ points.T).sum(axis=1, keepdims=True)
        corners = np.concatenate([corners, -corners])
    return corners[(corners >= 0.0).all(axis=1)], ray
