"""Ordered categories of tables: by ``ordinal`` or by type, in fits, files, audits and shifts."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linprog

import drlogit
from drlogit.problem.domains import distances, least_move

LEVELS = ["low", "mid", "high", "top"]


def table(seed=0, n=120):
    rng = np.random.default_rng(seed)
    grade, job = rng.integers(0, 4, n), rng.choice(["a", "b", "c"], n)
    age = rng.normal(40.0, 10.0, n)
    score = 1.2 * grade + (job == "a") + 0.05 * (age - 40.0) - 2.0
    y = score + rng.logistic(size=n) > 0.0
    X = pd.DataFrame({"grade": np.array(LEVELS, dtype=object)[grade], "job": job, "age": age})
    return X, np.where(y, "yes", "no")


def fitted(X, y, **options):
    ball = {"epsilon": 0.05, "kappa": 2.0, "feature_costs": "std"}
    return drlogit.DRLogisticRegression(**ball, **options).fit(X, y)


def test_stated_and_typed_orders_are_the_same_model():
    X, y = table()
    stated = fitted(X, y, ordinal={"grade": LEVELS})
    X["grade"] = pd.Categorical(X["grade"], LEVELS, ordered=True)
    typed = fitted(X, y)
    np.testing.assert_array_equal(stated.coef_, typed.coef_)
    assert stated.encoding_ == typed.encoding_
    assert typed.encoding_.columns[0].levels == tuple(LEVELS)
    # The adversary has fewer moves for its money than with levels at one price.
    X["grade"] = X["grade"].astype(str)
    assert stated.worst_case_loss_ < fitted(X, y).worst_case_loss_ - 1e-4


def test_missing_is_one_step_from_every_level():
    X, y = table()
    X.loc[X.index[::10], "grade"] = None
    model = fitted(X, y, ordinal={"grade": LEVELS})
    assert model.categories_[0] == {0: 0, 1: 1, 2: 2, 3: 3, 4: None}
    np.testing.assert_array_equal(
        distances(np.array([0.0, 2.0, np.nan])), [[0, 2, 1], [2, 0, 1], [1, 1, 0]]
    )


def test_what_cannot_be_an_order_is_said():
    X, y = table()
    with pytest.raises(ValueError, match="'top', which ordinal does not list: low, mid, high"):
        fitted(X, y, ordinal={"grade": LEVELS[:3]})
    with pytest.raises(ValueError, match="two or more distinct levels of column 'grade'"):
        fitted(X, y, ordinal={"grade": ["low", "low"]})
    with pytest.raises(ValueError, match="ordinal names the column 'rank'"):
        fitted(X, y, ordinal={"rank": LEVELS})
    with pytest.raises(ValueError, match="ordinal must be a dict"):
        fitted(X, y, ordinal=["grade"])
    matrix, labels = np.eye(3)[[0, 1, 2, 0]], [0, 1, 0, 1]
    for group in ({0: 0, 1: 0, 2: 1}, {0: 0, 1: math.inf, 2: 1}, {0: 0, None: 1}):
        with pytest.raises(ValueError, match="must map the columns of an ordered group"):
            drlogit.solve(matrix, labels, epsilon=0.1, kappa=1.0, categories=[group])
    matrix[3] = 0.0
    with pytest.raises(ValueError, match="every row must have a 1"):
        drlogit.solve(matrix, labels, epsilon=0.1, kappa=1.0, categories=[{0: 0, 1: 1, 2: 2}])


def test_files_and_proofs(tmp_path):
    X, y = table()
    model = fitted(X, y, ordinal={"grade": LEVELS})
    model.save_proof(tmp_path / "proof.npz", X, y)
    drlogit.save_model(model, tmp_path / "model.json")
    again = drlogit.load_model(tmp_path / "model.json")
    assert again.ordinal == model.ordinal
    assert again.categories_[0] == dict(model.categories_[0])
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert drlogit.verify(again, X, y, tmp_path / "proof.npz")
    own = {"epsilon": 0.05, "kappa": 2.0}
    loss = drlogit.worst_case_loss(again, X, y, **own)
    assert loss == pytest.approx(model.worst_case_loss_, abs=1e-9)
    # A level that training did not show stays as it is.
    X.loc[0, "grade"] = "unheard of"
    assert drlogit.worst_case_loss(again, X, y, **own) != loss


@pytest.mark.filterwarnings("ignore:DRLogisticRegressionCV chose")
def test_searches_know_levels_that_a_fold_lacks():
    X, y = table(n=40)
    X["grade"] = pd.Categorical(
        X["grade"].where(X.index > 0, "rare"), [*LEVELS, "rare"], ordered=True
    )
    search = drlogit.DRLogisticRegressionCV(
        epsilons=[0.01, 0.02], kappas=(2.0,), cv=3, feature_costs="std"
    )
    assert search.fit(X, y).coef_.shape == (1, 5 + 3 + 1)


@pytest.mark.parametrize("seed", range(6))
def test_the_least_move_is_the_optimal_transport(seed):
    rng = np.random.default_rng(seed)
    places = np.sort(rng.choice(12, 5, replace=False)).astype(float)
    one, other = rng.dirichlet(np.ones(5), 2)
    marginals = np.zeros((10, 25))
    for i, j in itertools.product(range(5), range(5)):
        marginals[i, 5 * i + j] = marginals[5 + j, 5 * i + j] = 1.0
    exact = linprog(
        distances(places).ravel(), A_eq=marginals, b_eq=np.concatenate([one, other])
    ).fun
    assert least_move(other - one, places) == pytest.approx(exact, abs=1e-9)
    places[2] = np.nan  # a bound from below then
    exact = linprog(
        distances(places).ravel(), A_eq=marginals, b_eq=np.concatenate([one, other])
    ).fun
    assert least_move(other - one, places) <= exact + 1e-9


def test_shift_counts_levels():
    X, y = table(n=200)
    model = fitted(X, y, ordinal={"grade": LEVELS})
    low, high = X.copy(), X.copy()
    low["grade"], high["grade"] = "low", "top"
    found = drlogit.shift(model, low, y, high, y).features.set_index("feature")
    assert found.loc["grade", "cost"] == pytest.approx(3.0)
    assert found.loc["job", "cost"] == 0.0


def test_words():
    X, y = table()
    model = fitted(X, y, ordinal={"grade": LEVELS})
    assert "ordered categories may be off on average: grade by 0.05 levels" in drlogit.allowances(
        model
    )
