"""Many samples: the model of the loss, the samples near the kink, surveys of all rows."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from benchmarks import stated

import drlogit
import zoo
from drlogit.engine import large, plan, wide


def data(n_samples=26_000, n_features=12, seed=0, dependent=0.5):
    """Features of different scales that have a part in common, and noisy labels."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_samples, n_features))
    X = (X + dependent * rng.standard_normal((n_samples, 1))) * np.geomspace(0.3, 3.0, n_features)
    margin = 1.5 * X @ (beta := rng.standard_normal(n_features)) / np.std(X @ beta) + 0.3
    return X, np.where(rng.random(n_samples) < 1.0 / (1.0 + np.exp(-margin)), 1, -1)


@pytest.fixture
def plain(monkeypatch):
    """Fits by the driver on all samples."""

    def fit(*arguments, **options):
        with monkeypatch.context() as patch:
            patch.setattr(plan, "many_samples", lambda *_, **__: None)
            return stated.solve(*arguments, **options)

    return fit


def same(found, reference):
    assert found.converged
    assert reference.converged
    assert found.gap <= 1e-6
    assert abs(found.objective - reference.objective) <= 1e-6
    assert max(found.dual_objective, reference.dual_objective) <= (
        min(found.objective, reference.objective) + 1e-12
    )


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("kappa", [0.3, 1.0, math.inf])
@pytest.mark.parametrize("share", [0.01, 0.3, 0.97])
def test_fits_are_those_of_the_driver_on_all_samples(norm, kappa, share, plain):
    X, y = data()
    epsilon = share * stated.epsilon_max(X, y, kappa=kappa, norm=norm)
    options = {"epsilon": epsilon, "kappa": kappa, "norm": norm}
    found, reference = stated.solve(X, y, **options), plain(X, y, **options)
    same(found, reference)
    assert found.info["sample_grams"] > 0.0
    assert found.info["grams"] < reference.info["grams"]


WEIGHTS = np.random.default_rng(2).random(26_000)


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize(
    ("offset", "rare", "options"),
    [
        (0.0, 0.0, {"sample_weight": np.where(WEIGHTS < 0.1, 0.0, WEIGHTS)}),
        (0.0, 0.0, {"feature_costs": np.geomspace(0.3, 3.0, 12)}),
        (0.0, 0.0, {"feature_costs": np.where(np.arange(12) % 5 == 0, np.inf, 1.0)}),
        (0.0, 0.0, {"fit_intercept": False}),
        (1e3, 0.0, {}),
        (0.0, 0.8, {}),
    ],
    ids=["weights", "costs", "free", "no intercept", "far", "rare class"],
)
def test_all_kinds_of_problems(norm, offset, rare, options, plain):
    X, y = data(seed=1)
    X, y = X + offset, np.where(rare > WEIGHTS, -1, y)
    ball = {"epsilon": 0.03, "kappa": 1.0, "norm": norm}
    same(stated.solve(X, y, **ball, **options), plain(X, y, **ball, **options))


@pytest.mark.parametrize("kappa", [1.0, math.inf])
def test_sparse_and_single_precision_and_rows_in_blocks(kappa):
    X, y = data(26_000, seed=3)
    X = X.astype(np.float32)
    options = {"epsilon": 0.02, "kappa": kappa}
    here = stated.solve(X.astype(np.float64), y, **options)
    assert here.info["sample_grams"] > 0.0
    chunks = pytest.importorskip("dask.array").from_array(X, chunks=(5000, -1))
    for rows in (X, sp.csr_array(X), zoo.wide_indices(X), zoo.mapped(X), chunks):
        found = stated.solve(rows, y, **options)
        assert found.info["sample_grams"] > 0.0
        assert found.gap <= 1e-6
        np.testing.assert_allclose(found.coef, here.coef, rtol=0.0, atol=1e-6)
        assert found.objective == pytest.approx(here.objective, abs=1e-9)
        start = stated.solve(rows, y, epsilon=0.022, kappa=kappa)
        near = stated.solve(rows, y, **options, start=start)
        assert near.gap <= 1e-6
        assert near.info["sample_grams"] == 0.0
    threads = stated.solve(X, y, **options, n_jobs=2)
    np.testing.assert_allclose(threads.coef, here.coef, rtol=0.0, atol=1e-6)


def test_too_many_samples_to_gather_are_left_to_the_driver(monkeypatch):
    X, y = data(seed=8)
    options = {"epsilon": 0.03, "kappa": 1.0}
    first = stated.solve(X, y, **options)
    monkeypatch.setattr(large, "most_entries", lambda _: 100.0)
    found = stated.solve(X, y, **options, start=replace(first, dual=None))
    assert found.gap <= 1e-6
    assert "near_grams" not in found.info


def test_a_crowd_at_one_place():
    """Rows that are mostly empty have their margins at one place."""
    X, y = data(6000, seed=9)
    X[np.random.default_rng(0).random(6000) < 0.95] = 0.0
    found = stated.solve(X + 0.0, y, epsilon=0.02, kappa=0.5)
    assert found.gap <= 1e-6


def test_callbacks_hear_of_surveys_and_stop_the_run():
    X, y = data(seed=10)
    heard = []
    result = stated.solve(X, y, epsilon=0.03, kappa=1.0, callback=heard.append)
    assert result.gap <= heard[-1].gap + 1e-12 <= 1e-6  # of the best λ for the model
    stopped = stated.solve(X, y, epsilon=0.03, kappa=1.0, tol=1e-13, callback=lambda _: True)
    assert stopped.status is drlogit.Status.STOPPED


def test_systems_that_are_not_formed_are_left_to_the_driver(monkeypatch):
    X, y = data(seed=11)
    monkeypatch.setattr(wide, "DENSE_LIMIT", 10)
    first = zoo.by_matrices(X, y, epsilon=0.03, kappa=1.0)
    found = zoo.by_matrices(X, y, epsilon=0.028, start=first, kappa=1.0)
    assert max(first.gap, found.gap) <= 1e-6
    assert "sample_grams" not in first.info | found.info


def test_rows_without_entries_have_the_constant_model() -> None:
    """A share of no entries is not asked for."""
    y = np.array([1, -1, 1])
    result = stated.solve(sp.csr_array((3, 2)), y, epsilon=0.1, kappa=1.0)
    assert result.gap <= 1e-6
    assert np.all(result.coef == 0.0)
