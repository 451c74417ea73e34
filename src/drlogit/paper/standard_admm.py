"""Standard two-block ADMM for the fixed-λ problem (B), as a baseline:

    minimise    Σ w_i [h(y_i) + (z_i)_+]   over x and (y, z)
    subject to  Zx = y,   z = y - κλ,   ‖x/c‖_* ≤ λ

Algorithm 3 of Li, Huang and So (2019), method (a) of their Section 5.2: both blocks are
minimised exactly, x by the inner problem (C), and (y, z) sample by sample: z in closed form, and
y by the semi-smooth Newton method of Algorithm 4 on what is left.

Paper → code: x → ``beta``, A → Z, b → ``kink``, u → ``-weights * p``, v → ``-weights * q``, ρ →
``rho / N``, σ → ``sigma``.  At the optimum ``p = s - a``, ``q = a``.  Units are those of ``admm``.

The solver starts from the null model with ρ = 1/N.  (y, z) is one block, as the remark before the
algorithm says; the listing alternates.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.special import expit

from ..problem.losses import log_loss
from ..problem.problem import Problem
from ..problem.result import Solution
from ..rows.arrays import FloatArray, IndexArray
from ..rows.blocks import Block
from ..rows.reductions import Sum
from . import fixed_lambda
from .admm import AdmmStart, BetaStep, Start, first_point, published_inner
from .ball_qp import InnerSolver
from .fixed_lambda import FixedLambdaStep
from .iterates import PaperIterate, paper_iterates, subproblem

#: Semi-smooth Newton: the largest gradient it leaves, and the steps it may take.
_NEWTON_TOL = 1e-13
_NEWTON_STEPS = 50


def standard_admm_steps(
    X: Any,
    y: Any,
    *,
    lam: float,
    rho: float | None = 10.0,
    sigma: float = 1.0,
    inner: str | InnerSolver = "auto",
    inner_tol: float | None = None,
    start: Start = "zeros",
    random_state: Any = None,
    **model: Any,
) -> Iterator[PaperIterate]:
    """Algorithm 3, standard ADMM, with Algorithm 4 for its (y, z)-step.

    ``sigma`` is the length σ of the multipliers' step; all other parameters are those of
    :func:`~drlogit.paper.lp_admm_steps`.  Iterates have the multiplier ``w = -u``.
    """
    problem = subproblem(X, y, lam, model)
    first = first_point(problem, start, rho, random_state)
    beta_step = BetaStep.build(problem, published_inner(inner, inner_tol, problem), inner_tol)
    steps = standard_admm_iteration(problem, lam, first, beta_step, sigma=sigma)
    return paper_iterates(problem, lam, steps)


def standard_admm(
    problem: Problem, *, lam: float, start: Start = None, rho: float | None = None,
    sigma: float = 1.0, inner: str | InnerSolver = "auto", inner_tol: float | None = None,
    max_iter: int = 50_000, **until: Any,
) -> Solution:  # fmt: skip
    """Solve (B) by standard ADMM until the gap is within ``tol``; ``rho`` is None for 1/N."""
    first, beta_step = first_point(problem, start, rho), BetaStep.build(problem, inner, inner_tol)
    steps = standard_admm_iteration(problem, lam, first, beta_step, sigma=sigma)
    return fixed_lambda.run(problem, lam, steps, start, max_iter=max_iter, **until)


def standard_admm_iteration(
    problem: Problem, lam: float, first: AdmmStart, beta_step: BetaStep, *, sigma: float = 1.0
) -> Iterator[FixedLambdaStep]:
    """The iterates of Algorithm 3, without end."""
    if not 0.0 < sigma < 0.5 * (1.0 + math.sqrt(5.0)):
        raise ValueError(f"sigma must be between 0 and 1.618, got {sigma!r}")
    rows, kink = problem.rows, problem.cost.kink(lam)
    rho = 1.0 if first.rho is None else first.rho
    beta, residual = first.beta, math.inf
    state, (target,) = rows.run(_first_state, first.state, rho)
    while True:
        # x-step: the inner problem (C)
        beta = beta_step(target, lam, beta, residual)
        # (y, z)-step by semi-smooth Newton; u- and v-step
        before = state
        state, (target, gap) = rows.run(_sample_step, state, beta, rho, sigma, kink)
        residual = math.sqrt(gap)
        yield FixedLambdaStep(beta, state, before, rho, residual * math.sqrt(rows.n_samples))


def _first_state(
    block: Block, state: tuple[FloatArray, FloatArray], rho: float
) -> tuple[Any, tuple[Sum]]:
    y, p = state
    q = np.clip(expit(-y) - p, 0.0, 1.0)
    return (y, p, q), (Sum(block.adjoint(block.weights * (y + p / rho))),)


def _sample_step(
    block: Block, state: tuple[FloatArray, FloatArray, FloatArray], beta: FloatArray, rho: float,
    sigma: float, kink: float,
) -> tuple[Any, tuple[Sum, Sum]]:  # fmt: skip
    y, p, q = state
    u = block.margins(beta)
    y = semismooth_newton(y, u, p, q, rho, kink)
    p = p - sigma * rho * (u - y)
    gap = np.square(u - y)
    if math.isfinite(kink):
        # z = prox of the hinge at y - κλ + q/ρ; what it cuts off is the new q at σ = 1.
        cut_off = np.clip(rho * (y - kink) + q, 0.0, 1.0)
        misfit = (q - cut_off) / rho  # z - y + κλ
        q = q - sigma * rho * misfit
        gap += np.square(misfit)
    weights = block.weights
    return (y, p, q), (
        Sum(block.adjoint(weights * (y + p / rho))),
        Sum(float(weights @ gap)),
    )


def semismooth_newton(
    y: FloatArray, u: FloatArray, p: FloatArray, q: FloatArray, rho: float, kink: float
) -> FloatArray:
    """Algorithm 4: the y of the (y, z)-step, z eliminated.

    Minimises φ(y) = h(y) + p y + (ρ/2)(y - u)² + min_z {(z)_+ + (ρ/2)(z - y + κλ - q/ρ)²} sample by
    sample, all at once: φ is strongly convex with a piecewise smooth derivative,
    and a step is halved for the samples where it does not lower φ.
    """

    def value(y: FloatArray, i: IndexArray) -> FloatArray:
        t = rho * (y - kink) + q[i]  # ρ times the point of the envelope
        inside = np.clip(t, 0.0, 1.0)
        envelope = inside * (t - 0.5 * inside) / rho if math.isfinite(kink) else 0.0
        return log_loss(y) + p[i] * y + (0.5 * rho) * np.square(y - u[i]) + envelope

    y, active = y.copy(), np.arange(y.size)
    for _ in range(_NEWTON_STEPS):
        x = y[active]
        s, t = expit(-x), rho * (x - kink) + q[active]
        gradient = p[active] - s + rho * (x - u[active]) + np.clip(t, 0.0, 1.0)
        hessian = s * (1.0 - s) + rho * (1.0 + ((t > 0.0) & (t < 1.0)))
        large = np.abs(gradient) > _NEWTON_TOL * (1.0 + rho * np.abs(x))
        if not large.any():
            break
        active, x, gradient = active[large], x[large], gradient[large]
        step = -gradient / hessian[large]
        reference, slope = value(x, active), 1e-4 * gradient * step
        length = np.ones_like(x)
        for _ in range(30):
            # What rounding hides counts as a decrease.
            hidden = 1e-15 * (1.0 + np.abs(reference))
            rises = value(x + length * step, active) > reference + length * slope + hidden
            if not rises.any():
                break
            length[rises] *= 0.5
        y[active] = x + length * step
    return y
