"""Small problems of several classes with flip costs of every kind, and their optima."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest


def generated(
    seed: int, n_classes: int | None = None
) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    """Samples of 2 to 5 classes and a ball: scales, weights, costs, κ of 0 and ∞, asymmetric.

    Of every third three, κ are those of samples.
    """
    rng = np.random.default_rng(seed)
    K, n = n_classes or int(rng.integers(2, 6)), int(rng.integers(1, 7))
    N = int(rng.integers(3 * K, 25 * K))
    X = rng.normal(size=(N, n)) * 10 ** rng.uniform(-1.5, 1.5) * 10 ** rng.uniform(-0.5, 0.5, n)
    B = rng.normal(size=(K, n)) / X.std(axis=0) * rng.uniform(0, 3)
    y = (X @ B.T + rng.gumbel(size=(N, K))).argmax(axis=1)
    y[:K] = np.arange(K)
    costs = 10 ** rng.uniform(-0.5, 0.5, n) if rng.random() < 0.5 else np.ones(n)
    if rng.random() < 0.3 and n > 1:
        costs[rng.integers(n)] = math.inf
    size, kind = np.abs(X).mean(), rng.integers(5)
    kappa: Any = float(size * 10 ** rng.uniform(-1, 1.3))
    if kind == 1:
        kappa = math.inf
    elif kind > 1:
        by_label = kappa * 10 ** rng.uniform(-0.7, 0.7, (K, K))[0]
        by_label[rng.random((K, K))[0] < 0.25 * (kind > 2)] = math.inf
        by_label[rng.random((K, K))[0] < 0.15 * (kind > 3)] = 0.0
        kappa = dict(enumerate(by_label.tolist()))
    if seed // 3 % 3 == 2:
        kappa = size * rng.choice([0.0, 0.3, 1.0, 4.0, math.inf], N, p=[0.1, 0.2, 0.2, 0.2, 0.3])
    ball = {
        "epsilon": size * 10 ** rng.uniform(-3, 0.3), "kappa": kappa,
        "norm": ("l1", "l2", "linf")[seed % 3], "feature_costs": costs,
        "fit_intercept": bool(rng.random() < 0.8), "sample_weight": rng.uniform(0.1, 2.0, N),
    }  # fmt: skip
    return X, y, ball


def conic_value(X: np.ndarray, y: np.ndarray, ball: dict[str, Any]) -> float:
    """The optimum by cvxpy and Clarabel."""
    cp = pytest.importorskip("cvxpy")
    K, (N, n) = int(y.max()) + 1, X.shape
    w, kappa = ball["sample_weight"], ball["kappa"]
    each = [kappa[label] for label in y.tolist()] if isinstance(kappa, dict) else kappa
    prices = np.ones((N, K)) * np.reshape(each, (-1, 1))
    prices = np.where(np.arange(K) == y[:, None], 0.0, prices)
    B, b, lam, tau = cp.Variable((K, n)), cp.Variable((1, K)), cp.Variable(), cp.Variable(N)
    scores = X @ B.T + (np.ones((N, 1)) @ b if ball["fit_intercept"] else 0.0)
    rules = [lam >= 0, cp.sum(B, axis=0) == 0, cp.sum(b) == 0]
    for k in range(K):
        rows = np.flatnonzero(np.isfinite(prices[:, k]))
        rules.append(tau[rows] + scores[rows, k] + prices[rows, k] * lam >= 0)
    costs = ball["feature_costs"]
    moved = np.flatnonzero(np.isfinite(costs))
    dual = {"l1": "inf", "l2": 2, "linf": 1}[ball["norm"]]
    for j in range(K if moved.size else 0):
        for k in range(j):
            step = cp.multiply(B[j, moved] - B[k, moved], 1.0 / costs[moved])
            rules.append(cp.norm(step, dual) <= lam)
    loss = (w / w.sum()) @ (cp.log_sum_exp(scores, axis=1) + tau)
    problem = cp.Problem(cp.Minimize(ball["epsilon"] * lam + loss), rules)
    problem.solve(solver="CLARABEL", tol_gap_abs=1e-9, tol_gap_rel=1e-9, tol_feas=1e-9)
    return float(problem.value)
