"""Parts of the rows on the command line: tune --parts and audit --new."""

import json
import shlex

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import LeaveOneGroupOut

import drlogit
from drlogit import cli

pytestmark = pytest.mark.slow


@pytest.fixture
def table(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    monkeypatch.chdir(tmp_path)
    place = np.repeat(["a", "b", "c", "d"], 60)
    x = rng.standard_normal((240, 2))
    slope = np.repeat([2.0, 1.0, 2.5, 1.5], 60)
    y = np.where(slope * x[:, 0] + rng.logistic(size=240) > 0, "yes", "no")
    frame = pd.DataFrame({"u": x[:, 0], "v": x[:, 1], "place": place, "y": y})
    frame.to_csv("all.csv", index=False)
    frame[frame["place"] != "d"].drop(columns="place").to_csv("old.csv", index=False)
    frame[frame["place"] == "d"].drop(columns="place").to_csv("new.csv", index=False)
    return frame


def run(command):
    return cli.main(shlex.split(command))


def test_tune_leaves_each_part_out(table, capsys):
    assert run("tune all.csv --parts place --epsilons 3 --kappas 1, --json") == cli.DONE
    found = json.loads(capsys.readouterr().out)
    X, y = table[["u", "v"]], table["y"]
    search = drlogit.DRLogisticRegressionCV(3, [1.0], cv=LeaveOneGroupOut())
    search.fit(X, y, groups=table["place"])
    assert found["cv_results"]["mean_test_score"] == pytest.approx(
        search.cv_results_["mean_test_score"], abs=1e-6
    )
    assert "which ignores differences between parts" in found["guarantee"]["assumed"]
    assert run("tune all.csv --parts place --shuffle") == cli.BAD_INPUT
    assert "--parts needs a data file" in capsys.readouterr().err


def test_a_guarantee_pools_parts_and_says_so(table):
    X, y = table[["u", "v"]], table["y"]
    model = drlogit.DRLogisticRegression(0.02, 1.0).fit(X, y)
    found = drlogit.guarantee(model, X, y, cv=LeaveOneGroupOut(), parts=table["place"])
    assert found.folds == 4
    assert "which ignores differences between parts" in str(found)
    with pytest.raises(ValueError, match="parts needs a splitter"):
        drlogit.guarantee(model, X, y, parts=table["place"])


def test_an_audit_shows_how_far_new_samples_moved(table, tmp_path, capsys):
    assert run("fit old.csv --epsilon 0.02 -o m.json --quiet") == cli.DONE
    capsys.readouterr()
    assert run("audit m.json old.csv --new new.csv -o page.html") == cli.DONE
    out = capsys.readouterr().out
    assert "New samples, new.csv" in out
    assert "reference rows" in out
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "How far have the data moved?" in page
