"""Tables 1, 2 and 4: processor time of every method on (A), each with its certified gap.

The published framework stops on ``‖Zx - y‖``, all others on the gap asked for; the same certificate
then judges all of them.  Conic solvers and IPOPT cannot be interrupted, so they run in a process
of their own, which the system ends when its processor time is over (Unix).
"""

from __future__ import annotations

import importlib.util
import statistics
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import lru_cache
from multiprocessing import get_context
from typing import Any, NamedTuple

import drlogit
from drlogit import paper
from drlogit.paper.framework import FrameworkResult
from drlogit.paper.subproblem import NORMS, Subproblem, signed_rows

from .. import stated
from ..environment import thread_limits
from . import published
from .datasets import as_in_the_paper, size_of, synthetic, title_of
from .ipopt import ipopt
from .released import golden_search
from .rows import Row, Rows, data_of, markdown, short_power, task

TOL = 1e-6

#: The methods, as tables call them.
METHODS = {
    "exact": "drlogit.solve",
    "published": "published, ρ₀ = 0.001",
    "scaled": "published, ρ₀ = 1/N",
    "constant": "published, constant ρ",
    "sound": "LP-ADMM, stopped on the gap",
    "released": "released code (port)",
    "moreau": "Moreau",
    "clarabel": "Clarabel",
    "ipopt": "IPOPT",
}

#: The sets on which the port of the released code is run.
_PORTED = ("a1a", "a5a", "a9a", "w8a", "mushrooms", "phishing")

#: Methods in a process of their own, and the package they need.
_ALONE = {"moreau": "moreau", "clarabel": "clarabel", "ipopt": "casadi"}

#: Seconds of processor time: of these methods, and of the framework with a constant penalty.
_ALONE_LIMIT, _CONSTANT_LIMIT = 60, 10.0


class Plan(NamedTuple):
    """The data sets of a table, its trials and its methods."""

    data: tuple[str, ...]
    trials: int
    methods: tuple[str, ...]


_SIZES = tuple(synthetic(*size) for size in published.TABLE_1)
_FRAMEWORK = ("exact", "published", "scaled", "sound")
#: What is measured, in a full run.
PLANS = {
    "table1": Plan(_SIZES, 3, (*_FRAMEWORK, "constant", *_ALONE)),
    "table2": Plan(tuple(published.TABLE_2), 1, (*_FRAMEWORK, "released", "moreau", "clarabel")),
    "table4": Plan(tuple(published.TABLE_4), 1, (*_FRAMEWORK, "released")),
}
_QUICK = {
    "table1": Plan(_SIZES[:4], 1, (*_FRAMEWORK, "moreau", "clarabel")),
    "table2": Plan(("a1a", "a2a"), 1, (*_FRAMEWORK, "released")),
    "table4": Plan(("mushrooms", "phishing"), 1, _FRAMEWORK),
}


def plan(experiment: str, quick: bool) -> list[Row]:
    """The runs of one table, trial by trial; what takes long has one trial."""
    data, trials, methods = (_QUICK if quick else PLANS)[experiment]
    return [
        task(experiment, name, method, trial)
        for trial in range(trials)
        for name in data
        for method in methods
        if (trial == 0 or method not in (*_ALONE, "constant"))
        and (method != "released" or name in _PORTED)
    ]


def measure(run: Row) -> dict[str, Any] | str:
    """The values of a run, or why it is left out, in a word or two."""
    method, X, y = run["method"], *_data(run["data"], run["trial"])
    if method not in _ALONE:
        return _timed(method, X, y, run["data"], run["trial"])
    if importlib.util.find_spec(_ALONE[method]) is None:
        return "not installed"
    spawn = get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn, initializer=_limit_time) as pool:
        pool.submit(int).result()  # it can be started
        try:
            return pool.submit(_timed, method, X, y, run["data"], run["trial"]).result()
        except BrokenProcessPool:  # or out of memory: there is no answer then, either
            return {"seconds": float(_ALONE_LIMIT), "status": "TIMEOUT"}


