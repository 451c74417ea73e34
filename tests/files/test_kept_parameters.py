"""A model that was read from a file is fitted again with the parameters of the one written."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from benchmarks import stated
from sklearn.base import clone

from drlogit import Ball, DRLogisticRegression, load_model, save_model
from drlogit.files.model_file import _digest

pytestmark = pytest.mark.filterwarnings(
    "ignore:class .* is almost never|epsilon='auto':UserWarning"
)

N = 120
RNG = np.random.default_rng(4)
FRAME = pd.DataFrame(
    {
        "age": RNG.normal(50.0, 10.0, N),
        "income": RNG.normal(3.0, 1.0, N).round(2),
        "job": RNG.choice(["clerk", "cook"], N),
        "rooms": RNG.integers(1, 4, N),
    }
)
Y = np.where(FRAME.age + 8.0 * (FRAME.job == "cook") + RNG.normal(0.0, 8.0, N) > 50.0, 1, 0)
GIVEN = {"missing": "median"}

PARAMETERS = {
    "tolerances": {"ball": Ball.tolerating(labels=0.02, columns={"age": 2.0, "rooms": 0.2})},
    "tolerances by label": {"ball": Ball.tolerating(labels={0: 0.05, 1: 0.0}), "epsilon": 2.0},
    "costs by name": {"ball": Ball(0.03, feature_costs={"age": np.inf, "rooms": 2.0})},
    "costs by column": {"ball": Ball(0.03, feature_costs=np.array([1.0, 2.0, 3.0, 4.0]))},
    "categories by position": {"categorical_features": [2, 3]},
    "bounds": {"ball": Ball(0.03, norm="l1", bounds={"age": (0, np.inf)})},
    "weights of classes": {"class_weight": {0: 1.0, 1: 3.0}},
    "balanced": {"class_weight": "balanced", "norm": "linf", "max_iter": 90},
    "kappa by label": {"kappa": {0: 2.0, 1: np.inf}},
}


@pytest.mark.parametrize("name", PARAMETERS)
def test_a_refit_is_the_fit(name, tmp_path):
    model = DRLogisticRegression(**GIVEN, **PARAMETERS[name]).fit(FRAME, Y)
    save_model(model, tmp_path / "m.json")
    loaded = load_model(tmp_path / "m.json")
    np.testing.assert_equal(loaded.get_params(), model.get_params())
    again = clone(loaded).fit(FRAME, Y)
    np.testing.assert_array_equal(again.coef_, model.coef_)
    # On other rows, too: what data decide is not kept as a number.
    some = slice(0, 80)
    np.testing.assert_array_equal(
        clone(loaded).fit(FRAME[some], Y[some]).coef_, clone(model).fit(FRAME[some], Y[some]).coef_
    )


def test_a_search_keeps_what_it_chose_and_what_it_was_given(tmp_path):
    search = stated.search(2, 2, cv=3, class_weight="balanced", feature_costs="std", **GIVEN)
    search.fit(FRAME, Y)
    save_model(search, tmp_path / "m.json")
    loaded = load_model(tmp_path / "m.json")
    assert loaded.ball_ == search.ball_
    assert loaded.class_weight == "balanced"
    np.testing.assert_array_equal(clone(loaded).fit(FRAME, Y).coef_, search.coef_)


def test_groups_of_columns(tmp_path):
    X = np.column_stack([FRAME.age, FRAME.job == "cook", FRAME.job != "cook"])
    options = {"categories": [[1, 2]], "bounds": (np.array([0.0, 0.0, 0.0]), 150.0)}
    model = stated.classifier(0.03, feature_costs=(0.1, 1, 1), **options).fit(X, Y)
    save_model(model, tmp_path / "m.json")
    loaded = load_model(tmp_path / "m.json")
    np.testing.assert_equal(loaded.get_params(), model.get_params())
    np.testing.assert_array_equal(loaded.fit(X, Y).coef_, model.coef_)


def test_what_no_file_can_keep_is_refused(tmp_path):
    model = stated.classifier(0.03, feature_costs="std", **GIVEN).fit(FRAME, Y)
    model.class_weight = object()
    with pytest.raises(ValueError, match="a model file can only keep numbers, text"):
        save_model(model, tmp_path / "m.json")
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize(
    "parameters", [3, {"depth": 3}, {"missing": {"file": "x"}}, {"missing": {"tuple": 1}},
               {"bounds": {"tuple": [1], "array": [1]}}, {"bounds": {"mapping": [[[1], 2]]}}],
)  # fmt: skip
def test_strange_parameters_are_refused(parameters, tmp_path):
    path = tmp_path / "m.json"
    save_model(stated.classifier(0.03, feature_costs="std", **GIVEN).fit(FRAME, Y), path)
    document = json.loads(path.read_text("utf-8")) | {"parameters": parameters}
    document["digest"] = _digest(document)
    path.write_text(json.dumps(document), "utf-8")
    with pytest.raises(ValueError, match="is not a valid model file"):
        load_model(path)
