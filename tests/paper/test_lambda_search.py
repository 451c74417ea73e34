"""The search over λ: both searches certify (P), within the bracket, for few subproblems."""

from __future__ import annotations

import math
import os

import numpy as np
import pytest
from benchmarks.paper import datasets

from drlogit.datasets import make_synthetic
from drlogit.paper import dispatch
from drlogit.problem.problem import build_problem
from drlogit.problem.result import Status
from zoo import NORM_NAMES, ZOO, planted

pytestmark = pytest.mark.slow

SEARCHES = ("derivative", "golden")

needs_data = pytest.mark.skipif(
    not os.environ.get("DRLOGIT_DATA"),
    reason="DRLOGIT_DATA is not set: it names a folder with the real data sets",
)


def solve(X, y, **options):
    return dispatch.solve(X, y, solver="lp-admm", **options)


#: What takes projected gradients, the one inner solver of the ℓ1 ball, too long.
SLOW = ("wide-linf", "separable-linf-tiny")


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("case", ZOO, ids=repr)
def test_zoo_is_certified(case, search):
    if case.name.startswith(SLOW) or (search == "golden" and "tiny" in case.name):
        return  # golden: thousands of iterations at a λ that the other search does not go near
    tol = 1e-6 if search == "derivative" else 1e-5
    result = solve(case.X, case.y, tol=tol, lambda_search=search, **case.options)
    assert result.status is Status.OPTIMAL
    assert result.gap <= tol
    assert np.isfinite(result.coef).all()
    bound = case.build().lambda_upper_bound
    assert all(0.0 < lam < bound for lam in result.info.get("lambdas", []))


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("norm", NORM_NAMES)
@pytest.mark.parametrize("kappa", [0.5, math.inf])
def test_planted_solutions_are_found(search, norm, kappa):
    case = planted(0, norm=norm, kappa=kappa, weighted=True, costs=True)
    tol = 1e-9 if search == "derivative" else 1e-7
    result = solve(case.X, case.y, tol=tol, lambda_search=search, **case.options)
    assert result.objective == pytest.approx(case.objective, abs=tol)
    assert result.dual_objective <= case.objective + 1e-12
    assert result.lam == pytest.approx(case.lam, rel=2e-2 if search == "derivative" else 0.1)


def test_golden_section_makes_one_new_subproblem_per_step():
    X, y = make_synthetic(300, 10, random_state=1)[:2]
    result = solve(X, y, epsilon=0.02, kappa=1.0, lambda_search="golden", tol=1e-8)
    distinct = result.info["lambdas"]
    assert len(set(distinct)) == len(distinct)
    top = 0.2785 / 0.02
    ratio = 0.5 * (math.sqrt(5.0) - 1.0)
    assert distinct[:2] == pytest.approx([(1.0 - ratio) * top, ratio * top], rel=1e-3)
    # Every new λ divides the bracket of some earlier ones in the golden ratio.
    for k in range(2, len(distinct)):
        known = [
            0.0,
            build_problem(X, y, epsilon=0.02, kappa=1.0).lambda_upper_bound,
            *distinct[:k],
        ]
        cuts = [
            a + share * (b - a)
            for a in known for b in known if a < b for share in (ratio, 1.0 - ratio)
        ]  # fmt: skip
        assert min(abs(distinct[k] - cut) for cut in cuts) < 1e-9 * top


@pytest.mark.parametrize("kappa", [0.5, math.inf])
def test_zero_radius_is_plain_logistic_regression(kappa):
    linear_model = pytest.importorskip("sklearn.linear_model")
    X, y = make_synthetic(200, 4, random_state=2)[:2]
    result = solve(X, y, epsilon=0.0, kappa=kappa, tol=1e-9)
    assert result.converged
    plain = linear_model.LogisticRegression(C=np.inf, tol=1e-10).fit(X, y)
    np.testing.assert_allclose(result.coef, plain.coef_[0], atol=1e-4)
    assert result.intercept == pytest.approx(plain.intercept_[0], abs=1e-4)


@pytest.mark.parametrize("search", SEARCHES)
def test_iteration_limit_and_callback(search):
    X, y = make_synthetic(100, 5, random_state=7)[:2]
    options = {"epsilon": 0.05, "kappa": 0.5, "tol": 1e-12, "lambda_search": search}
    for limit in (1, 5, 25):
        limited = solve(X, y, max_iter=limit, **options)
        assert limited.status is Status.MAX_ITER
        assert limited.n_iter >= limit
        assert limited.n_iter <= limit + 10
        assert limited.gap < 1.0
    seen = []
    stopped = solve(X, y, callback=lambda it: seen.append(it) or len(seen) == 4, **options)
    assert stopped.status is Status.STOPPED
    assert all(it.dual_objective <= it.objective for it in seen)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"lambda_search": "bisection"}, "lambda_search must be one of 'derivative', 'golden'"),
        ({"inner": "simplex"}, "inner must be one of"),
    ],
)
def test_options_are_checked(option, message):
    X, y = make_synthetic(20, 3, random_state=0)[:2]
    with pytest.raises(ValueError, match=message):
        solve(X, y, epsilon=0.1, kappa=1.0, **option)


@needs_data
@pytest.mark.parametrize(
    ("name", "objective", "lam"),
    [("a1a", 0.584536, 1.447), ("a5a", 0.592549, 1.396), ("mushrooms", 0.329466, 2.192)],
)
@pytest.mark.parametrize("search", SEARCHES)
def test_real_data(search, name, objective, lam):
    X, y = datasets.load(name)
    options = {"epsilon": 0.1, "kappa": 1.0, "fit_intercept": False, "lambda_search": search}
    result = solve(X, y, tol=1e-6, **options)
    assert result.converged
    assert result.objective == pytest.approx(objective, abs=2e-6)
    assert result.lam == pytest.approx(lam, abs=5e-3)
