"""A model says the same in every form: scikit-learn's own, a file."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from benchmarks import stated
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import drlogit
from drlogit import DRLogisticRegressionCV

pytestmark = pytest.mark.filterwarnings(
    "ignore:.* is ignored|levels are new|class .* is almost never:UserWarning",
    "ignore:none of .* rows has a value:UserWarning",
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
NUMBERS = FRAME[["age", "income"]]
LEVELS = {"missing": "median", "categorical_features": ["job", "owner", "rooms"]}

#: What is fitted, what is served, and options.
CASES = {
    "frame": (FRAME, FRAME, {}),
    "polars": (pl.from_pandas(FRAME), pl.from_pandas(FRAME), {}),
    "gaps": (GAPS, GAPS, LEVELS),
    "gaps to serve": (FRAME, GAPS, {"missing": "mean"}),
    "new levels": (GAPS, GAPS.assign(job="monk", rooms=9.0), LEVELS),
    "left out": (FRAME.assign(a=np.nan), FRAME.assign(a=3.0), {"missing": "median"}),
    "numbers": (NUMBERS, NUMBERS, {}),
    "text": (FRAME[["job"]], FRAME[["job"]], {}),
    "array": (NUMBERS.to_numpy(), NUMBERS.to_numpy(), {}),
    "array with levels": (*2 * (GAPS[["income", "rooms"]].to_numpy(),),
                          {"missing": "median", "categorical_features": [1]}),
}  # fmt: skip


def from_file(model, path):
    drlogit.save_model(model, path)
    again = drlogit.load_model(path)
    drlogit.save_model(again, path.with_suffix(".again"))
    assert path.with_suffix(".again").read_bytes() == path.read_bytes()
    assert (again.encoding_ is None) == (model.encoding_ is None)
    if model.encoding_ is not None:
        assert isinstance(model.encoding_, ColumnTransformer)
        names = again.encoding_.get_feature_names_out()
        assert names.tolist() == model.encoding_.get_feature_names_out().tolist()
    return again


FORMS = {"scikit-learn": lambda model, _: model.to_sklearn(), "file": from_file}


def agree(form, model, X):
    assert np.array_equal(form.predict(X), model.predict(X))
    assert np.allclose(form.predict_proba(X), model.predict_proba(X), rtol=0.0, atol=1e-12)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("case", CASES)
def test_every_form_predicts_the_same(case, form, tmp_path):
    fitted, served, options = CASES[case]
    for y in (TWO, THREE):
        model = stated.classifier(0.005, 1.0, feature_costs="std", **options).fit(fitted, y)
        agree(FORMS[form](model, tmp_path / "model.json"), model, served)


def test_a_pipeline_ends_in_the_plain_model():
    scaled = make_pipeline(StandardScaler(), DRLogisticRegressionCV(2, [1.0], cv=2))
    plain = make_pipeline(scaled.fit(NUMBERS, TWO)[0], scaled[-1].to_sklearn())
    agree(plain, scaled, NUMBERS)
