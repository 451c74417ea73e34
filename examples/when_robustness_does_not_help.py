"""Four cases in which a robust fit does not help, or does harm.

Robustness is an insurance.  On data whose truth is known we can see when it pays nothing:

1. the test data are like the training data: a tuned l2 penalty is as good;
2. there are many samples: nothing is left to insure, and any radius costs;
3. labels are wrong at random: all methods learn the same boundary, less surely;
4. a few gross outliers: the model is pessimistic about the data, it does not discard them.

    python examples/when_robustness_does_not_help.py
"""

from __future__ import annotations

import warnings

import numpy as np
from scipy.special import expit
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.metrics import log_loss

import drlogit

REPEATS = 10
TRUTH = np.array([1.5, -1.0, 0.8, -0.5, 0.3, 0.0, 0.0, 0.0, 0.0, 0.0])


def draw(n, rng):
    """Samples of a logistic model: no linear model can do better than its coefficients."""
    X = rng.standard_normal((n, TRUTH.size))
    return X, (rng.random(n) < expit(X @ TRUTH)).astype(int)


def few(rng):
    """A hundred samples, and test data like them."""
    return draw(100, rng)


def many(rng):
    """Many samples, and test data like them."""
    return draw(2000, rng)


def flipped(rng):
    """Every fifth label is wrong, at random."""
    X, y = draw(300, rng)
    return X, np.where(rng.random(y.size) < 0.2, 1 - y, y)


def outliers(rng):
    """One sample in a hundred is ten times too large and has the wrong label."""
    X, y = draw(300, rng)
    X[::100] *= 10.0
    y[::100] = X[::100] @ TRUTH < 0.0
    return X, y


CASES = {
    "1. 100 samples": few,
    "2. 2000 samples": many,
    "3. 300 samples, 20 % flipped": flipped,
    "4. 300 samples, 1 % outliers": outliers,
}


def fits(X, y):
    """Plain, l2-tuned, robust tuned, and robust at a radius chosen by meaning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # about attributes not used here
        tuned = LogisticRegressionCV(scoring="neg_log_loss", max_iter=10_000).fit(X, y)
    return {
        "plain": LogisticRegression(C=np.inf, max_iter=10_000).fit(X, y),
        "l2 tuned": tuned,
        "robust tuned": drlogit.DRLogisticRegressionCV(kappas=3, cv=3).fit(X, y),
        "robust, 5 % flips": drlogit.DRLogisticRegression(0.05, 1.0).fit(X, y),
    }


def main() -> None:
    """Log-loss on clean test data above that of the true model, for each case."""
    X_test, y_test = draw(10_000, np.random.default_rng(12345))
    best = log_loss(y_test, expit(X_test @ TRUTH))
    print(f"log-loss on clean test data above that of the truth ({best:.3f}), {REPEATS} repeats\n")
    table: dict[str, dict[str, float]] = {}
    for case, sample in CASES.items():
        losses: dict[str, list[float]] = {}
        for seed in range(REPEATS):
            for name, model in fits(*sample(np.random.default_rng(seed))).items():
                loss = log_loss(y_test, model.predict_proba(X_test)) - best
                losses.setdefault(name, []).append(loss)
        table[case] = {name: float(np.mean(values)) for name, values in losses.items()}
    names = list(next(iter(table.values())))
    print(f"{'':30}" + "".join(f"{name:>18}" for name in names))
    for case, row in table.items():
        print(f"{case:30}" + "".join(f"{row[name]:18.3f}" for name in names))
    print(
        "\nTuned by cross-validation, robustness is about as good as an l2 penalty, no more: with\n"
        "few samples any penalty helps, and it matters little which. A radius chosen for a danger\n"
        "that does not come is a premium paid for nothing, and the more so the more data there\n"
        "are. Labels wrong at random, and outliers, make every tuned model less sure than the\n"
        "truth is; here the plain fit is the best. Outliers are not discarded: look at the data,\n"
        "or use a method that does."
    )


if __name__ == "__main__":
    main()
