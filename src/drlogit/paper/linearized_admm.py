"""Linearised ADMM for the fixed-λ problem (B), as a baseline:

    minimise    Σ w_i [h(μ_i) + (μ_i - κλ)_+]   over β, μ
    subject to  Zβ = μ,   ‖β/c‖_* ≤ λ

Method (c) of Section 5.2 of Li, Huang and So (2019): LP-ADMM, except that the μ-step also has
the classic term ``(η/2)‖μ - μ^k‖²``, η > L_f.  With η = 0 it is LP-ADMM: the two share their code.

Paper → code: as in ``lp_admm``, and η → ``eta / N``.
Deviations: those of ``lp_admm``.
"""

from __future__ import annotations

import math

from ..problem.problem import Problem
from ..problem.result import Monitor, Result, Solution
from .admm import LIPSCHITZ, check_penalty, first_point, in_weights, run_admm
from .beta_step import BetaStep
from .lp_admm import lp_admm_steps


def linearized_admm(
    problem: Problem,
    *,
    lam: float,
    tol: float,
    monitor: Monitor,
    max_iter: int = 50_000,
    start: Result | None = None,
    rho: float | None = None,
    gamma: float | None = None,
    eta: float | None = None,
    inner: str = "auto",
) -> Solution:
    """Solve (B) by linearised ADMM.

    Parameters
    ----------
    eta : float, optional
        Weight η of the proximal term, in the units of the paper; None for 1 % above ``L_f``.
    problem, lam, tol, monitor, max_iter, start, rho, gamma, inner
        As in :func:`~drlogit.paper.lp_admm.lp_admm`.
    """
    check_penalty(rho, gamma)
    if eta is not None and not (math.isfinite(eta) and eta >= 0.0):
        raise ValueError(f"eta must be finite and >= 0, or None, got {eta!r}")
    weight = in_weights(problem, eta)
    beta_step = BetaStep.build(problem, inner)
    steps = lp_admm_steps(
        problem,
        lam,
        first_point(problem, start, rho),
        beta_step,
        gamma=gamma,
        eta=1.01 * LIPSCHITZ if weight is None else weight,
    )
    return run_admm(
        problem, lam, steps, beta_step, tol=tol, monitor=monitor, max_iter=max_iter,
        warm=start is not None,
    )  # fmt: skip
