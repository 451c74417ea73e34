"""The projected subgradient method for the fixed-λ problem (B), a baseline:

    minimise  Σ w_i [h(u_i) + (u_i - κλ)_+]   over  ‖β/c‖_* ≤ λ,    u = Zβ

Method (d) of Section 5.2 of Li, Huang and So (2019):

    β ← project(β - t_k g/‖g‖),    g = Zᵀ W (-s(u) + a),    a_i = 1 where u_i > κλ, else 0

The averages of a over the iterations, weighted by ``t_k/‖g_k‖``, converge to dual optimal flip
shares, which give the bound.  The iterate is the best point so far.

Deviations: the paper gives no steps; here ``t_k = R/√k``, where R is the radius of the ball.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..problem.losses import flip_gain, flip_probability, log_loss
from ..problem.problem import Problem
from ..problem.result import Result, Solution
from ..rows.arrays import FloatArray
from ..rows.blocks import Block
from ..rows.reductions import Sum
from . import fixed_lambda
from .fixed_lambda import FixedLambdaStep
from .iterates import PaperIterate, mix_states, paper_iterates, subproblem
from .scaled_ball import ScaledBall


def subgradient_steps(X: Any, y: Any, *, lam: float, **model: Any) -> Iterator[PaperIterate]:
    """The projected subgradient method, method (d) of Section 5.2: the best point so far.

    Parameters are those of :func:`~drlogit.paper.lp_admm_steps`.
    """
    problem = subproblem(X, y, lam, model)
    return paper_iterates(problem, lam, subgradient_iteration(problem, lam))


def subgradient(
    problem: Problem, *, lam: float, start: Result | None = None, max_iter: int = 100_000,
    **until: Any,
) -> Solution:  # fmt: skip
    """Solve (B) by the projected subgradient method until the gap is within ``tol``."""
    steps = subgradient_iteration(problem, lam, start)
    return fixed_lambda.run(problem, lam, steps, start, max_iter=max_iter, **until)


def subgradient_iteration(
    problem: Problem, lam: float, start: Result | None = None
) -> Iterator[FixedLambdaStep]:
    """The best iterate so far after each iteration, without end."""
    rows, kink, ball = problem.rows, problem.cost.kink(lam), ScaledBall(problem)
    beta = best = ball.first_point(start, lam)
    least, total, k = math.inf, 0.0, 0
    average: Any = None
    while True:
        k += 1
        # subgradient and value at β: one pass
        shares, (gradient, value) = rows.run(_subgradient, None, beta, kink)
        if value < least:
            best, least = beta, value
        # average of the shares
        length = max(float(np.linalg.norm(ball.scale * gradient)), np.finfo(float).tiny)
        weight = ball.radius(lam) / math.sqrt(k) / length
        total += weight
        before = shares if average is None else average
        average = rows.run(mix_states, rows.pair(before, shares), weight / total)[0]
        yield FixedLambdaStep(best, average, before, weight)
        # projected step
        beta = ball.project(beta - weight * ball.scale**2 * gradient, lam)


def _subgradient(
    block: Block, _: Any, beta: FloatArray, kink: float
) -> tuple[tuple[FloatArray], tuple[Sum, Sum]]:
    u = block.margins(beta)
    a = (u > kink).astype(np.float64)
    weights, robust = block.weights, log_loss(u) + flip_gain(u, kink)
    gradient = block.adjoint(weights * (a - flip_probability(u)))
    return (a,), (Sum(gradient), Sum(float(weights @ robust)))
