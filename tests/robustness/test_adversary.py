"""One adversary for two classes and for several: what it finds, against linear programs."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linprog
from scipy.special import logsumexp
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import confusion_matrix
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from drlogit import (
    audit,
    guarantee,
    misclassification_bounds,
    worst_case_distribution,
    worst_case_loss,
)
from drlogit.problem.norms import NORMS
from transport_plan import check_distribution


def case(seed: int):
    """A model of two to five classes, its samples, and the ball: κ of 0 and ∞, any norm.

    κ is one for each label or one for each sample; the costs are those of samples' labels.
    """
    rng = np.random.default_rng(seed)
    K, n = int(rng.integers(2, 6)), int(rng.integers(12, 40))
    X, y = rng.standard_normal((n, 3)), rng.integers(0, K, n)
    y[:K] = np.arange(K)
    model = LogisticRegression(C=5.0).fit(X, y)
    by_label = rng.choice([0.0, 0.2, 0.7, 2.0, math.inf], K)
    by_label = by_label if seed % 2 else np.full(K, math.exp(rng.uniform(-2.0, 1.0)))
    kappa, each = dict(enumerate(by_label.tolist())), by_label[y]
    if seed % 4 == 3:
        kappa = each = rng.choice([0.0, 0.2, 0.7, 2.0, math.inf], n)
    costs = np.repeat(each[:, None], K, axis=1)
    costs[np.arange(n), y] = 0.0
    ball = {
        "epsilon": math.exp(rng.uniform(-4.0, 0.5)), "norm": tuple(NORMS)[seed % 3],
        "sample_weight": rng.integers(0, 4, n) + 0.1 * (np.arange(n) < K),
    }  # fmt: skip
    return model, X, y, kappa, costs, ball


def test_cases_have_all_numbers_of_classes():
    assert {case(seed)[4].shape[1] for seed in range(16)} == {2, 3, 4, 5}


@pytest.mark.parametrize("seed", range(24))
def test_worst_cases_are_those_of_linear_programs(seed):
    model, X, y, kappa, costs, ball = case(seed)
    epsilon, dual = ball["epsilon"], NORMS[ball["norm"]].dual
    scores, coef, (n, K) = model.decision_function(X), model.coef_, costs.shape
    if K == 2:  # the other class has a score of zero
        scores, coef = np.column_stack([0.0 * scores, scores]), np.vstack([0.0 * coef, coef])
    w = ball["sample_weight"] / ball["sample_weight"].sum()
    gaps = scores[np.arange(n), y][:, None] - scores
    norms = np.array([[dual(a - b) for b in coef] for a in coef])
    # Shares of samples with each label, and what moves get of the budget, at their steepest.
    reach = np.isfinite(costs)
    program = linprog(
        -np.append((w[:, None] * gaps).ravel(), norms.max()),
        A_ub=[np.append((w[:, None] * np.where(reach, costs, 0.0)).ravel(), 1.0)],
        b_ub=[epsilon],
        A_eq=np.column_stack([np.kron(np.eye(n), np.ones(K)), np.zeros(n)]),
        b_eq=np.ones(n),
        bounds=[*((0.0, None if each else 0.0) for each in reach.ravel()), (0.0, None)],
    )
    loss = float(w @ logsumexp(-gaps, axis=1)) - program.fun
    ball["kappa"] = kappa if seed % 2 else kappa[0]
    assert worst_case_loss(model, X, y, **ball) == pytest.approx(loss, abs=1e-9)
    other = np.arange(K) != y[:, None]

    def most(gaps):
        """The weight of samples that moves across one boundary, or flips, can bring across."""
        with np.errstate(invalid="ignore"):
            far = np.where(other, np.minimum(gaps / norms[y], costs), math.inf).min(axis=1)
        return -linprog(-w, A_ub=[w * np.maximum(far, 0.0)], b_ub=[epsilon], bounds=(0.0, 1.0)).fun

    found = misclassification_bounds(model, X, y, **ball)
    assert found.worst == pytest.approx(most(gaps), abs=1e-9)
    if K == 2:
        assert found.best == pytest.approx(1.0 - most(-gaps), abs=1e-9)
    assert found.best <= 1.0 - model.score(X, y, w) + 1e-12
    flipped = worst_case_distribution(model, X, y, **ball).flipped_mass
    row = audit(model, X, y, epsilons=[ball.pop("epsilon")], **ball).models[0].rows[0]
    assert row.worst_case_loss == pytest.approx(loss, abs=1e-9)
    assert (row.best_error, row.worst_error) == found
    assert row.flip_share == pytest.approx(flipped, abs=1e-12 if K == 2 else 1.0)  # moves may flip
    if seed % 2 == 0:
        assert row.flip_limit == pytest.approx(min(epsilon / ball["kappa"], 1.0))


@pytest.mark.parametrize("seed", range(6))
def test_confusion_adds_up_to_the_errors(seed):
    model, X, y, kappa, costs, ball = case(seed)
    radius, K = ball.pop("epsilon"), costs.shape[1]
    report = audit(model, X, y, kappa=kappa, epsilons=[0.0, radius], **ball)
    shown, w = report.data["models"][0], ball["sample_weight"]
    expected = confusion_matrix(y, model.predict(X), sample_weight=w / w.sum())
    assert np.reshape(shown["confusion"], (K, K)) == pytest.approx(expected, abs=1e-6)
    for cells, error in zip(shown["worst_confusion"], shown["worst_error"], strict=True):
        table = np.reshape(cells, (K, K))
        assert table.sum() == pytest.approx(1.0, abs=1e-5)
        assert 1.0 - np.trace(table) == pytest.approx(error, abs=1e-5)
        # Who is moved keeps the label; only flips change how many there are of each.
        if np.isinf(costs[np.arange(K) != y[:, None]]).all():
            assert table.sum(axis=1) == pytest.approx(expected.sum(axis=1), abs=1e-5)
    assert ("with the worst error at epsilon" in str(report)) == (K > 2)
    assert 'id="confusion-table"' in report.to_html()


def test_confusion_by_hand():
    """Of three classes on a line: moved to the nearest boundary, or given the cheapest label."""
    X, y = np.array([[-2.0], [0.2], [3.0]]), np.array([0, 1, 2])
    model = LogisticRegression().fit(X, y)
    model.coef_, model.intercept_ = np.array([[-1.0], [0.0], [1.0]]), np.array([-1.0, 0.0, -1.0])

    def worst(kappa, epsilon):
        report = audit(model, X, y, kappa=kappa, epsilons=[epsilon], norm="l2")
        content = report.data
        cells = content["models"][0]["worst_confusion"][content["tables_at"][0]]
        return (3.0 * np.reshape(cells, (3, 3))).round(4).tolist()

    # The boundaries are at -1 and 1.
    assert worst(math.inf, 0.0) == np.eye(3).tolist()
    assert worst(math.inf, 0.8 / 3.0) == [[1, 0, 0], [0, 0, 1], [0, 0, 1]]
    assert worst(math.inf, 1.8 / 3.0) == [[0, 1, 0], [0, 0, 1], [0, 0, 1]]


@pytest.mark.parametrize("tol", [1e-2, 1e-5])
@pytest.mark.parametrize("seed", range(18))
def test_a_worst_distribution_lies_in_the_ball_and_is_as_bad_as_it_says(seed, tol):
    model, X, y, kappa, own, ball = case(seed)
    costs = np.array([0.5, 1.0, 3.0 if seed % 4 else math.inf])
    if seed % 3 == 0:  # labels as they are, all of one class
        seen = y == seed % own.shape[1]
        X, y, ball["sample_weight"] = X[seen], y[seen], ball["sample_weight"][seen]
        kappa = math.inf
    ball["kappa"] = kappa
    found = worst_case_distribution(model, X, y, feature_costs=costs, tol=tol, **ball)
    weights = ball.pop("sample_weight")
    check_distribution(found, model, X, y, costs=costs, weights=weights, tol=tol, **ball)


def test_a_softmax_of_a_table_is_audited_as_one_model():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.normal(40.0, 9.0, 90), "job": rng.choice(list("uvw"), 90)})
    y = np.array(["a", "b", "c"])[np.digitize(frame.age + 9.0 * (frame.job == "u"), [36.0, 46.0])]
    encoder = make_column_transformer((StandardScaler(), ["age"]), (OneHotEncoder(), ["job"]))
    model = make_pipeline(encoder, LogisticRegression()).fit(frame[:60], y[:60])
    report = audit(
        model, frame, y, kappa=1.0, epsilons=[0.0, 0.2], holdout=(frame[60:], y[60:]), groups="job"
    )
    assert [each.name for each in report.models] == ["LogisticRegression"]
    assert "categories and bounds as numbers, so worst cases are upper bounds" in str(report)
    promised = guarantee(model, frame[60:], y[60:], epsilon=report.data["radii"][-1])
    assert promised.loss > promised.mean_loss
    page = report.to_html()
    assert "rows it had not seen" in page
    assert "Predictions that break first" not in page
    spent = report.to_frame("features").groupby("epsilon")["budget"].sum()
    assert spent.to_numpy() == pytest.approx(np.array(report.data["radii"]), rel=1e-5)
