"""What an earlier result is worth to a fit of features with domains."""

from __future__ import annotations

import numpy as np
import pytest

import drlogit
from domain_zoo import generated
from drlogit.dual.certify import dual_point_of_pieces, pieces_of_dual_point
from drlogit.fitting.solving import solve_problem
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
    pieces = pieces_of_dual_point(problem, result.dual)
    found = dual_point_of_pieces(problem, pieces)
    np.testing.assert_allclose(found.s, result.dual.s, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found.flip_share, result.dual.flip_share, rtol=1e-9, atol=1e-12)
    for again, wanted in zip(found.moves.arrays, result.dual.moves.arrays, strict=True):
        np.testing.assert_allclose(again, wanted, rtol=1e-9)


def test_results_for_other_samples_or_domains_are_no_proof():
    problem = posed(4)
    result = solve_problem(problem)
    assert pieces_of_dual_point(problem, result.dual) is not None
    fewer = {name: generated(4)[name][:-1] for name in ("X", "y")}
    other = posed(4, **fewer, sample_weight=None)
    assert pieces_of_dual_point(other, result.dual) is None


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
