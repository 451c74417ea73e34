"""Columns far from zero: shifted where that is the same model, and nowhere else."""

import math
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from benchmarks import stated

from drlogit.rows.centring import exact_dot

LABELS = np.array([1, 1, 1, -1, -1, -1])
VALUES = np.array([1.0, 2.0, -1.0, 0.5, -2.0, -3.0])


def data(offset=0.0, n_samples=60, n_features=3, seed=0):
    rng = np.random.default_rng(seed)
    X = np.round(rng.standard_normal((n_samples, n_features)), 3)
    y = X[:, 0] + rng.logistic(size=n_samples) > 0.0
    return X + offset, y


@pytest.mark.parametrize(
    ("offset", "unit", "epsilon"), [(1e13, 1.0, 0.0), (1e9, 1.0, 1e-3), (1e17, 64.0, 0.0)]
)
def test_a_single_column_far_away(offset, unit, epsilon):
    """Next to 1e17 the intercept is known to within 16: there no model is claimed as optimal."""
    X = unit * VALUES[:, None]
    near, far = (stated.solve(x, LABELS, epsilon=epsilon, kappa=math.inf) for x in (X, offset + X))
    assert near.converged
    assert far.converged or offset > 1e13
    assert far.dual_objective <= near.objective + 1e-12
    assert near.dual_objective <= far.objective + 1e-12
    assert far.gap >= far.objective - near.objective - 1e-12


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("kappa", [1.0, math.inf])
@pytest.mark.parametrize("exponent", [10, 17, 23, 30])
def test_offsets_change_nothing_but_the_intercept(norm, kappa, exponent):
    X, y = data()
    X = np.round(X * 1024.0) / 1024.0  # so that adding 2^30 is exact
    options = {"epsilon": 0.02, "kappa": kappa, "norm": norm, "tol": 1e-8}
    near = stated.solve(X, y, **options)
    offset = 2.0**exponent * np.array([1.0, -3.0, 0.0])
    far = stated.solve(X + offset, y, **options)
    assert far.converged
    assert far.objective == pytest.approx(near.objective, abs=2e-8)
    np.testing.assert_allclose(far.coef, near.coef, atol=2e-3)


def test_single_precision_far_from_zero():
    X, y = data()
    X = (np.round(X * 64.0) / 64.0 + 2.0**14).astype(np.float32)
    options = {"epsilon": 0.02, "kappa": 1.0}
    single, double = (stated.solve(A, y, **options) for A in (X, X.astype(np.float64)))
    assert single.objective == pytest.approx(double.objective, abs=1e-12)


def test_a_constant_feature_is_left_out_exactly():
    X, y = data()
    constant = np.column_stack([X, np.full(len(X), 0.1)])
    result = stated.solve(constant, y, epsilon=0.02, kappa=1.0)
    assert result.coef[-1] == 0.0
    assert result.objective == pytest.approx(
        stated.solve(X, y, epsilon=0.02, kappa=1.0).objective, abs=1e-6
    )


def test_nothing_dense_is_copied_and_nothing_near_is_shifted():
    X, y = data(offset=1e6)
    rows = stated.problem(X, y, epsilon=0.1, kappa=1.0).rows
    assert np.shares_memory(rows.blocks[0].X.array, X)
    assert stated.problem(X, y, epsilon=0.1, kappa=1.0, fit_intercept=False).rows.shift is None
    near, _ = data(offset=3.0)
    assert stated.problem(near, y, epsilon=0.1, kappa=1.0).rows.shift is None
    gaps = sp.csr_array(np.where(np.arange(60)[:, None] == 0, 0.0, X))  # a zero in each column
    assert stated.problem(gaps, y, epsilon=0.1, kappa=1.0).rows.shift is None


def far():
    X, y = data(offset=2.0**20)
    return {"X": X, "y": y, "epsilon": 0.1}, np.array([0.5, -0.25, 0.125]), -0.375 * 2.0**20


def beside_a_group():
    """A feature between bounds and categories, of which every sample has one: no intercept."""
    X, y = data(n_samples=40, n_features=1)
    X = np.hstack([np.round(X * 1024.0) / 1024.0 + 2.0**20, np.eye(3)[np.arange(40) % 3]])
    ends = np.array([X[:, 0].min() - 0.5, *[-np.inf] * 3]), np.array([X[:, 0].max(), *[np.inf] * 3])
    coef = np.array([0.5, *(-(2.0**19) + np.array([0.25, -1.0, 2.0]))])
    case = {"X": X, "y": y, "categories": [[1, 2, 3]], "bounds": ends, "fit_intercept": False}
    return case | {"epsilon": 0.02, "kappa": 0.5}, coef, 0.0


@pytest.mark.parametrize("make", [far, beside_a_group])
def test_coefficients_go_in_and_out(make):
    case, coef, intercept = make()
    problem = stated.problem(**case)
    assert problem.rows.shift is not None
    inside = problem.join(coef, intercept)
    assert np.abs(inside).max() < 10.0
    assert problem.split(inside)[0] == pytest.approx(coef, rel=1e-15)
    assert problem.split(inside)[1] == pytest.approx(intercept, rel=1e-15)
    margins = np.where(case["y"], 1.0, -1.0) * (case["X"] @ coef + intercept)
    np.testing.assert_allclose(problem.margins(inside)[0], margins, atol=1e-9)
    if make is beside_a_group:
        case["X"][0, 1:] = 0.0  # with "none" the columns no longer add up to a constant
        assert stated.problem(**case).rows.shift is None


def test_dot_products_are_rounded_once():
    rng = np.random.default_rng(0)
    for _ in range(50):
        x, y = rng.standard_normal((2, 9)) * 10.0 ** rng.integers(-12, 13, (2, 9))
        exact = sum(Fraction(a) * Fraction(b) for a, b in zip(x.tolist(), y.tolist(), strict=True))
        assert exact_dot(x, y) == float(exact)
