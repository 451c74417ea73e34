"""The speed bars in one run: ratios of processor time, one thread on both sides, gaps beside them.

    python -m benchmarks.bars [small tables search dense paths sets references scaling memory
                               places]

Shapes and seeds here were never used to choose a constant of the package: whoever tunes, tunes
elsewhere.  A ratio is our time over the other's, each the best of several, taken in turns.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import gmean
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_svmlight_file
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from threadpoolctl import threadpool_limits

from benchmarks import stated
from benchmarks.judge import conic_solution, plain_objective_and_gap
from benchmarks.pipelines import usual

SEED = 20_261_117
TABLES = (
    *("breast-cancer", "tic-tac-toe", "kr-vs-kp", "vote", "car", "lymph", "balance-scale"),
    *("credit-g", "heart-c", "hepatitis", "colic", "vehicle", "segment", "cmc", "spect", "splice"),
)
SEARCHED = ("breast-cancer", "credit-g", "heart-c", "hepatitis", "colic", "vote")
SETS = {
    **{f"a{k}a": 123 for k in range(1, 10)},
    **{f"w{k}a": 300 for k in range(1, 9)},
    "mushrooms": 112,
    "phishing": 68,
}


def folder() -> Path:
    return Path(os.environ["DRLOGIT_DATA"])


def best_times(
    jobs: dict[str, Callable[[], Any]], repeats: int, clock: Any = time.process_time
) -> dict[str, float]:
    """Processor seconds of each job, the best of several, in turns."""
    times = dict.fromkeys(jobs, np.inf)
    for _ in range(repeats):
        for name, job in jobs.items():
            started = clock()
            job()
            times[name] = min(times[name], clock() - started)
    return times


def timed_fit(X: Any, y: Any, **ball: Any) -> tuple[Callable[[], Any], list[float]]:
    """A fit to be timed, and a list that gets the gap of each run."""
    gaps: list[float] = []
    return lambda: gaps.append(stated.solve(X, y, n_jobs=1, **ball).gap), gaps


def synthetic(n: int, p: int, seed: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    truth = rng.standard_normal(p) / np.sqrt(p)
    y = np.where(rng.random(n) < 1.0 / (1.0 + np.exp(-2.0 * X @ truth)), 1, -1)
    return X, y


def small(repeats: int) -> Iterator[tuple[str, float, float]]:
    for n, p in ((40, 3), (120, 7), (350, 12), (800, 25), (2200, 18), (6000, 50)):
        X, y = synthetic(n, p, SEED + n)
        for epsilon, kappa in ((0.01, 1.0), (0.05, 2.0), (0.1, np.inf)):
            clf = stated.classifier(epsilon, kappa)
            times = best_times(
                {"ours": lambda: clf.fit(X, y), "plain": lambda: LogisticRegression().fit(X, y)},  # noqa: B023
                3 * repeats,
            )
            gap = float(np.max(clf.dual_gap_))
            yield f"({n},{p}) eps={epsilon} kappa={kappa}", times["ours"] / times["plain"], gap


def table(name: str) -> tuple[pd.DataFrame, Any]:
    frame = pd.read_csv(folder() / "tables" / f"{name}.csv.bz2")
    y = frame.pop(frame.columns[0] if name == "spect" else frame.columns[-1])
    if name == "splice":
        frame = frame.drop(columns=[c for c in frame if frame[c].nunique() > 0.5 * len(frame)])
    return frame, np.where(y == y.value_counts().index[0], 1, 0)


def tables(repeats: int) -> Iterator[tuple[str, float, float]]:
    for name in TABLES:
        frame, y = table(name)
        plain = usual(frame, LogisticRegression(max_iter=1000))
        for epsilon, kappa in ((0.03, 3.0), (0.15, np.inf)):
            clf = stated.classifier(
                epsilon, kappa, feature_costs="std", missing="median",
                categorical_features="from_dtype",
            )  # fmt: skip
            times = best_times(
                {"ours": lambda: clf.fit(frame, y), "plain": lambda: plain.fit(frame, y)},  # noqa: B023
                repeats,
            )
            gap = float(np.max(clf.dual_gap_))
            yield f"{name} eps={epsilon} kappa={kappa}", times["ours"] / times["plain"], gap


def search(repeats: int) -> Iterator[tuple[str, float, float]]:
    for name in SEARCHED:
        frame, y = table(name)
        plain = usual(frame, LogisticRegressionCV(max_iter=1000))
        clf = stated.search(missing="median")
        times = best_times(
            {"ours": lambda: clf.fit(frame, y), "plain": lambda: plain.fit(frame, y)},  # noqa: B023
            max(1, repeats // 2),
        )
        what = f"{name}, {times['ours']:.2f} s"
        yield what, times["ours"] / times["plain"], float(np.max(clf.dual_gap_))


def dense(repeats: int) -> Iterator[tuple[str, float, float]]:
    for n, p in ((12_000, 40), (30_000, 90), (150_000, 25), (90_000, 110), (9_000, 250)):
        X, y = synthetic(n, p, SEED + p)
        plain = min(
            best_times({"plain": lambda: LogisticRegression(solver="lbfgs").fit(X, y)}, repeats)  # noqa: B023
            .values()
        )  # fmt: skip
        for kappa in (1.0, np.inf):
            limit = stated.epsilon_max(X, y, kappa=kappa)
            for share in (0.01, 0.2, 0.7, 0.95, 0.99):
                fit, gaps = timed_fit(X, y, epsilon=share * limit, kappa=kappa)
                ours = min(best_times({"ours": fit}, max(1, repeats - 1)).values())
                yield f"({n},{p}) {share} eps_max kappa={kappa}", ours / plain, gaps[-1]


def paths(repeats: int) -> Iterator[tuple[str, float, float]]:
    """Time of 30 radii through the public ``start=``, over that of the same from nothing."""
    cases = {"(15000,60)": synthetic(15_000, 60, SEED), "(70000,30)": synthetic(70_000, 30, SEED)}
    for name in ("a9a", "phishing"):
        cases[name] = svmlight(name)
    for name, (X, y) in cases.items():
        limit = stated.epsilon_max(X, y)
        radii = limit * np.geomspace(0.9, 1e-3, 30)
        gaps = []

        def run(warm: bool) -> None:
            start = None
            for epsilon in radii:  # noqa: B023
                known = start if warm else None
                start = stated.solve(X, y, epsilon=float(epsilon), n_jobs=1, start=known)  # noqa: B023
                gaps.append(start.gap)  # noqa: B023

        times = best_times({"warm": lambda: run(True), "cold": lambda: run(False)}, 1)
        yield name, times["warm"] / times["cold"], max(gaps)


def svmlight(name: str) -> tuple[Any, Any]:
    path = folder() / "libsvm" / f"{name}.bz2"
    X, y = load_svmlight_file(str(path), n_features=SETS[name], zero_based=False)
    return X.tocsr(), np.where(y == y.max(), 1, -1)


def employment() -> tuple[Any, Any]:
    """employment-ma of 2015, every column a category but the age: 68,785 rows."""
    frame = pd.read_csv(folder() / "shift" / "employment-ma.csv.bz2")
    frame = frame[frame["part"] == frame["part"].iloc[0]].drop(columns="part")
    y = np.where(frame.pop("y") > 0, 1, -1)
    codes = [column for column in frame if column != "AGEP"]
    columns = make_column_transformer((OneHotEncoder(), codes), (StandardScaler(), ["AGEP"]))
    return columns.fit_transform(frame).tocsr(), y


def plain_fits(X: Any, y: Any) -> dict[str, Callable[[], Any]]:
    """Plain fits to an objective error of 1e-6, by whatever serves; glum if it is installed."""
    fits: dict[str, Callable[[], Any]] = {}
    for solver in ("lbfgs", "newton-cholesky", "newton-cg"):
        for tol in (1e-4, 1e-5, 1e-6, 1e-7) if solver == "lbfgs" else (1e-6,):
            model = LogisticRegression(solver=solver, tol=tol, max_iter=10_000)
            fits[f"{solver} {tol:.0e}"] = partial(model.fit, X, y)
    if find_spec("glum"):
        from glum import GeneralizedLinearRegressor

        model = GeneralizedLinearRegressor(family="binomial", alpha=1.0 / y.size, l1_ratio=0)
        fits["glum"] = partial(model.fit, X.tocsc(), np.maximum(y, 0.0))
    value = {name: plain_objective_and_gap(X, y, *_line(fit()))[0] for name, fit in fits.items()}
    best = min(value.values())
    return {name: fit for name, fit in fits.items() if value[name] <= best + 1e-6}


def _line(model: Any) -> tuple[Any, float]:
    return model.coef_, float(np.ravel(model.intercept_)[0])


def sets(repeats: int) -> Iterator[tuple[str, float, float]]:
    """Against scikit-learn's default, and (in brackets) the fastest to an error of 1e-6."""
    fastest = []
    for name in (*SETS, "employment-ma"):
        X, y = employment() if name == "employment-ma" else svmlight(name)
        fit, gaps = timed_fit(X, y, epsilon=0.1)
        exact = plain_fits(X, y)
        default = partial(LogisticRegression(max_iter=10_000).fit, X, y)
        times = best_times({"ours": fit, "default": default, **exact}, repeats)
        best = min(exact, key=lambda each: times[each])
        fastest.append(times["ours"] / times[best])
        what = f"{name} [{fastest[-1]:.2f}x {best}]"
        yield what, times["ours"] / times["default"], gaps[-1]
    print(f"sets    of the fastest: mean {gmean(fastest):.2f}, worst {max(fastest):.2f}")


