"""A cost matrix for moves of features: against a conic solver, linear programs and brute force."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from benchmarks import judge, stated

import drlogit
import zoo

pytest.importorskip("cvxpy")


def generated(seed):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(15, 60)), int(rng.integers(1, 6))
    A = rng.standard_normal((d, d))
    matrix = (A @ A.T + 10.0 ** rng.uniform(-2, 0) * np.eye(d)) * 10.0 ** rng.uniform(-1, 1)
    X = rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-1, 1, d)
    X += 30.0 * rng.standard_normal(d) * (rng.random() < 0.3)
    score = X @ rng.standard_normal(d)
    y = score - np.median(score) + 0.5 * score.std() * rng.logistic(size=n) > 0.0
    y[:2] = True, False
    return {
        "X": X, "y": np.where(y, 1, -1), "feature_costs": matrix, "norm": "l2",
        "epsilon": float(10.0 ** rng.uniform(-2, 0)),
        "kappa": float(rng.choice([0.3, 1.0, math.inf])),
        "fit_intercept": bool(rng.random() < 0.8),
    }  # fmt: skip


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")  # the comparison tells
@pytest.mark.parametrize("seed", range(12))
def test_fits_are_those_of_a_conic_solver(seed):
    case = generated(seed)
    turned = case["X"] @ np.linalg.cholesky(case["feature_costs"])  # where all costs are one
    conic = judge.conic_solution(**case | {"X": turned, "feature_costs": None, "tol": 1e-9})
    u = case["y"] * (turned @ conic.coef + conic.intercept)
    flipped = np.logaddexp(0.0, u) - case["kappa"] * conic.lam
    losses = np.maximum(np.logaddexp(0.0, -u), flipped)
    reference = case["epsilon"] * conic.lam + losses.mean()
    found = stated.solve(**case)
    assert found.converged
    assert found.dual_objective <= reference + 1e-7
    assert found.objective == pytest.approx(reference, abs=2e-6)
    again = stated.solve(**case, start=found)
    assert again.n_iter == 0
    # An audit stays in the features as they are given.
    asked = {name: case[name] for name in ("epsilon", "kappa", "norm", "feature_costs")}
    audited = zoo.worst_loss((found.coef, found.intercept), case["X"], case["y"], **asked)
    assert audited == pytest.approx(found.objective, abs=1e-9)


def test_a_diagonal_matrix_is_the_squares_of_costs():
    case, costs = generated(0), np.array([0.5, 2.0, 1.0, 3.0, 0.7])
    case["X"] = np.random.default_rng(0).standard_normal((case["y"].size, 5))
    one = stated.solve(**case | {"feature_costs": costs})
    other = stated.solve(**case | {"feature_costs": np.diag(costs**2)})
    assert one.objective == pytest.approx(other.objective, abs=1e-9)
    np.testing.assert_allclose(one.coef, other.coef, atol=1e-4)


@pytest.mark.parametrize("seed", range(6))
def test_errors_and_distributions(seed):
    case = generated(seed) | {"fit_intercept": True}
    X, y, M, epsilon = (case[name] for name in ("X", "y", "feature_costs", "epsilon"))
    rng = np.random.default_rng(seed)
    coef, intercept = rng.standard_normal(X.shape[1]), 0.1
    asked = {name: case[name] for name in ("epsilon", "kappa", "norm", "feature_costs")}
    length = math.sqrt(coef @ np.linalg.solve(M, coef))
    u = y * (X @ coef + intercept)
    costs = np.sort(np.minimum(u[u > 0.0] / length, case["kappa"])) / y.size
    spent = np.cumsum(costs)
    whole = int((spent <= epsilon).sum())
    worst = (u <= 0.0).mean() + whole / y.size
    if whole < costs.size:
        worst += (epsilon - (spent[whole - 1] if whole else 0.0)) / costs[whole] / y.size
    found = zoo.worst_error((coef, intercept), X, y, **asked)
    assert found.value == pytest.approx(worst, abs=1e-9)
    plan = zoo.worst_distribution((coef, intercept), X, y, **asked)
    moves = plan.points(X) - X[plan.index]
    lengths = np.sqrt(np.einsum("ij,jk,ik->i", moves, M, moves))
    np.testing.assert_allclose(lengths, plan.distance, atol=1e-7)
    signs = np.where(plan.label > 0, 1.0, -1.0)
    loss = plan.mass @ np.logaddexp(0.0, -signs * (plan.points(X) @ coef + intercept))
    assert loss == pytest.approx(plan.value, abs=1e-7)
    assert -1e-9 <= plan.supremum - loss <= 1e-3 + 1e-9


def test_estimators_files_and_audits(tmp_path):
    case = generated(3)
    X, y = case["X"], case["y"]
    names = [f"f{j}" for j in range(X.shape[1])]
    frame = pd.DataFrame(X, columns=names)
    model = stated.classifier(0.1, 1.0, norm="l2", feature_costs=case["feature_costs"])
    model.fit(frame, y)
    drlogit.save_model(model, tmp_path / "model.json")
    again = drlogit.load_model(tmp_path / "model.json")
    np.testing.assert_array_equal(again.ball_.feature_costs, case["feature_costs"])
    for refused in (model.save_proof, lambda *data: drlogit.verify(again, *data[1:])):
        with pytest.raises(ValueError, match="a matrix of feature_costs has no proof"):
            refused(tmp_path / "proof.npz", frame, y)
    assert zoo.worst_loss(again, frame, y, epsilon=0.1, kappa=1.0) == pytest.approx(
        model.worst_case_loss_, abs=1e-9
    )
    later = frame + 0.3
    found = drlogit.measure_shift(again, frame, y, later, y)
    alone = 0.3 * np.sqrt(np.diagonal(case["feature_costs"]))
    assert sorted(0.1 * found.columns["radii"]) == pytest.approx(sorted(alone))
    report = drlogit.audit(again, frame, y)
    report.to_html(tmp_path / "page.html")


def test_refusals():
    case = next(case for case in map(generated, range(9)) if case["X"].shape[1] > 2)
    X, M = case["X"], case["feature_costs"]
    d = X.shape[1]
    for change, words in (
        ({"norm": "l1"}, "needs norm='l2'"),
        ({"bounds": (-100.0, 100.0)}, "categories or bounds"),
        ({"feature_costs": np.ones((d, d + 1))}, "must have shape"),
        ({"feature_costs": M + np.triu(np.ones((d, d)), 1)}, "symmetric"),
        ({"feature_costs": M - 1e3 * np.eye(d)}, "positive definite"),
    ):
        with pytest.raises(ValueError, match=words):
            stated.solve(**case | change)
    labels = np.arange(len(X)) % 3
    with pytest.raises(ValueError, match="needs two classes, got 3"):
        stated.classifier(0.1, norm="l2", feature_costs=M).fit(X, labels)
