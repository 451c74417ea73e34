"""LP-ADMM and the methods it is compared with, each to a certified gap of its own possibilities."""

from __future__ import annotations

import math
from itertools import islice

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from drlogit.datasets import make_synthetic
from drlogit.paper import dispatch
from drlogit.paper.admm import BetaStep, first_point
from drlogit.paper.pdhg import pdhg_iteration
from drlogit.paper.standard_admm import semismooth_newton, standard_admm_iteration
from drlogit.problem.result import Status
from zoo import FIXED, NORM_NAMES, planted

pytestmark = pytest.mark.slow

#: What each method reaches on any well-scaled small problem in a second or so.
REACH = {
    "lp-admm": 1e-6, "linearized-admm": 1e-6, "standard-admm": 1e-6, "pdhg": 1e-4,
    "subgradient": 3e-2,
}  # fmt: skip

METHODS = list(REACH)


def solve(X, y, method, **options):
    return dispatch.solve_subproblem(X, y, solver=method, **options)


def test_every_method_of_the_paper_is_registered():
    assert set(dispatch.SUBPROBLEM_SOLVERS) == {"conic", *METHODS}


def moderate(case) -> float:
    problem = case.build()
    scale = np.linalg.norm(problem.rows.column_scale[problem.penalised])
    return min(1.0 / max(float(scale), 1e-3), 0.5 * problem.lambda_upper_bound)


#: Gradients of free and penalised coefficients together need columns of like size.
HARD = ("unscaled", "no-radius", "all-free", "tiny-radius")


@pytest.mark.parametrize(
    ("method", "case"),
    [("lp-admm", case) for case in FIXED]
    + [
        (method, case)
        for method in METHODS[1:]
        for case in FIXED[::3]
        if method.endswith("admm") or not any(word in case.name for word in HARD)
    ],
    ids=repr,
)
def test_methods_certify_the_zoo(method, case):
    lam, before = moderate(case), case.y.copy()
    result = solve(case.X, case.y, method, lam=lam, tol=REACH[method], **case.options)
    assert result.status is Status.OPTIMAL
    assert result.gap <= REACH[method]
    assert result.lam == lam
    np.testing.assert_array_equal(case.y, before)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("norm", NORM_NAMES)
@pytest.mark.parametrize("kappa", [0.5, math.inf])
def test_methods_agree(method, norm, kappa):
    X, y = make_synthetic(100, 5, random_state=0)[:2]
    weights = 1.0 + np.arange(100) % 3
    options = {
        "lam": 0.3, "epsilon": 0.05, "kappa": kappa, "norm": norm, "sample_weight": weights,
        "feature_costs": [1.0, 2.0, 0.5, math.inf, 1.0],
    }  # fmt: skip
    reference = solve(X, y, "conic", tol=1e-8, **options)
    result = solve(X, y, method, tol=REACH[method], **options)
    assert result.converged
    assert abs(result.objective - reference.objective) <= REACH[method] + 1e-7
    assert result.dual_objective <= reference.objective


@pytest.mark.parametrize("method", METHODS)
def test_iteration_limit_callback_and_table(method, capsys):
    X, y = make_synthetic(100, 5, random_state=2)[:2]
    options = {"lam": 0.3, "epsilon": 0.05, "kappa": 0.5, "tol": 1e-13}
    limited = solve(X, y, method, max_iter=12, verbose=1, **options)
    assert "lower bound" in capsys.readouterr().out
    assert limited.status is Status.MAX_ITER
    assert limited.n_iter == 12
    assert limited.gap < 0.7
    seen = []
    stopped = solve(X, y, method, callback=lambda it: seen.append(it) or len(seen) == 3, **options)
    assert stopped.status is Status.STOPPED
    assert stopped.n_iter == seen[-1].n_iter
    assert all(it.dual_objective <= it.objective for it in seen)


