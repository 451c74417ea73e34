"""What a start is worth: own solutions, neighbours, folds, paths, tables, searches, easy data.

    python -m benchmarks.starts own paths tables search grid easy      # or some of them
    python -m benchmarks.starts paths --only a9a w8a

Processor time of one thread, the least of a few runs in turns, since the machine is shared; Gram
matrices are counted and do not depend on it.  Every fit is certified to 1e-6.  Rows go to
``benchmarks/results/starts.jsonl``.
"""

from __future__ import annotations

import argparse
import math
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.model_selection import StratifiedKFold

import drlogit
from drlogit.fitting.critical_radius import epsilon_max_of
from drlogit.fitting.paths import solve_radii
from drlogit.fitting.solving import solve_problem
from drlogit.problem.problem import Problem, build_problem
from drlogit.problem.result import Result

from . import store
from .domains import load
from .measure import circumstances, thread_limits
from .paper import datasets

SETS = ("a1a", "a9a", "w8a", "phishing", "mnist-0v3", "(10000, 100)", "(100000, 100)")
EASY = ("(10000, 100)", "(100000, 100)", "(1000000, 100)", "(300000, 20)", "(10000, 1000)")
PAIRS = ((0.02, 1.0), (0.1, 1.0), (0.02, math.inf))


def data(name: str) -> tuple[Any, Any]:
    """A real set, or standard normal features with labels of a logistic model."""
    if not name.startswith("("):
        return datasets.load(name)
    n_samples, n_features = map(int, name.strip("()").split(","))
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_samples, n_features))
    beta = rng.standard_normal(n_features)
    margin = 2.0 * X @ (beta / np.linalg.norm(beta))
    return X, np.where(rng.random(n_samples) < 1.0 / (1.0 + np.exp(-margin)), 1, -1)


def timed(function: Callable[[], Any]) -> tuple[float, Any]:
    """Processor time and what the function gave."""
    started = time.process_time()
    found = function()
    return time.process_time() - started, found


def own(name: str) -> Iterator[store.Row]:
    """Fits started from their own solution, from it without its proof, a neighbour, a fold."""
    X, y = data(name)
    kept, _ = next(StratifiedKFold(5).split(np.zeros(y.size), y))
    for norm in ("l1", "l2", "linf"):
        problem = build_problem(X, y, epsilon=0.02, kappa=1.0, norm=norm, n_jobs=1)
        fold = build_problem(X[kept], y[kept], epsilon=0.02, kappa=1.0, norm=norm, n_jobs=1)
        result = solve_problem(problem)
        model = replace(result, dual=None, info={})
        starts = {
            "own": (problem, result),
            "own model": (problem, model),
            "radius 1.2 times as large": (problem.with_radius(0.02 / 1.2), model),
            "all samples, for a fold": (fold, model),
        }
        for kind, (target, start) in starts.items():
            cold_seconds, cold = timed(lambda p=target: solve_problem(p))  # type: ignore[misc]
            seconds, warm = timed(lambda p=target, s=start: solve_problem(p, start=s))  # type: ignore[misc]
            yield row("own", name, norm, 1.0, kind, cold_seconds, [cold], seconds, [warm])


def paths(name: str) -> Iterator[store.Row]:
    """Thirty radii from ε_max to a thousandth of it; the first two start from nothing."""
    X, y = data(name)
    for norm in ("l1", "l2"):
        for kappa in (1.0, math.inf):
            problem = build_problem(X, y, epsilon=0.0, kappa=kappa, norm=norm, n_jobs=1)
            radii = epsilon_max_of(problem) * np.geomspace(1.0, 1e-3, 30)
            warm, warm_seconds = _radii(problem, radii, kappa, warm_start=True)
            cold, cold_seconds = _radii(problem, radii, kappa, warm_start=False)
            ratios = cold_seconds / warm_seconds
            yield row(
                "paths", name, norm, kappa, "radii 3 to 30", float(cold_seconds.mean()), cold,
                float(warm_seconds.mean()), warm, least_ratio=float(ratios.min()),
            )  # fmt: skip


