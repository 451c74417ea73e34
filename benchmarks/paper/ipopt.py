"""Problem (A) as a smooth nonlinear program for IPOPT, through casadi: the paper's baseline.

    minimise    ελ + (1/N) Σ t_i    over x, λ, t
    subject to  h(u_i) ≤ t_i,   h(-u_i) - κλ ≤ t_i,   -λ ≤ x_j ≤ λ,   u = Zx

This is what YALMIP handed to IPOPT in the paper's experiments: a general method that is told
nothing of the structure.  It shares no code with the library.
"""

from __future__ import annotations

import math
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


def ipopt(Z: Any, epsilon: float, kappa: float, tol: float) -> tuple[float, Any, str, int]:
    """λ, the coefficients, the status and the iterations, from x = 0, λ = 1."""
    import casadi as ca

    N, n = Z.shape
    x, lam, t = ca.MX.sym("x", n), ca.MX.sym("lam"), ca.MX.sym("t", N)
    u = ca.mtimes(ca.DM(sp.csc_matrix(Z)), x)
    loss = log_loss(ca, u)
    program = {
        "x": ca.vertcat(x, lam, t),
        "f": epsilon * lam + ca.sum1(t) / N,
        "g": ca.vertcat(loss - t, loss + u - kappa * lam - t, x - lam, -x - lam),  # h(-u) = h(u)+u
    }
    # IPOPT stops on the complementarity of one constraint; the gap is the sum over all.
    own: dict[str, Any] = {
        "print_level": 0,
        "sb": "yes",
        "max_iter": 3000,
        "bound_relax_factor": 0.0,
    }
    own |= {"max_iter": 3000, "tol": max(tol / N, 1e-12)}
    options: dict[str, Any] = {"print_time": False, "error_on_fail": False, "ipopt": own}
    solver = ca.nlpsol("drlogit", "ipopt", program, options)
    first = np.concatenate([np.zeros(n), [1.0], np.full(N, math.log(2.0) + 1.0)])
    lowest = np.full(first.size, -np.inf)
    lowest[n] = 0.0
    found = np.array(solver(x0=first, lbx=lowest, ubg=0.0)["x"]).ravel()[: n + 1]
    stats = solver.stats()
    status = _STATUSES.get(stats["return_status"], "FAILED")
    if not np.isfinite(found).all():
        found, status = np.zeros(n + 1), "FAILED"
    return float(found[n]), found[:n], status, int(stats["iter_count"])


def log_loss(ca: Any, u: Any) -> Any:
    """``h(u) = log(1 + e^{-|u|}) + max(-u, 0)``: no overflow anywhere.

    Branches instead of ``fabs`` and ``fmax``, because casadi differentiates those two at 0 as
    the mean of both sides, wrong for their sum, and 0 is where every margin starts.
    """
    positive = u > 0.0
    return ca.log1p(ca.exp(ca.if_else(positive, -u, u))) - ca.if_else(positive, 0.0, u)
