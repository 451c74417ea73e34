"""The paper's framework, measured: ``python benchmarks/paper_methods.py TABLE``.

    real       LP-ADMM with both λ-searches on the paper's data sets, beside the interior point
    synthetic  the sizes of Table 1: penalties constant, geometric and balanced; Clarabel, IPOPT
    figure3    the five first-order methods at λ = 0.1, F - F* against iterations
    inner      the inner solvers of (C), inside LP-ADMM at fixed λ

ε = 0.1, κ = 1, ℓ1 transport, no intercept throughout, as in the paper.  Seconds are those of the
processor, so that other work on the machine counts little; no time is without its gap.
"""

from __future__ import annotations

import argparse
import math
import time
from itertools import islice

import numpy as np
import scipy.sparse as sp

import drlogit
from drlogit import datasets
from drlogit.problem import Problem, build_problem
from drlogit.result import Monitor
from drlogit.solvers.admm import LIPSCHITZ, first_point
from drlogit.solvers.ball_qp import INNER_SOLVERS
from drlogit.solvers.beta_step import BetaStep
from drlogit.solvers.lp_admm import lp_admm, lp_admm_steps
from drlogit.solvers.pdhg import pdhg_steps
from drlogit.solvers.standard_admm import standard_admm_steps
from drlogit.solvers.subgradient import subgradient_steps

MODEL = {"epsilon": 0.1, "kappa": 1.0, "norm": "l1", "fit_intercept": False}

#: Seconds of the paper's own code under Octave on one core, for an uncertified answer.
OCTAVE = {"a9a": 15.7, "w8a": 39.6, "mushrooms": 28.0, "mnist-0v3": 293.0}

REAL = [f"a{k}a" for k in range(1, 10)] + [f"w{k}a" for k in range(1, 9)]
REAL += ["mushrooms", "phishing", "mnist-0v3"]

TABLE_1 = [
    (10, 3), (100, 3), (100, 10), (500, 10), (500, 50), (1000, 50), (1000, 100), (3000, 50),
    (3000, 100), (5000, 100), (10000, 10), (10000, 100),
]  # fmt: skip


def timed(function, *arguments, **options):
    """Result and seconds of the processor."""
    started = time.process_time()
    result = function(*arguments, **options)
    return result, time.process_time() - started


def warm_up() -> None:
    """Compile what is compiled, import what is imported."""
    X, y = datasets.make_synthetic(50, 5, random_state=0)[:2]
    sparse = np.where(np.abs(X) > 1.5, X, 0.0)
    for data in (X, sp.csr_matrix(sparse)):
        drlogit.solve(data, y, solver="lp-admm", tol=1e-4, **MODEL)
    drlogit.solve(X, y, solver="interior-point", tol=1e-4, **MODEL)


def real(names: list[str], tol: float) -> None:
    """Both λ-searches to a certified gap, and the λ of the interior point."""
    print(f"Certified gap wanted: {tol:g}.  Octave: the paper's code, uncertified, one core.\n")
    header = "data N n search seconds gap objective lambda subproblems iterations octave"
    print(" | ".join(f"{word:>11}" for word in header.split()))
    for name in names:
        X, y = datasets.load(name, return_X_y=True)
        rows = {
            search: timed(
                drlogit.solve, X, y, solver="lp-admm", lambda_search=search, tol=tol, **MODEL
            )
            for search in ("derivative", "golden")
        }
        reference = timed(drlogit.solve, X, y, solver="interior-point", tol=1e-7, **MODEL)
        rows["int. point"] = reference
        for search, (result, seconds) in rows.items():
            octave = OCTAVE.get(name)
            cells = [
                name, str(X.shape[0]), str(X.shape[1]), search, f"{seconds:.2f}",
                f"{result.gap:.1e}", f"{result.objective:.7f}", f"{result.lam:.4f}",
                str(result.info.get("n_subproblems", "")), str(result.n_iter),
                "" if octave is None else f"{octave:g}",
            ]  # fmt: skip
            print(" | ".join(f"{cell:>11}" for cell in cells), flush=True)


def synthetic(sizes: list[tuple[int, int]], tol: float, slowest: int) -> None:
    """Table 1: what the penalty rule does, and what general solvers take."""
    ways = {
        "constant": {"solver": "lp-admm", "gamma": 1.0},
        "balanced": {"solver": "lp-admm"},
        "balanced, golden": {"solver": "lp-admm", "lambda_search": "golden"},
        "paper, adaptive": {
            "solver": "lp-admm", "lambda_search": "golden", "stop": "residual",
            "rho": 0.001, "gamma": 1.05,
        },
        "paper, constant": {
            "solver": "lp-admm", "lambda_search": "golden", "stop": "residual", "gamma": 1.0,
        },
        "Clarabel": {"solver": "conic"},
        "IPOPT": {"solver": "ipopt"},
    }  # fmt: skip
    print(f"Gap wanted: {tol:g}.  seconds / gap reached\n")
    print(" | ".join(f"{word:>18}" for word in ("(N, n)", *ways)))
    for n_samples, n_features in sizes:
        X, y = datasets.make_synthetic(n_samples, n_features, random_state=0)[:2]
        cells = [f"({n_samples},{n_features})"]
        for name, options in ways.items():
            if name in ("Clarabel", "IPOPT") and n_samples * n_features > slowest:
                cells.append("-")
                continue
            result, seconds = timed(drlogit.solve, X, y, tol=tol, **MODEL, **options)
            cells.append(f"{seconds:.2f} / {result.gap:.0e}")
        print(" | ".join(f"{cell:>18}" for cell in cells), flush=True)