def _limit_time() -> None:
    """End this process when its processor time is over."""
    import resource

    limit = round(time.process_time()) + _ALONE_LIMIT
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))


@lru_cache(maxsize=1)  # the methods on one data set follow each other
def _data(data: str, trial: int) -> tuple[Any, Any]:
    return as_in_the_paper(data, trial)


def _timed(method: str, X: Any, y: Any, data: str, trial: int) -> dict[str, Any]:
    """The time and the gap of one run."""
    with thread_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", paper.ResidualRuleWarning)  # the table says it
        _run(method, *drlogit.datasets.make_synthetic(60, 5, random_state=0)[:2])  # imports
        started = time.process_time()
        found = _run(method, X, y)
        seconds = time.process_time() - started
        bound = _lower_bound(data, trial)
    if isinstance(found, drlogit.Result):
        objective, lam, status = found.objective, found.lam, found.status.name
        if isinstance(found, FrameworkResult):
            seconds = found.cpu_seconds  # without the certificate
        iterations: int | None = found.n_iter
    else:
        lam, coef, status, iterations = found
        Z = signed_rows(X, y)
        objective = published.EPSILON * lam + _loss(Z, lam, coef)
    return {
        "seconds": seconds,
        "gap": objective - bound,
        "objective": objective,
        "lam": float(lam),
        "n_iter": iterations,
        "status": status,
    }


def _loss(Z: Any, lam: float, coef: Any) -> float:
    return Subproblem(Z, lam, published.KAPPA, NORMS["l1"]).F(Z @ coef)


@lru_cache(maxsize=1)
def _lower_bound(data: str, trial: int) -> float:
    """A certified lower bound on the optimum."""
    X, y = _data(data, trial)
    return stated.solve(X, y, tol=1e-9, fit_intercept=False, **published.MODEL).dual_objective


def _run(method: str, X: Any, y: Any) -> Any:
    """A result, or λ, coefficients, status and iterations."""
    model = published.MODEL
    if method == "exact":
        return stated.solve(X, y, tol=TOL, fit_intercept=False, **model)
    if method == "sound":
        return paper.sound(signed_rows(X, y), tol=TOL, **model)
    if method in ("moreau", "clarabel"):
        return paper.conic(X, y, solver=method.upper(), tol=1e-8, **model)
    if method == "ipopt":
        return ipopt(signed_rows(X, y), published.EPSILON, published.KAPPA, tol=TOL)
    if method == "released":
        Z = signed_rows(X, y)
        lam, coef = golden_search(
            Z, published.EPSILON, published.KAPPA, published.RHO, published.RELEASED_GAMMA
        )
        return lam, coef, "RELEASED", None
    options: dict[str, Any] = {"rho": "scaled"} if method == "scaled" else {}
    if method == "constant":
        rho = published.CONSTANT_RHO.get(X.shape, published.CONSTANT_RHO_OTHERS)
        started = time.process_time()
        options = {"rho": rho, "gamma": 1.0}
        options["callback"] = lambda lam, iterate: time.process_time() - started > _CONSTANT_LIMIT
    return paper.framework(X, y, inner_stop="released", **options, **model)


# --- the tables ------------------------------------------------------------------------------

HOW_TO_READ = """Processor seconds, the mean over one to three runs, with the largest certified gap
of these runs in brackets, in nats. "Published" is the paper's framework with its own rules:
γ = 1.05, active-set conjugate gradients until a step is shorter than 1e-5, golden section, each
subproblem stopped on ‖Zx − y‖ ≤ 1e-6. A run with a constant ρ, the values of the authors' script,
is stopped after 10 s (≥); conic solvers and IPOPT have a minute (–: no answer by then). The paper's
times are from MATLAB R2018a on an Intel Core i5-8600: compare ratios, not seconds.
"""


class Timing(NamedTuple):
    """A method on a data set: mean seconds, the largest gap, and the first run's answer."""

    seconds: float
    gap: float
    objective: float
    lam: float
    status: str

    def cell(self) -> str:
        """As in the tables."""
        stopped = "≥ " if self.status == "STOPPED" else ""
        return f"{stopped}{self.seconds:.2g} s [{short_power(self.gap)}]"


