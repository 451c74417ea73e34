"""Generated problems with categories and bounds, awkward ones among them, by number.

Groups with and without "none", of one column, constant or immovable; features between bounds, whole
numbers, far from zero, at their ends; others that the norm measures or that cannot move; samples
without weight.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

inf = math.inf


def domain_case(number: int) -> tuple[Any, Any, dict[str, Any]]:
    """X, y and the other arguments of ``drlogit.solve``."""
    rng = np.random.default_rng(number)
    n_samples = int(rng.integers(6, 120))
    parts: list[Any] = []
    groups: list[list[int]] = []
    costs: list[float] = []
    lower: list[float] = []
    upper: list[float] = []
    score = np.zeros(n_samples)

    def add(columns: Any, cost: float, low: float = -inf, high: float = inf) -> None:
        parts.append(columns)
        for values, each in ((costs, cost), (lower, low), (upper, high)):
            values.extend([each] * columns.shape[1])

    def some_cost() -> float:
        return inf if rng.random() < 0.1 else float(np.exp(rng.uniform(-1.0, 1.0)))

    n_bounded = int(rng.integers(0, 3))
    for _ in range(int(rng.integers(n_bounded == 0, 5))):
        size = int(rng.integers(1, 6))
        kinds = size + int(size == 1 or rng.random() < 0.4)
        one_hot = np.eye(kinds)[rng.integers(kinds, size=n_samples)][:, :size]
        groups.append(list(range(len(costs), len(costs) + size)))
        add(one_hot, some_cost())
        score += one_hot @ rng.standard_normal(size)
    for _ in range(n_bounded):
        x = rng.uniform(0.0, 1.0, (n_samples, 1)) + rng.choice([0.0, 0.0, 0.0, 5.0, 1e4])
        if rng.random() < 0.3:
            x = np.rint(4.0 * x)
        ends = x.min() - rng.choice([0.0, 0.5]), x.max() + rng.choice([0.0, 0.3])
        add(x, some_cost(), float(ends[0]), float(ends[1]))
        score += x[:, 0] - x.min()
    for _ in range(int(rng.integers(0, 3))):
        x = rng.standard_normal((n_samples, 1)) * rng.choice([1.0, 1.0, 30.0])
        add(x, inf if rng.random() < 0.35 else 1.0)
        score += x[:, 0] / np.abs(x).max()
    noise = rng.standard_normal(n_samples) * rng.choice([0.1, 1.0])
    y = np.where(score - np.median(score) + noise > 0.0, 1, -1)
    y[:2] = 1, -1
    options: dict[str, Any] = {
        "epsilon": float(10.0 ** rng.uniform(-3.0, 0.3)),
        "kappa": float(rng.choice([0.3, 1.0, inf])),
        "norm": str(rng.choice(["l1", "l2", "linf"])),
        "fit_intercept": bool(rng.random() < 0.7),
        "feature_costs": np.array(costs),
        "categories": groups,
        "bounds": (np.array(lower), np.array(upper)),
    }
    if rng.random() < 0.3:
        weights = rng.uniform(0.0, 3.0, n_samples) * (rng.random(n_samples) < 0.9)
        weights[:2] = 1.0
        options["sample_weight"] = weights
    return np.hstack(parts), y, options
