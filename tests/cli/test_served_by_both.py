"""A model fitted in Python or on the command line says the same, whoever serves it.

On real tables into which gaps, spelt in many ways, and levels that training did not show are put.
"""

from __future__ import annotations

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


def check_both(path, data, capsys):
    """The file of a model, served in Python and on the command line."""
    model = load_model(path)
    code = cli.main(["predict", str(path), str(data), "--json"])
    out, err = capsys.readouterr()
    frame = pd.read_csv(data)[[str(name) for name in model.feature_names_in_]]
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
    table, target = rows_of(path, rng)
    files = [tmp_path / "fitted.csv", tmp_path / "served.csv"]
    spoilt(table[:_FITTED], target, rng, marks, "").to_csv(files[0], index=False)
    new_level = rng.choice(_NEW_LEVELS)
    spoilt(table[_FITTED:], target, rng, marks, new_level).to_csv(files[1], index=False)

    options = "--missing median --standardize --epsilon 0.05 --tol 1e-3 --quiet"
    models = [tmp_path / "ours.json", tmp_path / "theirs.json"]
    command = ["fit", str(files[0]), "--target", target, *options.split(), "-o", str(models[0])]
    assert cli.main(command) == cli.DONE, capsys.readouterr().err
    frame = pd.read_csv(files[0])
    estimator = DRLogisticRegression(0.05, feature_costs="std", missing="median", tol=1e-3)
    save_model(estimator.fit(frame.drop(columns=target), frame[target]), models[1])
    for model in models:
        for data in files:
            check_both(model, data, capsys)
