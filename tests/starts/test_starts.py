"""Starts from earlier results: their own problem costs nothing, others are no harm."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from benchmarks import stated

import zoo
from drlogit.fitting.solving import solve_problem
from drlogit.starts.start import start_from

pytestmark = pytest.mark.slow

CASES = [("l1", 1.0), ("l1", math.inf), ("l2", 1.0), ("l2", math.inf), ("linf", 1.0), ("linf", 0.3)]


@pytest.mark.parametrize(("norm", "kappa"), CASES)
@pytest.mark.parametrize("immovable", [False, True])
def test_its_own_solution_takes_no_iteration(norm, kappa, immovable):
    X, y = zoo.logistic_data()
    costs = np.ones(X.shape[1])
    costs[[1, 5]] = np.inf if immovable else 1.0
    options = {"epsilon": 0.03, "kappa": kappa, "norm": norm, "feature_costs": costs}
    first = stated.solve(X, y, **options)
    again = stated.solve(X, y, start=first, **options)
    assert (again.n_iter, again.info["grams"]) == (0, 0)
    assert again.converged
    np.testing.assert_array_equal(again.coef, first.coef)


@pytest.mark.parametrize(
    ("before", "after", "change"),
    [
        (1, 1, {"epsilon": 0.025}),
        (1, 1, {"kappa": 1.2}),
        (1, 1, {"norm": "l2"}),
        (1, 1, {"sample_weight": np.random.default_rng(2).poisson(1.0, 2000) + 0.01}),
        (1, 2, {}),  # a start of more samples
        (2, 1, {}),
    ],
)
def test_starts_from_other_problems_lead_to_the_same_answer(before, after, change):
    X, y = zoo.logistic_data()
    ball = {"epsilon": 0.03, "kappa": 1.0}
    start = stated.solve(X[::before], y[::before], **ball)
    other = ball | change
    cold, warm = (
        stated.solve(X[::after], y[::after], start=each, **other) for each in (None, start)
    )
    assert warm.gap <= 1e-6
    assert abs(warm.objective - cold.objective) <= 1e-6


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_columns_that_are_empty_in_a_fold_do_not_stay_where_the_start_has_them(norm):
    X, y = zoo.logistic_data()
    X[:, 3] = 0.0
    X[1000:, 3] = 4.0 * y[1000:]
    options = {"epsilon": 0.03, "kappa": 1.0, "norm": norm}
    start = stated.solve(X, y, **options)
    assert abs(start.coef[3]) > 0.1
    found = stated.solve(X[:1000], y[:1000], start=start, **options)
    assert found.converged
    assert abs(found.coef[3]) <= 1e-9


SPOILT = {
    "far": lambda coef, lam: (50.0 * np.random.default_rng(3).standard_normal(coef.size), lam),
    "wrong": lambda coef, lam: (-coef, lam),
    "zero": lambda coef, lam: (0.0 * coef, 0.0),
    "nan": lambda coef, lam: (np.nan * coef, lam),
    "lam": lambda coef, lam: (coef, 1e6 * lam),
}


@pytest.mark.parametrize("how", SPOILT)
@pytest.mark.parametrize("kappa", [1.0, math.inf])
@pytest.mark.parametrize("epsilon", [0.02, 0.0])
def test_a_bad_start_does_no_harm(how, kappa, epsilon):
    X, y = zoo.logistic_data()
    problem = stated.problem(X, y, epsilon=epsilon, kappa=kappa)
    first = solve_problem(problem.with_radius(0.04))
    coef, lam = SPOILT[how](first.coef, first.lam)
    assert solve_problem(problem, start=replace(first, coef=coef, lam=lam)).gap <= 1e-6


def test_copies_sparse_and_mapped_rows_start_alike():
    X, y = zoo.logistic_data(1500)
    X[np.abs(X) < 0.8] = 0.0
    X, y = np.concatenate([X, X[:1000]]), np.concatenate([y, y[:1000]])  # copies are merged
    first = stated.solve(X, y, epsilon=0.03, kappa=1.0)
    reference = stated.solve(X, y, epsilon=0.027, kappa=1.0, tol=1e-9)
    for matrix in (X, sp.csr_array(X), zoo.mapped(X)):
        result = stated.solve(matrix, y, epsilon=0.027, kappa=1.0, start=first)
        assert reference.dual_objective - 1e-9 <= result.objective <= reference.objective + 1e-6


def test_max_iter_holds_with_a_start():
    X, y = zoo.logistic_data()
    first = stated.solve(X, y, epsilon=0.3, kappa=1.0)
    result = stated.solve(X, y, epsilon=0.01, kappa=1.0, start=first, max_iter=2)
    assert result.n_iter <= 2


def test_distances():
    X, y = zoo.logistic_data(1000)
    result = stated.solve(X, y, epsilon=0.03, kappa=1.0)
    problem = stated.problem(X, y, epsilon=0.03, kappa=1.0)
    near, far = (start_from(problem.with_radius(e), result) for e in (0.031, 0.06))
    assert 0.0 < near.distance < far.distance
    above = stated.solve(X, y, epsilon=0.06, kappa=1.0)
    excess = problem.with_radius(0.06).objective(far.model, far.lam) - above.objective
    assert excess <= far.distance
    # Of other samples it is known no better than their number allows.
    other = start_from(problem, replace(result, dual=None))
    assert other.sampled
    assert other.distance >= X.shape[1] / 1000


def test_levels_that_lost_their_weight_since_the_start():
    """Samples without weight may be at "none" where nobody else is."""
    rng = np.random.default_rng(0)
    level = rng.integers(0, 4, 40)
    X = np.column_stack([np.eye(4)[level][:, :3], rng.standard_normal(40)])
    y = X[:, 0] + X[:, 3] + rng.logistic(size=40) > 0.0
    options = {"epsilon": 0.05, "categories": [[0, 1, 2]]}
    start = stated.solve(X, y, **options)
    weights = np.where(level == 3, 0.0, 1.0)
    found = stated.solve(X, y, **options, sample_weight=weights, start=start)
    exact = stated.solve(X[level < 3], y[level < 3], **options, tol=1e-9)
    assert found.converged
    assert found.objective == pytest.approx(exact.objective, abs=1e-6)
