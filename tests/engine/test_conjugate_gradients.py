"""Conjugate gradients, on systems that may be singular."""

from __future__ import annotations

import numpy as np
import pytest

from drlogit.engine.conjugate_gradients import ConjugateGradients


def solved(matrix, inverse, right, most_steps):
    solver = ConjugateGradients(matrix.__matmul__, inverse.__mul__, right)
    while solver.steps < most_steps and solver.rho > 1e-20 * solver.first and solver.step():
        pass
    return solver


def scaled_matrix(rank, size, seed):
    rng = np.random.default_rng(seed)
    half = rng.standard_normal((rank, size)) * 10.0 ** rng.uniform(-4, 4, size)
    return half.T @ half


@pytest.mark.parametrize("seed", range(5))
def test_conjugate_gradients_find_the_solution_whatever_the_scales(seed):
    matrix = scaled_matrix(30, 12, seed)
    wanted = np.random.default_rng(seed).standard_normal(12) / np.sqrt(np.diagonal(matrix))
    inverse = 1.0 / np.diagonal(matrix)
    found, short = (solved(matrix, inverse, matrix @ wanted, steps).x for steps in (40, 3))
    np.testing.assert_allclose(found, wanted, rtol=1e-6)
    error = [(x - wanted) @ matrix @ (x - wanted) for x in (short, np.zeros(12))]
    assert error[0] < error[1]


def test_no_step_is_taken_where_there_is_no_curvature():
    solver = solved(np.diag([1.0, 2.0, 0.0]), np.ones(3), np.array([1.0, 2.0, 3.0]), 50)
    assert np.isfinite(solver.x).all()
    solver = solved(np.zeros((3, 3)), np.ones(3), np.ones(3), 50)
    np.testing.assert_array_equal(solver.x, np.zeros(3))


def test_what_is_left_and_gained_is_that_of_the_quadratic():
    matrix, right = scaled_matrix(30, 12, 1), np.arange(12.0)
    solver = solved(matrix, 1.0 / np.diagonal(matrix), right, 3)
    x = solver.x
    np.testing.assert_allclose(solver.left, right - matrix @ x, atol=1e-9 * np.abs(right).max())
    assert 0.5 * solver.gained == pytest.approx(right @ x - 0.5 * x @ matrix @ x)
