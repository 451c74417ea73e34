"""Equations of free columns: paid for by a proof, or not at all."""

import math
import sys
from pathlib import Path

import mpmath as mp
import numpy as np
import pytest

import drlogit
import zoo
from drlogit.problem.certificate import certify
from drlogit.problem.free_equations import (
    FreeEquations,
    charges,
    free_equations,
    with_held_columns,
)
from drlogit.problem.losses import entropy
from drlogit.problem.problem import build_problem
from drlogit.rows.reductions import Sum

sys.path.insert(0, str(Path(__file__).parents[1]))  # benchmarks are not installed

from benchmarks import degenerate


def plain(X, y, **options):
    return drlogit.solve(X, y, epsilon=0.0, kappa=math.inf, **options)


def test_no_bound_is_above_a_point_found_with_fifty_digits():
    judged = 0
    for seed in range(60):
        problem = degenerate.generate(seed)
        if problem is None:
            continue
        # Any point may be judged: those without a proof need not go on to the limit.
        result = drlogit.solve(problem.X, problem.y, max_iter=30, **problem.options)
        if result.dual_objective > 0.0:
            judged += 1
            assert result.dual_objective <= degenerate.value_by_hand(problem, result) + 1e-12, seed
    assert judged >= 20


def test_columns_that_differ_by_little_are_not_one():
    """In the coordinates (a, difference) the same model reaches less."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        a, v = rng.standard_normal((2, 40))
        y = a + 0.7 * v + rng.logistic(size=40) > 0.0
        beside = a + 1e-12 * v
        better = plain(np.column_stack([a, (beside - a) * 1e12]), y)
        assert (
            plain(np.column_stack([a, beside]), y, max_iter=30).dual_objective
            <= better.objective + 1e-9
        )


@pytest.mark.parametrize(
    "kind", ["copies", "levels", "few samples", "one class only", "few different rows"]
)
def test_exact_dependence_is_no_obstacle(kind):
    rng = np.random.default_rng(3)
    level = rng.integers(0, 4, 80)
    x = rng.standard_normal(80)
    y = x + (level == 2) + rng.logistic(size=80) > 0.0
    X = {
        "copies": np.column_stack([x, -x, x]),
        "levels": np.column_stack([x, np.eye(4)[level]]),
        "few samples": rng.standard_normal((80, 81)),
        "one class only": np.column_stack([x, np.where(y, rng.integers(0, 2, 80), 0)]),
        "few different rows": rng.standard_normal((5, 9))[np.arange(80) % 5],
    }[kind]
    result = plain(X, y)
    assert result.converged
    assert drlogit.verify(result, X, y).ok
    if kind != "few samples":
        assert result.dual_objective > 0.1


def test_rows_that_are_nearly_the_same_are_not():
    """Ten rows for five, but for the last digits: the columns could tell them apart."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((5, 9))[np.arange(80) % 5]
    X[::2] *= 1.0 + 2.0**-50
    y = rng.standard_normal(80) > 0.0
    assert plain(X, y).dual_objective == 0.0


def test_nearly_dependent_columns_have_no_proof_and_copies_have_one():
    rng = np.random.default_rng(0)
    x = rng.standard_normal(50)
    y = rng.standard_normal(50) > 0.0
    for other, proven in ((x, True), (x * 3.0, False), (x + 1e-9 * y, False), (x**2, True)):
        problem = build_problem(np.column_stack([x, other]), y, epsilon=0.0, kappa=math.inf)
        block = problem.rows.block(0)
        d = np.full(50, 0.25)
        matrix = block.gram(block.weights * d)
        active = (np.ones(50, dtype=bool),)
        found = free_equations(problem.rows, np.arange(3), matrix, active)
        assert (found is not None) == proven


