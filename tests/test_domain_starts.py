"""What an earlier result is worth to a fit of features with domains."""

from __future__ import annotations

import numpy as np
import pytest

import drlogit
from domain_zoo import generated
from drlogit.fitting.solving import solve_problem
from drlogit.problem.kept_pieces import kept_weights
from drlogit.problem.moves import moves_of
from drlogit.problem.piece_weights import WeightSums
from drlogit.problem.problem import build_problem


def posed(seed, **changes):
    options = {**generated(seed), **changes}
    return build_problem(options.pop("X"), options.pop("y"), **options)


@pytest.mark.parametrize("seed", range(12))
def test_its_own_solution_needs_no_iteration(seed):
    options = {**generated(seed), "tol": 1e-6}
    result = drlogit.solve(**options)
    again = drlogit.solve(**options, start=result)
    assert result.converged
    assert result.n_iter > 0
    assert again.n_iter == 0
    assert again.gap <= 1e-6
    assert again.objective == pytest.approx(result.objective, abs=1e-12)
    np.testing.assert_array_equal(again.coef, result.coef)


def test_its_own_solution_for_samples_that_occur_twice():
    options = generated(3, n_samples=400)
    for name in ("X", "y"):
        options[name] = np.concatenate([options[name], options[name][:300]])
    options["sample_weight"] = np.random.default_rng(0).exponential(size=700)
    options["sample_weight"][::7] = 0.0
    result = drlogit.solve(**options)
    again = drlogit.solve(**options, start=result)
    assert (again.n_iter, again.converged) == (0, True)


@pytest.mark.parametrize("seed", range(6))
def test_the_dual_point_comes_back_as_it_was(seed):
    problem = posed(seed)
    result = solve_problem(problem)
    weights = kept_weights(problem, result)
    sums = WeightSums.of(problem.rows, weights)
    moves, w = result.dual.moves, problem.rows.together().weights
    mass = w[moves.sample] * moves.share
    left = w - np.bincount(moves.sample, mass, w.size)
    assert sums.total == pytest.approx(float(mass @ moves.doubt + left @ result.dual.doubt))
    assert sums.spent <= problem.epsilon * (1.0 + 1e-9)
    doubt, again = moves_of(problem, weights)
    np.testing.assert_allclose(doubt, result.dual.doubt, rtol=1e-12)
    for found, wanted in zip(again.arrays, moves.arrays, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12)


def test_results_for_other_samples_or_domains_are_no_proof():
    problem = posed(4)
    result = solve_problem(problem)
    assert kept_weights(problem, result) is not None
    fewer = {name: generated(4)[name][:-1] for name in ("X", "y")}
    other = posed(4, **fewer, sample_weight=None)
    assert kept_weights(other, result) is None


def test_neighbours_take_fewer_iterations_and_far_ones_hardly_more():
    def count(problem, start=None):
        result = solve_problem(problem, start=start)
        assert result.converged
        return result.n_iter

    near = far = cold_near = cold_far = 0
    for seed in range(4):
        problem = posed(seed, epsilon=0.05)
        result = solve_problem(problem)
        closer, larger = problem.with_radius(0.04), problem.with_radius(1.0)
        near, cold_near = near + count(closer, result), cold_near + count(closer)
        far, cold_far = far + count(larger, result), cold_far + count(larger)
    assert near <= 0.75 * cold_near
    assert far == cold_far  # dropped
