"""The commands that work on files, from data to model to decisions."""

from __future__ import annotations

import io
import re
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import dump_svmlight_file, load_iris

import drlogit
from drlogit import cli
from patients import TABLE

pytestmark = pytest.mark.slow

X, Y = TABLE[:250].drop(columns="state"), TABLE.state[:250].to_numpy()
X_KEPT, Y_KEPT = TABLE[250:].drop(columns="state"), TABLE.state[250:].to_numpy()
FIT = "fit fitted.csv --target state"


# --- fit ------------------------------------------------------------------------------------


def test_fit_says_what_it_did(run):
    code, out, err = run(f"{FIT} --positive ill --tolerate labels=0.02 age=2")
    assert code == cli.Exit.DONE
    assert "fitted.csv: 250 rows, 3 features; labels: ill (" in err
    assert "positive class: ill (--positive names another)" in err
    assert "p to 2 % of" in out
    assert re.search(r"worst-case log-loss +0\.\d{7}\n +no model is below +0\.", out)
    assert "The model was not written. To keep it, add -o model.json" in out


@pytest.mark.parametrize(
    ("options", "settings", "warned"),
    [
        ("", {}, None),
        ("--epsilon 0.1 --kappa 2 --norm linf", {"epsilon": 0.1, "kappa": 2, "norm": "linf"}, None),
        ("--kappa ill=9 well=inf", {"kappa": {"ill": 9.0, "well": np.inf}}, None),
        ("--weights dose2", {"weighted": True}, None),
        ("--class-weight balanced", {"class_weight": "balanced"}, None),
        ("--max-iter 2", {"max_iter": 2}, "stopped at max_iter before"),
    ],
)
def test_a_fit_is_that_of_the_estimator(options, settings, warned, folder, run):
    """The same model, the same warnings, and a code that says whether it converged."""
    TABLE[:250].assign(dose2=TABLE.dose**2).to_csv("weighted.csv", index=False)  # beside a column
    weights = TABLE.dose[:250].to_numpy() ** 2 if settings.pop("weighted", False) else None
    data = "weighted.csv" if weights is not None else "fitted.csv"
    code, _, err = run(f"fit {data} --target state {options} -o options.json")
    ball = drlogit.Ball(**{k: v for k, v in settings.items() if k in BALL})
    others = {k: v for k, v in settings.items() if k not in BALL}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        expected = drlogit.DRLogisticRegression(ball=ball, **others)
        expected.fit(X, Y, sample_weight=weights)
    said = [line for line in err.splitlines() if "warning: " in line]
    assert said == [f"drlogit: warning: {' '.join(str(each.message).split())}" for each in caught]
    assert any(warned in line for line in said) if warned else not caught
    assert code == (cli.Exit.DONE if expected.dual_gap_ <= expected.tol else cli.Exit.NOT_CONVERGED)
    model = drlogit.load_model(folder / "options.json")
    for name in ("coef_", "intercept_", "worst_case_loss_"):
        np.testing.assert_allclose(getattr(model, name), getattr(expected, name), atol=1e-9)


BALL = ("epsilon", "kappa", "norm")


def test_tolerances_in_parts(answer):
    """Epsilon beside tolerances is a multiple of them; 1.0 names the label 1."""
    once = answer(f"{FIT} --tolerate labels=2% ward=0")
    twice = answer(f"{FIT} --tolerate labels=0.01 ward=0 --tolerate numbers=0.1 --epsilon 2")
    assert (once["epsilon"], once["kappa"]) == (1.0, 50.0)
    assert (twice["epsilon"], twice["kappa"]) == (2.0, 100.0)
    of_class = answer(f"{FIT} --tolerate labels:ill=0.1")["kappa"]
    assert of_class["ill"] == pytest.approx(1.0 / (0.1 * (Y == "ill").mean()))
    assert of_class["well"] == "inf"
    Path("codes.csv").write_text("a,y\n1,0\n2,1\n4,0\n3,1\n", "utf-8")
    assert answer("fit codes.csv --target y --kappa 0=3 1.0=4")["kappa"] == {"0": 3.0, "1": 4.0}


