"""A model says the same in every form: scikit-learn's own, an ONNX graph, a file."""

from __future__ import annotations

import sys

import numpy as np
import onnxruntime
import pandas as pd
import polars as pl
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import drlogit
from drlogit import DRLogisticRegression, DRLogisticRegressionCV

pytestmark = pytest.mark.filterwarnings(
    "ignore:.* is ignored because|most rows have unknown|class .* is almost never:UserWarning",
    "ignore:none of .* rows has a value|2 of 90 rows have no value:UserWarning",
)

N = 90
RNG = np.random.default_rng(2)
FRAME = pd.DataFrame(
    {
        "age": RNG.integers(18, 80, N),
        "income": RNG.lognormal(10.0, 0.6, N).round(2),
        "job": RNG.choice(["clerk", "missing", "smith"], N),
        "owner": RNG.random(N) < 0.4,
        "rooms": RNG.integers(0, 4, N) / 2.0,
    }
)
SCORE = (FRAME.age < 35) + (FRAME.job == "missing") - 0.5 * FRAME.owner
TWO = np.where(SCORE + RNG.logistic(size=N) > 0.5, "bad", "good")
THREE = np.where(RNG.random(N) < 0.3, "open", TWO)
GAPS = FRAME.assign(
    income=FRAME.income.where(FRAME.index % 7 > 0),
    job=FRAME.job.where(FRAME.index % 5 > 0),
    rooms=FRAME.rooms.where(FRAME.index % 8 > 0),
)
SOME_OWNERS = GAPS.assign(owner=FRAME.owner.astype(object).where(FRAME.index % 6 > 0))
NUMBERS = FRAME[["age", "income"]]
LEVELS = {"missing": "median", "categorical_features": ["job", "owner", "rooms"]}

#: What is fitted, what is served, and options.
CASES = {
    "frame": (FRAME, FRAME, {}),
    "polars": (pl.from_pandas(FRAME), pl.from_pandas(FRAME), {}),
    "gaps": (GAPS, GAPS, LEVELS),
    "truth values with gaps": (SOME_OWNERS, SOME_OWNERS, LEVELS),
    "gaps to serve": (FRAME, GAPS, {"missing": "mean"}),
    "new levels": (GAPS, GAPS.assign(job="monk", rooms=9.0), LEVELS),
    "marks of nothing": (GAPS, GAPS.assign(job="?"), LEVELS),
    "left out": (FRAME.assign(a=np.nan), FRAME.assign(a=3.0), {"missing": "median"}),
    "numbers": (NUMBERS, NUMBERS, {}),
    "text": (FRAME[["job"]], FRAME[["job"]], {}),
    "array": (NUMBERS.to_numpy(), NUMBERS.to_numpy(), {}),
    "array with levels": (*2 * (GAPS[["income", "rooms"]].to_numpy(),),
                          {"missing": "median", "categorical_features": [1]}),
}  # fmt: skip


KINDS = {"tensor(double)": np.float64, "tensor(string)": object, "tensor(bool)": np.bool_}


class Graph:
    """An ONNX graph, run by onnxruntime."""

    def __init__(self, model):
        contents = drlogit.to_onnx(model).SerializeToString()
        self.session = onnxruntime.InferenceSession(contents, providers=["CPUExecutionProvider"])

    def run(self, X):
        wanted = self.session.get_inputs()
        if wanted[0].name == "X":
            return self.session.run(None, {"X": np.asarray(X, np.float64)})
        X = pd.DataFrame(X) if isinstance(X, np.ndarray) else X
        names = {str(name): name for name in X.columns}
        inputs = {each.name: np.asarray(X[[names[each.name]]], KINDS[each.type]) for each in wanted}
        return self.session.run(None, inputs)

    def predict(self, X):
        return self.run(X)[0]

    def predict_proba(self, X):
        return self.run(X)[1]


def from_file(model, path):
    drlogit.save_model(model, path)
    again = drlogit.load_model(path)
    drlogit.save_model(again, path.with_suffix(".again"))
    assert path.with_suffix(".again").read_bytes() == path.read_bytes()
    assert again.encoding_ == model.encoding_
    return again


FORMS = {
    "scikit-learn": lambda model, _: model.to_sklearn(),
    "ONNX": lambda model, _: Graph(model),
    "file": from_file,
}


def agree(form, model, X):
    assert np.array_equal(form.predict(X), model.predict(X))
    assert np.allclose(form.predict_proba(X), model.predict_proba(X), rtol=0.0, atol=1e-12)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("case", CASES)
def test_every_form_predicts_the_same(case, form, tmp_path):
    fitted, served, options = CASES[case]
    for y in (TWO, THREE):
        model = DRLogisticRegression(0.005, 1.0, feature_costs="std", **options).fit(fitted, y)
        if (case, form) == ("truth values with gaps", "scikit-learn"):
            with pytest.raises(ValueError, match="'owner' has truth values and missing values"):
                model.to_sklearn()
            continue
        agree(FORMS[form](model, tmp_path / "model.json"), model, served)


@pytest.mark.parametrize("nothing", ["", None, np.nan, pd.NA])
def test_runtimes_spell_missing_text_in_many_ways(nothing):
    model = DRLogisticRegression(0.005, feature_costs="std", missing="median").fit(GAPS, TWO)
    found = Graph(model).predict_proba(GAPS.assign(job=pd.Series([nothing] * N, dtype=object)))
    assert np.allclose(found, model.predict_proba(GAPS.assign(job=None)), rtol=0.0, atol=1e-12)


def test_graphs_of_searches_and_pipelines():
    search = GridSearchCV(DRLogisticRegression(feature_costs="std"), {"epsilon": [0.01]}, cv=2)
    agree(Graph(search.fit(FRAME, TWO)), search, FRAME)
    scaled = make_pipeline(StandardScaler(), DRLogisticRegressionCV(2, [1.0], cv=2))
    plain = make_pipeline(scaled.fit(NUMBERS, TWO)[0], scaled[-1].to_sklearn())
    agree(plain, scaled, NUMBERS)


def test_what_cannot_be_converted(monkeypatch):
    with pytest.raises(NotFittedError):
        drlogit.to_onnx(DRLogisticRegression())
    noisy = DRLogisticRegression(label_noise=0.1, feature_costs="std").fit(FRAME, TWO)
    for export in (drlogit.to_onnx, DRLogisticRegression.to_sklearn):
        with pytest.raises(ValueError, match="with label_noise cannot be exported"):
            export(noisy)
    pipeline = make_pipeline(StandardScaler(), DRLogisticRegression()).fit(NUMBERS, TWO)
    with pytest.raises(ValueError, match="model must be a drlogit estimator, got Pipeline"):
        drlogit.to_onnx(pipeline)
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"pip install 'drlogit\[onnx\]'"):
        drlogit.to_onnx(pipeline[-1])
