"""Problem (A), the conic form of (P), through cvxpy and Clarabel: the reference solver.

    minimise    ελ + Σ w_i t_i    over β, b, λ, t
    subject to  h(u_i) ≤ t_i,   h(-u_i) - κλ ≤ t_i,   ‖β/c‖_* ≤ λ,   u_i = y_i (x_i·β + b)

or the same at fixed λ, problem (B).  Since ``h(-u) = h(u) + u``, the constraints on ``t`` are the
same as ``t = h(u) + r`` with ``r ≥ 0`` and ``r ≥ u - κλ``: half the exponential cones.  Margins are
variables with the equations ``u = Zβ``, so that Z enters the conic data once; where rows are many
and dense, blocks of them see their own copy of β.  Of the ways to write (A) that were measured this
is the fastest: 7 times at (3000, 100) dense, and copies another 5 times at (10000, 100).

The multiplier of the second constraint on ``r`` is ``w_i a_i``: how much of the weight of sample i
the worst case flips.  The matrix has to fit in memory several times.
"""

from __future__ import annotations

import math
import warnings
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ..dual.certify import certify
from ..problem.problem import Problem
from ..problem.result import Monitor, Result, Solution, Status
from ..rows.arrays import FloatArray, Matrix
from ..rows.matrix import density
from .scaled_ball import ScaledBall

#: Rows that share one copy of β, where more than half of the entries are stored.  Between N = 3300
#: and 3400 the factor of a dense problem without copies grows fivefold: as it seems, Clarabel's
#: ordering (AMD) sets columns with that many entries aside and then orders the rest badly.  On w8a,
#: whose rows are short already, copies lose 5 times.
ROWS_PER_COPY = 3000

#: What cvxpy says, and what it means here.  (P) is feasible and bounded below by 0, so
#: "infeasible" and "unbounded" can only be failures; so is every status not listed.
_STATUSES = {
    "optimal": Status.OPTIMAL,
    "optimal_inaccurate": Status.STALLED,
    "user_limit": Status.MAX_ITER,
}

#: cvxpy's names of the norms that bound the coefficients, by transport norm.
_DUAL_NORMS: dict[str, Any] = {"l1": "inf", "l2": 2, "linf": 1}


def conic(
    problem: Problem, *, lam: float | None = None, tol: float, monitor: Monitor,
    max_iter: int | None = None, start: Result | None = None,
) -> Solution:  # fmt: skip
    """Solve (A) jointly in β, b and λ with Clarabel, or (B) at a given ``lam``.

    The rows must be in the memory of this process.  ``monitor`` is told once, at the end: Clarabel
    does not show its iterates.  ``start`` is not used: its interior point cannot start from a given
    point.  The flip shares of the solution are those of Clarabel's multipliers.
    """
    cp = _import_cvxpy()
    Z, weights = signed_rows(problem)
    # A sample of weight zero would leave its t without an upper bound: no interior solution.
    present = weights > 0.0
    if not present.all():
        Z = Z[present]
    kappas = problem.rows.flip_costs(problem.kappa)[present]
    model = _Model.build(cp, problem, Z, weights[present], kappas, lam)
    status, n_iter = model.solve(cp, _clarabel_settings(tol, max_iter))

    coefficients = model.coefficients.value
    shares = np.zeros(weights.size)
    if coefficients is None:
        coefficients, status = np.zeros(problem.costs.size), "failed"
    elif model.flips is not None:
        some = np.flatnonzero(present)[np.isfinite(kappas)]
        shares[some] = np.clip(model.flips.dual_value / weights[some], 0.0, 1.0)
    if lam is not None:
        coefficients = ScaledBall(problem).project(coefficients, lam)
    point = problem.rows.scatter(shares)
    certificate = certify(problem, coefficients, lam=lam, point=point, tol=tol)
    monitor.report(n_iter, certificate.primal, certificate.dual, certificate.lam)
    return Solution(
        coefficients=coefficients,
        status=_STATUSES.get(status, Status.FAILED),
        n_iter=n_iter,
        point=certificate.point,
        info={"cvxpy_status": status},
    )


def signed_rows(problem: Problem) -> tuple[Matrix, FloatArray]:
    """``Z``, rows ``y_i (x_i, 1)`` in double precision, and the weights: all blocks in one."""
    block = problem.rows.together()
    if sp.issparse(block.X):
        Z = sp.diags_array(block.y) @ block.X.astype(np.float64)
        Z = sp.hstack([Z, block.y[:, None]]) if problem.fit_intercept else Z
        return Z.tocsr(), block.weights
    Z = block.y[:, None] * np.asarray(block.X)
    return (np.column_stack([Z, block.y]) if problem.fit_intercept else Z), block.weights


