"""LP-ADMM for the fixed-λ problem (B), split into margins μ and coefficients β:

    minimise    Σ w_i [h(μ_i) + (μ_i - κλ)_+]   over β, μ
    subject to  Zβ = μ,   ‖β/c‖_* ≤ λ

Algorithm 1 of Li, Huang and So (2019): the β-step solves (C), the μ-step takes the log-loss at its
linearisation and the kink exactly, so that it is a shrinkage in closed form.

Paper → code: x → ``beta``, y → ``mu``, A → Z, w → ``weights * v``, ρ → ``rho`` (see below), γ →
``gamma``; f(μ) = Σ w_i (h(μ_i) + ½(μ_i - κλ)) and P(μ) = ½ Σ w_i |μ_i - κλ|.

Samples count by their weights everywhere: the penalty is ``(ρ/2) N Σ w_i (z_iβ - μ_i)²`` and
the multiplier is kept per unit of weight, as ``v_i = s_i - a_i`` at the optimum, which is where
the flip shares ``a`` come from.  With equal weights this is Algorithm 1 to the letter.  In these
units ``L_f = 1/(4N)`` whatever the weights, and the proven rate asks for ρ > (√3+1)/(4N).
Inside, ``rho`` is N times the paper's, so that its natural size is one.

Deviations: starts from ``v = s - a`` of the null model rather than from ``w = 1`` (which is N times the
multiplier's natural size); stops on the certified gap; by default ρ follows a safeguarded rule
instead of growing without end, which freezes the iterates whether or not they are optimal.
The appendix has a plus sign in one display of the μ-step; the minus of Algorithm 1 is right.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

from ..losses import FloatArray, flip_probability
from ..problem import Problem
from ..result import Monitor, Result, Solution, Status
from ..rows import Block, State, Sum
from . import fixed_lambda
from .beta_step import BetaStep
from .fixed_lambda import Step

#: ``L_f`` per unit of sample weight: the largest curvature of the log-loss.
LIPSCHITZ = 0.25

#: The proven rate needs ``ρ`` above this (Proposition 4.1), per unit of sample weight.
PROVEN_PENALTY = (math.sqrt(3.0) + 1.0) * LIPSCHITZ

#: Inner gap relative to the square of the last residual: an error that the iteration dwarfs.
_INNER_SHARE = 1e-4


class AdmmStart(NamedTuple):
    """Where an ADMM run begins, and what a later one can begin from."""

    beta: FloatArray
    state: State  # per block: (mu, v)
    rho: float | None = None


def lp_admm(
    problem: Problem,
    *,
    lam: float,
    tol: float,
    monitor: Monitor,
    max_iter: int = 20_000,
    start: Result | None = None,
    rho: float | None = None,
    gamma: float | None = None,
    inner: str = "auto",
    stop: str = "gap",
    residual_tol: float = 1e-6,
) -> Solution:
    """Solve (B) by LP-ADMM.

    Parameters
    ----------
    problem : Problem
        Any instance of (P), on any kind of rows.
    lam : float
        The λ at which to solve.
    tol : float
        Wanted duality gap.
    monitor : Monitor
        Told at every certificate.
    max_iter : int
        Limit on iterations.
    start : Result, optional
        Where to start from; a result of any solver at any λ.
    rho : float, optional
        Penalty ρ₀, in the units of the paper; None for 1/N, within the proven range.
    gamma : float, optional
        Growth of ρ per iteration as in the paper (its experiments: ``rho=0.001, gamma=1.05``);
        1 keeps it constant; None lets it follow the residuals, within bounds.
    inner : str
        Solver of (C): ``"auto"`` or a name in :data:`~drlogit.solvers.ball_qp.INNER_SOLVERS`.
    stop : {"gap", "residual"}
        The certified gap, or the paper's rule ``‖Zβ - μ‖ ≤ residual_tol``, which with a growing
        ρ says nothing about optimality: look at the gap of the result.
    residual_tol : float
        Used with ``stop="residual"`` only.
    """
    check_options(rho, gamma, stop)
    beta_step = BetaStep.build(problem, inner)
    first = first_point(problem, lam, start)
    if rho is not None:
        first = first._replace(rho=rho * problem.rows.n_samples)
    steps = lp_admm_steps(problem, lam, first, beta_step, gamma=gamma)
    if stop == "residual":
        return _run_to_residual(problem, lam, steps, beta_step, residual_tol, max_iter, monitor)
    return fixed_lambda.run(
        problem, lam, steps, multiplier_shares, tol=tol, monitor=monitor, max_iter=max_iter,
        warm=start is not None, info={"inner_steps": beta_step.steps},
    )  # fmt: skip


def lp_admm_steps(
    problem: Problem,
    lam: float,
    first: AdmmStart,
    beta_step: BetaStep,
    *,
    gamma: float | None = None,
    eta: float = 0.0,
) -> Iterator[Step]:
    """The iterates of Algorithm 1, without end; ``eta`` is the linearised ADMM's (see there)."""
    rows, kink = problem.rows, kink_of(problem, lam)
    penalty = _Penalty(first.rho, gamma)
    beta, residual = first.beta, math.inf
    state, (target,) = rows.run(_first_target, first.state, penalty.rho)
    while True:
        rho, rho_next = penalty.rho, penalty.following()
        # β-step: the inner problem (C), optimality (4.1)
        beta = beta_step(target, lam, beta, _INNER_SHARE * min(residual, 1.0) ** 2)
        # μ-step: linearised, then shrunk, optimality (4.2); w-step; all in one pass
        state, sums = rows.run(_sample_step, state, beta, rho, rho_next, kink, eta)
        target, gap, move, margins, multipliers = sums
        residual = math.sqrt(gap)
        yield Step(beta, state, residual * math.sqrt(rows.n_samples), rho)
        # grow ρ, or balance the residuals
        penalty.advance(residual, rho * math.sqrt(move), math.sqrt(margins), math.sqrt(multipliers))


