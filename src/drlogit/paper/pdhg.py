"""The primal-dual hybrid gradient method for the fixed-λ problem (B), a baseline:

    minimise  Σ w_i [h(u_i) + (u_i - κλ)_+]   over  ‖β/c‖_* ≤ λ,    u = Zβ

Method (b) of Section 5.2 of Li, Huang and So (2019), on the saddle point of their Appendix B:
min over β, max over |y_i| ≤ 1 of ``Σ w_i [h(u_i) + ½(u_i - κλ)] + ½ Σ w_i y_i (u_i - κλ)``.

    β ← project(β - τ Zᵀ W (-s(u) + ½ + ½y)),    y ← clip(y + (σ/2)(2u⁺ - u - κλ), -1, 1)

with ``1/τ - σ‖Z‖²/4 ≥ L/2``, where ``‖Z‖² = λ_max(ZᵀWZ)`` and ``L = ‖Z‖²/4``.

Paper → code: y → ``2a - 1``, where a are the flip shares.

Deviations: the paper cites Chambolle and Pock (2011), whose iteration has the proximal map of the
smooth part, a problem of its own.  Here the smooth part enters by its gradient (Condat 2013, Vũ
2013).  The paper gives no steps: these are ours.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.special import expit

from ..problem.problem import Problem
from ..problem.result import Result, Solution
from ..rows.arrays import FloatArray
from ..rows.blocks import Block
from ..rows.reductions import Sum
from ..starts.start import flip_shares_of_start
from . import fixed_lambda
from .fixed_lambda import FixedLambdaStep
from .iterates import PaperIterate, paper_iterates, subproblem
from .scaled_ball import ScaledBall


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
    problem: Problem, *, lam: float, start: Result | None = None, max_iter: int = 200_000,
    **until: Any,
) -> Solution:  # fmt: skip
    """Solve (B) by PDHG until the gap is within ``tol``."""
    steps = pdhg_iteration(problem, lam, start)
    return fixed_lambda.run(problem, lam, steps, start, max_iter=max_iter, **until)


def pdhg_iteration(
    problem: Problem, lam: float, start: Result | None = None, sigma: float | None = None
) -> Iterator[FixedLambdaStep]:
    """The iterates of PDHG, without end."""
    rows, kink, ball = problem.rows, problem.cost.kink(lam), ScaledBall(problem)
    if sigma is None:
        sigma = 2.0 / (math.sqrt(ball.curvature) * ball.radius(lam))
    if math.isinf(kink):
        sigma = 0.0  # labels cannot flip: y = -1 throughout, and this is projected gradient
    tau = 1.0 / (ball.curvature * (0.25 * sigma + 0.125))
    beta = ball.first_point(start, lam)
    shares = None if start is None else flip_shares_of_start(problem, start)
    state, (gradient,) = rows.run(_first_state, shares, beta, kink)
    while True:
        # primal step
        beta = ball.project(beta - tau * ball.scale**2 * gradient, lam)
        # dual step at the extrapolated point; next gradient
        before = state
        state, (gradient,) = rows.run(_dual_step, state, beta, sigma, kink)
        yield FixedLambdaStep(beta, state, before, tau)


def _first_state(
    block: Block, a: FloatArray | None, beta: FloatArray, kink: float
) -> tuple[Any, tuple[Sum]]:
    if a is None or math.isinf(kink):
        a = np.zeros(block.y.size)
    return _state_and_gradient(block, a, block.margins(beta))


def _dual_step(
    block: Block, state: tuple[FloatArray, FloatArray], beta: FloatArray, sigma: float, kink: float
) -> tuple[Any, tuple[Sum]]:
    a, before = state
    u = block.margins(beta)
    if math.isfinite(kink):
        a = np.clip(a + (0.25 * sigma) * (2.0 * u - before - kink), 0.0, 1.0)
    return _state_and_gradient(block, a, u)


def _state_and_gradient(block: Block, a: FloatArray, u: FloatArray) -> tuple[Any, tuple[Sum]]:
    return (a, u), (Sum(block.adjoint(block.weights * (a - expit(-u)))),)