class _Model(NamedTuple):
    """(A) or (B) as cvxpy sees it, with the parts that hold the answer."""

    program: Any
    coefficients: Any
    flips: Any  # the constraint whose multipliers are w_i a_i; None where labels do not flip

    @classmethod
    def build(
        cls, cp: Any, problem: Problem, Z: Matrix, weights: FloatArray, kappas: FloatArray,
        lam: float | None,
    ) -> _Model:  # fmt: skip
        """Write the problem down in units that suit the solver.

        Clarabel's own scaling is bounded, and its tolerances know only one unit.  So columns
        enter with root mean square 1, and λ in the unit of a typical coefficient.
        """
        rms = problem.rows.column_scale
        scales = np.where(rms > 0.0, rms, 1.0)
        Z = Z @ sp.diags_array(1.0 / scales) if sp.issparse(Z) else Z / scales
        v = cp.Variable(scales.size)
        costs = (scales * problem.costs)[problem.penalised]
        unit = problem.kappa if math.isfinite(problem.kappa) else 1.0
        if costs.size:
            unit = float(1.0 / np.median(1.0 / costs))
        scaled_level = cp.Variable() if lam is None else lam * unit
        level = scaled_level / unit
        constraints = _norm_ball(cp, problem, v, scaled_level, unit / costs)
        u = cp.Variable(weights.size)
        constraints += _margin_equations(cp, Z, v, u)
        some = slice(None) if np.isfinite(kappas).all() else np.flatnonzero(np.isfinite(kappas))
        # At ε = 0 a joint solution takes λ so large that flips do not pay.
        if math.isinf(problem.kappa) or (lam is None and problem.epsilon == 0.0):
            loss, flips = cp.logistic(-u), None
        else:
            r = cp.Variable(weights.size)
            loss, flips = cp.logistic(-u) + r, u[some] - kappas[some] * level <= r[some]
            constraints += [r >= 0.0, flips]
        objective = cp.Minimize(problem.epsilon * level + weights @ loss)
        return cls(cp.Problem(objective, constraints), cp.multiply(1.0 / scales, v), flips)

    def solve(self, cp: Any, settings: dict[str, Any]) -> tuple[str, int]:
        """Run Clarabel; cvxpy's status and the number of iterations."""
        with warnings.catch_warnings():
            # "Solution may be inaccurate": the certificate says so in figures.
            warnings.simplefilter("ignore")
            try:
                self.program.solve(solver=cp.CLARABEL, **settings)
            except cp.SolverError:
                return "solver_error", 0
        return str(self.program.status), int(self.program.solver_stats.num_iters or 0)


def _margin_equations(cp: Any, Z: Matrix, v: Any, u: Any) -> list[Any]:
    """``u = Zβ``, at once or with a copy of β for every ``ROWS_PER_COPY`` rows."""
    if Z.shape[0] <= ROWS_PER_COPY or density(Z) <= 0.5:
        return [u == Z @ v]
    equations = []
    for first in range(0, Z.shape[0], ROWS_PER_COPY):
        rows = slice(first, first + ROWS_PER_COPY)
        copy = cp.Variable(v.size)
        equations += [copy == v, u[rows] == Z[rows] @ copy]
    return equations


def _norm_ball(cp: Any, problem: Problem, v: Any, level: Any, factors: FloatArray) -> list[Any]:
    """``‖β/c‖_* ≤ λ``, each side in units of its own: ``factors`` turn v into those of λ."""
    kept = np.flatnonzero(problem.penalised)
    if kept.size == 0:
        return [level >= 0.0] if isinstance(level, cp.Variable) else []
    if isinstance(level, float) and level == 0.0:
        return [v[kept] == 0.0]  # a ball without interior is poison to an interior point
    norm = cp.norm(cp.multiply(factors, v[kept]), _DUAL_NORMS[problem.norm.name])
    return [norm <= level]


def _clarabel_settings(tol: float, max_iter: int | None) -> dict[str, Any]:
    """Tolerances safely below ``tol``, and what was measured to help."""
    # The certified gap comes out between a tenth and ten times the accuracy asked for.
    accuracy = min(1e-8, max(1e-2 * tol, 1e-12))
    limit = {} if max_iter is None else {"max_iter": max_iter}
    return {
        "tol_gap_abs": accuracy,
        "tol_gap_rel": accuracy,
        "tol_feas": accuracy,
        # Hand over the last iterate however early progress ended; the certificate judges it.
        "reduced_tol_gap_abs": 1e-2,
        "reduced_tol_gap_rel": 1e-2,
        "reduced_tol_feas": 1e-2,
        # The default of 0.99 runs into the boundary of the exponential cones and gives up there
        # more often; where it does not, it saves no iterations (33 against 40 on a5a).
        "max_step_fraction": 0.9,
        # Its ordering keeps the factor sparse for longer than that of "faer" (see ROWS_PER_COPY).
        "direct_solve_method": "qdldl",
        **limit,
    }


def _import_cvxpy() -> Any:
    try:
        import clarabel  # noqa: F401
        import cvxpy
    except ImportError as error:
        raise ImportError(
            "solver='conic' needs cvxpy and Clarabel: pip install 'drlogit[conic]'"
        ) from error
    return cvxpy
