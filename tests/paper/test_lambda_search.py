"""The search over λ: both searches certify (P), within the bracket, for few subproblems."""

from __future__ import annotations

import math
import os

import numpy as np
import pytest
import sklearn
from benchmarks.paper import datasets

import drlogit
from drlogit.datasets import make_synthetic
from drlogit.paper import probes
from drlogit.paper.admm import first_point
from drlogit.paper.beta_step import BetaStep
from drlogit.paper.cuts import Cut
from drlogit.paper.lambda_search import lambda_search, margin_scale
from drlogit.paper.probes import LambdaSearch
from drlogit.problem.problem import build_problem
from drlogit.problem.result import Monitor, Status
from zoo import NORM_NAMES, ZOO, planted

SEARCHES = ("derivative", "golden")

needs_data = pytest.mark.skipif(
    not os.environ.get("DRLOGIT_DATA"),
    reason="DRLOGIT_DATA is not set: it names a folder with the real data sets",
)


def solve(X, y, **options):
    return drlogit.solve(X, y, solver="lp-admm", **options)


@pytest.mark.parametrize("case", ZOO, ids=repr)
def test_zoo_is_certified(case):
    result = solve(case.X, case.y, tol=1e-6, **case.options)
    assert result.status is Status.OPTIMAL
    assert result.gap <= 1e-6
    assert np.isfinite(result.coef).all()


@pytest.mark.parametrize("case", ZOO[::2], ids=repr)
def test_zoo_is_certified_by_golden_section(case):
    if "tiny" in case.name:
        return  # thousands of iterations at a λ that the other search does not go near
    result = solve(case.X, case.y, tol=1e-5, lambda_search="golden", **case.options)
    assert result.status is Status.OPTIMAL
    assert result.gap <= 1e-5
    bound = case.build().lambda_upper_bound
    assert all(0.0 < lam < bound for lam in result.info.get("lambdas", []))


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("norm", NORM_NAMES)
@pytest.mark.parametrize("kappa", [0.5, math.inf])
@pytest.mark.parametrize("seed", [0, 1])
def test_planted_solutions_are_found(search, norm, kappa, seed):
    case = planted(seed, norm=norm, kappa=kappa, weighted=True, costs=True)
    result = solve(case.X, case.y, tol=1e-9, lambda_search=search, **case.options)
    assert result.objective == pytest.approx(case.objective, abs=1e-9)
    assert result.dual_objective <= case.objective + 1e-12
    assert result.lam == pytest.approx(case.lam, rel=2e-2)


@pytest.mark.parametrize("case", ZOO[::5], ids=repr)
def test_searches_agree_with_the_conic_solver(case):
    pytest.importorskip("clarabel")
    if "tiny" in case.name:
        return
    theirs = drlogit.solve(case.X, case.y, solver="conic", tol=1e-7, **case.options)
    for search in SEARCHES:
        ours = solve(case.X, case.y, tol=1e-7, lambda_search=search, **case.options)
        assert ours.objective == pytest.approx(theirs.objective, abs=3e-7)


def test_derivative_search_needs_fewer_subproblems():
    totals = dict.fromkeys(SEARCHES, 0)
    for seed in range(4):
        X, y = make_synthetic(300, 10, random_state=seed)[:2]
        for search in SEARCHES:
            result = solve(
                X, y, epsilon=0.05, kappa=1.0, fit_intercept=False, lambda_search=search, tol=1e-7
            )
            assert result.converged
            assert result.info["n_subproblems"] == len(result.info["lambdas"])
            totals[search] += result.info["n_subproblems"]
    assert totals["derivative"] < 0.6 * totals["golden"]


def test_golden_section_makes_one_new_subproblem_per_step():
    X, y = make_synthetic(300, 10, random_state=1)[:2]
    result = solve(X, y, epsilon=0.02, kappa=1.0, lambda_search="golden", tol=1e-8)
    lambdas = result.info["lambdas"]
    distinct = list(dict.fromkeys(lambdas))  # refining visits an old λ again
    top = 0.2785 / 0.02
    ratio = 0.5 * (math.sqrt(5.0) - 1.0)
    assert distinct[:2] == pytest.approx([(1.0 - ratio) * top, ratio * top], rel=1e-3)
    # Every new λ divides the bracket of some earlier ones in the golden ratio.
    for k in range(2, len(distinct)):
        known = [0.0, result_bound(X, y, 0.02), *distinct[:k]]
        cuts = [
            a + share * (b - a)
            for a in known for b in known if a < b for share in (ratio, 1.0 - ratio)
        ]  # fmt: skip
        assert min(abs(distinct[k] - cut) for cut in cuts) < 1e-9 * top


