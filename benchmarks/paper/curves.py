"""Figure 3: the first-order methods on the fixed-λ problem (B), value against processor time.

What is plotted is ``F(β^k)`` less a certified lower bound on the best value, so it is never too
small.  The time includes the setup of a method (its Gram matrix) and leaves out the evaluations of
F.  The subgradient method does not descend; its curve is the best point so far.

The methods run once with the parameters of the authors' released script, and once with well-tuned
ones: the penalty ρ is the best of four in each panel, and η is just above L_f.  All methods start
from β = 0 and its multipliers.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from functools import lru_cache
from itertools import takewhile
from typing import Any, NamedTuple

import numpy as np

import drlogit
from drlogit.paper import dispatch
from drlogit.paper.admm import LIPSCHITZ, BetaStep, first_point
from drlogit.paper.fixed_lambda import FixedLambdaStep
from drlogit.paper.lp_admm import LARGEST_PENALTY, lp_admm_iteration
from drlogit.paper.pdhg import pdhg_iteration
from drlogit.paper.standard_admm import standard_admm_iteration
from drlogit.paper.subgradient import subgradient_iteration
from drlogit.problem.problem import Problem, build_problem

from ..environment import thread_limits
from ..store import Row
from . import published
from .datasets import as_in_the_paper, synthetic, title_of
from .rows import Rows, data_of, markdown, short_power, task


class Curve(NamedTuple):
    """A method with its parameters; ρ and η in the paper's units, or times N if ``per_sample``."""

    method: str
    rho: float | None = None
    gamma: float | None = 1.0
    eta: float = 0.0
    per_sample: bool = False
    inner: str = "auto"

    @property
    def name(self) -> str:
        """As in the rows."""
        if self.rho is None:
            return self.method
        growth = "" if self.gamma in (None, 1.0) else f"·{self.gamma:g}ᵏ"
        units = "" if not self.per_sample else "/N" if self.inner == "auto" else " for sums"
        eta = f", η = {self.eta:g}" if self.eta and not self.per_sample else ""
        return f"{self.method}, ρ = {self.rho:g}{units}{growth}{eta}"


#: Penalties, times N, of which a tuned method has the best.
PENALTIES = (0.3, 1.0, 3.0, 10.0)

#: The inner solvers that the paper names.
_CG, _APG = "active-set-cg", "projected-gradient"

_BALANCED = Curve("LP-ADMM, balanced ρ", gamma=None)
_COMMON = (Curve("PDHG"), Curve("subgradient"))

#: The authors' parameters.  Their standard ADMM has ρ = 10 for sums over samples, which is 10/N
#: for the means of the paper's text; both are shown.
AUTHORS = (
    Curve("LP-ADMM", published.RHO, published.GAMMA, inner=_CG),
    Curve("LP-ADMM", published.RHO, published.FIGURE_3_GAMMA, inner=_CG),
    Curve("LP-ADMM", published.FIGURE_3_RHO, inner=_CG),
    Curve("linearised ADMM", published.LADMM_RHO, eta=published.LADMM_ETA, inner=_CG),
    Curve("standard ADMM", published.SADMM_RHO, inner=_APG),
    Curve("standard ADMM", published.SADMM_RHO, per_sample=True, inner=_APG),
    *_COMMON,
)

#: The curves that a tuned method is the best of.
TUNED: dict[str, tuple[Curve, ...]] = {
    _BALANCED.name: (_BALANCED,),
    **{
        f"{method}, tuned ρ": tuple(Curve(method, c, eta=eta, per_sample=True) for c in PENALTIES)
        for method, eta in (
            ("LP-ADMM", 0.0), ("linearised ADMM", 1.01 * LIPSCHITZ), ("standard ADMM", 0.0),
        )
    },
    **{curve.name: (curve,) for curve in _COMMON},
}  # fmt: skip

CURVES = {
    curve.name: curve for curve in (*AUTHORS, *(c for group in TUNED.values() for c in group))
}

#: Six of Table 1's sizes, and the seconds of each panel.
PANELS = {
    synthetic(*size): seconds
    for size, seconds in {
        (100, 10): 0.2, (500, 10): 0.3, (1000, 50): 0.5, (3000, 50): 0.5, (5000, 100): 1.0,
        (10000, 100): 2.0,
    }.items()
}  # fmt: skip

#: The height at which a curve ends, and the one that the table asks for.
_LOWEST, ACCURACY = 1e-13, 1e-7


def plan(quick: bool) -> list[Row]:
    """All curves; a quick run has three panels and less time."""
    panels = dict.fromkeys(list(PANELS)[:3], 0.2) if quick else PANELS
    return [
        task("figure3", data, name, limit=seconds)
        for data, seconds in panels.items()
        for name in CURVES
    ]


