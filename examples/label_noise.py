"""Wrong labels: what does a robust fit buy, and what not?

A share of the *training* labels is flipped at random.  Models are tuned on these noisy data, as
one would have to, and judged on a clean test set:

* scikit-learn's logistic regression as it comes (an ℓ2 penalty with C = 1);
* the same with the penalty tuned by cross-validation;
* distributionally robust logistic regression with ε and κ tuned by cross-validation, for two
  transport norms.  ε/κ is the largest share of labels that the adversary may flip.

    python examples/label_noise.py                     # 20 repeats: half an hour on one core
    python examples/label_noise.py --repeats 3 --data breast-cancer
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

import drlogit

METHODS = ("LR, C=1", "LR, l2 tuned", "DRLR, l1", "DRLR, l2")


def breast_cancer(seed):
    """Training and test data: 70 % and 30 %, features standardised."""
    X, y = load_breast_cancer(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, train_size=0.7, stratify=y, random_state=seed)
    scaler = StandardScaler().fit(X)
    return scaler.transform(X), y, scaler.transform(X_test), y_test


def a1a(seed):
    """As many training samples as a1a has, drawn anew from a1a and its test set together."""
    parts = [drlogit.datasets.load(name) for name in ("a1a", "a1a.t")]
    columns = max(part.data.shape[1] for part in parts)
    rows = [sp.csr_array(part.data) for part in parts]
    for matrix in rows:
        matrix.resize(matrix.shape[0], columns)
    X, y = sp.vstack(rows, format="csr"), np.concatenate([part.target for part in parts])
    X, X_test, y, y_test = train_test_split(X, y, train_size=1605, stratify=y, random_state=seed)
    return X, y, X_test, y_test


DATA = {"breast-cancer": breast_cancer, "a1a": a1a}


def fit(method, X, y, n_jobs):
    """A model tuned on the (noisy) training data."""
    if method == "LR, C=1":
        return LogisticRegression(max_iter=10_000).fit(X, y)
    if method == "LR, l2 tuned":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # about attributes we do not use
            return LogisticRegressionCV(
                Cs=20, cv=5, scoring="neg_log_loss", max_iter=10_000, n_jobs=n_jobs
            ).fit(X, y)
    norm = method.rpartition(" ")[2]
    return drlogit.DRLogisticRegressionCV(norm=norm, cv=5, n_jobs=n_jobs).fit(X, y)


def run(name, rate, seed, n_jobs):
    """Clean log-loss and accuracy of every method, and the ε/κ that the robust ones chose."""
    X, y, X_test, y_test = DATA[name](seed)
    flipped = np.random.default_rng(seed).random(y.size) < rate
    low, high = np.unique(y)
    y = np.where(flipped, low + high - y, y)
    row = {}
    for method in METHODS:
        model = fit(method, X, y, n_jobs)
        row[method, "log-loss"] = log_loss(y_test, model.predict_proba(X_test))
        row[method, "accuracy"] = np.mean(model.predict(X_test) == y_test)
        if hasattr(model, "kappa_"):
            row[method, "epsilon/kappa"] = model.epsilon_ / model.kappa_
    return row


def summary(values):
    """Mean and its standard error, or nothing where a method has no such value."""
    values = np.asarray(values)
    if np.isnan(values).any():
        return ""
    error = values.std(ddof=1) / np.sqrt(values.size) if values.size > 1 else np.nan
    return f"{values.mean():.4f} ± {error:.4f}"


def main() -> None:
    """Print a table for each data set."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--rates", type=float, nargs="+", default=[0.0, 0.1, 0.2, 0.3])
    parser.add_argument("--data", nargs="+", choices=DATA, default=list(DATA))
    parser.add_argument("--n-jobs", type=int, default=None)
    arguments = parser.parse_args()
    print(f"Clean test set, mean of {arguments.repeats} repeats ± standard error of the mean.")
    for name in arguments.data:
        print(f"\n{name}\n{'flipped':>8} {'':14}" + "".join(f"{m:>18}" for m in METHODS))
        for rate in arguments.rates:
            started = time.perf_counter()
            rows = [run(name, rate, seed, arguments.n_jobs) for seed in range(arguments.repeats)]
            for measure in ("log-loss", "accuracy", "epsilon/kappa"):
                cells = [summary([row.get((m, measure), np.nan) for row in rows]) for m in METHODS]
                print(f"{rate:8.0%} {measure:14}" + "".join(f"{cell:>18}" for cell in cells))
            # Repeats share their data, so differences say more than means.
            tuned, *robust = METHODS[1:]
            for method in robust:
                gains = [row[tuned, "log-loss"] - row[method, "log-loss"] for row in rows]
                wins = sum(gain > 0.0 for gain in gains)
                print(f"{'':9}log-loss of {tuned} less that of {method}: {summary(gains)}, positive"
                      f" in {wins} of {len(gains)}")  # fmt: skip
            print(f"{'':9}({time.perf_counter() - started:.0f} s)", flush=True)


if __name__ == "__main__":
    main()
