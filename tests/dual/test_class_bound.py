"""Dual points of several classes that are scaled into the ball prove their bound as they are."""

from __future__ import annotations

import numpy as np
import pytest

import class_zoo
from drlogit.dual.classes import ClassPoint, class_bound, class_point_of_model
from drlogit.fitting.classes import build_class_problem


@pytest.mark.parametrize("seed", [0, 1, 2, 4, 5])
def test_a_scaled_point_proves_the_same_bound(seed):
    X, y, ball = class_zoo.generated(seed, n_classes=3)
    ball |= {"kappa": np.inf, "epsilon": 1e-3}
    problem = build_class_problem(X, y, classes=np.unique(y), **ball)
    model = np.zeros((3, problem.rows.n_columns))
    kept = np.count_nonzero(problem.penalised)
    flow = np.random.default_rng(seed).standard_normal((3, kept)) * np.abs(X).mean()
    point = ClassPoint(class_point_of_model(problem, model).shares, flow)
    found = class_bound(problem, model, point)
    assert not np.allclose(found.point.flow, flow)  # far outside
    again = class_bound(problem, model, found.point)
    assert again.point is not found.point
    np.testing.assert_allclose(again.point.flow, found.point.flow, rtol=1e-9)
    for one, other in zip(found.point.shares, again.point.shares, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9)
    assert again.value == pytest.approx(found.value, rel=1e-9)