def methods(problem: Problem, lam: float) -> dict:
    """The methods of Figure 3, as iterators of steps."""
    inner = BetaStep.build(problem)

    def admm(steps, rho=1.0, **options):
        start = first_point(problem, None)._replace(rho=rho)
        return steps(problem, lam, start, inner, **options)

    paper = 0.001 * problem.rows.n_samples  # ρ₀ = 0.001, in our units
    return {
        "LP-ADMM, balanced": admm(lp_admm_steps),
        "LP-ADMM, constant": admm(lp_admm_steps, gamma=1.0),
        "LP-ADMM, 0.001·1.05ᵏ": admm(lp_admm_steps, paper, gamma=1.05),
        "linearised ADMM": admm(lp_admm_steps, gamma=1.0, eta=1.01 * LIPSCHITZ),
        "standard ADMM": admm(standard_admm_steps),
        "PDHG": pdhg_steps(problem, lam),
        "subgradient": subgradient_steps(problem, lam),
    }


def figure3(names: list[str], lam: float) -> None:
    """``F(β^k) - F*`` at fixed λ, and what an iteration costs."""
    counts = (1, 5, 10, 20, 50, 100, 200, 500, 1000, 2000)
    for name in names:
        if "," in name:
            n_samples, n_features = map(int, name.split(","))
            X, y = datasets.make_synthetic(n_samples, n_features, random_state=0)[:2]
        else:
            X, y = datasets.load(name, return_X_y=True)
        problem = build_problem(X, y, **MODEL)
        best = drlogit.solve_subproblem(X, y, lam=lam, tol=1e-12, max_iter=50_000, **MODEL)
        print(f"\n{name}  λ = {lam:g}  F* = {best.objective:.10f} ± {best.gap:.0e}")
        print(f"{'iterations':>22}" + "".join(f"{k:>9}" for k in counts) + f"{'ms/it':>8}")
        for method, steps in methods(problem, lam).items():
            started, least, left = time.process_time(), math.inf, []
            aside = 0.0
            for k, step in enumerate(islice(steps, counts[-1]), start=1):
                if k in counts:
                    now = time.process_time()
                    value = problem.objective(step.beta, lam)
                    # As a curve: the last iterate, except that the subgradient keeps its best.
                    least = min(least, value) if method == "subgradient" else value
                    left.append(least - best.dual_objective)
                    aside += time.process_time() - now
            cost = (time.process_time() - started - aside) / counts[-1]
            cells = "".join(f"{max(value, 1e-16):>9.1e}" for value in left)
            print(f"{method:>22}" + cells + f"{1e3 * cost:>8.2f}", flush=True)


def inner(names: list[str], count: int) -> None:
    """The inner solvers inside LP-ADMM: iterations of (C) and seconds spent on them."""
    lams = {"a9a": 1.394, "w8a": 1.588, "mushrooms": 2.192, "mnist-0v3": 2.24}
    print(f"{count} iterations of LP-ADMM with each inner solver (none slower than a minute)\n")
    header = ("data", "norm", "inner", "steps/it", "seconds", "gap after")
    print(" | ".join(f"{word:>20}" for word in header))
    for name in names:
        if "," in name:
            n_samples, n_features = map(int, name.split(","))
            X, y = datasets.make_synthetic(n_samples, n_features, random_state=0)[:2]
        else:
            X, y = datasets.load(name, return_X_y=True)
        lam = lams.get(name, 0.3)
        for norm in ("l1", "l2", "linf"):
            problem = build_problem(X, y, **(MODEL | {"norm": norm}))
            for solver in INNER_SOLVERS[norm]:
                monitor = Monitor(callback=lambda it: it.elapsed > 60.0)
                solution, seconds = timed(
                    lp_admm, problem, lam=lam, tol=1e-15, monitor=monitor, max_iter=count,
                    inner=solver,
                )  # fmt: skip
                steps = np.mean(solution.info["inner_steps"])
                gap = monitor.trace.iterates[-1].gap
                cells = (name, norm, solver, f"{steps:.1f}", f"{seconds:.2f}", f"{gap:.1e}")
                print(" | ".join(f"{cell:>20}" for cell in cells), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table", choices=("real", "synthetic", "figure3", "inner"))
    parser.add_argument("names", nargs="*", help="data sets, or sizes such as 1000,50")
    parser.add_argument("--tol", type=float, default=1e-5)
    parser.add_argument("--lam", type=float, default=0.1, help="of figure3")
    parser.add_argument("--count", type=int, default=100, help="iterations of inner")
    parser.add_argument("--slowest", type=int, default=300_000, help="N·n for general solvers")
    options = parser.parse_args()
    warm_up()
    if options.table == "real":
        real(options.names or REAL, options.tol)
    elif options.table == "synthetic":
        sizes = [tuple(map(int, name.split(","))) for name in options.names]
        synthetic(sizes or TABLE_1, options.tol, options.slowest)
    elif options.table == "figure3":
        default = ["100,10", "500,10", "1000,50", "3000,50", "5000,100", "10000,100", "a1a"]
        figure3(options.names or default, options.lam)
    else:
        inner(options.names or ["1000,50", "100,400", "a9a", "mushrooms"], options.count)


if __name__ == "__main__":
    main()
