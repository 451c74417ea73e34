"""A model fitted in Python or on the command line says the same, whoever serves it.

On real tables into which gaps, spelt in many ways, and levels that training did not show are put.
"""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from drlogit import DRLogisticRegression, cli, load_model, save_model
from drlogit.estimators.tables.frames import MISSING_MARKS

_FOLDER = Path(os.environ.get("DRLOGIT_DATA", ""))
_TABLES = sorted(
    path for folder in ("tables", "shift") for path in (_FOLDER / folder).glob("*.csv.bz2")
)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not os.environ.get("DRLOGIT_DATA") or not _TABLES,
        reason="DRLOGIT_DATA is not set: it names a folder with real tables",
    ),
    pytest.mark.filterwarnings("ignore"),  # of such tables there is much to be said
]

#: Rows to fit, and all with those to serve: levels are rare, and fits quick.
_FITTED, _ROWS = 90, 180

#: How often each table is spoilt, and levels that training did not show.
_SEEDS = 2
_NEW_LEVELS = ("never seen", " A ", "true", "7.0", "007", "none")

#: Rows of a file from which they are taken.
_READ = 3000

#: Before pandas 3 numbers are read to the last bit only if asked to; then asking is deprecated.
EXACTLY = {} if int(pd.__version__.split(".")[0]) >= 3 else {"float_precision": "round_trip"}


def rows_of(path, rng):
    """Some rows as text, the column of the labels last, two classes."""
    import bz2

    with bz2.open(path, "rt", newline="") as file:
        header, *rows = (row for _, row in zip(range(_READ), csv.reader(file), strict=False))
    rows = np.array(rows, dtype=object)
    if path.name.startswith("spect"):  # whose labels come first
        header, rows = header[::-1], rows[:, ::-1]
    labels = pd.Series(rows[:, -1]).value_counts().index[:2]
    rows = rows[np.isin(rows[:, -1].astype(str), labels)]
    rows = rows[rng.permutation(len(rows))[:_ROWS]]
    rows[:2, -1] = labels
    return header, rows


def spoilt(header, rows, rng, marks, new_level):
    """Gaps in some columns, and a level that training did not show in some of text."""
    rows = rows.copy()
    for j in range(len(header) - 1):
        if rng.random() < 0.5:
            gaps = rng.random(len(rows)) < 0.1
            rows[gaps, j] = rng.choice(marks, int(gaps.sum()))
        if new_level and rng.random() < 0.3 and not _is_number(rows[:, j]):
            rows[rng.random(len(rows)) < 0.1, j] = new_level
    return rows


def _is_number(values):
    there = [value for value in values if value not in MISSING_MARKS]
    return pd.to_numeric(pd.Series(there, dtype=object), errors="coerce").notna().all()


def write(path, header, rows):
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows([header, *rows.tolist()])


def check_both(path, data, capsys):
    """The file of a model, served in Python and on the command line."""
    model = load_model(path)
    code = cli.main(["predict", str(path), str(data), "--json"])
    out, err = capsys.readouterr()
    frame = pd.read_csv(data, **EXACTLY)[[str(name) for name in model.feature_names_in_]]
    assert code == cli.DONE, err
    probabilities, predicted = model.predict_proba(frame), model.predict(frame)
    found = json.loads(out)
    assert np.abs(probabilities - np.array(found["probabilities"])).max() < 1e-12
    assert [str(label) for label in predicted] == [str(label) for label in found["predictions"]]


@pytest.mark.parametrize("seed", range(_SEEDS))
@pytest.mark.parametrize("path", _TABLES, ids=lambda path: path.name.split(".")[0])
def test_both_serve_alike(path, seed, tmp_path, capsys):
    rng = np.random.default_rng([seed, _TABLES.index(path)])
    marks = rng.choice(MISSING_MARKS, rng.integers(1, 6), replace=False)
    new_level = rng.choice(_NEW_LEVELS)
    header, rows = rows_of(path, rng)
    files = [tmp_path / "fitted.csv", tmp_path / "served.csv"]
    write(files[0], header, spoilt(header, rows[:_FITTED], rng, marks, ""))
    write(files[1], header, spoilt(header, rows[_FITTED:], rng, marks, new_level))

    options = "--missing median --standardize --epsilon 0.05 --tol 1e-3 --quiet"
    model = tmp_path / "ours.json"
    command = ["fit", str(files[0]), "--target", header[-1], *options.split(), "-o", str(model)]
    assert cli.main(command) == cli.DONE, capsys.readouterr().err
    for data in files:
        check_both(model, data, capsys)

    frame = pd.read_csv(files[0], **EXACTLY)
    estimator = DRLogisticRegression(0.05, feature_costs="std", missing="median", tol=1e-3)
    estimator.fit(frame[header[:-1]], frame[header[-1]])
    save_model(estimator, tmp_path / "theirs.json")
    for data in files:
        check_both(tmp_path / "theirs.json", data, capsys)
