"""Tables 1, 2 and 4: processor time of every method on (P), each with its certified gap.

The paper's methods stop on ``‖Zβ - μ‖``, all others on the gap asked for; the certificate then
judges all alike.  Methods take turns within a trial, so that all meet the same disturbances.
Clarabel and IPOPT cannot be interrupted, so they run in a process of their own, which is ended
when its time is over.
"""

from __future__ import annotations

import importlib.util
import math
import multiprocessing
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from typing import Any

import numpy as np
import scipy.sparse as sp

import drlogit

from ..environment import thread_limits
from ..ipopt import ipopt
from ..judge import robust_objective_and_gap
from ..store import Row
from . import published
from .datasets import as_in_the_paper, size_of, synthetic, title_of
from .rows import Rows, data_of, markdown, short_power, task

TOL = 1e-6


@dataclass(frozen=True)
class Method:
    """Who solves: the solver and its options; one from elsewhere needs a package."""

    label: str
    solver: Any
    options: dict[str, Any] = field(default_factory=dict)
    needs: str | None = None


_ADAPTIVE = {"rho": published.RHO, "gamma": published.GAMMA}

METHODS = {
    "interior-point": Method("interior point", "interior-point"),
    "adaptive": Method("LP-ADMM, balanced ρ", "lp-admm"),
    "constant": Method("LP-ADMM, constant ρ", "lp-admm", {"gamma": 1.0}),
    "published-adaptive": Method("paper's LP-ADMM, ρ = 0.001·1.05ᵏ", "published", _ADAPTIVE),
    "published-constant": Method("paper's LP-ADMM, constant ρ", "published", {"gamma": 1.0}),
    "clarabel": Method("Clarabel", "conic", needs="clarabel"),
    "ipopt": Method("IPOPT", "ipopt", needs="casadi"),
}

SIZES = tuple(synthetic(*size) for size in published.TABLE_1)

#: Data sets, trials, seconds for one run, and seconds for all trials of a method on a set.
_FULL: dict[str, tuple[tuple[str, ...], int, float, float]] = {
    "table1": (SIZES, published.TRIALS, 60.0, 20.0),
    "table2": (tuple(published.TABLE_2), 3, 120.0, 6.0),
    "table4": (tuple(published.TABLE_4), 3, 40.0, 6.0),
}
_QUICK: dict[str, tuple[tuple[str, ...], int, float, float]] = {
    "table1": (SIZES[:6], 3, 3.0, 1.0),
    "table2": (tuple(published.TABLE_2)[:3], 1, 3.0, 1.0),
    "table4": (("mushrooms", "phishing", "w1a", "w2a"), 1, 3.0, 1.0),
}

#: Above so many products in a Gram matrix of the data, a general solver would fill the memory.
_LARGEST = 5e8

#: Wall seconds granted for each second of the processor: the machine may be busy with others.
_PATIENCE = 3.0


def plan(experiment: str, quick: bool) -> list[Row]:
    """The runs of one table."""
    data, trials, limit, _ = (_QUICK if quick else _FULL)[experiment]
    methods = [m for m in METHODS if m != "published-constant" or experiment == "table1"]
    return [task(experiment, d, m, t, limit) for d in data for t in range(trials) for m in methods]


