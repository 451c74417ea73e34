"""Raw tables in files: text, gaps and spellings mean the same on the command line and in Python."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from drlogit import DRLogisticRegression, load_model

pytestmark = pytest.mark.slow

#: Texts that stand for no value in a file.
MISSING_MARKS = ("", "?", "NA", "N/A", "NaN", "NULL", "nan", "null", "<NA>", "#N/A")

RNG = np.random.default_rng(11)
N = 60
FRAME = pd.DataFrame(
    {
        "age": RNG.integers(18, 90, N).astype(float),
        "job": RNG.choice(["clerk", "cook", "none"], N),
        "code": RNG.choice(["01", "2", "3"], N),
        "member": RNG.choice(["f", "t"], N),
        "name": [f"n{k}" for k in range(N)],
    }
)
FRAME["income"] = np.where(
    FRAME.age + 20 * (FRAME.job == "cook") + RNG.normal(0, 20, N) > 55, "high", "low"
)
HOLES = FRAME.assign(age=FRAME.age.where(FRAME.index % 7 > 0), job=FRAME.job.where(FRAME.index > 5))
FIT = "--target income --missing median --epsilon 0.05 --tol 1e-7"


def spelt(frame):
    """The frame as text, with gaps spelt in every way."""
    marks = iter(np.resize(MISSING_MARKS, frame.size).tolist())
    return frame.map(lambda value: next(marks) if pd.isna(value) else value)


@pytest.mark.filterwarnings("ignore:levels are new:UserWarning")
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_table_with_gaps_is_the_same_here_and_there(kind, folder, answer):
    """Also for rows with levels and gaps that the fit did not have."""
    served = HOLES.iloc[::-1].assign(member="never seen", code="7.0")
    for name, frame in (("holes", HOLES), ("served", served)):
        if kind == "csv":
            spelt(frame).to_csv(f"{name}.csv", index=False)
        else:
            frame.to_parquet(f"{name}.parquet", index=False)
    answer(f"fit holes.{kind} {FIT} --drop name --categorical code --quiet -o m.json")
    model, X = load_model("m.json"), HOLES.drop(columns=["income", "name"])
    expected = DRLogisticRegression(0.05, missing="median", tol=1e-7).fit(X, HOLES.income)
    np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-6)
    table = model.coefficient_table()
    assert table.query("column == 'code'")["level"].tolist() == ["01", "2", "3"]
    assert table["level"].tolist().count("missing") == 1
    assert model.ball_.features.each[0].fill == HOLES.age.median()
    for name, frame in (("holes", HOLES), ("served", served)):
        found = answer(f"predict m.json {name}.{kind} --quiet")
        wanted = model.predict_proba(frame[X.columns])
        np.testing.assert_allclose(found["probabilities"], wanted, atol=1e-12)
