"""Problem (A) as a smooth nonlinear program for IPOPT, through casadi: the paper's baseline.

    minimise    ελ + Σ w_i t_i    over β, b, λ, t
    subject to  h(u_i) ≤ t_i,   h(-u_i) - κλ ≤ t_i,   ‖β/c‖_* ≤ λ,   u_i = y_i (x_i·β + b)

This is what YALMIP handed to IPOPT in the paper's experiments.  It is here to be compared
with, not to be used: a general method that is told nothing of the structure.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp

from ...dual.certify import certify
from ...dual.pair import parts
from ...problem.problem import Problem
from ...problem.result import Monitor, Result, Solution, Status
from ...rows.arrays import FloatArray, Matrix
from .conic import signed_rows

#: What IPOPT says, and what it means here; every status not listed is a failure.
_STATUSES = {
    "Solve_Succeeded": Status.OPTIMAL,
    "Solved_To_Acceptable_Level": Status.STALLED,
    "Search_Direction_Becomes_Too_Small": Status.STALLED,
    "Maximum_Iterations_Exceeded": Status.MAX_ITER,
}


def ipopt(
    problem: Problem,
    *,
    tol: float,
    monitor: Monitor,
    max_iter: int = 3000,
    start: Result | None = None,
) -> Solution:
    """Solve (A) with IPOPT.

    Parameters
    ----------
    problem : Problem
        Any instance of (P) whose rows are in the memory of this process.
    tol : float
        Wanted duality gap.
    monitor : Monitor
        Told once, at the end.
    max_iter : int
        Limit on IPOPT's iterations.
    start : Result, optional
        Where to start from; by default at β = 0, λ = 1.

    Returns
    -------
    Solution
        With the flip shares from IPOPT's multipliers.
    """
    ca = _import_casadi()
    Z, weights = signed_rows(problem)
    present = weights > 0.0  # the others would leave their t without an upper bound
    Z, mass = Z[present], weights[present]

    program, flips = _program(ca, problem, Z, mass)
    # IPOPT stops on the complementarity of one constraint; the gap is the sum over all.
    options = {
        "print_time": False,
        "error_on_fail": False,
        "ipopt": {
            "print_level": 0,
            "sb": "yes",
            "max_iter": max_iter,
            "bound_relax_factor": 0.0,
            "tol": max(tol / mass.size, 1e-12),
        },
    }
    solver = ca.nlpsol("drlogit", "ipopt", program, options)

    first = np.zeros(program["x"].numel())
    n = Z.shape[1]
    first[:n] = problem.join(start.coef, start.intercept) if start is not None else 0.0
    first[n] = start.lam if start is not None else 1.0
    first[n + 1 : n + 1 + mass.size] = np.logaddexp(0.0, -(Z @ first[:n])) + 1.0
    lowest = np.full(first.size, -np.inf)
    lowest[n] = 0.0
    answer = solver(x0=first, lbx=lowest, ubg=0.0)
    stats = solver.stats()

    status = _STATUSES.get(stats["return_status"], Status.FAILED)
    coefficients = np.array(answer["x"]).ravel()[:n]
    shares = np.zeros(weights.size)
    if not np.isfinite(coefficients).all():
        coefficients, status = np.zeros(n), Status.FAILED
    elif flips:
        multipliers = np.array(answer["lam_g"]).ravel()[: mass.size]
        shares[present] = np.clip(multipliers / mass, 0.0, 1.0)
    flip_share = problem.rows.scatter(shares)
    certificate = certify(problem, coefficients, flip_share=flip_share, tol=tol)
    n_iter = int(stats["iter_count"])
    monitor.report(n_iter, certificate.primal, certificate.dual, certificate.lam)
    s, a = parts(problem, certificate.point)
    return Solution(
        coefficients=coefficients,
        status=status,
        n_iter=n_iter,
        flip_share=a,
        s=s,
        info={"ipopt_status": stats["return_status"]},
    )


def _program(ca: Any, problem: Problem, Z: Matrix, mass: FloatArray) -> tuple[dict[str, Any], bool]:
    """(A) with unknowns ``(v, λ, t, …)`` and constraints ``≤ 0``; whether labels flip in it.

    If they do, the first constraints are the ones with multipliers ``w_i a_i``.
    """
    v, lam, t = ca.MX.sym("v", Z.shape[1]), ca.MX.sym("lam"), ca.MX.sym("t", mass.size)
    u = ca.mtimes(ca.DM(sp.csc_matrix(Z)), v)
    loss = _log_loss(ca, u)
    ball, extra = _norm_ball(ca, problem, v, lam)
    constraints = [loss - t, *ball]
    # At ε = 0 a solution takes λ so large that flips do not pay.
    flips = math.isfinite(problem.kappa) and problem.epsilon > 0.0
    if flips:
        constraints.insert(0, loss + u - problem.kappa * lam - t)  # h(-u) = h(u) + u
    program = {
        "x": ca.vertcat(v, lam, t, extra),
        "f": problem.epsilon * lam + ca.dot(ca.DM(mass), t),
        "g": ca.vertcat(*constraints),
    }
    return program, flips


def _log_loss(ca: Any, u: Any) -> Any:
    """``h(u) = log(1 + e^{-|u|}) + max(-u, 0)``: no overflow anywhere.

    Branches instead of ``fabs`` and ``fmax``, because casadi differentiates those two at 0 as
    the mean of both sides, wrong for their sum, and 0 is where every margin starts.
    """
    positive = u > 0.0
    return ca.log1p(ca.exp(ca.if_else(positive, -u, u))) - ca.if_else(positive, 0.0, u)


def _norm_ball(ca: Any, problem: Problem, v: Any, lam: Any) -> tuple[list[Any], Any]:
    """``‖β/c‖_* ≤ λ`` as smooth constraints ``≤ 0``, and the variables they need."""
    kept = np.flatnonzero(problem.penalised)
    none = ca.MX(0, 1)
    if kept.size == 0:
        return [], none
    scaled = v[kept.tolist()] / ca.DM(problem.costs[kept])
    if problem.norm.name == "l1":
        return [scaled - lam, -scaled - lam], none
    if problem.norm.name == "l2":
        return [ca.sumsqr(scaled) / lam - lam], none
    bounds = ca.MX.sym("bounds", kept.size)
    return [scaled - bounds, -scaled - bounds, ca.sum1(bounds) - lam], bounds


def _import_casadi() -> Any:
    try:
        import casadi
    except ImportError as error:
        raise ImportError("solver='ipopt' needs casadi: pip install 'drlogit[conic]'") from error
    return casadi
