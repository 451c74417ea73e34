"""The quadratic model of the correction, by its optimality conditions."""

from __future__ import annotations

import numpy as np
import pytest

from drlogit.dual._certificate import FREE, IN_NORM, Coordinates
from drlogit.dual.correction import correction
from drlogit.problem.norms import NORMS

DUAL = {"l1": np.inf, "l2": 2, "linf": 1}
PRIMAL = {"l1": 1, "l2": 2, "linf": np.inf}


def model(norm, seed):
    """Two free columns and four in the norm: coordinates, Hessian, gradient and x."""
    rng = np.random.default_rng(seed)
    n, free = 6, np.arange(6) % 3 == 2
    A = rng.standard_normal((20, n)) * rng.uniform(0.5, 2.0, n)
    kind = np.where(free, FREE, IN_NORM).astype(np.int32)
    costs = np.where(free, 1.0, rng.uniform(0.5, 2.0, n))
    ones, zeros = np.ones(n), np.zeros(n)
    coordinates = Coordinates(kind, costs, NORMS[norm], ones, zeros, ones, None)
    return coordinates, A.T @ A / 20.0, 0.3 * rng.standard_normal(n), rng.standard_normal(n)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_the_step_solves_the_model(norm, seed):
    """g - H(t - x) vanishes on free columns; Hölder's inequality is an equality on the others."""
    coordinates, H, g, x = model(norm, seed)
    inside, costs = coordinates.kind == IN_NORM, coordinates.costs
    radius = 0.5
    step = correction(coordinates, H, g, x, radius)
    after, t = g - H @ step, x + step
    np.testing.assert_allclose(after[~inside], 0.0, atol=1e-12)
    used = np.linalg.norm((costs * after)[inside], PRIMAL[norm])
    size = np.linalg.norm((t / costs)[inside], DUAL[norm])
    gained = after[inside] @ t[inside]
    assert used <= radius * (1.0 + 1e-8)
    assert gained == pytest.approx(radius * size, rel=1e-6, abs=1e-8)
