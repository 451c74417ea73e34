"""Model files: exact round trips, and one clear line about every kind of damage."""

from __future__ import annotations

import contextlib
import json
import math
import re

import numpy as np
import pandas as pd
import pytest
from benchmarks import stated
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import drlogit
from damaged import damaged_copies
from drlogit import load_model, save_model
from drlogit.files.model_file import _digest


@pytest.fixture(scope="module")
def model(cancer):
    costs = np.ones(30)
    costs[1:6] = 2.0, 0.1, np.inf, 1.0, 1.0 / 3.0
    return stated.classifier(0.05, np.inf, feature_costs=costs).fit(*cancer)


@pytest.fixture
def document(model, tmp_path):
    drlogit.save_model(model, tmp_path / "sound.json")
    return json.loads((tmp_path / "sound.json").read_text())


def read(tmp_path, document):
    path = tmp_path / "model.json"
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return drlogit.load_model(path)


# --- round trips ----------------------------------------------------------------------------


def test_round_trip_is_exact(model, cancer, tmp_path):
    X, y = cancer
    path = tmp_path / "model.json"
    drlogit.save_model(model, path)
    loaded = drlogit.load_model(path)
    for name in ("coef_", "intercept_", "lambda_", "worst_case_loss_", "dual_gap_", "n_iter_"):
        assert np.array_equal(getattr(loaded, name), getattr(model, name)), name
    for name in ("objective", "dual_objective", "gap", "lam", "status", "solver", "solve_time"):
        assert getattr(loaded.result_, name) == getattr(model.result_, name), name
    assert loaded.ball_ == model.ball_
    assert loaded.ball == model.ball
    assert str(loaded.ball_) == str(model.ball_)
    assert np.array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert loaded.score(X, y) == model.score(X, y)
    assert np.array_equal(clone(loaded).fit(X, y).coef_, model.coef_)


@pytest.mark.parametrize(
    "classes", [["a", "b", "c"], [1, 2, 3], [0.0, 1.0, 2.0], [-1, 1], [False, True]]
)
def test_labels_keep_their_kind(classes, tmp_path):
    X, codes = load_iris(return_X_y=True)
    codes = np.minimum(codes, len(classes) - 1)
    y = np.array(classes)[codes]
    fitted = stated.classifier(0.01).fit(X, y)
    drlogit.save_model(fitted, tmp_path / "model.json")
    loaded = drlogit.load_model(tmp_path / "model.json")
    assert loaded.classes_.tolist() == classes
    assert loaded.classes_.dtype.kind == y.dtype.kind
    assert np.array_equal(loaded.predict(X), fitted.predict(X))
    assert np.array_equal(loaded.predict_proba(X), fitted.predict_proba(X))


def test_the_model_a_search_chose_is_kept(cancer, tmp_path):
    ours = stated.search(2, [0.5, np.inf], cv=2).fit(*cancer)
    grid = GridSearchCV(stated.classifier(), {"epsilon": [0.01, 0.02]}, cv=2).fit(*cancer)
    for search, chosen in ((ours, ours), (grid, grid.best_estimator_)):
        drlogit.save_model(search, tmp_path / "model.json")
        loaded = drlogit.load_model(tmp_path / "model.json")
        assert loaded.ball_ == chosen.ball_
        assert np.array_equal(loaded.coef_, chosen.coef_)


def test_infinity_is_text(document, tmp_path):
    assert "Infinity" not in (tmp_path / "sound.json").read_text()
    assert document["ball"]["kappa"] == {"number": "inf"}


def test_other_models_are_refused(cancer, tmp_path):
    with pytest.raises(ValueError, match="got LogisticRegression"):
        drlogit.save_model(LogisticRegression().fit(*cancer), tmp_path / "model.json")
    pipeline = make_pipeline(StandardScaler(), stated.classifier()).fit(*cancer)
    with pytest.raises(
        ValueError, match="got Pipeline; in place of a pipeline with StandardScaler"
    ):
        save_model(pipeline, tmp_path / "model.json")
    with pytest.raises(NotFittedError):
        drlogit.save_model(stated.classifier(), tmp_path / "model.json")
    assert list(tmp_path.iterdir()) == []


# --- strangers' files ------------------------------------------------------------------------


