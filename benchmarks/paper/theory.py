"""Proposition 4.1 and Theorem 4.2 along real iterates of LP-ADMM with a constant penalty.

With ``B_f`` the Bregman divergence of f, and A for Z as in the paper:

(a)  ``‖Ax^{k+1} - y^k‖² ≥ ½‖y^{k+1} - y^k‖² - (L_f/ρ)²‖y^k - y^{k-1}‖²``
(b)  ``F(x^{k+1}, y^{k+1}) - F(x, y)`` is at most a difference of terms of k and of k + 1
(c)  ``m_k = ‖w^k - w*‖²/(2ρ) + (ρ/2)‖y^k - y*‖² - B_f(y*, y^k)`` does not increase
4.2  ``F(x̄^K, ȳ^K) - F* ≤ C/K``

The proof of (c) in the paper is about ``m'_k = m_k + L_f²/(2ρ)‖y^k - y^{k-1}‖²``; that m_k itself
does not increase does not follow from it.  Both are measured.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice, pairwise
from typing import Any

import numpy as np

from drlogit import paper
from drlogit.datasets import make_synthetic
from drlogit.paper import PaperIterate
from drlogit.paper.subproblem import NORMS, Subproblem, signed_rows

from .datasets import load
from .rows import Row, markdown, short_power, task

#: Multiples of the proven limit ``(√3+1) L_f`` that ρ is set to.
FACTORS = (1.001, 1.5, 10.0)

#: The problems: λ, and N and n of made data.
PROBLEMS = {"synthetic (60, 5)": 0.5, "synthetic (1000, 50)": 0.1, "a1a": 1.0}


@dataclass(frozen=True, eq=False)
class Instance(Subproblem):
    """A subproblem (B) with what the proofs need of f."""

    @classmethod
    def named(cls, name: str) -> Instance:
        """The problem of that name, with κ = 1."""
        if name == "a1a":
            Z = signed_rows(*load("a1a"))
        elif name == "synthetic (1000, 50)":
            Z = signed_rows(*make_synthetic(1000, 50, random_state=0)[:2])
        else:
            Z = 2.0 * signed_rows(*make_synthetic(60, 5, random_state=3)[:2])
        return cls(Z, PROBLEMS[name], 1.0, NORMS["l1"])

    @property
    def L(self) -> float:  # noqa: N802
        """L_f, the Lipschitz constant of ∇f."""
        return 0.25 / self.N

    def bregman(self, x: Any, y: Any) -> float:
        """B_f(x, y)."""
        f_x, f_y = (float(np.mean(np.logaddexp(0.0, -v) + 0.5 * (v - self.b))) for v in (x, y))
        return f_x - f_y - float(self.gradient_f(y) @ (x - y))

    def iterates(self, rho: float, count: int) -> list[PaperIterate]:
        """The first iterates with a constant penalty, from zero, with exact x-steps."""
        return list(islice(paper.lp_admm(self.Z, self.lam, self.kappa, rho=rho, gamma=1.0), count))


@lru_cache(maxsize=1)  # the penalties of one problem follow each other
def _optimum(name: str, after: int) -> tuple[Instance, PaperIterate]:
    """A problem, and the iterate so many iterations with ρ = 2/N."""
    problem = Instance.named(name)
    steps = paper.lp_admm(problem.Z, problem.lam, problem.kappa, rho=2.0 / problem.N, gamma=1.0)
    return problem, next(islice(steps, after - 1, None))


def plan(quick: bool) -> list[Row]:
    """A run for each problem and penalty."""
    return [
        task("theory", name, f"ρ = {factor:g} × limit")
        for name in list(PROBLEMS)[: 1 if quick else 3]
        for factor in FACTORS
    ]


def measure(run: Row, count: int = 300, optimum_after: int = 4000) -> dict[str, Any]:
    """The worst violation of each inequality in ``notes``, and the rate as a curve.

    Violations are positive where an inequality fails; rounding leaves about 1e-16.  The optimum is
    the iterate ``optimum_after`` iterations with ρ = 2/N; ``optimum`` says how good it is.
    """
    problem, optimum = _optimum(run["data"], optimum_after)
    factor = float(run["method"].split()[2])
    L, rho = problem.L, factor * (math.sqrt(3.0) + 1.0) * problem.L
    c = 0.25 * (rho - 2.0 * L)
    iterates = problem.iterates(rho, count)
    zero = np.zeros(problem.N)
    ys = [zero, *(each.y for each in iterates)]  # y⁰, y¹, …
    ws = [zero, *(each.w for each in iterates)]
    # (b) is for all feasible points: the optimum, and some at random.
    random, size = np.random.default_rng(0), optimum.x.size
    points = [problem.Z @ optimum.x] + [
        problem.Z @ random.uniform(-problem.lam, problem.lam, size) for _ in range(3)
    ]
    worst = {"a": -math.inf, "b": -math.inf}
    for k in range(1, count):
        moved, before = _square(ys[k + 1] - ys[k]), _square(ys[k] - ys[k - 1])
        left = _square(problem.Z @ iterates[k].x - ys[k])
        worst["a"] = max(worst["a"], 0.5 * moved - (L / rho) ** 2 * before - left)
        w_part = (_square(ws[k]) - _square(ws[k + 1])) / (2.0 * rho)
        for y in points:
            bound = w_part + 0.5 * rho * (_square(ys[k] - y) - _square(ys[k + 1] - y))
            bound += c * (before - moved)
            bound += problem.bregman(y, ys[k + 1]) - problem.bregman(y, ys[k])
            worst["b"] = max(worst["b"], problem.F(ys[k + 1]) - problem.F(y) - bound)
    m = np.array(
        [
            _square(w - optimum.w) / (2.0 * rho)
            + 0.5 * rho * _square(y - optimum.y)
            - problem.bregman(optimum.y, y)
            for y, w in zip(ys, ws, strict=True)
        ]
    )
    primed = m[1:] + L**2 / (2.0 * rho) * np.array([_square(y - x) for x, y in pairwise(ys)])
    best = problem.F(optimum.y)
    constant = 0.5 * rho * _square(optimum.y) + c * _square(ys[1])  # from zero
    means = paper.averages(iterates, problem.Z, problem.lam, problem.kappa)
    curve = [[mean.k, mean.F - best, constant / mean.k] for mean in means]
    notes = {
        **worst,
        "m": float(np.diff(m).max()),
        "m'": float(np.diff(primed).max()),
        "4.2 (b)": max(above - bound for _, above, bound in curve),
        "kkt": kkt_violation(problem, iterates[-1]),
        "optimum": kkt_violation(problem, optimum),
        "least m": float(min(m.min(), primed.min())),
    }
    return {"notes": notes, "n_iter": count, "curve": curve}


def kkt_violation(problem: Instance, iterate: PaperIterate) -> float:
    """The largest violation of (2.3): ``Aᵀw ∈ ∂g(x)``, ``-w ∈ ∇f(y) + ∂P(y)``, ``Ax = y``.

    The first is measured by the gap of the normal cone, the second per unit of weight 1/N.
    """
    normal = problem.Z.T @ iterate.w
    cone = problem.lam * float(np.abs(normal).sum()) - float(normal @ iterate.x)
    share = problem.N * (-iterate.w - problem.gradient_f(iterate.y))  # in ½ sign(y - b)
    off = np.abs(iterate.y - problem.b) > 1e-9  # an interval on the kink
    inside = np.maximum(np.abs(share) - 0.5, 0.0)
    dual = np.where(off, np.abs(share - 0.5 * np.sign(iterate.y - problem.b)), inside)
    return max(cone, float(dual.max()), iterate.residual)


def _square(v: Any) -> float:
    return float(v @ v)


HOW_TO_READ = """Solid: F(x̄, ȳ) − F* at the means of K iterates. Dashed: the bound C/K of
Theorem 4.2. A mean is not feasible (Zx̄ ≠ ȳ), so its value can be below the optimum. There
(dotted) the bound holds and says nothing.
"""


def table(rows: list[Row]) -> str:
    """What was measured, one line for each problem and penalty."""
    names = ("a", "b", "m", "m'", "4.2 (b)")
    head = ["problem", "penalty", *(f"({n})" if len(n) == 1 else n for n in names), "KKT"]
    lines = [
        [
            row["data"],
            row["method"],
            *("holds" if row["notes"][n] <= 1e-12 else short_power(row["notes"][n]) for n in names),
            short_power(row["notes"]["kkt"]),
        ]
        for row in rows
    ]
    caption = "Theory: largest violation of each inequality, and of the KKT conditions at the end"
    return markdown(caption, head, lines)
