"""Conjugate gradients, on systems that may be singular."""

from __future__ import annotations

import numpy as np
import pytest

from drlogit.engine.conjugate_gradients import conjugate_gradients


def scaled_matrix(rank, size, seed):
    rng = np.random.default_rng(seed)
    half = rng.standard_normal((rank, size)) * 10.0 ** rng.uniform(-4, 4, size)
    return half.T @ half


@pytest.mark.parametrize("seed", range(5))
def test_conjugate_gradients_find_the_solution_whatever_the_scales(seed):
    matrix = scaled_matrix(30, 12, seed)
    wanted = np.random.default_rng(seed).standard_normal(12) / np.sqrt(np.diagonal(matrix))
    inverse = 1.0 / np.diagonal(matrix)
    found, short = (
        conjugate_gradients(
            matrix.__matmul__, inverse.__mul__, matrix @ wanted, rtol=1e-10, max_steps=steps
        )
        for steps in (40, 3)
    )
    np.testing.assert_allclose(found, wanted, rtol=1e-6)
    error = [(x - wanted) @ matrix @ (x - wanted) for x in (short, np.zeros(12))]
    assert error[0] < error[1]


def test_conjugate_gradients_end_where_there_is_no_curvature():
    matrix = np.diag([1.0, 2.0, 0.0])
    found = conjugate_gradients(
        lambda v: matrix @ v, lambda r: r, np.array([1.0, 2.0, 3.0]), rtol=1e-10, max_steps=50
    )
    assert np.isfinite(found).all()
    np.testing.assert_array_equal(
        conjugate_gradients(lambda v: 0.0 * v, lambda r: r, np.ones(3), rtol=1e-10, max_steps=50),
        np.zeros(3),
    )
