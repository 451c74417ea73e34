"""Model files: exact round trips, refits, and one clear line about every kind of damage."""

from __future__ import annotations

import contextlib
import json
import pickle
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import drlogit
from damaged import damaged_copies
from drlogit import Ball, DRLogisticRegression, DRLogisticRegressionCV, load_model, save_model
from drlogit.files.model_file import _digest

pytestmark = pytest.mark.filterwarnings("ignore:class .* is almost never")

N = 120
RNG = np.random.default_rng(4)
FRAME = pd.DataFrame(
    {
        "age": RNG.normal(50.0, 10.0, N),
        "job": RNG.choice(["clerk", "cook"], N),
        "rooms": RNG.integers(1, 4, N),
    }
)
Y = np.where(FRAME.age + 8.0 * (FRAME.job == "cook") + RNG.normal(0.0, 8.0, N) > 50.0, 1, 0)
HOLES = FRAME.assign(age=FRAME.age.where(FRAME.index % 9 > 0))

BALLS = {
    "default": Ball(),
    "numbers": Ball(0.03, 1.0, norm="l1", feature_costs={"age": np.inf, "rooms": 2.0}),
    "tolerances": Ball.tolerating(labels=0.02, columns={"age": 2.0, "job": 0}),
    "twice": Ball.tolerating(labels=0.02, numbers=0.1).replace(epsilon=2.0),
    "by label": Ball.tolerating(labels={0: 0.05, 1: 0.0}),
    "kappa by label": Ball(0.03, {0: 2.0, 1: np.inf}),
    "bounds": Ball(0.03, 1.0, bounds={"age": (0, np.inf)}),
}


@pytest.fixture(scope="module")
def model(cancer):
    costs = np.ones(30)
    costs[1:6] = 2.0, 0.1, np.inf, 1.0, 1.0 / 3.0
    return DRLogisticRegression(ball=Ball(0.05, feature_costs=costs)).fit(*cancer)


@pytest.fixture(scope="module")
def table_model():
    ball = Ball(0.01, 2.0, bounds={"age": (0, 120)})
    return DRLogisticRegression(ball=ball, missing="median").fit(HOLES, Y)


def read(tmp_path, document):
    path = tmp_path / "model.json"
    path.write_text(document if isinstance(document, str) else json.dumps(document), "utf-8")
    return load_model(path)


# --- round trips ----------------------------------------------------------------------------


def test_round_trip_is_exact(model, cancer, tmp_path):
    X, y = cancer
    save_model(model, tmp_path / "model.json")
    loaded = load_model(tmp_path / "model.json")
    for name in ("coef_", "intercept_", "lambda_", "worst_case_loss_", "dual_gap_", "n_iter_"):
        assert np.array_equal(getattr(loaded, name), getattr(model, name)), name
    assert loaded.ball_ == model.ball_
    assert str(loaded.ball_) == str(model.ball_)
    assert np.array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert loaded.score(X, y) == model.score(X, y)
    assert np.array_equal(clone(loaded).fit(X, y).coef_, model.coef_)
    text = (tmp_path / "model.json").read_text("utf-8")
    assert "Infinity" not in text
    assert json.loads(text)["ball"]["kappa"] == {"number": "inf"}


@pytest.mark.parametrize("name", BALLS)
def test_a_refit_is_the_fit(name, tmp_path):
    """On the rows of the fit and on others: what data decide is not kept as a number."""
    others = {"missing": "median", "class_weight": {0: 1.0, 1: 3.0}, "max_iter": 90}
    model = DRLogisticRegression(ball=BALLS[name], **others).fit(HOLES, Y)
    save_model(model, tmp_path / "m.json")
    loaded = load_model(tmp_path / "m.json")
    assert loaded.get_params() == model.get_params()
    assert str(loaded.ball_) == str(model.ball_)
    assert np.array_equal(loaded.predict_proba(HOLES), model.predict_proba(HOLES))
    of_class = Ball.tolerating(labels={0: 0.05, 1: 0.0})  # a share of the class in the fit
    values = [drlogit.worst_case(each, HOLES, Y, ball=of_class).value for each in (model, loaded)]
    assert values[0] == values[1]
    for rows in (slice(None), slice(0, 80)):
        again, wanted = (clone(each).fit(HOLES[rows], Y[rows]) for each in (loaded, model))
        np.testing.assert_array_equal(again.coef_, wanted.coef_)


@pytest.mark.parametrize(
    "classes", [["a", "b", "c"], [1, 2, 3], [0.0, 1.0, 2.0], [-1, 1], [False, True]]
)
def test_labels_keep_their_kind(classes, tmp_path):
    X, codes = load_iris(return_X_y=True)
    y = np.array(classes)[np.minimum(codes, len(classes) - 1)]
    fitted = DRLogisticRegression(0.01).fit(X, y)
    save_model(fitted, tmp_path / "model.json")
    loaded = load_model(tmp_path / "model.json")
    assert loaded.classes_.tolist() == classes
    assert loaded.classes_.dtype.kind == y.dtype.kind
    assert np.array_equal(loaded.predict(X), fitted.predict(X))


def test_the_model_a_search_chose_is_kept(cancer, tmp_path):
    ours = DRLogisticRegressionCV(2, [0.5, np.inf], cv=2).fit(*cancer)
    grid = GridSearchCV(DRLogisticRegression(), {"epsilon": [0.01, 0.02]}, cv=2).fit(*cancer)
    for search, chosen in ((ours, ours), (grid, grid.best_estimator_)):
        save_model(search, tmp_path / "model.json")
        loaded = load_model(tmp_path / "model.json")
        assert loaded.ball_ == chosen.ball_
        np.testing.assert_allclose(clone(loaded).fit(*cancer).coef_, chosen.coef_, atol=1e-4)


