"""Ways into the command line that people try: rare classes, thresholds, other files and options."""

from __future__ import annotations

import io
import json

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import recall_score

from drlogit import cli

pytestmark = pytest.mark.slow

N = 400
RNG = np.random.default_rng(5)
ILL = np.arange(N) % 16 == 0
TABLE = pd.DataFrame(
    {
        "age": RNG.normal(50.0, 10.0, N) + 12.0 * ILL,
        "dose": RNG.normal(0.0, 1.0, N) + 1.5 * ILL,
        "ward": RNG.choice(["north", "south"], N),
        "state": np.where(ILL, "ill", "well"),
    }
)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    TABLE.to_csv("table.csv", index=False)
    return tmp_path


@pytest.fixture
def run(capsys):
    """Run a command; returns its code and what it printed to both streams."""

    def called(command, *more):
        capsys.readouterr()
        return cli.main([*command.split(), *more]), *capsys.readouterr()

    return called


FIT = "fit table.csv --tolerate labels=0.03,age=8 -o model.json"

# --- rare classes ---------------------------------------------------------------------------


def test_wherever_an_error_is_printed_each_class_and_the_constant_model_are(run):
    _, fitted, said = run(f"{FIT} --holdout 0.4")
    assert fitted.count("recall by class       ill 0.0%, well 100.0%") == 2
    assert fitted.count("accuracy 93.8% (always well)") == 2
    assert said.count("class 'ill' is almost never predicted") == 1
    for command in ("evaluate", "guarantee", "audit"):
        _, out, err = run(f"{command} model.json table.csv")
        assert "recall by class       ill 0.0%, well 100.0%" in out
        assert "constant model        log-loss 0.2338, accuracy 93.8% (always well)" in out
        assert (out + err).count("class 'ill' is almost never predicted") == 1
        found = json.loads(run(f"{command} model.json table.csv --json")[1])
        if command == "audit":
            found = found["classes"]["model.json"]
        assert found["recall"] == {"ill": 0.0, "well": 1.0}
        assert found["constant_model"]["accuracy"] == 0.9375
    tuned = run("tune table.csv --standardize --epsilons 2 --kappas 1")[1]
    assert "recall by class" in tuned


def test_a_threshold_of_the_positive_class_finds_it(run):
    run(f"{FIT} --positive ill")
    _, out, _ = run("predict model.json table.csv --threshold 0.15")
    found = pd.read_csv(io.StringIO(out))
    assert [*found] == ["prediction", "probability_ill"]
    np.testing.assert_array_equal(found.prediction == "ill", found.probability_ill >= 0.15)
    recall = recall_score(TABLE.state, found.prediction, pos_label="ill")
    assert recall > 0.5
    report = json.loads(run("evaluate model.json table.csv --threshold 0.15 --json")[1])
    assert report["recall"]["ill"] == pytest.approx(recall)
    for wrong in ("0", "1.5"):
        code, _, said = run(f"predict model.json table.csv --threshold {wrong}")
        assert code == cli.BAD_INPUT
        assert "--threshold must lie between 0 and 1" in said


def test_the_positive_class_is_named(run):
    _, out, said = run("fit table.csv --standardize --positive ill -o model.json --json")
    assert "positive class: ill" in said
    assert json.loads(out)["positive"] == "ill"
    assert "probability_ill" in run("predict model.json table.csv")[1]
    run("fit table.csv --standardize -o other.json")
    ours, others = (
        pd.read_csv(io.StringIO(run(f"predict {name} table.csv")[1])).iloc[:, 1]
        for name in ("model.json", "other.json")
    )
    np.testing.assert_allclose(ours, 1.0 - others, atol=1e-6)
    code, _, said = run("fit table.csv --standardize --positive sick")
    assert (code, "'sick' is no label" in said) == (cli.BAD_INPUT, True)
    paths = [
        json.loads(run(f"path table.csv --standardize --epsilons 0.05 --json {more}")[1])["radii"]
        for more in ("", "--positive ill")
    ]
    plain, other = (np.array(found[0]["coefficients"]) for found in paths)
    np.testing.assert_allclose(plain, -other)
