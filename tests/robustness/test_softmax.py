"""The audit of a softmax: against linear programs over transport plans, and against fits."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import linprog
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import drlogit
from drlogit.problem.norms import get_norm
from drlogit.robustness.softmax import softmax_audit

#: How far the plans of the linear program move mass.
FAR = 1e5


def generated(seed):
    rng = np.random.default_rng(seed)
    K, n, N = int(rng.integers(3, 6)), int(rng.integers(1, 5)), int(rng.integers(8, 20))
    X = rng.normal(size=(N, n))
    y = np.concatenate([np.arange(K), rng.integers(0, K, N - K)]) if N > K else np.arange(N)
    kappa = rng.uniform(0.2, 3.0, (K, K))
    kappa[rng.random((K, K)) < 0.2] = math.inf
    kappa[rng.random((K, K)) < 0.1] = 0.0
    np.fill_diagonal(kappa, 0.0)
    costs = rng.uniform(0.5, 2.0, n)
    norm = ("l1", "l2", "linf")[seed % 3]
    model = (rng.normal(size=(K, n)), rng.normal(size=K))
    return X, y, model, rng.uniform(0.5, 2.0, N), {
        "kappa": kappa, "norm": norm, "feature_costs": costs, "epsilon": rng.uniform(0.01, 1.0),
    }  # fmt: skip


def best_plan(X, y, model, weights, ball, values):
    """Plans over (sample, label, place), as it is or far towards a class: whose, cost, scores."""
    (coef, intercept), norm, w = model, get_norm(ball["norm"]), weights / weights.sum()
    K, costs = len(coef), ball["feature_costs"]
    rows, paid, gained = [], [], []
    for i in range(len(y)):
        for k in range(K):
            if math.isinf(ball["kappa"][y[i], k]):
                continue
            moves = [(0.0, np.zeros_like(costs))]
            for j in range(K):
                if j != k:
                    theta = (coef[j] - coef[k]) / costs
                    moves += values(norm, theta, costs, coef, intercept, X[i], k, j)
            for distance, move in moves:
                scores = coef @ (X[i] + move) + intercept
                rows.append(i)
                paid.append(ball["kappa"][y[i], k] + distance)
                gained.append((scores, k))
    return rows, np.array(paid), gained, w


def solved(rows, paid, worth, w, epsilon):
    equal = np.zeros((w.size, len(rows)))
    equal[rows, np.arange(len(rows))] = 1.0
    found = linprog(
        -np.asarray(worth), A_ub=paid[None], b_ub=[epsilon], A_eq=equal, b_eq=w, method="highs"
    )
    return -found.fun


@pytest.mark.parametrize("seed", range(45))
def test_losses_are_those_of_a_transport_program(seed):
    X, y, model, weights, ball = generated(seed)

    def far(norm, theta, costs, coef, intercept, x, k, j):
        return [(FAR, FAR * norm.aligned(theta) / costs)]

    rows, paid, gained, w = best_plan(X, y, model, weights, ball, far)
    worth = [np.logaddexp.reduce(scores) - scores[k] for scores, k in gained]
    value = drlogit.worst_case_loss(model, X, y, sample_weight=weights, **ball)
    plan = solved(rows, paid, worth, w, ball["epsilon"])
    assert plan <= value + 1e-7
    assert value <= plan + 20.0 * ball["epsilon"] / FAR
    audit = softmax_audit(model, X, y, sample_weight=weights, **ball)
    assert float(audit.loss_curve().at(np.array(ball["epsilon"]))) == pytest.approx(value, abs=1e-9)


@pytest.mark.parametrize("seed", range(45))
def test_worst_errors_are_those_of_a_transport_program(seed):
    X, y, model, weights, ball = generated(seed)

    def across(norm, theta, costs, coef, intercept, x, k, j):
        lead = (coef[k] - coef[j]) @ x + intercept[k] - intercept[j]
        slope = norm.dual(theta)
        if lead <= 0.0 or slope == 0.0:
            return []
        distance = lead / slope * (1.0 + 1e-9)
        return [(distance, distance * norm.aligned(theta) / costs)]

    rows, paid, gained, w = best_plan(X, y, model, weights, ball, across)
    worth = [float(scores.argmax() != k) for scores, k in gained]
    bounds = drlogit.misclassification_bounds(model, X, y, sample_weight=weights, **ball)
    assert bounds.worst == pytest.approx(solved(rows, paid, worth, w, ball["epsilon"]), abs=1e-6)
    assert bounds.best <= bounds.worst
    audit = softmax_audit(model, X, y, sample_weight=weights, **ball)
    table = audit.confusion(ball["epsilon"])
    assert table.sum() == pytest.approx(1.0)
    assert 1.0 - np.trace(table) == pytest.approx(bounds.worst, abs=1e-9)


@pytest.mark.parametrize("seed", range(12))
def test_a_worst_distribution_is_in_the_ball_and_as_bad_as_it_says(seed):
    X, y, model, weights, ball = generated(seed)
    found = drlogit.worst_case_distribution(model, X, y, sample_weight=weights, tol=1e-3, **ball)
    points = found.points(X)
    scores = points @ model[0].T + model[1]
    losses = np.logaddexp.reduce(scores, axis=1) - scores[np.arange(len(points)), found.label]
    assert found.mass.sum() == pytest.approx(1.0)
    assert found.mass @ losses == pytest.approx(found.expected_loss, abs=1e-9)
    assert found.gap <= 1e-3
    moved = ball["feature_costs"] * (points - X[found.index])
    norm = get_norm(ball["norm"])
    paid = [norm.value(row) for row in moved] + ball["kappa"][y[found.index], found.label]
    assert found.mass @ paid <= ball["epsilon"] * (1.0 + 1e-9)
    assert found.transport_cost == pytest.approx(found.mass @ paid)


def three_classes():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 4))
    return X, np.array(["a", "b", "c"])[(X[:, :3] + rng.gumbel(size=(120, 3))).argmax(axis=1)]


def test_a_fit_is_audited_at_its_own_value():
    X, y = three_classes()
    model = drlogit.DRLogisticRegression(0.05, {"a": 1.0, "b": 2.0, "c": math.inf}).fit(X, y)
    value = drlogit.worst_case_loss(model, X, y, epsilon=0.05, kappa=model.kappa_)
    assert value == pytest.approx(model.worst_case_loss_[0], abs=1e-9)


def test_models_of_scikit_learn_share_a_report():
    X, y = three_classes()
    robust = drlogit.DRLogisticRegression(0.05, 1.0).fit(X, y)
    plain = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
    report = drlogit.audit({"robust": robust, "plain": plain}, X, y, epsilons=[0.0, 0.05])
    assert [model.name for model in report.models] == ["robust", "plain"]
    best = report["robust"].rows[1].worst_case_loss
    assert best == pytest.approx(robust.worst_case_loss_[0], abs=1e-9)
    assert "worst-case log-loss" in str(report)
    said = drlogit.guarantee(plain, X, y, epsilon=0.05, kappa=1.0)
    assert said.loss >= drlogit.worst_case_loss(plain, X, y, epsilon=0.05, kappa=1.0) - 0.2
    with pytest.raises(ValueError, match="two classes"):
        report.to_html()
