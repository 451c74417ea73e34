"""Worst-case loss against the radius, for a plain and two robust models."""

from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

import drlogit
from drlogit.report import RobustnessDisplay

X, y = load_breast_cancer(return_X_y=True)
X = StandardScaler().fit_transform(X)
RobustnessDisplay.from_estimators(
    {
        "plain": LogisticRegression(max_iter=1000).fit(X, y),
        "ε = 0.01": drlogit.DRLogisticRegression(0.01, 1.0).fit(X, y),
        "ε = 0.1": drlogit.DRLogisticRegression(0.1, 1.0).fit(X, y),
    },
    X, y, kappa=1.0, max_epsilon=0.3,
)  # fmt: skip
