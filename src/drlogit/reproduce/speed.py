"""Tables 1, 2 and 4: processor time of every method on (P), each with its certified gap.

The paper's methods stop on ``‖Zβ - μ‖``, all others on the gap asked for; the certificate then
judges all alike, off nobody's clock but that of ``solve``, which computes it for every answer.
"""

from __future__ import annotations

import importlib.util
import json
import time
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import scipy.sparse as sp

from .. import datasets
from ..fitting.solving import solve
from . import paper
from .data import entries, load
from .environment import thread_limits
from .store import Row
from .tasks import Obstacle, Results, Task
from .worker import Worker


@dataclass(frozen=True)
class Method:
    """Who solves: the solver and its options.  An external one needs a package."""

    name: str
    label: str
    solver: str
    options: dict[str, Any] = field(default_factory=dict)
    needs: str | None = None


#: The inner solver is our fastest, not their active-set conjugate gradients: two to four times
#: faster, for the same iterates.
_AS_PUBLISHED = {"lambda_search": "golden", "stop": "residual", "residual_tol": paper.RESIDUAL}

INTERIOR_POINT = Method("interior-point", "interior point", "interior-point")
ADAPTIVE = Method("adaptive", "LP-ADMM, balanced ρ", "lp-admm")
CONSTANT = Method("constant", "LP-ADMM, constant ρ", "lp-admm", {"gamma": 1.0})
PUBLISHED_ADAPTIVE = Method(
    "published-adaptive", "paper's LP-ADMM, ρ = 0.001·1.05ᵏ", "lp-admm",
    {**_AS_PUBLISHED, "rho": paper.RHO, "gamma": paper.GAMMA},
)  # fmt: skip
PUBLISHED_CONSTANT = Method(
    "published-constant", "paper's LP-ADMM, constant ρ", "lp-admm", {**_AS_PUBLISHED, "gamma": 1.0}
)
CLARABEL = Method("clarabel", "Clarabel", "conic", needs="clarabel")
IPOPT = Method("ipopt", "IPOPT", "ipopt", needs="casadi")
METHODS = {
    method.name: method
    for method in (
        INTERIOR_POINT, ADAPTIVE, CONSTANT, PUBLISHED_ADAPTIVE, PUBLISHED_CONSTANT, CLARABEL, IPOPT
    )
}  # fmt: skip

#: Above so many products in a Gram matrix of the data, a general solver would fill this memory.
_LARGEST = 5e8

_worker = Worker()


@dataclass(frozen=True)
class Speed(Task):
    """One run of a method on one data set.

    ``trial`` seeds synthetic data and counts repetitions on real ones.  ``limit`` is what one run
    may take, ``budget`` what all trials of a method on a data set may take together before no
    more are begun, both in seconds of the processor.
    """

    method: str
    options: str
    trial: int
    limit: float
    budget: float
    epsilon: float = paper.EPSILON
    kappa: float = paper.KAPPA
    tol: float = 1e-6

    @classmethod
    def of(
        cls, experiment: str, data: str, method: Method, trial: int, limit: float, budget: float
    ) -> Speed:
        """A run of a method with its options."""
        options = json.dumps(method.options, sort_keys=True)
        return cls(experiment, data, method.name, options, trial, limit, budget)

    def obstacle(self, results: Results) -> Obstacle | None:
        """Too large, too slow before, nothing to run it with or on."""
        method = METHODS[self.method]
        earlier = results.where(experiment=self.experiment, method=self.method)
        here = [row for row in earlier if row["data"] == self.data]
        spent = sum(row["cpu_seconds"] for row in here)
        if here and spent >= self.budget:
            long = f"{method.label}: {len(here)} runs took {spent:.0f} s, its budget"
            return Obstacle("budget used up", long)
        if self.without_data() or method.needs is None:
            return self.without_data()
        if importlib.util.find_spec(method.needs) is None:
            long = f"{method.label} is not installed: pip install 'drlogit[conic]'"
            return Obstacle("not installed", long)
        X, _ = load(self.data, self.trial)
        size = entries(X) * X.shape[1]
        if size > _LARGEST:
            return Obstacle("too large", f"{method.label} would need too much memory")
        if any(row["status"] == "TIMEOUT" and row["n_products"] <= size for row in earlier):
            return Obstacle("too slow", f"{method.label} was out of time on less")
        return None

    def run(self, results: Results) -> Row:
        """Solve, in another process if the solver cannot be interrupted."""
        if METHODS[self.method].needs is None:
            return measure(self)
        try:
            row: Row = _worker.call(measure, self, self.limit)
            return row
        except TimeoutError:
            X, _ = load(self.data, self.trial)
            return {**_size(X), "status": "TIMEOUT", "gap": None, "cpu_seconds": self.limit}

    def line(self, row: Row) -> str:
        """The time with its gap."""
        label = METHODS[self.method].label
        if row["gap"] is None:
            return f"{label}: out of time after {self.limit:g} s"
        return f"{label}: {row['cpu_seconds']:.3g} s, gap {row['gap']:.1e}"


def measure(task: Speed) -> Row:
    """The time and the certificate of one run."""
    method = METHODS[task.method]
    # Within the limit: threads of BLAS that drawing the data woke up would idle on our clock.
    with thread_limits(1):
        X, y = load(task.data, task.trial)
        warm_up(task.method, sp.issparse(X))
        wall, started = time.perf_counter(), time.process_time()
        result = solve(
            X, y, epsilon=task.epsilon, kappa=task.kappa, norm="l1", fit_intercept=False,
            solver=method.solver, tol=task.tol,
            callback=lambda _: time.process_time() - started > task.limit,
            **json.loads(task.options),
        )  # fmt: skip
        cpu_seconds, seconds = time.process_time() - started, time.perf_counter() - wall
    return {
        **_size(X),
        "status": result.status.name,
        "gap": result.gap,
        "objective": result.objective,
        "lam": result.lam,
        "iterations": result.n_iter,
        "cpu_seconds": cpu_seconds,
        "seconds": seconds,
    }


def _size(X: Any) -> Row:
    count = entries(X)
    return {
        "n_samples": X.shape[0],
        "n_features": X.shape[1],
        "sparsity": round(1.0 - count / (X.shape[0] * X.shape[1]), 6),
        "n_products": count * X.shape[1],
    }


@cache
def warm_up(method: str, sparse: bool) -> None:
    """Import and compile what a method needs, on a problem of no size."""
    X, y = datasets.make_synthetic(60, 5, random_state=0)
    data = sp.csr_matrix(np.where(np.abs(X) > 1.5, X, 0.0)) if sparse else X
    chosen = METHODS[method]
    solve(data, y, solver=chosen.solver, tol=1e-4, max_iter=200, **paper.MODEL, **chosen.options)
