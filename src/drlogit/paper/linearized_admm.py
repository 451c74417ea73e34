"""Linearised ADMM for the fixed-λ problem (B), a baseline: LP-ADMM with a proximal term.

Method (c) of Section 5.2 of Li, Huang and So (2019): as Algorithm 1 (``lp_admm``), except that the
μ-step also has the classic term ``(η/2)‖μ - μ^k‖²``, η > L_f.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..problem.problem import Problem
from ..problem.result import Solution
from .admm import LIPSCHITZ
from .iterates import PaperIterate
from .lp_admm import lp_admm, lp_admm_steps

#: η times the number of samples: 1 % above L_f.
_ETA = 1.01 * LIPSCHITZ


def linearized_admm_steps(
    X: Any, y: Any, *, lam: float, eta: float | None = None, gamma: float = 1.0, **options: Any
) -> Iterator[PaperIterate]:
    """Linearised ADMM, method (c) of Section 5.2: LP-ADMM with the term ``(η/2)‖y - y^k‖²``.

    ``eta`` is None for 1 % above L_f (the released code has 0.25 with ``rho=0.1``); all other
    parameters are those of :func:`lp_admm_steps`.
    """
    eta = _ETA / len(y) if eta is None else eta
    return lp_admm_steps(X, y, lam=lam, eta=eta, gamma=gamma, **options)


def linearized_admm(
    problem: Problem, *, eta: float | None = None, max_iter: int = 50_000, **options: Any
) -> Solution:
    """Solve (B) by linearised ADMM until the gap is within ``tol``."""
    eta = _ETA / problem.rows.n_samples if eta is None else eta
    return lp_admm(problem, eta=eta, max_iter=max_iter, **options)
