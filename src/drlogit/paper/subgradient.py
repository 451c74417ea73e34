"""Projected subgradient method for the fixed-λ problem (B), as a baseline:

    minimise  Σ w_i [h(u_i) + (u_i - κλ)_+]   over  ‖β/c‖_* ≤ λ,    u = Zβ

Method (d) of Section 5.2 of Li, Huang and So (2019):

    β ← project(β - t_k g/‖g‖),    g = Zᵀ W (-s(u) + a),    a_i = 1 where u_i > κλ, else 0

with ``t_k = R/√k`` and R the radius of the ball.  The averages of a over the iterations, weighted
by ``t_k/‖g_k‖``, converge to dual optimal flip shares, which is where the bound comes from.

Deviations: none known; the paper gives no steps.  Returns the best iterate.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..problem.losses import flip_gain, flip_probability, log_loss
from ..problem.problem import Problem
from ..problem.result import Monitor, Result, Solution
from ..rows.arrays import FloatArray
from ..rows.blocks import Block
from ..rows.reductions import Sum
from . import fixed_lambda
from .fixed_lambda import FixedLambdaStep
from .scaled_ball import ScaledBall


def subgradient(
    problem: Problem,
    *,
    lam: float,
    tol: float,
    monitor: Monitor,
    max_iter: int = 100_000,
    start: Result | None = None,
) -> Solution:
    """Solve (B) by the projected subgradient method.

    Parameters are those of :func:`~drlogit.paper.lp_admm.lp_admm`.
    """
    return fixed_lambda.run(
        problem, lam, subgradient_iteration(problem, lam, start), _shares, tol=tol, monitor=monitor,
        max_iter=max_iter, warm=start is not None,
    )  # fmt: skip


def subgradient_iteration(
    problem: Problem, lam: float, start: Result | None = None
) -> Iterator[FixedLambdaStep]:
    """The best iterate so far after each iteration, without end."""
    rows, kink = problem.rows, problem.cost.kink(lam)
    ball = ScaledBall.of(problem)
    radius = ball.radius(lam)
    beta, state = np.zeros(problem.costs.size), None
    if start is not None:
        beta = ball.project(problem.join(start.coef, start.intercept), lam)
    best, least, total = beta, math.inf, 0.0
    k = 0
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
        before, state = state, _averaged(problem, state, a, weight / total)
        yield FixedLambdaStep(best, state, before if before is not None else state, weight)
        # projected step
        beta = ball.project(beta - weight * ball.steepest(gradient), lam)


def _averaged(problem: Problem, average: Any, latest: Any, share: float) -> Any:
    if average is None:
        return latest
    return problem.rows.run(_mix, problem.rows.pair(average, latest), share)[0]


def _mix(
    block: Block, pair: tuple[FloatArray, FloatArray], share: float
) -> tuple[FloatArray, tuple[()]]:
    average, latest = pair
    return average + share * (latest - average), ()


def _subgradient(
    block: Block, _: Any, beta: FloatArray, kink: float
) -> tuple[FloatArray, tuple[Sum, Sum]]:
    u = block.margins(beta)
    s = flip_probability(u)
    a = (u > kink).astype(np.float64)
    weights, robust = block.weights, log_loss(u) + flip_gain(u, kink)
    return a, (Sum(block.adjoint(weights * (a - s))), Sum(float(weights @ robust)))


def _shares(block: Block, state: FloatArray) -> tuple[FloatArray, tuple[()]]:
    return state, ()
