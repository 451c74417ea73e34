"""LP-ADMM for the fixed-λ problem (B), split into margins μ and coefficients β:

    minimise    Σ w_i [h(μ_i) + (μ_i - κλ)_+]   over β, μ
    subject to  Zβ = μ,   ‖β/c‖_* ≤ λ

Algorithm 1 of Li, Huang and So (2019): the β-step solves (C), the μ-step takes the log-loss at
its linearisation and the kink exactly, so that it is a shrinkage in closed form.

Paper → code: x → ``beta``, y → ``mu``, A → Z, w → ``weights * v``, ρ → ``rho / N``, γ → ``gamma``,
η → ``eta / N``;
f(μ) = Σ w_i (h(μ_i) + ½(μ_i - κλ)) and P(μ) = ½ Σ w_i |μ_i - κλ|.  Units are those of ``admm``.

The solver starts from ``v = s - a`` of the null model; the released code starts from ``w = 1``, N
times the natural size of the multiplier.  By default ρ balances the residuals.  A growing ρ freezes
the iterates, optimal or not, so growth ends at ρ = 1e12/N and the balanced rule follows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.special import expit

from ..problem.problem import Problem
from ..problem.result import Solution
from ..rows.arrays import FloatArray
from ..rows.blocks import Block
from ..rows.reductions import Sum
from . import fixed_lambda
from .admm import PROVEN_PENALTY, AdmmStart, BetaStep, Start, first_point, published_inner
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
    start: Start = "zeros",
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
        The growth γ ≥ 1 of ρ per iteration; 1 keeps it constant, None balances the residuals.
        Growth ends at 1e12/N, where rounding hides every move; then the residuals are balanced.
    eta : float
        The weight η of linearised ADMM's term ``(η/2)‖y - y^k‖²``; 0 for LP-ADMM.
    inner : str or callable
        Solver of the β-step (C): a name in :data:`~drlogit.paper.ball_qp.INNER_SOLVERS`, a function
        ``inner(H, c, ball, start, tol)`` that returns θ, or ``"auto"``, the paper's choice:
        ``"active-set-cg"`` for ℓ1 transport, else ``"projected-gradient"``.
    inner_tol : float, optional
        Gap of (C) at which the inner solver stops, 0 for rounding; None for 1e-4 of the last
        squared residual.  With ``inner="auto"`` and None, ``"active-set-cg"`` also stops after a
        step shorter than 1e-5, as in the released code.
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
    problem = subproblem(X, y, lam, model)
    first = first_point(problem, start, rho, random_state)
    beta_step = BetaStep.build(problem, published_inner(inner, inner_tol, problem), inner_tol)
    steps = lp_admm_iteration(problem, lam, first, beta_step, gamma=gamma, eta=eta)
    return paper_iterates(problem, lam, steps)


def lp_admm(
    problem: Problem, *, lam: float, start: Start = None, rho: float | None = None,
    gamma: float | None = None, eta: float = 0.0, inner: str | InnerSolver = "auto",
    inner_tol: float | None = None, max_iter: int = 20_000, **until: Any,
) -> Solution:  # fmt: skip
    """Solve (B) by LP-ADMM until the gap is within ``tol``.

    The options are those of :func:`lp_admm_steps`, but ``rho=None`` and ``gamma=None`` are the
    default and ``inner="auto"`` is the fastest solver.  The sequence converges, and averages of the
    objective at the rate 1/K, for constant ``rho`` above ``(√3+1)/(4N)`` (Theorem 4.2).
    """
    first, beta_step = first_point(problem, start, rho), BetaStep.build(problem, inner, inner_tol)
    steps = lp_admm_iteration(problem, lam, first, beta_step, gamma=gamma, eta=eta)
    return fixed_lambda.run(problem, lam, steps, start, max_iter=max_iter, **until)


def lp_admm_iteration(
    problem: Problem,
    lam: float,
    first: AdmmStart,
    beta_step: BetaStep,
    *,
    gamma: float | None = None,
    eta: float = 0.0,
) -> Iterator[FixedLambdaStep]:
    """The iterates of Algorithm 1, without end."""
    if gamma is not None and not (math.isfinite(gamma) and gamma >= 1.0):
        raise ValueError(f"gamma must be finite and >= 1, or None, got {gamma!r}")
    if not (math.isfinite(eta) and eta >= 0.0):
        raise ValueError(f"eta must be finite and >= 0, got {eta!r}")
    rows, kink, eta = problem.rows, problem.cost.kink(lam), eta * problem.rows.n_samples
    penalty = _Penalty(1.0 if first.rho is None else first.rho, gamma)
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
        penalty.advance(residual / margins, rho * move / multipliers)


#: The largest ρ, per unit of sample weight: there rounding in the margins is as large as what the
#: multipliers are known to, and nothing moves any more.
LARGEST_PENALTY = 1e12


class _Penalty:
    """The penalty of this iteration and of the next, per unit of sample weight.

    With ``gamma``: geometric growth, as in the paper, up to the largest value.  Without, and after
    that: relative residual balancing (Wohlberg 2017), never below the proven range, by at most a
    factor 4 and at iterations 10, 20, 40, … only.  So the penalty is constant for longer and
    longer, as the theory for constant ρ requires.
    """

    def __init__(self, rho: float, gamma: float | None) -> None:
        self.now = self.next = rho
        self._gamma, self._k, self._change = gamma, 0, 10
        self._grow()

    def advance(self, primal: float, dual: float) -> None:
        """Go to the next iteration, given the relative residuals of the last."""
        self.now = self.next
        if self._gamma is not None:
            return self._grow()
        self._k += 1
        if self._k == self._change:
            self._change *= 2
            ratio = primal / max(dual, 1e-300)
            if not 0.2 <= ratio <= 5.0:
                factor = min(max(math.sqrt(ratio), 0.25), 4.0)
                self.next = max(self.now * factor, 1.01 * PROVEN_PENALTY)
        return None

    def _grow(self) -> None:
        if self._gamma is None or self._gamma == 1.0:
            return
        self.next = self.now * self._gamma
        if self.next > LARGEST_PENALTY:
            self.next, self._gamma = 1.0, None


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
