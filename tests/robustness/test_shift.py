"""Shift between reference rows and new rows, judged by transport linear programs."""

import math

import numpy as np
import pandas as pd
import pytest
from benchmarks import stated
from scipy.optimize import linprog
from sklearn.linear_model import LogisticRegression

import drlogit
import zoo
from drlogit.robustness.breakpoints import Curve


def transport(costs):
    """The optimal transport cost between two uniform samples, by a linear program."""
    n, m = costs.shape
    rows = np.kron(np.eye(n), np.ones((1, m)))
    columns = np.kron(np.ones((1, n)), np.eye(m))
    found = linprog(
        costs.ravel(),
        A_eq=np.vstack([rows, columns]),
        b_eq=np.concatenate([np.full(n, 1 / n), np.full(m, 1 / m)]),
    )
    assert found.status == 0
    return found.fun


def made(seed, n=40, moved=0.0, turned=0.0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3)) + moved
    y = (X[:, 0] - X[:, 1] + rng.logistic(size=n) > 0).astype(int)
    return X, np.where(rng.random(n) < turned, 1 - y, y)


NORM = {
    "l1": lambda d: np.abs(d).sum(axis=-1),
    "l2": lambda d: np.sqrt((d**2).sum(axis=-1)),
    "linf": lambda d: np.abs(d).max(axis=-1),
}


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("kappa", [0.5, {0: 0.3, 1: 2.0}])
def test_covering_radius_is_exact_and_below_the_transport_distance(norm, kappa):
    costs = np.array([1.0, 0.5, 2.0])
    for seed in range(4):
        (A, a), (B, b) = made(seed, 30), made(100 + seed, 25, 0.7, 0.3)
        model = LogisticRegression().fit(*made(200 + seed, 80))
        ball = {"kappa": kappa, "norm": norm, "feature_costs": costs}
        found = drlogit.shift(model, A, a, B, b, **ball)
        met = -np.log(model.predict_proba(B)[np.arange(25), b]).mean()
        assert found.loss_new == pytest.approx(met, abs=1e-12)
        assert found.epsilon > 0.0
        worst = zoo.worst_loss(model, A, a, epsilon=found.epsilon, **ball)
        assert worst == pytest.approx(met, abs=1e-12)
        error = zoo.worst_error(model, A, a, epsilon=found.epsilon_error, **ball)
        assert error.value == pytest.approx(found.error_new, abs=1e-12)
        by_label = kappa if isinstance(kappa, dict) else {0: kappa, 1: kappa}
        flips = np.array([by_label[label] for label in a])[:, None] * (a[:, None] != b)
        W = transport(NORM[norm](costs * (A[:, None] - B)) + flips)
        assert found.epsilon <= W + 1e-9
        assert 0.1 * W < NORM[norm](found.features["cost"].to_numpy()) <= W + 1e-9


def test_categories_count_by_the_share_of_rows_that_must_change():
    rng = np.random.default_rng(3)

    def table(n, shares):
        age = rng.integers(20, 80, n)
        return pd.DataFrame(
            {"age": age, "job": rng.choice(["cook", "clerk", "smith"], n, p=shares)}
        )

    A, B = table(30, [0.6, 0.3, 0.1]), table(24, [0.2, 0.3, 0.5])
    a, b = rng.integers(0, 2, 30), rng.integers(0, 2, 24)
    ball = drlogit.Ball.tolerating(labels=0.02, categories=0.05, columns={"age": 1})
    model = drlogit.DRLogisticRegression(ball=ball.replace(norm="l1")).fit(A, a)
    found = drlogit.shift(model, A, a, B, b)
    costs = [*model.ball_.feature_costs.values()]
    d = costs[0] * np.abs(A["age"].to_numpy()[:, None] - B["age"].to_numpy())
    d = d + costs[1] * (A["job"].to_numpy()[:, None] != B["job"].to_numpy())
    W = transport(d + model.ball_.kappa * (a[:, None] != b))
    assert 0.3 * W < found.features["cost"].sum() <= W + 1e-9
    moved = found.features.set_index("feature")
    shares = [frame["job"].value_counts(normalize=True) for frame in (A, B)]
    change = shares[0].subtract(shares[1], fill_value=0.0)
    assert moved.loc["job", "moved"] == pytest.approx(0.5 * change.abs().sum())
    assert moved.loc["job", "cost"] == pytest.approx(costs[1] * moved.loc["job", "moved"])
    assert moved.loc["job", "multiple"] == pytest.approx(
        moved.loc["job", "cost"] / model.ball_.epsilon
    )


