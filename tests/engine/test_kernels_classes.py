"""Sums and directions of several classes, against NumPy and small linear systems."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import entr, logsumexp, softmax

from drlogit.engine import _classes
from drlogit.engine._sums import (
    BOTH_CHANGE,
    CHANGES,
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

N, n, K = 60, 3, 4
m, P = n + 1, K * (n + 1) + 1
FAR = 1e300


class Classes:
    """Random samples with a random state, as arrays."""

    def __init__(self, seed, linear=False):
        rng = np.random.default_rng(seed)
        X, self.y = rng.standard_normal((N, n)), rng.integers(0, K, N)
        self.X, self.w = np.column_stack([X, np.ones(N)]), rng.dirichlet(np.ones(N))
        self.rows = compiled_rows(X, np.ones(N), self.w, True)
        self.kappa = rng.uniform(0.2, 2.0, (N, K))
        self.kappa[rng.random((N, K)) < 0.2] = np.inf
        self.kappa[:5] = np.inf  # no other label
        self.kappa[np.arange(N), self.y] = 0.0
        self.can = np.isfinite(self.kappa)
        self.prices = np.where(self.can, self.kappa, 0.0)
        self.coef = np.append(0.5 * rng.standard_normal(K * m), 0.8)
        self.scores = self.X @ self.coef[:-1].reshape(K, m).T
        self.slopes = rng.dirichlet(np.ones(K), N) if linear else np.zeros((0, 0))
        self.r = np.where(self.can, rng.exponential(size=(N, K)) + 0.05, FAR)
        a = np.where(self.can, rng.exponential(size=(N, K)) + 0.05, 0.0)
        self.a = a / a.sum(axis=1, keepdims=True)
        self.flips = self.can.sum(axis=1) > 1
        self.now = np.array([self.scores, self.r, self.a])
        self.p = self.slopes if linear else softmax(self.scores, axis=1)
        curved = np.array([0.0 * self.p if linear else self.p, self.a / self.r])
        self.state = _classes.ClassState(
            self.y.astype(np.int32), self.prices, self.slopes, self.now, curved
        )
        self.dcoef = 0.3 * rng.standard_normal(P)
        self.ds = self.X @ self.dcoef[:-1].reshape(K, m).T

    @property
    def losses(self):
        if self.slopes.size:
            return (self.p * self.scores).sum(axis=1)
        return logsumexp(self.scores, axis=1)

    def adjoint(self, changes, prices=True):
        """Σ w (changes of scores' multipliers) as a vector of B, and of λ by the prices."""
        weighted = self.w[:, None] * changes
        return np.append((weighted.T @ self.X).ravel(), (self.prices * weighted).sum() * prices)

    def response(self, target, ds, dlam):
        """dr and da where products change by ``target`` and Σ a goes to 1, a system for each."""
        dr, da = np.zeros((2, N, K))
        for i in np.flatnonzero(self.flips):
            some = np.flatnonzero(self.can[i])
            r, a, c = self.r[i, some], self.a[i, some], some.size
            # Unknown: dr, da, dτ.  a dr + r da = target; dr - dτ = ds + κ dλ; Σ da = 1 - Σ a.
            matrix = np.zeros((2 * c + 1, 2 * c + 1))
            matrix[:c, :c], matrix[:c, c:-1] = np.diag(a), np.diag(r)
            matrix[c:-1, :c], matrix[c:-1, -1] = np.eye(c), -1.0
            matrix[-1, c:-1] = 1.0
            right = [*target[i, some], *(ds[i] + self.prices[i] * dlam)[some], 1.0 - a.sum()]
            solved = np.linalg.solve(matrix, right)
            dr[i, some], da[i, some] = solved[:c], solved[c:-1]
        return dr, da


@pytest.fixture(params=[(0, False), (1, False), (2, True)], ids=["0", "1", "linear"])
def classes(request):
    return Classes(*request.param)


def products(k):
    return np.where(k.can, k.a * np.where(k.can, k.r, 1.0), 0.0)


def test_linearisation(classes):
    k = classes
    state, sums = _classes.linearise_classes(k.rows, k.state, k.coef, 0.0, 0.0)
    gradient, affine, centring = sums[:-SCALARS].reshape(3, P)
    np.testing.assert_allclose(gradient[:-1], k.adjoint(k.p - k.a)[:-1], atol=1e-14)
    np.testing.assert_allclose(gradient[-1], -k.adjoint(k.a)[-1], atol=1e-14)
    still = np.zeros((N, K))
    _, da = k.response(-products(k), still, 0.0)
    np.testing.assert_allclose(affine, -k.adjoint(da), atol=1e-13)
    _, da = k.response(np.ones((N, K)), still, 0.0)
    np.testing.assert_allclose(centring, -k.adjoint(da), atol=1e-12)
    scalars = sums[-SCALARS:]
    own = k.scores[np.arange(N), k.y]
    worst = np.where(k.can, -k.scores - k.prices * k.coef[-1], -np.inf).max(axis=1)
    assert scalars[LOSS] == pytest.approx(k.w @ (k.losses - own))
    assert scalars[VALUE] == pytest.approx(k.w @ (k.losses + worst))
    assert scalars[PRODUCTS] == pytest.approx(k.w @ (products(k).sum(axis=1) * k.flips))
    assert scalars[DEGREE] == pytest.approx(k.w @ (k.can.sum(axis=1) * k.flips))
    assert scalars[ENTROPY] == pytest.approx(k.w @ (k.losses - (k.p * k.scores).sum(axis=1)))
    np.testing.assert_allclose(state.curved[1], k.a / k.r)
    np.testing.assert_allclose(state.curved[0], k.p * (not k.slopes.size), rtol=1e-12)


def test_curvature(classes):
    """The product with a vector and the matrices of pairs, against the sum over samples of (18)."""
    k = classes
    curved = k.state.curved
    matrix = np.zeros((P, P))
    for i in range(N):
        p, D = curved[:, i]
        loss = np.diag(p) - np.outer(p, p)
        hinge = np.diag(D) - np.outer(D, D) / D.sum()
        rows = np.zeros((K, P))  # scores as functions of the coefficients
        for c in range(K):
            rows[c, c * m : (c + 1) * m] = k.X[i]
        matrix += k.w[i] * rows.T @ loss @ rows
        rows[:, -1] = k.prices[i]
        matrix += k.w[i] * rows.T @ hinge @ rows
    found = _classes.curvature_product(k.rows, curved, k.prices, k.dcoef)
    np.testing.assert_allclose(found, matrix @ k.dcoef, atol=1e-12)
    grams = _classes.curvature_gram(k.rows, curved)
    pairs = [(i, j) for i in range(1, K) for j in range(i)]
    for gram, (i, j) in zip(grams, pairs, strict=True):
        block = -matrix[i * m : (i + 1) * m, j * m : (j + 1) * m]
        np.testing.assert_allclose(gram, block, atol=1e-13)


def test_prediction_and_correction(classes):
    k = classes
    state, sums = _classes.predict_classes(k.rows, k.state, k.dcoef)
    dr, da = k.response(-products(k), k.ds, k.dcoef[-1])
    changes, r = sums[P : P + CHANGES], np.where(k.can, k.r, 0.0)
    assert changes[PRIMAL_CHANGE] == pytest.approx(k.w @ (k.a * dr).sum(axis=1))
    assert changes[DUAL_CHANGE] == pytest.approx(k.w @ (da * r).sum(axis=1))
    assert changes[BOTH_CHANGE] == pytest.approx(k.w @ (da * dr).sum(axis=1))
    some = k.can & k.flips[:, None]
    product = np.where(some, products(k), 1.0)
    e = np.clip(np.where(some, dr * da / product, 0.0), -30.0, 30.0)
    assert SETTINGS.second_order == 30.0
    np.testing.assert_allclose(np.where(some, state.second, 0.0), e, atol=1e-11)
    _, second = k.response(-e * product * some, np.zeros((N, K)), 0.0)
    np.testing.assert_allclose(sums[:P], -k.adjoint(second), atol=1e-12)
    centre, share = 0.02, 0.7
    found, sums = _classes.correct_classes(k.rows, state, k.dcoef, centre, share)
    target = centre - products(k) - share * e * product
    dr, da = k.response(target, k.ds, k.dcoef[-1])
    np.testing.assert_allclose(found.step[0], k.ds, atol=1e-13)
    np.testing.assert_allclose((found.step[1] * r)[some], dr[some], atol=1e-11)
    np.testing.assert_allclose((found.step[2] * k.a)[some], da[some], atol=1e-11)
    mean = (k.p * k.ds).sum(axis=1)
    own = k.ds[np.arange(N), k.y]
    assert sums[SLOPE] == pytest.approx(k.w @ (mean - own))
    curvature = (k.p * np.square(k.ds - mean[:, None])).sum(axis=1) * (not k.slopes.size)
    assert sums[CURVATURE] == pytest.approx(k.w @ curvature)


def test_step_lengths_and_passed_samples(classes):
    k = classes
    k.dcoef, k.ds = 6.0 * k.dcoef, 6.0 * k.ds
    state, _ = _classes.predict_classes(k.rows, k.state, k.dcoef)
    state, sums = _classes.correct_classes(k.rows, state, k.dcoef, 0.0, 0.0)
    dr, da = k.response(-products(k), k.ds, k.dcoef[-1])
    costs = [], []
    for i in np.flatnonzero(k.flips):
        r, a = k.r[i, k.can[i]], k.a[i, k.can[i]]
        fall, drop = -dr[i, k.can[i]], -da[i, k.can[i]]
        if (fall / r).max() > 1.0:
            cost = k.w[i] * (a @ r + SETTINGS.blocking * fall.max())
            costs[0].append(((r / fall)[np.argmax(fall / r)], cost))
        if (drop / a).max() > 1.0:
            cost = k.w[i] * (a @ r + SETTINGS.blocking * drop.max() * r.sum())
            costs[1].append(((a / drop)[np.argmax(drop / a)], cost))
    for kind, each in enumerate(costs):
        assert len(each) > 3
        total = sum(cost for _, cost in each)
        assert sums[PARABOLA + kind * LEVELS :][:LEVELS].sum() == pytest.approx(total)
        shortest, length = min(each)[0], longest(sums, PARABOLA, 0.0)[kind]
        assert shortest / (1.0 + 1.0 / 32.0) - 1e-12 <= length <= shortest + 1e-12
    after, _ = _classes.linearise_classes(k.rows, state, k.coef + k.dcoef, 1.0, 1.0)
    s, r, a = after.now
    np.testing.assert_allclose(s, k.scores + k.ds, atol=1e-12)
    some = k.can & k.flips[:, None]
    np.testing.assert_allclose(a.sum(axis=1), 1.0)
    assert (r[some] >= SETTINGS.kept * k.r[some] * (1.0 - 1e-12)).all()
    # All slacks of a sample are raised together: differences are those of the step.
    for i in np.flatnonzero(k.flips):
        assert np.ptp((r - k.r - dr)[i, k.can[i]]) < 1e-10


def test_the_dual_point_is_corrected():
    k = Classes(4)
    point, sums = _classes.certify_classes(k.rows, k.state, k.dcoef)
    mean = (k.p * k.ds).sum(axis=1, keepdims=True)
    p = k.p + k.p * (k.ds - mean)
    p = np.where(p > SETTINGS.emptied * k.p, p, 0.0)
    D = k.a / k.r
    push = k.ds + k.prices * k.dcoef[-1]
    a = k.a - D * (push - (D * push).sum(axis=1, keepdims=True) / D.sum(axis=1, keepdims=True))
    expected = [np.maximum(each, 0.0) for each in (p, a)]
    expected = [each / each.sum(axis=1, keepdims=True) for each in expected]
    np.testing.assert_allclose(point, expected, atol=1e-13)
    adjoint = k.adjoint(point[0] - point[1])
    adjoint[-1] = -k.adjoint(point[1])[-1]
    np.testing.assert_allclose(sums[:P], adjoint, atol=1e-13)
    assert sums[P + PROOF_ENTROPY] == pytest.approx(k.w @ entr(point[0]).sum(axis=1))
    # The entropies of all classes are added up, sample after sample.
    assert sums[P + PROOF_ADDITIONS] >= k.rows.length + point.shape[2]
    again, _ = _classes.certify_classes(k.rows, (k.state, point), 0.0 * k.dcoef)
    np.testing.assert_allclose(again, point, atol=1e-15)


def test_a_run_opens_with_equal_products():
    k = Classes(5)
    state = _classes.open_classes(
        k.rows, k.y.astype(np.int32), k.kappa, np.zeros((0, 0)), k.coef, 0.07
    )
    s, r, a = state.now
    np.testing.assert_allclose(s, k.scores, rtol=1e-12)
    np.testing.assert_allclose(a.sum(axis=1), 1.0)
    for i in range(N):
        some = k.can[i]
        np.testing.assert_allclose(np.ptp((a * r)[i, some]), 0.0, atol=1e-12)
        np.testing.assert_allclose(np.ptp((r - s - k.prices * k.coef[-1])[i, some]), 0.0, atol=1e-9)
        assert r[i, some].min() == pytest.approx(0.07)
        assert (a[i, ~some] == 0.0).all()
