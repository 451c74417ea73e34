"""Tables 1, 2 and 4: processor time of every method on (P), each with its certified gap.

The published framework stops on ``‖Zβ - μ‖``, all others on the gap asked for; the same certificate
then judges all of them.  Methods take turns within a trial, so that all meet the same disturbances.
Clarabel and IPOPT cannot be interrupted, so they run in a process of their own, which is ended
when its time is over.
"""

from __future__ import annotations

import importlib.util
import math
import multiprocessing
import statistics
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any

import numpy as np
import scipy.sparse as sp

import drlogit
from benchmarks import stated
from drlogit.paper import dispatch

from ..environment import thread_limits
from ..ipopt import ipopt
from ..store import Row
from . import published
from .datasets import as_in_the_paper, size_of, synthetic, title_of
from .rows import Rows, data_of, markdown, short_power, task

TOL = 1e-6


@dataclass(frozen=True)
class Method:
    """A solver and its options, the package it needs, and a limit of its own on seconds."""

    label: str
    solver: Any
    options: dict[str, Any] = field(default_factory=dict)
    needs: str | None = None
    limit: float | None = None


#: No run of the published framework with a growing penalty is cut short in practice: the longest
#: takes minutes.  With a constant penalty it can take hours, so that the limit of its table holds.
_UNCUT = 1800.0

METHODS = {
    "interior-point": Method("interior point", "interior-point"),
    "lp-admm-golden": Method("LP-ADMM, golden section", "lp-admm", {"lambda_search": "golden"}),
    "lp-admm-derivative": Method(
        "LP-ADMM, derivative search", "lp-admm", {"lambda_search": "derivative"}
    ),
    "paper-growing": Method("as published", "published", limit=_UNCUT),
    "paper-constant": Method("as published, constant ρ", "published", {"gamma": 1.0}),
    "clarabel": Method("Clarabel", "conic", needs="clarabel"),
    "ipopt": Method("IPOPT", "ipopt", needs="casadi"),
}

SIZES = tuple(synthetic(*size) for size in published.TABLE_1)

