"""Wrong labels: what does a robust fit buy, and what not?

A share of the *training* labels is flipped at random.  Models are tuned on these noisy data, as
one would have to, and judged twice: on a test set whose labels are right, and on the worst that
ε/κ flipped labels could do to it.  Breast cancer data, standardised.

    python examples/label_noise.py

The documentation (Does it help when training labels are wrong?) has a table of eight data sets,
with standard errors.
"""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

import drlogit

RATES = (0.0, 0.1, 0.2)
REPEATS = 3
EPSILON, KAPPA = 0.05, 1.0  # the worst case that models are judged by: 5 % of labels flipped


def fits(X, y):
    """Models as one would fit them to labels of unknown quality."""
    tuned = LogisticRegressionCV(Cs=10, scoring="neg_log_loss", max_iter=10_000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # about attributes not used here
        tuned.fit(X, y)
    return {
        "LR, no penalty": LogisticRegression(C=np.inf, max_iter=10_000).fit(X, y),
        "LR, l2 tuned by CV": tuned,
        "DRLR tuned by CV": drlogit.DRLogisticRegressionCV(epsilons=6, kappas=3).fit(X, y),
        "DRLR, 5 % of labels": drlogit.DRLogisticRegression(EPSILON, KAPPA).fit(X, y),
    }


def main() -> None:
    """Print mean losses for growing shares of wrong labels."""
    features, labels = load_breast_cancer(return_X_y=True)
    print(f"mean of {REPEATS} repeats; test labels are right")
    print(f"worst case: log-loss if up to {EPSILON / KAPPA:.0%} of the test labels are flipped\n")
    print(f"{'flipped':>8} {'':20} {'log-loss':>9} {'accuracy':>9} {'worst case':>11}")
    for rate in RATES:
        rows: dict[str, list[tuple[float, float, float]]] = {}
        for seed in range(REPEATS):
            X, X_test, y, y_test = train_test_split(
                features, labels, train_size=0.7, stratify=labels, random_state=seed
            )
            scaler = StandardScaler().fit(X)
            X, X_test = scaler.transform(X), scaler.transform(X_test)
            y = np.where(np.random.default_rng(seed).random(y.size) < rate, 1 - y, y)
            for name, model in fits(X, y).items():
                worst = drlogit.worst_case_loss(model, X_test, y_test, epsilon=EPSILON, kappa=KAPPA)
                loss = log_loss(y_test, model.predict_proba(X_test))
                accuracy = np.mean(model.predict(X_test) == y_test)
                rows.setdefault(name, []).append((loss, accuracy, worst))
        for name, values in rows.items():
            loss, accuracy, worst = np.mean(values, axis=0)
            print(f"{rate:8.0%} {name:20} {loss:9.3f} {accuracy:9.1%} {worst:11.3f}")
    print(
        "\nOn clean test data the tuned robust and the tuned l2-penalised fit are about equal:\n"
        "flips make every model less sure, and cross-validation on noisy labels rewards that.\n"
        "The robust fit at a chosen (epsilon, kappa) is the worst of the tuned ones there, and by\n"
        "far the best in the worst case while training labels are right. With many wrong labels\n"
        "the tuned models are so unsure by themselves that this advantage is gone."
    )


if __name__ == "__main__":
    main()
