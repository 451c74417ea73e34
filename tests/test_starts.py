"""Starts from earlier results: what they save, and that a bad one does no harm."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

import drlogit
from drlogit.fitting.solving import solve_problem
from drlogit.problem.problem import build_problem
from drlogit.starts.start import start_from


def data(n_samples=5500, n_features=12, seed=0):
    """Correlated features of different scales, a quarter of them rare, and noisy labels."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_samples, n_features)) @ rng.standard_normal((n_features,) * 2)
    X *= np.geomspace(0.3, 3.0, n_features)
    X[:, ::4] *= rng.random((n_samples, len(range(0, n_features, 4)))) < 0.2
    beta = rng.standard_normal(n_features)
    margin = 1.5 * X @ beta / np.std(X @ beta) + 0.3
    y = np.where(rng.random(n_samples) < 1.0 / (1.0 + np.exp(-margin)), 1, -1)
    return X, y


CASES = [("l1", 1.0), ("l1", math.inf), ("l2", 1.0), ("l2", math.inf), ("linf", 1.0), ("linf", 0.3)]


@pytest.mark.parametrize(("norm", "kappa"), CASES)
def test_its_own_solution_costs_no_gram_matrix(norm, kappa):
    X, y = data()
    first = drlogit.solve(X, y, epsilon=0.03, kappa=kappa, norm=norm)
    again = drlogit.solve(X, y, epsilon=0.03, kappa=kappa, norm=norm, start=first)
    assert (again.n_iter, again.info["grams"]) == (0, 0)
    assert again.converged
    np.testing.assert_array_equal(again.coef, first.coef)
    np.testing.assert_allclose(again.dual.s, first.dual.s, rtol=1e-12)


@pytest.mark.parametrize(("norm", "kappa"), CASES)
def test_a_neighbour_takes_about_one_gram_matrix(norm, kappa):
    X, y = data()
    first = drlogit.solve(X, y, epsilon=0.033, kappa=kappa, norm=norm)
    cold = drlogit.solve(X, y, epsilon=0.03, kappa=kappa, norm=norm)
    warm = drlogit.solve(X, y, epsilon=0.03, kappa=kappa, norm=norm, start=first)
    assert warm.gap <= 1e-6
    assert warm.info["grams"] <= 2.5
    assert warm.info["sample_grams"] == 0.0
    assert abs(warm.objective - cold.objective) <= 1e-6


@pytest.mark.parametrize("change", ["kappa", "weights", "fold", "more", "norm", "intercept"])
def test_starts_from_other_problems_are_worth_something(change):
    X, y = data()
    rng = np.random.default_rng(2)
    given = {"X": X, "y": y, "epsilon": 0.03, "kappa": 1.0}
    other = dict(given)
    if change == "kappa":
        other["kappa"] = 1.2
    elif change == "weights":
        other["sample_weight"] = rng.poisson(1.0, y.size) + 0.01
    elif change == "fold":
        kept = rng.random(y.size) < 0.8
        other.update(X=X[kept], y=y[kept])
    elif change == "more":
        given.update(X=X[::2], y=y[::2])
    elif change == "norm":
        other["norm"] = "l2"
    else:
        given["fit_intercept"] = False
    cold = drlogit.solve(**other)
    warm = drlogit.solve(**other, start=drlogit.solve(**given))
    assert warm.gap <= 1e-6
    assert warm.n_iter <= cold.n_iter + 3
    assert abs(warm.objective - cold.objective) <= 1e-6


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_columns_that_are_empty_in_a_fold_do_not_stay_where_the_start_has_them(norm):
    X, y = data()
    X[:, 3] = 0.0
    X[5000:, 3] = 4.0 * y[5000:]
    options = {"epsilon": 0.03, "kappa": 1.0, "norm": norm}
    start = drlogit.solve(X, y, **options)
    assert abs(start.coef[3]) > 0.1
    found = drlogit.solve(X[:5000], y[:5000], start=start, **options)
    assert found.converged
    assert found.coef[3] == 0.0


def spoilt(result, how):
    rng = np.random.default_rng(3)
    if how == "far":
        return replace(result, coef=50.0 * rng.standard_normal(result.coef.size))
    if how == "wrong":
        return replace(result, coef=-result.coef)
    if how == "zero":
        return replace(result, coef=np.zeros_like(result.coef), lam=0.0)
    if how == "nan":
        return replace(result, coef=np.full_like(result.coef, np.nan))
    return replace(result, lam=1e6 * result.lam, info={})


