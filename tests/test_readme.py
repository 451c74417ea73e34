"""The README tells the truth: its commands and its Python run, and print what it says."""

from __future__ import annotations

import shlex
from pathlib import Path

import numpy as np
import pytest
from benchmarks.pipelines import usual
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

import drlogit
import fenced
from drlogit import cli

README = Path(__file__).parent.parent / "README.md"
BLOCKS = fenced.blocks(README)

#: What README has a reader type.
TYPED = [line for language, text in BLOCKS if language == "sh" for line in text.splitlines()]
COMMANDS = [line for line in TYPED if not line.startswith("make ")]


def test_a_clone_comes_first():
    """Nothing that needs a released package does; make itself runs these tests."""
    makefile = (README.parent / "Makefile").read_text(encoding="utf-8")
    assert [line.split("#")[0].strip() for line in TYPED[:2]] == ["make demo", "make test"]
    assert "\ndemo: " in makefile
    assert "\ntest: " in makefile
    assert not [line for line in TYPED if line.startswith("pip ")]


def test_commands_run(tmp_path, monkeypatch, capsys):
    """In order and in one folder, as a reader would paste them."""
    monkeypatch.chdir(tmp_path)
    assert {shlex.split(command)[1] for command in COMMANDS} >= {"fit", "predict", "audit"}
    for command in COMMANDS:
        program, *arguments = shlex.split(command, comments=True)
        assert program == "drlogit"
        assert cli.main(arguments) == cli.Exit.DONE, capsys.readouterr().err
        written = [name for name in arguments if name.endswith((".csv", ".json", ".html", ".npz"))]
        assert [name for name in written if not (tmp_path / name).stat().st_size] == []
        assert capsys.readouterr().out or arguments[0] == "predict"


@pytest.mark.filterwarnings("ignore:columns left the range:UserWarning")
@pytest.mark.filterwarnings("ignore:numbers are outside the range:UserWarning")
@pytest.mark.filterwarnings("ignore:levels are new:UserWarning")
def test_python_runs_and_prints_what_it_says(tmp_path, monkeypatch, capsys):
    """In order and in one session, as a reader would paste it."""
    monkeypatch.chdir(tmp_path)
    assert fenced.run(README, capsys) >= 3


def test_ten_other_splits():
    """What is said of them, of pipeline and robust model: log-loss, and at the worst."""
    table = drlogit.datasets.load_heart_disease()
    home = table[table["hospital"] == "cleveland"].drop(columns="hospital")
    stated = drlogit.Ball.tolerating(labels=0.02, columns={"cholesterol": 10, "age": 1})
    found = []
    for seed in range(1, 11):
        X, X_kept, y, y_kept = train_test_split(
            home.drop(columns="disease"), home["disease"], test_size=0.4, random_state=seed
        )
        robust = drlogit.DRLogisticRegression(ball=stated, missing="median").fit(X, y)
        models = usual(X, LogisticRegression()).fit(X, y), robust
        rows = {"X": X_kept, "y": y_kept, "ball": stated.resolve(X, y)}
        worst = [drlogit.worst_case(model, metric="log_loss", **rows) for model in models]
        found.append([(each.nominal, each.value) for each in worst])
    means = np.round(np.mean(found, axis=0), 3).astype(str)
    (plain, plain_worst), (own, own_worst) = np.char.lstrip(means, "0")
    said = (
        f"the mean log-loss is {plain} for the pipeline and {own} for the robust model, at the "
        f"worst {plain_worst} and {own_worst}"
    )
    assert said in " ".join(README.read_text(encoding="utf-8").split())
