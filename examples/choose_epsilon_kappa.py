"""How to choose ε and κ: by what they mean, by theory, by cross-validation.

ε says how far the data may move on average, κ what flipping one label counts for, so ε/κ is the
largest share of labels that may be wrong.  Breast cancer data, standardised, half for training.

    python examples/choose_epsilon_kappa.py
"""

from __future__ import annotations

import math

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

import drlogit
from drlogit import DRLogisticRegression, DRLogisticRegressionCV


def main() -> None:
    """Walk through the ways, then compare the models they give."""
    X, X_test, y, y_test = train_test_split(
        *load_breast_cancer(return_X_y=True), test_size=0.5, random_state=0
    )
    scaler = StandardScaler().fit(X)
    X, X_test = scaler.transform(X), scaler.transform(X_test)

    print("1. From epsilon_max on, the model is constant: it bounds every search.")
    for kappa in (0.25, 1.0, 4.0, math.inf):
        limit = drlogit.epsilon_max(X, y, kappa=kappa)
        share = f"{limit / kappa:.0%} of the labels flipped" if kappa < math.inf else "no flips"
        print(f"   kappa {kappa:4g}: epsilon_max = {limit:.3f}  ({share})")
    print("   While kappa is small only the share epsilon / kappa matters.")

    print("\n2. A path shows what each radius costs (kappa = 1, so epsilon is the share itself).")
    path = drlogit.regularization_path(X, y, n_epsilons=8, kappa=1.0)
    print(f"   {'epsilon':>8} {'worst-case loss':>16} {'loss as given':>14} {'accuracy':>9}")
    for epsilon, worst, coef, intercept in zip(
        path.epsilons, path.objectives, path.coefs, path.intercepts, strict=True
    ):
        scores = X @ coef + intercept
        loss = np.mean(np.logaddexp(0.0, np.where(y == 1, -scores, scores)))
        accuracy = np.mean((scores > 0.0) == y)
        print(f"   {epsilon:8.4f} {worst:16.3f} {loss:14.3f} {accuracy:9.1%}")

    print("\n3. The models that different ways lead to, on test data as they are:")
    models = {
        "by meaning: 2 % of labels wrong": DRLogisticRegression(0.02, 1.0),
        "by theory: epsilon='auto', kappa=inf": DRLogisticRegression("auto", math.inf),
        "by cross-validation": DRLogisticRegressionCV(kappas=3),
        "... within one standard error": DRLogisticRegressionCV(kappas=3, one_standard_error=True),
    }
    print(f"   {'':38} {'epsilon':>8} {'kappa':>8} {'log-loss':>9} {'accuracy':>9}")
    for name, model in models.items():
        model.fit(X, y)
        kappa = getattr(model, "kappa_", getattr(model, "kappa", None))
        loss, accuracy = log_loss(y_test, model.predict_proba(X_test)), model.score(X_test, y_test)
        print(f"   {name:38} {model.epsilon_:8.4f} {kappa:8.3g} {loss:9.3f} {accuracy:9.1%}")
    print("   Cross-validation asks for the best guess about data like these; if you expect worse,")
    print("   say so with epsilon and kappa: no fold can know what has not happened yet.")


if __name__ == "__main__":
    main()
