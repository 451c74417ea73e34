"""How much of a rare class does a robust fit find?  The table of docs/choosing.md.

    DRLOGIT_DATA=… python -m benchmarks.rare_class

Recall (and precision) of the rare class over five stratified folds: on sick (UCI, 6 % positives)
and on 2,000 generated rows with 2, 5 and 10 % positives.
"""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import drlogit


def sick() -> tuple[pd.DataFrame, Any]:
    """The table as it is, and whether a person is sick."""
    path = Path(os.environ["DRLOGIT_DATA"]) / "tables" / "sick.csv.bz2"
    frame = pd.read_csv(path, na_values="?")
    frame = frame.dropna(axis=1, how="all")
    return frame.drop(columns="Class"), (frame["Class"] == "sick").to_numpy()


def generated(share: float) -> tuple[pd.DataFrame, Any]:
    """Four numbers and a category, and the top share of a noisy score."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.standard_normal((2000, 4)), columns=list("abcd"))
    X["kind"] = rng.choice(["p", "q", "r"], 2000)
    score = 4 * X["a"] - 2 * X["b"] + 2 * (X["kind"] == "p") + rng.logistic(size=2000)
    return X, (score > score.quantile(1 - share)).to_numpy()


def plain() -> Any:
    """Logistic regression as most fit it."""
    numbers = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    columns = make_column_transformer(
        (numbers, make_column_selector(dtype_include="number")),
        (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_exclude="number")),
    )
    return make_pipeline(columns, LogisticRegression(max_iter=1000))


def robust(class_weight: str | None = None, **tolerated: float) -> Any:
    """A fit with stated tolerances."""
    ball = drlogit.Ball.tolerating(**tolerated)
    return drlogit.DRLogisticRegression(ball=ball, class_weight=class_weight, missing="median")


def found(model: Any, X: pd.DataFrame, y: Any, *, as_often: bool = False) -> str:
    """Recall and precision on five folds; ``as_often``: at the threshold of the training rows."""
    decided = np.zeros(y.size, dtype=bool)
    for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(X, y):
        fitted = model.fit(X.iloc[train], y[train])
        cut = 0.5
        if as_often:
            cut = np.quantile(fitted.predict_proba(X.iloc[train])[:, 1], 1 - y[train].mean())
        decided[test] = fitted.predict_proba(X.iloc[test])[:, 1] > cut
    right = (decided & y).sum()
    precision = f"{right / decided.sum():.2f}" if decided.any() else "–"
    return f"{right / y.sum():.2f} ({precision})"


def main() -> None:
    """Print the table."""
    warnings.simplefilter("ignore")
    data = {"sick, 6 %": sick(), **{f"generated, {s:.0%}": generated(s) for s in (0.02, 0.05, 0.1)}}
    rows = {
        "plain logistic regression": (plain(), False),
        "`tolerances(labels=0.02)`": (robust(labels=0.02), False),
        '… with `class_weight="balanced"`': (robust("balanced", labels=0.02), False),
        "… with the threshold that predicts it as often as it occurs": (robust(labels=0.02), True),
        "`tolerances(numbers=0.01, categories=0.01)`": (
            robust(numbers=0.01, categories=0.01),
            False,
        ),
        "half of the default tolerances": (robust(numbers=0.05, categories=0.05), False),
    }
    print("| |", " | ".join(data), "|")
    print("|---" * (len(data) + 1) + "|")
    for name, (model, as_often) in rows.items():
        cells = [found(model, X, y, as_often=as_often) for X, y in data.values()]
        print(f"| {name} |", " | ".join(cells), "|")


if __name__ == "__main__":
    main()
