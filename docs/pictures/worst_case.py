"""Worst-case log-loss against the radius, for a plain and two robust models."""

from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

import drlogit

X, y = load_breast_cancer(return_X_y=True)
X = StandardScaler().fit_transform(X)
models = {
    "plain": LogisticRegression(max_iter=1000).fit(X, y),
    "ε = 0.01": drlogit.DRLogisticRegression(0.01, 1.0).fit(X, y),
    "ε = 0.1": drlogit.DRLogisticRegression(0.1, 1.0).fit(X, y),
}
ball = drlogit.Ball(0.1, 1.0, feature_costs=None)
drlogit.audit(models, X, y, ball=ball, metric="log_loss", epsilons=[0.0, 0.3]).plot()
