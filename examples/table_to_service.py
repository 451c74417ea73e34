"""From a raw table to a model that others serve, on adult: who earns more than $50,000?

Six numbers and eight texts with gaps go in as they are.  One line fits and certifies a model; next
to it stands a tuned plain one on the same encoding.  Then the model leaves Python in four ways (a
JSON file, SQL, scikit-learn alone, ONNX), each of which gives the same probabilities.

Run it with ``python examples/table_to_service.py``.  It reads adult (UCI) where the folder
DRLOGIT_DATA has it, and else makes up a table like it.
"""

from __future__ import annotations

import json
import math
import os
import sqlite3
import tempfile
import textwrap
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import drlogit

#: How many rows to learn from.
ROWS: int | None = None

_COLUMNS = (
    "age workclass fnlwgt education education-num marital-status occupation relationship race sex "
    "capital-gain capital-loss hours-per-week native-country income"
).split()


def read(part: str) -> tuple[pd.DataFrame, pd.Series]:
    """The table, and who earns how much."""
    folder = Path(os.environ.get("DRLOGIT_DATA", ".")) / "uci"
    found = sorted(folder.glob(f"adult.{part}*"))
    if not found:
        return _made_up(seed=len(part))
    table = pd.read_csv(found[0], names=_COLUMNS, skipinitialspace=True, na_values="?", comment="|")
    return table.drop(columns="income"), table["income"].str.rstrip(".")


def _made_up(seed: int, n: int = 2000) -> tuple[pd.DataFrame, pd.Series]:
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "age": rng.integers(17, 90, n),
            "capital-gain": np.where(rng.random(n) < 0.1, rng.lognormal(8.0, 1.0, n).round(), 0.0),
            "hours-per-week": rng.integers(10, 70, n),
            "occupation": rng.choice(["Sales", "Tech-support", "Craft-repair", None], n),
            "marital-status": rng.choice(["Married", "Never-married", "Divorced"], n),
        }
    )
    score = 0.04 * (table["age"] - 40) + 1.5 * (table["marital-status"] == "Married") - 1.5
    return table, pd.Series(np.where(score + rng.logistic(size=n) > 0.0, ">50K", "<=50K"))


def sql(path: Path) -> str:
    """The score of a model file for two classes, as an SQL expression."""
    document = json.loads(path.read_text("utf-8"))
    (fit,) = document["fits"]
    weights, terms = iter(fit["coefficients"]), [repr(fit["intercept"])]
    for column in document["columns"]:
        name = '"' + column["name"].replace('"', '""') + '"'
        if column["levels"] is None:
            value = name if column["fill"] is None else f"COALESCE({name}, {column['fill']!r})"
            terms.append(f"{next(weights)!r} * {value}")
            continue
        cases = []
        for level in column["levels"]:
            quoted = "NULL" if level is None else "'" + level.replace("'", "''") + "'"
            same = "IS" if level is None else "="
            cases.append(f"WHEN {name} {same} {quoted} THEN {next(weights)!r}")
        terms.append(f"CASE {' '.join(cases)} ELSE 0 END")
    return " + ".join(terms)


def main() -> None:
    """Fit, compare, ship."""
    X, y = (part[:ROWS] for part in read("data"))
    X_test, y_test = (part[:ROWS] for part in read("test"))
    rich = (y_test == ">50K").to_numpy()

    print(f"1. One line for {len(X)} rows and {X.shape[1]} columns:\n")
    started = time.process_time()
    model = drlogit.DRLogisticRegression(0.001, kappa=1.0, feature_costs="std").fit(X, y)
    seconds = time.process_time() - started
    print(
        f"   {seconds:.1f} CPU seconds: worst-case log-loss {model.worst_case_loss_[0]:.5f}, and no"
    )
    print(f"   linear model is better by more than {model.dual_gap_[0]:.0e}")
    for sentence in drlogit.allowances(model):
        print(textwrap.fill(sentence, 96, initial_indent="   ", subsequent_indent="     "))

    print("\n2. On other people, beside others of the same encoding:\n")
    trusting = drlogit.DRLogisticRegression(0.001, math.inf, feature_costs="std").fit(X, y)
    encode = make_column_transformer(
        (StandardScaler(), make_column_selector(dtype_include="number")),
        remainder=OneHotEncoder(handle_unknown="ignore"),
    )
    strengths = {"logisticregression__C": [0.01, 0.1, 1.0, 10.0]}
    pipeline = make_pipeline(encode, LogisticRegression(max_iter=1000))
    plain = GridSearchCV(pipeline, strengths, scoring="neg_log_loss", cv=3).fit(X, y)
    models = {"robust": model, "robust, labels are right": trusting, "plain, tuned": plain}
    print("   log-loss  accuracy  log-loss if 1 % of labels, or categories, or a hundredth of a")
    print("                       standard deviation may be wrong")
    for name, each in models.items():
        likely = each.predict_proba(X_test)[:, 1]
        accuracy = np.mean((likely > 0.5) == rich)
        ball = drlogit.Ball(epsilon=0.01, kappa=1.0)
        worst = float(drlogit.worst_case(each, X_test, y_test, ball=ball))
        print(f"   {log_loss(rich, likely):.5f}   {accuracy:.2%}    {worst:.4f}   {name}")

    print("\n3. Elsewhere, the same probabilities to:\n")
    expected = model.predict_proba(X_test)[:, 1]
    for name, found in _elsewhere(model, X_test).items():
        print(f"   {name:24} {np.abs(found - expected).max():.0e}")


def _elsewhere(model: Any, table: pd.DataFrame) -> dict[str, np.ndarray[Any, Any]]:
    """Probabilities of the second class from whoever serves the model."""
    path = Path(tempfile.mkdtemp()) / "model.json"
    drlogit.save_model(model, path)
    with closing(sqlite3.connect(":memory:")) as database:
        table.to_sql("people", database, index=False)
        scores = [score for (score,) in database.execute(f"SELECT {sql(path)} FROM people")]
    found = {
        "the JSON file": drlogit.load_model(path).predict_proba(table)[:, 1],
        "SQL from it": expit(scores),
        "scikit-learn alone": model.to_sklearn().predict_proba(table)[:, 1],
    }
    try:
        from onnxruntime import InferenceSession
    except ImportError:
        return found  # pip install "drlogit[onnx]" onnxruntime
    session = InferenceSession(drlogit.to_onnx(model).SerializeToString())
    kinds = {"tensor(double)": float, "tensor(string)": object}
    rows = {
        given.name: table[[column]].to_numpy(kinds[given.type])
        for given, column in zip(session.get_inputs(), table, strict=True)
    }
    return {**found, "ONNX": session.run(None, rows)[1][:, 1]}


if __name__ == "__main__":
    main()
