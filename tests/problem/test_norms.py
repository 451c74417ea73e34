"""Transport norms: duality, and projections that are projections."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from drlogit.problem.norms import NORMS, project_l1_ball, project_l2_ball, project_linf_ball
from zoo import NORM_NAMES

ORDERS = {"l1": 1, "l2": 2, "linf": np.inf}
PROJECTIONS = {"l1": project_l1_ball, "l2": project_l2_ball, "linf": project_linf_ball}
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
    assert PROJECTIONS[name](empty, 1.0).shape == (0,)


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
    value, dual, p = NORMS[name].value, NORMS[name].dual, PROJECTIONS[name](x, radius)
    size = max(value(x), radius)
    assert value(p) <= radius + 1e-13 * size
    rest = x - p
    assert radius * dual(rest) - rest @ p <= 1e-12 * size * max(np.linalg.norm(x), 1e-300)


@pytest.mark.parametrize("name", NORM_NAMES)
@pytest.mark.parametrize("radius", [0.0, -1.0, 1.3877787807813069e-17, 5e-324])
def test_radius_that_rounding_loses(name, radius):
    """A ball so small that ``Σ|x| - radius`` rounds to ``Σ|x|`` once ended in an IndexError."""
    x = np.array([0.04353776, -0.23290689, 0.1973022, 0.31697794, -0.0702617])
    assert NORMS[name].value(PROJECTIONS[name](x, radius)) <= max(radius, 0.0) * (1.0 + 1e-12)
