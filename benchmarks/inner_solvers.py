"""The inner solvers of (C) inside LP-ADMM at fixed λ: ``python -m benchmarks.inner_solvers``.

ε = 0.1, κ = 1 and no intercept, as in the paper; seconds are those of the processor.  The rest of
the paper's framework is measured by ``benchmarks.paper``.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from drlogit.paper.ball_qp import INNER_SOLVERS
from drlogit.paper.lp_admm import lp_admm
from drlogit.problem.problem import build_problem
from drlogit.problem.result import Monitor

from .paper import published
from .paper.datasets import as_in_the_paper, synthetic

#: Near the optimal λ.
LAMBDAS = {"a9a": 1.394, "w8a": 1.588, "mushrooms": 2.192, "mnist-0v3": 2.24}


def measure(names: list[str], count: int) -> None:
    """Iterations of (C) and seconds spent on ``count`` iterations of LP-ADMM."""
    print(f"{count} iterations of LP-ADMM with each inner solver (none slower than a minute)\n")
    header = ("data", "norm", "inner", "steps/it", "seconds", "gap after")
    print(" | ".join(f"{word:>20}" for word in header))
    for name in names:
        X, y = as_in_the_paper(name)
        lam = LAMBDAS.get(name, 0.3)
        for norm in ("l1", "l2", "linf"):
            problem = build_problem(X, y, **(published.MODEL | {"norm": norm}))
            for solver in INNER_SOLVERS[norm]:
                monitor = Monitor(callback=lambda it: it.elapsed > 60.0)
                started = time.process_time()
                solution = lp_admm(
                    problem, lam=lam, tol=1e-15, monitor=monitor, max_iter=count, inner=solver
                )
                seconds = time.process_time() - started
                steps = np.mean(solution.info["inner_steps"])
                gap = monitor.trace.iterates[-1].gap
                cells = (name, norm, solver, f"{steps:.1f}", f"{seconds:.2f}", f"{gap:.1e}")
                print(" | ".join(f"{cell:>20}" for cell in cells), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    default = [synthetic(1000, 50), synthetic(100, 400), "a9a", "mushrooms"]
    parser.add_argument("names", nargs="*", default=default, help="data sets")
    parser.add_argument("--count", type=int, default=100, help="iterations of LP-ADMM")
    options = parser.parse_args()
    measure(options.names, options.count)


if __name__ == "__main__":
    main()
