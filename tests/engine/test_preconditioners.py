"""Preconditioners of the truncated interior point against dense matrices."""

import numpy as np
import pytest

from drlogit.engine import truncated as method
from drlogit.engine import truncated_samples as visits
from drlogit.engine.preconditioners import Blocks, Diagonal
from drlogit.rows.blocks import Block

from .test_truncated import truncated

KEPT = np.array([0, 1, 2, 4])


def preconditioner(kind, rng):
    """One for three classes of five columns, and its dense matrices."""
    A = rng.standard_normal((3, 8, 5))
    matrices = np.swapaxes(A, 1, 2) @ A
    if kind is Diagonal:
        matrices = matrices * np.eye(5)
        return Diagonal(np.diagonal(matrices, axis1=1, axis2=2), KEPT), matrices
    return Blocks(matrices.copy(), KEPT), matrices


@pytest.mark.parametrize("kind", [Diagonal, Blocks])
def test_solutions_and_combinations_are_those_of_dense_matrices(kind):
    rng = np.random.default_rng(0)
    base, matrices = preconditioner(kind, rng)
    r, x, weights = rng.standard_normal((3, 5)), rng.standard_normal((3, 4)), rng.random((3, 3))
    whole = np.zeros((3, 5))
    whole[:, KEPT] = x
    inverses = np.linalg.inv(matrices)
    np.testing.assert_allclose(base.solve(r), np.einsum("kij,kj->ki", inverses, r), rtol=1e-8)
    np.testing.assert_allclose(list(base.span(x)), whole @ inverses @ whole.T, rtol=1e-8)
    expected = np.einsum("kij,kj->ki", inverses, weights @ whole)
    if kind is Diagonal:
        expected[:, 3] = 0.0
    np.testing.assert_allclose(base.combined(weights), expected, rtol=1e-8, atol=1e-12)


def test_a_singular_matrix_has_a_factor():
    base = Blocks(np.stack([np.ones((5, 5)), np.zeros((5, 5))]), KEPT)
    assert np.isfinite(base.solve(np.ones((2, 5)))).all()


def sampled_grams(share, seed=0, n_samples=3000):
    """Matrices of three classes from a share of the rows, and from all of them."""
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((n_samples, 4)), np.ones(n_samples)
    block = Block(X, y, np.full(n_samples, 1.0 / n_samples), True)
    p, D = rng.dirichlet(np.ones(3), n_samples), rng.random((n_samples, 3)) ** 4
    unused = [np.zeros(0)] * 7
    state = visits.WideSamples(*unused, curved=np.stack([p, D]))
    weights = p * (1.0 - p) + D * (1.0 - D / D.sum(axis=1, keepdims=True))
    Z = np.column_stack([X, y])
    exact = np.stack([(Z.T * weight) @ Z for weight in weights.T]) / n_samples
    return visits.grams(block, (state, 0), share)[1][0].value, exact


def test_matrices_of_all_rows_are_exact():
    found, exact = sampled_grams(1.0)
    np.testing.assert_allclose(found, exact, atol=1e-13)


def test_matrices_of_a_sample_are_unbiased():
    """Eigenvalues of the preconditioned matrix are near one, with about 300 rows per class."""
    found, exact = sampled_grams(0.1)
    for one, other in zip(found, exact, strict=True):
        values = np.linalg.eigvals(np.linalg.solve(one, other)).real
        assert 0.6 < values.min() < values.max() < 1.6


def test_matrices_by_class_save_products(monkeypatch):
    """Correlated columns: conjugate gradients take far fewer steps, for the same optimum."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((600, 30)) @ (rng.standard_normal((30, 30)) / np.arange(1, 31))
    y = (X @ rng.standard_normal((30, 4)) + rng.gumbel(size=(600, 4))).argmax(axis=1)
    options = {"epsilon": 0.02, "kappa": 1.0, "norm": "l2", "feature_costs": None,
               "fit_intercept": True, "sample_weight": None}  # fmt: skip
    blocks = truncated(X, y, options)
    monkeypatch.setattr(method, "_MOST_ENTRIES", 0)
    diagonal = truncated(X, y, options)
    assert max(blocks.gap, diagonal.gap) <= 1e-6
    assert blocks.objective == pytest.approx(diagonal.objective, abs=2e-6)
    assert blocks.info["products"] < 0.6 * diagonal.info["products"]
