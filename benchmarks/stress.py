"""The stress grid: generated problems of every awkward kind, each to be certified.

    python -m benchmarks.stress [--of numbers] [--first 0] [--problems 600] [--judged 0]

Problems are of numbers, with domains (categories and bounds) or of several classes.  Prints one
line per problem that was not certified, and totals per kind.  Every problem is determined by its
number, so a failure can be looked at again with ``stress.SOURCES["numbers"](k)``.  Of so many
certified problems as ``--judged`` says, the bound is compared with values of models in fifty
digits.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections import Counter
from collections.abc import Callable
from typing import Any, TypeAlias

import mpmath as mp
import numpy as np
import scipy.sparse as sp

import drlogit
from benchmarks import false_bounds, stated
from benchmarks.domain_cases import domain_case

KINDS = (
    "plain", "unscaled", "separable", "duplicated", "rank-deficient", "wide", "zero-columns",
    "zero-rows", "contradictory", "constant", "sparse", "imbalanced", "weighted", "costs",
)  # fmt: skip
EPSILONS = (1e-6, 1e-4, 1e-2, 0.1, 1.0, 10.0)
KAPPAS = (0.05, 0.5, 2.0, 10.0, np.inf)
NORMS = ("l1", "l2", "linf")

#: Kind, X, y and the other arguments of ``drlogit.solve``.
Case: TypeAlias = tuple[str, Any, Any, dict[str, Any]]


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


def classes(k: int) -> Case:
    """Problem number ``k`` of several classes."""
    made = false_bounds.classes(k)
    return made.kind, made.X, made.y, made.options


SOURCES: dict[str, Callable[[int], Case]] = {
    "numbers": problem,
    "domains": lambda k: ("domains", *domain_case(k)),
    "classes": classes,
}


def is_false(case: Case, result: drlogit.Result) -> bool:
    """Whether the bound of a fit is above the value of a model: its own or a more exact one."""
    kind, X, y, options = case
    exact = stated.solve(X, y, tol=1e-10, **options)
    dense, defaults = X.toarray() if sp.issparse(X) else X, {"feature_costs": None}
    several = len(np.unique(y)) > 2
    made = false_bounds.Generated(kind, dense, y if several else y > 0, defaults | options)
    judge = (false_bounds.ClassJudge if several else false_bounds.Judge)(made)
    least = min(judge.least_value(result), judge.least_value(exact))
    return bool(least < max(result.dual_objective, exact.dual_objective))


def main() -> None:
    """Run the grid and print what happened."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--of", choices=SOURCES, default="numbers")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--problems", type=int, default=600)
    parser.add_argument("--judged", type=int, default=0)
    parser.add_argument("--tol", type=float, default=1e-6)
    arguments = parser.parse_args()
    mp.mp.dps = false_bounds.DIGITS
    totals: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    iterations: list[int] = []
    judged = false = 0
    started = time.perf_counter()
    for k in range(arguments.first, arguments.first + arguments.problems):
        case = kind, X, y, options = SOURCES[arguments.of](k)
        result = stated.solve(X, y, tol=arguments.tol, **options)
        totals[kind] += 1
        iterations.append(result.n_iter)
        if result.gap > arguments.tol:
            failed[kind] += 1
            kappa = f"{options['kappa']:g}" if np.isscalar(options["kappa"]) else "many"
            print(
                f"{k:5d} {kind:15s} {X.shape} epsilon={options['epsilon']:g} kappa={kappa}"
                f" norm={options['norm']} intercept={options['fit_intercept']}"
                f" gap {result.gap:.1e} after {result.n_iter}: {result.status.name}",
                flush=True,
            )
        elif judged < arguments.judged:
            judged += 1
            false += is_false(case, result)
    print(
        f"{arguments.problems} problems in {time.perf_counter() - started:.0f} s,"
        f" tol {arguments.tol:g}:"
        f" {arguments.problems - failed.total()} certified, {false} of {judged} judged false;"
        f" iterations mean {np.mean(iterations):.2f}, 99 % {np.quantile(iterations, 0.99):.0f},"
        f" most {max(iterations)}"
    )
    for kind in sorted(totals):
        print(f"  {kind:15s} {totals[kind] - failed[kind]:4d} of {totals[kind]}")


if __name__ == "__main__":
    main()
