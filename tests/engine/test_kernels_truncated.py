"""Samples of the truncated interior point, against NumPy and dense matrices."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from drlogit.engine._truncated import pair_product
from drlogit.engine.truncated_samples import (
    Shares,
    class_matrices,
    curvature_product,
    single_product,
)
from drlogit.rows._products import compiled_rows
from drlogit.rows.blocks import Block


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
    kappa = np.column_stack([rng.exponential(size=300), np.zeros(300)])
    step = rng.standard_normal(columns + intercept + 1)
    Z = y[:, None] * (np.column_stack([X, np.ones(300)]) if intercept else X)
    bent, kink = w * p.prod(axis=1), w * D.prod(axis=1) / D.sum(axis=1)
    du = Z @ step[:-1]
    push = kink * (du - kappa[:, 0] * step[-1])
    rows = compiled_rows(kind(X), y, w, intercept)
    found = pair_product(rows, np.stack([p, D]), kappa, step)
    expected = np.append(Z.T @ (bent * du + push), -kappa[:, 0] @ push)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)


def curvatures(rng, N, K):
    """Probabilities, and D with a third of the samples on a kink of two labels."""
    p = rng.dirichlet(np.ones(K), N)
    D = np.where(np.arange(K) == 0, 5.0, 1e-9) * np.ones((N, 1))
    D[::3, 1] = 3.0
    return np.stack([p, D])


def laplacians(curved):
    """The samples' matrices between the classes, (18), one by one."""
    p, D = curved
    both = [np.diag(p[i]) - np.outer(p[i], p[i]) for i in range(len(p))]
    return np.array(
        [L + np.diag(d) - np.outer(d, d) / d.sum() for L, d in zip(both, D, strict=True)]
    )


@pytest.mark.parametrize("intercept", [True, False])
def test_products_are_those_of_the_matrix(intercept):
    """In double and in single precision."""
    rng = np.random.default_rng(1)
    N, n, K = 1500, 7, 4
    X, w, curved = rng.standard_normal((N, n)), rng.uniform(0.5, 2.0, N), curvatures(rng, N, K)
    kappa = rng.uniform(0.0, 3.0, (N, K))
    v = 1e-30 * rng.standard_normal(K * (n + intercept) + 1)  # underflows if it is not scaled
    block = Block(X, np.ones(N), w, intercept)
    Z = np.column_stack([X, np.ones(N)]) if intercept else X
    B, L = v[:-1].reshape(K, -1), laplacians(curved)
    hinges = laplacians(np.stack([np.zeros_like(curved[0]), curved[1]]))
    scores = Z @ B.T
    pull = np.einsum("ikl,il->ik", hinges, v[-1] * kappa)
    image = w[:, None] * (np.einsum("ikl,il->ik", L, scores) + pull)
    along = w @ (kappa * (np.einsum("ikl,il->ik", hinges, scores) + pull)).sum(axis=1)
    expected = np.append((image.T @ Z).ravel(), along)
    for product, error in ((curvature_product, 1e-12), (single_product, 1e-6)):
        found = product(block, curved, kappa, v)
        np.testing.assert_allclose(found, expected, atol=error * np.abs(expected).max())


@pytest.mark.parametrize("sparse", [True, False])
def test_matrices_of_classes_are_those_of_their_kinks_and_a_mean(sparse):
    rng = np.random.default_rng(2)
    N, n, K = 400, 6, 3
    X, curved = rng.standard_normal((N, n)), curvatures(rng, N, K)
    w = np.full(N, 1.0 / N)
    block = Block(sp.csr_matrix(X) if sparse else X, np.ones(N), w, True)
    state = Shares(np.zeros(N, np.int32), *[np.zeros((0, 0))] * 5, curved=curved)
    _, (matrices, weights) = class_matrices(block, state)
    Z = np.column_stack([X, np.ones(N)])
    p, D = curved
    hinge = D * (1.0 - D / D.sum(axis=1, keepdims=True))
    for k in range(K):
        on = np.arange(N) % 3 == 0 if k < 2 else np.zeros(N, bool)
        np.testing.assert_allclose(
            matrices.value[k], (Z.T * (w * on * hinge[:, k])) @ Z, atol=1e-12
        )
        rest = p[:, k] * (1.0 - p[:, k]) + np.where(on, 0.0, hinge[:, k])
        assert weights.value[k] == pytest.approx(w @ rest)
