"""Problem (A) as a smooth nonlinear program for IPOPT, through casadi: the paper's baseline.

    minimise    ελ + Σ w_i t_i    over β, b, λ, t
    subject to  h(u_i) ≤ t_i,   h(-u_i) - κλ ≤ t_i,   ‖β/c‖_* ≤ λ,   u_i = y_i (x_i·β + b)

This is what YALMIP handed to IPOPT in the paper's experiments: a general method that is told
nothing of the structure.  It shares no code with the library.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

#: What IPOPT says, and what it means; every status not listed is a failure.
_STATUSES = {
    "Solve_Succeeded": "OPTIMAL",
    "Solved_To_Acceptable_Level": "STALLED",
    "Search_Direction_Becomes_Too_Small": "STALLED",
    "Maximum_Iterations_Exceeded": "MAX_ITER",
}


@dataclass(frozen=True, eq=False)
class Answer:
    """A model, λ, and how IPOPT ended."""

    coef: Any
    intercept: float
    lam: float
    status: str
    n_iter: int


def ipopt(
    X: Any,
    y: Any,
    *,
    epsilon: float,
    kappa: float,
    norm: str = "l1",
    fit_intercept: bool = True,
    feature_costs: Any = None,
    sample_weight: Any = None,
    tol: float = 1e-6,
    max_iter: int = 3000,
) -> Answer:
    """Solve (A) with IPOPT from β = 0, λ = 1; labels are ±1, parameters those of ``solve``."""
    import casadi as ca

    weights = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, dtype=float)
    present = weights > 0.0  # the others would leave their t without an upper bound
    mass = weights[present] / weights.sum()
    ones = np.ones((X.shape[0], int(fit_intercept)))
    Z = sp.csr_matrix(sp.hstack([sp.csr_matrix(X), ones]).multiply(np.asarray(y)[:, None]))[present]
    n = Z.shape[1]
    costs = np.ones(X.shape[1]) if feature_costs is None else np.asarray(feature_costs, dtype=float)

    v, lam, t = ca.MX.sym("v", n), ca.MX.sym("lam"), ca.MX.sym("t", mass.size)
    u = ca.mtimes(ca.DM(sp.csc_matrix(Z)), v)
    loss = log_loss(ca, u)
    ball, extra = _norm_ball(ca, costs, norm, v, lam)
    constraints = [loss - t, *ball]
    if math.isfinite(kappa) and epsilon > 0.0:  # else λ is so large that flips do not pay
        constraints.append(loss + u - kappa * lam - t)  # h(-u) = h(u) + u
    program = {
        "x": ca.vertcat(v, lam, t, extra),
        "f": epsilon * lam + ca.dot(ca.DM(mass), t),
        "g": ca.vertcat(*constraints),
    }
    # IPOPT stops on the complementarity of one constraint; the gap is the sum over all.
    options: Any = {
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
    first[n] = 1.0
    first[n + 1 : n + 1 + mass.size] = math.log(2.0) + 1.0
    lowest = np.full(first.size, -np.inf)
    lowest[n] = 0.0
    found = np.array(solver(x0=first, lbx=lowest, ubg=0.0)["x"]).ravel()[: n + 1]
    stats = solver.stats()
    status = _STATUSES.get(stats["return_status"], "FAILED")
    if not np.isfinite(found).all():
        found, status = np.zeros(n + 1), "FAILED"
    intercept = float(found[X.shape[1]]) if fit_intercept else 0.0
    return Answer(found[: X.shape[1]], intercept, float(found[n]), status, int(stats["iter_count"]))


def log_loss(ca: Any, u: Any) -> Any:
    """``h(u) = log(1 + e^{-|u|}) + max(-u, 0)``: no overflow anywhere.

    Branches instead of ``fabs`` and ``fmax``, because casadi differentiates those two at 0 as
    the mean of both sides, wrong for their sum, and 0 is where every margin starts.
    """
    positive = u > 0.0
    return ca.log1p(ca.exp(ca.if_else(positive, -u, u))) - ca.if_else(positive, 0.0, u)


def _norm_ball(ca: Any, costs: Any, norm: str, v: Any, lam: Any) -> tuple[list[Any], Any]:
    """``‖β/c‖_* ≤ λ`` as smooth constraints ``≤ 0``, and the variables they need."""
    kept = np.flatnonzero(np.isfinite(costs))
    none = ca.MX(0, 1)
    if kept.size == 0:
        return [], none
    scaled = v[kept.tolist()] / ca.DM(costs[kept])
    if norm == "l1":
        return [scaled - lam, -scaled - lam], none
    if norm == "l2":
        return [ca.sumsqr(scaled) / lam - lam], none
    bounds = ca.MX.sym("bounds", kept.size)
    return [scaled - bounds, -scaled - bounds, ca.sum1(bounds) - lam], bounds
