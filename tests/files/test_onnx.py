"""ONNX graphs predict what our models do, run by onnxruntime."""

from __future__ import annotations

import sys

import numpy as np
import onnxruntime
import pandas as pd
import polars as pl
import pytest
from sklearn.compose import make_column_transformer
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import drlogit
from drlogit import DRLogisticRegression, DRLogisticRegressionCV

N = 90
RNG = np.random.default_rng(2)
FRAME = pd.DataFrame(
    {
        "age": RNG.integers(18, 80, N),
        "income": RNG.lognormal(10.0, 0.6, N).round(2),
        "job": RNG.choice(["clerk", "cook", "smith"], N),
        "owner": RNG.random(N) < 0.4,
        "rooms": RNG.integers(0, 4, N) / 2.0,
    }
)
SCORE = (FRAME.age < 35) + (FRAME.job == "cook") - 0.5 * FRAME.owner
TWO = np.where(SCORE + RNG.logistic(size=N) > 0.5, "bad", "good")
THREE = np.where(RNG.random(N) < 0.3, "open", TWO)
GAPS = FRAME.assign(
    income=FRAME.income.where(FRAME.index % 7 > 0),
    job=FRAME.job.where(FRAME.index % 5 > 0),
    owner=FRAME.owner.astype(object).where(FRAME.index % 6 > 0),
    rooms=FRAME.rooms.where(FRAME.index % 8 > 0),
)
NUMBERS = FRAME[["age", "income"]]

KINDS = {
    "tensor(double)": np.float64,
    "tensor(string)": object,
    "tensor(bool)": np.bool_,
}


def run(graph, X):
    """Label and probabilities of a graph."""
    session = onnxruntime.InferenceSession(
        graph.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    inputs = session.get_inputs()
    given = {each.name: (X if each.name == "X" else X[[each.name]]) for each in inputs}
    return session.run(
        None, {each.name: np.asarray(given[each.name], dtype=KINDS[each.type]) for each in inputs}
    )


def agrees(model, graph, X):
    label, probabilities = run(graph, X)
    assert np.array_equal(label, model.predict(X))
    assert np.allclose(probabilities, model.predict_proba(X), rtol=0.0, atol=1e-12)


def model(**options):
    return DRLogisticRegression(0.005, 1.0, feature_costs="std", **options)


@pytest.mark.parametrize("y", [TWO, THREE], ids=["two", "three"])
@pytest.mark.parametrize(
    ("X", "options"),
    [
        (FRAME, {}),
        (pl.from_pandas(FRAME), {}),
        (GAPS, {"missing": "median", "categorical_features": ["job", "owner", "rooms"]}),
        (NUMBERS, {}),
        (FRAME[["job"]], {}),
        (NUMBERS.to_numpy(), {}),
        (FRAME[["age", "rooms"]].to_numpy(), {"categorical_features": [1]}),
    ],
    ids=["frame", "polars", "gaps", "numbers", "text", "array", "array with levels"],
)
def test_our_models(X, options, y):
    fitted = model(**options).fit(X, y)
    graph = drlogit.to_onnx(fitted)
    agrees(fitted, graph, X)


def test_new_levels_and_the_names_of_nothing():
    fitted = model(missing="median").fit(GAPS, TWO)
    graph = drlogit.to_onnx(fitted)
    agrees(fitted, graph, GAPS.assign(job=GAPS.job.where(GAPS.index % 3 > 0, "monk"), rooms=np.nan))
    expected = fitted.predict_proba(GAPS.assign(job=None))
    for nothing in ("", None, np.nan, pd.NA):
        found = run(graph, GAPS.assign(job=pd.Series([nothing] * N, dtype=object)))[1]
        assert np.allclose(found, expected, rtol=0.0, atol=1e-12)
    named = GAPS.assign(job=GAPS.job.replace("cook", "None"))
    fitted = model(missing="median").fit(named, TWO)
    agrees(fitted, drlogit.to_onnx(fitted), named.assign(job="None"))


COLUMNS = make_column_transformer(
    (StandardScaler(), ["age", "income"]),
    (OneHotEncoder(handle_unknown="ignore", sparse_output=False), ["job"]),
)


@pytest.mark.parametrize(
    "pipeline",
    [
        make_pipeline(COLUMNS, DRLogisticRegression(0.01)),
        make_pipeline(COLUMNS, DRLogisticRegressionCV(2, [1.0], cv=2)),
        GridSearchCV(make_pipeline(COLUMNS, DRLogisticRegression()),
                     {"drlogisticregression__epsilon": [0.01, 0.02]}, cv=2),
    ],
    ids=["fit", "CV", "search"],
)  # fmt: skip
def test_pipelines(pipeline):
    X = FRAME[["age", "income", "job"]]
    fitted = pipeline.fit(X, TWO)
    agrees(fitted, drlogit.to_onnx(fitted, X), X)


def test_what_cannot_be_converted(monkeypatch):
    with pytest.raises(NotFittedError):
        drlogit.to_onnx(model())
    fitted = model().fit(FRAME, TWO)
    noisy = model(label_noise=0.1).fit(FRAME, TWO)
    with pytest.raises(ValueError, match="do not know of label_noise"):
        drlogit.to_onnx(noisy)
    pipeline = make_pipeline(StandardScaler(), model()).fit(NUMBERS, TWO)
    with pytest.raises(ValueError, match="X must be some rows that Pipeline takes"):
        drlogit.to_onnx(pipeline)
    monkeypatch.setitem(sys.modules, "skl2onnx", None)
    with pytest.raises(ImportError, match=r"pip install 'drlogit\[onnx\]'"):
        drlogit.to_onnx(fitted)
