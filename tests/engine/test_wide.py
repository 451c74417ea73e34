"""The N×N system of few samples with many columns, against the n×n matrix."""

from __future__ import annotations

import math

import numpy as np
import pytest
from benchmarks import stated

import zoo
from drlogit.engine import row_space, wide
from drlogit.engine.labels import LabelSamples, LabelScaling

NORMS = ("l1", "l2", "linf")


@pytest.mark.parametrize("seed", range(60))
def test_either_matrix_leads_to_the_same_optimum(seed, monkeypatch):
    X, y, options = zoo.wide_problem(seed, NORMS[seed % 3])

    def solved(limit):
        monkeypatch.setattr(wide, "_OUTER_LIMIT", limit)
        return zoo.by_matrices(X, y, tol=1e-7, **options)

    one, other = solved(0), solved(10**9)
    assert max(one.gap, other.gap) <= 1e-7
    assert abs(one.objective - other.objective) <= 1e-7
    assert one.dual_objective <= other.objective + 1e-12
    assert other.dual_objective <= one.objective + 1e-12


def directions(problem, slopes=None):
    """The decrement and all directions at an iterate off the central path."""
    newton = LabelScaling(problem).newton(problem.epsilon)
    rng = np.random.default_rng(0)
    x = np.append(0.01 * rng.standard_normal(newton.size - 1), 3.0)
    newton.open(x, 0.05)
    samples = LabelSamples(problem, newton, slopes)
    state, sums = samples.linearise(
        samples.open(newton.trial(0.0), 0.05), newton.trial(0.0), 0.0, 0.0, 0.05
    )
    assert newton.linearise(sums, None if newton.wide is None else samples.curved(state))
    found = [newton.decrement(), newton.predictor()]
    state, predicted = samples.predict(state, found[-1])
    found.append(newton.corrector(0.01, 0.5, predicted, state))
    samples.correct(state, found[-1], 0.01, 0.5)
    newton.begin_proof()
    found.append(newton.correction())
    return found


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("kappa", [0.7, "each", "linear loss", math.inf])
def test_directions_are_those_of_the_matrix(norm, kappa, monkeypatch):
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((20, 50)), np.tile([0, 1], 10)
    costs = np.ones(50)
    costs[3:6] = math.inf
    flips = rng.choice([0.2, 1.0, math.inf], 20) if kappa == "each" else kappa
    flips = 0.7 if kappa == "linear loss" else flips
    problem = stated.problem(
        X, y, epsilon=0.05, kappa=flips, norm=norm, feature_costs=costs,
        sample_weight=rng.uniform(0.5, 2.0, 20),
    )  # fmt: skip
    p = np.ascontiguousarray(rng.dirichlet(np.ones(2), 20).T)
    slopes = (p,) if kappa == "linear loss" else None
    found = []
    for limit in (0, 10**9):
        monkeypatch.setattr(wide, "_OUTER_LIMIT", limit)
        found.append(directions(problem, slopes))
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-8 * np.abs(other).max())


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("seed", [5, 7, 8, 9])
def test_rows_may_depend_on_each_other(norm, seed, monkeypatch):
    monkeypatch.setattr(wide, "_OUTER_LIMIT", 0)
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((40, 6)) @ rng.standard_normal((6, 100))
    y = np.where(X[:, 0] + rng.logistic(size=40) > 0.0, 1, 0)
    options = {"epsilon": 0.02, "kappa": 0.3, "norm": norm}
    result = zoo.by_matrices(X, y, **options)
    assert result.gap <= 1e-6
    assert result.n_iter <= 8
    # A tol beyond what the factor of a matrix of low rank can give ends with a certified gap.
    exact = zoo.by_matrices(X, y, tol=1e-9, max_iter=15, **options)
    assert exact.gap <= 1e-6


def test_a_free_column_may_be_empty_or_twice_there(monkeypatch):
    monkeypatch.setattr(wide, "_OUTER_LIMIT", 0)
    X, y = zoo.logistic_data(30, 90)
    X[:, 0], X[:, 2] = 0.0, X[:, 1]
    costs = np.ones(X.shape[1])
    costs[:3] = math.inf
    result = stated.solve(X, y, epsilon=0.05, kappa=1.0, feature_costs=costs)
    assert result.gap <= 1e-6


@pytest.mark.parametrize("flips", [1.0, math.inf, np.where(np.arange(30) < 9, math.inf, 0.3)])
def test_few_samples_in_several_blocks_are_joined(flips, monkeypatch):
    monkeypatch.setattr(wide, "_OUTER_LIMIT", 0)
    X, y = zoo.logistic_data(30, 90)
    options = {"epsilon": 0.05, "kappa": flips}
    one, two = (zoo.by_matrices(X, y, n_jobs=n, **options) for n in (1, 2))
    assert two.gap <= 1e-6
    assert two.objective == pytest.approx(one.objective, abs=1e-6)
    assert stated.epsilon_max(X, y, kappa=flips) > 0.0


@pytest.mark.parametrize(
    ("shape", "epsilon", "refused"),
    [
        ((20, 60), 0.05, {"_OUTER_LIMIT": 0, "MATRIX_LIMIT": 10}),
        ((20, 60), 0.0, {"DENSE_LIMIT": 0, "MATRIX_LIMIT": 10}),
        ((60, 20), 0.0, {"DENSE_LIMIT": 0, "MATRIX_LIMIT": 10}),
    ],
)
def test_matrices_beyond_the_limits_are_refused(shape, epsilon, refused, monkeypatch):
    for name, limit in refused.items():
        monkeypatch.setattr(wide, name, limit)
    monkeypatch.setattr(row_space, "MATRIX_LIMIT", 10)
    X, y = zoo.logistic_data(*shape)
    with pytest.raises(ValueError, match="forms a matrix of the smaller number"):
        zoo.by_matrices(X, y, epsilon=epsilon, kappa=1.0)
