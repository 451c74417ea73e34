"""The worst-case loss of any coefficients, and how far it is above a certified lower bound."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, NamedTuple

import numpy as np

from ..fitting.solving import solve
from ..problem.ball import Ball
from ..problem.result import Result
from ..rows.arrays import Matrix
from .sound import sound
from .subproblem import NORMS, TransportNorm, as_matrix, check, get_norm, signed, worst_case_loss


class Gap(NamedTuple):
    """How good a point of (A) is."""

    objective: float  # the worst-case loss of x, at the best λ
    lower: float  # a certified lower bound on the optimum of (A)
    lam: float  # the best λ for x

    @property
    def gap(self) -> float:
        """How far above the optimum the objective is at most."""
        return self.objective - self.lower


def gap(Z: Matrix, x: Any, epsilon: float, kappa: float, norm: str | TransportNorm = "l1") -> Gap:
    """The worst-case loss of ``x`` and a certified lower bound on the best one.

    Parameters
    ----------
    Z : array or sparse matrix of shape (N, n)
        Rows ``z_i``: label (-1 or 1) times sample.
    x : array of shape (n,)
        Coefficients, whatever produced them.
    epsilon, kappa : float
        The radius, and the cost of a flip.
    norm : {"l1", "l2", "linf"} or TransportNorm
        The transport norm.

    Returns
    -------
    Gap
        ``objective``, ``lower``, ``lam``, and ``gap``, their difference.  The bound does not depend
        on ``x``: it is the dual value of an exact fit, or, for a norm of your own, of
        :func:`~drlogit.paper.sound.sound`.
    """
    Z, x = as_matrix("Z", Z), np.asarray(x, dtype=np.float64)
    if x.shape != (Z.shape[1],) or not np.isfinite(x).all():
        raise ValueError(f"x must be {Z.shape[1]} finite numbers, got an array of shape {x.shape}")
    norm = get_norm(norm)
    objective, lam = worst_case_loss(Z, x, epsilon, kappa, norm)
    return Gap(objective, judge(Z, epsilon, kappa, norm).dual_objective, lam)


def judge(
    Z: Matrix, epsilon: float, kappa: float, norm: TransportNorm, tol: float = 1e-9
) -> Result:
    """A certified solution of (A): by the exact solver, or for a new norm by LP-ADMM."""
    check("epsilon", epsilon, least=0.0, strict=True)
    if norm.name not in NORMS:
        return sound(Z, epsilon=epsilon, kappa=kappa, norm=norm, tol=max(tol, 1e-7))
    # The margins do not change if rows change sign together with their labels; two are needed.
    y = np.where(np.arange(Z.shape[0]) % 2 == 0, 1.0, -1.0)
    ball = Ball(epsilon, kappa, norm=norm.name, feature_costs=None)
    return solve(signed(Z, y), y, ball, fit_intercept=False, tol=tol)


def with_fields(kind: type[Result], known: Result, **found: Any) -> Any:
    """A result of another kind, with another point and the gap of that."""
    found["gap"] = found["objective"] - known.dual_objective
    return kind(**{field.name: getattr(known, field.name) for field in fields(known)} | found)
