"""Sums and directions of samples with K labels, against NumPy and small linear systems."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import entr, logsumexp, softmax

from drlogit.engine import _labels
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

N, n = 70, 3
m = n + 1
FAR = 1e300


class Samples:
    """Random samples with a random state, as arrays: (samples, labels) or (labels, samples)."""

    def __init__(self, seed, K, linear=False, size=N):
        rng = np.random.default_rng(seed)
        self.K, self.P, self.N = K, (K - 1) * m + 1, size
        X = rng.standard_normal((size, n))
        y = rng.choice([-1.0, 1.0], size) if K == 2 else np.ones(size)
        self.codes = np.ones(size, np.int32) if K == 2 else rng.integers(0, K, size).astype("i4")
        self.w = rng.dirichlet(np.ones(size))
        self.rows = compiled_rows(X, y, self.w, True)
        self.Z = y[:, None] * np.column_stack([X, np.ones(size)])
        self.kappa = rng.uniform(0.2, 2.0, (size, K))
        self.kappa[rng.random((size, K)) < 0.2] = np.inf
        self.kappa[:5] = np.inf  # no other label
        self.kappa[np.arange(size), self.codes] = 0.0
        self.can = np.isfinite(self.kappa)
        self.prices = np.where(self.can, self.kappa, 0.0)
        self.coef = np.append(0.5 * rng.standard_normal((K - 1) * m), 0.8)
        self.scores = self.scores_of(self.coef)
        self.linear = linear
        self.p = rng.dirichlet(np.ones(K), size) if linear else softmax(self.scores, axis=1)
        self.r = np.where(self.can, rng.exponential(size=(size, K)) + 0.05, FAR)
        a = np.where(self.can, rng.exponential(size=(size, K)) + 0.05, 0.0)
        self.a = a / a.sum(axis=1, keepdims=True)
        self.flips = self.can.sum(axis=1) > 1
        self.state = self.state_of()
        self.dcoef = 0.3 * rng.standard_normal(self.P)
        self.ds = self.scores_of(self.dcoef)

    def state_of(self):
        live = self.w * self.flips
        kappa = np.ascontiguousarray(np.vstack([self.prices.T, live]))
        fixed = np.ascontiguousarray(self.p.T) if self.linear else np.zeros((0, 0))
        now = np.vstack([self.scores.T[1:], self.r.T, self.a.T, self.p.T])
        degree = float(live @ self.can.sum(axis=1))
        return _labels.LabelState(
            self.K, degree, self.codes, kappa, fixed, np.ascontiguousarray(now)
        )

    def scores_of(self, coef):
        others = self.Z @ coef[:-1].reshape(self.K - 1, m).T
        return np.column_stack([np.zeros(self.N), others])

    @property
    def own(self):
        return np.arange(self.N), self.codes

    @property
    def losses(self):
        if self.linear:
            return (self.p * self.scores).sum(axis=1)
        return logsumexp(self.scores, axis=1)

    def adjoint(self, changes, prices=True):
        """Σ w (changes of scores' multipliers) as a vector of B, and of λ by the prices."""
        weighted = self.w[:, None] * changes
        spent = (self.prices * weighted).sum() * prices
        return np.append((weighted.T[1:] @ self.Z).ravel(), spent)

    def response(self, target, ds, dlam):
        """Changes of r and a where products change by ``target``, a system for each sample."""
        dr, da = np.zeros((2, self.N, self.K))
        for i in np.flatnonzero(self.flips):
            some = np.flatnonzero(self.can[i])
            r, a, c = self.r[i, some], self.a[i, some], some.size
            # Unknown: dr, da, dτ.  a dr + r da = target; dr - dτ = ds + κ dλ; Σ da = 0.
            matrix = np.zeros((2 * c + 1, 2 * c + 1))
            matrix[:c, :c], matrix[:c, c:-1] = np.diag(a), np.diag(r)
            matrix[c:-1, :c], matrix[c:-1, -1] = np.eye(c), -1.0
            matrix[-1, c:-1] = 1.0
            right = [*target[i, some], *(ds[i] + self.prices[i] * dlam)[some], 0.0]
            solved = np.linalg.solve(matrix, right)
            dr[i, some], da[i, some] = solved[:c], solved[c:-1]
        return dr, da

    @property
    def products(self):
        return np.where(self.can, self.a * np.where(self.can, self.r, 1.0), 0.0)

    @property
    def some(self):
        return self.can & self.flips[:, None]


CASES = [(0, 2, False), (1, 2, True), (2, 4, False), (3, 5, True), (4, 3, False)]


@pytest.fixture(params=CASES, ids=str)
def samples(request):
    return Samples(*request.param)


def matrix_of(k, least=0.0):
    """Σ w L ⊗ x xᵀ of all labels but the first and λ, and how many hinges it has."""
    matrix, count = np.zeros((k.P, k.P)), 0
    for i in range(k.N):
        p, D = k.p[i] * (not k.linear), k.a[i] / k.r[i]
        stiff = (D.sum() ** 2 - (D**2).sum()) / (2.0 * D.sum())
        rows = np.zeros((k.K, k.P))  # scores as functions of the coefficients
        for c in range(1, k.K):
            rows[c, (c - 1) * m : c * m] = k.Z[i]
        matrix += k.w[i] * rows.T @ (np.diag(p) - np.outer(p, p)) @ rows
        if k.flips[i] and stiff >= least:
            count += 1
            rows[:, -1] = k.prices[i]
            matrix += k.w[i] * rows.T @ (np.diag(D) - np.outer(D, D) / D.sum()) @ rows
    return matrix, count


def found_matrix(k, sums):
    """The matrix of the sums: one for each pair of labels, and λ's column."""
    length = _labels.matrices_length(k.K, m)
    pairs = k.K * (k.K - 1) // 2
    grams = np.zeros(pairs * (m + 1) ** 2)
    grams[: length - k.P] = sums[: length - k.P]
    found = np.zeros((k.P, k.P))
    blocks = found[:-1, :-1].reshape(k.K - 1, m, k.K - 1, m)
    labels = [(i, j) for i in range(1, k.K) for j in range(i)]
    for gram, (i, j) in zip(grams.reshape(pairs, m + 1, m + 1), labels, strict=True):
        whole = np.tril(gram[:m, :m]) + np.tril(gram[:m, :m], -1).T
        blocks[i - 1, :, i - 1] += whole
        if j > 0:
            blocks[j - 1, :, j - 1] += whole
            blocks[i - 1, :, j - 1] -= whole
            blocks[j - 1, :, i - 1] -= whole
    found[-1] = found[:, -1] = sums[length - k.P : length]
    return found


@pytest.mark.parametrize("least", [0.0, 0.15])
@pytest.mark.parametrize(("gram", "terms"), [(True, True), (False, True), (False, False)])
def test_linearisation(samples, gram, terms, least):
    k = samples
    state, sums = _labels.linearise_labels(k.rows, k.state, k.coef, 0.0, 0.0, gram, terms, least)
    np.testing.assert_allclose(
        np.concatenate(state.tables()), np.vstack([k.scores.T[1:], k.p.T, k.r.T, k.a.T]), rtol=1e-12
    )
    matrix, count = matrix_of(k, least)
    if gram:
        np.testing.assert_allclose(found_matrix(k, sums), matrix, atol=1e-13)
    gradient, affine, centring = sums[-3 * k.P - SCALARS : -SCALARS].reshape(3, k.P)
    np.testing.assert_allclose(gradient[:-1], k.adjoint(k.p - k.a)[:-1], atol=1e-14)
    np.testing.assert_allclose(gradient[-1], -k.adjoint(k.a)[-1], atol=1e-14)
    formed, still = slice(None) if terms else slice(-1, None), np.zeros((k.N, k.K))
    _, da = k.response(-k.products, still, 0.0)
    np.testing.assert_allclose(affine[formed], -k.adjoint(da)[formed], atol=1e-13)
    _, da = k.response(np.ones((k.N, k.K)), still, 0.0)
    np.testing.assert_allclose(centring[formed], -k.adjoint(da)[formed], atol=1e-12)
    scalars = sums[-SCALARS:]
    worst = np.where(k.can, -k.scores - k.prices * k.coef[-1], -np.inf).max(axis=1)
    assert scalars[LOSS] == pytest.approx(k.w @ (k.losses - k.scores[k.own]))
    assert scalars[VALUE] == pytest.approx(k.w @ (k.losses + worst))
    assert scalars[PRODUCTS] == pytest.approx(k.w @ (k.products.sum(axis=1) * k.flips))
    assert scalars[DEGREE] == pytest.approx(k.w @ (k.can.sum(axis=1) * k.flips))
    entropy = k.losses - (k.p * k.scores).sum(axis=1)
    assert scalars[ENTROPY] == pytest.approx(k.w @ entropy, abs=1e-14)
    assert scalars[COUNT] == count
    p, D = state.curved()
    np.testing.assert_allclose(p, k.p.T * (not k.linear), rtol=1e-12)
    np.testing.assert_allclose(D, (k.a / k.r).T)


def test_prediction_and_correction(samples):
    k = samples
    state, sums = _labels.predict_labels(k.rows, k.state, k.dcoef)
    dr, da = k.response(-k.products, k.ds, k.dcoef[-1])
    changes, r = sums[k.P : k.P + CHANGES], np.where(k.can, k.r, 0.0)
    assert changes[PRIMAL_CHANGE] == pytest.approx(k.w @ (k.a * dr).sum(axis=1))
    assert changes[DUAL_CHANGE] == pytest.approx(k.w @ (da * r).sum(axis=1))
    assert changes[BOTH_CHANGE] == pytest.approx(k.w @ (da * dr).sum(axis=1))
    most = SETTINGS.second_order * k.products
    e = np.clip(dr * da, -most, most)
    second = np.asarray(state.second).T
    np.testing.assert_allclose(second[k.some], e[k.some], atol=1e-11)
    _, after = k.response(-e, np.zeros((k.N, k.K)), 0.0)
    np.testing.assert_allclose(sums[: k.P], -k.adjoint(after), atol=1e-12)
    _, fewer = _labels.predict_labels(k.rows, k.state, k.dcoef, False)
    np.testing.assert_array_equal(fewer[k.P - 1 :], sums[k.P - 1 :])
    centre, share = 0.02, 0.7
    found, sums = _labels.correct_labels(k.rows, state, k.dcoef, centre, share)
    dr, da = k.response(centre - k.products - share * e, k.ds, k.dcoef[-1])
    step = found.parts()[5]
    ds, found_dr, found_da = np.split(step, [k.K - 1, 2 * k.K - 1])
    np.testing.assert_allclose(ds.T, k.ds[:, 1:], atol=1e-13)
    np.testing.assert_allclose(found_dr.T[k.some], dr[k.some], atol=1e-11)
    np.testing.assert_allclose(found_da.T[k.some], da[k.some], atol=1e-11)
    mean = (k.p * k.ds).sum(axis=1)
    assert sums[SLOPE] == pytest.approx(k.w @ (mean - k.ds[k.own]))
    curvature = (k.p * np.square(k.ds - mean[:, None])).sum(axis=1) * (not k.linear)
    assert sums[CURVATURE] == pytest.approx(k.w @ curvature)


def booked(k, dr, da):
    """Longest steps and costs of passing, of the samples that do not allow the whole step."""
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
    return [sorted(each) for each in costs]


def test_step_lengths_pass_samples_up_to_a_price(samples):
    k = samples
    k.dcoef, k.ds = 6.0 * k.dcoef, 6.0 * k.ds
    _, sums = _labels.predict_labels(k.rows, k.state, k.dcoef)
    for kind, each in enumerate(booked(k, *k.response(-k.products, k.ds, k.dcoef[-1]))):
        assert len(each) > 3
        total = sum(cost for _, cost in each)
        first = k.P + CHANGES
        assert sums[first + kind * LEVELS :][:LEVELS].sum() == pytest.approx(total)
        for passed in range(len(each) - 1):
            price = sum(cost for _, cost in each[:passed]) + 1e-12
            length, limit = longest(sums, first, price)[kind], each[passed][0]
            # Levels round down, by a thirty-second at most.
            assert limit / (1.0 + 1.0 / 32.0) - 1e-12 <= length <= limit + 1e-12
    assert longest(sums, first, np.inf) == (1.0, 1.0)
    assert longest(np.zeros(PARABOLA), PARABOLA, 0.0) == (1.0, 1.0)


def test_steps_are_linear_and_what_they_pass_keeps_a_share(samples):
    k = samples
    k.dcoef, k.ds = 6.0 * k.dcoef, 6.0 * k.ds
    state, _ = _labels.predict_labels(k.rows, k.state, k.dcoef)
    state, _ = _labels.correct_labels(k.rows, state, k.dcoef, 0.0, 0.0)
    dr, da = k.response(-k.products, k.ds, k.dcoef[-1])
    for primal, dual in ((0.3, 0.2), (1.0, 1.0)):
        coef = k.coef + primal * k.dcoef
        after, _ = _labels.linearise_labels(k.rows, state, coef, primal, dual)
        s, _, r, a = (part.T for part in after.tables())
        np.testing.assert_allclose(s, (k.scores + primal * k.ds)[:, 1:], atol=1e-12)
        np.testing.assert_allclose(a.sum(axis=1), 1.0)
        passed = k.some & (k.r + primal * dr <= 0.0)
        assert (r[passed] >= SETTINGS.kept * k.r[passed] * (1.0 - 1e-12)).all()
        assert (r[k.some] > 0.0).all()
        assert (a[k.some] > 0.0).all()
        assert (a[~k.can] == 0.0).all()
        inside = k.flips & np.where(k.can, k.a + dual * da > 0.0, True).all(axis=1)
        np.testing.assert_allclose(a[inside], (k.a + dual * da)[inside], rtol=1e-9, atol=1e-12)
        # All slacks of a sample are raised together: differences are those of the step.
        for i in np.flatnonzero(k.flips):
            assert np.ptp((r - k.r - primal * dr)[i, k.can[i]]) < 1e-10


@pytest.mark.parametrize("least", [0.0, 0.15])
@pytest.mark.parametrize("K", [2, 4])
def test_the_dual_point_is_corrected(K, least):
    check_correction(Samples(4, K), least)


def check_correction(k, least):
    point, sums = _labels.certify_labels(k.rows, k.state, k.dcoef, least)
    mean = (k.p * k.ds).sum(axis=1, keepdims=True)
    p = k.p + k.p * (k.ds - mean)
    D, push = k.a / k.r, k.ds + k.prices * k.dcoef[-1]
    total = D.sum(axis=1, keepdims=True)
    stiff = (total**2 - (D**2).sum(axis=1, keepdims=True)) / (2.0 * total) >= least
    change = D * (push - (D * push).sum(axis=1, keepdims=True) / total)
    a = k.a - change * (stiff & k.flips[:, None])
    expected = [np.maximum(each, 0.0) for each in (p, a)]
    expected = [(each / each.sum(axis=1, keepdims=True)).T for each in expected]
    np.testing.assert_allclose(point, expected, atol=1e-13)
    adjoint = k.adjoint((point[0] - point[1]).T)
    adjoint[-1] = -k.adjoint(point[1].T)[-1]
    np.testing.assert_allclose(sums[: k.P], adjoint, atol=1e-13)
    assert sums[k.P + PROOF_ENTROPY] == pytest.approx(k.w @ entr(point[0]).sum(axis=0))
    # The entropies of all labels are added up, sample after sample.
    assert sums[k.P + PROOF_ADDITIONS] >= k.rows.length + k.K
    again, _ = _labels.certify_labels(k.rows, (k.state, point), 0.0 * k.dcoef, least)
    np.testing.assert_allclose(again, point, atol=1e-15)


def test_rows_of_several_panels_are_added_up():
    for K in (2, 3):
        check_correction(Samples(4, K, size=9_000), 0.0)
        k = Samples(7, K, size=2_000)
        assert k.rows.panel < k.N / 2
        test_linearisation(k, True, True, 0.0)


@pytest.mark.parametrize("K", [2, 4])
@pytest.mark.parametrize("mu", [1e-6, 0.05, 3.0])
def test_a_run_opens_on_the_central_path(K, mu):
    k = Samples(5, K)
    kappa, none = np.ascontiguousarray(k.kappa.T), np.zeros((0, 0))
    state = _labels.open_labels(k.rows, k.codes, kappa, none, k.coef, mu)
    s, _, r, a = (part.T for part in state.tables())
    np.testing.assert_allclose(s, k.scores[:, 1:], rtol=1e-12)
    np.testing.assert_allclose(a.sum(axis=1), 1.0)
    np.testing.assert_allclose((a * r)[k.some], mu, rtol=1e-9)
    assert (a[~k.can] == 0.0).all()
    for i in range(N):
        slack = r - k.scores - k.prices * k.coef[-1]
        np.testing.assert_allclose(np.ptp(slack[i, k.can[i]]), 0.0, atol=1e-9)
