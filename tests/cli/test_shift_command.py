"""drlogit shift: the record in words, as JSON and as a page."""

import json
import shlex

import numpy as np
import pandas as pd
import pytest

from drlogit import cli

pytestmark = pytest.mark.slow


@pytest.fixture
def folder(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    monkeypatch.chdir(tmp_path)
    for name, moved in (("fit", 0.0), ("old", 0.0), ("new", 0.8)):
        age = rng.normal(50 + 20 * moved, 10, 300).round()
        job = rng.choice(["clerk", "cook"], 300)
        risk = (age - 50) / 10 * (1 - 2 * moved) + (job == "cook")
        label = np.where(risk + rng.logistic(size=300) > 0, "bad", "good")
        frame = pd.DataFrame({"age": age, "job": job, "y": label})
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
    frame.drop(columns="y").to_csv(tmp_path / "unlabelled.csv", index=False)
    tolerated = "labels=0.02,age=1,categories=0.05"
    assert run(f"fit fit.csv --target y --tolerate {tolerated} -o m.json --quiet") == 0
    return tmp_path


def run(command):
    return cli.main(shlex.split(command))


def test_a_shift_is_told_in_words(folder, capsys):
    assert run("shift m.json old.csv new.csv") == 0
    out = capsys.readouterr().out
    assert "times the declared radius" in out
    assert "Columns that moved most, in declared radii: age" in out


def test_a_shift_as_json_and_without_labels(folder, capsys):
    assert run("shift m.json old.csv new.csv --json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["multiple"] > 1.0
    assert found["features"][0]["feature"] == "age"
    assert run("shift m.json old.csv unlabelled.csv --unlabelled --json") == 0
    blind = json.loads(capsys.readouterr().out)
    assert blind["epsilon"] is None
    assert blind["loss_ref"] != blind["expected_loss"] < found["loss_new"]
