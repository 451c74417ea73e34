"""Sums and directions of the flip pair, against NumPy and small linear systems."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import entr, expit

from drlogit.engine import _pair
from drlogit.engine._sums import (
    BOTH_CHANGE,
    CHANGES,
    COUNT,
    CURVATURE,
    DEGREE,
    DUAL_CHANGE,
    ENTROPY,
    LEVELS,
    LOSS,
    PARABOLA,
    PRIMAL_CHANGE,
    PRODUCTS,
    PROOF_ADDITIONS,
    PROOF_ENTROPY,
    SCALARS,
    SLOPE,
    VALUE,
    longest,
)
from drlogit.engine.settings import SETTINGS
from drlogit.rows._products import compiled_rows

NEVER = -1.0
N, n = 70, 3
P = n + 2


class Samples:
    """Random samples with a random state, as arrays."""

    def __init__(self, seed, linear=False):
        rng = np.random.default_rng(seed)
        self.X, self.y = rng.standard_normal((N, n)), rng.choice([-1.0, 1.0], N)
        self.w = rng.dirichlet(np.ones(N))
        self.rows = compiled_rows(self.X, self.y, self.w, True)
        self.Z = self.y[:, None] * np.column_stack([self.X, np.ones(N)])
        self.kappa = np.where(rng.random(N) < 0.2, NEVER, rng.uniform(0.1, 2.0, N))
        self.flips = self.kappa != NEVER
        self.Zhat = np.column_stack([self.Z, -np.where(self.flips, self.kappa, 0.0)])
        self.coef = np.append(rng.standard_normal(n + 1), 0.8)
        self.slope = rng.random(N) if linear else np.zeros(0)
        u = self.Z @ self.coef[:-1]
        t, r = rng.exponential(size=(2, N))
        a = rng.uniform(0.05, 0.95, N)
        t, r = np.where(self.flips, t, 0.0), np.where(self.flips, r, 1.0)
        a = np.where(self.flips, a, 0.0)
        s = self.slope if linear else expit(-u)
        q = np.where(self.flips, 1.0 / ((1.0 - a) * r + a * t), 0.0)
        self.u, self.s, self.t, self.r, self.c, self.a, self.q = u, s, t, r, 1.0 - a, a, q
        self.now = np.array([u, s, t, r, 1.0 - a, a, q])
        self.state = _pair.PairState(self.kappa, self.slope, self.now)
        self.dcoef = 0.3 * rng.standard_normal(P)
        self.dv = self.Zhat @ self.dcoef

    def changes(self, E, F):
        """The solution of (6) for each sample: Δt, Δr, Δc."""
        found = np.zeros((3, N))
        for i in np.flatnonzero(self.flips):
            matrix = [[self.c[i], 0.0, self.t[i]], [0.0, self.a[i], -self.r[i]], [1.0, -1.0, 0.0]]
            found[:, i] = np.linalg.solve(matrix, [E[i], F[i], self.dv[i]])
        return found

    @property
    def losses(self):
        return -self.s * self.u if self.slope.size else np.logaddexp(0.0, -self.u)

    @property
    def curvature(self):
        return np.zeros(N) if self.slope.size else self.s * (1.0 - self.s)


@pytest.fixture(params=[(0, False), (1, False), (2, True)], ids=["0", "1", "linear"])
def samples(request):
    return Samples(*request.param)


def scalars_of(sums):
    return sums[-SCALARS:]


@pytest.mark.parametrize("least", [0.0, 0.15])
@pytest.mark.parametrize("gram", [True, False])
def test_linearisation(samples, gram, least):
    k = samples
    state, sums = _pair.linearise_pair(k.rows, k.state, k.coef, 0.0, 0.0, gram, least)
    np.testing.assert_allclose(state.parts()[2], k.now, rtol=1e-12)
    om = k.c * k.a * k.q
    om = np.where(om >= least, om, 0.0)
    data = np.column_stack([k.Z, np.zeros(N)])
    matrix = (data.T * (k.w * k.curvature)) @ data + (k.Zhat.T * (k.w * om)) @ k.Zhat
    if gram:
        found = sums[: P * P].reshape(P, P)
        np.testing.assert_allclose(np.tril(found), np.tril(matrix), atol=1e-14)
    gradient, affine, centring = sums[-3 * P - SCALARS : -SCALARS].reshape(3, P)
    np.testing.assert_allclose(gradient, (k.w * k.a) @ k.Zhat - (k.w * k.s) @ data, atol=1e-14)
    # The responses of a to products that go to zero, and to a unit of centring, at Δv = 0.
    k.dv = np.zeros(N)
    da = -k.changes(-k.c * k.t, -k.a * k.r)[2]
    formed = slice(None) if gram else slice(P - 1, P)  # λ's entry alone
    np.testing.assert_allclose(affine[formed], ((k.w * da) @ k.Zhat)[formed], atol=1e-14)
    da = -k.changes(np.ones(N), np.ones(N))[2]
    np.testing.assert_allclose(centring[formed], ((k.w * da) @ k.Zhat)[formed], atol=1e-13)
    scalars = scalars_of(sums)
    over = np.where(k.flips, np.maximum(k.Zhat @ k.coef, 0.0), 0.0)
    assert scalars[LOSS] == pytest.approx(k.w @ k.losses)
    assert scalars[VALUE] == pytest.approx(k.w @ (k.losses + over))
    assert scalars[PRODUCTS] == pytest.approx(k.w[k.flips] @ (k.c * k.t + k.a * k.r)[k.flips])
    assert scalars[DEGREE] == pytest.approx(2.0 * k.w[k.flips].sum())
    assert scalars[ENTROPY] == pytest.approx(k.w @ (k.losses + k.s * k.u))
    assert scalars[COUNT] == np.count_nonzero(om)


def test_prediction_and_correction(samples):
    k = samples
    state, sums = _pair.predict_pair(k.rows, k.state, k.dcoef)
    dt, dr, dc = k.changes(-k.c * k.t, -k.a * k.r)
    changes = sums[P : P + CHANGES]
    assert changes[PRIMAL_CHANGE] == pytest.approx(k.w @ (k.c * dt + k.a * dr))
    assert changes[DUAL_CHANGE] == pytest.approx(k.w @ (k.t * dc - k.r * dc))
    assert changes[BOTH_CHANGE] == pytest.approx(k.w @ (dt * dc - dr * dc))
    e, f = dt * dc, -dr * dc
    most = SETTINGS.second_order
    e = np.clip(e, -most * k.c * k.t, most * k.c * k.t)
    f = np.clip(f, -most * k.a * k.r, most * k.a * k.r)
    np.testing.assert_allclose(state.parts()[3], [e, f], atol=1e-12)
    dv, k.dv = k.dv, np.zeros(N)
    np.testing.assert_allclose(sums[:P], (k.w * -k.changes(-e, -f)[2]) @ k.Zhat, atol=1e-13)
    k.dv = dv
    centre, share = 0.02, 0.7
    corrected, sums = _pair.correct_pair(k.rows, state, k.dcoef, centre, share)
    expected = k.changes(centre - k.c * k.t - share * e, centre - k.a * k.r - share * f)
    du = k.Z @ k.dcoef[:-1]
    np.testing.assert_allclose(corrected.parts()[4], [du, *expected], atol=1e-11)
    assert sums[SLOPE] == pytest.approx(-(k.w * k.s) @ du)
    assert sums[CURVATURE] == pytest.approx((k.w * k.curvature) @ (du * du))


def booked(k, dt, dr, dc):
    """Longest steps and costs of passing, of the samples that do not allow the whole step."""
    own = k.c * k.t + k.a * k.r
    primal, dual = [], []
    for i in np.flatnonzero(k.flips):
        fall = max(-dt[i] / k.t[i], -dr[i] / k.r[i])
        if fall > 1.0:
            lost = max(-dt[i], -dr[i])
            primal.append((1.0 / fall, k.w[i] * (own[i] + SETTINGS.blocking * lost)))
        drop = max(-dc[i] / k.c[i], dc[i] / k.a[i])
        if drop > 1.0:
            cost = SETTINGS.blocking * abs(dc[i]) * (k.t[i] + k.r[i])
            dual.append((1.0 / drop, k.w[i] * (own[i] + cost)))
    return sorted(primal), sorted(dual)


def test_step_lengths_pass_samples_up_to_a_price(samples):
    k = samples
    k.dcoef = 4.0 * k.dcoef
    k.dv = k.Zhat @ k.dcoef
    _, sums = _pair.predict_pair(k.rows, k.state, k.dcoef)
    costs = booked(k, *k.changes(-k.c * k.t, -k.a * k.r))
    assert all(len(each) > 5 for each in costs)
    for kind, each in enumerate(costs):
        assert sums[P + CHANGES + kind * LEVELS :][:LEVELS].sum() == pytest.approx(
            sum(cost for _, cost in each)
        )
        for passed in range(len(each) - 1):
            price = sum(cost for _, cost in each[:passed]) + 1e-12
            length = longest(sums, P + CHANGES, price)[kind]
            limit = each[passed][0]  # levels round down, by a thirty-second at most
            assert limit / (1.0 + 1.0 / 32.0) - 1e-12 <= length <= limit + 1e-12
    assert longest(sums, P + CHANGES, np.inf) == (1.0, 1.0)
    assert longest(np.zeros(PARABOLA), PARABOLA, 0.0) == (1.0, 1.0)


def test_steps_are_linear_and_passed_samples_keep_a_share(samples):
    k = samples
    state, _ = _pair.predict_pair(k.rows, k.state, k.dcoef)
    state, _ = _pair.correct_pair(k.rows, state, k.dcoef, 0.01, 0.0)
    du, dt, dr, dc = state.parts()[4]
    for primal, dual in ((0.3, 0.2), (1.0, 1.0)):
        after, _ = _pair.linearise_pair(k.rows, state, k.coef + primal * k.dcoef, primal, dual)
        u, _, t, r, c, a, _ = after.parts()[2]
        np.testing.assert_allclose(u, k.u + primal * du, rtol=1e-12, atol=1e-12)
        inside = k.flips & (k.t + primal * dt > 0.0) & (k.r + primal * dr > 0.0)
        np.testing.assert_allclose(t[inside], (k.t + primal * dt)[inside], rtol=1e-12)
        np.testing.assert_allclose(r[inside], (k.r + primal * dr)[inside], rtol=1e-12)
        kept = SETTINGS.kept * (1.0 - 1e-12)
        assert (t >= kept * k.t)[k.flips & ~inside].all()
        assert (r >= kept * k.r)[k.flips & ~inside].all()
        np.testing.assert_allclose(
            (t - r)[k.flips], (k.t + primal * dt - k.r - primal * dr)[k.flips]
        )
        inside = k.flips & (k.c + dual * dc > 0.0) & (k.a - dual * dc > 0.0)
        np.testing.assert_allclose(c[inside], (k.c + dual * dc)[inside], rtol=1e-12)
        assert (c >= kept * k.c)[k.flips & ~inside].all()
        assert (a >= kept * k.a)[k.flips & ~inside].all()
        np.testing.assert_allclose((c + a)[k.flips], 1.0)


def test_the_dual_point_is_corrected(samples):
    k = samples
    if k.slope.size:
        k.state = _pair.PairState(k.kappa, np.zeros(0), k.now)
    point, sums = _pair.certify_pair(k.rows, k.state, k.dcoef)
    du = k.Z @ k.dcoef[:-1]
    s = k.s - k.s * (1.0 - k.s) * du
    s = np.where(s > SETTINGS.emptied * k.s, np.minimum(s, 1.0), 0.0)
    a = np.clip(k.a + k.c * k.a * k.q * k.dv, 0.0, 1.0)
    np.testing.assert_allclose(point, [s, np.where(k.flips, a, 0.0)], atol=1e-14)
    data = np.column_stack([k.Z, np.zeros(N)])
    adjoint = (k.w * point[1]) @ k.Zhat - (k.w * point[0]) @ data
    np.testing.assert_allclose(sums[:P], adjoint, atol=1e-14)
    assert sums[P + PROOF_ENTROPY] == pytest.approx(k.w @ (entr(s) + entr(1.0 - s)))
    assert sums[P + PROOF_ADDITIONS] >= N // k.rows.panel + k.rows.panel
    again, _ = _pair.certify_pair(k.rows, (k.state, point), 0.5 * k.dcoef)
    s = point[0] - 0.5 * k.s * (1.0 - k.s) * du
    s = np.where((point[0] > 0.0) & (s > SETTINGS.emptied * point[0]), np.minimum(s, 1.0), 0.0)
    np.testing.assert_allclose(again[0], s, atol=1e-14)
    # Changes of margins that are known replace those of the coefficients; λ's remains.
    other = np.append(np.zeros(P - 1), k.dcoef[-1])
    given, _ = _pair.certify_pair(k.rows, k.state, other, 0.0, du)
    np.testing.assert_allclose(given, point, atol=1e-14)
    with pytest.raises(ValueError, match="changes of margins"):
        _pair.certify_pair(k.rows, k.state, other, 0.0, du[1:])


def test_rows_of_several_panels_are_added_up(monkeypatch):
    monkeypatch.setitem(globals(), "N", 9_000)
    many = Samples(7)
    assert many.rows.panel < N / 2
    test_the_dual_point_is_corrected(many)


def test_a_run_opens_on_the_central_path():
    k = Samples(5)
    kappa = np.where(k.flips, k.kappa, np.inf)
    for mu in (1e-6, 0.05, 3.0):
        state = _pair.open_pair(k.rows, kappa, np.zeros(0), k.coef, mu)
        u, _, t, r, c, a, _ = (row[k.flips] for row in state.parts()[2])
        np.testing.assert_allclose(u, k.u[k.flips], rtol=1e-12)
        np.testing.assert_allclose(t - r, (k.Zhat @ k.coef)[k.flips], rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose([c * t, a * r], mu, rtol=1e-12)
        np.testing.assert_allclose(c + a, 1.0, rtol=1e-9)
        assert (state.parts()[2][5][~k.flips] == 0.0).all()


def test_without_flips_only_margins_are_left():
    k = Samples(6)
    state = _pair.open_pair(k.rows, np.zeros(0), np.zeros(0), k.coef, 0.1)
    state, sums = _pair.linearise_pair(k.rows, state, k.coef, 0.0, 0.0)
    data = np.column_stack([k.Z, np.zeros(N)])
    np.testing.assert_allclose(
        np.tril(sums[: P * P].reshape(P, P)),
        np.tril((data.T * (k.w * k.curvature)) @ data), atol=1e-14,
    )  # fmt: skip
    np.testing.assert_allclose(sums[P * P : P * P + P], -(k.w * k.s) @ data, atol=1e-14)
    np.testing.assert_allclose(sums[P * P + P : P * P + 3 * P], 0.0)
    assert scalars_of(sums)[VALUE] == scalars_of(sums)[LOSS] == pytest.approx(k.w @ k.losses)
