"""Figure 3: the first-order methods on the fixed-λ problem (B), value against processor time.

What is plotted is ``F(x^k)`` less a certified lower bound on the best value, so it is never too
small.  The time includes the setup of a method (its Gram matrix) and leaves out the evaluations of
F.  The subgradient method does not descend; its curve is the best point so far.

The methods run with the authors' parameters, and with tuned ones: the penalty ρ is the best of four
in each panel, and η is just above L_f.  All start from zero.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from drlogit import paper
from drlogit.paper import PaperIterate
from drlogit.paper.subproblem import NORMS, Subproblem, signed_rows

from ..environment import thread_limits
from . import published
from .datasets import as_in_the_paper, synthetic, title_of
from .rows import Row, Rows, data_of, markdown, short_power, task

#: A method on (B): from Z, λ and κ its iterates.
Method = Callable[..., Iterator[PaperIterate]]


def _with(method: Method, per_sample: bool = False, **options: float) -> Method:
    """A method with parameters, times 1/N if they are given for sums over the samples."""

    def steps(Z: Any, lam: float, kappa: float) -> Iterator[PaperIterate]:
        scale = 1.0 / Z.shape[0] if per_sample else 1.0
        given = {k: v if k == "gamma" else scale * v for k, v in options.items()}
        return method(Z, lam, kappa, **given)

    return steps


#: The authors' parameters: those of the text for the first, of their script for the others.
AUTHORS: dict[str, Method] = {
    "LP-ADMM, ρ = 0.001·1.05ᵏ": _with(paper.lp_admm),
    "LP-ADMM, ρ = 0.001·1.01ᵏ": _with(paper.lp_admm, gamma=1.01),
    "LP-ADMM, ρ = 0.01": _with(paper.lp_admm, rho=0.01, gamma=1.0),
    "linearised ADMM, ρ = 0.1, η = 0.25": _with(paper.lp_admm, rho=0.1, gamma=1.0, eta=0.25),
    "standard ADMM, ρ = 10/N": _with(paper.standard_admm),
    "PDHG": _with(paper.pdhg),
    "subgradient": _with(paper.subgradient),
}

#: Tuned methods, each the best of some curves.
_RHOS = (1.0, 3.0, 10.0, 30.0)
TUNED: dict[str, dict[str, Method]] = {
    "LP-ADMM, tuned ρ": {
        f"LP-ADMM, ρ = {rho:g}/N": _with(paper.lp_admm, True, rho=rho, gamma=1.0) for rho in _RHOS
    },
    "LP-ADMM, ρ = 1.05ᵏ/N": {
        "LP-ADMM, ρ = 1.05ᵏ/N": _with(paper.lp_admm, True, rho=1.0, gamma=1.05)
    },
    "linearised ADMM, tuned ρ": {
        f"linearised ADMM, ρ = {rho:g}/N": _with(
            paper.lp_admm, True, rho=rho, gamma=1.0, eta=1.01 / 4.0
        )
        for rho in _RHOS
    },
    "standard ADMM, tuned ρ": {
        f"standard ADMM, ρ = {rho:g}/N": _with(paper.standard_admm, True, rho=rho) for rho in _RHOS
    },
    "PDHG": {"PDHG": AUTHORS["PDHG"]},
    "subgradient": {"subgradient": AUTHORS["subgradient"]},
}
GROUPS = {"authors": {name: {name: method} for name, method in AUTHORS.items()}, "tuned": TUNED}
CURVES = {name: m for groups in GROUPS.values() for g in groups.values() for name, m in g.items()}

#: Six of Table 1's sizes, and the seconds of each panel.
_PANELS = {
    (100, 10): 0.2,
    (500, 10): 0.3,
    (1000, 50): 0.5,
    (3000, 50): 0.5,
    (5000, 100): 1.0,
    (10000, 100): 2.0,
}
PANELS = {synthetic(*size): seconds for size, seconds in _PANELS.items()}

#: The height at which a curve ends, and the one that the table asks for.
_LOWEST, ACCURACY = 1e-12, 1e-7


def plan(quick: bool) -> list[Row]:
    """All curves; a quick run has two panels."""
    return [
        task("figure3", data, name) for data in list(PANELS)[: 2 if quick else 6] for name in CURVES
    ]


@lru_cache(maxsize=1)  # the methods on one data set follow each other
def _reference(data: str) -> tuple[Subproblem, float]:
    """The problem, and a certified lower bound on its value."""
    Z = signed_rows(*as_in_the_paper(data))
    best = paper.sound(Z, lam=published.LAMBDA, tol=1e-12, max_iter=20_000, **published.MODEL)
    lower = best.dual_objective - published.EPSILON * published.LAMBDA
    return Subproblem(Z, published.LAMBDA, published.KAPPA, NORMS["l1"]), lower


def measure(run: Row) -> dict[str, Any]:
    """One curve; F is evaluated off the clock, at most once for each 5 % of time."""
    limit, curve, due, aside = PANELS[run["data"]], [], 1e-4, 0.0
    with thread_limits(1):
        problem, lower = _reference(run["data"])
        started = time.process_time()
        for iterate in CURVES[run["method"]](problem.Z, problem.lam, problem.kappa):
            now = time.process_time()
            elapsed = now - started - aside
            if elapsed < due:
                continue
            curve.append([elapsed, problem.F(problem.Z @ iterate.x) - lower])
            due = 1.07 * elapsed
            if elapsed >= limit or curve[-1][1] < _LOWEST:
                break
            aside += time.process_time() - now
    values = np.minimum.accumulate([above for _, above in curve])
    return {"seconds": curve[-1][0], "gap": float(values[-1]), "n_iter": iterate.k, "curve": curve}


def best_of(rows: Rows, data: str, group: dict[str, Method]) -> Row | None:
    """The curve that is first within the accuracy of the table, or else the lowest."""
    found = rows.of([task("figure3", data, name) for name in group])
    return min(found, key=lambda row: (reached(row), row["gap"]), default=None)


def reached(row: Row) -> float:
    """Seconds until the accuracy of the table."""
    return next((seconds for seconds, above in row["curve"] if above <= ACCURACY), math.inf)


def table(rows: Rows, tasks: list[Row]) -> str:
    """How long each method takes to a fixed accuracy."""
    sets, parts = data_of(tasks), []
    for which, groups in GROUPS.items():
        lines = []
        for name, group in groups.items():
            found = [best_of(rows, data, group) for data in sets]
            if any(found):
                lines.append([name, *("–" if row is None else _cell(row) for row in found)])
        parts.append(
            markdown(
                f"Figure 3, {which} parameters: seconds until F − F* ≤ {short_power(ACCURACY)}, or "
                "in brackets what was reached; milliseconds per iteration",
                ["method", *map(title_of, sets)],
                lines,
            )
        )
    return "\n".join(parts)


def _cell(row: Row) -> str:
    seconds, cost = reached(row), 1e3 * row["seconds"] / row["n_iter"]
    end = f"[{short_power(row['gap'])}]" if math.isinf(seconds) else f"{seconds:.2g} s"
    return f"{end}; {cost:.2g} ms"
