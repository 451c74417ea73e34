"""Wrong training labels, clean test data: does a robust fit predict better?

    python -m benchmarks.label_noise             # measure what has no rows yet (20 repeats)
    python -m benchmarks.label_noise --table     # the table of docs/label_noise.md

A share of the training labels is flipped at random.  Every method sees only the noisy data, tunes
itself on them (five folds, by log-loss) and is judged on a test set whose labels are right.
Rows go to ``benchmarks/results/label-noise.jsonl``, one for each method on each data set.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

import drlogit

from . import store
from .measure import circumstances
from .paper import datasets

SUITE = "label-noise"
RATES = (0.0, 0.1, 0.2, 0.3)
REPEATS = 20

Parts = tuple[Any, Any, Any, Any]  # X, y, X_test, y_test


def breast_cancer(seed: int) -> Parts:
    """70 % to train on and 30 % to test, standardised by the former."""
    X, y = load_breast_cancer(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, train_size=0.7, stratify=y, random_state=seed)
    scaler = StandardScaler().fit(X)
    return scaler.transform(X), y, scaler.transform(X_test), y_test


def a1a(seed: int) -> Parts:
    """As many training samples as a1a has, drawn anew from a1a and its test set together."""
    matrices, labels = zip(*(datasets.load(name) for name in ("a1a", "a1a.t")), strict=True)
    X, y = sp.vstack(matrices, format="csr"), np.concatenate(labels)
    X, X_test, y, y_test = train_test_split(X, y, train_size=1605, stratify=y, random_state=seed)
    return X, y, X_test, y_test


DATA: dict[str, Callable[[int], Parts]] = {"breast-cancer": breast_cancer, "a1a": a1a}

#: The two logistic regressions of scikit-learn get its defaults but for the penalty.
METHODS: dict[str, Callable[[], Any]] = {
    "plain LR": lambda: LogisticRegression(C=np.inf, max_iter=10_000),
    "LR, ℓ2 tuned": lambda: LogisticRegressionCV(
        Cs=20, cv=5, scoring="neg_log_loss", max_iter=10_000
    ),
    "DRLR, ℓ1 tuned": lambda: drlogit.DRLogisticRegressionCV(norm="l1"),
    "DRLR, ℓ2 tuned": lambda: drlogit.DRLogisticRegressionCV(norm="l2"),
}


def rows(data: str, rate: float, seed: int) -> Iterator[store.Row]:
    """A row for each method on one draw of samples and of flips."""
    X, y, X_test, y_test = DATA[data](seed)
    low, high = np.unique(y)
    flipped = np.random.default_rng(seed).random(y.size) < rate
    y = np.where(flipped, low + high - y, y)
    for method, make in METHODS.items():
        started = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # about attributes not used here
            model = make().fit(X, y)
        tuned = hasattr(model, "kappa_")
        yield {
            "suite": SUITE, "data": data, "rate": rate, "seed": seed, "method": method,
            "n_samples": y.size, "n_test": y_test.size,
            "log_loss": float(log_loss(y_test, model.predict_proba(X_test))),
            "accuracy": float(np.mean(model.predict(X_test) == y_test)),
            "epsilon": model.epsilon_ if tuned else None,
            "kappa": model.kappa_ if tuned else None,
            "cpu_seconds": time.process_time() - started,
            **circumstances(1),
        }  # fmt: skip


def measure(repeats: int) -> None:
    """Append the rows that are missing."""
    done = {(r["data"], r["rate"], r["seed"]) for r in store.read(store.RESULTS, SUITE)}
    for seed, data, rate in product(range(repeats), DATA, RATES):
        if (data, rate, seed) not in done:
            measured = list(rows(data, rate, seed))
            store.append(store.RESULTS, SUITE, measured)
            losses = ", ".join(f"{row['method']} {row['log_loss']:.4f}" for row in measured)
            print(f"{data}, {rate:.0%} flipped, repeat {seed}: {losses}", flush=True)


def table(measured: list[store.Row]) -> str:
    """Markdown: log-loss and accuracy with standard errors, and paired differences."""
    lines = [
        "| data | flipped | " + " | ".join(METHODS) + " | DRLR ℓ1 − LR ℓ2, paired |",
        "|---|---|" + "---|" * (len(METHODS) + 1),
    ]
    for measure, digits in (("log_loss", 3), ("accuracy", 1)):
        title = "log-loss (nats)" if measure == "log_loss" else "accuracy (%)"
        factor = 1.0 if measure == "log_loss" else 100.0
        lines.append(f"| **{title}** |" + " |" * (len(METHODS) + 2))
        for data, rate in product(DATA, RATES):
            values = {
                method: factor * np.array([
                    row[measure] for row in sorted(measured, key=lambda row: row["seed"])
                    if (row["data"], row["rate"], row["method"]) == (data, rate, method)
                ])
                for method in METHODS
            }  # fmt: skip
            cells = [mean_and_error(v, digits) for v in values.values()]
            difference = values["DRLR, ℓ1 tuned"] - values["LR, ℓ2 tuned"]
            cells.append(mean_and_error(difference, digits, sign="+"))
            lines.append(f"| {data} | {rate:.0%} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def mean_and_error(values: Any, digits: int, sign: str = "") -> str:
    """Mean ± its standard error."""
    error = np.std(values, ddof=1) / np.sqrt(len(values))
    return f"{np.mean(values):{sign}.{digits}f} ± {error:.{digits}f}"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.label_noise",
                                     description=(__doc__ or "").partition("\n")[0])  # fmt: skip
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--table", action="store_true", help="print the table, measure nothing")
    options = parser.parse_args()
    if options.table:
        print(table(store.read(store.RESULTS, SUITE)))
    else:
        measure(options.repeats)


if __name__ == "__main__":
    main()
