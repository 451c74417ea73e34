"""Chosen and usual cut-offs on real tables: what they promise, and what held elsewhere.

    DRLOGIT_DATA=… python -m benchmarks.cut_offs credit      # the numbers of docs/threshold.md
    DRLOGIT_DATA=… python -m benchmarks.cut_offs shift [--parts 4] [--rows 1500]

*credit*: German credit (credit-g) with its own cost matrix: a bad credit that is granted costs 5, a
good one that is refused costs 1.  Half of the rows are fitted to, half choose the threshold.

*shift*: tables whose parts are places or years, as in ``benchmarks.shift``, with the same declared
tolerances.  On each of the first parts a model is fitted to 60 % of the rows, and the others choose
a threshold by costs (a missed positive costs five false alarms) and by a false positive rate of at
most 50 %.  Printed is in how many other parts the promise held, for the chosen threshold and for
the usual one, beside the mean cost or rate there.
"""

from __future__ import annotations

import argparse
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import drlogit

from .shift import CATEGORIES, LABELS, LEAST_ROWS, NUMBERS, parts_of

COSTS = {(0, 1): 1.0, (1, 0): 5.0}
GERMAN = {("bad", "good"): 5.0, ("good", "bad"): 1.0}
TABLE = {"categorical_features": "from_dtype", "missing": "median"}


def credit() -> None:
    path = Path(os.environ["DRLOGIT_DATA"]) / "tables" / "credit-g.csv.bz2"
    frame = pd.read_csv(path).sample(frac=1.0, random_state=0)
    X, y = frame.drop(columns="class"), frame["class"]
    allowed = drlogit.Ball.tolerating(labels=0.01, numbers=0.05, categories=0.02)
    model = drlogit.DRLogisticRegression(ball=allowed, **TABLE).fit(X[:500], y[:500])
    held = X[500:], y[500:]
    print(drlogit.choose_threshold(model, *held, costs=GERMAN), end="\n\n")
    for share in (0.0, 0.25, 0.5, 1.0, 2.0):
        epsilon = share * model.epsilon_
        found = drlogit.choose_threshold(model, *held, costs=GERMAN, epsilon=epsilon)
        ball = drlogit.worst_case(model, *held).ball.replace(epsilon=epsilon)
        seen = drlogit.worst_case(model, *held, GERMAN, threshold=found.threshold, ball=ball)
        print(f"| {epsilon:.4g} | {found.threshold:.2f} | {found.promise.nominal:.2f} | "
              f"{seen.value:.2f} | {found.promise.value:.2f} | {found.usual_promise.nominal:.2f} | "
              f"{found.usual_promise.value:.2f} |", flush=True)  # fmt: skip
    print()
    for metric in ("precision", "fpr"):
        print(drlogit.worst_case(model, *held, metric, threshold=5.0 / 6.0))
    print(drlogit.worst_case(model, *held, GERMAN, threshold=5.0 / 6.0).breaking_point(1.0))


def happened(model: Any, other: pd.DataFrame, threshold: float) -> dict[str, float]:
    decided = model.predict_proba(other.drop(columns="y"))[:, 1] >= threshold
    y = other["y"].to_numpy() == 1
    cost = np.where(y, 5.0 * ~decided, 1.0 * decided).mean()
    return {"costs": float(cost), "max_fpr": float(decided[~y].mean()) if (~y).any() else 0.0}


def held_elsewhere(name: str, path: Path, n_parts: int, most: int) -> list[dict[str, Any]]:
    declared = drlogit.Ball.tolerating(labels=LABELS, numbers=NUMBERS, categories=CATEGORIES)
    found, parts = [], parts_of(path)
    usable = [
        (here, rows) for here, rows in parts.items()
        if len(rows) >= LEAST_ROWS and rows["y"].nunique() == 2
    ]  # fmt: skip
    for here, rows in usable[:n_parts]:
        rows = rows.sample(min(most, len(rows)), random_state=0)
        train, held = rows[: 6 * len(rows) // 10], rows[6 * len(rows) // 10 :]
        model = drlogit.DRLogisticRegression(ball=declared, **TABLE)
        model.fit(train.drop(columns="y"), train["y"])
        for asked, options in (("costs", {"costs": COSTS}), ("max_fpr", {"max_fpr": 0.5})):
            try:
                choice = drlogit.choose_threshold(
                    model, held.drop(columns="y"), held["y"], **options
                )
            except ValueError:  # no threshold promises it
                found.append({"table": name, "asked": asked, "here": here, "promised": False})
                continue
            for there, other in parts.items():
                if there == here:
                    continue
                both = (("chosen", choice.threshold, choice.promise),
                        ("usual", choice.usual, choice.usual_promise))  # fmt: skip
                row = {"table": name, "asked": asked, "here": here, "promised": True}
                for which, at, promise in both:
                    value = happened(model, other, at)[asked]
                    row |= {which: value, f"{which} held": value <= promise.value,
                            f"{which} promise": promise.value}  # fmt: skip
                found.append(row)
    return found


def shift(n_parts: int, most: int) -> None:
    every: list[dict[str, Any]] = []
    print("| table | asked | pairs | chosen: held | promise | there | usual: held | promise | "
          "there | no promise |\n|---|---|---|---|---|---|---|---|---|---|")  # fmt: skip
    for path in sorted((Path(os.environ["DRLOGIT_DATA"]) / "shift").glob("*.csv.bz2")):
        rows = held_elsewhere(path.name.split(".")[0], path, n_parts, most)
        every += rows
        _print(rows, path.name.split(".")[0])
    _print(every, "all")


def _print(rows: list[dict[str, Any]], name: str) -> None:
    for asked, own in pd.DataFrame(rows).groupby("asked"):
        told = own[own["promised"]]
        cells = [
            f"{told[f'{which} held'].mean():.0%} | {told[f'{which} promise'].mean():.2f} | "
            f"{told[which].mean():.2f}"
            for which in ("chosen", "usual")
            if len(told)
        ]
        none = int((~own["promised"]).sum())
        print(f"| {name} | {asked} | {len(told)} | {' | '.join(cells)} | {none} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("credit", "shift"))
    parser.add_argument("--parts", type=int, default=4)
    parser.add_argument("--rows", type=int, default=1500)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.what == "credit":
        credit()
    else:
        shift(options.parts, options.rows)


if __name__ == "__main__":
    main()
