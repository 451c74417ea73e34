"""LP-ADMM for the fixed-λ problem (B): certified everywhere, and honest where it is not."""

from __future__ import annotations

import math
from itertools import islice

import numpy as np
import pytest

from drlogit.datasets import make_synthetic
from drlogit.paper import dispatch
from drlogit.paper.admm import BetaStep, first_point
from drlogit.paper.ball_qp import INNER_SOLVERS
from drlogit.paper.fixed_lambda import cut_of
from drlogit.paper.lp_admm import lp_admm_iteration
from drlogit.problem.problem import build_problem
from drlogit.problem.result import Status
from zoo import FIXED, NORM_NAMES

pytestmark = pytest.mark.slow


def subproblem(X, y, **options):
    return dispatch.solve_subproblem(X, y, solver="lp-admm", **options)


@pytest.mark.parametrize(("norm", "inner"), [(n, i) for n in NORM_NAMES for i in INNER_SOLVERS[n]])
def test_inner_solvers_lead_to_the_same_place(norm, inner):
    X, y = make_synthetic(100, 6, random_state=4)[:2]
    options = {"lam": 0.3, "epsilon": 0.05, "kappa": 0.5, "norm": norm, "tol": 1e-7}
    auto = subproblem(X, y, **options)
    result = subproblem(X, y, inner=inner, **options)
    assert result.converged
    assert result.objective == pytest.approx(auto.objective, abs=2e-7)


@pytest.mark.parametrize("case", FIXED[::7], ids=repr)
def test_warm_start_takes_fewer_iterations(case):
    problem = case.build()
    lam = 1.0 / np.linalg.norm(problem.rows.column_scale[problem.penalised])
    lam, options = min(lam, 0.5 * problem.lambda_upper_bound), {"tol": 1e-7, **case.options}
    cold = subproblem(case.X, case.y, lam=lam, **options)
    copies = cold.coef.copy(), cold.flip_share.copy()
    warm = subproblem(case.X, case.y, lam=lam, start=cold, **options)
    assert warm.converged
    assert warm.n_iter < cold.n_iter
    np.testing.assert_array_equal(cold.coef, copies[0])
    np.testing.assert_array_equal(cold.flip_share, copies[1])


# --- cuts -----------------------------------------------------------------------------------


@pytest.mark.parametrize("norm", NORM_NAMES)
@pytest.mark.parametrize(("kappa", "intercept"), [(0.4, True), (0.4, False), (math.inf, True)])
def test_every_cut_is_below_every_value(norm, kappa, intercept):
    X, y = make_synthetic(60, 4, random_state=9)[:2]
    options = {"epsilon": 0.03, "kappa": kappa, "norm": norm, "fit_intercept": intercept}
    problem = build_problem(3.0 * X, y, **options)
    values = {
        lam: subproblem(3.0 * X, y, lam=lam, tol=1e-9, **options).objective
        for lam in (0.02, 0.2, 0.5, 1.5)
    }
    steps = lp_admm_iteration(problem, 0.5, first_point(problem, None), BetaStep.build(problem))
    cuts = [cut_of(problem, 0.5, step) for step in islice(steps, 300)]
    assert sum(cut.valid for cut in cuts) > 200
    for cut in cuts:
        for lam, value in values.items():
            assert cut.at(lam) <= value + 1e-12
    # ... and near the end it is the tangent.
    last = cuts[-1]
    assert last.at(0.5) == pytest.approx(values[0.5], abs=1e-5)
    slope = (
        subproblem(3.0 * X, y, lam=0.501, tol=1e-7, **options).objective
        - subproblem(3.0 * X, y, lam=0.499, tol=1e-7, **options).objective
    ) / 0.002  # known to 1e-4
    assert last.slope == pytest.approx(slope, abs=3e-3)


# --- the penalty ----------------------------------------------------------------------------


def penalties(count, **options):
    X, y = make_synthetic(100, 5, random_state=10)[:2]
    problem = build_problem(0.01 * X, y, epsilon=0.0005, kappa=0.005)
    first = first_point(problem, None, options.pop("rho", None))
    steps = lp_admm_iteration(problem, 1.0, first, BetaStep.build(problem), **options)
    return np.array([step.rho for step in islice(steps, count)])


def test_penalty_of_the_paper_grows_geometrically():
    rho = penalties(30, rho=0.001, gamma=1.05)
    np.testing.assert_allclose(rho, 100 * 0.001 * 1.05 ** np.arange(30))
    assert np.ptp(penalties(30, rho=0.02, gamma=1.0)) == 0.0


def test_residual_rule_of_the_paper_says_nothing_about_optimality():
    X, y = make_synthetic(200, 10, random_state=12)[:2]
    options = {
        "lam": 0.3, "epsilon": 0.05, "kappa": 1.0, "tol": 1e-12,
        "callback": lambda iterate: iterate.extra["residual"] <= 1e-6,
    }  # fmt: skip
    frozen = subproblem(X, y, rho=0.01, gamma=1.3, **options)
    assert frozen.status is Status.STOPPED
    assert frozen.gap > 1e-4
    # With a constant penalty the rule does stop near the optimum.
    assert subproblem(X, y, gamma=1.0, **options).gap <= 1e-6