def timing(rows: Rows, tasks: list[Row], data: str, method: str) -> Timing | None:
    """The runs of a method on a data set; None where it has no answer."""
    wanted = [run for run in tasks if (run["data"], run["method"]) == (data, method)]
    found = [row for row in rows.of(wanted) if row["gap"] is not None]
    if not found:
        return None
    seconds = statistics.fmean(row["seconds"] for row in found)
    first = found[0]
    worst = max(row["gap"] for row in found)
    return Timing(seconds, worst, first["objective"], first["lam"], first["status"])


def tables(experiment: str, rows: Rows, tasks: list[Row]) -> str:
    """Times of all methods with ratios, and where the published rule ends."""
    methods = [name for name in METHODS if name in {run["method"] for run in tasks}]
    lines, rule = [], []
    for data in data_of(tasks):
        found = {m: timing(rows, tasks, data, m) for m in methods}
        exact, theirs, scaled = (found.get(name) for name in ("exact", "published", "scaled"))
        if exact is None or theirs is None or scaled is None:
            continue
        cells = ["–" if t is None else t.cell() for t in found.values()]
        ratio = f"{scaled.seconds / theirs.seconds:.2f}"
        lines.append([title_of(data), *_printed(experiment, data), *cells, ratio])
        released = found.get("released")
        ends = [theirs, scaled, *([] if released is None else [released])]
        rule.append(
            [
                title_of(data),
                f"{exact.objective:.6f}",
                f"{exact.lam:.3f}",
                *(f"{end.lam:.3f}, {short_power(end.objective - exact.objective)}" for end in ends),
                *(["–"] if released is None else []),
            ]
        )
    printed = {
        "table1": ["paper: YALMIP", "paper: LP-ADMM", "paper: ratio"],
        "table2": ["paper: YALMIP", "paper: LP-ADMM", "paper: ratio"],
        "table4": ["paper: LP-ADMM"],
    }[experiment]
    title = experiment.replace("table", "Table ")
    head = ["data", *printed, *(METHODS[m] for m in methods), "ρ₀ = 1/N / 0.001"]
    ends_head = [
        "data",
        "optimum",
        "λ*",
        *(METHODS[m] for m in ("published", "scaled", "released")),
    ]
    return "\n".join(
        [
            markdown(f"{title}: seconds and gaps", head, lines),
            markdown(
                f"{title}: where the rule ends, λ and how far above the optimum", ends_head, rule
            ),
        ]
    )


def _printed(experiment: str, data: str) -> list[str]:
    """What the paper prints."""
    if experiment == "table4":
        return [f"{published.TABLE_4[data].ours:.2f} s"]
    line: Any = published.TABLE_2[data] if experiment == "table2" else None
    if line is None:
        sizes = published.TABLE_1[size_of(data)]
        return [f"{sizes.yalmip[0]:.2f} s", f"{sizes.adaptive[0]:.2f} s", f"{sizes.ratio} ×"]
    return [f"{line.yalmip:.2f} s", f"{line.ours:.2f} s", f"{line.ratio} ×"]


def growth(rows: Rows, tasks: list[Row]) -> dict[str, dict[str, list[tuple[int, float]]]]:
    """The gap against N by family, with ρ₀ = 0.001 and with 1/N."""
    sizes = {name: line.n_samples for name, line in published.TABLE_2.items()}
    sizes |= {name: line.n_samples for name, line in published.TABLE_4.items()}
    found: dict[str, dict[str, list[tuple[int, float]]]] = {}
    for data in data_of(tasks):
        family = data[0] if data[0] in "aw" and data[-1] == "a" else ""
        for method in ("published", "scaled"):
            line = timing(rows, tasks, data, method)
            if family and line is not None:
                points = found.setdefault(f"{family}1a to {family}{9 if family == 'a' else 8}a", {})
                points.setdefault(method, []).append((sizes[data], line.gap))
    return found