def references(repeats: int) -> Iterator[tuple[str, float, float]]:
    """Clarabel's time on the fastest form of the problem that cvxpy takes, over ours."""
    for n, p in ((3000, 100), (10_000, 100)):
        X, y = synthetic(n, p, SEED + p)
        fit, gaps = timed_fit(X, y, epsilon=0.1)
        conic = partial(conic_solution, X, y, epsilon=0.1, kappa=1.0)
        times = {**best_times({"ours": fit}, repeats), **best_times({"conic": conic}, 1)}
        yield f"({n},{p})", times["conic"] / times["ours"], gaps[-1]


def scaling(repeats: int) -> Iterator[tuple[str, float, float]]:
    """Time per row with ten times as many rows."""
    times, gap = [], 0.0
    for n in (100_000, 1_000_000):
        X, y = synthetic(n, 100, SEED)
        fit, gaps = timed_fit(X, y, epsilon=0.1)
        times.append(best_times({"ours": fit}, repeats)["ours"] / n)
        gap = max(gap, *gaps)
    yield "10^6 over 10^5 rows, 100 columns", times[1] / times[0], gap


MEMORY = """
from pathlib import Path
from benchmarks.bars import synthetic
from benchmarks.pipelines import usual
from benchmarks import stated
def status(name):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))
stated.solve(*synthetic(60, 5, 0), epsilon=.1)
X, y = synthetic({n}, 100, 0)
Path("/proc/self/clear_refs").write_text("5")
before = status("VmRSS")
gap = stated.solve(X, y, epsilon=.1, n_jobs=1).gap
print((status("VmHWM") - before) / X.nbytes, gap)
"""