def test_cross_validation_chooses(folder, run, answer):
    found = answer(f"{FIT} --cv 3 -o tuned.json")
    assert 0.0 < found["cv_log_loss"] < 0.6
    assert found["cv_folds"] == 3
    assert drlogit.load_model("tuned.json").epsilon == found["epsilon"]
    assert "chosen on 3 folds: log-loss" in run(f"{FIT} --cv 3")[1]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_rows_that_were_left_out_are_written_and_read_again(kind, folder, run, answer):
    data = f"data.{kind}"
    if kind == "csv":
        TABLE.to_csv(data, index=False)
    else:
        pytest.importorskip("pyarrow")
        TABLE.to_parquet(data)
    command = f"fit {data} --target state --holdout 0.3 held.csv -o held.json --seed"
    assert answer(f"{command} 3")["n_samples"] == 280
    assert len(answer("predict held.json held.csv")["predictions"]) == 120
    held = pd.read_csv("held.csv")
    assert list(held) == list(TABLE)
    assert (held.state == "ill").sum() == 24
    answer(f"{command} 4")
    assert not held.equals(pd.read_csv("held.csv"))


def test_more_than_two_classes(folder, run, answer):
    iris, codes = load_iris(return_X_y=True)
    y = load_iris().target_names[codes]
    pd.DataFrame(iris, columns=[*"abcd"]).assign(kind=y).to_csv("iris.csv", index=False)
    found = answer("fit iris.csv --target kind --tolerate labels=0.01 -o iris.json")
    assert (found["classes"], found["positive"]) == ([*np.unique(y)], None)
    lines = run("predict iris.json iris.csv")[1].splitlines()
    assert lines[0] == "prediction,probability_setosa,probability_versicolor,probability_virginica"
    found = answer("predict iris.json iris.csv")
    frame = pd.DataFrame(iris, columns=[*"abcd"])
    assert found["predictions"] == drlogit.load_model("iris.json").predict(frame).tolist()
    assert answer("audit iris.json iris.csv")["positive"] is None


# --- predict, threshold, the positive class -------------------------------------------------


def test_predictions_are_those_of_the_model(folder, run, answer):
    model = drlogit.load_model("model.json")
    found = answer("predict model.json kept.csv")
    expected = model.predict_proba(X_KEPT)
    assert found["predictions"] == model.predict(X_KEPT).tolist()
    np.testing.assert_allclose(found["probabilities"], expected, atol=1e-12)
    lines = run("predict model.json kept.csv")[1].splitlines()
    assert lines[0] == "prediction,probability_ill"
    assert float(lines[1].split(",")[1]) == pytest.approx(expected[0, 0], abs=1e-12)
    names = ["0001", "NA", *[f"p{k}" for k in range(148)]]
    shuffled = TABLE[250:].assign(patient=names)[["state", "patient", "ward", "age", "dose"]]
    shuffled.to_csv("shuffled.csv", index=False)
    assert run("predict model.json shuffled.csv")[1].splitlines() == lines
    named = run("predict model.json shuffled.csv --id patient")[1].splitlines()
    assert named == [
        f"{name},{line}" for name, line in zip(["patient", *names], lines, strict=True)
    ]


def test_a_model_of_arrays_takes_columns_in_their_order(folder, run):
    model = drlogit.DRLogisticRegression(0.1).fit(X[["age", "dose"]].to_numpy(), Y)
    drlogit.save_model(model, "plain.json")
    TABLE[250:][["age", "dose"]].to_csv("two.csv", index=False)
    code, out, err = run("predict plain.json two.csv")
    assert code == cli.Exit.DONE
    assert "was fitted without feature names, so the columns of two.csv are used in" in err
    expected = model.predict(X_KEPT[["age", "dose"]].to_numpy())
    assert pd.read_csv(io.StringIO(out)).prediction.tolist() == expected.tolist()


def test_the_positive_class_is_the_one_that_was_named_in_every_command(folder, run, answer):
    """The class that sorts first was named, and the cut-off that is stored is for it."""
    said = "threshold model.json kept.csv --cost ill:well=5 well:ill=1"
    _, out, _ = run(said)
    assert out.startswith("Predict 'ill' if its probability is at least ")
    found = answer(f"{said} -o model.json")
    assert found["positive"] == "ill"
    assert found["threshold"] < 0.5
    _, out, err = run("predict model.json kept.csv")
    table = pd.read_csv(io.StringIO(out))
    assert list(table) == ["prediction", "probability_ill"]
    decided = table.prediction == "ill"
    np.testing.assert_array_equal(decided, table.probability_ill >= found["threshold"])
    assert decided[Y_KEPT == "ill"].mean() > 0.7
    assert "ill is predicted from a probability of" in err
    assert "(from drlogit threshold)" in err
    other = pd.read_csv(io.StringIO(run("predict model.json kept.csv --threshold 0.99")[1]))
    assert not (other.prediction == "ill").any()


