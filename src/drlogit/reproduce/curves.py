"""Figure 3: the first-order methods on the fixed-λ problem (B), value against iterations.

What is plotted is ``F(β^k)`` less a certified lower bound on the best value, so it is never too
small.  The subgradient method does not descend; its curve is the best point so far.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

import numpy as np

from ..fitting.solving import solve_subproblem
from ..problem.problem import Problem, build_problem
from ..problem.result import Result
from ..solvers.paper.admm import LIPSCHITZ, first_point
from ..solvers.paper.beta_step import BetaStep
from ..solvers.paper.fixed_lambda import FixedLambdaStep
from ..solvers.paper.lp_admm import lp_admm_steps
from ..solvers.paper.pdhg import pdhg_steps
from ..solvers.paper.standard_admm import standard_admm_steps
from ..solvers.paper.subgradient import subgradient_steps
from . import paper
from .data import load
from .environment import thread_limits
from .store import Row
from .tasks import Results, Task

#: LP-ADMM with the penalty of the paper.
PAPERS_PENALTY = "LP-ADMM, ρ = 0.001·1.05ᵏ"

#: In the order of the legend.
METHODS = (
    "LP-ADMM, balanced ρ", "LP-ADMM, constant ρ", PAPERS_PENALTY, "linearised ADMM",
    "standard ADMM", "PDHG", "subgradient",
)  # fmt: skip


def steps_of(method: str, problem: Problem, lam: float) -> Iterator[FixedLambdaStep]:
    """The iterations of a method, from its own start."""
    if method == "PDHG":
        return pdhg_steps(problem, lam)
    if method == "subgradient":
        return subgradient_steps(problem, lam)
    inner = BetaStep.build(problem)
    start = first_point(problem, None)._replace(rho=1.0)
    if method == "standard ADMM":
        return standard_admm_steps(problem, lam, start, inner)
    if method == "linearised ADMM":
        return lp_admm_steps(problem, lam, start, inner, gamma=1.0, eta=1.01 * LIPSCHITZ)
    if method == "LP-ADMM, constant ρ":
        return lp_admm_steps(problem, lam, start, inner, gamma=1.0)
    if method == "LP-ADMM, balanced ρ":
        return lp_admm_steps(problem, lam, start, inner)
    # The paper's ρ₀ is for sums over samples; ours is for means.
    start = start._replace(rho=paper.RHO * problem.rows.n_samples)
    return lp_admm_steps(problem, lam, start, inner, gamma=paper.GAMMA)


@lru_cache(maxsize=1)  # the methods on one data set follow each other
def reference(data: str, lam: float) -> Result:
    """The best value known, with its certified bound."""
    return solve_subproblem(*load(data), lam=lam, tol=1e-12, max_iter=20_000, **paper.MODEL)


@dataclass(frozen=True)
class Curve(Task):
    """One curve: ``F(β^k)`` less the bound at some k, and the time until then."""

    method: str
    iterations: int
    lam: float = paper.LAMBDA

    def run(self, results: Results) -> Row:
        """Iterate; evaluating F is off the clock."""
        problem = build_problem(*load(self.data), **paper.MODEL)
        points = sorted({round(k) for k in np.geomspace(1, self.iterations, 60)})
        above: list[float] = []
        seconds: list[float] = []
        with thread_limits(1):
            best = reference(self.data, self.lam)
            aside, started = 0.0, time.process_time()
            steps = steps_of(self.method, problem, self.lam)
            for k, step in enumerate(islice(steps, self.iterations), start=1):
                if k not in points:
                    continue
                now = time.process_time()
                seconds.append(now - started - aside)
                value = problem.objective(step.beta, self.lam) - best.dual_objective
                above.append(min(value, above[-1]) if self._keeps_best and above else value)
                aside += time.process_time() - now
        return {
            "at": points[: len(above)],
            "above": above,
            "at_seconds": seconds,
            "cpu_seconds": seconds[-1],
            "best": best.objective,
            "gap": best.gap,
        }

    @property
    def _keeps_best(self) -> bool:
        return self.method == "subgradient"

    def line(self, row: Row) -> str:
        """Where the curve ends."""
        return f"{self.method}: {row['above'][-1]:.1e} above the optimum after {row['at'][-1]}"
