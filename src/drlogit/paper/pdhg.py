"""Primal-dual hybrid gradient for the fixed-λ problem (B), as a baseline:

    min over ‖β/c‖_* ≤ λ, max over |y_i| ≤ 1 of
        Σ w_i [h(u_i) + ½(u_i - κλ)] + ½ Σ w_i y_i (u_i - κλ),    u = Zβ

The saddle point of Appendix B of Li, Huang and So (2019), method (b) of their Section 5.2.  The
smooth part enters by its gradient (Condat 2013, Vũ 2013):

    β ← project(β - τ Zᵀ W (-s(u) + ½ + ½y)),    y ← clip(y + (σ/2)(2u⁺ - u - κλ), -1, 1)

with ``1/τ - σ‖Z‖²/4 ≥ L/2``, where ``‖Z‖² = λ_max(ZᵀWZ)`` and ``L = ‖Z‖²/4``.  At the optimum
``a = (1+y)/2``.

Paper → code: x → ``beta``, A → Z, b → κλ.
Deviations: the paper cites Chambolle and Pock (2011), whose iteration has the proximal map of the
whole smooth part, a problem of its own; it gives no steps, so that they are ours.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.special import expit

from ..problem.problem import Problem
from ..problem.result import Monitor, Result, Solution
from ..rows.arrays import FloatArray
from ..rows.blocks import Block
from ..rows.interface import State
from ..rows.reductions import Sum
from ..starts.start import flip_shares_of_start
from . import fixed_lambda
from .fixed_lambda import FixedLambdaStep
from .scaled_ball import ScaledBall


def pdhg(
    problem: Problem,
    *,
    lam: float,
    tol: float,
    monitor: Monitor,
    max_iter: int = 200_000,
    start: Result | None = None,
) -> Solution:
    """Solve (B) by the primal-dual hybrid gradient method.

    Parameters are those of :func:`~drlogit.paper.lp_admm.lp_admm`.
    """
    return fixed_lambda.run(
        problem, lam, pdhg_iteration(problem, lam, start), _shares, tol=tol, monitor=monitor,
        max_iter=max_iter, warm=start is not None,
    )  # fmt: skip


def pdhg_iteration(
    problem: Problem, lam: float, start: Result | None = None, sigma: float | None = None
) -> Iterator[FixedLambdaStep]:
    """The iterates, without end."""
    rows, kink = problem.rows, problem.cost.kink(lam)
    ball = ScaledBall.of(problem)
    curvature = ball.curvature
    if sigma is None:
        sigma = 2.0 / (math.sqrt(curvature) * ball.radius(lam))
    if math.isinf(kink):
        sigma = 0.0  # labels cannot flip: y = -1 throughout, and this is projected gradient
    tau = 1.0 / (curvature * (0.25 * sigma + 0.125))

    beta = np.zeros(problem.costs.size)
    first: State | None = None
    if start is not None:
        beta = ball.project(problem.join(start.coef, start.intercept), lam)
        first = flip_shares_of_start(problem, start)
    state, (gradient,) = rows.run(_first_state, first, beta, kink)
    while True:
        # primal step
        beta = ball.project(beta - tau * ball.steepest(gradient), lam)
        # dual step at the extrapolated point; next gradient
        before = state
        state, (gradient,) = rows.run(_sample_step, state, beta, sigma, kink)
        yield FixedLambdaStep(beta, state, before, tau)


def _first_state(
    block: Block, a: FloatArray | None, beta: FloatArray, kink: float
) -> tuple[Any, tuple[Sum]]:
    y = np.full(block.y.size, -1.0)
    if a is not None and math.isfinite(kink):
        y = 2.0 * a - 1.0
    u = block.margins(beta)
    return (y, u), (Sum(_gradient(block, y, u)),)


def _sample_step(
    block: Block,
    state: tuple[FloatArray, FloatArray],
    beta: FloatArray,
    sigma: float,
    kink: float,
) -> tuple[Any, tuple[Sum]]:
    y, before = state
    u = block.margins(beta)
    if math.isfinite(kink):
        y = np.clip(y + (0.5 * sigma) * (2.0 * u - before - kink), -1.0, 1.0)
    return (y, u), (Sum(_gradient(block, y, u)),)


def _gradient(block: Block, y: FloatArray, u: FloatArray) -> FloatArray:
    return block.adjoint(block.weights * (0.5 + 0.5 * y - expit(-u)))


def _shares(block: Block, state: tuple[FloatArray, FloatArray]) -> tuple[FloatArray, tuple[()]]:
    return 0.5 * (1.0 + state[0]), ()
