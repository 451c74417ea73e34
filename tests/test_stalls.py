"""Problems on which the interior point once stood still: nearly separable, or unevenly scaled."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

import drlogit
from drlogit.problem.problem import build_problem
from drlogit.problem.result import Monitor, Status
from drlogit.solvers.interior_point import method
from drlogit.solvers.interior_point.barrier_samples import HingeSamples
from drlogit.solvers.interior_point.progress import Progress


def gaussian(seed, n_samples, n_features, *, empty=False, spread=0.0):
    """Labels that follow a clear signal; ``empty``: half of the columns and 30 % of the rows."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_samples, n_features))
    if empty:
        X[:, rng.permutation(n_features)[: n_features // 2]] = 0.0
        X[rng.random(n_samples) < 0.3] = 0.0
    noise = rng.standard_normal(n_features), rng.logistic(size=n_samples)
    y = np.where(X @ noise[0] + noise[1] > 0.0, 1, -1)
    y[0], y[-1] = 1, -1
    return X * 10.0 ** rng.uniform(-spread / 2.0, spread / 2.0, n_features), y


#: A Newton step of the barrier carried samples of large margins to the wrong side.
NEARLY_SEPARABLE = [
    (gaussian(32, 19, 9), 1e-4, 1.0, "l2", False),
    (gaussian(133, 19, 9), 1e-4, 1.0, "l2", True),
    (gaussian(13, 750, 400, empty=True), 1.2e-4, 7.0, "l1", True),
]


@pytest.mark.parametrize(("data", "epsilon", "kappa", "norm", "intercept"), NEARLY_SEPARABLE)
def test_barrier_does_not_overshoot(data, epsilon, kappa, norm, intercept):
    result = drlogit.solve(
        *data, epsilon=epsilon, kappa=kappa, norm=norm, fit_intercept=intercept, hinge="barrier"
    )
    assert result.gap <= 1e-6
    assert result.n_iter <= 30


def test_blocks_without_weight_do_no_harm():
    X, y = gaussian(0, 400, 6)
    options = {"epsilon": 0.01, "kappa": 0.3}
    weights = np.repeat([0.0, 1.0], 200)
    problem = build_problem(X, y, sample_weight=weights, n_blocks=4, **options)
    found = method.interior_point(problem, tol=1e-7, monitor=Monitor(None, 0), hinge="barrier")
    wanted = drlogit.solve(X[200:], y[200:], tol=1e-7, **options)
    assert found.status is Status.OPTIMAL
    assert problem.objective(found.coefficients) == pytest.approx(wanted.objective, abs=2e-7)


def test_samples_without_weight_do_not_hold_up_steps():
    """They once did: 99 iterations of 479 × 479, and 10 without them."""
    for seed, light in product((7, 4), (0.0, 1e-13)):
        X, y = gaussian(seed, 80, 40)
        weights = np.random.default_rng(seed).integers(0, 4, 80)
        options = {"epsilon": 1e-5, "kappa": 0.3, "norm": "l2", "hinge": "barrier"}
        there = weights > 0
        alone = drlogit.solve(X[there], y[there], sample_weight=weights[there], **options)
        result = drlogit.solve(X, y, sample_weight=np.where(there, weights, light), **options)
        assert alone.gap <= 1e-6
        assert result.gap <= 1e-6
        assert result.n_iter <= alone.n_iter + 3
        assert result.objective == pytest.approx(alone.objective, abs=2e-6)


def test_short_steps_leave_room():
    """A slack that lost 99 % of itself in a short step blocked the steps that followed."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((90, 60))
    y = np.where(X @ rng.standard_normal(60) + rng.logistic(size=90) > 0.0, 1, -1)
    X *= 10.0 ** rng.uniform(-3.0, 3.0, 60)
    result = drlogit.solve(X, y, epsilon=1e-5, kappa=1.0, norm="l2", fit_intercept=False)
    assert result.gap <= 1e-6
    assert result.n_iter <= 45


@pytest.mark.parametrize(
    ("seed", "epsilon", "intercept"),
    [(86, 6.19e-3, False), (137, 0.0167, True), (198, 2.7e-3, False)],
)
def test_complementarity_waits_for_the_residuals(seed, epsilon, intercept):
    # The second-order cone's boundary blocked all steps, far from the optimum.
    data = gaussian(seed, 11, 12, spread=6.0)
    result = drlogit.solve(
        *data, epsilon=epsilon, kappa=math.inf, norm="l2", fit_intercept=intercept
    )
    assert result.gap <= 1e-6
    assert result.n_iter <= 45


def test_iterations_are_divided_and_the_best_point_is_handed_over(monkeypatch):
    calls = []

    def out_of_iterations(scaled, progress, *, max_iter, x=None, together=False):
        calls.append((max_iter, x))
        progress.n_iter += max_iter
        progress.coefficients = progress.coefficients + scaled.scale
        return Status.MAX_ITER

    monkeypatch.setattr(method, "solve_with_barrier", out_of_iterations)
    monkeypatch.setattr(method, "solve_with_smoothing", out_of_iterations)
    data = gaussian(0, 20, 3)
    options = {"epsilon": 0.1, "kappa": 1.0}
    drlogit.solve(*data, max_iter=200, **options)
    (first, start), (again, start_again), (last, best) = calls
    assert (first, again, last) == (120, 60, 20)
    assert start is start_again is None
    np.testing.assert_allclose(best, 2.0)
    # Few iterations are not worth dividing.
    calls.clear()
    drlogit.solve(*data, max_iter=40, **options)
    assert [first for first, _ in calls] == [40]


def test_standing_still_is_noticed():
    problem = build_problem(*gaussian(0, 20, 3), epsilon=0.1, kappa=1.0)
    progress = Progress(problem, 1e-6, Monitor())
    share = problem.margins(progress.coefficients)

    def report(primal, estimate):
        return progress.report(progress.coefficients, primal, share, estimate, 1.0)

    assert not any(report(1.0, 0.5) for _ in range(50)), "nobody asked for haste"
    progress.begin(patience=3)
    values = [(1.0, 0.5), (1.0, 0.4), (0.9, 0.6), (0.9, 0.39), (0.9, 0.38)]
    assert not any(report(*value) for value in values)
    assert report(0.9, 0.37)
    assert progress.status is Status.STALLED


def test_parabola_of_the_loss_along_a_direction():
    problem = build_problem(*gaussian(1, 12, 2), epsilon=0.1, kappa=1.0, fit_intercept=False)
    rows, at, by = problem.rows, np.array([0.3, -2.0]), np.array([-4.0, 9.0])
    model = HingeSamples(rows, 1.0)
    here, _ = model.linearise(model.open(at, 1.0, 0.05), 1.0, rough=False)
    direction, *_ = model.predict(here, by, 0.0)

    def mean_loss(length):
        return np.logaddexp(0.0, -rows.gather(problem.margins(at + length * by))).mean()

    slope, curvature = model.parabola(direction)
    # By differences, with the steps that rounding likes best.
    assert float(slope) == pytest.approx((mean_loss(1e-5) - mean_loss(-1e-5)) / 2e-5, rel=1e-6)
    second = (mean_loss(1e-4) - 2.0 * mean_loss(0.0) + mean_loss(-1e-4)) / 1e-8
    assert float(curvature) == pytest.approx(second, rel=1e-5)
    _, there = model.advance(direction, (0.5, 0.5))
    assert float(there) == pytest.approx(mean_loss(0.5), rel=1e-12)
