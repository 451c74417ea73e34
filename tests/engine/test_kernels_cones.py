"""Cones of size n: projections found with their steps, and step lengths up to the boundary."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from drlogit.engine._cones import Cones, RowCone, cone_of, no_norm
from drlogit.engine._newton import Newton
from drlogit.engine._sums import CHANGES, SCALARS, VALUE

NORMS = ("l1", "l2", "linf")
n = 5
P = n + 2  # a free coordinate before λ


class Projection:
    """minimise ½‖x - target‖² + ελ over a cone, by predictor and corrector steps."""

    def __init__(self, cone, target, x, epsilon=0.05, mu=0.1):
        self.target, self.x = target, x.copy()
        unused = SimpleNamespace(used=lambda gradient, rounding: 0.0)
        self.newton = Newton(np.ones(P), epsilon, cone, unused, 100.0)
        self.newton.open(x, mu)

    def linearise(self):
        x = self.newton.trial(0.0)
        sums = np.zeros(P * P + 3 * P + SCALARS)
        sums[: P * P] = np.eye(P).ravel()
        sums[P * P : P * P + P] = x - self.target
        sums[-SCALARS:][VALUE] = 0.5 * np.sum((x - self.target) ** 2)
        assert self.newton.linearise(sums)

    def direction(self, sigma, share):
        self.newton.predictor()
        nothing = np.zeros(P + CHANGES)
        return self.newton.corrector(sigma * self.newton.mu, share, nothing)

    def solved(self):
        newton, nothing = self.newton, np.zeros(P + CHANGES)
        for _ in range(60):
            self.linearise()
            if newton.complementarity + np.abs(newton.residuals()).max() < 1e-11:
                break
            newton.predictor()
            primal, dual = newton.longest()
            left = newton.after(primal, dual, nothing) / newton.complementarity
            sigma = max(min(1.0, left**3), 0.01)
            newton.corrector(sigma * newton.mu, min(primal, dual), nothing)
            primal, dual = newton.longest()
            newton.move(0.99 * primal, 0.99 * dual)
        return newton.trial(0.0)


def ball(norm, theta, radius):
    """The projection of θ on ‖θ‖_* ≤ radius."""
    if norm == "l1":
        return np.clip(theta, -radius, radius)
    if norm == "l2":
        return theta * min(1.0, radius / max(np.linalg.norm(theta), 1e-300))
    size = np.sort(np.abs(theta))[::-1]
    if size.sum() <= radius:
        return theta
    excess = (np.cumsum(size) - radius) / np.arange(1, size.size + 1)
    level = excess[np.flatnonzero(size > excess)[-1]]
    return np.sign(theta) * np.maximum(np.abs(theta) - level, 0.0)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("seed", range(6))
def test_projections_on_cones_of_norms(norm, seed):
    rng = np.random.default_rng(seed)
    target, epsilon = 1.5 * rng.standard_normal(P), 0.05
    where, x = np.arange(n), np.zeros(P)
    x[-1] = 3.0
    found = Projection(cone_of(norm, where, P - 1), target, x, epsilon).solved()

    def value(lam):
        theta = ball(norm, target[:n], lam)
        distance = np.sum((theta - target[:n]) ** 2) + (lam - target[-1]) ** 2
        return 0.5 * distance + epsilon * lam

    lam = minimize_scalar(value, bounds=(0.0, 20.0), method="bounded", options={"xatol": 1e-12}).x
    np.testing.assert_allclose(found[-1], lam, atol=2e-5)
    np.testing.assert_allclose(found[:n], ball(norm, target[:n], lam), atol=4e-5)
    assert found[n] == pytest.approx(target[n], abs=1e-10)


def dual_norm(norm, theta):
    return np.linalg.norm(theta, {"l1": np.inf, "l2": 2, "linf": 1}[norm])


@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("seed", range(8))
def test_steps_end_at_the_boundary(norm, seed):
    rng = np.random.default_rng(100 + seed)
    x = np.append(0.3 * rng.standard_normal(n + 1), 2.0)
    posed = Projection(cone_of(norm, np.arange(n), P - 1), 9.0 * rng.standard_normal(P), x)
    posed.linearise()
    dx = posed.direction(0.0, 0.0)
    primal, dual = posed.newton.longest()

    def inside(length):
        y = x + length * dx
        return dual_norm(norm, y[:n]) <= y[-1]

    assert 0.0 < primal <= 1.0
    assert 0.0 < dual <= 1.0
    assert inside(primal * (1.0 - 1e-9))
    if norm == "l1" and primal < 1.0:  # the second-order cone has one length for both
        assert not inside(primal * (1.0 + 1e-9))


def test_lambda_alone_is_not_negative():
    target = np.full(P, -1.0)
    found = Projection(no_norm(P - 1), target, np.append(np.zeros(P - 1), 1.0)).solved()
    np.testing.assert_allclose(found, [*np.full(P - 1, -1.0), 0.0], atol=1e-6)


def test_rows_of_groups():
    """0 ≤ x_0, x_1 ≤ x_2 beside a norm on the others: x_2 is the largest coefficient of a group."""
    columns = np.array([[0, 1, 2, 2], [0, 1, 0, 1]], dtype=np.int32)
    entries = np.array([[1.0, 1.0, 1.0, 1.0], [0.0, 0.0, -1.0, -1.0]])
    rows = RowCone(columns, entries, np.zeros(4), np.full(4, 0.25), P - 1)
    target = np.array([-0.5, 1.5, 0.5, 2.0, -0.2, 0.3, 0.6])
    x = np.array([0.2, 0.2, 0.5, 0.0, 0.0, 0.0, 1.0])
    cone = Cones(cone_of("l1", np.array([3, 4]), P - 1), rows)
    found = Projection(cone, target, x, epsilon=0.0).solved()
    expected = [0.0, 1.0, 1.0, 1.3, -0.2, 0.3, 1.3]  # x_1 and x_2 meet, x_3 and λ meet
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_trust_rows_allow_more_as_the_iterate_goes_outwards():
    """They are no part of the problem: the projection is that without them."""
    columns, entries = np.array([[0], [0]], dtype=np.int32), np.array([[-1.0], [0.0]])
    trust = RowCone(columns, entries, np.ones(1), np.ones(1), P - 1, np.ones(1))
    target = np.append(np.array([6.0, 0.5, 0.0, 0.0, 0.0, 0.0]), 1.0)
    cone = Cones(cone_of("l1", np.array([1]), P - 1), trust)
    posed = Projection(cone, target, np.append(np.zeros(P - 1), 1.0), epsilon=0.05)
    for _ in range(30):
        posed.linearise()
        posed.direction(0.2, 0.0)
        primal, dual = posed.newton.longest()
        posed.newton.move(0.95 * primal, 0.95 * dual)
    assert posed.newton.trial(0.0)[0] > 5.0