class _Penalty:
    """The penalty of each iteration, per unit of sample weight.

    With ``gamma``: geometric growth, as in the paper.  Without: relative residual balancing
    (Wohlberg 2017), never below the proven range, by at most a factor 4 and at iterations
    10, 20, 40, … only, so that the penalty is constant for ever longer and the theory for constant ρ applies.
    """

    def __init__(self, rho: float | None, gamma: float | None) -> None:
        self.rho = 1.0 if rho is None else rho
        self._gamma = gamma
        self._next = self.rho * (gamma or 1.0)
        self._k, self._change = 0, 10

    def following(self) -> float:
        """The penalty of the iteration after this one (the pass over the data needs it)."""
        return self._next

    def advance(self, primal: float, dual: float, margins: float, multipliers: float) -> None:
        """Take the residuals of the iteration and what they are to be compared with."""
        self.rho = self._next
        self._k += 1
        if self._gamma is not None:
            self._next = self.rho * self._gamma
        elif self._k == self._change:
            self._change *= 2
            ratio = (primal * multipliers) / max(dual * margins, 1e-300)
            if BAL and not 1/BAL<ratio<BAL:
                self._next = max(self.rho * min(max(math.sqrt(ratio), 0.25), 4.0), PROVEN_PENALTY*1.01)


def kink_of(problem: Problem, lam: float) -> float:
    """``κλ``, where flipping a label begins to pay; never where labels cannot flip."""
    return math.inf if math.isinf(problem.kappa) else problem.kappa * lam

BAL=0

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
    """μ- and w-step of one block, and what the next β-step and the penalty rule need."""
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
    return (new, v), (
        Sum(block.adjoint(weights * (new + v / rho_next))),
        Sum(float(weights @ np.square(difference))),
        Sum(float(weights @ np.square(new - mu))),
        Sum(float(weights @ np.square(u))),
        Sum(float(weights @ np.square(v))),
    )


def multiplier_shares(
    block: Block, state: tuple[FloatArray, FloatArray], beta: FloatArray
) -> tuple[FloatArray, tuple[()]]:
    """The flip shares that the multiplier implies: ``v = s - a``."""
    _, v = state
    return np.clip(flip_probability(block.margins(beta)) - v, 0.0, 1.0), ()


def first_point(problem: Problem, lam: float, start: Result | None) -> AdmmStart:
    """From an earlier result, or from the null model."""
    if start is None:
        state, _ = problem.rows.run(_null_state)
        return AdmmStart(np.zeros(problem.costs.size), state)
    beta = problem.join(start.coef, start.intercept)
    state, _ = problem.rows.run(_warm_state, problem.rows.scatter(start.flip_share), beta)
    return AdmmStart(beta, state)


def _null_state(block: Block, state: Any) -> tuple[Any, tuple[()]]:
    return (np.zeros(block.y.size), np.full(block.y.size, 0.5)), ()


def _warm_state(block: Block, a: FloatArray, beta: FloatArray) -> tuple[Any, tuple[()]]:
    u = block.margins(beta)
    return (u, flip_probability(u) - a), ()
