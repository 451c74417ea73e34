"""Raw tables in files: text, gaps and spellings mean the same on the command line and in Python."""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from drlogit import DRLogisticRegression, cli, load_model, save_model

pytestmark = pytest.mark.slow

#: Some of the texts that stand for no value in a file.
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


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    FRAME.to_csv("table.csv", index=False)
    HOLES.to_csv("holes.csv", index=False)
    HOLES.to_parquet("holes.parquet")
    return tmp_path


def run(command, capsys):
    code = cli.main([*command.split(), "--json"])
    out, err = capsys.readouterr()
    return code, json.loads(out) if out else None, err


def test_text_is_a_category_and_said_once(folder, capsys):
    code, _, err = run("fit table.csv --target income -o model.json", capsys)
    assert code == cli.Exit.DONE
    assert err.count("column 'name' is ignored because it looks like a row identifier") == 1
    model = load_model("model.json")
    levels = model.coefficient_table().query("column == 'job'")["level"]
    assert levels.tolist()[:3] == ["clerk", "cook", "none"]


def test_codes_that_look_like_numbers_keep_their_spelling(folder, capsys):
    fit = "fit table.csv --target income --drop name --categorical code -o m.json"
    assert run(fit, capsys)[0] == cli.Exit.DONE
    model = load_model("m.json")
    levels = model.coefficient_table().query("column == 'code'")["level"]
    assert levels.tolist() == ["01", "2", "3"]
    only = FRAME[FRAME.code == "01"]
    only.to_csv("only.csv", index=False)  # where all of the column looks like a number
    assert run("predict m.json only.csv -o p.csv", capsys)[0] == cli.Exit.DONE
    expected = model.predict_proba(only.drop(columns=["income", "name"]))[:, 1]
    with open("p.csv") as file:
        found = [float(row["probability_low"]) for row in csv.DictReader(file)]
    assert found == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("file", ["holes.csv", "holes.parquet"])
def test_gaps(folder, capsys, file):
    code, _, err = run(f"fit {file} --target income", capsys)
    assert code == cli.Exit.BAD_INPUT
    assert "of column 'age': fit an estimator with missing='median'" in err
    command = f"fit {file} --target income --missing median"
    assert run(f"{command} -o m.json", capsys)[0] == cli.Exit.DONE
    model = load_model("m.json")
    assert model.ball_.features.each[0].fill == HOLES.age.median()
    assert model.coefficient_table()["level"].tolist().count("missing") == 1
    assert model.ball_.feature_costs["age"] > 0.0


# --- real tables, into which gaps, spelt in many ways, and new levels are put ---------------

_FOLDER = Path(os.environ.get("DRLOGIT_DATA", ""))
_TABLES = sorted(
    path for folder in ("tables", "shift") for path in (_FOLDER / folder).glob("*.csv.bz2")
)

#: Rows to fit, and all with those to serve: levels are rare, and fits quick.
_FITTED, _ROWS = 90, 180

#: How often each table is spoilt, and levels that training did not show.
_SEEDS = 2
_NEW_LEVELS = ("never seen", " A ", "true", "7.0", "007", "none")


def rows_of(path, rng):
    """Some rows of two classes, as text, and the name of the column of the labels."""
    table = pd.read_csv(path, dtype=str, keep_default_na=False, nrows=3000)
    target = table.columns[0 if path.name.startswith("spect") else -1]
    labels = table[target].value_counts().index[:2]
    table = table[table[target].isin(labels)].sample(frac=1.0, random_state=rng)[:_ROWS]
    table.iloc[:2, table.columns.get_loc(target)] = labels
    return table.reset_index(drop=True), target


def spoilt(table, target, rng, marks, new_level):
    """Gaps in some columns, and a level that training did not show in some of text."""
    table = table.copy()
    for name in table.columns.drop(target):
        if rng.random() < 0.5:
            gaps = rng.random(len(table)) < 0.1
            table.loc[gaps, name] = rng.choice(marks, int(gaps.sum()))
        there = table[name][~table[name].isin(MISSING_MARKS)]
        text = pd.to_numeric(there, errors="coerce").isna().any()
        if new_level and text and rng.random() < 0.3:
            table.loc[rng.random(len(table)) < 0.1, name] = new_level
    return table


@pytest.mark.skipif(not _TABLES, reason="DRLOGIT_DATA names no folder with real tables")
@pytest.mark.filterwarnings("ignore")  # of such tables there is much to be said
@pytest.mark.parametrize("seed", range(_SEEDS))
@pytest.mark.parametrize("path", _TABLES, ids=lambda path: path.name.split(".")[0])
def test_both_serve_alike(path, seed, tmp_path, capsys):
    """A model that was fitted here or there, by both."""
    rng = np.random.default_rng([seed, _TABLES.index(path)])
    marks = rng.choice(MISSING_MARKS, rng.integers(1, 6), replace=False)
    table, target = rows_of(path, rng)
    files = [tmp_path / "fitted.csv", tmp_path / "served.csv"]
    spoilt(table[:_FITTED], target, rng, marks, "").to_csv(files[0], index=False)
    new_level = rng.choice(_NEW_LEVELS)
    spoilt(table[_FITTED:], target, rng, marks, new_level).to_csv(files[1], index=False)

    options = "--missing median --epsilon 0.05 --tol 1e-3 --quiet"
    models = [tmp_path / "ours.json", tmp_path / "theirs.json"]
    command = ["fit", str(files[0]), "--target", target, *options.split(), "-o", str(models[0])]
    assert cli.main(command) in (cli.Exit.DONE, cli.Exit.NOT_CONVERGED), capsys.readouterr().err
    frame = pd.read_csv(files[0], na_values=["?"])
    estimator = DRLogisticRegression(0.05, missing="median", tol=1e-3)
    save_model(estimator.fit(frame.drop(columns=target), frame[target]), models[1])
    for file in models:
        model = load_model(file)
        for data in files:
            code = cli.main(["predict", str(file), str(data), "--json"])
            out, err = capsys.readouterr()
            assert code == cli.Exit.DONE, err
            rows = pd.read_csv(data, na_values=["?"])[
                [str(name) for name in model.feature_names_in_]
            ]
            found = json.loads(out)
            assert np.abs(model.predict_proba(rows) - found["probabilities"]).max() < 1e-12
            predicted = [str(label) for label in model.predict(rows)]
            assert predicted == [str(label) for label in found["predictions"]]
