"""The stress grid: generated problems of every awkward kind, each to be certified.

    python benchmarks/stress.py [--problems 600] [--tol 1e-6] [--solver interior-point]

Prints one line per problem that was not certified, and totals per kind.  Every problem is
determined by its number, so a failure can be looked at again with ``stress.problem(k)``.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections import Counter
from typing import Any

import numpy as np
import scipy.sparse as sp

import drlogit

KINDS = (
    "plain", "unscaled", "separable", "duplicated", "rank-deficient", "wide", "zero-columns",
    "zero-rows", "contradictory", "constant", "sparse", "imbalanced", "weighted", "costs",
)  # fmt: skip
EPSILONS = (1e-6, 1e-4, 1e-2, 0.1, 1.0, 10.0)
KAPPAS = (0.05, 0.5, 2.0, 10.0, np.inf)
NORMS = ("l1", "l2", "linf")


def problem(k: int) -> tuple[str, Any, Any, dict[str, Any]]:
    """Problem number ``k``: its kind, X, y and the arguments of ``solve``."""
    combinations = list(itertools.product(KINDS, EPSILONS, KAPPAS, NORMS))
    # A stride coprime to the number of combinations visits kinds and settings evenly.
    kind, epsilon, kappa, norm = combinations[(k * 599) % len(combinations)]
    rng = np.random.default_rng(k)
    n_samples = int(rng.choice([3, 10, 40, 150, 400]))
    n_features = int(rng.choice([1, 3, 10, 40]))
    if kind == "wide":
        n_samples, n_features = int(rng.choice([5, 20, 60])), int(rng.choice([100, 300]))
    X = rng.standard_normal((n_samples, n_features))
    truth = rng.standard_normal(n_features) / np.sqrt(n_features)
    noise = rng.logistic(size=n_samples)
    options: dict[str, Any] = {"fit_intercept": bool(rng.integers(2))}
    if kind == "unscaled":
        X = X * 10.0 ** rng.uniform(-3, 3, n_features) * 10.0 ** rng.uniform(-4, 4)
        truth = truth / np.abs(X).mean(axis=0)
    elif kind == "separable":
        noise = np.zeros(n_samples)
    elif kind == "duplicated":
        X = np.hstack([X, X, X[:, :1]])
        truth = np.concatenate([truth, 0 * truth, truth[:1]])
    elif kind == "rank-deficient":
        rank = max(1, n_features // 3)
        X = X[:, :rank] @ rng.standard_normal((rank, n_features))
    elif kind == "zero-columns":
        X[:, rng.random(n_features) < 0.4] = 0.0
    elif kind == "zero-rows":
        X[rng.random(n_samples) < 0.3] = 0.0
    elif kind == "constant":
        X[:, 0] = 1.0
    elif kind == "sparse":
        X = np.where(rng.random(X.shape) < 0.2, np.sign(X), 0.0)
    y = np.where(X @ truth + noise > 0.0, 1, -1)
    if kind == "imbalanced":
        y = np.where(rng.random(n_samples) < 0.03, 1, -1)
    if kind == "contradictory":
        half = n_samples // 2
        X[half : 2 * half] = X[:half]
        y[half : 2 * half] = -y[:half]
    if kind == "weighted":
        options["sample_weight"] = 10.0 ** rng.uniform(-6, 0, n_samples)
    if kind == "costs":
        costs = 10.0 ** rng.uniform(-2, 2, n_features)
        costs[rng.random(n_features) < 0.2] = np.inf
        options["feature_costs"] = costs
    y[0], y[-1] = 1, -1
    data = sp.csr_array(X) if kind == "sparse" else X
    return kind, data, y, {"epsilon": epsilon, "kappa": kappa, "norm": norm, **options}


def main() -> None:
    """Run the grid and print what happened."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--problems", type=int, default=600)
    parser.add_argument("--tol", type=float, default=1e-6)
    parser.add_argument("--solver", default="interior-point")
    arguments = parser.parse_args()
    totals: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    iterations = []
    started = time.perf_counter()
    for k in range(arguments.problems):
        kind, X, y, options = problem(k)
        result = drlogit.solve(X, y, solver=arguments.solver, tol=arguments.tol, **options)
        totals[kind] += 1
        iterations.append(result.n_iter)
        if result.gap > arguments.tol:
            failed[kind] += 1
            settings = {name: options[name] for name in ("epsilon", "kappa", "norm")}
            print(
                f"{k:5d} {kind:15s} {X.shape} {settings} intercept={options['fit_intercept']}"
                f" gap {result.gap:.1e} after {result.n_iter}: {result.status.name}"
            )
    print(
        f"{arguments.problems} problems in {time.perf_counter() - started:.0f} s,"
        f" tol {arguments.tol:g}:"
        f" {arguments.problems - failed.total()} certified;"
        f" iterations median {np.median(iterations):.0f}, 99 % {np.quantile(iterations, 0.99):.0f},"
        f" most {max(iterations)}"
    )
    for kind in KINDS:
        print(f"  {kind:15s} {totals[kind] - failed[kind]:4d} of {totals[kind]}")


if __name__ == "__main__":
    main()
