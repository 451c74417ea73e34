"""Mistakes that people make: one line that says what was found, what is expected, and a remedy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from drlogit import cli
from patients import TABLE

pytestmark = pytest.mark.slow

F = "fit fitted.csv"
T = f"{F} --target state"

#: A command, its exit code, and words of what is said.
MISTAKES = [
    (F, 1, "--target must name the column of fitted.csv with the labels: it has age, dose, ward"),
    (f"{F} --target State", 1, "--target names the column 'State', but fitted.csv has 'age'"),
    (f"{T} --drop agee", 1, "'ward', 'state': did you mean 'age'?"),
    (f"{T} --categorical agee", 1, "--categorical-features names the column 'agee'"),
    (f"{T} --weights agee", 1, "--weights names the column"),
    (f"{T} --drop age dose ward", 1, "has no feature: all columns have another use"),
    (f"{T} --positive sick", 1, "--positive must name one of the labels ill, well, got 'sick'"),
    (f"{T} --kappa 3 ill=2", 1, "--kappa must be one number, or LABEL=COST for each label"),
    (f"{T} --epsilon -1", 1, "--epsilon must be finite and >= 0, got -1.0"),
    (f"{T} --max-iter 0", 1, "--max-iter must be"),
    (f"{T} --tolerate labels=5", 1, "--tolerate labels must be a share from 0 to 1, such as 0.05"),
    (f"{T} --tolerate agee=2", 1, "--tolerate names the column 'agee', but fitted.csv has 'age'"),
    (f"{T} --holdout 30 x.csv", 1, "--holdout must be a share between 0 and 1 and a file"),
    (f"{T} -o no/such/model.json", 1, "-o no/such/model.json must be a file in an existing folder"),
    (f"{T} -o ./linked.csv", 1, "-o ./linked.csv would overwrite an input file"),
    (f"{T} -o x.json --proof x.json", 1, "--proof x.json would overwrite the file of -o"),
    (f"{T} --holdout 0.3 fitted.csv", 1, "--holdout fitted.csv would overwrite an input file"),
    ("fit gap.csv --target state", 1, "got NaN in row 3 of column 'age'"),
    ("fit blank.csv --target state", 1, "the label of row 4 is missing: fill it in"),
    ("fit one.csv --target state", 1, "has only the label 'ill', and a model needs two classes"),
    ("fit europe.csv --target state", 1, "--delimiter must be what separates the fields of"),
    ("fit latin.csv --target state", 1, "--encoding must be that of latin.csv, which is not utf-8"),
    ("fit nowhere.csv --target state", 1, "nowhere.csv: No such file or directory"),
    ("predict fitted.csv model.json", 1, "is not a model file"),
    ("predict model.json kept.csv --threshold 2", 1, "--threshold must lie between 0 and 1"),
    (
        "predict model.json less.csv",
        1,
        "the model names the column 'age', but less.csv has 'dose'",
    ),
    ("predict model.json kept.csv --id agee", 1, "--id names the column 'agee', but kept.csv has"),
    ("audit model.json coded.csv", 1, "the label '1' in row 1 is not a class of the model"),
    ("audit model.json new.csv", 1, "new.csv has no column with labels: name it with --target"),
    ("audit model.json kept.csv --by agee", 1, "--by names the column 'agee', but kept.csv has"),
    ("audit model.json kept.csv --metric auc", 1, "error: --metric must be one of 'log_loss', 'er"),
    (
        "threshold model.json kept.csv --max-fpr 0.3 --confidence 95",
        1,
        "--confidence must lie between 0 and 1",
    ),
    (
        "threshold model.json fitted.csv --max-fpr 0.3",
        1,
        "these are the rows that the model was fitted to",
    ),
    ("predict pickle.json kept.csv", 1, "is a pickle, which can run code when it is read"),
    ("audit model.json kept.csv -o report.pdf", 1, "name a file that ends in .html"),
    ("threshold model.json kept.csv --cost a:b=1", 1, "such as ill:well=1, got 'a:b'"),
    (f"{T} --epsilom 1", 2, "--epsilom 1: did you mean --epsilon?"),
    (f"{T} --tolerate age", 2, "--tolerate: must be NAME=NUMBER, such as age=2, got 'age'"),
    (f"{T} --delimiter ab", 1, "--delimiter must be one character, got 'ab'"),
    (f"{T} --encoding klingon", 1, "--encoding must be that of fitted.csv, which is not klingon"),
    ("threshold model.json kept.csv", 2, "one of the arguments --cost --max-fpr"),
]


@pytest.fixture
def tables(folder):
    """Tables with one mistake each."""
    gap, blank = TABLE.copy(), TABLE.copy()
    gap.iloc[3, 0], blank.iloc[3, 3] = np.nan, None
    made = {
        "gap": gap,
        "blank": blank,
        "one": TABLE.assign(state="ill"),
        "coded": TABLE.assign(state=1),
        "less": TABLE.drop(columns="age"),
    }
    for name, frame in made.items():
        frame.to_csv(f"{name}.csv", index=False)
    TABLE.to_csv("europe.csv", sep=";", decimal=",", index=False)
    TABLE.rename(columns={"age": "âge"}).to_csv("latin.csv", index=False, encoding="latin1")
    Path("linked.csv").symlink_to("fitted.csv")
    pd.to_pickle(TABLE, "pickle.json")
    return folder


@pytest.mark.parametrize(("command", "code", "words"), MISTAKES)
def test_one_clear_line(command, code, words, tables, run):
    before = {path: path.read_bytes() for path in tables.iterdir()}
    found, out, err = run(command)
    assert (found, out) == (code, "")
    last = err.splitlines()[-1]
    assert last.startswith(("drlogit: error: ", f"drlogit {command.split()[0]}: error: "))
    assert words in last
    assert "Traceback" not in err
    assert "usage:" not in err
    assert {path: path.read_bytes() for path in tables.iterdir()} == before


def test_decimal_commas_and_encodings_are_stated(folder, answer):
    TABLE[:250].assign(ward=TABLE.ward.replace("south", "süd")).to_csv(
        "europe.csv", sep=";", decimal=",", index=False, encoding="latin1"
    )
    found = answer("fit europe.csv --target state --delimiter ';' --decimal , --encoding latin1")
    plain = answer(T)
    assert found["worst_case_loss"] == pytest.approx(plain["worst_case_loss"], abs=1e-6)


def test_what_files_say_does_not_steer_the_terminal(folder, run):
    labels = ("good", "evil\x1b[2J")
    lines = "".join(f"{k % 5},{k},{labels[k % 3 > 0]}\n" for k in range(20))
    Path("evil.csv").write_text("a,b\u202e,label\n" + lines, "utf-8")
    code, out, err = run("fit evil.csv --target label")
    assert code == cli.Exit.DONE
    assert "\\x1b[2J" in out + err
    code, _, more = run("fit evil.csv --target none\x1b[1A")
    assert code == cli.Exit.BAD_INPUT
    assert "\\x1b[1A" in more
    assert not set("\x1b\u202e") & set(out + err + more)


def test_quiet_is_quiet_about_a_constant_model_too(run):
    assert run(f"{T} --epsilon 9 -o x.json --quiet") == (cli.Exit.DONE, "", "")
    assert run("predict x.json kept.csv --quiet -o x.csv") == (cli.Exit.DONE, "", "")


def test_rows_unlike_training_are_told_once(folder, run):
    TABLE.assign(age=12.0 * TABLE.age).to_csv("months.csv", index=False)
    for command in ("predict", "audit"):
        err = run(f"{command} model.json months.csv")[2]
        assert err.count("'age'") == 1
