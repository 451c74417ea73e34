"""An audit has the categories and bounds of the model, whatever the rows at hand show.

Judged by linear programs over explicit adversaries, which list every place that a row can go to,
its loss there, and the cost of the move.
"""

import itertools
import json
import math

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linprog
from sklearn.feature_selection import SelectKBest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import drlogit
from drlogit import DRLogisticRegression, misclassification_bounds, worst_case_loss


def frame_of(rng, n, levels):
    frame = pd.DataFrame({"job": rng.choice(list(levels), n), "town": rng.choice(["x", "y"], n)})
    odds = frame["job"].map({"a": 2.5, "b": -1.0, "c": 0.5}) + 1.5 * (frame["town"] == "x") - 1.0
    return frame, (rng.random(n) < 1.0 / (1.0 + np.exp(-odds))).astype(int)


def worst(scores, places, own, y, epsilon, kappa, *, error=False):
    """The largest mean loss, or error, that mass can have that moves at a mean cost up to epsilon.

    ``scores`` are those of all places, ``places[i, k]`` is what it costs row i to go to place k,
    and ``own`` the score of each row where it is.
    """
    gains, costs, equal = [], [], []
    for i, label in enumerate(2 * np.asarray(y) - 1):
        ways = itertools.product([(own[i], 0.0), *zip(scores, places[i], strict=True)], [1, -1])
        for (score, cost), sign in ways:
            margin = sign * label * score
            if math.isfinite(cost) and (sign > 0 or math.isfinite(kappa)):
                gains.append(float(margin <= 0.0) if error else np.logaddexp(0.0, -margin))
                costs.append(cost + (0.0 if sign > 0 else kappa))
                equal.append(i)
    rows = (np.array(equal) == np.arange(len(own))[:, None]).astype(float)
    share = np.full(len(own), 1.0 / len(own))
    found = linprog(-np.array(gains), [costs], [epsilon], rows, share)
    assert found.status == 0
    return -found.fun


def places_of(model, levels, frame):
    """Every combination of levels, with the number of changes that lead there from each row."""
    every = pd.DataFrame(itertools.product(*levels.values()), columns=[*levels])
    changes = (frame.to_numpy()[:, None] != every.to_numpy()[None]).sum(axis=2).astype(float)
    return model.decision_function(every), changes


@pytest.mark.parametrize("kappa", [1.0, math.inf])
@pytest.mark.parametrize("after", [None, StandardScaler(with_mean=False)], ids=["", "scaled"])
@pytest.mark.parametrize("drop", ["first", None])
def test_a_dropped_level_is_a_category_of_rows_that_do_not_show_it(drop, after, kappa):
    rng = np.random.default_rng(0)
    model = make_pipeline(OneHotEncoder(drop=drop), after, LogisticRegression(C=100.0))
    model.fit(*frame_of(rng, 400, "abc"))
    rows, y = frame_of(rng, 20, "bc")
    scores, changes = places_of(model, {"job": list("abc"), "town": ["x", "y"]}, rows)
    own, ball = model.decision_function(rows), {"epsilon": 0.2, "kappa": kappa}
    expected = worst(scores, changes, own, y, **ball)
    assert worst_case_loss(model, rows, y, **ball) == pytest.approx(expected, abs=1e-9)
    expected = worst(scores, changes, own, y, **ball, error=True)
    found = misclassification_bounds(model, rows, y, **ball).worst
    assert found == pytest.approx(expected, abs=1e-9)


def test_levels_that_an_encoder_ignores_or_a_selection_loses_are_none_of_these():
    rng = np.random.default_rng(1)
    train, rows = frame_of(rng, 400, "abc"), frame_of(rng, 20, "c")
    ball = {"epsilon": 0.2, "kappa": math.inf}
    known = OneHotEncoder(categories=[["b", "c"], ["x", "y"]], handle_unknown="ignore")
    levels = {"job": list("abc"), "town": ["x", "y"]}
    for model in (
        make_pipeline(known, LogisticRegression()).fit(*train),
        make_pipeline(OneHotEncoder(), SelectKBest(k=3), LogisticRegression()).fit(*train),
    ):
        scores, changes = places_of(model, levels, rows[0])
        expected = worst(scores, changes, model.decision_function(rows[0]), rows[1], **ball)
        assert worst_case_loss(model, *rows, **ball) == pytest.approx(expected, abs=1e-9)


def one_hot(frame):
    """Columns of levels b, c and x: a and y are dropped."""
    columns = [frame["job"] == "b", frame["job"] == "c", frame["town"] == "x"]
    return np.column_stack(columns).astype(float)


@pytest.mark.parametrize("how", ["estimator", "result", "file", "stated again"])
def test_what_occurred_in_training_only_is_a_category_of_the_audit(how, tmp_path):
    rng = np.random.default_rng(2)
    (frame, y), (rows, z) = frame_of(rng, 400, "abc"), frame_of(rng, 20, "bc")
    ball, groups = {"epsilon": 0.05, "kappa": 1.0}, [[0, 1], [2]]
    model = DRLogisticRegression(**ball, categories=groups).fit(one_hot(frame), y)
    assert model.categories_ == [[0, 1, None], [2, None]]
    options = {"categories": groups} if how in ("result", "stated again") else {}
    asked = model
    if how == "result":
        asked = drlogit.solve(one_hot(frame), y, **ball, categories=groups)
    elif how == "file":
        drlogit.save_model(model, tmp_path / "model.json")
        asked = drlogit.load_model(tmp_path / "model.json")
        assert json.loads((tmp_path / "model.json").read_text())["categories"][1] == [2, None]
    every = pd.DataFrame(itertools.product("abc", "xy"), columns=["job", "town"])
    changes = (rows.to_numpy()[:, None] != every.to_numpy()[None]).sum(axis=2).astype(float)
    own = model.decision_function(one_hot(rows))
    wide = {"epsilon": 0.2, "kappa": 1.0}
    expected = worst(model.decision_function(one_hot(every)), changes, own, z, **wide)
    found = worst_case_loss(asked, one_hot(rows), z, **wide, **options)
    assert found == pytest.approx(expected, abs=1e-6 if how == "result" else 1e-9)


