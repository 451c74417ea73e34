"""The certificate: never above any value, tight at solutions, and close to the truth near them."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from benchmarks import stated
from benchmarks.judge import conic_solution
from benchmarks.stated import solve
from hypothesis import given, settings
from hypothesis import strategies as st

import class_zoo
import zoo
from drlogit.dual.certify import certify
from drlogit.dual.label_points import LabelPoint, label_bound
from drlogit.problem.problem import Problem

pytestmark = pytest.mark.slow

#: What rounding may do to a value of a few nats.
ROUNDING = 1e-12

#: 2 000 random points in every run of the tests, 20 000 when exploring (``make stress``).
PROFILE = settings()
POINTS = settings(max_examples=30 if PROFILE.derandomize else PROFILE.max_examples)

#: Every combination of options for which a solution can be planted.
OPTIONS = {
    "norm": zoo.NORM_NAMES, "kappa": (0.3, 2.0, math.inf), "fit_intercept": (True, False),
    "weighted": (True, False), "costs": (0.0, 0.7), "n_free": (0, 2, 5), "binding": (True, False),
}  # fmt: skip
STRUCTURES = [
    dict(zip(OPTIONS, values, strict=True)) for values in itertools.product(*OPTIONS.values())
]


# --- weak duality ----------------------------------------------------------------------------


def random_point(problem: Problem, near: np.ndarray, rng: np.random.Generator):
    """Coefficients of any size or near a solution; a dual point of such coefficients, or None."""
    size = problem.costs.size
    around = near if rng.random() < 0.4 else 0.0
    v = around + 10.0 ** rng.uniform(-3, 3) * rng.standard_normal(size)
    if rng.random() < 0.2:
        return v, None
    dual = v + (rng.random() < 0.5) * 10.0 ** rng.uniform(-3, 2) * rng.standard_normal(size)
    a = rng.random(problem.rows.n_samples) ** rng.choice([0.2, 1.0, 5.0, 50.0])
    a[rng.random(a.size) < 0.3] = rng.integers(0, 2)
    return v, zoo.dual_point(problem, dual, a)


@settings(POINTS)
@given(st.sampled_from(STRUCTURES), st.integers(0, 2**32 - 1))
def test_no_bound_is_above_the_optimum_and_no_value_below(structure, seed):
    """From random points, on problems whose optimal value is known to rounding."""
    rng = np.random.default_rng(seed)
    case = zoo.planted(seed, n_samples=12, **structure)
    problem = case.build()
    for _ in range(20):
        v, point = random_point(problem, case.coefficients, rng)
        result = certify(problem, v, point=point)
        assert math.isfinite(result.dual)
        assert result.dual <= case.objective + ROUNDING
        assert result.primal >= case.objective - ROUNDING


# --- tight at solutions ----------------------------------------------------------------------


@pytest.mark.parametrize("structure", STRUCTURES[::4], ids=lambda s: "-".join(map(str, s.values())))
def test_certificate_is_tight_at_planted_solutions(structure):
    """Problems built backwards from the optimality conditions."""
    for seed in range(3):
        case = zoo.planted(seed, **structure)
        problem = case.build()
        result = certify(problem, case.coefficients, point=case.point(problem, case.coefficients))
        assert result.gap < 1e-9
        assert result.primal == pytest.approx(case.objective, abs=ROUNDING)
        assert result.lam == pytest.approx(case.lam, rel=1e-9, abs=ROUNDING)
        assert problem.best_lambda(case.coefficients) == result.lam


# --- close to the truth near solutions -----------------------------------------------------


def nearby(case: zoo.Planted, distance: float, seed: int) -> np.ndarray:
    """The solution plus a step of that length, in units in which the costs are one."""
    costs = case.options["feature_costs"]
    unit = np.ones(len(case.coef)) if costs is None else np.where(np.isinf(costs), 1.0, costs)
    unit = np.append(unit, 1.0)[: case.coefficients.size]
    step = np.random.default_rng(seed).standard_normal(unit.size)
    return case.coefficients + distance * unit * step / np.linalg.norm(step)


#: Planted problems of every shape.
SHAPES = {
    "tall": {"n_samples": 60, "n_features": 6},
    "square": {"n_samples": 30, "n_features": 30},
    "wide": {"n_samples": 16, "n_features": 40},
    "correlated": {"n_samples": 80, "n_features": 10, "correlation": 0.95},
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("norm", zoo.NORM_NAMES)
def test_gap_is_close_to_the_true_suboptimality(norm, shape):
    """At distance 1e-4 from a solution the gap is the truth and hardly more."""
    gaps, truths = [], []
    for seed, (kappa, fit_intercept, n_free) in enumerate(
        itertools.product((0.3, 2.0, math.inf), (True, False), (0, 2))
    ):
        case = zoo.planted(
            seed, norm=norm, kappa=kappa, fit_intercept=fit_intercept, n_free=n_free,
            weighted=seed % 2 == 0, **SHAPES[shape],
        )  # fmt: skip
        problem = case.build()
        for trial in range(3):
            v = nearby(case, 1e-4, 10 * seed + trial)
            gaps.append(certify(problem, v, point=case.point(problem, v)).gap)
            truths.append(problem.objective(v) - case.objective)
    gaps, truths = np.array(gaps), np.array(truths)
    assert (gaps >= truths - ROUNDING).all()
    assert (gaps <= 1.02 * truths + 1e-9).all()
    assert np.median(gaps / truths) <= 1.05


# --- awkward problems never give NaN, and no warnings ----------------------------------------


def test_extreme_points_give_finite_bounds():
    rng = np.random.default_rng(7)
    for case in zoo.ZOO[::3]:
        problem = case.build()
        zeros = np.zeros(problem.costs.size)
        for v in (zeros, 1e-12 + zeros, 1e3 * rng.standard_normal(zeros.size), 1e6 + zeros):
            half = zoo.dual_point(problem, v, np.full(problem.rows.n_samples, 0.5))
            for point in (None, half):
                result = certify(problem, v, point=point)
                assert math.isfinite(result.primal)
                assert 0.0 <= result.dual <= result.primal + 1e-9 * max(1.0, result.primal)
                assert result.gap >= 0.0


@pytest.mark.parametrize("kappa", [1.0, math.inf])
def test_quasi_separable_data_without_radius_are_certified(kappa):
    """Where a feature occurs in one class only, the dual needs s = 0 exactly."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.standard_normal((200, 4)), rng.random((200, 3)) < 0.05])
    y = np.where(X[:, 0] + rng.logistic(size=200) > 0.0, 1, -1)
    y[X[:, 4:].any(axis=1)] = 1
    plain = X[:, :4][~X[:, 4:].any(axis=1)]
    others = solve(plain, y[~X[:, 4:].any(axis=1)], epsilon=0.0, kappa=kappa, tol=1e-9)
    result = solve(X, y, epsilon=0.0, kappa=kappa)
    assert np.abs(result.coef[4:]).max() > 10.0  # on the way to infinity
    assert 0.0 <= result.gap <= 1e-6
    # The samples with such a feature cost nothing in the end; the others are fitted alone.
    value = others.objective * len(plain) / len(X)
    assert result.dual_objective <= value + 1e-9
    assert result.objective >= value - 1e-9
    # The same with features that cannot move, while others can.
    costs = np.array([1.0] * 4 + [np.inf] * 3)
    result = solve(X, y, epsilon=1e-3, kappa=math.inf, feature_costs=costs)
    assert 0.0 <= result.gap <= 1e-6


