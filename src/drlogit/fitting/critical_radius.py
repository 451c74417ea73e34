"""Choosing the radius ε: where every model is constant, and a radius with a meaning.

``epsilon_max`` is where a regularisation path starts.  At β = 0 the best model is a null model,
whose s is the same for all samples of a class; it is optimal for (P) exactly when flip shares
``a`` exist that make this s dual feasible.  So with

    ψ(s) = min over a ∈ [0,1]^N of  ‖Σ w_i (s_i - a_i) z_i‖ + κ Σ w_i a_i,   free columns' equations
         = max over ‖β‖_* ≤ 1 and b  of  Σ w_i [ s_i u_i - (u_i - κ)_+ ]

β = 0 is optimal at ε if and only if ``ψ(s(ε)) ≤ ε``, s(ε) being the null model at ε.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..problem.losses import flip_probability, log_loss_terms
from ..problem.norms import Norm
from ..problem.problem import Problem, build_problem
from ..problem.result import Monitor, Status
from ..rows.arrays import FloatArray
from ..rows.blocks import Block
from ..rows.interface import State
from ..rows.reductions import Sum
from ..solvers.interior_point.barrier import solve_with_barrier
from ..solvers.interior_point.method import interior_point
from ..solvers.interior_point.scaled import Scaled
from .suggested_radius import suggest_radius

__all__ = ["epsilon_max", "suggest_radius"]

#: Relative accuracy of the budget ψ, and of a bisection over ε.
_ACCURACY = 1e-9
_BISECTIONS = 40


def epsilon_max(
    X: Any,
    y: ArrayLike,
    *,
    kappa: float,
    norm: str | Norm = "l1",
    fit_intercept: bool = True,
    feature_costs: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """The radius from which on the robust model is constant: β = 0 (on penalised features).

    Parameters are those of :func:`drlogit.solve`; ``epsilon / kappa`` is the largest share of
    labels the adversary may flip.  Never above ``kappa / 2``: who may flip half of the labels
    leaves nothing to learn.

    Returns
    -------
    float
        ε_max, to about nine digits; with immovable features and finite ``kappa`` to about four.
    """
    problem = build_problem(
        X, y, epsilon=1.0, kappa=kappa, norm=norm, fit_intercept=fit_intercept,
        feature_costs=feature_costs, sample_weight=sample_weight,
    )  # fmt: skip
    return epsilon_max_of(problem)


def epsilon_max_of(problem: Problem) -> float:
    """:func:`epsilon_max` of a problem; its own ε plays no role."""
    problem = problem.with_radius(1.0)
    immovable = bool(problem.free[: problem.costs.size - problem.fit_intercept].any())
    if math.isinf(problem.kappa):
        return _without_flips(problem)
    if immovable:
        return _by_bisection(problem)
    balanced = _budget(problem, (0.5, 0.5))
    if not problem.fit_intercept:
        return balanced
    # With unequal classes the null model has an intercept until ε/κ makes up the difference.
    _, (positive,) = problem.rows.run(_weight_of_positives)
    levelled = 0.5 * problem.kappa * abs(2.0 * float(positive) - 1.0)
    if balanced > levelled * (1.0 + 1e-6):
        return balanced
    # Below, β = 0 can be optimal on an interval that ends at `levelled`: find where it starts.
    low, high = 0.0, levelled
    for _ in range(_BISECTIONS):
        if high - low <= 1e-7 * high:
            break
        middle = 0.5 * (low + high)
        doubt = 0.5 - (levelled - middle) / problem.kappa  # s of the larger class
        slopes = (1.0 - doubt, doubt) if positive > 0.5 else (doubt, 1.0 - doubt)
        if _budget(problem, slopes) <= middle * (1.0 + 1e-7):
            high = middle
        else:
            low = middle
    return high


def _without_flips(problem: Problem) -> float:
    """κ = ∞: ``‖Σ w_i s_i z_i‖`` at the null model, a plain fit of the free columns."""
    null = _null_coefficients(problem)
    _, (gradient,) = problem.rows.run(_doubt_gradient, None, null)
    return problem.transport_norm(gradient)


def _null_coefficients(problem: Problem) -> FloatArray:
    """Coefficients of the free columns alone, by Newton on the restricted problem."""
    free = np.flatnonzero(problem.free)
    v = np.zeros(problem.costs.size)
    for _ in range(100 if free.size else 0):
        _, (gradient, hessian, curvature) = problem.rows.run(_null_newton, None, v)
        step = np.linalg.lstsq(hessian[np.ix_(free, free)], gradient[free], rcond=1e-12)[0]
        largest = float(np.abs(step * problem.rows.column_scale[free]).max())
        v[free] += step / max(1.0, largest)
        if largest <= 1e-13 or curvature <= 1e-14:
            break
    return v


def _by_bisection(problem: Problem) -> float:
    """Immovable features, finite κ: compare fits with and without the penalised features."""
    low, high = 0.0, 0.5 * problem.kappa
    for _ in range(18):
        middle = 0.5 * (low + high)
        trial = problem.with_radius(middle)
        solution = interior_point(trial, tol=1e-11, monitor=Monitor())
        if trial.dual_norm(solution.coefficients) > 1e-5 / _row_size(trial):
            low = middle
        else:
            high = middle
    return high


def _row_size(problem: Problem) -> float:
    kept = problem.penalised
    size = float(np.linalg.norm((problem.rows.column_scale * problem.costs)[kept]))
    return size if size > 0.0 else 1.0


def _budget(problem: Problem, slopes: tuple[float, float]) -> float:
    """ψ for slopes s of the classes -1 and +1."""
    judge = _BudgetJudge(problem, slopes)
    with np.errstate(all="ignore"):
        solve_with_barrier(Scaled.of(problem), judge, max_iter=100, lam=1.0, slopes=slopes)
    return judge.upper


class _BudgetJudge:
    """Stops when the bounds on ψ from β below and from ``a`` above meet."""

    def __init__(self, problem: Problem, slopes: tuple[float, float]) -> None:
        self.problem = problem
        self.slopes = slopes
        self.status = Status.MAX_ITER
        self.tol = 0.0  # no candidates besides the iterates
        self.lower = 0.0
        self.upper = math.inf

    def report(
        self,
        coefficients: FloatArray,
        primal: float,
        flip_share: State,
        estimate: float,
        lam: float,
    ) -> bool:
        problem = self.problem
        self.lower = max(self.lower, problem.epsilon * lam - primal)
        _, (gradient, flips) = problem.rows.run(_flip_gradient, flip_share, self.slopes)
        open_equation = abs(float(gradient[-1])) if problem.fit_intercept else 0.0
        if open_equation <= 1e-10 * max(self.lower, 1e-300):
            cost = problem.transport_norm(gradient) + problem.kappa * float(flips)
            self.upper = min(self.upper, cost)
        met = math.isfinite(self.upper) and self.upper - self.lower <= _ACCURACY * self.upper
        exhausted = estimate <= 1e-13 * max(self.lower, 1e-300)
        if met or exhausted:
            self.status = Status.OPTIMAL if met else Status.STALLED
            self.upper = min(self.upper, max(self.lower, 0.0) + estimate)
        return met or exhausted

    def try_step(
        self, coefficients: FloatArray, step: FloatArray, length: float, flip_share: State
    ) -> bool:
        return False


def _weight_of_positives(block: Block, _: None) -> tuple[None, tuple[Sum]]:
    return None, (Sum(float(block.weights[block.y > 0.0].sum())),)


def _doubt_gradient(block: Block, _: None, v: FloatArray) -> tuple[None, tuple[Sum]]:
    return None, (Sum(block.adjoint(block.weights * flip_probability(block.margins(v)))),)


def _null_newton(block: Block, _: None, v: FloatArray) -> tuple[None, tuple[Sum, Sum, Sum]]:
    loss = log_loss_terms(block.margins(v))
    curvature = block.weights * loss.curvature
    return None, (
        Sum(block.adjoint(block.weights * loss.slope)),
        Sum(block.gram(curvature)),
        Sum(float(curvature.sum())),
    )


def _flip_gradient(
    block: Block, a: FloatArray, slopes: tuple[float, float]
) -> tuple[FloatArray, tuple[Sum, Sum]]:
    s = np.where(block.y > 0.0, slopes[1], slopes[0])
    w = block.weights
    return a, (Sum(block.adjoint(w * (s - a))), Sum(float(w @ a)))
