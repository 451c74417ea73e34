"""How often do bootstrap intervals cover?  The table of docs/inference.md.

    python -m benchmarks.bootstrap_coverage [--samples 200] [--seed 0]

Five features (two of them correlated, one without effect) and a logistic model.  Each sample is
fitted, and ``drlogit.bootstrap`` gives 95 % intervals from 200 refits.  Counted is how often they
cover the *penalised* coefficients and the worst-case loss of the population (400,000 rows, same ε,
κ and norm), and how often they cover the coefficients that generated the labels.
"""

from __future__ import annotations

import argparse
import math

import numpy as np

import drlogit

COEF, INTERCEPT = np.array([1.0, -0.7, 0.4, 0.0, 0.15]), -0.3

CASES = (
    {"norm": "l1", "epsilon": 0.05, "kappa": 1.0, "n": 300},
    {"norm": "linf", "epsilon": 0.02, "kappa": math.inf, "n": 300},
    {"norm": "l1", "epsilon": 0.05, "kappa": 1.0, "n": 100},
)


def draw(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Features and labels."""
    X = rng.standard_normal((n, COEF.size))
    X[:, 1] += 0.5 * X[:, 0]
    return X, X @ COEF + INTERCEPT + rng.logistic(size=n) > 0


def coverage(case: dict, samples: int, seed: int) -> str:
    """One line of the table."""
    ball = {name: case[name] for name in ("epsilon", "kappa", "norm")}
    whole = drlogit.solve(*draw(400_000, np.random.default_rng(seed + 99)), **ball)
    target = np.array([whole.intercept, *whole.coef])
    plain = np.array([INTERCEPT, *COEF])
    held, held_plain, held_loss = [], [], []
    for k in range(samples):
        X, y = draw(case["n"], np.random.default_rng([seed, k]))
        model = drlogit.DRLogisticRegression(**ball, n_jobs=1).fit(X, y)
        found = drlogit.bootstrap(model, X, y, random_state=k)
        low, high = (found.coefficients[end].to_numpy() for end in ("low", "high"))
        held.append((low <= target) & (target <= high))
        held_plain.append((low <= plain) & (plain <= high))
        loss = found.worst_case_loss
        held_loss.append(loss.low <= whole.objective <= loss.high)
    each = np.mean(held, axis=0)
    name = f"{case['norm']}, ε = {case['epsilon']:g}, κ = {case['kappa']:g}, {case['n']} rows"
    return (
        f"| {name} | {each.mean():.1%} ({each.min():.0%} to {each.max():.0%}) | "
        f"{np.mean(held_loss):.1%} | {np.mean(held_plain):.1%} "
        f"({np.mean(held_plain, axis=0).min():.0%} to {np.mean(held_plain, axis=0).max():.0%}) |"
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    print("| fit | penalised coefficients | worst-case loss | coefficients that made the labels |")
    print("|---|---|---|---|")
    for case in CASES:
        print(coverage(case, arguments.samples, arguments.seed), flush=True)


if __name__ == "__main__":
    main()