def measure(run: Row, rows: Rows, quick: bool) -> Row | str:
    """The row of a run, or why it is left out, in a word or two."""
    method, limit = METHODS[run["method"]], run["limit"]
    earlier = rows.where(experiment=run["experiment"], method=run["method"], limit=limit)
    here = [row["cpu_seconds"] for row in earlier if row["data"] == run["data"]]
    if here and sum(here) >= (_QUICK if quick else _FULL)[run["experiment"]][3]:
        return "budget used up"
    X, y = _data(run["data"], run["trial"])
    count = int(X.nnz if sp.issparse(X) else np.count_nonzero(X))
    size: Row = {
        "n_samples": X.shape[0],
        "n_features": X.shape[1],
        "sparsity": round(1.0 - count / (X.shape[0] * X.shape[1]), 6),
        "n_products": count * X.shape[1],
    }
    if method.needs is None:
        return {**size, **_timed(X, y, run["method"], limit)}
    if importlib.util.find_spec(method.needs) is None:
        return "not installed"
    if size["n_products"] > _LARGEST:
        return "too large"
    if any(row["gap"] is None and row["n_products"] <= size["n_products"] for row in earlier):
        return "too slow"
    try:
        return {**size, **_pool().apply_async(_timed, (X, y, run["method"], limit)).get(
            timeout=10.0 + _PATIENCE * limit
        )}  # fmt: skip
    except multiprocessing.TimeoutError:  # or out of memory: nobody answers then, either
        _pool().terminate()
        _pool.cache_clear()
        return {**size, "status": "TIMEOUT", "gap": None, "cpu_seconds": limit}


@cache
def _pool() -> Any:
    return multiprocessing.get_context("spawn").Pool(1)


@lru_cache(maxsize=1)  # the methods on one data set follow each other
def _data(data: str, trial: int) -> tuple[Any, Any]:
    return as_in_the_paper(data, trial)


def _timed(X: Any, y: Any, name: str, limit: float) -> Row:
    """The time and the certificate of one run."""
    method = METHODS[name]
    # Within the limit: threads of BLAS that drawing the data woke up would idle on our clock.
    with thread_limits(1):
        _warm_up(name, sp.issparse(X))
        started = time.process_time()
        result = _solved(
            X, y, method, TOL, late=lambda _=None: time.process_time() - started > limit
        )
        seconds = time.process_time() - started
        if method.solver in ("ipopt", "published"):
            objective, gap = robust_objective_and_gap(
                X, y, result.coef, result.intercept, **published.MODEL
            )
        else:
            objective, gap = result.objective, result.gap
    return {
        "status": str(getattr(result.status, "name", result.status)),
        "gap": gap,
        "objective": objective,
        "lam": result.lam,
        "n_iter": result.n_iter,
        "cpu_seconds": seconds,
    }


def _solved(X: Any, y: Any, method: Method, tol: float, late: Callable[..., bool]) -> Any:
    if method.solver == "ipopt":
        return ipopt(X, y, tol=tol, **published.MODEL)
    if method.solver == "published":
        return as_published(X, y, late=late, **method.options)
    return drlogit.solve(
        X, y, solver=method.solver, tol=tol, callback=late, **published.MODEL, **method.options
    )


def as_published(X: Any, y: Any, *, late: Callable[..., bool], **penalty: Any) -> Any:
    """Algorithm 2 with the paper's rules: a subproblem ends when ``‖Zβ - μ‖`` is small.

    Starts are cold, values taken at face value, and the search ends with a narrow bracket.
    """

    def stop(iterate: Any) -> bool:
        return bool(iterate.extra["residual"] <= published.RESIDUAL or late())

    def probe(lam: float) -> Any:
        result = drlogit.solve_subproblem(
            X, y, lam=lam, solver="lp-admm", tol=1e-15, callback=stop, **penalty, **published.MODEL
        )
        probes.append(result)
        return result

    probes: list[Any] = []
    ratio, low, high = 0.5 * (math.sqrt(5.0) - 1.0), 0.0, 0.2785 / published.MODEL["epsilon"]
    narrow = 1e-4 * high
    left, right = probe((1.0 - ratio) * high), probe(ratio * high)
    while high - low > narrow and not late():
        if left.objective < right.objective:
            high, right = right.lam, left
            left = probe(ratio * low + (1.0 - ratio) * high)
        else:
            low, left = left.lam, right
            right = probe((1.0 - ratio) * low + ratio * high)
    best = min(probes, key=lambda result: float(result.objective))
    return replace(best, n_iter=sum(result.n_iter for result in probes))