def test_other_models_are_refused(cancer, tmp_path):
    with pytest.raises(ValueError, match="got LogisticRegression"):
        save_model(LogisticRegression().fit(*cancer), tmp_path / "model.json")
    pipeline = make_pipeline(StandardScaler(), DRLogisticRegression()).fit(*cancer)
    with pytest.raises(ValueError, match=r"got Pipeline; in place of a pipeline with Standard"):
        save_model(pipeline, tmp_path / "model.json")
    with pytest.raises(NotFittedError):
        save_model(DRLogisticRegression(), tmp_path / "model.json")
    model = DRLogisticRegression().fit(FRAME, Y).set_params(class_weight=object())
    with pytest.raises(ValueError, match="can only keep numbers, text, lists, mappings and balls"):
        save_model(model, tmp_path / "model.json")
    assert list(tmp_path.iterdir()) == []


# --- strangers' files ------------------------------------------------------------------------


def test_no_damage_makes_another_model(model, tmp_path):
    save_model(model, tmp_path / "sound.json")
    sound = (tmp_path / "sound.json").read_bytes()
    for contents in damaged_copies(sound, np.random.default_rng(0), 300):  # cut short, too
        (tmp_path / "damaged.json").write_bytes(contents)
        with contextlib.suppress(ValueError):  # else the digest agrees: a space that is another
            found = load_model(tmp_path / "damaged.json")
            np.testing.assert_array_equal(found.coef_, model.coef_)


def change(document, path, value):
    """The document with the entry at a path of keys replaced, or removed, as its writer would."""
    place = document
    for key in path[:-1]:
        place = place[key]
    if value is ...:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    document["digest"] = _digest(document)
    return document


DAMAGE = [
    (["schema"], "other", "expected {'schema': 'drlogit-model', 'version': 7}, got {'schema'"),
    (["version"], 6, "got {'schema': 'drlogit-model', 'version': 6}; fit the model again"),
    (["classes"], "inf", "'classes' must be two or more distinct labels"),
    (["classes"], [1, "a"], "'classes' must be two or more distinct labels"),
    (["classes"], [0, 1, 2], "'coefficients' must be 3 times any numbers"),
    (["coefficients", 0, 0], 1e308, "'coefficients' must be 1 times any numbers below 1e+150"),
    (["intercept"], ["much"], "'intercept' could not convert string to float: 'much'"),
    (["features", "names"], [[1]] * 30, "'features' names must be texts"),
    (["features", "names"], ["x"] * 29, "'features' must be 29 numbers"),
    (["features", "deviations", 0], 0.0, "'features' must have deviations from 1e-150 to"),
    (["features", "n_rows"], ..., "'features' has no 'n_rows'"),
    (["ball", "feature_costs"], {"mapping": [[0, 0.0]]}, "'ball' feature_costs must be"),
    (["ball", "feature_costs"], [1.0] * 29, "'ball' the ball has costs for 29 columns, got 30"),
    (["ball", "feature_costs", 0], 1e200, "'ball' must have feature_costs from 1e-150 to"),
    (["ball", "epsilon"], -1, "'ball' epsilon must be finite and >= 0, got -1.0"),
    (["ball", "kappa"], "tolerated", "'ball' kappa must be a number"),
    (["ball", "colour"], 1, "'ball' a Ball has"),
    (["parameters", "tol"], 1e-300, "and the status OPTIMAL at tol=1e-300"),
    (["parameters", "colour"], 1, "got an unexpected keyword argument 'colour'"),
    (["parameters", "missing"], {"file": "x"}, "'parameters' has no 'file'"),
    (["result", "status"], "FINE", "'result' has no 'FINE'"),
    (["result", "dual_objective"], -1.0, "'result' has a gap of 1."),
    (["notes"], 3, "'notes'"),
]
DAMAGE_TO_TABLES = [
    (["features", "columns", 1, "levels"], ..., "'features'"),
    (["features", "columns", 0, "fill"], 1e200, "'features' must be any numbers below 1e+150"),
    (["features", "columns", 1, "levels"], ["x"], "must make 4 columns, one for each coefficient"),
    (["features", "seen"], [[1.0]], "'features' must be 3 times"),
    (["ball", "categories"], [["age", "age"]], "'ball' categories"),
    (["ball", "bounds"], {"mapping": [["age", [1, 0]]]}, "'ball' bounds must be pairs"),
]


@pytest.mark.parametrize(
    ("kind", "path", "value", "complaint"),
    [("plain", *each) for each in DAMAGE] + [("table", *each) for each in DAMAGE_TO_TABLES],
    ids=lambda value: f"{value!r:.40}",
)
def test_damage_is_named(kind, path, value, complaint, model, table_model, tmp_path):
    save_model(model if kind == "plain" else table_model, tmp_path / "sound.json")
    document = json.loads((tmp_path / "sound.json").read_text("utf-8"))
    with pytest.raises(ValueError, match=rf"^[^\n]*model\.json[^\n]*{re.escape(complaint)}[^\n]*$"):
        read(tmp_path, change(document, path, value))


@pytest.mark.parametrize(
    "contents",
    [
        *(b"", b"{", b"[1, 2]", b'"text"', b"3", b"null", b"not JSON", b"[" * 100_000),
        *(b'{"schema": NaN}', b'{"schema": 1e999}', b'{"a": 1, "a": 2}', pickle.dumps(3)),
    ],
)
def test_other_files_are_refused(contents, tmp_path):
    (tmp_path / "model.json").write_bytes(contents)
    with pytest.raises(ValueError, match=r"^[^\n]*model\.json is (not a model file|a pickle, wh)"):
        load_model(tmp_path / "model.json")
