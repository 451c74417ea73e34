"""Ways into the command line that people try: rare classes, thresholds, other files and options."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import recall_score

from drlogit import cli

pytestmark = pytest.mark.slow

N = 400
RNG = np.random.default_rng(5)
ILL = np.arange(N) % 20 == 0
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
    assert fitted.count("accuracy 95.0% (always well)") == 2
    assert said.count("class 'ill' is almost never predicted") == 1
    _, out, err = run("audit model.json table.csv")
    assert "recall by class       ill 0.0%, well 100.0%" in out
    assert "constant model        log-loss 0.1985, accuracy 95.0% (always well)" in out
    assert (out + err).count("class 'ill' is almost never predicted") == 1
    found = json.loads(run("audit model.json table.csv --json")[1])["classes"]["model.json"]
    assert found["recall"] == {"ill": 0.0, "well": 1.0}
    assert found["constant_model"]["accuracy"] == pytest.approx(0.95)


def test_a_threshold_of_the_positive_class_finds_it(run):
    run("fit table.csv --standardize --epsilon 0.02 --positive ill -o model.json")
    _, out, _ = run("predict model.json table.csv --threshold 0.15")
    found = pd.read_csv(io.StringIO(out))
    assert [*found] == ["prediction", "probability_ill"]
    np.testing.assert_array_equal(found.prediction == "ill", found.probability_ill >= 0.15)
    assert recall_score(TABLE.state, found.prediction, pos_label="ill") > 0.5
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
    assert (code, "has no label 'sick'" in said) == (cli.BAD_INPUT, True)


# --- contradictions -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "others",
    ["--epsilon 0.3", "--kappa 9", "--epsilon 0.01", "--standardize", "--immovable age",
     "--feature-costs age=2", "--kappa-column dose"],
)  # fmt: skip
def test_tolerances_and_what_they_state_exclude_each_other(others, run):
    code, _, said = run(f"fit table.csv --tolerate labels=0.03 {others}")
    assert code == cli.BAD_INPUT
    option = others.split()[0]
    assert f"--tolerate determines epsilon, kappa and all costs, so it excludes {option}:" in said


# --- other files ----------------------------------------------------------------------------


def test_decimal_commas_and_other_encodings(run):
    TABLE.assign(ward=TABLE.ward.replace("south", "süd")).to_csv(
        "europe.csv", sep=";", decimal=",", index=False, encoding="latin1"
    )
    code, _, said = run("fit europe.csv -o model.json")
    assert (code, "name the encoding with --encoding latin1" in said) == (cli.BAD_INPUT, True)
    code, _, said = run("fit europe.csv --encoding latin1 -o model.json")
    assert (code, "state --decimal ," in said) == (cli.BAD_INPUT, True)
    read = "--encoding latin1 --decimal ,"
    _, out, _ = run(f"fit europe.csv {read} --standardize -o model.json --json")
    _, plain, _ = run("fit table.csv --standardize --json")
    assert json.loads(out)["fits"][0]["objective"] == pytest.approx(
        json.loads(plain)["fits"][0]["objective"], abs=1e-9
    )
    assert run(f"predict model.json europe.csv {read}")[0] == cli.DONE
    # A gap and a slip make text of the column, whose numbers still have commas.
    gaps = TABLE.dose.map("{:.3f}".format).str.replace(".", ",").where(TABLE.index > 3, "?")
    TABLE.assign(dose=gaps).to_csv("gaps.csv", sep=";", index=False)
    _, _, said = run("fit gaps.csv --decimal , --standardize --missing median -o model.json")
    assert "categories: ward (2 levels)\n" in said
    with pytest.raises(SystemExit):
        run("fit europe.csv --encoding klingon")


def test_numbers_without_names_and_with_decimal_commas(run):
    table = TABLE.assign(ward=1.5, state=ILL.astype(int)).round(3)
    table.to_csv("bare.csv", sep=";", decimal=",", index=False, header=False)
    _, out, said = run("fit bare.csv --decimal , --standardize -o model.json --json")
    assert "400 rows, 3 features" in said
    assert json.loads(out)["classes"] == [0, 1]


def test_standard_input(run, monkeypatch):
    def given(data):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))

    text = TABLE.reset_index().to_csv(index=False).encode()
    given(text)
    code, out, said = run("fit - --drop index --standardize -o model.json --json")
    assert code == cli.DONE
    assert said.startswith("standard input: 400 rows, 3 features")
    objective = json.loads(out)["fits"][0]["objective"]
    plain = json.loads(run("fit table.csv --standardize --json")[1])["fits"][0]["objective"]
    assert objective == pytest.approx(plain, abs=1e-9)
    given(text)
    ids = pd.read_csv(io.StringIO(run("predict model.json - --id index")[1]))["index"]
    assert [*ids] == [*range(N)]
    given(b"")
    assert "standard input is empty" in run("predict model.json -")[2]


@pytest.mark.parametrize("kind", ["csv", "parquet", "libsvm"])
def test_rows_that_were_held_out_are_written_and_read_again(kind, run):
    table = TABLE.assign(w=2)
    data, out = f"data.{kind}", "held.csv"
    if kind == "csv":
        table.to_csv(data, index=False)
    elif kind == "parquet":
        table.to_parquet(data)
    else:
        out = "held.libsvm"
        lines = [f"{int(ill)} 1:{age} 3:{dose}" for ill, age, dose in zip(
            ILL, TABLE.age, TABLE.dose, strict=True)]  # fmt: skip
        with open(data, "w", encoding="utf-8") as file:
            file.write("\n".join(lines))
    weights = "" if kind == "libsvm" else "--weights w"
    command = f"fit {data} --epsilon 0.3 --holdout 0.3 {weights} -o model.json --json"
    promised = json.loads(run(f"{command} --holdout-out {out}")[1])["guarantee"]
    again = json.loads(run(f"audit model.json {out} {weights} --unseen --json")[1])
    assert again["guarantees"]["model.json"]["n"] == promised["n"]
    run(f"{command} --holdout-out other --seed 5")
    assert Path("other").read_text("utf-8") != Path(out).read_text("utf-8")


def test_rows_without_names_and_without_a_holdout_cannot_be_written(run):
    assert (
        "--holdout-out needs --holdout with a share"
        in run("fit table.csv --holdout-out held.csv")[2]
    )
    TABLE[["age", "dose"]].assign(y=1 * ILL).to_csv("bare.csv", index=False, header=False)
    said = run("fit bare.csv --holdout 0.2 --holdout-out held.csv")[2]
    assert "the columns of bare.csv have no names" in said


# --- what is said ---------------------------------------------------------------------------


def test_options_that_are_misspelt(run, capsys):
    for given, meant in (("--epsilom 0.1", "--epsilon"), ("--standardise", "--standardize"),
                         ("--toleratte=labels=1", "--tolerate")):  # fmt: skip
        with pytest.raises(SystemExit) as stop:
            run(f"fit table.csv {given}")
        assert stop.value.code == cli.USAGE
        assert f"did you mean {meant}?" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        run("fit table.csv --qqqqqqq")
    assert "did you mean" not in capsys.readouterr().err


def test_rows_unlike_training_are_told_once(run):
    run("fit table.csv --standardize -o model.json")
    TABLE.assign(age=12.0 * TABLE.age).to_csv("months.csv", index=False)
    for command in ("predict", "audit"):
        said = run(f"{command} model.json months.csv")[2]
        assert said.count("far outside the range of the training data in column 'age'") == 1
