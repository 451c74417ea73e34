"""Which method ``solver="auto"`` takes, and the way from products to matrices."""

import math

import numpy as np
import pytest
from benchmarks import stated

import drlogit
import zoo
from drlogit.engine import plan


def data(N, n, seed, collinear=0.0):
    """Normal features with a falling spectrum, or around 20 common factors."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, n)) * (1.0 + np.arange(n)) ** -0.5
    if collinear:
        X = rng.standard_normal((N, 20)) @ rng.standard_normal((20, n)) + X / collinear
    scores = X @ rng.standard_normal(n)
    return X, scores / scores.std() + rng.logistic(size=N) > 0.0


@pytest.mark.parametrize(
    ("shape", "norm", "kappa", "solver"),
    [
        ((500, 30), "l2", math.inf, "interior-point"),
        ((600, 900), "l2", math.inf, "truncated-interior-point"),
        ((600, 900), "linf", 1.0, "working-sets"),
        ((60, 900), "l1", 1.0, "interior-point"),
        ((3000, 150), "l2", 1.0, "interior-point"),
    ],
)
def test_the_method_follows_from_what_a_matrix_costs(shape, norm, kappa, solver):
    X, y = data(*shape, seed=1)
    ball = {"epsilon": 0.05, "kappa": kappa, "norm": norm}
    found = stated.solve(X, y, **ball)
    assert found.solver == solver
    assert found.gap <= 1e-6
    zoo.judged(found, X, y, ball)


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_where_products_are_slow_the_interior_point_goes_on(norm, monkeypatch):
    monkeypatch.setattr(plan, "_MATRICES", 0.5)
    X, y = data(400, 500, seed=2, collinear=30.0)
    ball = {"epsilon": 0.005, "kappa": 1.0, "norm": norm}
    found = stated.solve(X, y, **ball)
    assert found.solver == "interior-point"
    assert found.info["products"] > 0
    assert found.gap <= 1e-6
    assert found.n_iter > zoo.judged(found, X, y, ball).n_iter / 2


@pytest.mark.parametrize("shape", [(600, 900), (1500, 4100)])
def test_products_return_an_earlier_result_that_is_optimal(shape):
    X, y = data(*shape, seed=3)
    first = stated.solve(X, y, epsilon=0.05, kappa=1.0, norm="l2")
    again = stated.solve(X, y, epsilon=0.05, kappa=1.0, norm="l2", start=first)
    assert first.solver == "truncated-interior-point"
    assert first.n_iter > 0 == again.n_iter
    assert again.gap <= 1e-6


def test_repeated_samples_are_merged():
    """The truncated interior point works on distinct samples; its dual point has all of them."""
    X, y = data(300, 900, seed=4)
    X, y = np.repeat(X, 4, axis=0), np.repeat(y, 4)
    y[::40] ^= True
    found = stated.solve(X, y, epsilon=0.05, kappa=1.0, norm="l2")
    assert found.solver == "truncated-interior-point"
    assert found.flip_share.shape == (1200,)
    assert found.gap <= 1e-6
    assert stated.problem(X, y, epsilon=0.05, kappa=1.0).rows.compact[0].n_samples <= 330


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_paths_of_wide_data_begin_at_a_bound_without_matrices(norm):
    X, y = data(600, 900, seed=5)
    path = stated.regularization_path(X, y, n_epsilons=2, kappa=1.0, norm=norm)
    exact = stated.epsilon_max(X, y, kappa=1.0, norm=norm)
    assert exact * (1.0 - 1e-4) <= path.epsilon_max <= min(2.5 * exact, 0.5)
    assert path.epsilon_max != exact
    assert not path.coefs[0].any()


@pytest.mark.parametrize("most", [5, 12])
def test_max_iter_limits_the_iterations_of_both_methods(most, monkeypatch):
    monkeypatch.setattr(plan, "_MATRICES", 0.5)
    X, y = data(400, 500, seed=2, collinear=30.0)
    found = stated.solve(X, y, epsilon=0.005, kappa=1.0, norm="l1", max_iter=most)
    assert found.n_iter <= most
    assert found.status is drlogit.Status.MAX_ITER


@pytest.mark.parametrize("seed", [5, 7, 9])
def test_a_poor_model_of_the_products_is_no_start(seed, monkeypatch):
    """The run with products ends above the constant model, and the other one begins anew."""
    monkeypatch.setattr(plan, "_EXPENSIVE", 0.0)
    monkeypatch.setattr(plan, "_MATRICES", 1.0)
    X, y = data(100, 120, seed)
    rng = np.random.default_rng(seed)
    X = X * 10.0 ** rng.uniform(-1.0, 1.0, 120) + 30.0 * rng.standard_normal(120)
    costs, kappa = np.ones(120), {False: 60.0, True: math.inf}
    costs[:3] = math.inf
    found = stated.solve(X, y, epsilon=20.0, kappa=kappa, norm="l1", feature_costs=costs)
    assert found.solver == "interior-point"
    assert found.gap <= 1e-6


def test_a_limit_keeps_what_the_products_reached(monkeypatch):
    """The interior point is stopped at its start, where its own bound is 0."""
    monkeypatch.setattr(plan, "_MATRICES", 0.5)
    X, y = data(400, 500, seed=2, collinear=30.0)
    trace = []

    def stop(iterate):
        trace.append(iterate)
        return len(trace) > 1 and iterate.n_iter < trace[-2].n_iter  # numbers begin anew

    found = stated.solve(X, y, epsilon=0.005, kappa=1.0, norm="l1", callback=stop)
    assert found.solver == "interior-point"
    assert found.status is drlogit.Status.STOPPED
    assert found.gap <= min(iterate.gap for iterate in trace) + 1e-9
