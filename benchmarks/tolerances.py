"""What tolerances cost on rows of the same source, and what they buy within the ball.

    DRLOGIT_DATA=… python -m benchmarks.tolerances    # writes results/tolerances.csv
    python -m benchmarks.tolerances                   # without data, prints the table

Each table of ``$DRLOGIT_DATA/tables`` (up to 1,500 rows) is split 60 to 40 five times.  Rows have
the mean of the splits for one table and ball: log-loss and error on the unseen rows, and the worst
log-loss there within the ball, of a ridge whose penalty was tuned and of our fit for the ball.
Tolerances are the same on all tables.
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


def judged(X: Any, y: Any, seed: int) -> pd.DataFrame:
    """One split: a row for each ball."""
    parts = train_test_split(X, y, test_size=0.4, stratify=y, random_state=seed)
    X_fit, X_new, y_fit, y_new = parts
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


def measure(folder: Path) -> pd.DataFrame:
    """All tables; the label is the first column of spect, the last one elsewhere."""
    found = []
    for path in sorted(folder.glob("*.csv.bz2")):
        frame = pd.read_csv(path, na_values=["?"])
        target = frame.columns[0 if path.name.startswith("spect") else -1]
        frame = frame.sample(frac=1.0, random_state=0)[:MOST].dropna(subset=[target])
        frame = frame[frame.groupby(target)[target].transform("size") >= 10].reset_index(drop=True)
        X, y = frame.drop(columns=target), frame[target].astype(str).to_numpy()
        rows = pd.concat([judged(X, y, seed) for seed in range(SPLITS)])
        rows = rows.groupby("ball", sort=False).mean().round(4)
        found.append(rows.assign(table=path.name.partition(".")[0]).reset_index())
        print(found[-1].to_string(), flush=True)
        pd.concat(found).to_csv(ROWS, index=False)
    return pd.concat(found)


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
    where = os.environ.get("DRLOGIT_DATA")
    print(summary(measure(Path(where) / "tables") if where else pd.read_csv(ROWS)))
