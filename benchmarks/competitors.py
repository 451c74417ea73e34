"""Who solves: each competitor fits (on the clock) and is then judged (off it)."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import drlogit
from drlogit.paper import dispatch

from .cases import Case
from .ipopt import Answer, ipopt
from .judge import plain_objective_and_gap, robust_objective_and_gap


@dataclass(frozen=True)
class Outcome:
    """What a fit achieved.  ``problem`` says on which problem objective and gap are meant."""

    problem: str
    status: str
    gap: float | None = None
    objective: float | None = None
    iterations: int | None = None
    setup_seconds: float | None = None
    solve_seconds: float | None = None
    info: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Competitor:
    """``fit(X, y, case)`` is timed; ``judge(X, y, fitted, case)`` is not."""

    fit: Callable[[Any, Any, Case], Any]
    judge: Callable[[Any, Any, Any, Case], Outcome]


def competitor(name: str) -> Competitor:
    """By name: ``scikit-learn``, ``ipopt``, ``drlogit`` (auto), or another of its solvers."""
    if name == "scikit-learn":
        return Competitor(_fit_plain, _judge_plain)
    if name == "ipopt":
        return Competitor(_fit_ipopt, _judge_ipopt)
    solver = "auto" if name == "drlogit" else name

    def fit(X: Any, y: Any, case: Case) -> drlogit.Result:
        return dispatch.solve(X, y, tol=case.tol, solver=solver, **_ball(case))

    return Competitor(fit, _judge_robust)


def _judge_robust(X: Any, y: Any, result: drlogit.Result, case: Case) -> Outcome:
    """The library's certificate, which ``solve`` computes for whatever a solver returns."""
    return Outcome(
        problem="robust",
        status=result.status.name,
        gap=result.gap,
        objective=result.objective,
        iterations=result.n_iter,
        setup_seconds=result.setup_time,
        solve_seconds=result.solve_time,
        info={
            name: value
            for name, value in result.info.items()
            if isinstance(value, int | float | str) and name != "solver"
        },
    )


def _ball(case: Case) -> dict[str, Any]:
    return {n: getattr(case, n) for n in ("epsilon", "kappa", "norm", "fit_intercept")}


def _fit_ipopt(X: Any, y: Any, case: Case) -> Answer:
    return ipopt(X, y, tol=case.tol, **_ball(case))


def _judge_ipopt(X: Any, y: Any, found: Answer, case: Case) -> Outcome:
    objective, gap = robust_objective_and_gap(X, y, found.coef, found.intercept, **_ball(case))
    return Outcome("robust", found.status, gap, objective, found.n_iter)


def _fit_plain(X: Any, y: Any, case: Case) -> Any:
    """The plain fit of the comparison: settings of scikit-learn, but for tol and max_iter."""
    from sklearn.linear_model import LogisticRegression

    plain = LogisticRegression(tol=1e-6, max_iter=10_000, fit_intercept=case.fit_intercept)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its gap says how it went
        return plain.fit(X, y)


def _judge_plain(X: Any, y: Any, plain: Any, case: Case) -> Outcome:
    objective, gap = plain_objective_and_gap(X, y, plain.coef_, float(plain.intercept_[0]))
    iterations = int(plain.n_iter_.max())
    status = "CONVERGED" if iterations < plain.max_iter else "MAX_ITER"
    return Outcome("plain", status, gap, objective, iterations)
