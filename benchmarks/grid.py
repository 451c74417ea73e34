"""What a fit costs in a search: ``DRLogisticRegressionCV`` beside single fits from raw arrays.

    python -m benchmarks.grid

A grid of 10 radii and 5 flip costs on 5 folds of the first 5000 rows of a9a, one job: processor
time of the whole search for each of its 250 fits, against that of :func:`drlogit.solve` on the
same training data.  Checks, scaling, ε_max and scores count for the search.  The row goes to
``benchmarks/results/grid.jsonl``.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold

import drlogit

from . import store
from .measure import circumstances, thread_limits
from .paper import datasets

DATA, N_SAMPLES, FOLDS = "a9a", 5000, 5
#: Folds on which every pair is solved once more, cold.
COLD_FOLDS = 2


def measure() -> store.Row:
    """One row: the search, and the single fits."""
    X, y = datasets.load(DATA)
    X, y = X[:N_SAMPLES], y[:N_SAMPLES]
    drlogit.solve(X[:300], y[:300], epsilon=0.1, kappa=1.0)  # compile
    search = drlogit.DRLogisticRegressionCV(epsilons=10, kappas=5, cv=FOLDS, refit=False)
    started = time.process_time()
    search.fit(X, y)
    total = time.process_time() - started
    table = search.cv_results_
    cold = [
        single(X[train], y[train], **pair)
        for train, _ in list(StratifiedKFold(FOLDS).split(X, y))[:COLD_FOLDS]
        for pair in table["params"]
    ]
    seconds, iterations = np.mean(cold, axis=0)
    n_fits = FOLDS * len(table["params"])
    return {
        "suite": "grid", "data": DATA, "n_samples": N_SAMPLES, "n_features": X.shape[1],
        "n_fits": n_fits, "cpu_seconds": total, "cpu_seconds_per_fit": total / n_fits,
        "cpu_seconds_single": seconds, "ratio": total / n_fits / seconds,
        "iterations_per_fit": float(table["mean_n_iter"].mean()), "iterations_single": iterations,
        "largest_gap": float(table["max_gap"].max()), **circumstances(1),
    }  # fmt: skip


def single(X: Any, y: Any, **pair: float) -> tuple[float, float]:
    """Processor time and iterations of one fit."""
    started = time.process_time()
    result = drlogit.solve(X, y, **pair)
    return time.process_time() - started, float(result.n_iter)


def main() -> None:
    with thread_limits(1):
        row = measure()
    store.append(store.RESULTS, "grid", [row])
    print(
        f"{row['cpu_seconds_per_fit']:.4f} s a fit in the search, {row['cpu_seconds_single']:.4f} s"
        f" a fit alone: ratio {row['ratio']:.2f}; iterations {row['iterations_per_fit']:.1f} and"
        f" {row['iterations_single']:.1f}; largest gap {row['largest_gap']:.1e}"
    )


if __name__ == "__main__":
    main()
