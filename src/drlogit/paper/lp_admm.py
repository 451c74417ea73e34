"""LP-ADMM for the fixed-λ problem (B), split into margins μ and coefficients β:

    minimise    Σ w_i [h(μ_i) + (μ_i - κλ)_+]   over β, μ
    subject to  Zβ = μ,   ‖β/c‖_* ≤ λ

Algorithm 1 of Li, Huang and So (2019): the β-step solves (C), the μ-step takes the log-loss at
its linearisation and the kink exactly, so that it is a shrinkage in closed form.

Linearised ADMM, method (c) of their Section 5.2 and a baseline, is the same except that the μ-step
also has the classic term ``(η/2)‖μ - μ^k‖²``, η > L_f.

Paper → code: x → ``beta``, y → ``mu``, A → Z, w → ``weights * v``, ρ → ``rho / N``, γ → ``gamma``,
η → ``eta / N``;
f(μ) = Σ w_i (h(μ_i) + ½(μ_i - κλ)) and P(μ) = ½ Σ w_i |μ_i - κλ|.  Units are those of ``admm``.

The solver starts from ``v = s - a`` of the null model; the released code starts from ``w = 1``, N
times the natural size of the multiplier.  By default ρ follows a safeguarded rule.  A ρ that grows
without end freezes the iterates whether or not they are optimal, so the solver ends the growth at
ρ = 1e8/N and continues with the safeguarded rule.
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
from ..rows.reductions import Sum
from . import fixed_lambda
from .admm import (
    LIPSCHITZ,
    PROVEN_PENALTY,
    AdmmStart,
    BetaStep,
    PaperStart,
    check_penalty,
    first_point,
    published_inner,
    starting_point,
)
from .ball_qp import InnerSolver
from .fixed_lambda import FixedLambdaStep
from .iterates import PaperIterate, paper_iterates, subproblem

#: The settings of the paper's Section 5.1: ρ₀ and γ.
PAPER_RHO, PAPER_GAMMA = 0.001, 1.05


def lp_admm_steps(
    X: Any,
    y: Any,
    *,
    lam: float,
    rho: float | None = PAPER_RHO,
    gamma: float | None = PAPER_GAMMA,
    eta: float = 0.0,
    inner: str | InnerSolver = "auto",
    inner_tol: float | None = None,
    start: PaperStart = "zeros",
    random_state: Any = None,
    **model: Any,
) -> Iterator[PaperIterate]:
    """Algorithm 1, LP-ADMM.

    Parameters
    ----------
    X, y
        Samples and labels, as in :func:`drlogit.solve`.
    lam : float
        λ.
    rho : float, optional
        The penalty ρ₀; None for 1/N.
    gamma : float, optional
        The growth γ ≥ 1 of ρ per iteration; 1 keeps it constant, None balances the residuals.  ρ
        stops growing at 1e12/N, where nothing moves any more.
    eta : float
        The weight η of linearised ADMM's term ``(η/2)‖y - y^k‖²``; 0 for LP-ADMM.
    inner : str or callable
        Solver of the β-step (C): a name in :data:`~drlogit.paper.ball_qp.INNER_SOLVERS`, a function
        ``inner(H, c, ball, start, tol)`` that returns θ, or ``"auto"``, the paper's choice:
        ``"active-set-cg"`` for ℓ1 transport, else ``"projected-gradient"``.
    inner_tol : float, optional
        Gap of (C) at which the inner solver stops, 0 for rounding; None for 1e-4 of the last
        squared residual.
    start : str or (x0, y0, w0)
        ``"zeros"``, ``"ones"`` (as in the released code), ``"random"`` (standard normal), or three
        vectors.
    random_state : optional
        Seed of a random start.
    **model
        ``kappa``, and whatever else :func:`drlogit.solve` takes to state the problem: ``norm``,
        ``feature_costs``, ``sample_weight``, ``fit_intercept`` (default False), ``n_jobs``.

    Yields
    ------
    PaperIterate
    """
    check_penalty(rho, gamma, eta)
    problem = subproblem(X, y, lam, model)
    beta_step = BetaStep.build(problem, published_inner(inner, problem), inner_tol)
    first = starting_point(problem, start, random_state, rho)
    weight = eta * problem.rows.n_samples
    steps = lp_admm_iteration(
        problem, lam, first, beta_step, gamma=gamma, eta=weight, endless_growth=True
    )
    return paper_iterates(problem, lam, steps)


def linearized_admm_steps(
    X: Any, y: Any, *, lam: float, eta: float | None = None, gamma: float = 1.0, **options: Any
) -> Iterator[PaperIterate]:
    """Linearised ADMM, method (c) of Section 5.2: LP-ADMM with the term ``(η/2)‖y - y^k‖²``.

    ``eta`` is None for 1 % above L_f (the released code has 0.25 with ``rho=0.1``); all other
    parameters are those of :func:`lp_admm_steps`.
    """
    if eta is None:
        eta = 1.01 * LIPSCHITZ / len(y)
    return lp_admm_steps(X, y, lam=lam, eta=eta, gamma=gamma, **options)


def lp_admm(
    problem: Problem, *, lam: float, tol: float, monitor: Monitor, max_iter: int = 20_000,
    start: Result | None = None, rho: float | None = None, gamma: float | None = None,
    inner: str | InnerSolver = "auto", inner_tol: float | None = None, eta: float = 0.0,
) -> Solution:  # fmt: skip
    """Solve (B) by LP-ADMM until the gap is within ``tol``.

    The options are those of :func:`lp_admm_steps`, but ``rho=None`` and ``gamma=None`` are the
    default and ``inner="auto"`` is the fastest solver.  The sequence converges, and averages of the
    objective at the rate 1/K, for constant ``rho`` above ``(√3+1)/(4N)`` (Theorem 4.2).
    """
    check_penalty(rho, gamma, eta)
    beta_step = BetaStep.build(problem, inner, inner_tol)
    first, weight = first_point(problem, start, rho), eta * problem.rows.n_samples
    steps = lp_admm_iteration(problem, lam, first, beta_step, gamma=gamma, eta=weight)
    return fixed_lambda.run(
        problem, lam, steps, tol=tol, monitor=monitor, max_iter=max_iter, warm=start is not None
    )


def linearized_admm(
    problem: Problem, *, eta: float | None = None, max_iter: int = 50_000, **options: Any
) -> Solution:
    """Solve (B) by linearised ADMM; ``eta`` is None for 1 % above L_f."""
    if eta is None:
        eta = 1.01 * LIPSCHITZ / problem.rows.n_samples
    return lp_admm(problem, eta=eta, max_iter=max_iter, **options)


def lp_admm_iteration(
    problem: Problem,
    lam: float,
    first: AdmmStart,
    beta_step: BetaStep,
    *,
    gamma: float | None = None,
    eta: float = 0.0,
    endless_growth: bool = False,
) -> Iterator[FixedLambdaStep]:
    """The iterates of Algorithm 1, without end; ``eta`` per unit of sample weight.

    With ``endless_growth`` ρ grows up to :data:`LARGEST_PENALTY`, as published.
    """
    rows, kink = problem.rows, problem.cost.kink(lam)
    penalty = _Penalty(first.rho, gamma, endless_growth)
    beta, residual = first.beta, math.inf
    state, (target,) = rows.run(_first_target, first.state, penalty.now)
    while True:
        rho = penalty.now
        # β-step: the inner problem (C), optimality (4.1)
        beta = beta_step(target, lam, beta, residual)
        # μ-step: linearised, then shrunk, optimality (4.2); w-step; all in one pass
        before = state
        state, sums = rows.run(_sample_step, state, beta, rho, penalty.next, kink, eta)
        target, residual, move, margins, multipliers = sums[0], *map(math.sqrt, sums[1:])
        yield FixedLambdaStep(beta, state, before, rho, residual * math.sqrt(rows.n_samples))
        # grow ρ, or balance the residuals
        penalty.advance((residual / margins, rho * move / multipliers))


#: From this ρ on, per unit of sample weight, an iteration moves no margin by more than 2e-8.
_FROZEN_PENALTY = 1e8

#: The largest ρ, per unit of sample weight: there rounding in the margins is as large as what the
#: multipliers are known to, and nothing moves any more.
LARGEST_PENALTY = 1e12


class _Penalty:
    """The penalty of this iteration and of the next, per unit of sample weight.

    With ``gamma``: geometric growth, as in the paper; up to the largest value if the growth is
    ``endless``, else until the iterates are frozen.  Without, and after that: relative residual
    balancing (Wohlberg 2017), never below the proven range, by at most a factor 4 and at iterations
    10, 20, 40, … only.  So the penalty is constant for longer and longer, as the theory for
    constant ρ requires.
    """

    def __init__(self, rho: float | None, gamma: float | None, endless: bool) -> None:
        self.now = 1.0 if rho is None else rho
        self._gamma = gamma
        self._largest = LARGEST_PENALTY if endless else _FROZEN_PENALTY
        self._endless = endless
        self._k, self._change = 0, 10
        self.next = self._grown() if gamma is not None else self.now

    def advance(self, residuals: tuple[float, float]) -> None:
        """Go to the next iteration; the primal and the dual residual are those of the last."""
        self.now = self.next
        if self._gamma is not None:
            self.next = self._grown()
            return
        self._k += 1
        if self._k == self._change:
            self._change *= 2
            primal, dual = residuals
            ratio = primal / max(dual, 1e-300)
            if not 0.2 <= ratio <= 5.0:
                factor = min(max(math.sqrt(ratio), 0.25), 4.0)
                self.next = max(self.now * factor, 1.01 * PROVEN_PENALTY)

    def _grown(self) -> float:
        assert self._gamma is not None
        grown = self.now * self._gamma
        if grown <= self._largest or self._gamma == 1.0:
            return grown
        if not self._endless:
            self._gamma = None
            return 1.0
        return max(self.now, self._largest)


def _first_target(
    block: Block, state: tuple[FloatArray, FloatArray], rho: float
) -> tuple[Any, tuple[Sum]]:
    mu, v = state
    return state, (Sum(block.adjoint(block.weights * (mu + v / rho))),)


def _sample_step(
    block: Block,
    state: tuple[FloatArray, FloatArray],
    beta: FloatArray,
    rho: float,
    rho_next: float,
    kink: float,
    eta: float,
) -> tuple[Any, tuple[Sum, ...]]:
    """μ- and w-step of one block; what the next β-step and the penalty rule need."""
    mu, v = state
    weights = block.weights
    u = block.margins(beta)
    # Without the kink: the minimiser of the linearised log-loss, h'(μ) = -s(μ).
    new = (rho * u + eta * mu + expit(-mu) - v) / (rho + eta)
    if math.isfinite(kink):
        # Prox of the hinge, which is that of ½|· - κλ| after a step along ½.
        new = np.where(new <= kink, new, np.maximum(new - 1.0 / (rho + eta), kink))
    difference = u - new
    v = v - rho * difference
    tiny = np.finfo(float).tiny  # the last two are divided by
    return (new, v), (
        Sum(block.adjoint(weights * (new + v / rho_next))),
        Sum(float(weights @ np.square(difference))),
        Sum(float(weights @ np.square(new - mu))),
        Sum(float(weights @ np.square(u)) + tiny),
        Sum(float(weights @ np.square(v)) + tiny),
    )
