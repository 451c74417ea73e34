"""Algorithm 1, LP-ADMM, and linearised ADMM, for problem (B) (``subproblem``).

    x^{k+1} = argmin (ρ_k/2)‖Zx - y^k - w^k/ρ_k‖² + g(x)                        problem (C)
    y^{k+1} = argmin (ρ_k/2)‖y - (Zx^{k+1} - (w^k + ∇f(y^k))/ρ_k)‖² + P(y)      a shrinkage
    w^{k+1} = w^k - ρ_k (Zx^{k+1} - y^{k+1})
    ρ_{k+1} = γ ρ_k

Linearised ADMM, method (c) of Section 5.2, also has ``(η/2)‖y - y^k‖²`` in the y-step.

Deviations: ρ stops growing at 1e12/N, where rounding in Zx is as large as what w is known to.  One
display of the appendix has a plus for the minus of the y-step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from typing import TypeAlias

import numpy as np

from ..rows.arrays import FloatArray, Matrix
from .box_qp import Inner, NormBall, Quadratic, check_method, printed_method, solve_qp
from .subproblem import PaperIterate, Start, Subproblem, TransportNorm, check, starting_point

#: The settings of the paper's Section 5.1: ρ₀ and γ.
PAPER_RHO, PAPER_GAMMA = 0.001, 1.05

#: The largest ρ, times N.
LARGEST_PENALTY = 1e12

#: ρ₀, ``"scaled"`` for 1/N, or ρ_k as a function of k = 0, 1, 2, …
Penalty: TypeAlias = float | str | Callable[[int], float]


def lp_admm(
    Z: Matrix,
    lam: float,
    kappa: float,
    *,
    norm: str | TransportNorm = "l1",
    rho: Penalty = PAPER_RHO,
    gamma: float = PAPER_GAMMA,
    eta: float = 0.0,
    inner: Inner | None = None,
    inner_stop: str | float = "exact",
    start: Start = 0.0,
) -> Iterator[PaperIterate]:
    """Algorithm 1: the iterates of LP-ADMM for the problem (B) at fixed λ, without end.

    Parameters
    ----------
    Z : array or sparse matrix of shape (N, n)
        Rows ``z_i``: label (-1 or 1) times sample.
    lam, kappa : float
        λ, and the cost of a flip (``inf``: labels are certain).
    norm : {"l1", "l2", "linf"} or TransportNorm
        The transport norm; ``"l1"`` is the paper's ``‖x‖_∞ ≤ λ``.
    rho : float, "scaled" or callable
        The penalty ρ₀; ``"scaled"`` is 1/N.  A function gives ρ_k for k = 0, 1, 2, … itself.
        The proven rate needs a constant ρ > (√3+1)/(4N).
    gamma : float
        The growth γ ≥ 1 of ρ per iteration; 1 keeps it constant.  Not used if ``rho`` is a
        function.
    eta : float
        The weight η of linearised ADMM's ``(η/2)‖y - y^k‖²``; 0 for LP-ADMM.
    inner, inner_stop
        The solver of the x-step and its rule: ``method`` and ``stop`` of
        :func:`~drlogit.paper.box_qp`.
    start : float or (x0, y0, w0)
        A number for all entries, or three vectors.

    Yields
    ------
    PaperIterate
        ``k, x, y, w, rho, residual, F``.
    """
    problem = Subproblem.of(Z, lam, kappa, norm)
    Z, N, f_gradient, prox_P = problem.Z, problem.N, problem.gradient_f, problem.prox_P
    check("gamma", gamma, least=1.0)
    check("eta", eta, least=0.0)
    rho_of = penalty(rho, gamma, N)
    x_step = inner_problem(problem, inner, inner_stop)
    x, y, w = starting_point(start, Z)
    for k in count():
        rho_k = rho_of(k)
        # x-step, optimality (4.1)
        x = x_step(y + w / rho_k, x)
        # y-step, optimality (4.2); with η = 0 its centre is Zx - (w + ∇f(y))/ρ
        Zx = Z @ x
        y = prox_P((rho_k * Zx + eta * y - w - f_gradient(y)) / (rho_k + eta), rho_k + eta)
        # w-step
        w = w - rho_k * (Zx - y)
        yield PaperIterate(k + 1, x, y, w, rho_k, float(np.linalg.norm(Zx - y)), problem.F(y))


def penalty(rho: Penalty, gamma: float, N: int) -> Callable[[int], float]:
    """ρ_k as a function of k."""
    if callable(rho):
        return rho
    if isinstance(rho, str) and rho != "scaled":
        raise ValueError(f"rho must be a number > 0, 'scaled' or a function of k, got {rho!r}")
    first = 1.0 / N if isinstance(rho, str) else rho
    check("rho", first, least=0.0, strict=True)
    steps = np.log(max(LARGEST_PENALTY / N / first, 1.0)) / np.log(gamma) if gamma > 1.0 else 0.0
    return lambda k: first * gamma ** min(k, int(steps))


def inner_problem(
    problem: Subproblem, inner: Inner | None, stop: str | float
) -> Callable[[FloatArray, FloatArray], FloatArray]:
    """``(target, x) ↦ argmin ‖Zx - target‖`` over the ball, from ``x``."""
    method = printed_method(problem.norm) if inner is None else inner
    check_method(method, stop, problem.norm, problem.Z.shape[1])
    H, ball = Quadratic(problem.Z), NormBall(problem.norm, problem.lam)
    return lambda target, x: solve_qp(method, stop, H, problem.Z.T @ target, ball, x)
