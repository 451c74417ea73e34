"""How much work fits take: the one place where iterations and Gram matrices are counted.

Limits are half as much again as what was seen, or twice as much: they tell a method that has come
to nothing, and not one that takes another way.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from benchmarks import stated

import domain_zoo
import zoo

pytestmark = pytest.mark.slow


# --- cold -----------------------------------------------------------------------------------


def test_crowded_kinks_take_no_more_than_a_few_gram_matrices():
    rng = np.random.default_rng(6)
    X = rng.standard_normal((12_000, 20))
    y = np.where(rng.random(12_000) < 1.0 / (1.0 + np.exp(-X[:, :3].sum(axis=1))), 1, -1)
    limit = stated.epsilon_max(X, y, kappa=1.0)
    for share in (0.9, 0.95, 0.99, 0.999):
        result = stated.solve(X, y, epsilon=share * limit, kappa=1.0)
        assert result.gap <= 1e-6
        assert result.info["grams"] <= 6.0


@pytest.mark.parametrize("norm", zoo.NORM_NAMES)
@pytest.mark.parametrize("kappa", [1.0, math.inf])
def test_some_of_many_rows_of_several_classes_precondition_all_of_them(norm, kappa):
    rng = np.random.default_rng(1)
    X = rng.standard_t(4, size=(3000, 50))
    scores = X[:, :5] + 0.2 * rng.normal(size=(3000, 5))
    y = (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)
    assert stated.solve(X, y, epsilon=0.02, kappa=kappa, norm=norm, max_iter=20).converged


def test_a_few_far_rows_do_not_mislead_the_others():
    """With a predictor by the preconditioner alone this takes twice the iterations."""
    rng = np.random.default_rng(1)
    X = np.exp(3.0 * rng.normal(size=(2300, 19))) * np.sign(rng.normal(size=(2300, 19)))
    X /= X.std(axis=0)
    scores = np.clip(3.0 * X[:, :7], -6.0, 6.0)
    y = (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)
    assert stated.solve(X, y, epsilon=0.05, kappa=1.0, max_iter=25).converged


def test_a_level_of_one_class_is_proven_at_once():
    """Letters of which a few occur once: their rows take part in the proof by their weight."""
    rng = np.random.default_rng(21)
    letters = rng.integers(0, 4, (1500, 30))
    letters[rng.integers(0, 1500, 8), rng.integers(0, 30, 8)] = 4
    effects = rng.standard_normal((30, 5)) * (rng.random((30, 1)) < 0.6)
    score = effects[np.arange(30), letters].sum(axis=1)
    y = score - np.median(score) + 0.5 * rng.logistic(size=1500) > 0.0
    X = np.column_stack([np.eye(5)[column][:, np.unique(column)] for column in letters.T])
    ends = np.cumsum([0, *(np.unique(column).size for column in letters.T)])
    groups = [list(range(a, b)) for a, b in itertools.pairwise(ends)]
    for epsilon, kappa in ((0.03, 3.0), (0.1, math.inf), (0.01, 1.0)):
        ball = {"epsilon": epsilon, "kappa": kappa, "categories": groups}
        assert stated.solve(X, y, max_iter=30, **ball).converged


# --- from a start ---------------------------------------------------------------------------


@pytest.mark.parametrize("norm", zoo.NORM_NAMES)
@pytest.mark.parametrize("kappa", [1.0, math.inf])
def test_a_neighbour_takes_about_one_gram_matrix(norm, kappa):
    X, y = zoo.logistic_data(5500, 12)
    first = stated.solve(X, y, epsilon=0.033, kappa=kappa, norm=norm)
    cold = stated.solve(X, y, epsilon=0.03, kappa=kappa, norm=norm)
    warm = stated.solve(X, y, epsilon=0.03, kappa=kappa, norm=norm, start=first)
    assert warm.gap <= 1e-6
    assert warm.info["grams"] <= 2.5
    assert abs(warm.objective - cold.objective) <= 1e-6


@pytest.mark.parametrize("kappa", [1.0, math.inf])
@pytest.mark.parametrize("size", [(2500, 25), (9000, 15)])
def test_a_path_of_public_starts_takes_less_work(size, kappa):
    X, y = zoo.logistic_data(*size, seed=6)
    radii = stated.epsilon_max(X, y, kappa=kappa) * np.geomspace(1.0, 1e-3, 30)
    warm, cold, last = 0.0, 0.0, None
    for epsilon in radii:
        last = stated.solve(X, y, epsilon=epsilon, kappa=kappa, start=last)
        warm += last.info["grams"]
        cold += stated.solve(X, y, epsilon=epsilon, kappa=kappa).info["grams"]
        assert last.gap <= 1e-6
    assert warm <= 0.4 * cold


def test_neighbours_with_domains_take_fewer_iterations():
    cases = [domain_zoo.generated(seed) | {"epsilon": 0.04} for seed in range(4)]
    starts = [stated.solve(**case | {"epsilon": 0.05}) for case in cases]
    warm = sum(stated.solve(**c, start=s).n_iter for c, s in zip(cases, starts, strict=True))
    assert warm < 0.9 * sum(stated.solve(**case).n_iter for case in cases)
