"""What tolerances cost on rows of the same source, and what they buy within the ball.

    DRLOGIT_DATA=… python -m benchmarks.tolerances    # writes results/tolerances.csv, trust.csv
    python -m benchmarks.tolerances                   # without data, prints what the docs quote

Each table of ``$DRLOGIT_DATA/tables`` (up to 1,500 rows) is split 60 to 40 five times.  Rows have
the mean of the splits for one table and ball: log-loss and error on the unseen rows, and the worst
log-loss there within the ball, of a ridge whose penalty was tuned and of our fit for the ball.
Tolerances are the same on all tables.  Where a fifth of one of two classes is recorded wrongly, a
cost of flips for each label is compared with one cost.
"""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

import drlogit

from .pipelines import ridge

ROWS = Path(__file__).parent / "results" / "tolerances.csv"
TRUSTED = ROWS.with_name("trust.csv")

BALLS = {
    "default": drlogit.Ball(),
    "labels=0.01": drlogit.Ball.tolerating(labels=0.01),
    "labels=0.02": drlogit.Ball.tolerating(labels=0.02),
    "labels=0.05": drlogit.Ball.tolerating(labels=0.05),
    "labels=0.1": drlogit.Ball.tolerating(labels=0.1),
    "numbers=0.1, categories=0.05": drlogit.Ball.tolerating(numbers=0.1, categories=0.05),
    "all three": drlogit.Ball.tolerating(labels=0.02, numbers=0.1, categories=0.05),
}

SPLITS, MOST = 5, 1500


def split(X: Any, y: Any, seed: int) -> Any:
    return train_test_split(X, y, test_size=0.4, stratify=y, random_state=seed)


def judged(X: Any, y: Any, seed: int) -> pd.DataFrame:
    """One split: a row for each ball."""
    X_fit, X_new, y_fit, y_new = split(X, y, seed)
    plain = ridge(X_fit).fit(X_fit, y_fit)
    rows = []
    for name, ball in BALLS.items():
        ours = drlogit.DRLogisticRegression(ball=ball, missing="median").fit(X_fit, y_fit)
        row: dict[str, Any] = {"ball": name}
        for kind, model in (("ridge", plain), ("ours", ours)):
            chances = model.predict_proba(X_new)
            row[f"loss {kind}"] = log_loss(y_new, chances, labels=ours.classes_)
            row[f"error {kind}"] = float(np.mean(model.predict(X_new) != y_new))
            worst = drlogit.worst_case(model, X_new, y_new, ball=ours.ball_)
            row[f"worst {kind}"] = worst.value
        rows.append(row)
    return pd.DataFrame(rows)


def trusted(X: Any, y: Any, seed: int) -> pd.DataFrame:
    """One split in which a fifth of one class is recorded as the other: one κ, and κ by label."""
    X_fit, X_new, y_fit, y_new = split(X, y, seed)
    first, second = np.unique(y)
    wrong = (y_fit == first) & (np.random.default_rng(seed).random(y_fit.size) < 0.2)
    recorded = np.where(wrong, second, y_fit)
    share = float(wrong.sum() / (recorded == second).sum())
    row = {}
    for name, labels in (("one", float(wrong.mean())), ("each", {first: 0.0, second: share})):
        ball = drlogit.Ball.tolerating(labels=labels)
        model = drlogit.DRLogisticRegression(ball=ball, missing="median").fit(X_fit, recorded)
        row[f"loss {name}"] = log_loss(y_new, model.predict_proba(X_new), labels=model.classes_)
        row[f"bound {name}"] = drlogit.worst_case(model, X_fit, recorded, ball=model.ball_).value
    return pd.DataFrame([{"ball": "a fifth of one class", **row}])


def measure(folder: Path, judge: Any, classes: int) -> pd.DataFrame:
    """Tables of so many classes at most; the label is the first column of spect, else the last."""
    found = []
    for path in sorted(folder.glob("*.csv.bz2")):
        frame = pd.read_csv(path, na_values=["?"])
        target = frame.columns[0 if path.name.startswith("spect") else -1]
        frame = frame.sample(frac=1.0, random_state=0)[:MOST].dropna(subset=[target])
        frame = frame[frame.groupby(target)[target].transform("size") >= 10].reset_index(drop=True)
        X, y = frame.drop(columns=target), frame[target].astype(str).to_numpy()
        if np.unique(y).size > classes:
            continue
        rows = pd.concat([judge(X, y, seed) for seed in range(SPLITS)])
        rows = rows.groupby("ball", sort=False).mean().round(4)
        found.append(rows.assign(table=path.name.partition(".")[0]).reset_index())
        print(found[-1].to_string(), flush=True)
    return pd.concat(found)


def trust(rows: pd.DataFrame) -> str:
    """What a cost of flips for each label changes, over the tables."""
    loss, bound = rows["loss each"] - rows["loss one"], 1.0 - rows["bound each"] / rows["bound one"]
    error = loss.std() / np.sqrt(len(loss))
    return (
        f"on {len(loss)} tables the log-loss differs by {loss.mean():+.3f} ± {error:.3f}, and the "
        f"worst-case loss is lower by 0 to {100 * bound.max():.0f} %, in the median by "
        f"{100 * bound.median():.1f} %"
    )


def summary(rows: pd.DataFrame) -> str:
    """The table of the docs: differences to the ridge over the tables."""
    heads = ["tolerated", "log-loss", "median", "largest", "error, points", "worst log-loss"]
    lines = [f"| {' | '.join(heads)} |", "|" + len(heads) * "---|"]
    for name, group in rows.groupby("ball", sort=False):
        loss = group["loss ours"] - group["loss ridge"]
        error = 100.0 * (group["error ours"] - group["error ridge"]).mean()
        gain = (group["worst ours"] - group["worst ridge"]).mean()
        cells = f"{loss.mean():+.3f} | {loss.median():+.3f} | {loss.max():+.2f} | {error:+.1f}"
        lines.append(f"| {name} | {cells} | {gain:+.2f} |")
    return "\n".join(lines)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if where := os.environ.get("DRLOGIT_DATA"):
        measure(Path(where, "tables"), trusted, 2).to_csv(TRUSTED, index=False)
        measure(Path(where, "tables"), judged, 99).to_csv(ROWS, index=False)
    print(summary(pd.read_csv(ROWS)), trust(pd.read_csv(TRUSTED)), sep="\n\n")