#: Data sets, trials, seconds for one run, and seconds for all trials of a method on a set.
_FULL: dict[str, tuple[tuple[str, ...], int, float, float]] = {
    "table1": (SIZES, published.TRIALS, 60.0, 10.0),
    "table2": (tuple(published.TABLE_2), 3, 120.0, 20.0),
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
_PATIENCE = 10.0


def plan(experiment: str, quick: bool) -> list[Row]:
    """The runs of one table."""
    data, trials, limit, _ = (_QUICK if quick else _FULL)[experiment]
    methods = {
        name: limit if method.limit is None or quick else method.limit
        for name, method in METHODS.items()
        if name != "paper-constant" or experiment == "table1"
    }
    return [
        task(experiment, d, name, t, most)
        for d in data
        for t in range(trials)
        for name, most in methods.items()
    ]


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
        row, coef = _timed(X, y, run["method"], limit)
    elif importlib.util.find_spec(method.needs) is None:
        return "not installed"
    elif size["n_products"] > _LARGEST:
        return "too large"
    elif any(row["gap"] is None and row["n_products"] <= size["n_products"] for row in earlier):
        return "too slow"
    else:
        try:
            row, coef = (
                _pool()
                .apply_async(_timed, (X, y, run["method"], limit))
                .get(timeout=10.0 + _PATIENCE * limit)
            )
        except multiprocessing.TimeoutError:  # or out of memory: there is no answer then, either
            _pool().terminate()
            _pool.cache_clear()
            return {**size, "status": "TIMEOUT", "gap": None, "cpu_seconds": limit}
    if coef is not None:
        ball = drlogit.Ball(norm="l1", feature_costs=None).replace(**_BALL)
        value = drlogit.worst_case((coef, 0.0), X, y, ball=ball).value
        row |= {"objective": value, "gap": value - _bound(run["data"], run["trial"])}
    return {**size, **row}


#: The model without what a fit needs besides.
_BALL = {name: value for name, value in published.MODEL.items() if name != "fit_intercept"}


@lru_cache(maxsize=1)
def _bound(data: str, trial: int) -> float:
    """A certified lower bound on the optimum, for methods that bring none."""
    with thread_limits(1):
        return stated.solve(*_data(data, trial), tol=1e-9, **published.MODEL).dual_objective


@cache
def _pool() -> Any:
    return multiprocessing.get_context("spawn").Pool(1)


@lru_cache(maxsize=1)  # the methods on one data set follow each other
def _data(data: str, trial: int) -> tuple[Any, Any]:
    return as_in_the_paper(data, trial)


def _timed(X: Any, y: Any, name: str, limit: float) -> tuple[Row, Any]:
    """The time and the certificate of one run; the model of a method without a certificate."""
    method = METHODS[name]
    # Within the limit: threads of BLAS that drawing the data woke up would idle on our clock.
    with thread_limits(1):
        _warm_up(name, sp.issparse(X))
        started = time.process_time()
        result = _solved(
            X, y, method, TOL, late=lambda _=None: time.process_time() - started > limit
        )
        seconds = time.process_time() - started
    status = str(getattr(result.status, "name", result.status))
    if method.solver == "published":  # without its certificate and its record of the iterates
        seconds = result.info["cpu_seconds"]
        if any(each.ended == "callback" for each in result.subproblems):
            status = "STOPPED"  # at the limit, even if the gap was small enough by then
    row = {
        "status": status,
        "lam": result.lam,
        "n_iter": result.n_iter,
        "cpu_seconds": seconds,
    }
    if method.solver in ("ipopt", "published"):
        return row, result.coef
    return {**row, "gap": result.gap, "objective": result.objective}, None


def _solved(X: Any, y: Any, method: Method, tol: float, late: Callable[..., bool]) -> Any:
    if method.solver == "ipopt":
        return ipopt(X, y, tol=tol, **published.MODEL)
    if method.solver == "published":
        return as_published(X, y, late=late, **method.options)
    return dispatch.solve(
        X, y, solver=method.solver, tol=tol, callback=late, **published.MODEL, **method.options
    )


def as_published(
    X: Any, y: Any, *, late: Callable[..., bool], gamma: float | None = None, **options: Any
) -> Any:
    """The paper's framework with its own rules; a constant ρ is that of the authors' script."""
    rho = published.CONSTANT_RHO.get(X.shape, published.CONSTANT_RHO_OTHERS) if gamma else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", drlogit.paper.ResidualRuleWarning)  # the table says it
        return drlogit.paper.framework(
            X, y, rho=rho, gamma=gamma, callback=late, **published.MODEL, **options
        )


@cache
def _warm_up(name: str, sparse: bool) -> None:
    """Import and compile what a method needs, on a problem of no size."""
    X, y = drlogit.datasets.make_synthetic(60, 5, random_state=0)
    data = sp.csr_matrix(np.where(np.abs(X) > 1.5, X, 0.0)) if sparse else X
    method = METHODS[name]
    started = time.process_time()
    # A second is enough; with a constant penalty a whole run would take hours.
    _solved(data, y, method, 1e-4, late=lambda _=None: time.process_time() - started > 1.0)


# --- the tables ------------------------------------------------------------------------------

HOW_TO_READ = """Seconds of processor time, mean ± standard deviation over the runs, and in brackets
the largest certified gap of these runs, in nats. ×k: there are only k runs, because the method used
up its budget for the data set or the command was stopped. "≥": the run was stopped at its limit on
time and had reached this gap. "Off the shelf" is the time of the faster of Clarabel and IPOPT; the
ratio is this time over that of the method.

"LP-ADMM" with golden section or with the derivative search is the paper's Algorithm 1, stopped on a
certified gap of 1e-6, with a penalty that balances the residuals. Golden section over λ is the
paper's Algorithm 2; the derivative search is ours. "As published" is the paper's framework with its
own rules: ρ₀ = 0.001, γ = 1.05, active-set conjugate gradients until a step is shorter than 1e-5,
golden section, each subproblem stopped on ‖Zβ − μ‖ ≤ 1e-6. No run with a growing ρ was cut short;
one with a constant ρ, the values of the authors' script, ends after 60 s."""

#: Solvers off the shelf against those here, and LP-ADMM as published and with a sound stop.
_SHELF = ("clarabel", "ipopt", "lp-admm-golden", "lp-admm-derivative", "interior-point")
_VARIANTS = (
    "paper-growing", "paper-constant", "lp-admm-golden", "lp-admm-derivative",
)  # fmt: skip
_OURS = ("lp-admm-golden", "lp-admm-derivative", "interior-point")
_RATIOS = tuple(f"off the shelf / {name}" for name in ("golden", "derivative", "interior point"))


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
        # Solvers in a process of their own are not interrupted: with an answer they are complete.
        complete=METHODS[method].needs is not None
        or all(row["cpu_seconds"] <= row["limit"] and row["status"] != "STOPPED" for row in found),
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
            for m in _OURS
        ]
        name = title_of(data)
        shelf.append([name, *_printed(experiment, data), *ratios, *(cells[m] for m in _SHELF)])
        variants.append([name, *(cells[m] for m in methods)])
        theirs, exact = found["paper-growing"], found["interior-point"]
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
            f"{title}: the published rule beside the gap as stop",
            ["data", *(METHODS[m].label for m in methods)],
            variants,
        ),
        markdown(
            f"{title}: where the published rule ends (* at its limit on time), and the authors' "
            "code under Octave",
            ["data", "λ", "λ, published rule", "λ, authors' code", "optimum", "published rule",
             "too high by", "authors' code", "too high by"],
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
    code = published.AUTHORS_CODE.get(data)
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
