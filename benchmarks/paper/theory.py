"""Proposition 4.1 and Theorem 4.2 along real iterates of LP-ADMM with a constant penalty.

    python -m benchmarks.paper.theory results     # prints the table, writes results/theory.svg

In the paper's letters (x is β, y is μ, A is Z) and with ``B_f`` the Bregman divergence of f:

(a)  ``‖Ax^{k+1} - y^k‖² ≥ ½‖y^{k+1} - y^k‖² - (L_f/ρ)²‖y^k - y^{k-1}‖²``
(b)  ``F(x^{k+1}, y^{k+1}) - F(x, y)`` is at most a difference of terms of k and of k + 1
(c)  ``m_k = ‖w^k - w*‖²/(2ρ) + (ρ/2)‖y^k - y*‖² - B_f(y*, y^k)`` does not increase
4.2  ``F(x̄^K, ȳ^K) - F* ≤ C/K``

The proof of (c) in the paper is about ``m'_k = m_k + L_f²/(2ρ)‖y^k - y^{k-1}‖²``; that m_k itself
does not increase does not follow from it.  Both are measured.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit

from drlogit import paper
from drlogit.datasets import make_synthetic
from drlogit.paper import PaperIterate

from ..store import Row
from .datasets import load
from .rows import markdown, short_power

#: Multiples of the proven limit ``(√3+1) L_f`` that ρ is set to.
FACTORS = (1.001, 1.5, 10.0)


@dataclass(frozen=True)
class Instance:
    """A subproblem (B) in the paper's letters, with equal weights."""

    name: str
    X: Any
    labels: Any
    lam: float
    kappa: float = 1.0

    @property
    def N(self) -> int:  # noqa: N802
        return len(self.labels)

    @property
    def L(self) -> float:  # noqa: N802
        """L_f, the Lipschitz constant of ∇f."""
        return 0.25 / self.N

    def A(self, x: Any) -> Any:  # noqa: N802
        return self.labels * (self.X @ x)

    def f(self, y: Any) -> float:
        return float(np.mean(np.logaddexp(0.0, -y) + 0.5 * (y - self.lam * self.kappa)))

    def gradient(self, y: Any) -> Any:
        return (0.5 - expit(-y)) / self.N

    def F(self, y: Any) -> float:  # noqa: N802
        return self.f(y) + 0.5 * float(np.mean(np.abs(y - self.lam * self.kappa)))

    def bregman(self, x: Any, y: Any) -> float:
        return self.f(x) - self.f(y) - float(self.gradient(y) @ (x - y))

    def iterates(self, rho: float, count: int) -> list[PaperIterate]:
        """The first iterates with a constant penalty, from zero, with exact β-steps."""
        steps = paper.lp_admm_steps(
            self.X, self.labels, lam=self.lam, kappa=self.kappa, rho=rho, gamma=1.0,
            inner="coordinate-newton", inner_tol=0.0,
        )  # fmt: skip
        return list(islice(steps, count))


def instances(quick: bool = False) -> list[Instance]:
    """Three problems: two of made data, of which one has many samples on its kink, and a1a."""
    X, y = make_synthetic(60, 5, random_state=3)
    small = Instance("synthetic (60, 5)", 2.0 * X, y, 0.5)
    if quick:
        return [small]
    X, y = make_synthetic(1000, 50, random_state=0)
    return [
        small,
        Instance("synthetic (1000, 50)", X, y, 0.1),
        Instance("a1a", *load("a1a"), 1.0),
    ]


def run(
    problems: Sequence[Instance] | None = None,
    *,
    factors: Sequence[float] = FACTORS,
    count: int = 300,
    optimum_after: int = 4000,
) -> list[Row]:
    """One row for each problem and penalty: the worst violation of each inequality, and the rate.

    Violations are positive where an inequality fails; rounding leaves about 1e-16.  ``at``,
    ``above`` and ``bound`` are K, ``F(x̄^K, ȳ^K) - F*`` and its bound; ``kkt`` is the largest
    violation of the KKT conditions by the last iterate.  The optimum is the iterate
    ``optimum_after`` iterations with ρ = 2/N; ``optimum_kkt`` says how good it is.
    """
    rows = []
    for problem in instances() if problems is None else problems:
        optimum = problem.iterates(2.0 / problem.N, optimum_after)[-1]
        rows += [_row(problem, optimum, factor, count) for factor in factors]
    return rows