def _radii(
    problem: Problem, radii: Any, kappa: float, *, warm_start: bool
) -> tuple[list[Result], Any]:
    results, seconds = [], []
    running = solve_radii(problem, radii, kappa, warm_start=warm_start)
    for _ in radii:
        taken, result = timed(lambda: next(running))
        seconds.append(taken)
        results.append(result)
    return results[2:], np.array(seconds[2:])


def tables(name: str) -> Iterator[store.Row]:
    """Categories and bounds: the same starts, and fifteen radii over two decades."""
    table = load(name)
    y = np.asarray(table.y)
    kept, _ = next(StratifiedKFold(5).split(np.zeros(y.size), y))
    for epsilon, kappa in ((0.05, 2.0), (0.2, math.inf)):
        pose = partial(
            build_problem, epsilon=epsilon, kappa=kappa, categories=table.categories,
            bounds=table.bounds, n_jobs=1,
        )  # fmt: skip
        problem, fold = pose(table.X, y), pose(table.X[kept], y[kept])
        result = solve_problem(problem)
        starts = {
            "own": problem,
            "radius 1.2 times as large": problem.with_radius(epsilon / 1.2),
            "all samples, for a fold": fold,
        }
        for kind, target in starts.items():
            cold_seconds, cold = timed(lambda p=target: solve_problem(p))  # type: ignore[misc]
            seconds, warm = timed(lambda p=target, s=result: solve_problem(p, start=s))  # type: ignore[misc]
            yield row("tables", name, "l1", kappa, kind, cold_seconds, [cold], seconds, [warm])
        radii = np.geomspace(0.5, 0.005, 15)
        warm_path, warm_seconds = _radii(problem, radii, kappa, warm_start=True)
        cold_path, cold_times = _radii(problem, radii, kappa, warm_start=False)
        yield row(
            "tables", name, "l1", kappa, "radii 3 to 15", float(cold_times.mean()), cold_path,
            float(warm_seconds.mean()), warm_path,
            least_ratio=float((cold_times / warm_seconds).min()),
        )  # fmt: skip


def search(name: str) -> Iterator[store.Row]:
    """Ten radii on five folds, and scikit-learn's search over ten penalties."""
    X, y = data(name)
    ours, model = timed(
        lambda: drlogit.DRLogisticRegressionCV(kappas=[1.0], extend_grid=False).fit(X, y)
    )
    plain, _ = timed(lambda: LogisticRegressionCV(Cs=10, cv=5, tol=1e-6, max_iter=10_000).fit(X, y))
    yield {
        "suite": "search", "data": name, "cpu_seconds": ours, "cpu_seconds_plain": plain,
        "ratio": plain / ours, "grams_per_fit": float(model.cv_results_["mean_n_iter"].mean()),
        "largest_gap": float(model.cv_results_["max_gap"].max()), **circumstances(1),
    }  # fmt: skip


def grid(name: str) -> Iterator[store.Row]:
    """Ten radii, five flip costs, five folds, and the same fits from nothing (two folds)."""
    X, y = data(name)
    ours, model = timed(lambda: drlogit.DRLogisticRegressionCV(refit=False).fit(X, y))
    table, seconds = model.cv_results_, 0.0
    for train, _ in list(StratifiedKFold(5).split(np.zeros(y.size), y))[:2]:
        for pair in table["params"]:
            seconds += timed(lambda t=train, p=pair: drlogit.solve(X[t], y[t], n_jobs=1, **p))[0]  # type: ignore[misc]
    yield {
        "suite": "grid", "data": name, "cpu_seconds": ours, "cpu_seconds_cold": 2.5 * seconds,
        "ratio": 2.5 * seconds / ours, "grams_per_fit": float(table["mean_n_iter"].mean()),
        "largest_gap": float(table["max_gap"].max()), **circumstances(1),
    }  # fmt: skip