@pytest.mark.parametrize(
    ("method", "option", "message"),
    [
        ("linearized-admm", {"eta": -1.0}, "eta must be finite and >= 0"),
        ("linearized-admm", {"rho": 0.0}, "rho must be finite and > 0"),
        ("standard-admm", {"sigma": 2.0}, "sigma must be between 0 and 1.618"),
        ("standard-admm", {"rho": math.nan}, "rho must be finite and > 0"),
        ("lp-admm", {"gamma": 0.9}, "gamma must be finite and >= 1"),
        ("lp-admm", {"inner": "cg"}, "inner must be one of 'auto', 'coordinate-newton'"),
        ("lp-admm", {"epsilon": 0.0}, "epsilon must be > 0 for a fixed lam, got 0"),
    ],
)
def test_options_are_checked(method, option, message):
    X, y = make_synthetic(20, 3, random_state=0)[:2]
    with pytest.raises(ValueError, match=message):
        solve(X, y, method, **({"lam": 0.3, "epsilon": 0.05, "kappa": 0.5} | option))
    with pytest.raises(TypeError):
        solve(X, y, method, lam=0.3, epsilon=0.05, kappa=0.5, relaxation=1.5)


# --- standard ADMM: Algorithms 3 and 4 ------------------------------------------------------


@pytest.mark.parametrize("rho", [0.01, 1.0, 300.0])
@pytest.mark.parametrize("kink", [0.0, 0.7, 50.0, math.inf])
def test_semismooth_newton_minimises(rho, kink):
    rng = np.random.default_rng(0)
    u, p, q = 3.0 * rng.standard_normal(50), rng.uniform(-1.5, 1.5, 50), rng.uniform(0, 1, 50)
    y = semismooth_newton(rng.uniform(-50.0, 50.0, 50), u, p, q, rho, kink)

    def objective(i, y, z):
        smooth = np.logaddexp(0.0, -y) + p[i] * y + 0.5 * rho * (y - u[i]) ** 2
        if math.isinf(kink):
            return smooth
        return smooth + max(z, 0.0) + 0.5 * rho * (z - (y - kink + q[i] / rho)) ** 2

    for i in range(50):

        def joint(y, i=i):
            if math.isinf(kink):
                return objective(i, y, 0.0)
            center = y - kink + q[i] / rho
            z = center if center < 0.0 else max(center - 1.0 / rho, 0.0)
            return objective(i, y, z)

        best = minimize_scalar(joint, bracket=(y[i] - 1.0, y[i], y[i] + 1.0), tol=1e-12)
        assert joint(y[i]) <= best.fun + 1e-10 * (1.0 + abs(best.fun))


def test_standard_admm_multipliers_become_the_flip_shares():
    case = planted(4, kappa=0.8, weighted=True)
    problem = case.build()
    steps = standard_admm_iteration(
        problem, case.lam, first_point(problem, None), BetaStep.build(problem), sigma=1.5
    )
    step = list(islice(steps, 2000))[-1]
    _, p, q = step.state[0]
    np.testing.assert_allclose(q, case.flip_share, atol=1e-5)
    u = problem.margins(case.coefficients)[0]
    np.testing.assert_allclose(p, 1.0 / (1.0 + np.exp(u)) - case.flip_share, atol=1e-5)


# --- PDHG and the subgradient method --------------------------------------------------------


def test_pdhg_step_by_step():
    case = planted(7, kappa=0.8, weighted=True, fit_intercept=False)
    problem = case.build()
    (block,) = problem.rows.blocks
    Z, kink = block.y[:, None] * block.X, problem.kappa * case.lam
    beta, u, y = np.zeros(5), np.zeros(block.y.size), np.full(block.y.size, -1.0)
    for step in islice(pdhg_iteration(problem, case.lam, sigma=1.5), 20):
        slope = Z.T @ (block.weights * (0.5 + 0.5 * y - 1.0 / (1.0 + np.exp(u))))
        beta = np.clip(beta - step.rho * slope, -case.lam, case.lam)
        before, u = u, Z @ beta
        y = np.clip(y + 0.75 * (2.0 * u - before - kink), -1.0, 1.0)
        np.testing.assert_allclose(step.beta, beta, atol=1e-12)
        np.testing.assert_allclose(2.0 * step.state[0][0] - 1.0, y, atol=1e-12)
