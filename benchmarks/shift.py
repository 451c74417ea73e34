"""Fitted here, judged there: plain and robust models where the data really shift.

    DRLOGIT_DATA=… python -m benchmarks.shift [TABLE …] [--rows 2000] [--out FILE.jsonl]

Each table of ``$DRLOGIT_DATA/shift`` has parts: hospitals, schools, years, regions.  Every model is
fitted to one part and judged on each other part; a fifth of the first part is held out for the
guarantee.  Robust models state the same tolerances everywhere, chosen by meaning and never by
results: 2 % of labels, a tenth of a standard deviation, 5 % of a category.

Printed: log-loss and error there (mean over tables of the mean over their pairs, standard error
over tables, worst pair), how often the guarantee at the declared radius held there, and the radius
that would have covered what happened, in declared radii: 1 is what was declared.
"""

from __future__ import annotations

import argparse
import json
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import drlogit

LABELS, NUMBERS, CATEGORIES = 0.02, 0.1, 0.05
COIN = 0.1
LEAST_ROWS = 100


def parts_of(path: Path) -> dict[str, pd.DataFrame]:
    frame = pd.read_csv(path)
    return {str(part): rows.drop(columns="part") for part, rows in frame.groupby("part")}


def encoded(frame: pd.DataFrame, last: Any) -> Any:
    """The usual pipeline."""
    text = [c for c in frame if not pd.api.types.is_numeric_dtype(frame[c])]
    numbers = [c for c in frame if c not in text]
    columns = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), text),
        (make_pipeline(SimpleImputer(strategy="median"), StandardScaler()), numbers),
    )
    return make_pipeline(columns, last)


def fitted(X: pd.DataFrame, y: pd.Series) -> Iterator[tuple[str, Any]]:
    """The models, by name, in the order of the table."""
    table = {"categorical_features": "from_dtype", "missing": "median"}
    yield "plain", encoded(X, LogisticRegression(C=1e4, max_iter=2000)).fit(X, y)
    tuned = encoded(X, LogisticRegressionCV(scoring="neg_log_loss", max_iter=2000)).fit(X, y)
    yield "l2, tuned", tuned
    C = float(np.ravel(tuned[-1].C_)[0])
    yield "l2, C/10", encoded(X, LogisticRegression(C=C / 10.0, max_iter=2000)).fit(X, y)
    yield "l2, mixed with coin flips", tuned
    declared = drlogit.tolerances(labels=LABELS, numbers=NUMBERS, categories=CATEGORIES)
    yield "robust, declared", drlogit.DRLogisticRegression(**declared.parameters, **table).fit(X, y)
    costs = {"feature_costs": declared.feature_costs}
    yield "robust, searched", drlogit.DRLogisticRegressionCV(**costs, **table).fit(X, y)


def radius_that_covers(model: Any, X: Any, y: Any, loss: float, epsilon: float) -> float:
    """The smallest ε, in declared radii, whose worst case here reaches the loss there."""

    def worst(share: float) -> float:
        kappa = getattr(model, "kappa_", None) or model.kappa
        return drlogit.worst_case_loss(model, X, y, epsilon=share * epsilon, kappa=kappa)

    if worst(0.0) >= loss:
        return 0.0
    low, high = 0.0, 1.0
    while worst(high) < loss and high < 1e4:
        low, high = high, 4.0 * high
    for _ in range(20):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if worst(middle) >= loss else (middle, high)
    return high


def rows_of(name: str, parts: dict[str, pd.DataFrame], most: int) -> Iterator[dict[str, Any]]:
    for here, first in parts.items():
        if len(first) < LEAST_ROWS or first["y"].nunique() < 2:
            continue
        train = first.sample(min(most, len(first)), random_state=0)
        held = train.iloc[: len(train) // 5]
        train = train.iloc[len(train) // 5 :]
        for method, model in fitted(train.drop(columns="y"), train["y"]):
            kept = {"table": name, "here": here, "method": method}
            if method == "robust, declared":
                X, y = held.drop(columns="y"), held["y"]
                promise = drlogit.guarantee(model, X, y)
                kept |= {"promised_loss": promise.loss, "promised_error": promise.error}
            for there, other in parts.items():
                if there == here:
                    continue
                p = model.predict_proba(other.drop(columns="y"))[:, 1]
                if method == "l2, mixed with coin flips":
                    p = (1.0 - COIN) * p + 0.5 * COIN
                p = np.clip(p, 1e-12, 1.0 - 1e-12)
                found = {
                    "there": there,
                    "loss": log_loss(other["y"], p, labels=[0, 1]),
                    "error": float(((p > 0.5) != (other["y"] == 1)).mean()),
                }
                if "promised_loss" in kept:
                    radius = model.epsilon_
                    found["covering"] = radius_that_covers(model, X, y, found["loss"], radius)
                yield {**kept, **found}


def summary(rows: list[dict[str, Any]]) -> str:
    frame = pd.DataFrame(rows)
    lines = ["| model | log-loss | ± | worst | error | ± |", "|---|---|---|---|---|---|"]
    for method in frame["method"].unique():
        own = frame[frame["method"] == method]
        means = own.groupby("table")[["loss", "error"]].mean()
        spread = means.std() / np.sqrt(len(means))
        lines.append(
            f"| {method} | {means['loss'].mean():.3f} | {spread['loss']:.3f} | "
            f"{own['loss'].max():.3f} | {means['error'].mean():.3f} | {spread['error']:.3f} |"
        )
    promised = frame.dropna(subset=["promised_loss"])
    held = (promised["loss"] <= promised["promised_loss"]).mean()
    right = (promised["error"] <= promised["promised_error"]).mean()
    lines += [
        "",
        f"{len(promised)} pairs. The guarantee at the declared radius held there for the loss in "
        f"{held:.0%}, for the error in {right:.0%} of them.",
        "Radius that would have covered the loss there, in declared radii: "
        + ", ".join(
            f"{table} {own['covering'].median():.1f}" for table, own in promised.groupby("table")
        ),
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="*", metavar="TABLE")
    parser.add_argument("--rows", type=int, default=2000, help="most rows to fit to")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    found = []
    for path in sorted((Path(os.environ["DRLOGIT_DATA"]) / "shift").glob("*.csv.bz2")):
        name = path.name.split(".")[0]
        if options.tables and name not in options.tables:
            continue
        for row in rows_of(name, parts_of(path), options.rows):
            found.append(row)
        print(f"{name}: {len(found)} rows", flush=True)
    if options.out is not None:
        options.out.write_text("".join(json.dumps(row) + "\n" for row in found))
    print(summary(found))


if __name__ == "__main__":
    main()
