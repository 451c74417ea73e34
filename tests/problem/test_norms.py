"""Transport norms: duality, and projections that are projections."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from drlogit.problem.norms import NORMS
from zoo import NORM_NAMES

ORDERS = {"l1": 1, "l2": 2, "linf": np.inf}
DUALS = {"l1": "linf", "l2": "l2", "linf": "l1"}

names = st.sampled_from(NORM_NAMES)
# Plain numbers (their squares do not underflow), powers of ten, ties and zeros.
entries = st.one_of(
    st.floats(-100.0, 100.0).map(lambda v: round(v, 9)),
    st.builds(lambda sign, k: sign * 10.0**k, st.sampled_from([-1.0, 1.0]), st.integers(-8, 8)),
    st.sampled_from([0.0, 1.0, -1.0]),
)
vectors = st.integers(1, 8).flatmap(lambda n: arrays(np.float64, n, elements=entries))
radii = st.one_of(st.floats(1e-9, 1e3), st.sampled_from([1e-300, 1e-17, 1.0, 1e9]))


@pytest.mark.parametrize("name", NORM_NAMES)
def test_values_are_the_norms_they_are_named_after(name):
    x = np.array([3.0, -4.0, 0.0, 1.0])
    assert NORMS[name].value(x) == pytest.approx(np.linalg.norm(x, ORDERS[name]), rel=1e-15)
    assert NORMS[name].dual(x) == pytest.approx(np.linalg.norm(x, ORDERS[DUALS[name]]), rel=1e-15)


@pytest.mark.parametrize("name", NORM_NAMES)
def test_no_coordinates_at_all(name):
    """With every feature free there is nothing to measure."""
    empty = np.zeros(0)
    norm = NORMS[name]
    assert norm.value(empty) == norm.dual(empty) == 0.0
    assert norm.project(empty, 1.0).shape == (0,)
    assert norm.project(empty, 1.0, empty).shape == (0,)


@given(names, vectors, st.data())
def test_dual_norms_bound_products_and_aligned_vectors_attain_them(name, x, data):
    norm = NORMS[name]
    y = data.draw(arrays(np.float64, x.size, elements=entries))
    assert abs(x @ y) <= norm.value(x) * norm.dual(y) * (1.0 + 1e-12)
    assert float(x @ norm.aligned(x)) == pytest.approx(norm.dual(x), rel=1e-12)
    assert norm.value(norm.aligned(x)) == pytest.approx(float(x.any()), rel=1e-12)


@given(names, vectors, radii)
def test_projections_are_the_nearest_points(name, x, radius):
    """``p`` is nearest iff it is in the ball and ``(x-p)·q ≤ (x-p)·p`` for all q of the ball.

    The largest left side is ``radius ‖x-p‖_dual``: an exact test of optimality.
    """
    value, dual, p = NORMS[name].value, NORMS[name].dual, NORMS[name].project(x, radius)
    size = max(value(x), radius)
    assert value(p) <= radius + 1e-13 * size
    rest = x - p
    assert radius * dual(rest) - rest @ p <= 1e-12 * size * max(np.linalg.norm(x), 1e-300)


@given(names, vectors, radii, st.data())
def test_projections_in_a_metric_are_the_nearest_points(name, x, radius, data):
    metric = data.draw(arrays(np.float64, x.size, elements=st.floats(1e-3, 1e3)))
    norm, p = NORMS[name], NORMS[name].project(x, radius, metric)
    size = max(norm.value(x), radius)
    assert norm.value(p) <= radius + 1e-12 * size
    rest = (x - p) / metric
    slack = radius * norm.dual(rest) - rest @ p
    assert slack <= 1e-9 * size * max(np.linalg.norm(x / metric), 1e-300)
    same = norm.project(x, radius, np.full(x.size, 7.0))
    np.testing.assert_allclose(same, norm.project(x, radius), rtol=1e-9, atol=1e-11 * size)


@pytest.mark.parametrize("name", NORM_NAMES)
@pytest.mark.parametrize("radius", [0.0, -1.0, 1.3877787807813069e-17, 5e-324])
def test_radius_that_rounding_loses(name, radius):
    """A ball so small that ``Σ|x| - radius`` rounds to ``Σ|x|`` once ended in an IndexError."""
    x = np.array([0.04353776, -0.23290689, 0.1973022, 0.31697794, -0.0702617])
    for metric in (None, np.arange(1.0, 6.0)):
        p = NORMS[name].project(x, radius, metric)
        assert NORMS[name].value(p) <= max(radius, 0.0) * (1.0 + 1e-12)


@pytest.mark.parametrize("name", NORMS)
@pytest.mark.parametrize("power", [-306, 300])
def test_a_multiple_of_a_metric_has_the_same_nearest_point(name, power):
    """Weights of samples whose probabilities are 1 to hundreds of digits are that small."""
    x, metric = np.array([-0.8, 0.07, -0.2, 0.3]), np.array([0.4, 10.0, 0.7, 0.1])
    project = NORMS[name].project
    expected = project(x, 0.01, metric)
    np.testing.assert_allclose(project(x, 0.01, metric * 10.0**power), expected, rtol=1e-9)