@pytest.mark.parametrize("how", ["far", "wrong", "zero", "nan", "lam"])
@pytest.mark.parametrize("kappa", [1.0, math.inf])
def test_a_bad_start_is_dropped(how, kappa):
    X, y = data()
    problem = build_problem(X, y, epsilon=0.02, kappa=kappa)
    cold = solve_problem(problem)
    start = spoilt(solve_problem(problem.with_radius(0.04)), how)
    warm = solve_problem(problem, start=start)
    assert warm.gap <= 1e-6
    assert warm.n_iter <= 2 * cold.n_iter + 6


def test_sparse_rows_in_blocks_and_merged_copies_give_the_same_answer():
    X, y = data(6000)
    X[np.abs(X) < 0.8] = 0.0
    X, y = np.concatenate([X, X[:3000]]), np.concatenate([y, y[:3000]])  # copies are merged
    first = drlogit.solve(X, y, epsilon=0.03, kappa=1.0)
    reference = drlogit.solve(X, y, epsilon=0.027, kappa=1.0, tol=1e-9)
    for matrix in (X, sp.csr_array(X), drlogit.RowBlocks.from_array(X, 2333)):
        result = drlogit.solve(matrix, y, epsilon=0.027, kappa=1.0, start=first)
        assert result.info["grams"] <= 2.0
        assert reference.dual_objective - 1e-9 <= result.objective <= reference.objective + 1e-6


def test_immovable_features():
    X, y = data()
    costs = np.ones(X.shape[1])
    costs[[1, 5]] = np.inf
    first = drlogit.solve(X, y, epsilon=0.033, kappa=1.0, feature_costs=costs)
    cold = drlogit.solve(X, y, epsilon=0.03, kappa=1.0, feature_costs=costs)
    warm = drlogit.solve(X, y, epsilon=0.03, kappa=1.0, feature_costs=costs, start=first)
    own = drlogit.solve(X, y, epsilon=0.033, kappa=1.0, feature_costs=costs, start=first)
    assert max(warm.gap, own.gap) <= 1e-6
    assert warm.info["grams"] <= 3.0
    assert own.n_iter == 0
    assert abs(warm.objective - cold.objective) <= 1e-6


def test_max_iter_holds_with_a_start():
    X, y = data()
    first = drlogit.solve(X, y, epsilon=0.3, kappa=1.0)
    result = drlogit.solve(X, y, epsilon=0.01, kappa=1.0, start=first, max_iter=2)
    assert result.n_iter <= 2


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_independent_features_from_which_nothing_can_be_learnt(norm):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((2500, 25))
    y = np.where(rng.random(2500) < 1.0 / (1.0 + np.exp(-X[:, 0])), 1, -1)
    limit = drlogit.epsilon_max(X, y, kappa=math.inf, norm=norm)
    for share in (1.0, 0.9999999):
        result = drlogit.solve(X, y, epsilon=share * limit, kappa=math.inf, norm=norm)
        assert result.gap <= 1e-6
        assert np.abs(result.coef).max() <= 1e-3


@pytest.mark.parametrize("kappa", [1.0, math.inf])
@pytest.mark.parametrize("size", [(2500, 25), (9000, 15)])
def test_a_path_of_public_starts_takes_half_the_work(size, kappa):
    X, y = data(*size, seed=6)
    radii = drlogit.epsilon_max(X, y, kappa=kappa) * np.geomspace(1.0, 1e-3, 30)
    warm, cold, last = 0.0, 0.0, None
    for epsilon in radii:
        last = drlogit.solve(X, y, epsilon=epsilon, kappa=kappa, start=last)
        warm += last.info["grams"]
        cold += drlogit.solve(X, y, epsilon=epsilon, kappa=kappa).info["grams"]
        assert last.gap <= 1e-6
    assert warm <= (0.5 if size[0] < 80 * size[1] else 0.75) * cold


def test_distances():
    X, y = data(1000)
    result = drlogit.solve(X, y, epsilon=0.03, kappa=1.0)
    problem = build_problem(X, y, epsilon=0.03, kappa=1.0)
    near, far = (start_from(problem.with_radius(e), result) for e in (0.031, 0.06))
    assert 0.0 < near.distance < far.distance
    above = drlogit.solve(X, y, epsilon=0.06, kappa=1.0)
    excess = problem.with_radius(0.06).objective(far.model, far.lam) - above.objective
    assert excess <= far.distance
    # Of other samples it is known no better than their number allows.
    other = start_from(problem, replace(result, dual=None))
    assert other.sampled
    assert other.distance >= 12 / 1000
