"""Figure 3: the first-order methods on the fixed-λ problem (B), value against iterations.

What is plotted is ``F(β^k)`` less a certified lower bound on the best value, so it is never too
small.  The subgradient method does not descend; its curve is the best point so far.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from typing import Any

import numpy as np

import drlogit
from drlogit import paper
from drlogit.paper import PaperIterate
from drlogit.problem.problem import build_problem

from ..environment import thread_limits
from ..store import Row
from . import published
from .datasets import as_in_the_paper, synthetic, title_of
from .rows import Rows, data_of, markdown, short_power, task

#: In the order of the legend.
METHODS = (
    "LP-ADMM, balanced ρ", "LP-ADMM, constant ρ", "LP-ADMM, ρ = 0.001·1.05ᵏ", "linearised ADMM",
    "standard ADMM", "PDHG", "subgradient",
)  # fmt: skip

#: Six of Table 1's sizes; the paper does not say which its six panels have.
PANELS = tuple(
    synthetic(*size)
    for size in ((100, 10), (500, 10), (1000, 50), (3000, 50), (5000, 100), (10000, 100))
)


def plan(quick: bool) -> list[Row]:
    """All curves; a quick run has three panels and fewer iterations."""
    panels, iterations = (PANELS[:3], 300) if quick else (PANELS, 2000)
    return [
        task("figure3", data, method, limit=iterations) for data in panels for method in METHODS
    ]


def steps_of(method: str, X: Any, y: Any, lam: float) -> Iterator[PaperIterate]:
    """The iterations of a method, from zero."""
    model = {"lam": lam, **published.MODEL}
    del model["epsilon"]
    if method == "PDHG":
        return paper.pdhg_steps(X, y, **model)
    if method == "subgradient":
        return paper.subgradient_steps(X, y, **model)
    model |= {"inner": "coordinate-newton", "rho": 1.0 / len(y)}
    if method == "standard ADMM":
        return paper.standard_admm_steps(X, y, **model)
    if method == "linearised ADMM":
        return paper.linearized_admm_steps(X, y, **model)
    if method == "LP-ADMM, constant ρ":
        return paper.lp_admm_steps(X, y, gamma=1.0, **model)
    if method == "LP-ADMM, balanced ρ":
        return paper.lp_admm_steps(X, y, gamma=None, **model)
    model["rho"] = published.RHO
    return paper.lp_admm_steps(X, y, gamma=published.GAMMA, **model)


@lru_cache(maxsize=1)  # the methods on one data set follow each other
def reference(data: str) -> drlogit.Result:
    """The best value known, with its certified bound."""
    return drlogit.solve_subproblem(
        *as_in_the_paper(data), lam=published.LAMBDA, tol=1e-12, max_iter=20_000, **published.MODEL
    )


def measure(run: Row) -> Row:
    """One curve: ``F(β^k)`` less the bound at some k, and the time until then; F off the clock."""
    X, y = as_in_the_paper(run["data"])
    problem = build_problem(X, y, **published.MODEL)
    points = sorted({round(k) for k in np.geomspace(1, run["limit"], 60)})
    above: list[float] = []
    seconds: list[float] = []
    with thread_limits(1):
        best = reference(run["data"])
        aside, started = 0.0, time.process_time()
        steps = steps_of(run["method"], X, y, published.LAMBDA)
        for k, step in enumerate(islice(steps, run["limit"]), start=1):
            if k not in points:
                continue
            now = time.process_time()
            seconds.append(now - started - aside)
            value = problem.objective(step.beta, published.LAMBDA) - best.dual_objective
            keeps_best = run["method"] == "subgradient" and above
            above.append(min(value, above[-1]) if keeps_best else value)
            aside += time.process_time() - now
    return {
        "at": points[: len(above)],
        "above": above,
        "at_seconds": seconds,
        "cpu_seconds": seconds[-1],
        "gap": best.gap,
    }


def table(rows: Rows, tasks: list[Row]) -> str:
    """Where the curves end, and what an iteration costs."""
    found = {(row["data"], row["method"]): row for row in rows.of(tasks)}
    sets = [data for data in data_of(tasks) if any(data == known for known, _ in found)]
    lines = [[method, *(_cell(found.get((data, method))) for data in sets)] for method in METHODS]
    caption = f"Figure 3: above the optimum after {tasks[0]['limit']} iterations, and time of one"
    return markdown(caption, ["method", *map(title_of, sets)], lines if sets else [])


def _cell(row: Any) -> str:
    if row is None:
        return "–"
    cost = 1e3 * row["cpu_seconds"] / row["at"][-1]
    return f"{short_power(row['above'][-1])}, {cost:.2g} ms"
