"""Loops of the truncated interior point, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import logsumexp, xlogy
from scipy.special import softmax as reference

from drlogit.engine._truncated import mixed_entropies, pair_product, softmax, worst_labels
from drlogit.rows._products import compiled_rows


@pytest.fixture(params=[2, 5])
def samples(request):
    """Scores, label costs and labels within reach of 40 samples."""
    rng = np.random.default_rng(request.param)
    shape = (40, request.param)
    own = rng.integers(request.param, size=40).astype(np.int32)
    reach = rng.random(shape) < 0.7
    reach[np.arange(40), own] = True
    return rng.normal(scale=30.0, size=shape), rng.exponential(size=shape), reach, own


def test_probabilities_and_log_sums(samples):
    scores = np.vstack([samples[0], 800.0 * samples[0][:3]])
    p, lse = softmax(scores)
    np.testing.assert_allclose(p, reference(scores, axis=1), rtol=1e-13, atol=1e-300)
    np.testing.assert_allclose(lse, logsumexp(scores, axis=1), rtol=1e-13)


def test_only_labels_within_reach_are_the_worst(samples):
    scores, kappa, reach, _ = samples
    expected = np.where(reach, -scores - 0.3 * kappa, -np.inf).max(axis=1)
    np.testing.assert_array_equal(worst_labels(scores, kappa, reach, 0.3), expected)


def test_entropies_of_mixtures(samples):
    scores, _, _, own = samples
    w, (old, new) = np.full(40, 1.0 / 40.0), (softmax(scores)[0], softmax(scores / 50.0)[0])
    mixes = [(1.0, 1.0), (0.3, 0.9), (0.0, 0.5)]
    found = mixed_entropies(w, old, new, own, mixes)
    for (share, factor), entropy in zip(mixes, found, strict=True):
        p = factor * (old + share * (new - old))
        p[np.arange(40), own] += 1.0 - factor
        np.testing.assert_allclose(entropy, -w @ xlogy(p, p).sum(axis=1), rtol=1e-12)


@pytest.mark.parametrize("kind", [np.asarray, np.float32, sp.csr_array])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("columns", [3, 2000])
def test_a_product_is_that_with_the_matrix_of_the_samples(kind, intercept, columns):
    """300 rows are several strips of a dense array, and two panels of a sparse one."""
    rng = np.random.default_rng(columns)
    X = rng.standard_normal((300, columns)).astype(np.float32).astype(float)
    X[rng.random(X.shape) < 0.5] = 0.0
    y, w = rng.choice([-1.0, 1.0], 300), rng.random(300)
    p, D = rng.random((2, 300, 2))
    kappa = np.column_stack([np.zeros(300), rng.exponential(size=300)])
    step = rng.standard_normal(columns + intercept + 1)
    Z = y[:, None] * (np.column_stack([X, np.ones(300)]) if intercept else X)
    bent, kink = w * p.prod(axis=1), w * D.prod(axis=1) / D.sum(axis=1)
    du = Z @ step[:-1]
    push = kink * (du - kappa[:, 1] * step[-1])
    rows = compiled_rows(kind(X), y, w, intercept)
    found = pair_product(rows, np.stack([p, D]), kappa, step)
    expected = np.append(Z.T @ (bent * du + push), -kappa[:, 1] @ push)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)
