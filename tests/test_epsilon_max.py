"""``epsilon_max``: the radius from which on the model is constant."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

import drlogit
from drlogit.fitting import critical_radius as radius
from drlogit.problem.problem import build_problem
from drlogit.problem.result import Status
from drlogit.solvers.interior_point.barrier import solve_with_barrier
from drlogit.solvers.interior_point.scaled import Scaled


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X), y


def test_values_on_breast_cancer(cancer):
    X, y = cancer
    found = [
        drlogit.epsilon_max(X, y, kappa=kappa, fit_intercept=False)
        for kappa in (0.15, 1.0, 7.0, np.inf)
    ]
    np.testing.assert_allclose(found, [0.0427, 0.284, 1.94, 6.82], rtol=3e-3)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("kappa", [0.2, 3.0, np.inf])
def test_model_is_constant_from_there_on_and_not_before(norm, kappa, fit_intercept):
    X, y = drlogit.datasets.make_synthetic(200, 5, 3)
    options = {"kappa": kappa, "norm": norm, "fit_intercept": fit_intercept}
    limit = drlogit.epsilon_max(X, y, **options)
    above = drlogit.solve(X, y, epsilon=1.001 * limit, tol=1e-11, **options)
    below = drlogit.solve(X, y, epsilon=0.98 * limit, tol=1e-11, **options)
    assert np.abs(above.coef).max() < 1e-5
    assert np.abs(below.coef).max() > 1e-4


def test_budget_is_the_linear_program(cancer):
    """Without intercept: min ‖Σ w(½-a)z‖₁ + κ Σ w a over a, by HiGHS."""
    X, y = cancer[0][:80, :6], cancer[1][:80]
    kappa, n_samples, n = 0.7, 80, 6
    Z = np.where(y > 0, 1.0, -1.0)[:, None] * X
    # Variables a (80) and t (6): |Σ w(½-a)z|_j ≤ t_j.
    half = 0.5 * Z.mean(axis=0)
    cost = np.concatenate([np.full(n_samples, kappa / n_samples), np.ones(n)])
    A = np.block([[-Z.T / n_samples, -np.eye(n)], [Z.T / n_samples, -np.eye(n)]])
    bounds = [(0, 1)] * n_samples + [(0, None)] * n
    oracle = linprog(cost, A_ub=A, b_ub=np.concatenate([-half, half]), bounds=bounds)
    found = drlogit.epsilon_max(X, y, kappa=kappa, fit_intercept=False)
    assert found == pytest.approx(oracle.fun, rel=1e-8)


def test_unequal_classes_with_intercept():
    """So few positives that flipping ε/κ of the others hides them: constant far below κ/2."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 2))
    y = (rng.random(2000) < 0.03).astype(int)
    limit = drlogit.epsilon_max(X, y, kappa=1.0)
    assert limit < 0.2
    above = drlogit.solve(X, y, epsilon=1.01 * limit, kappa=1.0, tol=1e-10)
    assert np.abs(above.coef).max() < 1e-4
    assert abs(above.intercept) > 0.5
    below = drlogit.solve(X, y, epsilon=0.97 * limit, kappa=1.0, tol=1e-10)
    assert np.abs(below.coef).max() > 1e-3


@pytest.mark.parametrize("swapped", [False, True])
def test_classes_that_only_weights_make_unequal(swapped):
    """As many samples of each class, of which one has 30 times the weight; either may be it."""
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((400, 2)), np.arange(400) % 2
    X[:, 0] += 0.3 * y
    options = {"kappa": 1.0, "sample_weight": np.where(y == swapped, 30.0, 1.0)}
    limit = drlogit.epsilon_max(X, y, **options)
    assert 0.0 < limit < 0.4
    above = drlogit.solve(X, y, epsilon=1.01 * limit, tol=1e-10, **options)
    below = drlogit.solve(X, y, epsilon=0.97 * limit, tol=1e-10, **options)
    assert np.abs(above.coef).max() < 1e-4 < 1e-3 < np.abs(below.coef).max()


def test_both_bounds_on_the_budget_meet():
    """The upper one is that of the flip shares: without it nothing would be proved."""
    X, y = drlogit.datasets.make_synthetic(100, 4, 7)
    for fit_intercept in (True, False):
        problem = build_problem(X, y, epsilon=1.0, kappa=0.7, fit_intercept=fit_intercept)
        judge = radius._BudgetJudge(problem, (0.5, 0.5))
        solve_with_barrier(Scaled.of(problem), judge, max_iter=100, lam=1.0, slopes=(0.5, 0.5))
        assert judge.status is Status.OPTIMAL
        assert 0.0 < judge.lower <= judge.upper <= judge.lower * (1.0 + 1e-9)


def test_immovable_features_stay():
    X, y = drlogit.datasets.make_synthetic(150, 3, 5)
    costs = [np.inf, 1.0, 1.0]
    for kappa in (1.0, np.inf):
        limit = drlogit.epsilon_max(X, y, kappa=kappa, feature_costs=costs)
        fit = drlogit.solve(X, y, epsilon=1.01 * limit, kappa=kappa, feature_costs=costs, tol=1e-10)
        assert np.abs(fit.coef[1:]).max() < 1e-4
