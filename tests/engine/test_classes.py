"""Several classes in one problem: against a conic solver, against two classes, on awkward data."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from benchmarks import stated

import drlogit
import zoo
from class_zoo import conic_value, generated
from drlogit.engine import systems


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
@pytest.mark.parametrize(
    ("seed", "n_classes"),
    [(seed, None) for seed in range(36) if generated(seed)[1].max() > 1]
    + [(seed, 2) for seed in range(100, 124)],
)
def test_optimum_of_a_conic_solver(seed: int, n_classes: int | None) -> None:
    X, y, ball = generated(seed, n_classes)
    result, value = stated.solve(X, y, **ball), conic_value(X, y, ball)
    assert result.converged
    assert result.objective == pytest.approx(value, abs=2e-6)
    assert result.dual_objective <= value + 1e-7
    if np.ndim(ball["kappa"]) == 1:
        assert not result.flip_share[np.isinf(ball["kappa"])].any()


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("kappa", [0.7, math.inf])
def test_two_classes_are_the_binary_problem(norm: str, kappa: float) -> None:
    from drlogit.fitting.solving import solve_problem
    from drlogit.problem.problem import pose_problem
    from drlogit.problem.table_statistics import features_of
    from drlogit.rows.building import checked_rows

    rng = np.random.default_rng(3)
    X = rng.normal(size=(80, 4))
    y = (X[:, 0] + rng.logistic(size=80) > 0.3).astype(int)
    ball = {"epsilon": 0.05, "kappa": kappa, "norm": norm}
    two = stated.solve(X, y, tol=1e-10, **ball)
    columns = drlogit.Ball(feature_costs=None, **ball).on(features_of(X))
    rows = checked_rows(X, np.ones(80), None, intercept=True)
    problem = pose_problem(rows, columns, classes=np.array([0, 1]), codes=y)
    joint = solve_problem(problem, tol=1e-10)
    assert joint.objective == pytest.approx(two.objective, abs=1e-9)
    np.testing.assert_allclose(joint.coef[1] - joint.coef[0], two.coef, atol=1e-4)


def three_classes(n_samples: int = 90) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_samples, 5))
    y = (X[:, :3] * 1.5 + rng.gumbel(size=(n_samples, 3))).argmax(axis=1)
    return X, np.array(["a", "b", "c"])[y]


def test_sparse_shifted_and_repeated_rows_are_the_same_samples() -> None:
    (X, y), ball = three_classes(), {"epsilon": 0.05, "kappa": 1.0, "tol": 1e-8}
    plain = stated.solve(X, y, **ball)
    sparse = stated.solve(sp.csr_array(X), y, **ball)
    far = stated.solve(X + 1e6, y, **ball)
    half = np.full(180, 0.5)
    twice = stated.solve(np.vstack([X, X]), np.append(y, y), sample_weight=half, **ball)
    blocks = stated.solve(X, y, n_jobs=2, **ball)
    for other in (sparse, far, twice, blocks):
        assert other.converged
        assert other.objective == pytest.approx(plain.objective, abs=1e-7)


def test_only_differences_between_classes_count() -> None:
    X, y = three_classes()
    result = stated.solve(X, y, epsilon=0.05, kappa=1.0)
    assert result.coef.shape == (3, 5)
    assert result.intercept.shape == (3,)
    np.testing.assert_allclose(result.coef.sum(axis=0), 0.0, atol=1e-12)
    assert np.ptp(result.coef, axis=0).max() <= result.lam * (1.0 + 1e-9)


def test_no_radius_is_a_plain_softmax() -> None:
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import log_loss

    X, y = three_classes(300)
    result = stated.solve(X, y, epsilon=0.0, kappa=1.0)
    plain = LogisticRegression(C=1e9, tol=1e-9, max_iter=5000).fit(X, y)
    assert result.converged
    assert result.objective == pytest.approx(log_loss(y, plain.predict_proba(X)), abs=1e-6)


@pytest.mark.parametrize("labels", [2, 3])
def test_without_a_radius_labels_are_as_they_are(labels: int) -> None:
    X, y = three_classes()
    X, y = X[np.isin(y, np.unique(y)[:labels])], y[np.isin(y, np.unique(y)[:labels])]
    unknown = np.where(np.arange(y.size) < 20, 0.0, 1.0)
    result = stated.solve(X, y, epsilon=0.0, kappa=unknown)
    plain = stated.solve(X, y, epsilon=0.0, kappa=math.inf)
    assert result.objective == pytest.approx(plain.objective, abs=3e-6)
    assert drlogit.verify(result, X, y, kappa=unknown)
    worst = zoo.worst_loss(result, X, y, epsilon=0.0, kappa=unknown)
    assert worst == pytest.approx(result.objective, abs=1e-9)


def test_a_model_outside_the_class_is_not_proven() -> None:
    """Far from zero without an intercept, more log-odds per root mean square than bounds admit."""
    rng = np.random.default_rng(5)
    X = 1e5 + rng.uniform(0.0, 1.0, (60, 2))
    y = np.digitize(X[:, 0] - X[:, 1] + 0.3 * rng.standard_normal(60), [-0.3, 0.3])
    far = {"feature_costs": [np.inf, np.inf], "fit_intercept": False}
    found = stated.solve(X, y, epsilon=0.02, kappa=np.inf, **far)
    assert found.status is not drlogit.Status.OPTIMAL
    near = stated.solve(X - 1e5, y, epsilon=0.02, kappa=np.inf, **far)
    assert near.status is drlogit.Status.OPTIMAL


@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_without_an_intercept_what_is_certified_is_the_model_returned(offset) -> None:
    """A complete group is no place for the offset of a column: its coefficients are penalised."""
    rng = np.random.default_rng(0)
    level, x = rng.integers(0, 3, 300), rng.standard_normal(300)
    y = (np.column_stack([x, -x, level]) + rng.gumbel(size=(300, 3))).argmax(axis=1)
    X = np.column_stack([x + offset, np.eye(3)[level]])
    ball = {"epsilon": 0.02, "kappa": 1.0, "categories": [[1, 2, 3]]}
    found = stated.solve(X, y, fit_intercept=False, **ball)
    worst = zoo.worst_loss(found, X, y, epsilon=0.02, kappa=1.0)
    assert worst == pytest.approx(found.objective, abs=1e-6)


def wide_classes(n_columns: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Samples of six classes with few columns, the same with columns of zeros, and the labels."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(300, 8))
    y = (2.0 * X[:, :6] + rng.gumbel(size=(300, 6))).argmax(axis=1)
    wide = np.zeros((300, n_columns))
    wide[:, 3 * np.arange(8)] = X
    return X, wide, y


@pytest.mark.parametrize("ball", [{"epsilon": 0.05, "norm": "linf"}, {"epsilon": 0.0}])
def test_no_number_of_coefficients_is_refused(ball: dict[str, Any]) -> None:
    """10,005 of all classes but one, and the optimum of the columns that are not zero."""
    X, wide, y = wide_classes(2000)
    found = stated.solve(wide, y, kappa=1.0, **ball)
    few = stated.solve(X, y, kappa=1.0, tol=1e-9, **ball)
    assert found.gap <= 1e-6
    assert found.dual_objective <= few.objective + 1e-9
    assert few.dual_objective <= found.objective + 1e-9


@pytest.mark.parametrize("costs", [None, "free"])
def test_without_a_matrix_of_all_coefficients_a_gap_is_certified(monkeypatch, costs: Any) -> None:
    """Preconditioned by the diagonal; with free columns, too, which are not penalised."""
    monkeypatch.setattr(systems, "MOST_COEFFICIENTS", 0)
    X, _, y = wide_classes(24)
    ball: dict[str, Any] = {"epsilon": 0.05, "kappa": 1.0, "norm": "l2"}
    if costs is not None:
        ball["feature_costs"] = np.where(np.arange(8) % 2 == 0, np.inf, 1.0)
    found = stated.solve(X, y, **ball)
    monkeypatch.undo()
    few = stated.solve(X, y, tol=1e-9, **ball)
    assert found.gap <= 1e-5
    assert found.dual_objective <= few.objective + 1e-9
    assert few.dual_objective <= found.objective + 1e-9