def memory(repeats: int) -> Iterator[tuple[str, float, float]]:
    """Memory that a fit takes beside its data, over the size of the data (Linux)."""
    for n in (100_000, 1_000_000):
        command = [sys.executable, "-W", "ignore", "-c", MEMORY.format(n=n)]
        run = subprocess.run(command, capture_output=True, text=True, check=True)
        share, gap = map(float, run.stdout.split())
        yield f"{n} rows, 100 columns", share, gap


def places(repeats: int) -> Iterator[tuple[str, float, float]]:
    """Processor time of a fit on a memory map, or by a Dask worker, over that in memory."""
    import dask.array as da
    from distributed import Client, LocalCluster, wait

    X, y = synthetic(2_000_000, 20, SEED)
    with (
        tempfile.TemporaryDirectory() as folder,
        LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        np.save(f"{folder}/X.npy", X)
        # As if the worker had read its rows: in arrays of its own.
        sent = [da.from_array(part, chunks=(250_000, *part.shape[1:])) for part in (X, y)]
        there = client.persist([part.map_blocks(np.copy) for part in sent])
        wait(there)
        data = {"memory": (X, y), "map": (np.load(f"{folder}/X.npy", "r"), y), "Dask": there}

        def processor() -> float:
            return time.process_time() + sum(client.run(time.process_time).values())

        for kappa in (1.0, np.inf):
            fits = {k: timed_fit(*d, epsilon=0.02, kappa=kappa) for k, d in data.items()}
            times = best_times({k: fit for k, (fit, _) in fits.items()}, repeats, processor)
            for place in ("map", "Dask"):
                yield f"{place} kappa={kappa}", times[place] / times["memory"], fits[place][1][-1]


_ALL = (small, tables, search, dense, paths, sets, references, scaling, memory, places)
SUITES = {suite.__name__: suite for suite in _ALL}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("suites", nargs="*", default=list(SUITES), metavar="SUITE")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        for name in options.suites:
            found = []
            for what, ratio, gap in SUITES[name](options.repeats):
                found.append(ratio)
                print(f"{name:7} {what:45} {ratio:8.2f}  gap {gap:.1e}", flush=True)
            print(f"{name:7} {'geometric mean':45} {gmean(found):8.2f}", flush=True)
            print(f"{name:7} {'worst':45} {max(found):8.2f}", flush=True)


if __name__ == "__main__":
    main()