@cache
def _warm_up(name: str, sparse: bool) -> None:
    """Import and compile what a method needs, on a problem of no size."""
    X, y = drlogit.datasets.make_synthetic(60, 5, random_state=0)
    data = sp.csr_matrix(np.where(np.abs(X) > 1.5, X, 0.0)) if sparse else X
    method = METHODS[name]
    _solved(data, y, method, 1e-4, late=lambda _=None: False)


# --- the tables ------------------------------------------------------------------------------

HOW_TO_READ = """Seconds of the processor, mean ± standard deviation over the runs; in brackets the
largest certified gap; ×k where k runs used up the budget of the method and no more were begun. "≥"
is a run stopped at its limit on time, with the gap it had reached. "Off the shelf / …" is the time
of the faster of Clarabel and IPOPT over that of the method."""

#: What one could buy against what is here, and LP-ADMM as published and as it is here.
_SHELF = ("clarabel", "ipopt", "adaptive", "interior-point")
_VARIANTS = ("published-adaptive", "published-constant", "adaptive", "constant")
_RATIOS = ("off the shelf / LP-ADMM", "off the shelf / interior point")


@dataclass(frozen=True)
class Timing:
    """A method on a data set: mean seconds, their deviation, the largest gap."""

    seconds: float
    spread: float
    trials: int
    gap: float
    objective: float
    lam: float
    complete: bool

    def cell(self, planned: int) -> str:
        """As in the tables."""
        stopped = "" if self.complete else "≥ "
        runs = "" if self.trials == planned else f" ×{self.trials}"
        return f"{stopped}{_seconds(self)} s [{short_power(self.gap)}]{runs}"


def timing(rows: Rows, tasks: list[Row], data: str, method: str) -> Timing | None:
    """The runs of a method on a data set; None where it has no answer."""
    wanted = [run for run in tasks if (run["data"], run["method"]) == (data, method)]
    found = [row for row in rows.of(wanted) if row["gap"] is not None]
    if not found:
        return None
    seconds = [row["cpu_seconds"] for row in found]
    return Timing(
        seconds=statistics.fmean(seconds),
        spread=statistics.stdev(seconds) if len(found) > 1 else math.nan,
        trials=len(found),
        gap=max(row["gap"] for row in found),
        objective=found[0]["objective"],
        lam=found[0]["lam"],
        complete=all(row["cpu_seconds"] <= row["limit"] for row in found),
    )


def tables(experiment: str, rows: Rows, tasks: list[Row], missing: dict[Any, str]) -> str:
    """Times against solvers off the shelf, the variants of LP-ADMM, and where its rule ends."""
    title = experiment.replace("table", "Table ")
    methods = [m for m in _VARIANTS if m in {run["method"] for run in tasks}]
    shelf, variants, rule, sizes = [], [], [], []
    for data in data_of(tasks):
        own = [run for run in tasks if run["data"] == data]
        done = rows.of(own)
        if not done:
            continue
        found = {m: timing(rows, own, data, m) for m in METHODS}
        planned = 1 + max(run["trial"] for run in own)
        cells = {
            m: _no_answer(rows, own, m, missing) if t is None else t.cell(planned)
            for m, t in found.items()
        }
        fast = [t.seconds for m in ("clarabel", "ipopt") if (t := found[m]) is not None]
        ratios = [
            f"{min(fast) / t.seconds:.3g} ×" if fast and (t := found[m]) is not None else "–"
            for m in ("adaptive", "interior-point")
        ]
        name = title_of(data)
        shelf.append([name, *_printed(experiment, data), *ratios, *(cells[m] for m in _SHELF)])
        variants.append([name, *(cells[m] for m in methods)])
        theirs, exact = found["published-adaptive"], found["interior-point"]
        if experiment != "table1" and theirs and exact:
            rule.append([name, *_rule(data, theirs, exact)])
        if experiment == "table4":
            paper = published.TABLE_4[data]
            sizes.append([
                name, str(done[0]["n_samples"]), str(paper.n_samples), str(done[0]["n_features"]),
                f"{done[0]['sparsity']:.4f}", f"{paper.sparsity:.4f}",
            ])  # fmt: skip
    printed = {
        "table1": ["paper: YALMIP", "paper: LP-ADMM", "paper: constant ρ", "paper: ratio"],
        "table2": ["paper: YALMIP", "paper: LP-ADMM", "paper: ratio"],
        "table4": ["paper: LP-ADMM"],
    }[experiment]
    parts = [
        markdown(
            f"{title}: against solvers off the shelf",
            ["data", *printed, *_RATIOS, *(METHODS[m].label for m in _SHELF)],
            shelf,
        ),
        markdown(
            f"{title}: the penalty of LP-ADMM",
            ["data", *(METHODS[m].label for m in methods)],
            variants,
        ),
        markdown(
            f"{title}: where the paper's own rule ends (* at its limit on time), and its published "
            "code, run once under Octave 7.3",
            ["data", "λ", "λ, paper's rule", "λ, published code", "optimum", "paper's rule",
             "too high by", "published code", "too high by"],
            rule,
        ),
        markdown(
            f"{title}: the data",
            ["data", "samples", "paper: samples", "features", "share of zeros",
             "paper: share of zeros"],
            sizes,
        ),
    ]  # fmt: skip
    return "\n".join(part for part in parts if part)