def result_bound(X, y, epsilon):
    return build_problem(X, y, epsilon=epsilon, kappa=1.0).lambda_upper_bound


def test_bracket_holds_the_best_lambda_all_along(monkeypatch):
    seen = []
    original = LambdaSearch.probe

    def probe(self, *arguments):
        result = original(self, *arguments)
        seen.append((self.bracket(), self.lower, self.best))
        return result

    monkeypatch.setattr(LambdaSearch, "probe", probe)
    for search in SEARCHES:
        for seed in range(3):
            case = planted(seed, norm="l1", kappa=0.7)
            seen.clear()
            solve(case.X, case.y, tol=1e-8, lambda_search=search, **case.options)
            assert seen
            for (low, high), lower, best in seen:
                assert low <= case.lam * (1.0 + 1e-9)
                assert high >= case.lam * (1.0 - 1e-9)
                assert lower <= case.objective + 1e-12
                assert best >= case.objective - 1e-12


def test_search_goes_up_in_measured_steps():
    # λ far beyond λ* is expensive: margins are large, and LP-ADMM moves them by one at a time.
    case = next(case for case in ZOO if case.name == "separable-l1-tiny-radius")
    lambdas = solve(case.X, case.y, tol=1e-4, **case.options).info["lambdas"]
    assert len(lambdas) > 2
    for k in range(1, len(lambdas)):
        assert lambdas[k] <= 3.0 * max(lambdas[:k]) * (1.0 + 1e-12)


def test_where_cuts_meet():
    def cut(intercept, slope):
        return Cut(intercept, slope, ())

    meeting = probes._meeting
    share, value = meeting(cut(1.0, -0.5), cut(0.0, 0.5), 10.0)
    assert (share, value) == (0.5, 0.5)
    # Beyond the range of λ the lower end, or the upper one, counts.
    assert meeting(cut(0.0, -0.5), cut(0.2, 0.5), 10.0) == (0.0, 0.2)
    assert meeting(cut(1.0, -0.01), cut(0.0, 0.01), 10.0) == (1.0, 0.9)
    assert meeting(None, None, 10.0)[1] == -math.inf
    assert meeting(None, cut(0.3, 0.1), 10.0)[1] == 0.3
    assert meeting(cut(0.3, -0.1), None, 2.0)[1] == pytest.approx(0.1)


def test_states_are_mixed_block_by_block():
    X, y = make_synthetic(10, 2, random_state=0)[:2]
    problem = build_problem(X, y, epsilon=0.1, kappa=1.0, n_blocks=2)
    one = tuple((np.full(5, 1.0), np.full(5, 2.0)) for _ in range(2))
    other = tuple((np.full(5, 3.0), np.full(5, 6.0)) for _ in range(2))
    for mu, v in probes.mixed(problem, one, other, 0.25):
        np.testing.assert_allclose(mu, 2.5)
        np.testing.assert_allclose(v, 5.0)


# --- the ends of the range ------------------------------------------------------------------


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("norm", NORM_NAMES)
def test_large_radius_gives_the_constant_model(search, norm):
    X, y = make_synthetic(100, 5, random_state=0)[:2]
    result = solve(
        X, y, epsilon=5.0, kappa=1.0, norm=norm, fit_intercept=False, lambda_search=search
    )
    assert result.converged
    assert result.objective == pytest.approx(math.log(2.0), abs=1e-6)
    assert result.lam < 1e-3


@pytest.mark.parametrize("kappa", [0.5, math.inf])
def test_zero_radius_is_plain_logistic_regression(kappa):
    linear_model = pytest.importorskip("sklearn.linear_model")
    X, y = make_synthetic(200, 4, random_state=2)[:2]
    result = solve(X, y, epsilon=0.0, kappa=kappa, tol=1e-9)
    assert result.converged
    plain = linear_model.LogisticRegression(C=np.inf, tol=1e-10).fit(X, y)
    np.testing.assert_allclose(result.coef, plain.coef_[0], atol=1e-4)
    assert result.intercept == pytest.approx(plain.intercept_[0], abs=1e-4)


def test_l1_penalised_regression_of_scikit_learn():
    linear_model = pytest.importorskip("sklearn.linear_model")
    X, y = make_synthetic(200, 6, random_state=3)[:2]
    epsilon = 0.03
    result = solve(
        X, y, epsilon=epsilon, kappa=math.inf, norm="linf", fit_intercept=False, tol=1e-10
    )
    recent = tuple(map(int, sklearn.__version__.split(".")[:2])) >= (1, 8)
    l1_only = {"l1_ratio": 1.0} if recent else {"penalty": "l1"}
    model = linear_model.LogisticRegression(
        C=1.0 / (200 * epsilon), solver="saga", tol=1e-10, max_iter=20_000, fit_intercept=False,
        **l1_only,
    ).fit(X, y)  # fmt: skip
    np.testing.assert_allclose(result.coef, model.coef_[0], atol=1e-4)