def test_predictions_are_no_formulas(folder, run):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"@id": ["=cmd|x", "-5", "plain", "+x"] * 8, "a": rng.random(32)})
    frame["y"] = rng.choice(["+", "good"], 32)
    frame.to_csv("risky.csv", index=False)
    assert run("fit risky.csv --target y --drop @id --quiet -o risky.json")[0] == cli.Exit.DONE
    asked = "predict risky.json risky.csv --id @id"
    _, out, err = run(asked)
    lines = [line.split(",") for line in out.splitlines()]
    assert lines[0][:2] == ["'@id", "prediction"]
    assert [line[0] for line in lines[1:5]] == ["'=cmd|x", "-5", "plain", "'+x"]
    assert {line[1] for line in lines[1:]} <= {"'+", "good"}
    assert "texts that begin like a formula have an apostrophe in front" in err
    _, out, err = run(f"{asked} --raw")
    raw = [line.split(",") for line in out.splitlines()]
    assert [line[0] for line in raw[:5]] == ["@id", "=cmd|x", "-5", "plain", "+x"]
    assert {line[1] for line in raw[1:]} <= {"+", "good"}
    assert "apostrophe" not in err


def test_svmlight_files_end_where_they_like(folder, answer):
    rng = np.random.default_rng(0)
    features, y = rng.standard_normal((60, 5)), np.arange(60) % 2
    features[:, 4] *= y
    dump_svmlight_file(features, y, "train.svm", zero_based=True)
    features[:, 4] = 0.0
    dump_svmlight_file(features, y, "short.svm", zero_based=True)
    answer("fit train.svm --zero-based --epsilon 0.01 -o sparse.json")
    found = answer("predict sparse.json short.svm")  # and the model knows that they begin at 0
    model = drlogit.load_model("sparse.json")
    np.testing.assert_allclose(found["probabilities"], model.predict_proba(features), atol=1e-12)


# --- audit, shift ---------------------------------------------------------------------------


def test_an_audit_and_its_page(folder, run):
    code, out, err = run("audit model.json kept.csv --unseen --by ward -o report.html")
    assert (code, "warning" in err) == (cli.Exit.DONE, False)
    assert out.rstrip().endswith("Written: report.html")
    page = Path("report.html").read_text("utf-8")
    assert re.findall(r"<iframe|@import|https?://(?!www\.w3\.org/)", page) == []
    assert "kept.csv" in page
    _, _, err = run("audit model.json fitted.csv --unseen")
    assert "these are the rows that the model was fitted to" in err


def test_several_models_in_one_audit(folder, run, answer):
    answer(f"{FIT} --tolerate labels=0.1 -o other.json")
    assert answer("audit model.json other.json kept.csv")["models"] == ["model.json", "other.json"]
    answer(f"{FIT} --drop ward -o less.json")
    assert "different features" in run("audit model.json less.json kept.csv")[2]


def test_a_shift_with_and_without_labels(folder, run, answer):
    TABLE[250:].assign(age=TABLE.age + 20.0).to_csv("labelled.csv", index=False)
    _, out, _ = run("shift model.json kept.csv labelled.csv")
    assert "age" in out
    seen = answer("shift model.json kept.csv labelled.csv")
    _, _, err = run("shift model.json kept.csv new.csv")
    assert "new.csv has no labels, so the loss there is estimated" in err
    blind = answer("shift model.json kept.csv new.csv")
    assert seen["loss_ref"] == blind["loss_ref"]
    assert seen["loss_new"] != blind["loss_new"]
    assert "kept.csv has no" not in err


# --- progress -------------------------------------------------------------------------------


@pytest.mark.parametrize("terminal", [True, False])
def test_work_is_never_silent(terminal, folder, run, monkeypatch):
    monkeypatch.setattr("drlogit.cli.console._PATIENCE", 0.0)
    monkeypatch.setattr("drlogit.cli.console._EVERY", 0.001)
    monkeypatch.setattr("drlogit.cli.console._EVERY_IN_LOG", 0.001)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    err = run(f"{FIT} --cv 5")[2]
    assert re.search(r"fit: \d of 5 folds, \d s", err)
    assert ("\r" in err) == terminal
    if terminal:  # and nothing is left of it
        assert err.rindex("\r\x1b[K") > err.rindex("fit: ")
    assert "fit:" not in run(f"{FIT} --cv 5 --quiet")[2]