@pytest.mark.parametrize("size", [1e-9, 1e-3, 1e-2])
def test_the_price_of_a_residual(size):
    """The point that the theorem promises, computed with fifty digits, is worth what it says."""
    rng = np.random.default_rng(5)
    X, y = rng.standard_normal((30, 2)), np.where(rng.standard_normal(30) > 0.0, 1, -1)
    problem = build_problem(X, y, epsilon=0.0, kappa=math.inf)
    block = problem.rows.block(0)
    s = rng.uniform(0.2, 0.8, 30)
    d = s * (1.0 - s) * rng.uniform(0.5, 1.0, 30)
    matrix = block.gram(block.weights * d)
    equations = free_equations(problem.rows, np.arange(3), matrix, (np.ones(30, dtype=bool),))
    residual = size * rng.standard_normal(3)
    distance, move = equations.distance(np.abs(residual))
    c = np.linalg.solve(matrix, residual)
    assert distance >= math.sqrt(residual @ c) * (1.0 - 1e-9)
    assert (move >= np.abs(c) * (1.0 - 1e-9)).all()
    square, stiffness, reach = (r.value for r in charges(block, s, d, move))
    moved = s - d * block.margins(c)
    assert np.max(np.abs(moved - s) / np.minimum(s, 1.0 - s)) <= reach
    left = block.adjoint(block.weights * (s - moved))
    np.testing.assert_allclose(left, residual, rtol=1e-9, atol=1e-16)
    promised = block.weights @ entropy(s) - math.sqrt(square) * distance - stiffness * distance**2
    if reach <= 0.5:
        assert block.weights @ entropy(moved) >= promised


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("kappa", [1e-2, math.inf])
@pytest.mark.parametrize("costs", [[1.0, 1.0, 1.0], [10.0, 1.0, math.inf]])
def test_a_ball_that_doubles_do_not_resolve(norm, kappa, costs):
    """Sums of features in millions, of which the radius is less than the rounding."""
    rng = np.random.default_rng(0)
    X = 1e6 * rng.standard_normal((150, 3))
    y = X[:, 0] - X[:, 2] + 1e6 * rng.logistic(size=150) > 0.0
    result = drlogit.solve(X, y, epsilon=1e-6, kappa=kappa, norm=norm, feature_costs=costs)
    assert result.converged
    assert drlogit.verify(result, X, y).ok


def test_penalised_columns_are_held_as_far_as_they_are_independent():
    rng = np.random.default_rng(1)
    x, v = rng.standard_normal((2, 40))
    y = rng.standard_normal(40) > 0.0
    X = np.column_stack([x, v, x, np.zeros(40)])
    problem = build_problem(X, y, epsilon=1.0, kappa=math.inf, feature_costs=[math.inf, 1, 1, 1])
    block = problem.rows.block(0)
    matrix = block.gram(0.25 * block.weights)
    free = free_equations(
        problem.rows, np.array([0, 4]), matrix[np.ix_([0, 4], [0, 4])], (np.ones(40, dtype=bool),)
    )
    held = with_held_columns(free, np.array([1, 2, 3]), matrix, 40)
    np.testing.assert_array_equal(held.columns, [0, 1, 4])
    residual = np.array([1e-9, 2e-9, 5.0, 5.0, 1e-9])
    distance, move = held.distance(residual)
    part = np.ix_(held.columns, held.columns)
    c = np.linalg.solve(matrix[part], residual[held.columns] * [1.0, -1.0, 1.0])
    assert distance >= math.sqrt(c @ matrix[part] @ c) * (1.0 - 1e-9)
    assert (move[held.columns] >= np.abs(c) * (1.0 - 1e-9)).all()


def test_subnormal_columns_are_paid_for_not_levelled():
    """No double makes much of them; a thousand times larger, they would separate the sample."""
    X = np.array([[0.0], [0.0], [0.0], [1e-311]])
    y = np.array([1, -1, 1, 1])
    result = plain(X, y, tol=1e-2)
    assert result.converged
    assert result.objective - result.dual_objective > 1e-4  # what the largest double could gain
    assert drlogit.verify(result, X, y).ok
    problem = degenerate.Degenerate(
        0, "subnormal", X, y > 0,
        {"epsilon": 0.0, "kappa": math.inf, "feature_costs": None, "fit_intercept": True},
    )  # fmt: skip
    best = degenerate.value_by_hand(problem, result)
    assert result.dual_objective <= best < result.objective
    assert plain(1e3 * X, y, tol=1e-2).dual_objective < 0.5


def test_a_bound_above_its_point_is_an_alarm(monkeypatch):
    """Were a bound ever to contradict a point, nothing would be claimed."""
    case = zoo.planted(1)
    problem = case.build()

    def too_much(block, state, *arguments):
        return state[:2], (Sum(5.0),)

    monkeypatch.setattr("drlogit.problem.dual_bounds._value", too_much)
    assert certify(problem, case.coefficients).dual == 0.0


def test_judge_finds_what_is_there():
    """The judge itself: with fifty digits it reaches the optimum of an ordinary problem."""
    X, y = np.random.default_rng(0).standard_normal((30, 2)), np.arange(30) % 2 == 0
    result = plain(X, y, tol=1e-10)
    problem = degenerate.Degenerate(
        0, "ordinary", X, y,
        {"epsilon": 0.0, "kappa": math.inf, "feature_costs": None, "fit_intercept": True},
    )  # fmt: skip
    shifted = drlogit.Result(**{**result.__dict__, "coef": result.coef + 1.0})
    assert abs(degenerate.value_by_hand(problem, shifted) - mp.mpf(result.objective)) < 1e-9


def test_no_equation_costs_nothing():
    distance, move = FreeEquations.none().distance(np.zeros(3))
    assert distance == 0.0
    assert not move.any()