# --- scaling, starts, blocks, how it ends ---------------------------------------------------


def test_scaling_the_data_scales_the_answer():
    X, y = make_synthetic(150, 5, random_state=4)[:2]
    one = solve(X, y, epsilon=0.05, kappa=0.5, tol=1e-8)
    other = solve(100.0 * X, y, epsilon=5.0, kappa=50.0, tol=1e-8)
    assert other.objective == pytest.approx(one.objective, abs=2e-8)
    assert other.n_iter == one.n_iter
    np.testing.assert_allclose(100.0 * other.coef, one.coef, atol=1e-6)


def test_size_of_margins():
    X = np.array([[3.0, 4.0], [-3.0, -4.0], [3.0, 4.0], [-3.0, -4.0]])
    y = [1, -1, 1, -1]
    for norm, expected in (("l1", 7.0), ("l2", 5.0), ("linf", 4.0)):
        problem = build_problem(X, y, epsilon=0.1, kappa=1.0, norm=norm, fit_intercept=False)
        assert margin_scale(problem) == pytest.approx(expected)


@pytest.mark.parametrize("search", SEARCHES)
def test_warm_start_takes_fewer_iterations(search):
    X, y = make_synthetic(300, 8, random_state=5)[:2]
    options = {"kappa": 1.0, "lambda_search": search, "tol": 1e-7}
    cold = solve(X, y, epsilon=0.05, **options)
    warm = solve(X, y, epsilon=0.05, start=cold, **options)
    assert warm.converged
    assert warm.n_iter < cold.n_iter
    if search == "derivative":  # golden section starts from its own two λ
        near = solve(X, y, epsilon=0.051, **options)
        assert solve(X, y, epsilon=0.051, start=cold, **options).n_iter < near.n_iter


def test_cutting_into_blocks_changes_nothing():
    X, y = make_synthetic(100, 5, random_state=6)[:2]
    one, four = (
        lambda_search(
            build_problem(X, y, epsilon=0.05, kappa=0.5, n_blocks=n), tol=1e-7, monitor=Monitor()
        )
        for n in (1, 4)
    )
    assert one.n_iter == four.n_iter
    np.testing.assert_allclose(one.coefficients, four.coefficients, atol=1e-8)


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


def test_paper_rule_may_end_anywhere():
    X, y = make_synthetic(200, 10, random_state=12)[:2]
    options = {"epsilon": 0.05, "kappa": 1.0, "fit_intercept": False, "lambda_search": "golden"}
    paper = solve(X, y, rho=0.01, gamma=1.6, stop="residual", **options)
    assert paper.gap > 1e-5
    assert paper.status is Status.UNPROVEN
    # With a penalty that stays put, the same rule is right, at many times the iterations.
    patient = solve(X, y, gamma=1.0, stop="residual", **options)
    certified = solve(X, y, **options)
    assert patient.gap <= 1e-6
    assert certified.n_iter < 0.2 * patient.n_iter


def test_penalty_starts_afresh_at_each_lambda():
    X, y = make_synthetic(100, 5, random_state=8)[:2]
    problem = build_problem(X, y, epsilon=0.05, kappa=0.5)
    search = LambdaSearch(
        problem, BetaStep.build(problem), 1e-9, Monitor(), 1000, rho=0.7, gamma=1.1
    )
    probe = search.probe(0.5, first_point(problem, None), lambda gap: True)
    assert probe.point.rho == pytest.approx(0.7 * 1.1**9)
    again = search.probe(0.4, probe.point, lambda gap: True)
    assert again.point.rho == pytest.approx(0.7 * 1.1**9)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"lambda_search": "bisection"}, "lambda_search must be one of 'derivative', 'golden'"),
        ({"stop": "residual"}, "stop='residual' needs lambda_search='golden'"),
        ({"stop": "never"}, "stop must be 'gap' or 'residual'"),
        ({"rho": -1.0}, "rho must be finite"),
        ({"gamma": 0.5}, "gamma must be finite"),
        ({"inner": "secular"}, "inner must be one of"),
    ],
)
def test_options_are_checked(option, message):
    X, y = make_synthetic(20, 3, random_state=0)[:2]
    with pytest.raises(ValueError, match=message):
        solve(X, y, epsilon=0.1, kappa=1.0, **option)


# --- real data ------------------------------------------------------------------------------


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
    # A few hundred iterations and a handful of subproblems, or something has gone wrong.
    assert result.n_iter < 500
    assert result.info["n_subproblems"] <= (8 if search == "derivative" else 16)