def _row(problem: Instance, optimum: PaperIterate, factor: float, count: int) -> Row:
    rho = factor * (math.sqrt(3.0) + 1.0) * problem.L
    L, c = problem.L, 0.25 * (rho - 2.0 * problem.L)
    best_y, best_w = optimum.mu, optimum.w
    iterates = problem.iterates(rho, count)
    zero = np.zeros(problem.N)
    ys = [zero, *(each.mu for each in iterates)]  # y⁰, y¹, …
    ws = [zero, *(each.w for each in iterates)]
    Axs = [None, *(problem.A(each.beta) for each in iterates)]
    # (b) is for all feasible points: the optimum, and some at random.
    random = np.random.default_rng(0)
    size = optimum.beta.size
    points = [problem.A(optimum.beta)] + [
        problem.A(random.uniform(-problem.lam, problem.lam, size)) for _ in range(3)
    ]

    worst_a = worst_b = -math.inf
    for k in range(1, count):
        moved, before = _square(ys[k + 1] - ys[k]), _square(ys[k] - ys[k - 1])
        right = 0.5 * moved - (L / rho) ** 2 * before
        worst_a = max(worst_a, right - _square(Axs[k + 1] - ys[k]))
        w_part = (_square(ws[k]) - _square(ws[k + 1])) / (2.0 * rho)
        for y in points:
            bound = w_part + 0.5 * rho * (_square(ys[k] - y) - _square(ys[k + 1] - y))
            bound += c * (before - moved)
            bound += problem.bregman(y, ys[k + 1]) - problem.bregman(y, ys[k])
            worst_b = max(worst_b, problem.F(ys[k + 1]) - problem.F(y) - bound)

    m = np.array(
        [
            _square(w - best_w) / (2.0 * rho)
            + 0.5 * rho * _square(y - best_y)
            - problem.bregman(best_y, y)
            for y, w in zip(ys, ws, strict=True)
        ]
    )
    moves = np.array([_square(y - x) for x, y in pairwise(ys)])
    primed = m[1:] + L**2 / (2.0 * rho) * moves

    best = problem.F(best_y)
    constant = 0.5 * rho * _square(best_y - ys[0]) + c * _square(ys[0] - ys[1])
    constant += _square(ws[0]) / (2.0 * rho)
    above = [each.F - best for each in paper.averages(iterates)]
    bounds = [constant / K for K in range(1, count + 1)]
    return {
        "problem": problem.name,
        "factor": factor,
        "rho": rho,
        "iterations": count,
        "worst_a": worst_a,
        "worst_b": worst_b,
        "worst_m": float(np.diff(m).max()),
        "worst_m_prime": float(np.diff(primed).max()),
        "least_m": float(min(m.min(), primed.min())),
        "worst_rate": max(value - bound for value, bound in zip(above, bounds, strict=True)),
        "kkt": kkt_violation(problem, iterates[-1]),
        "optimum_kkt": kkt_violation(problem, optimum),
        "at": list(range(1, count + 1)),
        "above": above,
        "bound": bounds,
    }


def kkt_violation(problem: Instance, iterate: PaperIterate) -> float:
    """The largest violation of (2.3): ``Aᵀw ∈ ∂g(x)``, ``-w ∈ ∇f(y) + ∂P(y)``, ``Ax = y``.

    The first is measured by the gap of the normal cone, the second per unit of weight 1/N.
    """
    x, y, w = iterate.beta, iterate.mu, iterate.w
    normal = problem.X.T @ (problem.labels * w)
    cone = problem.lam * float(np.abs(normal).sum()) - float(normal @ x)
    share = problem.N * (-w - problem.gradient(y))  # in ½ sign(y - κλ), an interval on the kink
    kink = problem.lam * problem.kappa
    off = np.abs(y - kink) > 1e-9
    inside = np.maximum(np.abs(share) - 0.5, 0.0)
    dual = np.where(off, np.abs(share - 0.5 * np.sign(y - kink)), inside)
    return max(cone, float(dual.max()), float(np.linalg.norm(problem.A(x) - y)))


def _square(v: Any) -> float:
    return float(v @ v)


def table(rows: list[Row]) -> str:
    """What was measured, one line for each problem and penalty."""
    names = ("worst_a", "worst_b", "worst_m", "worst_m_prime", "worst_rate")
    head = [
        "problem",
        "ρ / limit",
        "iterations",
        "(a)",
        "(b)",
        "(c), m",
        "(c), m′",
        "4.2 (b)",
        "KKT",
    ]
    lines = [
        [
            row["problem"], f"{row['factor']:g}", str(row["iterations"]),
            *("holds" if row[name] <= 1e-12 else short_power(row[name]) for name in names),
            short_power(row["kkt"]),
        ]
        for row in rows
    ]  # fmt: skip
    caption = "Theory: largest violation of each inequality, and of the KKT conditions at the end"
    return markdown(caption, head, lines)


def figure(rows: list[Row]) -> Any:
    """``F(x̄^K, ȳ^K) - F*`` and its bound C/K over K, one panel for each problem."""
    from matplotlib.figure import Figure

    names = list(dict.fromkeys(row["problem"] for row in rows))
    drawn = Figure(figsize=(4.0 * len(names), 3.4), layout="constrained")
    panels = drawn.subplots(1, len(names), squeeze=False)[0]
    for panel, name in zip(panels, names, strict=True):
        for number, row in enumerate(row for row in rows if row["problem"] == name):
            color, label = f"C{number}", f"ρ = {row['factor']:g} × limit"
            panel.loglog(row["at"], np.abs(row["above"]), color=color, label=label)
            panel.loglog(row["at"], row["bound"], color=color, linestyle="--")
        panel.set_title(name)
        panel.set_xlabel("K")
    panels[0].set_ylabel("|F(x̄, ȳ) - F*|; dashed: the bound")
    panels[0].legend(frameon=False)
    return drawn


if __name__ == "__main__":
    found = run()
    print(table(found))
    figure(found).savefig(Path(sys.argv[1] if len(sys.argv) > 1 else ".") / "theory.svg")
