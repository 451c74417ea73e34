"""Problem (A) off the shelf, through cvxpy: the reference solver.

    minimise    ελ + (1/N) Σ [h(u_i) + r_i]    over x, λ, u, r
    subject to  r ≥ 0,   r ≥ u - κλ,   ‖x‖_* ≤ λ,   u = Zx

or the same at fixed λ, problem (B).  Since ``h(-u) = h(u) + u``, this is (A) with half of its
exponential cones.  Margins are variables, so that Z enters the conic data once; where rows are many
and dense, blocks of them see their own copy of x.  Of the ways to write (A) that were measured this
is the fastest: 7 times at (3000, 100) dense, and copies another 5 times at (10000, 100).

The solver is Moreau where it is installed, else Clarabel.  The paper's is YALMIP with IPOPT.
"""

from __future__ import annotations

import math
import warnings
from contextlib import suppress
from importlib.util import find_spec
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..problem.result import Result, Status
from ..rows.arrays import Matrix
from .gap import judge, with_fields
from .subproblem import (
    Subproblem,
    check,
    get_norm,
    signed_rows,
    worst_case_loss,
)

#: Rows that share one copy of x, where more than half of the entries are stored.  Between N = 3300
#: and 3400 the factor of a dense problem without copies grows fivefold: as it seems, Clarabel's
#: ordering (AMD) sets columns with that many entries aside and then orders the rest badly.  On w8a,
#: whose rows are short already, copies lose 5 times.
ROWS_PER_COPY = 3000

#: cvxpy's names of the norms that bound the coefficients, by transport norm.
_DUAL_NORMS: dict[str, Any] = {"l1": "inf", "l2": 2, "linf": 1}


def conic(
    X: Matrix,
    y: Any,
    *,
    epsilon: float,
    kappa: float,
    norm: str = "l1",
    lam: float | None = None,
    solver: str | None = None,
    tol: float = 1e-8,
) -> Result:
    """Solve (A), or (B) at a given ``lam``, with a conic solver.

    Parameters
    ----------
    X, y, epsilon, kappa, norm
        As in :func:`~drlogit.paper.framework`; ``norm`` is the name of a norm.
    lam : float, optional
        λ, for problem (B).
    solver : {"MOREAU", "CLARABEL"}, optional
        None for Moreau where it is installed, else Clarabel.
    tol : float
        The accuracy that the solver is asked for.

    Returns
    -------
    Result
        ``solver`` says which one ran, ``info["status"]`` what cvxpy says of it.  The gap is that of
        its coefficients.  For (B), λ is the given one, and the gap, to a bound of (A), is not that
        of (B).
    """
    if find_spec("cvxpy") is None or find_spec("clarabel") is None:
        raise ImportError("paper.conic needs cvxpy and Clarabel: pip install 'drlogit[conic]'")
    import cvxpy as cp

    name = solver or ("MOREAU" if "MOREAU" in cp.installed_solvers() else "CLARABEL")
    if name not in cp.installed_solvers() or name not in ("MOREAU", "CLARABEL"):
        raise ValueError(f"solver must be 'MOREAU' or 'CLARABEL', installed, got {solver!r}")
    check("epsilon", epsilon, least=0.0, strict=True)
    check("tol", tol, least=0.0, strict=True)
    Z, ball = signed_rows(X, y), get_norm(norm)
    # Columns enter with root mean square 1, because the solvers' tolerances know only one unit.
    square = Z.multiply(Z) if sp.issparse(Z) else Z**2
    scales = np.sqrt(np.asarray(square.mean(axis=0)).ravel())
    scales[scales == 0.0] = 1.0
    scaled = (Z @ sp.diags_array(1.0 / scales)).tocsr() if sp.issparse(Z) else Z / scales
    v, u = cp.Variable(scales.size), cp.Variable(Z.shape[0])
    unit = float(np.median(scales))  # λ in units of a typical coefficient
    level = cp.Variable(nonneg=True) if lam is None else lam * unit
    inside = cp.norm(cp.multiply(unit / scales, v), _DUAL_NORMS[ball.name]) <= level
    held = [v == 0.0 if lam == 0.0 else inside, *_margin_equations(cp, scaled, v, u)]
    loss = cp.logistic(-u)
    if math.isfinite(kappa):
        r = cp.Variable(Z.shape[0], nonneg=True)
        loss, held = loss + r, [*held, u - (kappa / unit) * level <= r]
    program = cp.Problem(cp.Minimize((epsilon / unit) * level + cp.sum(loss) / Z.shape[0]), held)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "may be inaccurate": the gap says so in figures
        with suppress(cp.SolverError):
            program.solve(solver=name, **_settings(name, tol))
    known = judge(Z, epsilon, kappa, ball)
    x, said = np.zeros(scales.size), str(program.status)
    status, iterations = Status.FAILED, 0
    if v.value is not None:
        x, iterations = v.value / scales, int(program.solver_stats.num_iters or 0)
        status = Status.OPTIMAL if said == "optimal" else Status.STALLED
    if lam is None:
        objective, at = worst_case_loss(Z, x, epsilon, kappa, ball)
    else:
        x, at = ball.project(x, lam), lam
        objective = epsilon * lam + Subproblem(Z, lam, kappa, ball).F(Z @ x)
    result: Result = with_fields(
        Result,
        known,
        coef=x,
        lam=at,
        objective=objective,
        status=status,
        n_iter=iterations,
        solver=name.lower(),
        info={"status": said},
    )
    return result


def _margin_equations(cp: Any, Z: Matrix, v: Any, u: Any) -> list[Any]:
    """``u = Zx``, at once or with a copy of x for every ``ROWS_PER_COPY`` rows."""
    stored = Z.nnz if sp.issparse(Z) else np.count_nonzero(Z)
    if Z.shape[0] <= ROWS_PER_COPY or stored <= 0.5 * Z.shape[0] * Z.shape[1]:
        return [u == Z @ v]
    equations = []
    for first in range(0, Z.shape[0], ROWS_PER_COPY):
        rows = slice(first, first + ROWS_PER_COPY)
        copy = cp.Variable(v.size)
        equations += [copy == v, u[rows] == Z[rows] @ copy]
    return equations


def _settings(name: str, tol: float) -> dict[str, Any]:
    """Tolerances of the solver; the last iterate is handed over however early progress ended."""
    tight = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), tol)
    loose = dict.fromkeys(("reduced_tol_gap_abs", "reduced_tol_gap_rel", "reduced_tol_feas"), 1e-2)
    # The default fraction of 0.99 runs into the boundary of the exponential cones and gives up
    # there more often; where it does not, it saves no iterations (33 against 40 on a5a).
    settings = {**tight, **loose, "max_step_fraction": 0.9}
    if name == "MOREAU":
        return {"ipm_settings": settings, "accept_unknown": True}
    return {**settings, "direct_solve_method": "qdldl"}