def test_collinear_free_columns():
    """A constant feature that cannot move repeats the intercept: equations twice, not two."""
    base = zoo.ZOO[0]
    X = np.column_stack([base.X, np.ones(40), np.ones(40)])
    costs = [1.0, 1.0, 1.0, 1.0, np.inf, np.inf]
    for norm, kappa in itertools.product(zoo.NORM_NAMES, (0.5, math.inf)):
        options = {"epsilon": 0.03, "kappa": kappa, "norm": norm}
        exact = conic_solution(base.X, base.y, tol=1e-9, **options)
        problem = stated.problem(X, base.y, feature_costs=costs, **options)
        v = problem.join(np.append(exact.coef, [3.0, -2.0]), exact.intercept - 1.0)
        point = zoo.dual_point(problem, v, exact.flip_share)
        assert certify(problem, v, point=point).gap < 1e-8


@pytest.mark.parametrize("seed", [0, 1, 2, 4, 5])
def test_a_scaled_point_proves_the_same_bound(seed):
    X, y, ball = class_zoo.generated(seed, n_classes=3)
    ball |= {"kappa": np.inf, "epsilon": 1e-3}
    problem = stated.problem(X, y, **ball)
    model = np.zeros((3, problem.rows.n_columns))
    kept = np.count_nonzero(problem.penalised)
    flow = np.random.default_rng(seed).standard_normal((3, kept)) * np.abs(X).mean()
    point = LabelPoint(label_bound(problem, model, None).unscaled, flow)
    found = label_bound(problem, model, point)
    assert not np.allclose(found.point.flow, flow)  # far outside
    again = label_bound(problem, model, found.point)
    assert again.point is not found.point
    np.testing.assert_allclose(again.point.flow, found.point.flow, rtol=1e-9)
    for one, other in zip(found.point.shares, again.point.shares, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9)
    assert again.value == pytest.approx(found.value, rel=1e-9)
