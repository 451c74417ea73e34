"""Misclassification bounds against the linear programs of the 2015 paper."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import linprog

import drlogit
from drlogit import MisclassificationBounds, misclassification_bounds
from drlogit.problem.norms import NORMS
from drlogit.robustness.breakpoints import Curve


def linear_program(u, weights, epsilon, kappa, sensitivity):
    """Largest probability of ``margin ≤ 0``: Theorem 3 of arXiv:1509.09259.

    minimise    λε + Σ w_i s_i
    subject to  1 - r_i u_i ≤ s_i,   1 + t_i u_i - λκ ≤ s_i,
                r_i L ≤ λ,   t_i L ≤ λ,   r, s, t ≥ 0

    The second set is left out where labels cannot flip.
    """
    n = u.size
    if sensitivity > 0.0:  # margins as distances: HiGHS takes coefficients below 1e-9 for zero
        u, sensitivity = u / sensitivity, 1.0
    eye, zero = np.eye(n), np.zeros((n, n))
    one, nought = np.ones((n, 1)), np.zeros((n, 1))
    # Columns: λ, s, r, t.
    rows = [
        (np.hstack([nought, -eye, -np.diag(u), zero]), -np.ones(n)),
        (np.hstack([-one, zero, sensitivity * eye, zero]), np.zeros(n)),
        (np.hstack([-one, zero, zero, sensitivity * eye]), np.zeros(n)),
    ]
    if math.isfinite(kappa):
        rows.append((np.hstack([-kappa * one, -eye, zero, np.diag(u)]), -np.ones(n)))
    solution = linprog(
        np.concatenate([[epsilon], weights, np.zeros(2 * n)]),
        A_ub=np.vstack([A for A, _ in rows]),
        b_ub=np.concatenate([b for _, b in rows]),
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    assert solution.status == 0
    return solution.fun


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("kappa", [0.05, 0.5, 1.0, 4.0, math.inf])
@pytest.mark.parametrize("immovable", [False, True])
def test_bounds_equal_the_linear_programs(norm, kappa, immovable):
    rng = np.random.default_rng(len(norm) + int(immovable))
    X, y = rng.standard_normal((25, 3)), rng.choice([-1, 1], 25)
    y[2:] = np.where(rng.random(23) < 0.7, np.sign(X[2:, 0]), y[2:])
    weights, epsilon = rng.integers(1, 4, 25).astype(float), rng.uniform(0.0, 2.0)
    costs = np.array([1.0, 0.3, math.inf if immovable else 1.0])
    coef, intercept = rng.normal([2.0, 0.0, 0.0]), rng.standard_normal()
    ball = {"epsilon": epsilon, "kappa": kappa, "norm": norm, "feature_costs": costs}
    found = misclassification_bounds((coef, intercept), X, y, **ball, sample_weight=weights)
    program = (weights / weights.sum(), epsilon, kappa, NORMS[norm].dual(coef / costs))
    u = y * (X @ coef + intercept)
    assert found.worst == pytest.approx(linear_program(u, *program), abs=1e-9)
    assert found.best == pytest.approx(1.0 - linear_program(-u, *program), abs=1e-9)


X1 = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 0.0], [-1.0, 5.0], [0.5, 0.0]])
Y1 = np.array([1, 1, 1, -1, -1])
ONE = ((1.0, 0.0), 0.0)  # margins 0, 1, 2, 1, -0.5


def test_boundary_counts_as_wrong_in_the_worst_case_and_right_in_the_best():
    found = misclassification_bounds(ONE, X1, Y1, epsilon=0.0, kappa=1.0)
    assert found == MisclassificationBounds(best=0.2, worst=0.4)


@pytest.mark.parametrize(("intercept", "error"), [(1.0, 0.4), (-1.0, 0.6)])
def test_constant_model(intercept, error):
    model = ((0.0, 0.0), intercept)
    fixed = misclassification_bounds(model, X1, Y1, epsilon=9.0, kappa=math.inf)
    assert fixed == pytest.approx((error, error))
    flips = misclassification_bounds(model, X1, Y1, epsilon=0.1, kappa=0.5)
    assert flips == pytest.approx((error - 0.2, error + 0.2))
    nothing = misclassification_bounds(((0.0, 0.0), 0.0), X1, Y1, epsilon=0.1, kappa=1.0)
    assert nothing == (0.0, 1.0)  # all of it is boundary


def test_scale_of_the_scores_does_not_matter():
    ball = {"epsilon": 0.17, "kappa": 1.0, "norm": "l2"}
    X, y = drlogit.datasets.make_synthetic(200, 5, random_state=0)
    coef = np.arange(5) - 1.5
    found = [misclassification_bounds((c * coef, c * 0.2), X, y, **ball) for c in (1.0, 1e-8, 1e8)]
    np.testing.assert_allclose(found, [found[0]] * 3, atol=1e-12)


def test_radius_at_which_a_curve_ends():
    curve = Curve(np.array([0.0, 0.2, 1.0]), np.array([0.1, 0.3, 0.5]))
    assert [curve.radius_of(error) for error in (0.05, 0.1, 0.2, 0.3, 0.5)] == pytest.approx(
        [0.0, 0.0, 0.1, 0.2, 1.0]
    )
    assert curve.radius_of(0.5 + 1e-9) == math.inf


def test_radius_beyond_the_last_corner_and_on_flat_parts():
    curve = Curve(np.array([0.0, 1.0, 2.0, 3.0]), np.array([0.1, 0.3, 0.3, 0.5]), slope=0.25)
    assert curve.radius_of(0.3) == 1.0  # the least of those that reach it
    for value in (0.2, 0.4, 0.5, 0.6, 7.0):
        assert curve.at(curve.radius_of(value)) == pytest.approx(value, abs=1e-12)
