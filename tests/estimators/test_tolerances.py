"""Tolerances in plain words, and back."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import zoo
from drlogit import (
    DRLogisticRegression,
    DRLogisticRegressionCV,
    allowances,
    tolerances,
)

RNG = np.random.default_rng(7)
N = 60
FRAME = pd.DataFrame(
    {
        "age": RNG.normal(40.0, 10.0, N),
        "income": RNG.normal(30.0, 5.0, N),
        "job": RNG.choice(["clerk", "cook"], N),
        "town": RNG.choice(["x", "y", "z"], N),
    }
)
Y = np.where(0.1 * (FRAME.age - 40.0) + RNG.logistic(size=N) > 0.0, "yes", "no")


def test_prices():
    found = tolerances(labels=0.02, numbers=0.1, categories=0.05)
    assert (found.epsilon, found.kappa) == (0.1, 5.0)
    model = DRLogisticRegression(**found.parameters).fit(FRAME, Y)
    deviations = FRAME[["age", "income"]].std(ddof=0).to_numpy()
    assert model.feature_costs_ == pytest.approx([*(1.0 / deviations), 2, 2, 2, 2, 2])
    assert clone(model).feature_costs == found.feature_costs


def test_columns_of_their_own():
    found = tolerances(
        labels=0.0,
        numbers=0.1,
        categories=math.inf,
        columns={"age": 0.5, "town": 0.2, "income": "0.2 std"},
    )
    assert found.kappa == math.inf
    model = DRLogisticRegression(**found.parameters).fit(FRAME, Y)
    income = 0.5 / FRAME.income.std(ddof=0)
    assert model.feature_costs_ == pytest.approx([0.2, income, math.inf, math.inf, 0.5, 0.5, 0.5])


def test_what_is_not_named_is_not_beyond_doubt():
    """Who says that 5 % of labels are wrong has not said that nothing else is."""
    found = tolerances(labels=0.05)
    model = DRLogisticRegression(**found.parameters).fit(FRAME, Y)
    assert np.isfinite(model.feature_costs_).all()
    assert allowances(model)[0] == "up to 5 % of labels may be wrong"
    assert "categories may be miscoded: in 10 % each" in allowances(model)


def test_many_unpenalised_coefficients_are_named_once():
    X = RNG.normal(size=(60, 8))
    y = X[:, 0] + RNG.logistic(size=60) > 0.0
    costs = np.array([1.0, *[math.inf] * 7])
    with pytest.warns(
        UserWarning, match="7 coefficients are not penalised, and there are only 60 samp"
    ) as told:
        DRLogisticRegression(0.1, 1.0, feature_costs=costs).fit(X, y)
    assert len(told) == 1
    assert told[0].filename == __file__
    named = pd.DataFrame(X, columns=list("abcdefgh"))
    with pytest.warns(UserWarning, match="cost of 'b', 'c', 'd', 'e', 'f' and 2 more is infinite"):
        DRLogisticRegressionCV([0.1], [1.0], cv=2, feature_costs=costs).fit(named, y)
    DRLogisticRegression(0.1, 1.0, feature_costs=[1.0] * 7 + [math.inf]).fit(X, y)  # no warning


def test_each_alone_uses_up_the_budget():
    """What an adversary who does one thing only can do of it, on average."""
    stated = {"labels": 0.04, "numbers": 0.1, "categories": 0.05}
    both = tolerances(**stated)
    model = DRLogisticRegression(**both.parameters).fit(FRAME, Y)
    ball = {"epsilon": both.epsilon, "kappa": both.kappa}
    alone = tolerances(labels=0.04)
    flips = zoo.worst_distribution(model, FRAME, Y, **ball, feature_costs=[math.inf] * 4)
    assert flips.mass[flips.flipped].sum() <= 0.04 + 1e-12
    assert zoo.worst_loss(
        model, FRAME, Y, epsilon=alone.epsilon, kappa=alone.kappa, feature_costs=[math.inf] * 4
    ) == pytest.approx(flips.supremum, abs=1e-12)
    still = dict.fromkeys(["income", "job", "town"], math.inf)
    costs = {"age": 1.0 / FRAME.age.std(ddof=0), **still}
    moves = zoo.worst_distribution(
        model, FRAME, Y, epsilon=both.epsilon, kappa=math.inf, feature_costs=costs
    )
    moved = moves.points(FRAME).age.to_numpy() - FRAME.age.to_numpy()[moves.index]
    assert moves.mass @ np.abs(moved) / FRAME.age.std(ddof=0) <= 0.1 * (1.0 + 1e-9)


def test_in_sentences():
    model = DRLogisticRegression(
        0.1, 5.0, feature_costs={"age": 0.5, "income": math.inf, "job": 2.0, "town": 4.0}
    ).fit(FRAME, Y)
    assert allowances(model) == [
        "up to 2 % of labels may be wrong",
        "numbers may be off on average: age by 0.2",
        "categories may be miscoded: job in 5 %, town in 2.5 %",
        "assumed to be exact: income",
        "these are alternatives, not a sum",
    ]
    plain = DRLogisticRegression(0.1, math.inf).fit(FRAME[["age", "income"]], Y)
    assert allowances(plain)[:2] == [
        "labels are right",
        "numbers may be off on average: by 0.1 each",
    ]
    one = DRLogisticRegression(0.1, math.inf).fit(FRAME[["age"]], Y)
    assert allowances(one) == ["labels are right", "numbers may be off on average: age by 0.1"]
    assert allowances(DRLogisticRegression(0.0).fit(FRAME[["age"]], Y)) == [
        "epsilon = 0: nothing may be wrong"
    ]
    one_hot = pd.get_dummies(FRAME[["age", "job"]], dtype=float)
    groups = [["job_clerk", "job_cook"]]
    grouped = DRLogisticRegression(0.1, 1.0, categories=groups).fit(one_hot, Y)
    assert "categories may be miscoded: job_clerk or job_cook in 10 %" in allowances(grouped)


@pytest.mark.parametrize(
    ("stated", "message"),
    [
        ({"numbers": math.inf, "categories": math.inf}, "must allow something"),
        ({"numbers": 0}, "numbers must be a positive number, or inf if it is exact"),
        ({"columns": {"a": "0 std"}}, "must be a positive number, or inf"),
        ({"labels": 1.5}, "labels must be a share from 0 to 1, .* got 1.5"),
        ({"categories": 2}, "categories must be a positive number up to 1, or inf if it is"),
        ({"columns": {"a": "two std"}}, "such as '0.1 std', got 'two std'"),
    ],
)
def test_what_cannot_be_meant(stated, message):
    with pytest.raises(ValueError, match=message):
        tolerances(**stated)
    with pytest.raises(ValueError, match="model must be a fitted DRLogisticRegression"):
        allowances("model")


def test_labels_that_are_unknown():
    """With three classes κ = 0 is allowed, and ε/κ would be a division by zero."""
    labels = np.append(["a", "b", "c"], RNG.choice(["a", "b", "c"], N - 3))
    with pytest.warns(UserWarning, match="is constant"):
        model = DRLogisticRegression(0.1, 0.0).fit(FRAME[["age", "income"]] / 10.0, labels)
    assert allowances(model)[0] == "labels are unknown"
