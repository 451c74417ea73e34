"""Wrong labels, clean test data: what tuning a robust fit and ``label_noise`` are worth.

    python -m benchmarks.known_noise             # measure what has no rows yet (6 splits, minutes)
    python -m benchmarks.known_noise --table     # the tables of docs/wrong_labels.md
    python -m benchmarks.known_noise --trust     # the tables of docs/wrong_labels.md

Of 300 training samples of each of eight sets, a share of one class (the one that sorts last) or of
both is recorded as the other.  ``DRLogisticRegressionCV`` (κ = ∞) sees the recorded labels alone;
its predictions are judged on test samples whose labels are right, as they are and corrected for the
true rate, for half of it and for one and a half of it.  Beside it, without knowledge of the rate:
a search over ε and κ, and logistic regression with a tuned ℓ2 penalty.

Or half of the samples, it is known which, were labelled by somebody who is wrong in 30 %: one κ for
all, a κ for that half alone, or less weight for it.

Needs ``DRLOGIT_DATA``.  Rows go to ``known-noise.jsonl`` and ``trust.jsonl`` in
``benchmarks/results``.
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
from sklearn.linear_model import LogisticRegressionCV
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

import drlogit
from drlogit.estimators.label_noise import noise_matrix, true_probabilities

from . import store
from .measure import circumstances
from .paper import datasets

SUITE, TRUST = "known-noise", "trust"
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


#: Searches that know no rate, beside the one of κ = ∞, and where they are compared with it.
RIDGE, BOTH = "LR, ℓ2 tuned", "ε and κ tuned"
COMPARED = ("none", "10 % of all", "20 % of all", "20 % of one class")


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


def searches(noise: str) -> dict[str, Any]:
    """What is fitted to the labels as recorded."""
    found: dict[str, Any] = {
        "as recorded": drlogit.DRLogisticRegressionCV(epsilons=8, kappas=[np.inf], norm="l2")
    }
    if noise in COMPARED:
        found[BOTH] = drlogit.DRLogisticRegressionCV(epsilons=8, kappas=4, norm="l2")
        found[RIDGE] = LogisticRegressionCV(
            Cs=20, cv=5, scoring="neg_log_loss", max_iter=5000, use_legacy_attributes=False
        )
    return found


def split(data: str, seed: int) -> list[Any]:
    """Samples to train on and to test with, and their labels."""
    X, y = load(data)
    n_train = min(TRAIN, 2 * y.size // 3)
    n_test = min(TEST, y.size - n_train)
    parts = train_test_split(
        X, y, train_size=n_train, test_size=n_test, stratify=y, random_state=seed
    )
    return list(parts)


def recorded_fits(data: str, noise: str, seed: int) -> tuple[dict[str, Any], Any]:
    """Probabilities of recorded labels for the test samples, and their true labels."""
    X, X_test, y, y_test = split(data, seed)
    flipped = np.random.default_rng(seed).random(y.size) < np.array(NOISE[noise])[y]
    labels, found = np.where(flipped, 1 - y, y), {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of units that differ, which is as it is
        for name, search in searches(noise).items():
            found[name] = search.fit(X, labels).predict_proba(X_test)
    return found, y_test


def rows(data: str, noise: str, seed: int) -> list[store.Row]:
    """A row for each search and each assumption on one split."""
    probabilities, y = recorded_fits(data, noise, seed)
    recorded = probabilities["as recorded"]
    for assumed, factor in ASSUMED.items():
        rates = {k: factor * rate for k, rate in enumerate(NOISE[noise])}
        matrix = noise_matrix(rates, np.arange(2))
        known = factor != 0.0 and matrix is not None
        probabilities[assumed] = true_probabilities(recorded, matrix) if known else recorded
    return [
        {
            "suite": SUITE, "data": data, "noise": noise, "seed": seed, "assumed": name,
            "log_loss": float(log_loss(y, p)),
            "accuracy": float(np.mean((p[:, 1] > 0.5) == y)),
            **circumstances(1),
        }
        for name, p in probabilities.items()
    ]  # fmt: skip


def trust_rows(data: str, seed: int) -> list[store.Row]:
    """A row for each way to say that half of the labels are worse than the others."""
    X, X_test, y, y_test = split(data, seed)
    rng = np.random.default_rng(seed)
    doubtful = rng.random(y.size) < 0.5
    labels = np.where(doubtful & (rng.random(y.size) < 0.3), 1 - y, y)
    known = {
        "one κ": {},
        "κ of that half": {"kappa": np.where(doubtful, 1.0, np.inf)},
        "weight 0.2": {"sample_weight": np.where(doubtful, 0.2, 1.0)},
    }
    found = []
    for name, told in known.items():
        search = drlogit.DRLogisticRegressionCV(epsilons=8, kappas=4, norm="l2")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            p = search.fit(X, labels, **told).predict_proba(X_test)
        value = float(log_loss(y_test, p))
        found.append({"suite": TRUST, "data": data, "seed": seed, "told": name, "log_loss": value})
    return [row | circumstances(1) for row in found]


def measure(splits: int) -> None:
    """Append the rows that are missing."""
    known = {(r["data"], r["seed"]) for r in store.read(store.RESULTS, TRUST)}
    for seed, data in product(range(splits), DATA):
        if (data, seed) not in known:
            store.append(store.RESULTS, TRUST, trust_rows(data, seed))
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


def table(measured: list[store.Row], kinds: Any, columns: list[str], pair: tuple[str, str]) -> str:
    """Markdown: means over sets and splits; of a pair the difference ± its error between sets."""
    frame = pd.DataFrame(measured)
    means = frame.groupby(["noise", "data", "assumed"])[["log_loss", "accuracy"]].mean()
    heads = [*columns, f"{pair[0]} − {pair[1]}"]
    lines = ["| wrong labels | " + " | ".join(heads) + " |", "|---|" + "---|" * len(heads)]
    for name, factor, digits in (("log_loss", 1.0, 3), ("accuracy", 100.0, 1)):
        title = "log-loss (nats)" if name == "log_loss" else "accuracy (%)"
        lines.append(f"| **{title}** |" + " |" * len(heads))
        for noise in kinds:
            by_set = factor * means.loc[noise][name].unstack()
            cells = [f"{by_set[each].mean():.{digits}f}" for each in columns]
            gain = by_set[pair[0]] - by_set[pair[1]]
            cells.append(mean_and_error(gain.to_numpy(), digits, sign="+"))
            lines.append(f"| {noise} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def tables(measured: list[store.Row]) -> tuple[str, str]:
    """Searches that know no rate, and assumed rates."""
    return (
        table(measured, COMPARED, [RIDGE, "as recorded", BOTH], (BOTH, RIDGE)),
        table(measured, NOISE, [*ASSUMED], ("true rate", "as recorded")),
    )


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


def told_table(measured: list[store.Row]) -> str:
    """Markdown: mean test log-loss, and the difference to one κ ± its error between sets."""
    means = pd.DataFrame(measured).groupby(["data", "told"])["log_loss"].mean().unstack()
    lines = ["| | log-loss | − one κ |", "|---|---|---|"]
    for name in ("one κ", "κ of that half", "weight 0.2"):
        less = mean_and_error((means[name] - means["one κ"]).to_numpy(), 4, sign="+")
        lines.append(f"| {name} | {means[name].mean():.4f} | {less if name != 'one κ' else ''} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.known_noise",
                                     description=(__doc__ or "").partition("\n")[0])  # fmt: skip
    parser.add_argument("--splits", type=int, default=SPLITS)
    parser.add_argument("--table", action="store_true", help="print the table, measure nothing")
    parser.add_argument("--trust", action="store_true", help="what trust per label is worth")
    options = parser.parse_args()
    if options.trust:
        print(trust_table(), told_table(store.read(store.RESULTS, TRUST)), sep="\n\n")
    elif options.table:
        print(*tables(store.read(store.RESULTS, SUITE)), sep="\n\n")
    else:
        measure(options.splits)


if __name__ == "__main__":
    main()