def _printed(experiment: str, data: str) -> list[str]:
    """What the paper prints."""
    if experiment == "table1":
        line = published.TABLE_1[size_of(data)]
        times = (line.yalmip, line.adaptive, line.constant)
        return [*(f"{mean:.2f} ± {spread:.2f} s" for mean, spread in times), f"{line.ratio} ×"]
    if experiment == "table2":
        real = published.TABLE_2[data]
        return [f"{real.yalmip:.2f} s", f"{real.ours:.2f} s", f"{real.ratio} ×"]
    return [f"{published.TABLE_4[data].ours:.2f} s"]


def _rule(data: str, theirs: Timing, exact: Timing) -> list[str]:
    """Where the paper's penalty and stopping rule end, and the optimum."""
    code = published.PUBLISHED_CODE.get(data)
    other = ["", "", ""]
    if code is not None:
        excess = _excess(code.objective, exact.objective)
        other = [f"{code.lam:.3f}", f"{code.objective:.6f}", excess]
    stopped = "" if theirs.complete else " *"
    return [
        f"{exact.lam:.3f}", f"{theirs.lam:.3f}{stopped}", other[0], f"{exact.objective:.6f}",
        f"{theirs.objective:.6f}", _excess(theirs.objective, exact.objective), *other[1:],
    ]  # fmt: skip


def _excess(value: float, best: float) -> str:
    return f"{short_power(value - best)} ({100.0 * (value / best - 1.0):.1f} %)"


def _no_answer(rows: Rows, tasks: list[Row], method: str, missing: dict[Any, str]) -> str:
    """Why a method has no time on a data set, in a word or two."""
    wanted = [run for run in tasks if run["method"] == method]
    if rows.of(wanted):
        return f"> {wanted[0]['limit']:g} s"
    if METHODS[method].needs and rows.of(tasks)[0]["n_products"] > _LARGEST:
        return "too large"
    return missing.get((tasks[0]["data"], method), "not run")


def _seconds(timing: Timing) -> str:
    """Two significant digits of the mean, and as many decimals as the deviation needs for one."""
    places = 1 - math.floor(math.log10(max(timing.seconds, 1e-5)))
    if math.isnan(timing.spread):
        return f"{timing.seconds:.{max(0, places)}f}"
    needed = -math.floor(math.log10(max(timing.spread, 1e-5)))
    places = max(0, places, min(needed, places + 1))
    return f"{timing.seconds:.{places}f} ± {timing.spread:.{places}f}"
