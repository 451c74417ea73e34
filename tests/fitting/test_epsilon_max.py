"""``epsilon_max``: the radius from which on the model is constant."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

import domain_zoo
import drlogit


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("kappa", [0.2, 3.0, np.inf])
def test_model_is_constant_from_there_on_and_not_before(norm, kappa, fit_intercept):
    X, y = drlogit.datasets.make_synthetic(200, 5, 3)
    options = {"kappa": kappa, "norm": norm, "fit_intercept": fit_intercept}
    limit = drlogit.epsilon_max(X, y, **options)
    for tol, solver, above in (
        (1e-6, "auto", 1.0 + 1e-9),
        (1e-10, "auto", 1.0001),
        (1e-6, "lp-admm", 1.5),
    ):
        fit = drlogit.solve(X, y, epsilon=above * limit, tol=tol, solver=solver, **options)
        assert not fit.coef.any()
        assert fit.gap <= tol
    below = drlogit.solve(X, y, epsilon=0.98 * limit, tol=1e-11, **options)
    assert np.abs(below.coef).max() > 1e-4


@pytest.mark.parametrize("n_immovable", [0, 1])
@pytest.mark.parametrize("kappa", [1.0, np.inf])
@pytest.mark.parametrize("seed", [1, 2, 5, 10])  # the last two have a group for an intercept
def test_model_with_domains_is_constant_from_there_on_and_not_before(seed, kappa, n_immovable):
    case = domain_zoo.generated(seed, n_immovable=n_immovable, n_samples=60) | {"kappa": kappa}
    del case["epsilon"]
    movable = np.isfinite(case["feature_costs"])
    limit = drlogit.epsilon_max(**case)

    def effects(epsilon, tol):
        """What the features change, and of a group the largest difference between categories."""
        fit = drlogit.solve(**case, epsilon=epsilon, tol=tol)
        assert fit.gap <= tol
        beta = np.where(movable, fit.coef, 0.0)
        for group in case["categories"]:
            complete = (case["X"][:, group].sum(axis=1) == 1.0).all()
            beta[group] = np.ptp(beta[group] if complete else np.append(beta[group], 0.0))
        return beta

    assert not effects(1.0001 * limit, 1e-6).any()
    assert np.abs(effects(0.98 * limit, 1e-8)).max() > 1e-6


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
    assert found == pytest.approx(oracle.fun, rel=1e-4)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_units_of_the_features_do_not_matter(norm, fit_intercept):
    """X, κ → cX, cκ multiplies ε_max by c: with equal classes, unequal ones, few samples."""
    for seed, shift in enumerate((0.0, 2.5, 0.0)):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((300 if seed < 2 else 9, 2))
        y = X[:, 0] + rng.logistic(size=len(X)) + shift > 0.0
        options = {"norm": norm, "fit_intercept": fit_intercept}
        limit = drlogit.epsilon_max(X, y, kappa=0.3, **options)
        assert 0.0 < limit <= 0.15
        for unit in (1e-6, 1e6):
            found = drlogit.epsilon_max(unit * X, y, kappa=0.3 * unit, **options)
            assert found / unit == pytest.approx(limit, rel=1e-4)


@pytest.mark.parametrize("immovable", [False, True])
def test_constant_below_the_radius_that_levels_the_classes(immovable):
    """With an intercept: the least ratio of doubts is a linear program of its own, by HiGHS.

    An immovable feature with the same share of either class tells the null model nothing, but
    wants flips levelled for each of its values.
    """
    rng = np.random.default_rng(4)
    X, rare = rng.standard_normal((120, 3)), np.arange(120) < 12
    costs = np.ones(3)
    if immovable:
        X, costs = np.column_stack([X, np.arange(120) % 2]), np.array([1.0, 1.0, 1.0, np.inf])
    A = np.column_stack([X, np.ones(120)]) / 120
    # Shares (s-a)/(1-s) of the larger class in [-1, r], with the sums of the smaller class.
    n = int((~rare).sum())
    oracle = linprog(
        np.append(np.zeros(n), 1.0),
        A_ub=np.column_stack([np.eye(n), -np.ones(n)]), b_ub=np.zeros(n),
        A_eq=np.column_stack([A[~rare].T, np.zeros(A.shape[1])]), b_eq=A[rare].sum(axis=0),
        bounds=[(-1, None)] * n + [(0, None)],
    )  # fmt: skip
    doubt = oracle.fun / (1.0 + oracle.fun)
    for norm, unit in (("l1", 1.0), ("l2", 1e5)) if immovable else (("linf", 1.0),):
        found = drlogit.epsilon_max(
            unit * X, rare, kappa=2.0 * unit, norm=norm, feature_costs=costs
        )
        assert found / unit == pytest.approx(2.0 * (doubt - 0.1), rel=1e-4)


@pytest.mark.parametrize("solver", ["interior-point", "lp-admm"])
def test_an_empty_column_that_cannot_move_changes_nothing(cancer, solver):
    X, y = cancer[0][:120, :4], cancer[1][:120]
    empty = np.column_stack([X, np.zeros(len(X))])
    costs = [1.0, 1.0, 1.0, 1.0, np.inf]
    three = np.where(X[:, 0] > np.median(X[:, 0]), 2, y)
    for labels in (y, three):
        ball = {"kappa": 1.0, "feature_costs": costs}
        found = drlogit.epsilon_max(empty, labels, **ball)
        assert found == pytest.approx(drlogit.epsilon_max(X, labels, kappa=1.0), rel=1e-4)
    result = drlogit.solve(empty, y, epsilon=0.05, solver=solver, **ball)
    plain = drlogit.solve(X, y, epsilon=0.05, kappa=1.0)
    assert result.objective == pytest.approx(plain.objective, abs=2e-6)
