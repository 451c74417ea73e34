"""Dual points of several classes that are scaled into the ball prove their bound as they are."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks import stated

import class_zoo
from drlogit.dual.coordinates import label_coordinates
from drlogit.dual.label_points import LabelPoint, label_bound
from drlogit.problem.parameters import ADMITTED


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


def test_the_charge_is_what_the_worst_admitted_model_gains():
    """Its classes differ by at most so many log-odds per standard deviation of a free column."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 2)) * [1.0, 5.0], np.arange(60) % 3
    problem = stated.problem(X, y, epsilon=0.1, kappa=1.0, norm="l2", feature_costs=[1.0, np.inf])
    left = np.zeros((3, 3))  # classes, columns with the intercept
    left[:, 1] = [3e-6, -1e-6, -2e-6]
    coordinates = label_coordinates(problem)
    # <G, B> is largest for classes at either end of the range that is admitted.
    deviation = np.sqrt(np.mean((X[:, 1] - X[:, 1].mean()) ** 2))
    ends = np.array([0.5, -0.5, -0.5]) * ADMITTED / deviation
    assert coordinates.charge(left[1:].ravel()) == pytest.approx(left[:, 1] @ ends, rel=1e-9)
    model = np.zeros((3, 3))
    model[:, 1] = 0.99 * ends
    others = (model[1:] - model[0]).ravel()
    assert coordinates.admits(others)
    assert not coordinates.admits(others * 1.02)
