"""New rows that are unlike those of training are scored, and spoken of."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from benchmarks import stated

from drlogit import load_model, save_model

N = 60
RNG = np.random.default_rng(8)
FRAME = pd.DataFrame(
    {
        "age": RNG.integers(18, 80, N).astype(float),
        "income": RNG.normal(3.0, 1.0, N),
        "job": RNG.choice(["clerk", "cook"], N),
    }
)
Y = np.where(FRAME.age + 10.0 * FRAME.income + RNG.normal(0.0, 10.0, N) > 80.0, "yes", "no")
HOLES = FRAME.assign(income=FRAME.income.where(FRAME.index % 3 > 0))


def fitted(frame=FRAME, **options):
    return stated.classifier(0.01, feature_costs="std", **options).fit(frame, Y)


@pytest.mark.parametrize("numbers_only", [False, True])
@pytest.mark.parametrize("kind", [pd.DataFrame, pl.from_pandas])
def test_other_units_are_noticed(kind, numbers_only, tmp_path):
    frame = FRAME[["age", "income"]] if numbers_only else FRAME
    model = fitted(kind(frame))
    save_model(model, tmp_path / "m.json")
    said = r"the range of the training data in column 'age' \(60 of 60 rows, such as .*units"
    for each in (model, load_model(tmp_path / "m.json")):
        with pytest.warns(UserWarning, match=said):
            each.predict(kind(frame.assign(age=12.0 * frame.age)))
        with pytest.warns(UserWarning, match=said):
            each.predict(kind(frame.assign(age=frame.age / 10.0)))
        with pytest.warns(UserWarning, match=r"in column 'age' \(1 of 60 rows, such as 4800"):
            each.predict(kind(frame.assign(age=[4800.0, *frame.age[1:]])))
        each.predict(kind(frame.assign(age=1.3 * frame.age)))  # without a word
        each.predict(kind(frame.assign(age=[170.0, *frame.age[1:]])))  # a long tail


def test_a_constant_column_and_matrices_have_no_range():
    with pytest.warns(UserWarning, match="'income' is constant"):
        model = fitted(FRAME.assign(income=1.0))
    model.predict(FRAME.assign(income=9.0))
    # An array of objects, of which some are levels.
    mixed = FRAME.assign(code=np.resize(["x", "y"], len(FRAME))).to_numpy()
    levels = fitted(mixed, categorical_features=[2, 3])
    mixed[:, 3] = "new"
    with pytest.warns(UserWarning, match="levels are new in column 3"):
        levels.predict(mixed)
    numbers = FRAME[["age", "income"]].to_numpy()
    fitted(numbers).predict(100.0 * numbers)


def test_a_column_that_is_empty_now_is_noticed():
    model = fitted(HOLES, missing="median")
    with pytest.warns(UserWarning, match="none of 60 rows has a value in column 'income'"):
        model.predict(HOLES.assign(income=np.nan))
    with pytest.warns(UserWarning, match="none of 60 rows has a value in column 'job'"):
        model.predict(HOLES.assign(job=None))
    # A third was missing in training: of two rows nobody can tell.
    model.predict(HOLES.assign(income=np.nan)[:2])
    with pytest.warns(UserWarning, match="none of 1 rows has a value in column 'age'"):
        model.predict(HOLES.assign(age=np.nan)[:1])


def test_columns_that_training_did_not_have_are_passed_over():
    model = fitted()
    more = FRAME.assign(label=Y, row=range(N))
    more.insert(0, "id", "x")
    for kind in (pd.DataFrame, pl.from_pandas):
        np.testing.assert_array_equal(
            fitted(kind(FRAME)).predict_proba(kind(more)), model.predict_proba(FRAME)
        )
    numbers = fitted(FRAME[["age", "income"]])
    np.testing.assert_array_equal(
        numbers.predict_proba(more), numbers.predict_proba(FRAME[["age", "income"]])
    )
    with pytest.raises(ValueError, match="feature names"):  # none is missing, none is moved
        model.predict(more.drop(columns="age"))
    with pytest.raises(ValueError, match="order"):
        model.predict(more[["income", "age", "job", "id"]])


def test_new_levels_are_counted():
    model = fitted()
    some = FRAME.assign(job=["monk", "monk", *FRAME.job[2:]])
    with pytest.warns(UserWarning, match=r"levels are new in column 'job' \(2 of 60 rows.*'monk'"):
        model.predict(some)