def test_a_move_of_a_column_that_was_declared_exact_costs_infinitely_much():
    (A, a), (B, b) = made(0), made(1, moved=0.5)
    model = stated.classifier(0.1, 1.0, feature_costs=[1.0, 1.0, np.inf]).fit(A, a)
    found = drlogit.shift(model, A, a, B, b)
    assert found.features["cost"][0] == math.inf
    assert found.features["feature"][0] == "x2"
    assert "x2 (declared exact)" in str(found)


def test_a_change_of_the_loss_is_split_into_rows_and_answers():
    (A, a), (B, b) = made(0, 3000), made(1, 3000)
    model = stated.classifier(0.05, 1.0).fit(*made(2, 500))
    same = drlogit.shift(model, A, a, B, b)
    turned = drlogit.shift(
        model, A, a, B, np.where(np.random.default_rng(3).random(3000) < 0.2, 1 - b, b)
    )
    easy = np.abs(B[:, 0] - B[:, 1]) > 1.0
    other = drlogit.shift(model, A, a, B[easy], b[easy])
    for found in (same, turned, other):
        assert found.from_rows + found.from_answers == pytest.approx(
            found.loss_new - found.loss_ref
        )
    assert abs(same.from_rows) < 0.02
    assert turned.from_answers > 0.05
    assert abs(turned.from_rows) < 0.02
    assert other.from_rows < -0.03
    assert abs(other.from_answers) < 0.03


def test_without_labels_the_loss_is_that_of_reweighted_reference_rows():
    (A, a), B = made(0, 400), 0.3 * made(1, 300)[0]  # the scores shrink, the answers stay
    b = (B[:, 0] - B[:, 1] + np.random.default_rng(2).logistic(size=300) > 0).astype(int)
    model = stated.classifier(0.05, 1.0).fit(A, a)
    known, blind = drlogit.shift(model, A, a, B, b), drlogit.shift(model, A, a, B)
    assert blind.epsilon is None
    assert known.expected_loss is None
    assert blind.expected_loss == known.loss_ref + known.from_rows
    assert blind.expected_loss == pytest.approx(known.loss_new - known.from_answers)
    assert abs(known.loss_new - blind.expected_loss) < 0.5 * abs(known.loss_new - known.loss_ref)
    assert "cannot show whether labels changed" in str(blind)


def test_several_classes():
    rng = np.random.default_rng(0)
    centres = np.array([[0.0, 0], [2, 0], [0, 2]])

    def rows(n, noise):
        y = rng.integers(0, 3, n)
        return centres[y] + noise * rng.standard_normal((n, 2)), y

    X, y = rows(300, 1.0)
    model = stated.classifier(0.05, 1.0).fit(X, y)
    found = drlogit.shift(model, X, y, *rows(200, 1.6))
    worst = zoo.worst_loss(model, X, y, epsilon=found.epsilon, kappa=1.0)
    assert worst == pytest.approx(found.loss_new, abs=1e-12)
    blind = drlogit.shift(model, X, y, rows(200, 1.6)[0])
    assert blind.expected_loss > 0.0


def test_new_rows_may_have_one_label_only_and_no_rise_is_no_shift():
    (A, a), (B, b) = made(0, 200), made(1, 200)
    model = (np.array([1.0, -1.0, 0.0]), 0.1)
    right = (B[:, 0] - B[:, 1] > 0.2) & (b == 1)
    found = drlogit.shift(model, A, a, B[right], b[right], kappa=1.0)
    assert found.epsilon == 0.0
    assert "did not rise" in str(found)
    assert found.multiple is None
    with pytest.raises(ValueError, match="y must hold labels of the model"):
        drlogit.shift(model, A, a, B, b + 1, kappa=1.0)


def test_a_curve_is_inverted_beyond_its_last_corner():
    curve = Curve(np.array([0.0, 1.0, 3.0]), np.array([0.5, 1.0, 1.0]), 0.25)
    assert curve.radius_of(0.2) == 0.0
    assert curve.radius_of(0.75) == 0.5
    assert curve.radius_of(1.0) == 1.0
    assert curve.radius_of(2.0) == pytest.approx(7.0)
    assert curve._replace(slope=0.0).radius_of(2.0) == math.inf
