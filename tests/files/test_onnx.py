"""ONNX graphs predict what our models do, run by onnxruntime."""

from __future__ import annotations

import sys

import numpy as np
import onnxruntime
import pandas as pd
import polars as pl
import pytest
import skl2onnx
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
    "tensor(float)": np.float32,
    "tensor(string)": object,
    "tensor(bool)": np.bool_,
}


def run(graph, X):
    """Label and probabilities of a graph."""
    session = onnxruntime.InferenceSession(
        graph.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    inputs = session.get_inputs()
    given = {each.name: (X[[each.name]] if hasattr(X, "columns") else X) for each in inputs}
    return session.run(
        None, {each.name: np.asarray(given[each.name], dtype=KINDS[each.type]) for each in inputs}
    )


def agrees(model, graph, X, tolerance=1e-12):
    label, probabilities = run(graph, X)[:2]
    assert np.array_equal(label, model.predict(X))
    assert np.allclose(probabilities, model.predict_proba(X), rtol=0.0, atol=tolerance)


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
    graph = drlogit.to_onnx(fitted, NUMBERS if X is NUMBERS else None)
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


def test_by_way_of_skl2onnx():
    drlogit.register_onnx()
    X = NUMBERS.to_numpy()
    fitted = model().fit(X, TWO == "bad")
    single = skl2onnx.to_onnx(fitted, X[:1].astype(np.float32), options={"zipmap": False})
    agrees(fitted, single, X, 1e-6)
    assert run(single, X)[1].dtype == np.float32
    listed = run(skl2onnx.to_onnx(fitted, X[:1]), X)[1]
    assert listed[0][1] == pytest.approx(fitted.predict_proba(X)[0, 1], abs=1e-6)


def test_what_cannot_be_converted(monkeypatch):
    with pytest.raises(NotFittedError):
        drlogit.to_onnx(model())
    fitted = model().fit(FRAME, TWO)
    pipeline = make_pipeline(StandardScaler(), model()).fit(NUMBERS, TWO)
    with pytest.raises(ValueError, match="X must be some rows that Pipeline takes"):
        drlogit.to_onnx(pipeline)
    types = [(name, skl2onnx.common.data_types.DoubleTensorType([None, 1])) for name in FRAME]
    with pytest.raises(ValueError, match="column 'job' must be text in ONNX, got numbers"):
        skl2onnx.to_onnx(fitted, initial_types=types)
    with pytest.raises(ValueError, match="table of 5 columns must have as many inputs"):
        skl2onnx.to_onnx(fitted, initial_types=types[:3])
    monkeypatch.setitem(sys.modules, "skl2onnx", None)
    with pytest.raises(ImportError, match=r"pip install 'drlogit\[onnx\]'"):
        drlogit.to_onnx(fitted)