def steps_of(curve: Curve, problem: Problem, lam: float) -> Iterator[FixedLambdaStep]:
    """The iterations of a method, from β = 0."""
    if curve.method == "PDHG":
        return pdhg_iteration(problem, lam)
    if curve.method == "subgradient":
        return subgradient_iteration(problem, lam)
    inner = BetaStep.build(problem, curve.inner)
    units = 1.0 / problem.rows.n_samples if curve.per_sample else 1.0
    start = first_point(problem, rho=None if curve.rho is None else curve.rho * units)
    if curve.method == "standard ADMM":
        return standard_admm_iteration(problem, lam, start, inner)
    steps = lp_admm_iteration(problem, lam, start, inner, gamma=curve.gamma, eta=curve.eta * units)
    growth = curve.gamma
    if growth is None or growth == 1.0:
        return steps
    # The curve of a growing penalty ends where the library ends the growth: nothing moves there.
    return takewhile(lambda step: step.rho * growth <= LARGEST_PENALTY, steps)


@lru_cache(maxsize=1)  # the methods on one data set follow each other
def reference(data: str) -> drlogit.Result:
    """The best value known, with its certified bound."""
    return dispatch.solve_subproblem(
        *as_in_the_paper(data), lam=published.LAMBDA, tol=1e-12, max_iter=20_000, **published.MODEL
    )


def measure(run: Row) -> Row:
    """One curve: ``F(β^k)`` less the bound at some times; F is evaluated off the clock."""
    problem = build_problem(*as_in_the_paper(run["data"]), **published.MODEL)
    due = np.geomspace(1e-4, run["limit"], 80)
    above: list[float] = []
    seconds: list[float] = []
    iterations = 0
    with thread_limits(1):
        best = reference(run["data"])
        aside, started = 0.0, time.process_time()
        for step in steps_of(CURVES[run["method"]], problem, published.LAMBDA):
            iterations += 1
            now = time.process_time()
            elapsed = now - started - aside
            if elapsed < due[min(len(above), due.size - 1)] and elapsed < run["limit"]:
                continue
            value = problem.objective(step.beta, published.LAMBDA) - best.dual_objective
            above.append(value)
            seconds.append(elapsed)
            due = np.maximum(due, elapsed * 1.05)  # at most one look for each 5 % of time
            if elapsed >= run["limit"] or value < _LOWEST:
                break
            aside += time.process_time() - now
    return {
        "above": above,
        "at_seconds": seconds,
        "n_iter": iterations,
        "cpu_seconds": seconds[-1],
        "gap": best.gap,
    }


def best_of(found: dict[tuple[str, str], Row], data: str, group: tuple[Curve, ...]) -> Row | None:
    """The curve that is first within the accuracy of the table, or else the lowest."""
    rows = [row for curve in group if (row := found.get((data, curve.name))) is not None]
    return min(rows, key=lambda row: (_reached(row), min(row["above"])), default=None)


def _reached(row: Row) -> float:
    """Seconds until the accuracy of the table."""
    pairs = zip(row["at_seconds"], row["above"], strict=True)
    return next((seconds for seconds, above in pairs if above <= ACCURACY), math.inf)


def table(rows: Rows, tasks: list[Row]) -> str:
    """How long each method takes to a fixed accuracy."""
    found = {(row["data"], row["method"]): row for row in rows.of(tasks)}
    sets = [data for data in data_of(tasks) if any(data == known for known, _ in found)]
    columns = ["method", *map(title_of, sets)]
    theirs = {curve.name: (curve,) for curve in AUTHORS}
    parts = [
        markdown(
            f"Figure 3, {what} parameters: seconds until F − F* ≤ {short_power(ACCURACY)}, or in "
            "brackets what was reached in the seconds of the panel; milliseconds per iteration",
            columns,
            [
                [name, *(_cell(best_of(found, data, group)) for data in sets)]
                for name, group in groups.items()
            ] if sets else [],
        )
        for what, groups in (("the authors'", theirs), ("tuned", TUNED))
    ]  # fmt: skip
    return "\n".join(part for part in parts if part)


def _cell(row: Any) -> str:
    if row is None:
        return "–"
    cost = 1e3 * row["cpu_seconds"] / row["n_iter"]
    seconds, lowest = _reached(row), short_power(min(row["above"]))
    return (
        f"[{lowest}]; {cost:.2g} ms" if math.isinf(seconds) else f"{seconds:.2g} s; {cost:.2g} ms"
    )
