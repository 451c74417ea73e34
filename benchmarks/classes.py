"""Several classes: one softmax in one problem, one against the rest, and a plain softmax.

    python -m benchmarks.classes             # accuracy (about ten minutes) and times
    python -m benchmarks.classes --table     # the tables of docs/adversary.md

Every method tunes itself on at most 400 training samples (three folds, by log-loss) and is judged
on the rest, three splits of each set.  Times are of fits at one radius, beside scikit-learn's, one
thread each, in turns, the best of three.
Rows go to ``benchmarks/results/classes.jsonl``.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from collections import defaultdict
from collections.abc import Iterator
from functools import partial
from itertools import chain, product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

import drlogit

RESULTS = Path(__file__).parent / "results" / "classes.jsonl"
TABLES = ("balance-scale", "car", "cmc", "segment", "vehicle")
SPLITS, TRAINING, TURNS = 3, 400, 3
ONE, REST, PLAIN = "one softmax", "one against the rest", "tuned LR"
SIZES = ((2000, 20, 3), (5000, 50, 5), (10000, 40, 8), (50000, 30, 6), (20000, 100, 10))


def datasets() -> Iterator[tuple[str, Any, Any]]:
    """Names, features as numbers, and labels; tables are there if ``DRLOGIT_DATA`` says where."""
    for name, load in (("iris", load_iris), ("wine", load_wine), ("digits", load_digits)):
        yield name, *load(return_X_y=True)
    folder = Path(os.environ.get("DRLOGIT_DATA", "")) / "tables"
    for name in TABLES if folder.is_dir() else ():
        frame = pd.read_csv(folder / f"{name}.csv.bz2", na_values="?").dropna()
        features = pd.get_dummies(frame.iloc[:, :-1]).to_numpy(float)
        yield name, features, pd.factorize(frame.iloc[:, -1])[0]


def methods() -> dict[str, Any]:
    """What is compared."""
    search = drlogit.DRLogisticRegressionCV(epsilons=8, kappas=2, cv=3)
    plain = LogisticRegressionCV(
        Cs=12, cv=3, scoring="neg_log_loss", max_iter=5000, use_legacy_attributes=False
    )
    return {ONE: search, REST: OneVsRestClassifier(search), PLAIN: plain}


def accuracy_rows() -> Iterator[dict[str, Any]]:
    """Test log-loss and accuracy of each method on each split."""
    for name, X, y in datasets():
        for split in range(SPLITS):
            size = min(TRAINING, y.size // 2)
            train, test, labels, others = train_test_split(
                X, y, train_size=size, stratify=y, random_state=split
            )
            scaler = StandardScaler().fit(train)
            for method, model in methods().items():
                started = time.process_time()
                model.fit(scaler.transform(train), labels)
                seconds = time.process_time() - started
                found = model.predict_proba(scaler.transform(test))
                row = {
                    "kind": "accuracy", "data": name, "split": split, "method": method,
                    "log_loss": log_loss(others, found, labels=model.classes_),
                    "accuracy": float((model.classes_[found.argmax(axis=1)] == others).mean()),
                    "seconds": seconds,
                }  # fmt: skip
                if method == ONE:
                    row["gap"] = float(model.dual_gap_[0])
                yield row


def time_rows() -> Iterator[dict[str, Any]]:
    """Seconds of a certified fit beside those of scikit-learn's softmax, both of this process."""
    for n_samples, n_features, n_classes in SIZES:
        rng = np.random.default_rng(0)
        X = rng.normal(size=(n_samples, n_features))
        scores = X @ (0.3 * rng.normal(size=(n_features, n_classes)))
        y = (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)
        kappas = (1.0, np.inf)
        sides = [
            partial(LogisticRegression(tol=1e-6, max_iter=1000).fit, X, y),
            *(partial(drlogit.solve, X, y, epsilon=0.02, kappa=k, n_jobs=1) for k in kappas),
        ]
        best: list[float] = [np.inf] * len(sides)
        found: list[Any] = [None] * len(sides)
        with threadpool_limits(1):
            for _, (k, side) in product(range(TURNS + 1), enumerate(sides)):  # one to warm up
                started = time.process_time()
                found[k] = side()
                best[k] = min(best[k], time.process_time() - started)
        for kappa, seconds, result in zip(kappas, best[1:], found[1:], strict=True):
            yield {
                "kind": "time", "shape": [n_samples, n_features, n_classes], "kappa": str(kappa),
                "seconds": seconds, "plain": best[0], "gap": result.gap, "n_iter": result.n_iter,
            }  # fmt: skip


def tables(rows: list[dict[str, Any]]) -> str:
    """Markdown: means with standard errors over splits, and times."""
    found: dict[Any, dict[str, list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if row["kind"] == "accuracy":
            found[row["data"]][row["method"]].append(row)
    names = (ONE, REST, PLAIN)
    lines = ["| data | " + " | ".join(f"log-loss, {n} | accuracy" for n in names) + " |"]
    lines.append("|---" * 7 + "|")
    differences: dict[str, list[float]] = defaultdict(list)
    for data, by_method in found.items():
        cells = []
        for method in names:
            losses = np.array([row["log_loss"] for row in by_method[method]])
            right = np.mean([row["accuracy"] for row in by_method[method]])
            error = losses.std(ddof=1) / np.sqrt(losses.size) if losses.size > 1 else np.nan
            cells.append(f"{losses.mean():.3f} ± {error:.3f} | {100 * right:.1f} %")
            differences[method].append(float(losses.mean()))
        lines.append(f"| {data} | " + " | ".join(cells) + " |")
    for method in (REST, PLAIN):
        gains = np.array(differences[ONE]) - np.array(differences[method])
        error = gains.std(ddof=1) / np.sqrt(gains.size)
        lines.append(f"\n{ONE} less {method}: {gains.mean():+.3f} ± {error:.3f} nats")
    lines += ["", "| N, n, K | κ | robust, s | plain, s | ratio | gap | iterations |",
              "|---|---|---|---|---|---|---|"]  # fmt: skip
    for row in rows:
        if row["kind"] == "time":
            ratio = row["seconds"] / row["plain"]
            lines.append(
                f"| {tuple(row['shape'])} | {row['kappa']} | {row['seconds']:.2f} | "
                f"{row['plain']:.3f} | {ratio:.1f} | {row['gap']:.0e} | {row['n_iter']} |"
            )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--times", action="store_true", help="times alone")
    arguments = parser.parse_args()
    if not arguments.table:
        warnings.simplefilter("ignore")
        kept = []
        if arguments.times and RESULTS.exists():
            read = [json.loads(line) for line in RESULTS.read_text().splitlines()]
            kept = [row for row in read if row["kind"] != "time"]
        with open(RESULTS, "w") as file:
            for row in kept:
                file.write(json.dumps(row) + "\n")
            for row in chain(time_rows(), () if arguments.times else accuracy_rows()):
                file.write(json.dumps(row) + "\n")
                file.flush()
    print(tables([json.loads(line) for line in RESULTS.read_text().splitlines()]))


if __name__ == "__main__":
    main()
