"""How good an answer is: of others to the robust problem, and to the plain one.

scikit-learn's ``LogisticRegression`` solves

    minimise    (1/N) Σ h(u_i) + ‖β‖² / (2CN)     over β, b,     u_i = y_i (x_i·β + b)

with dual   (1/N) Σ H(s_i) - C ‖Σ s_i y_i x_i‖² / (2N)   over s in [0, 1], Σ s_i y_i = 0, where
H is the entropy.  So its answer can be held to the same measure as ours, a gap in nats.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import entr, expit

import drlogit

#: Gap of the fit whose bound judges others.
_EXACT = 1e-9


def robust_objective_and_gap(
    X: Any, y: Any, coef: Any, intercept: float, *, epsilon: float, kappa: float, **options: Any
) -> tuple[float, float]:
    """The worst-case loss of a model, and how far above the certified bound of a fit it is."""
    ball = {"epsilon": epsilon, "kappa": kappa, **options}
    bound = drlogit.solve(X, y, tol=_EXACT, **ball).dual_objective
    ball.pop("fit_intercept", None)
    value = drlogit.worst_case_loss((coef, intercept), X, y, **ball)
    return float(value), float(value - bound)


def plain_objective_and_gap(
    X: Any, y: Any, coef: Any, intercept: float, C: float = 1.0
) -> tuple[float, float]:
    """The value of a plain fit and its duality gap; labels are ±1."""
    coef = np.ravel(coef)
    margins = y * (X @ coef + intercept)
    primal = np.logaddexp(0.0, -margins).mean() + coef @ coef / (2.0 * C * y.size)
    # The multipliers that belong to the margins, the heavier class scaled down to balance.
    s = expit(-margins)
    positive, negative = s[y > 0].sum(), s[y < 0].sum()
    balance = min(positive, negative)
    s *= np.where(y > 0, balance / positive, balance / negative)
    moment = X.T @ (s * y)
    dual = (entr(s) + entr(1.0 - s)).mean() - C * (moment @ moment) / (2.0 * y.size)
    return float(primal), float(primal - dual)