def easy(name: str) -> Iterator[store.Row]:
    """Well-conditioned dense data, from nothing, and a plain fit: the best of five in turns."""
    X, y = data(name)
    calls: dict[Any, Callable[[], Any]] = {
        pair: partial(drlogit.solve, X, y, epsilon=pair[0], kappa=pair[1], n_jobs=1)
        for pair in PAIRS
    }
    calls["plain"] = lambda: LogisticRegression(tol=1e-6, max_iter=10_000).fit(X, y)
    rounds = [{who: timed(call) for who, call in calls.items()} for _ in range(5)]
    best = {who: min((each[who] for each in rounds), key=itemgetter(0)) for who in calls}
    plain, _ = best.pop("plain")
    for (epsilon, kappa), (seconds, result) in best.items():
        yield {
            "suite": "easy", "data": name, "epsilon": epsilon, "kappa": str(kappa),
            "cpu_seconds": seconds, "cpu_seconds_plain": plain, "ratio": seconds / plain,
            "grams": result.n_iter, "sample_grams": result.info.get("sample_grams"),
            "gradient_steps": result.info.get("gradient_steps"),
            "band_work": result.info.get("band_work"), "gap": result.gap, **circumstances(1),
        }  # fmt: skip


def row(
    suite: str,
    name: str,
    norm: str,
    kappa: float,
    start: str,
    cold_seconds: float,
    cold: list[Result],
    seconds: float,
    warm: list[Result],
    **more: float,
) -> store.Row:
    """Fits from nothing beside fits from a start."""
    return {
        "suite": suite, "data": name, "norm": norm, "kappa": str(kappa), "start": start,
        "cpu_seconds_cold": cold_seconds, "cpu_seconds": seconds, "ratio": cold_seconds / seconds,
        "grams_cold": float(np.mean([r.n_iter for r in cold])),
        "grams": float(np.mean([r.n_iter for r in warm])),
        "most_grams": max(r.n_iter for r in warm),
        "band_iterations": float(np.mean([r.info.get("band_iterations", 0) for r in warm])),
        "band_work": float(np.mean([r.info.get("band_work", 0.0) for r in warm])),
        "largest_gap": max(r.gap for r in warm), **more, **circumstances(1),
    }  # fmt: skip


SUITES: dict[str, tuple[Callable[[str], Iterator[store.Row]], tuple[str, ...]]] = {
    "own": (own, SETS),
    "paths": (paths, SETS),
    "tables": (tables, ("vote", "credit-g", "heart-c", "car", "kr-vs-kp", "cmc", "nursery")),
    "search": (search, ("a9a",)),
    "grid": (grid, ("a1a",)),
    "easy": (easy, EASY),
}

#: What is printed of a row, if it has it.
SHOWN = (
    "data", "norm", "epsilon", "kappa", "start", "ratio", "least_ratio", "cpu_seconds",
    "cpu_seconds_cold", "cpu_seconds_plain", "grams_cold", "grams", "most_grams", "grams_per_fit",
    "sample_grams", "gradient_steps", "band_work", "gap", "largest_gap",
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suites", nargs="+", choices=SUITES)
    parser.add_argument("--only", nargs="+", help="data sets")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    X, y = data("(300, 5)")
    drlogit.solve(X, y, epsilon=0.1, kappa=1.0)  # imports
    for suite in arguments.suites:
        function, sets = SUITES[suite]
        ratios = []
        for name in arguments.only or sets:
            with thread_limits(1):
                rows = list(function(name))
            store.append(store.RESULTS, "starts", rows)
            for found in rows:
                ratios.append(found["ratio"])
                shown = {key: found[key] for key in SHOWN if found.get(key) is not None}
                text = (
                    f"{k} {v:.3g}" if isinstance(v, float) else f"{v}" for k, v in shown.items()
                )
                print(suite, "  ".join(text), flush=True)
        print(f"{suite}: geometric mean of the ratios {math.exp(np.mean(np.log(ratios))):.2f}")


if __name__ == "__main__":
    main()
