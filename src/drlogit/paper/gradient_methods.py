"""The baselines without a penalty for the fixed-λ problem (B): PDHG and the subgradient method.

    minimise  Σ w_i [h(u_i) + (u_i - κλ)_+]   over  ‖β/c‖_* ≤ λ,    u = Zβ

*PDHG*, the saddle point of Appendix B of Li, Huang and So (2019), method (b) of their Section 5.2:
min over β, max over |y_i| ≤ 1 of ``Σ w_i [h(u_i) + ½(u_i - κλ)] + ½ Σ w_i y_i (u_i - κλ)``.  The
smooth part enters by its gradient (Condat 2013, Vũ 2013):

    β ← project(β - τ Zᵀ W (-s(u) + ½ + ½y)),    y ← clip(y + (σ/2)(2u⁺ - u - κλ), -1, 1)

with ``1/τ - σ‖Z‖²/4 ≥ L/2``, where ``‖Z‖² = λ_max(ZᵀWZ)`` and ``L = ‖Z‖²/4``.  At the optimum
``a = (1+y)/2``.  Deviations: the paper cites Chambolle and Pock (2011), whose iteration has the
proximal map of the whole smooth part, a problem of its own.  It gives no steps: these are ours.

*Projected subgradients*, method (d) of Section 5.2:

    β ← project(β - t_k g/‖g‖),    g = Zᵀ W (-s(u) + a),    a_i = 1 where u_i > κλ, else 0

with ``t_k = R/√k`` and R the radius of the ball; the paper gives no steps.  The averages of a over
the iterations, weighted by ``t_k/‖g_k‖``, converge to dual optimal flip shares, which give the
bound.  The iterate is the best point so far.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from scipy.special import expit

from ..problem.losses import flip_gain, flip_probability, log_loss
from ..problem.problem import Problem
from ..problem.result import Monitor, Result, Solution
from ..rows.arrays import FloatArray
from ..rows.blocks import Block
from ..rows.interface import State
from ..rows.reductions import Sum
from ..starts.start import flip_shares_of_start
from . import fixed_lambda
from .admm import gram, normal_product
from .ball_qp import DENSE_LIMIT, Quadratic
from .fixed_lambda import FixedLambdaStep
from .iterates import PaperIterate, paper_iterates, subproblem


def pdhg_steps(
    X: Any, y: Any, *, lam: float, sigma: float | None = None, **model: Any
) -> Iterator[PaperIterate]:
    """The primal-dual hybrid gradient method of Appendix B, method (b) of Section 5.2.

    ``sigma`` is the dual step, None for one that balances the two sides; the primal step follows
    from it.  All other parameters are those of :func:`~drlogit.paper.lp_admm_steps`.
    """
    problem = subproblem(X, y, lam, model)
    return paper_iterates(problem, lam, pdhg_iteration(problem, lam, sigma=sigma))


def pdhg(
    problem: Problem, *, lam: float, tol: float, monitor: Monitor, max_iter: int = 200_000,
    start: Result | None = None,
) -> Solution:  # fmt: skip
    """Solve (B) by PDHG until the gap is within ``tol``."""
    return fixed_lambda.run(
        problem, lam, pdhg_iteration(problem, lam, start), _shares_of_saddle, tol=tol,
        monitor=monitor, max_iter=max_iter, warm=start is not None,
    )  # fmt: skip


def pdhg_iteration(
    problem: Problem, lam: float, start: Result | None = None, sigma: float | None = None
) -> Iterator[FixedLambdaStep]:
    """The iterates of PDHG, without end."""
    rows, kink = problem.rows, problem.cost.kink(lam)
    ball = ScaledBall.of(problem)
    curvature = ball.curvature
    if sigma is None:
        sigma = 2.0 / (math.sqrt(curvature) * ball.radius(lam))
    if math.isinf(kink):
        sigma = 0.0  # labels cannot flip: y = -1 throughout, and this is projected gradient
    tau = 1.0 / (curvature * (0.25 * sigma + 0.125))

    beta = ball.first_point(start, lam)
    first = None if start is None else flip_shares_of_start(problem, start)
    state, (gradient,) = rows.run(_first_saddle, first, beta, kink)
    while True:
        # primal step
        beta = ball.project(beta - tau * ball.steepest(gradient), lam)
        # dual step at the extrapolated point; next gradient
        before = state
        state, (gradient,) = rows.run(_saddle_step, state, beta, sigma, kink)
        yield FixedLambdaStep(beta, state, before, tau)


def _first_saddle(
    block: Block, a: FloatArray | None, beta: FloatArray, kink: float
) -> tuple[Any, tuple[Sum]]:
    y = np.full(block.y.size, -1.0)
    if a is not None and math.isfinite(kink):
        y = 2.0 * a - 1.0
    u = block.margins(beta)
    return (y, u), (Sum(_saddle_gradient(block, y, u)),)


def _saddle_step(
    block: Block, state: tuple[FloatArray, FloatArray], beta: FloatArray, sigma: float, kink: float
) -> tuple[Any, tuple[Sum]]:
    y, before = state
    u = block.margins(beta)
    if math.isfinite(kink):
        y = np.clip(y + (0.5 * sigma) * (2.0 * u - before - kink), -1.0, 1.0)
    return (y, u), (Sum(_saddle_gradient(block, y, u)),)


def _saddle_gradient(block: Block, y: FloatArray, u: FloatArray) -> FloatArray:
    return block.adjoint(block.weights * (0.5 + 0.5 * y - expit(-u)))


def _shares_of_saddle(
    block: Block, state: tuple[FloatArray, FloatArray]
) -> tuple[FloatArray, tuple[()]]:
    return 0.5 * (1.0 + state[0]), ()


def subgradient_steps(X: Any, y: Any, *, lam: float, **model: Any) -> Iterator[PaperIterate]:
    """The projected subgradient method, method (d) of Section 5.2: the best point so far.

    Parameters are those of :func:`~drlogit.paper.lp_admm_steps`.
    """
    problem = subproblem(X, y, lam, model)
    return paper_iterates(problem, lam, subgradient_iteration(problem, lam))


def subgradient(
    problem: Problem, *, lam: float, tol: float, monitor: Monitor, max_iter: int = 100_000,
    start: Result | None = None,
) -> Solution:  # fmt: skip
    """Solve (B) by the projected subgradient method until the gap is within ``tol``."""
    return fixed_lambda.run(
        problem, lam, subgradient_iteration(problem, lam, start), _averaged_shares, tol=tol,
        monitor=monitor, max_iter=max_iter, warm=start is not None,
    )  # fmt: skip


def subgradient_iteration(
    problem: Problem, lam: float, start: Result | None = None
) -> Iterator[FixedLambdaStep]:
    """The best iterate so far after each iteration, without end."""
    rows, kink = problem.rows, problem.cost.kink(lam)
    ball = ScaledBall.of(problem)
    radius, beta = ball.radius(lam), ball.first_point(start, lam)
    best, least, total, k = beta, math.inf, 0.0, 0
    state: State | None = None
    while True:
        k += 1
        # subgradient and value at β: one pass
        a, (gradient, value) = rows.run(_subgradient, None, beta, kink)
        if value < least:
            best, least = beta, value
        # average of the shares
        length = max(ball.size(gradient), np.finfo(float).tiny)
        weight = radius / math.sqrt(k) / length
        total += weight
        before = a if state is None else state
        state = a if state is None else rows.run(_mix, rows.pair(state, a), weight / total)[0]
        yield FixedLambdaStep(best, state, before, weight)
        # projected step
        beta = ball.project(beta - weight * ball.steepest(gradient), lam)


def _subgradient(
    block: Block, _: Any, beta: FloatArray, kink: float
) -> tuple[FloatArray, tuple[Sum, Sum]]:
    u = block.margins(beta)
    s = flip_probability(u)
    a = (u > kink).astype(np.float64)
    weights, robust = block.weights, log_loss(u) + flip_gain(u, kink)
    return a, (Sum(block.adjoint(weights * (a - s))), Sum(float(weights @ robust)))


def _mix(
    block: Block, pair: tuple[FloatArray, FloatArray], share: float
) -> tuple[FloatArray, tuple[()]]:
    average, latest = pair
    return average + share * (latest - average), ()


def _averaged_shares(block: Block, state: FloatArray) -> tuple[FloatArray, tuple[()]]:
    return state, ()


@dataclass(frozen=True, eq=False)
class ScaledBall:
    """``‖θ‖_* ≤ λ`` in the penalised part of ``θ = β / scale``, for steps along gradients.

    Penalised coefficients are divided by their costs, so that the ball is that of the dual norm.
    Free ones are multiplied by the size of their column, so that a step treats all alike.
    """

    problem: Problem
    scale: FloatArray

    @classmethod
    def of(cls, problem: Problem) -> ScaledBall:
        size = problem.rows.column_scale
        inverse = 1.0 / np.where(size > 0.0, size, 1.0)
        return cls(problem, np.where(problem.free, inverse, problem.costs))

    @cached_property
    def curvature(self) -> float:
        """``λ_max(ZᵀWZ)`` in these coordinates."""
        if self.scale.size <= DENSE_LIMIT:
            matrix = gram(self.problem) * np.outer(self.scale, self.scale)
            return Quadratic(matrix).largest_eigenvalue
        product = partial(_scaled_product, self.problem, self.scale)
        return Quadratic(None, product, self.scale.size).largest_eigenvalue

    def radius(self, lam: float) -> float:
        """Euclidean radius of the ball; free coefficients count as of size one."""
        kept = int(self.problem.penalised.sum())
        widest = math.sqrt(kept) if self.problem.norm.name == "l1" else float(kept > 0)
        return math.hypot(widest * lam, math.sqrt(self.problem.free.sum()))

    def first_point(self, start: Result | None, lam: float) -> FloatArray:
        """The coefficients of an earlier result within the ball, or zero."""
        if start is None:
            return np.zeros(self.problem.costs.size)
        return self.project(self.problem.join(start.coef, start.intercept), lam)

    def project(self, beta: FloatArray, lam: float) -> FloatArray:
        """Nearest point with ``‖θ‖_* ≤ lam``."""
        kept = self.problem.penalised
        projected = beta.copy()
        theta = beta[kept] / self.scale[kept]
        projected[kept] = self.scale[kept] * self.problem.norm.project_dual(theta, lam)
        return projected

    def steepest(self, gradient: FloatArray) -> FloatArray:
        """The gradient in θ as a direction in β."""
        return self.scale**2 * gradient

    def size(self, gradient: FloatArray) -> float:
        """Euclidean length of the gradient in θ."""
        return float(np.linalg.norm(self.scale * gradient))


def _scaled_product(problem: Problem, scale: FloatArray, v: FloatArray) -> FloatArray:
    return scale * normal_product(problem, scale * v)
