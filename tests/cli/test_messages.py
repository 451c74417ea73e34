"""Mistakes that people make: one line that says what was found, what is expected, and a remedy.

On the command line the remedy is an option.
"""

from __future__ import annotations

import shlex

import numpy as np
import pandas as pd
import pytest

import drlogit
from drlogit import cli
from drlogit.cli.console import as_options, printable


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Tables with one mistake each, and a model."""
    folder = tmp_path_factory.mktemp("mistakes")
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.standard_normal((60, 2)), columns=["age", "dose"])
    table["ill"] = np.where(table["age"] > 0, "yes", "no")
    days = [str(day.date()) for day in pd.date_range("2020", periods=60)]
    spelt = table["ill"].where(table.index % 2 == 0, table["ill"].str.title())
    gap, blank = table.copy(), table.copy()
    gap.loc[3, "age"], blank.loc[3, "ill"] = np.nan, None
    tables = {
        "good": table,
        "gap": gap,
        "blank": blank,
        "dates": table.assign(when=days)[["when", *table]],
        "ids": table.assign(id=[f"p{i}" for i in range(60)])[["id", *table]],
        "one": table.assign(ill="yes"),
        "spelt": table.assign(ill=spelt),
        "money": table.assign(age=[f"${i % 30},000" for i in range(60)]),
        "coded": table.assign(ill=table["ill"] == "yes").astype({"ill": int}),
        "weighted": table.assign(w=-1.0)[["w", *table]],
        "new": table.drop(columns="ill"),
    }
    for name, each in tables.items():
        each.to_csv(folder / f"{name}.csv", index=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert cli.main("fit good.csv --epsilon 0.05 -o model.json --quiet".split()) == cli.DONE
    return folder


@pytest.mark.parametrize(
    ("command", "code", "words"),
    [
        ("fit gap.csv", 1, "fit an estimator with --missing median, fill it in, or leave"),
        ("fit blank.csv", 1, "the label of row 4 is missing: fill it in, or leave out rows"),
        ("fit dates.csv", 0, "convert it to a number of days, or leave it out with --drop"),
        ("fit ids.csv", 0, "name it in --categorical to keep it"),
        ("fit one.csv", 1, "a model needs two: name the column of labels with --target"),
        ("fit spelt.csv", 0, "labels No, no, Yes, yes differ only in upper and lower case"),
        ("fit good.csv", 0, "positive class: yes (change it with --positive)"),
        ("fit good.csv --epsilon -1", 1, "--epsilon must be finite and >= 0, got -1.0"),
        ("fit good.csv --kappa 0", 1, "--kappa must be > 0 (inf: labels cannot flip), got 0.0"),
        ("fit weighted.csv --weights w", 1, "--weights must be finite and >= 0, got -1.0"),
        ("fit good.csv --holdout 30", 1, "--holdout must be a share between 0 and 1"),
        ("fit good.csv --tolerate labels=5", 1, "a share from 0 to 1, such as 0.05 for 5 %, got 5"),
        ("fit good.csv --features agee", 1, "no column 'agee' (--features): did you mean 'age'?"),
        ("predict good.csv model.json", 1, "is not a model file written by drlogit fit -o"),
        ("predict model.json good.csv --threshold 2", 1, "--threshold must lie between 0 and 1"),
        ("audit model.json coded.csv", 1, "spell the labels as in the fit, or name another"),
        ("audit model.json good.csv --groups agee", 1, "(--groups): did you mean 'age'?"),
        ("threshold model.json good.csv --max-fpr 30", 1, "--max-fpr must lie between 0 and 1"),
        ("threshold model.json good.csv --costs a:b=1", 1, "such as no:yes=1, got 'a:b'"),
        ("audit model.json good.csv -o report.pdf", 1, "name a file that ends in .html"),
        ("shift model.json good.csv new.csv", 1, "use --unlabelled if the new rows have no labels"),
        ("fitt good.csv", 2, "got 'fitt' (drlogit --help explains the usage)"),
        ("fit", 2, "DATA is missing"),
        ("fit good.csv --epsilom 1", 2, "--epsilom 1: did you mean --epsilon?"),
        ("fit good.csv --epsilon", 2, "--epsilon needs a value"),
        ("fit good.csv --epsilon 0,1", 2, "got '0,1': write decimals with a point"),
        ("fit good.csv --tol x", 2, "--tol must be a number, got 'x'"),
        ("fit good.csv --max-iter x", 2, "--max-iter must be a whole number, got 'x'"),
        ("fit good.csv --norm L2", 2, "--norm must be one of"),
        ("threshold model.json good.csv", 2, "one of --costs --max-fpr --min-precision is missing"),
        ("threshold model.json good.csv --max-fpr 0.1 --costs a:b=1", 2, "exclude each other"),
    ],
)  # fmt: skip
def test_the_remedy_is_an_option(command, code, words, folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    try:
        found = cli.main(shlex.split(command))
    except SystemExit as stop:
        found = stop.code
    said = capsys.readouterr().err
    assert found == code
    assert words in said
    assert "usage:" not in said
    assert "on the command line" not in said
    if code:
        assert said.count("error: ") == 1


def test_options_are_named_where_python_has_parameters():
    given = ["epsilon", "max_fpr"]
    assert as_options("epsilon must be > 0", given) == "--epsilon must be > 0"
    assert as_options("one of max_fpr and epsilon", given) == "one of --max-fpr and epsilon"
    assert as_options("no column 'max_fpr' or max_fpr_x", given).endswith("'max_fpr' or max_fpr_x")
    assert printable("use numbers (--numbers on the command line)") == "use --numbers"


X, Y = np.arange(24.0).reshape(12, 2) % 7, np.arange(12) % 2


@pytest.mark.parametrize(
    ("table", "y", "words"),
    [
        (X, np.where(Y, np.nan, 0.0), "got nan in row 1: fill it in, or leave out such rows"),
        (X, np.array([0, "yes"] * 6, dtype=object), "got 0 (int) and 'yes' (str): convert them"),
        (X, Y * 0, "got one class: 0. Add rows of another class"),
        (pd.DataFrame({"a": [*X[:11, 0], "four"]}), Y, "such as 'four' in row 11: correct it"),
        (pd.DataFrame({"a": pd.date_range("2020", periods=12)}), Y, "to a number of days"),
    ],
)  # fmt: skip
def test_data_that_cannot_be_fitted(table, y, words):
    with pytest.raises(ValueError, match=r"^(y|column 'a') must") as error:
        drlogit.DRLogisticRegression(epsilon=0.1).fit(table, y)
    assert words in str(error.value)


def test_a_misspelt_column_is_recognised():
    frame = pd.DataFrame(X, columns=["age", "dose"])
    model = drlogit.DRLogisticRegression(0.1, feature_costs={"agee": 2.0})
    with pytest.raises(ValueError, match=r"'agee', but X has 'age', 'dose': did you mean 'age'\?"):
        model.fit(frame, Y)
