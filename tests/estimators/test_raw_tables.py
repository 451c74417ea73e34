"""Files of raw tables through the command line: text, gaps, costs and bounds by name."""

from __future__ import annotations

import csv
import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from drlogit import DRLogisticRegression, cli, load_model, save_model, worst_case_loss
from drlogit.estimators.matrices import matrix_of
from drlogit.estimators.tables.frames import MISSING_MARKS

pytestmark = pytest.mark.slow

RNG = np.random.default_rng(11)
N = 60
FRAME = pd.DataFrame(
    {
        "age": RNG.integers(18, 90, N).astype(float),
        "job": RNG.choice(["clerk", "cook", "none"], N),
        "code": RNG.choice(["01", "2", "3"], N),
        "member": RNG.choice(["f", "t"], N),
    }
)
FRAME["income"] = np.where(
    FRAME.age + 20 * (FRAME.job == "cook") + RNG.normal(0, 20, N) > 55, "high", "low"
)
HOLES = FRAME.assign(age=FRAME.age.where(FRAME.index % 7 > 0), job=FRAME.job.where(FRAME.index > 5))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    FRAME.to_csv("table.csv", index=False)
    HOLES.to_csv("holes.csv", index=False)
    pq.write_table(pa.Table.from_pandas(HOLES), "holes.parquet")
    return tmp_path


def run(command, capsys):
    code = cli.main([*command.split(), "--json"])
    out, err = capsys.readouterr()
    return code, out, err


def test_text_is_a_category_and_said_once(folder, capsys):
    code, out, err = run("fit table.csv --target income -o model.json", capsys)
    assert code == 0
    assert "taken as categories: job (3 levels), member (2 levels)" in err
    assert json.loads(out)["n_features"] == 4
    model = load_model("model.json")
    assert model.encoding_.names[1:4] == ["job=clerk", "job=cook", "job=none"]
    code, out, _ = run("evaluate model.json table.csv", capsys)
    worst = json.loads(out)["worst_case"]["log_loss"]
    assert worst == pytest.approx(model.worst_case_loss_[0], abs=1e-9)
    frame = pd.read_csv("table.csv", keep_default_na=False)
    found = worst_case_loss(
        model, frame[list(model.feature_names_in_)], frame.income, epsilon=0.01, kappa=1.0
    )
    assert found == pytest.approx(worst, abs=1e-9)
    code, out, _ = run("audit model.json table.csv", capsys)
    at = {row["epsilon"]: row["worst_case_loss"] for row in json.loads(out)["models"][0]["rows"]}
    assert at[0.01] == pytest.approx(worst, abs=1e-9)


def test_codes_that_look_like_numbers_keep_their_spelling(folder, capsys):
    assert run("fit table.csv --target income --categorical code -o m.json", capsys)[0] == 0
    model = load_model("m.json")
    levels = {c.name: c.levels for c in model.encoding_.columns}
    assert levels["code"] == ("01", "2", "3")
    only = FRAME[FRAME.code == "01"]
    only.to_csv("only.csv", index=False)  # where all of the column looks like a number
    assert run("predict m.json only.csv -o p.csv", capsys)[0] == 0
    expected = model.predict_proba(only.drop(columns="income").astype({"code": object}))[:, 1]
    with open("p.csv") as file:
        found = [float(row["probability_low"]) for row in csv.DictReader(file)]
    assert found == pytest.approx(expected, abs=1e-12)


MARKED = pd.DataFrame({"job": ["cook", "?", "clerk", "NA"] * 15, "age": range(N)})


def test_marks_of_missing_values_mean_the_same_to_both(folder, capsys):
    labels = np.where((MARKED.job == "?") | (MARKED.index % 5 == 0), "low", "high")
    MARKED.assign(income=labels).to_csv("marked.csv", index=False)
    frame = pd.read_csv("marked.csv")[["job", "age"]]
    assert set(frame.job.dropna()) == {"cook", "clerk", "?"}  # pandas does not know this one
    model = DRLogisticRegression(0.001, feature_costs="std").fit(frame, labels)
    assert model.encoding_.columns[0].levels == ("clerk", "cook", None)
    save_model(model, "ours.json")
    assert run("fit marked.csv --standardize --epsilon 0.001 -o theirs.json", capsys)[0] == 0
    for name in ("ours.json", "theirs.json"):
        document = json.loads((folder / name).read_text())
        assert document["missing_marks"] == [*MISSING_MARKS]
        found = json.loads(run(f"predict {name} marked.csv", capsys)[1])["probabilities"]
        assert load_model(name).predict_proba(frame) == pytest.approx(np.array(found), abs=1e-12)
    plain = model.to_sklearn()
    assert plain.predict_proba(frame) == pytest.approx(model.predict_proba(frame), abs=1e-12)


def test_levels_that_readers_spell_in_other_ways():
    labels = (np.arange(20) + (np.arange(20) % 7 == 0)) % 2
    fitted = pd.DataFrame({"owner": [True, False] * 10, "rooms": ["3", "4"] * 10})
    model = DRLogisticRegression(0.001).fit(fitted, labels)
    served = pd.DataFrame({"owner": ["TRUE", " false", "yes"], "rooms": ["3.0", " 4", "03"]})
    expected = [[0, 1, 1, 0], [1, 0, 0, 1], [0, 0, 0, 0]]
    assert matrix_of(model, served, quiet=True).tolist() == expected
    like = pd.DataFrame({"owner": ["a", " a"] * 10, "rooms": ["1.1", "1.10"] * 10})
    model = DRLogisticRegression(0.001).fit(like, labels)
    served = pd.DataFrame({"owner": ["a", "a "], "rooms": ["1.10", "1.100"]})
    assert matrix_of(model, served, quiet=True).tolist() == [[0, 1, 0, 1], [0, 0, 0, 0]]


@pytest.mark.parametrize("file", ["holes.csv", "holes.parquet"])
def test_gaps(folder, capsys, file):
    code, _, err = run(f"fit {file} --target income", capsys)
    assert code == cli.BAD_INPUT
    assert "numbers are missing (NaN) in column 'age'" in err
    assert "--missing median" in err
    command = f"fit {file} --target income --missing median --standardize --bounds age=0..120"
    assert run(f"{command} -o m.json", capsys)[0] == 0
    model = load_model("m.json")
    age = model.encoding_.columns[0]
    assert age.fill == HOLES.age.median()
    assert model.encoding_.columns[1].levels[-1] is None
    filled = HOLES.age.fillna(age.fill)
    assert model.feature_costs_[0] == pytest.approx(1.0 / filled.std(ddof=0))
    assert (model.bounds_[0][0], model.bounds_[1][0]) == (0.0, 120.0)
    assert run(f"predict m.json {file}", capsys)[0] == 0
