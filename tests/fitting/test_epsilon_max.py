"""``epsilon_max``: the radius from which on the model is constant."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from benchmarks import stated
from scipy.optimize import linprog

import domain_zoo
import drlogit
from drlogit.fitting import critical_radius


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("kappa", [0.2, 3.0, np.inf])
def test_model_is_constant_from_there_on_and_not_before(norm, kappa, fit_intercept):
    X, y = drlogit.datasets.make_synthetic(200, 5, 3)
    options = {"kappa": kappa, "norm": norm, "fit_intercept": fit_intercept}
    limit = stated.epsilon_max(X, y, **options)
    for tol, above in ((1e-6, 1.0 + 1e-9), (1e-10, 1.0001)):
        fit = stated.solve(X, y, epsilon=above * limit, tol=tol, **options)
        assert not fit.coef.any()
        assert fit.gap <= tol
    below = stated.solve(X, y, epsilon=0.98 * limit, tol=1e-11, **options)
    assert np.abs(below.coef).max() > 1e-4


@pytest.mark.parametrize("n_immovable", [0, 1])
@pytest.mark.parametrize("kappa", [1.0, np.inf])
@pytest.mark.parametrize("seed", [1, 2, 5, 10])  # the last two have a group for an intercept
def test_model_with_domains_is_constant_from_there_on_and_not_before(seed, kappa, n_immovable):
    case = domain_zoo.generated(seed, n_immovable=n_immovable, n_samples=60) | {"kappa": kappa}
    del case["epsilon"]
    movable = np.isfinite(case["feature_costs"])
    limit = stated.epsilon_max(**case)

    def effects(epsilon, tol):
        """What the features change, and of a group the largest difference between categories."""
        fit = stated.solve(**case, epsilon=epsilon, tol=tol)
        assert fit.gap <= tol
        beta = np.where(movable, fit.coef, 0.0)
        for group in case["categories"]:
            complete = (case["X"][:, group].sum(axis=1) == 1.0).all()
            beta[group] = np.ptp(beta[group] if complete else np.append(beta[group], 0.0))
        return beta

    assert not effects(1.0001 * limit, 1e-6).any()
    assert np.abs(effects(0.98 * limit, 1e-8)).max() > 1e-6


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_units_of_the_features_do_not_matter(norm, fit_intercept):
    """X, κ → cX, cκ multiplies ε_max by c: with equal classes, unequal ones, few samples."""
    for seed, shift in enumerate((0.0, 2.5, 0.0)):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((300 if seed < 2 else 9, 2))
        y = X[:, 0] + rng.logistic(size=len(X)) + shift > 0.0
        options = {"norm": norm, "fit_intercept": fit_intercept}
        limit = stated.epsilon_max(X, y, kappa=0.3, **options)
        assert 0.0 < limit <= 0.15
        for unit in (1e-6, 1e6):
            found = stated.epsilon_max(unit * X, y, kappa=0.3 * unit, **options)
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
        found = stated.epsilon_max(unit * X, rare, kappa=2.0 * unit, norm=norm, feature_costs=costs)
        assert found / unit == pytest.approx(2.0 * (doubt - 0.1), rel=1e-4)


def test_an_empty_column_that_cannot_move_changes_nothing(cancer):
    X, y = cancer[0][:120, :4], cancer[1][:120]
    empty = np.column_stack([X, np.zeros(len(X))])
    costs = [1.0, 1.0, 1.0, 1.0, np.inf]
    three = np.where(X[:, 0] > np.median(X[:, 0]), 2, y)
    for labels in (y, three):
        ball = {"kappa": 1.0, "feature_costs": costs}
        found = stated.epsilon_max(empty, labels, **ball)
        assert found == pytest.approx(stated.epsilon_max(X, labels, kappa=1.0), rel=1e-4)


def least_budget(X, y, kappa, n_classes):
    """ψ at equal probabilities of all classes, ℓ1, with intercepts: HiGHS, then by hand.

    A linear program in several units of the intercepts; the value is that of a feasible point.
    """
    n, d = X.shape
    K, own, best = n_classes, np.arange(n), 0.0
    price = np.repeat(np.broadcast_to(kappa, n)[:, None], K, axis=1).astype(float)
    price[own, y] = 0.0
    largest = np.maximum(price.max(axis=1), 1.0)
    for unit in (1.0, 1e3, 1e6, 1e9):
        A, b = [], []
        for i, k in np.ndindex(n, K):
            row, scale = np.zeros(K * d + K + n), max(price[i, k], 1.0)
            row[k * d : (k + 1) * d], row[K * d + k] = -X[i] / scale, -unit / scale
            row[K * d + K + i] = -largest[i] / scale
            A.append(row)
            b.append(price[i, k] / scale)
        for j, k, other in np.ndindex(d, K, K):
            if k != other:
                row = np.zeros(K * d + K + n)
                row[k * d + j], row[other * d + j] = 1.0, -1.0
                A.append(row)
                b.append(1.0)
        means = np.tile(X.mean(axis=0) / K, K)
        cost = np.concatenate([means, np.full(K, unit / K), largest / n])
        ends = [(None, None)] * cost.size
        ends[(K - 1) * d : K * d], ends[K * d + K - 1] = [(0.0, 0.0)] * d, (0.0, 0.0)
        tight = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
        found = linprog(cost, np.array(A), b, bounds=ends, method="highs-ds", options=tight)
        if found.status:
            continue
        B = found.x[: K * d].reshape(K, d)
        scores = X @ (B / max(1.0, np.ptp(B, axis=0).max())).T + unit * found.x[K * d : K * d + K]
        best = max(best, -np.mean(scores.mean(axis=1) + (-scores - price).max(axis=1)))
    return best


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("shape", [(40, 3), (15, 20)])
@pytest.mark.parametrize("kappa", [1e-3, 1.0, 1e6, 1e9, "by sample", "far apart"])
def test_flips_that_cost_far_more_or_less_than_moves(kappa, shape, n_classes):
    rng = np.random.default_rng(3)
    X = rng.standard_normal(shape)
    y = (2.0 * X[:, :n_classes] + rng.gumbel(size=(shape[0], n_classes))).argmax(axis=1)
    if isinstance(kappa, str):
        kappa = 10.0 ** rng.uniform(0.0 if kappa == "far apart" else 5.0, 9.0, shape[0])
    found = stated.epsilon_max(X, y, kappa=kappa)
    assert found == pytest.approx(least_budget(X, y, kappa, n_classes), rel=1e-4)


def test_the_share_of_flips_that_makes_a_model_constant_does_not_depend_on_their_cost():
    """A rare class: flips level all features with the classes, below the radius of these."""
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((40, 3)), rng.choice(3, 40, p=[0.6, 0.3, 0.1])
    share = stated.epsilon_max(X, y, kappa=1.0)
    assert stated.epsilon_max(X, y, kappa=1e9) / 1e9 == pytest.approx(share, rel=1e-4)
    assert share < 0.99 * least_budget(X, y, 1.0, 3)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("kappa", [0.05, 1.0, 20.0])
def test_the_bound_of_large_problems(kappa, norm, fit_intercept, cancer, monkeypatch):
    X, y = cancer
    ask = {"kappa": kappa, "norm": norm, "fit_intercept": fit_intercept}
    exact = stated.epsilon_max(X, y, **ask)
    monkeypatch.setattr(critical_radius, "DENSE_LIMIT", 5)
    bound = stated.epsilon_max(X, y, **ask)
    assert exact <= bound * (1.0 + 1e-4)
    assert bound <= 0.5 * kappa
    assert not stated.solve(X, y, epsilon=bound * (1.0 + 1e-6), **ask).coef.any()


def test_text_of_any_size_has_a_radius():
    """Neither 17,000 rows nor as many columns are refused."""
    rng = np.random.default_rng(0)
    X = sp.random(17_000, 17_500, density=2e-4, random_state=0, format="csr")
    y = (X @ rng.standard_normal(17_500) > 0.0).astype(int)
    found = stated.epsilon_max(X, y, kappa=1.0, norm="l2")
    assert 0.0 < found < 0.5
    assert not stated.solve(X, y, epsilon=found, kappa=1.0, norm="l2", tol=1e-4).coef.any()
