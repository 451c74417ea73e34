"""Several classes in one problem: against a conic solver, against two classes, on awkward data."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import drlogit


def generated(seed: int) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    """Samples of 2 to 5 classes and a ball: scales, weights, costs, κ of 0 and ∞, asymmetric.

    Of every third three, κ are those of samples.
    """
    rng = np.random.default_rng(seed)
    K, n = int(rng.integers(2, 6)), int(rng.integers(1, 7))
    N = int(rng.integers(3 * K, 25 * K))
    X = rng.normal(size=(N, n)) * 10 ** rng.uniform(-1.5, 1.5) * 10 ** rng.uniform(-0.5, 0.5, n)
    B = rng.normal(size=(K, n)) / X.std(axis=0) * rng.uniform(0, 3)
    y = (X @ B.T + rng.gumbel(size=(N, K))).argmax(axis=1)
    y[:K] = np.arange(K)
    costs = 10 ** rng.uniform(-0.5, 0.5, n) if rng.random() < 0.5 else np.ones(n)
    if rng.random() < 0.3 and n > 1:
        costs[rng.integers(n)] = math.inf
    size, kind = np.abs(X).mean(), rng.integers(5)
    kappa: Any = float(size * 10 ** rng.uniform(-1, 1.3))
    if kind == 1:
        kappa = math.inf
    elif kind > 1:
        kappa = kappa * 10 ** rng.uniform(-0.7, 0.7, (K, K))
        kappa[rng.random((K, K)) < 0.25 * (kind > 2)] = math.inf
        kappa[rng.random((K, K)) < 0.15 * (kind > 3)] = 0.0
        np.fill_diagonal(kappa, 0.0)
    if seed // 3 % 3 == 2:
        kappa = size * rng.choice([0.0, 0.3, 1.0, 4.0, math.inf], N, p=[0.1, 0.2, 0.2, 0.2, 0.3])
    ball = {
        "epsilon": size * 10 ** rng.uniform(-3, 0.3), "kappa": kappa,
        "norm": ("l1", "l2", "linf")[seed % 3], "feature_costs": costs,
        "fit_intercept": bool(rng.random() < 0.8), "sample_weight": rng.uniform(0.1, 2.0, N),
    }  # fmt: skip
    return X, y, ball


def conic_value(X: np.ndarray, y: np.ndarray, ball: dict[str, Any]) -> float:
    """The optimum by cvxpy and Clarabel."""
    cp = pytest.importorskip("cvxpy")
    K, (N, n) = int(y.max()) + 1, X.shape
    w, kappa = ball["sample_weight"], np.asarray(ball["kappa"])
    prices = kappa[y] if kappa.ndim == 2 else np.ones((N, K)) * kappa.reshape(-1, 1)
    prices = np.where(np.arange(K) == y[:, None], 0.0, prices)
    B, b, lam, tau = cp.Variable((K, n)), cp.Variable((1, K)), cp.Variable(), cp.Variable(N)
    scores = X @ B.T + (np.ones((N, 1)) @ b if ball["fit_intercept"] else 0.0)
    rules = [lam >= 0, cp.sum(B, axis=0) == 0, cp.sum(b) == 0]
    for k in range(K):
        rows = np.flatnonzero(np.isfinite(prices[:, k]))
        rules.append(tau[rows] + scores[rows, k] + prices[rows, k] * lam >= 0)
    costs = ball["feature_costs"]
    moved, dual = (
        np.flatnonzero(np.isfinite(costs)),
        {"l1": "inf", "l2": 2, "linf": 1}[ball["norm"]],
    )
    for j in range(K if moved.size else 0):
        for k in range(j):
            step = cp.multiply(B[j, moved] - B[k, moved], 1.0 / costs[moved])
            rules.append(cp.norm(step, dual) <= lam)
    loss = (w / w.sum()) @ (cp.log_sum_exp(scores, axis=1) + tau)
    problem = cp.Problem(cp.Minimize(ball["epsilon"] * lam + loss), rules)
    problem.solve(solver="CLARABEL", tol_gap_abs=1e-9, tol_gap_rel=1e-9, tol_feas=1e-9)
    return float(problem.value)


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
@pytest.mark.parametrize("seed", [seed for seed in range(36) if generated(seed)[1].max() > 1])
def test_optimum_of_a_conic_solver(seed: int) -> None:
    X, y, ball = generated(seed)
    result, value = drlogit.solve(X, y, **ball), conic_value(X, y, ball)
    assert result.converged
    assert result.objective == pytest.approx(value, abs=2e-6)
    assert result.dual_objective <= value + 1e-7


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("kappa", [0.7, math.inf])
def test_two_classes_are_the_binary_problem(norm: str, kappa: float) -> None:
    from drlogit.fitting.classes import build_class_problem
    from drlogit.fitting.solving import solve_problem

    rng = np.random.default_rng(3)
    X = rng.normal(size=(80, 4))
    y = (X[:, 0] + rng.logistic(size=80) > 0.3).astype(int)
    ball = {"epsilon": 0.05, "kappa": kappa, "norm": norm}
    two = drlogit.solve(X, y, tol=1e-10, **ball)
    problem = build_class_problem(X, y, classes=np.array([0, 1]), **ball)
    joint = solve_problem(problem, tol=1e-10)
    assert joint.objective == pytest.approx(two.objective, abs=1e-9)
    np.testing.assert_allclose(joint.coef[1] - joint.coef[0], two.coef, atol=1e-4)


def three_classes(n_samples: int = 90) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_samples, 5))
    y = (X[:, :3] * 1.5 + rng.gumbel(size=(n_samples, 3))).argmax(axis=1)
    return X, np.array(["a", "b", "c"])[y]


def test_sparse_shifted_and_repeated_rows_are_the_same_samples() -> None:
    X, y = three_classes()
    plain = drlogit.solve(X, y, epsilon=0.05, kappa=1.0, tol=1e-8)
    sparse = drlogit.solve(sp.csr_array(X), y, epsilon=0.05, kappa=1.0, tol=1e-8)
    far = drlogit.solve(X + 1e6, y, epsilon=0.05, kappa=1.0, tol=1e-8)
    half = np.full(180, 0.5)
    twice = drlogit.solve(
        np.vstack([X, X]), np.append(y, y), epsilon=0.05, kappa=1.0, sample_weight=half, tol=1e-8
    )
    blocks = drlogit.solve(X, y, epsilon=0.05, kappa=1.0, tol=1e-8, n_jobs=2)
    for other in (sparse, far, twice, blocks):
        assert other.converged
        assert other.objective == pytest.approx(plain.objective, abs=1e-7)


def test_only_differences_between_classes_count() -> None:
    X, y = three_classes()
    result = drlogit.solve(X, y, epsilon=0.05, kappa=1.0)
    assert result.coef.shape == (3, 5)
    assert result.intercept.shape == (3,)
    np.testing.assert_allclose(result.coef.sum(axis=0), 0.0, atol=1e-12)
    assert np.ptp(result.coef, axis=0).max() <= result.lam * (1.0 + 1e-9)


def test_no_radius_is_a_plain_softmax() -> None:
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import log_loss

    X, y = three_classes(300)
    result = drlogit.solve(X, y, epsilon=0.0, kappa=1.0)
    plain = LogisticRegression(C=1e9, tol=1e-9, max_iter=5000).fit(X, y)
    assert result.converged
    assert result.objective == pytest.approx(log_loss(y, plain.predict_proba(X)), abs=1e-6)


def test_a_large_radius_is_the_constant_model() -> None:
    X, y = three_classes()
    result = drlogit.solve(X, y, epsilon=5.0, kappa=math.inf)
    assert not result.coef.any()
    shares = np.unique(y, return_counts=True)[1] / y.size
    assert result.objective == pytest.approx(-(shares * np.log(shares)).sum(), abs=1e-6)


@pytest.mark.parametrize(
    ("kappa", "said"),
    [
        ({"a": 1.0, "b": 2.0}, "a cost for each of the labels"),
        ({"a": 1.0, "b": 2.0, "c": 1.0, "d": 1.0}, "a cost for each of the labels"),
        (np.ones((2, 2)), "shape \\(3, 3\\)"),
        (np.ones((3, 3)), "zero on its diagonal"),
        (-1.0, "kappa must be"),
        (np.ones(4), "shape \\(90,\\)"),
        (np.append(np.ones(89), -1.0), "kappa must be numbers >= 0"),
    ],
)
def test_label_costs_that_make_no_sense_are_refused(kappa: Any, said: str) -> None:
    X, y = three_classes()
    with pytest.raises(ValueError, match=said):
        drlogit.solve(X, y, epsilon=0.1, kappa=kappa)


def test_costs_by_label_are_the_matrix_of_these_rows() -> None:
    X, y = three_classes()
    by_label = drlogit.solve(X, y, epsilon=0.05, kappa={"a": 1.0, "b": math.inf, "c": 0.5})
    matrix = np.array([[0.0, 1.0, 1.0], [math.inf, 0.0, math.inf], [0.5, 0.5, 0.0]])
    full = drlogit.solve(X, y, epsilon=0.05, kappa=matrix)
    assert by_label.objective == pytest.approx(full.objective, abs=1e-9)
    assert not by_label.flip_share[y == "b"].any()
    each = np.array([{"a": 1.0, "b": math.inf, "c": 0.5}[label] for label in y])
    by_sample = drlogit.solve(X, y, epsilon=0.05, kappa=each)
    assert by_sample.objective == pytest.approx(full.objective, abs=1e-9)


def test_what_costs_nothing_can_be_had_without_a_radius() -> None:
    X, y = three_classes()
    each = np.where(np.arange(y.size) < 20, 0.0, 1.0)
    result = drlogit.solve(X, y, epsilon=0.0, kappa=each)
    near = drlogit.solve(X, y, epsilon=1e-9, kappa=each)
    assert result.objective == pytest.approx(near.objective, abs=3e-6)
    assert drlogit.verify(result, X, y, kappa=each)


@pytest.mark.parametrize("seed", range(4))
def test_from_epsilon_max_on_the_model_is_constant(seed: int) -> None:
    X, y = three_classes(30)
    kappa = np.random.default_rng(seed).choice([0.0, 0.1, 1.0, 9.0, math.inf], y.size)
    largest = drlogit.epsilon_max(X, y, kappa=kappa)
    for factor in (0.9, 1.001, 1.5, 5.0, 50.0):
        fit = drlogit.solve(X, y, epsilon=factor * largest, kappa=kappa, tol=1e-9)
        assert bool(fit.coef.any()) == (factor < 1.0)


def test_a_model_outside_the_class_is_not_proven() -> None:
    """Far from zero without an intercept, more log-odds per root mean square than bounds admit."""
    rng = np.random.default_rng(5)
    X = 1e5 + rng.uniform(0.0, 1.0, (60, 2))
    y = np.digitize(X[:, 0] - X[:, 1] + 0.3 * rng.standard_normal(60), [-0.3, 0.3])
    far = {"feature_costs": [np.inf, np.inf], "fit_intercept": False}
    found = drlogit.solve(X, y, epsilon=0.02, kappa=np.inf, **far)
    assert found.status is not drlogit.Status.OPTIMAL
    near = drlogit.solve(X - 1e5, y, epsilon=0.02, kappa=np.inf, **far)
    assert near.status is drlogit.Status.OPTIMAL


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("kappa", [1.0, math.inf])
def test_some_of_many_rows_precondition_all_of_them(norm: str, kappa: float) -> None:
    rng = np.random.default_rng(1)
    X = rng.standard_t(4, size=(3000, 50))
    scores = X[:, :5] + 0.2 * rng.normal(size=(3000, 5))
    y = (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)
    result = drlogit.solve(X, y, epsilon=0.02, kappa=kappa, norm=norm)
    assert result.converged
    assert result.n_iter <= 20


def test_a_few_far_rows_do_not_mislead_the_others() -> None:
    """With a predictor by the preconditioner alone this takes twice the iterations."""
    rng = np.random.default_rng(1)
    X = np.exp(3.0 * rng.normal(size=(2300, 19))) * np.sign(rng.normal(size=(2300, 19)))
    X /= X.std(axis=0)
    scores = np.clip(3.0 * X[:, :7], -6.0, 6.0)
    y = (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)
    assert drlogit.solve(X, y, epsilon=0.05, kappa=1.0, max_iter=25).converged


def test_too_many_coefficients_are_refused() -> None:
    X = np.random.default_rng(2).normal(size=(60, 2100))
    with pytest.raises(ValueError, match="up to 8000 coefficients"):
        drlogit.solve(X, X[:, :5].argmax(axis=1), epsilon=0.3, kappa=math.inf)
