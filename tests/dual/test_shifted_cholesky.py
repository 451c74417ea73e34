"""The factor of matrices with duplicate, empty and badly scaled columns."""

from __future__ import annotations

import numpy as np
import pytest

from drlogit.dual.shifted_cholesky import ShiftedCholesky


@pytest.mark.parametrize("columns", [1, 4])
def test_a_regular_matrix_is_solved_from_its_lower_half(columns):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((9, 5)) * 10.0 ** np.arange(-3.0, 2.0)
    matrix, right = A.T @ A, rng.standard_normal((5, columns))
    found = ShiftedCholesky(np.tril(matrix)).solve(right[:, 0] if columns == 1 else right)
    exact = np.linalg.solve(matrix, right)
    np.testing.assert_allclose(found, exact[:, 0] if columns == 1 else exact, rtol=1e-6)


def test_a_singular_matrix_gets_a_shift_that_changes_little():
    A = np.random.default_rng(1).standard_normal((9, 3))
    A = np.column_stack([A, A[:, 0], np.zeros(9)])  # a duplicate and an empty column
    factor, right = ShiftedCholesky(A.T @ A), A.T @ np.ones(9)
    assert not factor.failed
    np.testing.assert_allclose(A.T @ A @ factor.solve(right), right, rtol=1e-6, atol=1e-9)


def test_a_matrix_that_rounding_made_indefinite_is_solved_with_a_larger_shift():
    half = np.array([[4.0, 0.0], [2.002, 1.0]])  # 1.001 at unit diagonal: no shift below it helps
    shifted = np.array([[4.04, 2.002], [2.002, 1.01]])
    found = ShiftedCholesky(half).solve(np.array([1.0, 2.0]))
    np.testing.assert_allclose(found, np.linalg.solve(shifted, [1.0, 2.0]), rtol=1e-9)


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_a_matrix_that_is_not_finite_has_no_factor(wrong):
    half = np.eye(4)
    half[2, 1] = wrong
    assert ShiftedCholesky(half).failed


def test_without_a_least_shift_a_small_part_of_a_matrix_counts():
    v = np.array([1.0, 1.0, 2.0])
    matrix, right = np.eye(3) + 1e13 * np.outer(v, v), np.array([1.0, -1.0, 0.0])
    np.testing.assert_allclose(ShiftedCholesky(matrix.copy(), 0.0).solve(right), right, 0.03, 1e-9)
    assert ShiftedCholesky(matrix).solve(right)[0] < 0.95
