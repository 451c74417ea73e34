"""A worst-case distribution, checked from scratch: is it in the ball, and as bad as it says?"""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import logsumexp

from drlogit.problem.norms import NORMS
from drlogit.robustness.models import measured


def check_distribution(
    distribution, model, X, y, *, epsilon, kappa, norm, costs=None, weights=None, tol=1e-4
):
    """Points, labels, transport plan, and expected loss.

    ``kappa`` is a number, a dict by label, or one for each sample.
    """
    linear = measured(model)
    X = X.toarray() if sp.issparse(X) else np.asarray(X, dtype=float)
    costs = np.ones(X.shape[1]) if costs is None else np.asarray(costs)
    weights = np.ones(len(y)) if weights is None else np.asarray(weights)
    points, index, mass = distribution.points(X), distribution.index, distribution.mass
    moves, own = points - X[index], np.asarray(y)[index]
    # The mass comes from the samples, and from nowhere else.
    sent = np.bincount(index, mass, minlength=len(y))
    np.testing.assert_allclose(sent, weights / weights.sum(), atol=1e-12)
    assert (mass > 0.0).all()
    # Immovable features have not moved.
    movable = np.isfinite(costs)
    assert not moves[:, ~movable].any()
    lengths = np.array([NORMS[norm].value(row) for row in moves[:, movable] * costs[movable]])
    np.testing.assert_allclose(lengths, distribution.distance, rtol=1e-9, atol=1e-12)
    flipped = distribution.label != own
    np.testing.assert_array_equal(flipped, distribution.flipped)
    if isinstance(kappa, dict):
        flips = np.array([kappa[label] for label in own.tolist()])
    else:
        flips = np.broadcast_to(kappa, len(y))[index]
    cost = mass @ lengths + mass[flipped] @ flips[flipped]
    assert distribution.transport_cost <= epsilon
    assert distribution.transport_cost == pytest.approx(cost, rel=1e-9)
    scores = points @ linear.coef.T + linear.intercept
    if scores.ndim == 1:
        scores = np.column_stack([np.zeros_like(scores), scores])
    classes = np.unique(y) if linear.classes is None else np.array(linear.classes)
    own_score = scores[np.arange(len(scores)), np.searchsorted(classes, distribution.label)]
    loss = mass @ (logsumexp(scores, axis=1) - own_score)
    assert loss == pytest.approx(distribution.value, abs=1e-7)
    assert -1e-9 <= distribution.supremum - loss <= tol * (1.0 + 1e-6) + 1e-9
