"""Surveys of all samples, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import entr, expit

from drlogit.engine import _survey
from drlogit.engine._survey import EDGES, SurveyStep
from drlogit.rows._products import compiled_rows

N, n = 300, 3
P = n + 2
KAPPA, KINK, KINK_AFTER = 0.8, 0.5, 0.6


class Samples:
    def __init__(self, seed, each):
        rng = np.random.default_rng(seed)
        X, self.y, self.w = rng.standard_normal((N, n)), rng.choice([-1.0, 1.0], N), None
        self.w = rng.dirichlet(np.ones(N))
        self.rows = compiled_rows(X, self.y, self.w, True)
        self.Z = self.y[:, None] * np.column_stack([X, np.ones(N)])
        self.costs = rng.choice([0.5, 1.0, 2.0, np.inf], N) if each else np.ones(1)
        self.u = self.Z @ rng.standard_normal(n + 1)
        self.rng = rng

    def kinks(self, unit):
        return np.broadcast_to(np.where(np.isinf(self.costs), np.inf, unit * self.costs), N)

    @property
    def prices(self):
        finite = np.where(np.isinf(self.costs), 0.0, self.costs)
        return np.broadcast_to(KAPPA * finite, N)


@pytest.fixture(params=[False, True], ids=["one", "each"])
def samples(request):
    return Samples(7, request.param)


def check(k, u, kink, parts):
    """Loss, gradient, Hessian product and histograms at margins u."""
    s, kinks = expit(-u), k.kinks(kink)
    above, scalars = u > kinks, parts.scalars
    over = np.where(above, u - np.where(above, kinks, 0.0), 0.0)
    assert scalars[_survey.LOSS] == pytest.approx(k.w @ np.logaddexp(0.0, -u))
    assert scalars[_survey.HINGES] == pytest.approx(k.w @ over)
    assert scalars[_survey.CURVATURE] == pytest.approx(k.w @ (s * (1.0 - s)))
    gradient = np.append((k.w * (above - s)) @ k.Z, -(k.w * above) @ k.prices)
    np.testing.assert_allclose(parts.gradient, gradient, atol=1e-14)
    product = (k.w * s * (1.0 - s) * u) @ k.Z
    np.testing.assert_allclose(parts.product[:-1], product, atol=1e-14)
    bins = np.searchsorted(EDGES, np.abs(u - kinks), side="right")
    weights = np.bincount(bins, k.w, EDGES.size + 1)
    costs = np.where(above, np.where(np.isinf(k.costs), 0.0, k.costs), 0.0)
    np.testing.assert_allclose(parts.histograms[0], weights, atol=1e-15)
    expected = np.bincount(bins, k.w * costs, EDGES.size + 1)
    np.testing.assert_allclose(parts.histograms[1], expected, atol=1e-15)


def test_a_survey_at_margins(samples):
    k = samples
    u, curvature, sums = _survey.survey(k.rows, k.costs, KAPPA, KINK, k.u)
    np.testing.assert_array_equal(u, k.u)
    np.testing.assert_allclose(curvature, expit(k.u) * expit(-k.u), rtol=1e-12)
    check(k, k.u, KINK, _survey.parts_of(sums, P))


def test_a_survey_after_a_step(samples):
    k = samples
    change, dual_change = 0.4 * k.rng.standard_normal((2, P))
    curvature = k.rng.uniform(0.1, 0.3, N)
    active = np.abs(k.u - k.kinks(KINK)) < 0.1
    flips, length, multiple = k.rng.random(active.sum()), 0.7, 0.2
    step = SurveyStep(
        change, length, KINK_AFTER, curvature, dual_change, multiple, active.view(np.uint8), flips
    )
    u, (s, a), sums = _survey.survey_step(k.rows, k.costs, KAPPA, KINK, k.u, step)
    np.testing.assert_allclose(u, k.u + length * (k.Z @ change[:-1]), atol=1e-13)
    parts = _survey.parts_of(sums, P)
    check(k, u, KINK_AFTER, parts)
    own = expit(-k.u)
    moved = own - curvature * (k.Z @ dual_change[:-1]) - own * (1.0 - own) * multiple * k.u
    np.testing.assert_allclose(s, np.clip(moved, 0.0, 1.0), atol=1e-14)
    expected = (k.u > k.kinks(KINK)).astype(float)
    expected[active] = flips
    np.testing.assert_array_equal(a, expected)
    adjoint = np.append((k.w * (a - s)) @ k.Z, -(k.w * a) @ k.prices)
    np.testing.assert_allclose(parts.adjoint, adjoint, atol=1e-14)
    assert parts.scalars[_survey.ENTROPY] == pytest.approx(k.w @ (entr(s) + entr(1.0 - s)))
    assert parts.scalars[_survey.ADDITIONS] >= k.rows.panel
    crossed = ~active & ((u > k.kinks(KINK_AFTER)) != (k.u > k.kinks(KINK)))
    assert crossed.any()
    distance = np.abs(u - np.where(crossed, k.kinks(KINK_AFTER), 0.0))
    assert parts.scalars[_survey.CROSSED] == pytest.approx((k.w * distance)[crossed].sum())
