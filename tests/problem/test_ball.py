"""The ball: what is kept, replaced, resolved and said."""

from __future__ import annotations

import copy
import math
import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from drlogit import Ball
from drlogit.problem.table_statistics import features_of


@pytest.fixture
def patients():
    random = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "age": random.normal(50, 10, 400),
            "chol": random.normal(200, 40, 400),
            "sex": random.choice(["f", "m"], 400),
        }
    )
    ill = X.age + 10 * (X.sex == "m") + random.normal(0, 10, 400) > 55
    return X, np.where(ill, "ill", "well")


def test_equal_tolerances_are_equal_and_are_shown_as_they_were_written():
    ball = Ball.tolerating(labels=0.05, columns={"chol": 20, "sex": 0})
    assert ball == Ball.tolerating(labels=0.05, columns={"sex": 0, "chol": 20})
    assert ball != Ball.tolerating(labels=0.06, columns={"chol": 20, "sex": 0})
    assert repr(ball) == "Ball.tolerating(labels=0.05, columns={'chol': 20, 'sex': 0})"
    assert repr(ball.replace(epsilon=2.0)).endswith(".replace(epsilon=2.0)")
    assert repr(Ball(0.1, norm="l1")) == "Ball(epsilon=0.1, norm='l1')"
    for twin in (pickle.loads(pickle.dumps(ball)), copy.deepcopy(ball), copy.copy(ball)):
        assert twin == ball
    costs = np.array([1.0, 2.0])
    assert Ball(feature_costs=costs) == Ball(feature_costs=costs.copy())


def test_a_tolerance_alone_uses_up_the_budget(patients):
    X, y = patients
    plain = Ball.tolerating(labels=0.05, columns={"chol": 20, "sex": 0}).resolve(X, y)
    assert plain.epsilon == 1.0
    assert plain.kappa == 20.0
    assert plain.feature_costs["chol"] == 1 / 20
    assert math.isinf(plain.feature_costs["sex"])
    assert np.isclose(1 / plain.feature_costs["age"], 0.5 / 20 * X.age.std(ddof=0), rtol=1e-12)


def test_epsilon_multiplies_what_was_declared(patients):
    ball = Ball.tolerating(labels=0.05, columns={"chol": 20, "sex": 0})
    twice = ball.replace(epsilon=2.0).resolve(*patients)
    assert np.isclose(twice.epsilon / twice.kappa, 0.10)
    assert np.isclose(twice.epsilon / twice.feature_costs["chol"], 40)


def test_replacing_kappa_replaces_the_part_of_the_labels(patients):
    ball = Ball.tolerating(labels=0.05, columns={"chol": 20})
    trusted = ball.replace(kappa=math.inf).resolve(*patients)
    assert math.isinf(trusted.kappa)
    assert trusted.feature_costs == ball.resolve(*patients).feature_costs
    scaled = ball.replace(feature_costs="std").resolve(*patients)
    assert scaled.kappa == 20.0
    assert scaled.feature_costs["sex"] == 1.0


def test_shares_by_label_are_shares_of_that_label(patients):
    X, y = patients
    plain = Ball.tolerating(labels={"ill": 0.1, "well": 0}).resolve(X, y)
    assert np.isclose(1 / plain.kappa["ill"], 0.1 * np.mean(y == "ill"))
    assert math.isinf(plain.kappa["well"])
    with pytest.raises(ValueError, match=r"labels must have a share for each of the labels"):
        Ball.tolerating(labels={"ill": 0.1}).resolve(X, y)


def test_the_default_is_sampling_error(patients):
    X, y = patients
    plain = Ball().resolve(X, y)
    assert plain.epsilon == 0.025
    assert math.isinf(plain.kappa)
    assert np.isclose(plain.feature_costs["chol"], 1 / X.chol.std(ddof=0), rtol=1e-12)
    assert plain.feature_costs["sex"] == 1.0
    assert Ball().resolve(X, y, np.full(400, 4.0)).epsilon == 0.0125  # weights are repetitions
    assert "sampling error" in str(Ball())
    assert "No label is wrong." in str(plain)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array, sp.csc_array])
def test_deviations_count_zeros_in_every_storage(kind):
    random = np.random.default_rng(1)
    X = random.normal(3.0, 2.0, (50, 4)) * (random.random((50, 4)) < 0.3)
    X[:, 3] = 7.0
    weights = random.integers(1, 4, 50).astype(float)
    repeated = np.repeat(X, weights.astype(int), axis=0)
    expected = [*repeated[:, :3].std(axis=0), 1.0]
    costs = Ball().resolve(kind(X), sample_weight=weights).feature_costs
    assert np.allclose(1 / costs, expected, rtol=1e-12)


def test_a_resolved_ball_keeps_the_deviations_of_its_fit(patients):
    X, y = patients
    fitted = Ball().resolve(X, y)
    corrupt = X.assign(chol=X.chol * 1e6)
    again = fitted.replace(epsilon=0.3).resolved(features_of(corrupt, y))
    assert again.feature_costs == fitted.feature_costs
    assert again.epsilon == 0.3


def test_a_resolved_ball_on_the_columns_of_another_matrix(patients):
    X, y = patients
    columns = Ball(0.2, 3.0, feature_costs={"age": 5.0}, bounds={"age": (0, 120)}).on(
        features_of(X, y)
    )
    assert columns.epsilon == 0.2
    assert columns.costs[0] == 5.0
    assert columns.groups == [[2]]
    assert (columns.lower[0], columns.upper[0], columns.upper[1]) == (0.0, 120.0, math.inf)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda X, y: Ball(-1.0), "epsilon"),
        (lambda X, y: Ball(kappa=-1.0), "kappa"),
        (lambda X, y: Ball(feature_costs="sd"), "feature_costs"),
        (lambda X, y: Ball(feature_costs={"age": 0.0}), "feature_costs"),
        (lambda X, y: Ball.tolerating(labels=5), "labels must be a share from 0 to 1"),
        (lambda X, y: Ball.tolerating(numbers=math.inf), "numbers"),
        (lambda X, y: Ball.tolerating(columns={"age": -1}), "columns"),
        (lambda X, y: Ball.tolerating(columns={"cholesterol": 1}).resolve(X, y), "^columns names"),
        (lambda X, y: Ball.tolerating(columns={"sex": 2}).resolve(X, y), "share from 0 to 1"),
        (lambda X, y: Ball(feature_costs={"chlo": 1}).resolve(X, y), "did you mean 'chol'"),
        (lambda X, y: Ball(bounds={"age": (2, 1)}).on(features_of(X, y)), "lower <= upper"),
        (lambda X, y: Ball(bounds={"sex": (0, 1)}).on(features_of(X, y)), "is a category"),
    ],
)
def test_messages_name_what_was_typed(patients, make, message):
    with pytest.raises(ValueError, match=message):
        make(*patients)


def test_replace_refuses_what_a_ball_does_not_have():
    with pytest.raises(TypeError, match="no 'radius'"):
        Ball().replace(radius=1)
