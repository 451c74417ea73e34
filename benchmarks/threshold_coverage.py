"""Do the promises of chosen thresholds hold as often as they say?  Simulated fits.

    python -m benchmarks.threshold_coverage [--fits 500] [CASE …]

In every fit a robust model is fitted to 300 or 600 rows, and ``drlogit.choose_threshold`` is asked
at 95 % about others: once with costs (a missed positive costs five false alarms) and once with a
limit of the false positive rate.  The truth is the worst case at the chosen threshold, over the
ball around a population of 30,000 rows.  Printed is how often the promise held, by how much it
exceeded the truth (median), and the same for the usual threshold.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

import drlogit
from benchmarks import stated

COEF = np.array([1.5, -1.0, 0.5, 0.0, 0.25])
COSTS = {(0, 1): 1.0, (1, 0): 5.0}

#: Intercept, rows to fit to, rows that the promises rest on, radius: 42 % and 3 % positives.
CASES = {"balanced": (-0.5, 300, 400, 0.02), "rare": (-5.2, 600, 1000, 0.003)}

ASKED: dict[str, tuple[Any, dict[str, Any]]] = {
    "costs": (COSTS, {"costs": COSTS}),
    "max_fpr": ("fpr", {"max_fpr": 0.4}),
}


def drawn(rng: np.random.Generator, n: int, intercept: float) -> tuple[Any, Any]:
    X = rng.standard_normal((n, COEF.size))
    return X, (X @ COEF + intercept + rng.logistic(size=n) > 0.0).astype(int)


Rows = dict[str, list[tuple[float, float, float, float]]]


def fits(case: str, n_fits: int) -> Iterator[Rows]:
    """Promise and truth at the chosen threshold, and at the usual one, after every 50 fits."""
    intercept, fitted, unseen, epsilon = CASES[case]
    population = drawn(np.random.default_rng(12345), 30_000, intercept)
    found: Rows = {name: [] for name in ASKED}
    for seed in range(n_fits):
        rng = np.random.default_rng([seed, unseen])
        X, y = drawn(rng, fitted, intercept)
        if y.sum() < 2:
            continue
        model = stated.classifier(epsilon=epsilon, kappa=1.0).fit(X, y)
        held = drawn(rng, unseen, intercept)
        for name, (metric, asked) in ASKED.items():
            try:
                choice = drlogit.choose_threshold(model, *held, **asked)
            except ValueError:  # nothing is promised
                continue
            truth = [
                drlogit.worst_case(model, *population, metric, threshold=at).value
                for at in (choice.threshold, choice.usual)
            ]
            found[name].append(
                (choice.promise.value, truth[0], choice.usual_promise.value, truth[1])
            )
        if (seed + 1) % 50 == 0 or seed + 1 == n_fits:
            yield found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", metavar="CASE")
    parser.add_argument("--fits", type=int, default=500)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| positives | asked | fits | held | excess | worst case there | usual: held | excess |"
          " worst case there |\n|---|---|---|---|---|---|---|---|---|")  # fmt: skip
    for case in options.cases or CASES:
        for found in fits(case, options.fits):
            for name, rows in found.items():
                promise, truth, at_usual, usual = np.array(rows).reshape(-1, 4).T
                print(
                    f"| {case} | {name} | {len(rows)} | {(truth <= promise).mean():.1%} | "
                    f"{np.median(promise - truth):.3f} | {np.median(truth):.3f} | "
                    f"{(usual <= at_usual).mean():.1%} | {np.median(at_usual - usual):.3f} | "
                    f"{np.median(usual):.3f} |", flush=True,
                )  # fmt: skip


if __name__ == "__main__":
    main()
