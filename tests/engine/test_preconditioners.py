"""Preconditioners and products of the truncated interior point against dense matrices."""

import math

import numpy as np
import pytest
from benchmarks import stated

import zoo
from drlogit.engine import truncated as method
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


def many_classes(seed, N=600, n=100, K=16):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, n))
    y = (X @ rng.standard_normal((n, K)) / math.sqrt(n) + rng.gumbel(size=(N, K))).argmax(axis=1)
    y[:K] = np.arange(K)
    return X, y


def test_columns_beyond_single_precision_are_solved():
    """Units from 1e-25 to 1e25; a column of 1e39 has no single precision at all."""
    X, y = many_classes(5)
    for ends in (25.0, 39.0):
        units = 10.0 ** np.linspace(-25.0, ends, X.shape[1])
        options = {"epsilon": 0.05, "kappa": 1.0, "norm": "l2", "n_jobs": 1}
        plain = stated.solve(X, y, **options)
        found = stated.solve(X * units, y, feature_costs=1.0 / units, **options)
        assert found.gap <= 1e-6
        assert found.objective == pytest.approx(plain.objective, abs=2e-6)


def test_rows_in_a_file_are_not_copied_to_memory():
    X, y = many_classes(6)
    problem = stated.problem(zoo.mapped(X), y, epsilon=0.05, kappa=1.0)
    assert problem.rows.blocks[0].single is None
    assert Block(X, np.ones(len(y)), np.ones(len(y)), True).single.dtype == np.float32