def test_no_damage_makes_another_model(document, tmp_path):
    sound = json.dumps(document).encode()
    wanted = read(tmp_path, document)
    for contents in damaged_copies(sound, np.random.default_rng(0), 300):  # cut short, too
        (tmp_path / "damaged.json").write_bytes(contents)
        with contextlib.suppress(ValueError):  # else the digest agrees: a space that is another
            found = drlogit.load_model(tmp_path / "damaged.json")
            np.testing.assert_array_equal(found.coef_, wanted.coef_)


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
    (["schema"], "other", "its schema is 'other', expected 'drlogit-model'"),
    (["version"], 4, "has version 4 of the model format"),
    (["n_features"], 5, "'n_features' must be the number of coefficients, (30,), got 5"),
    (["n_features"], math.inf, "'n_features' must be the number of coefficients, (30,), got inf"),
    (["n_features"], 1e308, "'n_features' must be the number of coefficients, (30,), got 1e+308"),
    (["n_features"], True, "'n_features' must be the number of coefficients, (30,), got True"),
    (["feature_names"], [[1]] * 30, "'feature_names' must be 30 texts, got [[1], [1]"),
    (["fits", 0, "coefficients", 0], 1e308, "'coefficients' must be below 1e+150, got [1e+308"),
    (["fits", 0, "intercept"], -1e308, "'intercept' must be below 1e+150, got -1e+308"),
    (["fits", 0, "n_iter"], math.inf, "cannot convert float infinity to integer"),
    (["ball", "feature_costs", "array", 0], 0, "feature_costs must be numbers > 0"),
    (["classes"], [1, 1], "two or more distinct labels"),
    (["classes"], [1, "a"], "all numbers or all text"),
    (["classes"], [0, 1, 2], "'coefficients' must be 3 times 30 numbers"),
    (["ball", "epsilon"], -1, "epsilon must be finite and >= 0, got -1.0"),
    (["ball", "kappa"], -1, "kappa must be > 0"),
    (["ball", "norm"], "l3", "'l3'"),
    (["tol"], ..., "'tol' is missing"),
    (["tol"], 1e-300, "'status' cannot be OPTIMAL with a gap of"),
    (["fits", 0, "status"], "FINE", "'FINE' is missing"),
    (["fits", 0, "gap"], -1.0, "'gap' must be 'objective' minus 'dual_bound'"),
    (["fits", 0, "intercept"], "much", "could not convert string to float: 'much'"),
    (["fits", 0, "coefficients", 2], None, "'coefficients' must be 30 numbers"),
]
DAMAGE_TO_TABLES = [
    (["columns", 1, "kind"], ..., "'kind' is missing"),
    (["columns", 1, "levels"], [1, 2], "'levels' must be texts or null, got [1, 2]"),
    (["columns", 1, "levels"], ["x", ["y"]], "'levels' must be texts or null, got ['x', ['y']]"),
    (["columns"], [], "'columns' must make 3 features, got 0"),
    (["ball", "categories"], [["n", "n"]], "categories must name each column once"),
    (["ball", "bounds"], [[0.0], [1.0]], "bounds must be two numbers, or two arrays"),
    (["ball", "bounds"], [[1, 1], [0, 0]], "lower <= upper"),
    (["features", "each", 1, "columns"], [1, 1], "each of 3 columns once"),
]


@pytest.fixture(scope="module")
def table_model():
    frame = pd.DataFrame({"n": [0.0, 1.0, 2.0, 3.0], "c": list("xyxy")})
    return stated.classifier(0.01, bounds={"n": (0, 9)}).fit(frame, [0, 1, 0, 1])


@pytest.mark.parametrize(
    ("kind", "path", "value", "complaint"),
    [("plain", *each) for each in DAMAGE] + [("table", *each) for each in DAMAGE_TO_TABLES],
    ids=lambda value: f"{value!r:.40}",
)
def test_damage_is_named(kind, path, value, complaint, model, table_model, tmp_path):
    save_model(model if kind == "plain" else table_model, tmp_path / "sound.json")
    document = json.loads((tmp_path / "sound.json").read_text())
    with pytest.raises(ValueError, match=rf"^[^\n]*model\.json[^\n]*{re.escape(complaint)}[^\n]*$"):
        read(tmp_path, change(document, path, value))


@pytest.mark.parametrize(
    "contents",
    [b"", b"{", b"[1, 2]", b'"text"', b"3", b"null", b"not JSON", b"[" * 100_000,
     b'{"schema": NaN}', b'{"schema": 1e999}', b'{"a": 1, "a": 2}', bytes(range(256))],
)  # fmt: skip
def test_other_files_are_refused(contents, tmp_path):
    (tmp_path / "model.json").write_bytes(contents)
    with pytest.raises(ValueError, match=r"^[^\n]*model\.json is (not|JSON but not) a model file"):
        load_model(tmp_path / "model.json")
