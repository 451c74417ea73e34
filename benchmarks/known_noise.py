"""Labels wrong at a known rate, clean test data: what ``label_noise`` is worth.

    python -m benchmarks.known_noise             # measure what has no rows yet (6 splits, minutes)
    python -m benchmarks.known_noise --table     # the table of docs/label_noise.md
    python -m benchmarks.known_noise --trust     # the table of docs/trust-per-label.md (seconds)

Of 300 training samples of each of eight sets, a share of one class (the one that sorts last) or of
both is recorded as the other.  ``DRLogisticRegressionCV`` (κ = ∞) sees the recorded labels alone;
its predictions are judged on test samples whose labels are right, as they are and corrected for the
true rate, for half of it and for one and a half of it.  Needs ``DRLOGIT_DATA``.  Rows go to
``benchmarks/results/known-noise.jsonl``.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Callable
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

import drlogit
from drlogit.estimators.label_noise import noise_matrix, true_probabilities

from . import store
from .measure import circumstances
from .paper import datasets

SUITE = "known-noise"
SPLITS = 6
TRAIN, TEST = 300, 2000

#: Shares of the negative and of the positive class that are recorded as the other.
NOISE = {
    "none": (0.0, 0.0),
    "5 % of all": (0.05, 0.05),
    "10 % of all": (0.1, 0.1),
    "20 % of all": (0.2, 0.2),
    "10 % of one class": (0.0, 0.1),
    "20 % of one class": (0.0, 0.2),
    "40 % of one class": (0.0, 0.4),
}

#: What is assumed, in multiples of the true rates.
ASSUMED = {"as recorded": 0.0, "true rate": 1.0, "half of it": 0.5, "1.5 times it": 1.5}


def _table(name: str, target: str) -> tuple[Any, Any]:
    """A table of text and numbers: one-hot columns, and standardised numbers without gaps."""
    path = Path(os.environ["DRLOGIT_DATA"]) / "tables" / f"{name}.csv.bz2"
    frame = pd.read_csv(path, na_values="?")
    y = np.unique(frame.pop(target).astype(str), return_inverse=True)[1]
    numbers = frame.select_dtypes("number")
    numbers = ((numbers - numbers.mean()) / numbers.std()).fillna(0.0)
    texts = pd.get_dummies(frame.select_dtypes(exclude="number"), dtype=float)
    return np.hstack([numbers.to_numpy(), texts.to_numpy()]), y


def _libsvm(name: str) -> tuple[Any, Any]:
    X, y = datasets.load(name)
    return X, (y > 0).astype(int)


def _breast_cancer() -> tuple[Any, Any]:
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X), y


DATA: dict[str, Callable[[], tuple[Any, Any]]] = {
    "a9a": partial(_libsvm, "a9a"),
    "breast-cancer-w": _breast_cancer,
    "credit-g": partial(_table, "credit-g", "class"),
    "heart-c": partial(_table, "heart-c", "num"),
    "kr-vs-kp": partial(_table, "kr-vs-kp", "class"),
    "mushrooms": partial(_libsvm, "mushrooms"),
    "phishing": partial(_libsvm, "phishing"),
    "vote": partial(_table, "vote", "Class"),
}


@cache
def load(data: str) -> tuple[Any, Any]:
    """Features and clean labels, 0 and 1."""
    return DATA[data]()


def recorded_fit(data: str, noise: str, seed: int) -> tuple[Any, Any]:
    """Probabilities of recorded labels for the test samples, and their true labels."""
    X, y = load(data)
    n_train = min(TRAIN, 2 * y.size // 3)
    n_test = min(TEST, y.size - n_train)
    X, X_test, y, y_test = train_test_split(
        X, y, train_size=n_train, test_size=n_test, stratify=y, random_state=seed
    )
    flipped = np.random.default_rng(seed).random(y.size) < np.array(NOISE[noise])[y]
    search = drlogit.DRLogisticRegressionCV(epsilons=8, kappas=[np.inf], norm="l2")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of units that differ, which is as it is
        search.fit(X, np.where(flipped, 1 - y, y))
    return search.predict_proba(X_test), y_test


def rows(data: str, noise: str, seed: int) -> list[store.Row]:
    """A row for each assumption on one split."""
    recorded, y = recorded_fit(data, noise, seed)
    found = []
    for assumed, factor in ASSUMED.items():
        rates = {k: factor * rate for k, rate in enumerate(NOISE[noise])}
        matrix = noise_matrix(rates, np.arange(2))
        p = recorded if factor == 0.0 or matrix is None else true_probabilities(recorded, matrix)
        found.append({
            "suite": SUITE, "data": data, "noise": noise, "seed": seed, "assumed": assumed,
            "log_loss": float(log_loss(y, p)),
            "accuracy": float(np.mean((p[:, 1] > 0.5) == y)),
            **circumstances(1),
        })  # fmt: skip
    return found


def measure(splits: int) -> None:
    """Append the rows that are missing."""
    known = {(r["data"], r["noise"], r["seed"]) for r in store.read(store.RESULTS, SUITE)}
    for seed, data, noise in product(range(splits), DATA, NOISE):
        if (data, noise, seed) not in known:
            measured = rows(data, noise, seed)
            store.append(store.RESULTS, SUITE, measured)
            losses = ", ".join(f"{row['assumed']} {row['log_loss']:.4f}" for row in measured)
            print(f"{data}, {noise}, split {seed}: {losses}", flush=True)


def mean_and_error(values: Any, digits: int, sign: str = "") -> str:
    """Mean ± its standard error."""
    error = np.std(values, ddof=1) / np.sqrt(len(values))
    return f"{np.mean(values):{sign}.{digits}f} ± {error:.{digits}f}"


def table(measured: list[store.Row]) -> str:
    """Markdown: means over sets and splits, with standard errors of differences between sets."""
    frame = pd.DataFrame(measured)
    means = frame.groupby(["noise", "data", "assumed"])[["log_loss", "accuracy"]].mean()
    heads = [*ASSUMED, "gain of the true rate"]
    lines = ["| wrong labels | " + " | ".join(heads) + " |", "|---|" + "---|" * len(heads)]
    for name, factor, digits in (("log_loss", 1.0, 3), ("accuracy", 100.0, 1)):
        title = "log-loss (nats)" if name == "log_loss" else "accuracy (%)"
        lines.append(f"| **{title}** |" + " |" * len(heads))
        for noise in NOISE:
            by_set = factor * means.loc[noise][name].unstack()
            cells = [f"{by_set[each].mean():.{digits}f}" for each in ASSUMED]
            gain = by_set["true rate"] - by_set["as recorded"]
            cells.append(mean_and_error(gain.to_numpy(), digits, sign="+"))
            lines.append(f"| {noise} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def trust_table(epsilon: float = 0.05) -> str:
    """Markdown: certified worst-case losses if either class, or half of the labels, is certain."""
    names = ["one κ", "positive class certain", "negative class certain", "half reviewed"]
    lines = ["| data | " + " | ".join(names) + " |", "|---|" + "---|" * len(names)]
    for data in DATA:
        X, y = load(data)
        n_train = min(TRAIN, 2 * y.size // 3)
        X, _, y, _ = train_test_split(X, y, train_size=n_train, stratify=y, random_state=0)
        reviewed = np.random.default_rng(0).random(y.size) < 0.5
        never = np.inf
        kappas = (1.0, {0: 1.0, 1: never}, {0: never, 1: 1.0}, np.where(reviewed, never, 1.0))
        losses = [
            drlogit.solve(X, y, epsilon=epsilon, kappa=kappa, norm="l2").objective
            for kappa in kappas
        ]
        cells = [f"{value:.4f} ({value / losses[0] - 1.0:+.1%})" for value in losses[1:]]
        lines.append(f"| {data} | {losses[0]:.4f} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.known_noise",
                                     description=(__doc__ or "").partition("\n")[0])  # fmt: skip
    parser.add_argument("--splits", type=int, default=SPLITS)
    parser.add_argument("--table", action="store_true", help="print the table, measure nothing")
    parser.add_argument("--trust", action="store_true", help="what trust per label is worth")
    options = parser.parse_args()
    if options.trust:
        print(trust_table())
    elif options.table:
        print(table(store.read(store.RESULTS, SUITE)))
    else:
        measure(options.splits)


if __name__ == "__main__":
    main()