def test_none_can_be_stated():
    rng = np.random.default_rng(3)
    frame, y = frame_of(rng, 200, "bc")  # a does not occur
    ball = {"epsilon": 0.1, "kappa": 1.0}
    X = one_hot(frame)
    silent = drlogit.solve(X, y, **ball, categories=[[0, 1], [2]])
    stated = drlogit.solve(X, y, **ball, categories=[[0, 1, None], [2, None]])
    assert stated.gap <= 1e-6
    assert stated.objective >= silent.objective - 1e-9
    assert drlogit.verify(stated, X, y)
    found = worst_case_loss(stated, X, y, **ball, categories=[[0, 1, None], [2]])
    assert found == pytest.approx(stated.objective, abs=1e-9)
    coef = np.array([3.0, 2.0, 0.5]), -1.0  # "none" is far below both
    rows, z = frame[:12], y[:12]
    every = pd.DataFrame(itertools.product("abc", "xy"), columns=["job", "town"])
    changes = (rows.to_numpy()[:, None] != every.to_numpy()[None]).sum(axis=2).astype(float)
    ball = {"epsilon": 0.2, "kappa": math.inf}
    expected = worst(one_hot(every) @ coef[0] - 1.0, changes, X[:12] @ coef[0] - 1.0, z, **ball)
    found = worst_case_loss(coef, X[:12], z, **ball, categories=[[0, 1, None], [2, None]])
    assert found == pytest.approx(expected, abs=1e-9)
    without = worst_case_loss(coef, X[:12], z, **ball, categories=[[0, 1], [2, None]])
    assert without < expected - 0.01


def test_a_row_of_an_unseen_level_keeps_its_place_and_draws_no_other_there():
    rng = np.random.default_rng(4)
    model = DRLogisticRegression(0.05, 1.0).fit(*frame_of(rng, 300, "bc"))
    rows, y = frame_of(rng, 20, "abc")
    assert (rows["job"] == "a").any()
    scores, changes = places_of(model, {"job": ["b", "c"], "town": ["x", "y"]}, rows)
    own, ball = model.decision_function(rows), {"epsilon": 0.2, "kappa": 1.0}
    expected = worst(scores, changes, own, y, **ball)
    assert worst_case_loss(model, rows, y, **ball) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("kappa", [1.0, math.inf])
def test_bounds_of_a_fit_stay_where_rows_lie_beyond_them(kappa):
    rng = np.random.default_rng(5)
    X = rng.random((200, 2))
    y = (X @ [3.0, -4.0] + rng.logistic(size=200) > -0.5).astype(int)
    model = DRLogisticRegression(0.02, kappa, bounds="data").fit(X, y)
    rows, z = X[:15].copy(), y[:15]
    rows[:4] += [[3.0, 0.0], [0.0, 2.0], [-2.0, 0.0], [-1.0, 4.0]]
    ball = {"epsilon": 0.3, "kappa": kappa}
    gains, costs = [], []
    for row in rows:
        # A number goes to an end or stays, also where it lies beyond an end.
        coordinates = [[row[j], X[:, j].min(), X[:, j].max()] for j in range(2)]
        places = np.array([*itertools.product(*coordinates)])
        gains.append(model.decision_function(places))
        costs.append(np.abs(places - row).sum(axis=1))
    every = np.concatenate(gains)
    table = np.full((15, every.size), np.inf)
    for i, cost in enumerate(costs):
        table[i, i * cost.size : (i + 1) * cost.size] = cost
    expected = worst(every, table, model.decision_function(rows), z, **ball)
    with pytest.warns(UserWarning, match="beyond the bounds of the fit in 2 columns"):
        assert worst_case_loss(model, rows, z, **ball) == pytest.approx(expected, abs=1e-9)
    with pytest.warns(UserWarning, match="beyond the bounds"):
        found = drlogit.worst_case_distribution(model, rows, z, **ball)
    assert found.expected_loss == pytest.approx(expected, abs=1e-3)
    with pytest.raises(ValueError, match="X must lie within its bounds"):
        worst_case_loss(model, rows, z, **ball, bounds=(0.0, 1.0))


def test_rows_without_weight_leave_a_proof_in_its_ball():
    rng = np.random.default_rng(6)
    frame, y = frame_of(rng, 120, "abc")
    X, weights = one_hot(frame), np.where(frame["job"] == "a", 0.0, 1.0)
    fit = drlogit.solve(
        X, y, epsilon=0.05, kappa=math.inf, categories=[[0, 1], [2]], sample_weight=weights,
        fit_intercept=False,
    )  # fmt: skip
    found = drlogit.verify(fit, X, y, sample_weight=weights)
    assert found, found
