"""The demo on other splits of Cleveland: is the one shown typical?  The table of docs/shift.md.

    python -m benchmarks.demo_splits [--splits 10]

The demo fits 200 patients of Cleveland, in a random order with seed 0.  Here are ten other seeds:
the mean log-loss of the four models in each hospital (± standard deviation of the splits), and the
rank of the gain in the split shown among all eleven.
"""

from __future__ import annotations

import argparse

import numpy as np

from drlogit import Ball, DRLogisticRegression
from drlogit.cli.demo import compared_losses
from drlogit.datasets import load_heart_disease

MODELS = {"tuned": "tuned ℓ2", "strong": "ℓ2 × 10", "coin": "with coin", "robust": "robust"}


def losses(order: np.ndarray) -> dict[str, dict[str, float]]:
    """Log-loss by place and model, for the first 200 patients in this order."""
    parts = {
        name: (rows.drop(columns=["hospital", "disease"]), rows["disease"].to_numpy())
        for name, rows in load_heart_disease().groupby("hospital")
    }
    X, y = parts.pop("cleveland")
    X, y = X.iloc[order], y[order]
    robust = DRLogisticRegression(ball=Ball.tolerating(labels=0.05), missing="median")
    robust.fit(X[:200], y[:200])
    places = {"Cleveland, kept aside": (X[200:], y[200:]), **parts}
    return {
        place: {name: each["log_loss"] for name, each in found.items()}
        for place, found in compared_losses(robust, X[:200], y[:200], places).items()
    }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=10)
    count = parser.parse_args().splits
    n = int((load_heart_disease()["hospital"] == "cleveland").sum())
    seeds = range(count + 1)
    shown, *others = (losses(np.random.default_rng(seed).permutation(n)) for seed in seeds)
    print("| hospital |", " | ".join(MODELS.values()), "| robust − tuned, as shown | rank |")
    print("|---" * (len(MODELS) + 3) + "|")
    for place in shown:
        values = {m: np.array([each[place][m] for each in others]) for m in MODELS}
        cells = [f"{v.mean():.3f} ± {v.std(ddof=1):.3f}" for v in values.values()]
        gains = values["tuned"] - values["robust"]
        own = shown[place]["tuned"] - shown[place]["robust"]
        rank = 1 + int((gains > own).sum())
        print(f"| {place} |", " | ".join(cells), f"| {-own:+.3f} | {rank} of {count + 1} |")


if __name__ == "__main__":
    main()
