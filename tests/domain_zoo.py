"""Small problems with domains of every kind, and adversaries by brute force."""

from __future__ import annotations

import itertools
import math

import numpy as np


def generated(seed, *, n_immovable=None, n_samples=None):
    """Keyword arguments of ``drlogit.solve``, X and y included."""
    rng = np.random.default_rng(seed)
    n_groups, n_bounded, n_open = rng.integers(0, 4), rng.integers(0, 3), rng.integers(0, 3)
    if n_immovable is None:
        n_immovable = rng.integers(0, 2)
    n_groups = max(n_groups, int(n_bounded == 0))
    N = int(rng.integers(12, 40)) if n_samples is None else n_samples
    parts, groups, costs, lower, upper = [], [], [], [], []

    def add(columns, cost, low=-math.inf, high=math.inf):
        parts.append(columns)
        costs.extend([cost] * columns.shape[1])
        lower.extend([low] * columns.shape[1])
        upper.extend([high] * columns.shape[1])

    def cost():
        return float(np.exp(rng.uniform(-1.0, 1.0)))

    for _ in range(n_groups):
        size = int(rng.integers(1, 5))
        kinds = size + int(size == 1 or rng.random() < 0.4)
        category = np.append(np.arange(kinds), rng.integers(0, kinds, N))[:N]
        groups.append(list(range(len(costs), len(costs) + size)))
        add(np.eye(kinds)[category][:, :size], cost())
    for _ in range(n_bounded):
        if rng.random() < 0.4:
            add(rng.integers(0, 4, (N, 1)).astype(float), cost(), 0.0, 3.0)
        else:
            x = rng.standard_normal((N, 1))
            add(x, cost(), x.min() - 0.3 * rng.random(), x.max() + 0.3 * rng.random())
    for _ in range(n_open):
        add(rng.standard_normal((N, 1)), cost())
    for _ in range(n_immovable):
        add(rng.standard_normal((N, 1)), math.inf)
    X = np.concatenate(parts, axis=1)
    score = X @ rng.standard_normal(X.shape[1]) * rng.choice([0.5, 2.0])
    y = score - np.median(score) + rng.logistic(size=N) * rng.choice([0.01, 1.0]) > 0.0
    y[:2] = True, False
    weights = rng.exponential(size=N) if rng.random() < 0.4 else None
    return {
        "X": X,
        "y": np.where(y, 1, -1),
        "categories": groups,
        "bounds": (np.array(lower), np.array(upper)),
        "feature_costs": np.array(costs),
        "sample_weight": weights,
        "epsilon": float(np.exp(rng.uniform(np.log(1e-3), np.log(0.5)))),
        "kappa": float(rng.choice([0.3, 1.0, 3.0, math.inf])),
        "norm": str(rng.choice(["l1", "l2", "linf"])),
        "fit_intercept": bool(rng.random() < 0.7),
    }


def weights_of(case):
    given = case["sample_weight"]
    return np.full(len(case["y"]), 1.0 / len(case["y"])) if given is None else given / given.sum()


def sensitivity(case, coef):
    """‖β_U/c‖_* over the features without a domain."""
    theta = (coef / case["feature_costs"])[open_features(case)]
    size = np.abs(theta)
    norms = {"l1": size.max(initial=0.0), "l2": np.linalg.norm(theta), "linf": size.sum()}
    return float(norms[case["norm"]])


def open_features(case):
    lower, _ = case["bounds"]
    rest = ~np.isfinite(lower) & np.isfinite(case["feature_costs"])
    rest[[j for group in case["categories"] for j in group]] = False
    return rest


def everywhere(case, i, steps=4, number=float):
    """Every place within its domains that sample i can be moved to, and what that costs.

    Bounded features on a grid that has both ends; the others stay.  Costs are of type ``number``.
    """
    X, (lower, upper), costs = case["X"], case["bounds"], case["feature_costs"]
    choices = []
    for group in case["categories"]:
        columns = list(group)
        rows = [list(row) for row in np.eye(len(columns))]
        targets = [*columns]
        if (X[:, columns].sum(axis=1) == 0.0).any():
            rows.append([0.0] * len(columns))
            targets.append(None)
        here = next((j for j in columns if X[i, j] == 1.0), None)
        cost = number(costs[columns[0]])
        pairs = zip(rows, targets, strict=True)
        choices.append([(columns, row, cost * number(to != here)) for row, to in pairs])
    for j in np.flatnonzero(np.isfinite(lower) & np.isfinite(costs)):
        values = [X[i, j], *np.linspace(lower[j], upper[j], steps)]
        here, cost = number(X[i, j]), number(costs[j])
        choices.append([([j], [v], cost * abs(number(v) - here)) for v in values])
    for chosen in itertools.product(*choices):
        x = X[i].copy()
        for columns, values, _ in chosen:
            x[columns] = values
        yield x, sum(cost for _, _, cost in chosen)


def offers(case, coef, intercept, **options):
    """For each sample, (cost, loss) of everything the adversary can do with it."""
    kappa = case["kappa"]
    found = []
    for i, y in enumerate(case["y"]):
        pairs = []
        for x, cost in everywhere(case, i, **options):
            score = float(x @ coef + intercept)
            pairs.append((cost, np.logaddexp(0.0, -y * score)))
            if math.isfinite(kappa):
                pairs.append((cost + kappa, np.logaddexp(0.0, y * score)))
        found.append(np.array(pairs))
    return found
