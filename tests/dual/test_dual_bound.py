"""The bound of a dual point against models of the class, in fifty digits."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction

import mpmath
import numpy as np
import pytest
import scipy.sparse as sp
from benchmarks import stated
from scipy.special import entr

from drlogit.dual._certificate import (
    FREE,
    GROUP,
    IN_NORM,
    Coordinates,
    column_sums,
    label_sums,
)
from drlogit.dual.bound import DualSums, lower_bound
from drlogit.dual.coordinates import label_coordinates
from drlogit.dual.label_points import label_bound
from drlogit.problem.norms import NORMS
from drlogit.problem.parameters import ADMITTED
from drlogit.rows.matrix import compiled

pytestmark = pytest.mark.usefixtures("fifty_digits")


@pytest.fixture
def fifty_digits():
    with mpmath.workdps(50):
        yield


def exact(values):
    return [mpmath.mpf(float(value)) for value in values]


def log1p_exp(x):
    return mpmath.log1p(mpmath.exp(x)) if x < 0 else x + mpmath.log1p(mpmath.exp(-x))


def dual_norm(values, norm):
    values = [abs(value) for value in values]
    if not values:
        return mpmath.mpf(0)
    if norm == "l1":
        return max(values)
    return mpmath.norm(values, 2) if norm == "l2" else mpmath.fsum(values)


def entropy(s):
    s = np.clip(s, 1e-300, 1.0 - 2.0**-53)
    return -(s * np.log(s) + (1.0 - s) * np.log1p(-s))


def some_probabilities(rng, size):
    """Of all sizes, ends included."""
    s = rng.uniform(size=size) ** rng.choice([0.2, 1.0, 8.0])
    s[rng.uniform(size=size) < 0.1] = rng.choice([0.0, 1.0])
    return s


class Labels:
    """Samples of K labels, a dual point, and the objective in fifty digits."""

    def __init__(self, seed):
        rng = self.rng = np.random.default_rng(seed)
        self.K, self.N, n = 2 + seed % 3, int(rng.integers(2, 9)), int(rng.integers(1, 5))
        self.intercept, self.norm = bool(rng.integers(2)), str(rng.choice(["l1", "l2", "linf"]))
        X = rng.normal(size=(self.N, n)) * 10.0 ** rng.integers(-3, 4, size=n)
        X += 10.0 ** rng.integers(-1, 3, size=n) * rng.integers(0, 2, size=n)
        self.y, self.w = rng.integers(self.K, size=self.N), rng.dirichlet(np.full(self.N, 3.0))
        self.kappa, self.epsilon = float(rng.choice([0.3, 1.0, 5.0])), rng.choice([1e-3, 0.1, 1.0])
        self.Z = np.column_stack([X, np.ones(self.N)]) if self.intercept else X
        free = np.append(rng.uniform(size=n) < 0.4, self.Z[0, n:] > 0.0)
        costs = np.where(free, 1.0, rng.uniform(0.2, 5.0, size=free.size))
        mean = self.w @ self.Z if self.intercept else np.zeros(n)
        spread = np.sqrt(self.w @ (self.Z - mean) ** 2)
        mean[n:], spread[n:] = 0.0, 1.0
        size = np.sqrt(self.w @ self.Z**2)
        arrays = free.astype(np.int32), costs, NORMS[self.norm], spread, mean, size
        self.coordinates = Coordinates(*arrays, n if self.intercept else None, self.K)
        p, a = rng.dirichlet(np.full(self.K, rng.choice([0.2, 1.0])), size=(2, self.N))
        observed = np.eye(self.K)[self.y]
        a = observed + rng.choice([0.0, 0.01, 1.0]) * (a - observed)
        for _ in range(100 if free.any() else 0):  # most points owe too much to prove anything
            terms = self.w[:, None] * self.Z[:, free]
            p -= np.linalg.lstsq(terms.T, terms.T @ (p - a), rcond=None)[0]
            p = np.maximum(p, 0.0) / np.maximum(p, 0.0).sum(axis=1, keepdims=True)
        G = ((p - a) * self.w[:, None]).T @ self.Z
        flow = None
        if self.norm != "l1" and rng.integers(2):
            flow = rng.normal(size=(self.K * (self.K - 1) // 2, (~free).sum())) * np.abs(G).max()
        entropy = float(self.w @ entr(p).sum(axis=1))
        spent = self.kappa * float(self.w @ (1.0 - a[np.arange(self.N), self.y]))
        self.sums = DualSums(-G[1:].ravel(), spent, entropy, self.N, flow)

    def model(self, size):
        """An admitted model: free coefficients differ by up to ``size`` of what is admitted."""
        known, rng = self.coordinates, self.rng
        x = rng.normal(size=(self.K, known.kind.size)) * 10.0 ** rng.uniform(-3, 3)
        left = np.reshape(self.sums.gradient, (self.K - 1, -1))
        left = np.vstack([-left.sum(axis=0), left])
        left -= np.outer(left[:, -1], known.mean) if self.intercept else 0.0
        for j in np.flatnonzero(known.kind == FREE):
            ends = left[:, j] > 0.0 if rng.integers(2) else rng.integers(2, size=self.K)
            x[:, j] = size * ADMITTED / known.spread[j] * ends
        x[:, -1] -= x @ known.mean if self.intercept else 0.0
        return x[1:] * (1.0 - 1e-12) - x[0] * (1.0 - 1e-12)  # the reference point is rounded

    def value(self, x, extra):
        inside = np.flatnonzero(self.coordinates.kind == IN_NORM)
        rows = [[mpmath.mpf(0)] * x.shape[1], *map(exact, x)]
        lam = mpmath.mpf(extra) + max(
            dual_norm([(a[j] - b[j]) / mpmath.mpf(self.coordinates.costs[j]) for j in inside],
                      self.norm)
            for a, b in itertools.combinations(rows, 2)
        )  # fmt: skip
        total = mpmath.mpf(self.epsilon) * lam
        for z, label, weight in zip(self.Z, self.y, self.w, strict=True):
            s = [mpmath.fdot(exact(z), row) for row in rows]
            loss = mpmath.log(mpmath.fsum(mpmath.exp(each - s[label]) for each in s))
            flipped = max(mpmath.mpf(0), s[label] - min(s) - mpmath.mpf(self.kappa) * lam)
            total += mpmath.mpf(weight) * (loss + flipped)
        return total


def test_no_admitted_model_is_below_the_bound_of_any_point():
    bounds = []
    for labels in map(Labels, range(60)):
        bound, factor = lower_bound(labels.coordinates, labels.epsilon, labels.sums)
        assert 0.0 <= factor <= 1.0
        bounds.append(bound)
        for size, extra in itertools.product([0.0, 1e-6, 1e-3, 1.0], [0.0, 0.1]):
            assert labels.value(labels.model(size), extra) >= bound
    assert sum(bound > 1e-3 for bound in bounds) > 15


@pytest.mark.parametrize("norm", NORMS)
def test_what_several_labels_use_of_the_norm(norm):
    """At least what any flow with this divergence carries; in full what its own one does."""
    rng = np.random.default_rng(0)
    costs, mean = np.array([2.0, 0.5, 1.0]), np.array([0.3, -2.0, 0.0])
    kind = np.array([IN_NORM, IN_NORM, FREE], np.int32)
    known = Coordinates(kind, costs, NORMS[norm], np.ones(3), mean, np.ones(3), 2, 3)
    flow, size = rng.normal(size=(3, 2)), NORMS[norm].value
    G = np.array([flow[0] + flow[1], flow[2] - flow[0], -flow[1] - flow[2]])  # 01, 02, 12
    gradient = -np.column_stack([G, [0.5, 0.2, -0.7]])
    gradient[:, :2] += np.outer(gradient[:, 2], mean[:2])
    gradient = gradient[1:].ravel()
    equal = sum(size(costs[:2] * (G[j] - G[k]) / 3.0) for j, k in ((0, 1), (0, 2), (1, 2)))
    own = sum(size(costs[:2] * row) for row in flow)
    if norm == "l1":
        equal = own = 0.5 * float(costs[:2] @ np.abs(G).sum(axis=0))
    assert known.used(gradient) == pytest.approx(equal, rel=1e-12)
    assert known.used(gradient, 0.0, flow) == pytest.approx(own, rel=1e-12)
    more = 1e-6 * size(costs[:2] * known.sizes[:2])
    more *= 1.0 if norm == "l1" else 2.0  # 2/K of it for each of three pairs
    assert known.used(gradient, 1e-6, flow) <= own + more * (1.0 + 1e-6)
    assert known.used(gradient, 1e-6) == pytest.approx(equal + more, abs=0.2 * more)


@pytest.mark.parametrize("seed", range(10))
def test_no_admitted_model_is_below_the_bound_of_any_pieces(seed):
    """Two categories or more in each of two groups, a bounded and an unbounded column."""
    rng = np.random.default_rng(1000 + seed)
    N, sizes = 6, (2, 3)
    high = 5
    codes = np.stack([rng.integers(2, size=N), 2 + rng.integers(3, size=N)], axis=1)
    bounded, unbounded = rng.uniform(-1.0, 3.0, size=N), rng.normal(size=N)
    w = np.full(N, 1.0 / N)
    epsilon, cost = float(rng.choice([0.01, 0.3])), rng.uniform(0.5, 2.0, size=3)
    y = rng.choice([-1.0, 1.0], size=N)
    rows, labels, costs, owner = [], [], [], []
    for i, label, moved in itertools.product(range(N), (1.0, -1.0), range(8)):
        row = np.zeros(10)
        for g in range(2):
            if not moved >> g & 1:
                row[codes[i, g]] = 1.0
            elif label < 0.0:
                row[high + g] = 1.0
        end = rng.choice([-1.0, 3.0])
        row[7:] = end if moved & 4 else bounded[i], unbounded[i], 1.0
        rows.append(row)
        labels.append(label)
        costs.append(cost[:2] @ [moved & 1, moved >> 1 & 1] + 1.5 * (label != y[i]))
        costs[-1] += cost[2] * abs(row[7] - bounded[i])
        owner.append(i)
    rows, labels, costs, owner = map(np.array, (rows, labels, costs, owner))
    q = rng.uniform(size=owner.size) ** 6 + (costs == 0.0) * 3.0
    q *= (w / np.bincount(owner, q))[owner] * (1.0 - 1e-15)
    s = some_probabilities(rng, owner.size)
    free = [7, 9]
    for _ in range(200):  # towards the equations of the free coordinates
        Z = (q * labels)[:, None] * rows[:, free]
        s = np.clip(s - np.linalg.lstsq(Z.T, Z.T @ s, rcond=None)[0], 0.0, 1.0)
    sums = DualSums(
        (rows * (q * labels)[:, None]).T @ s, float(q @ costs), float(q @ entropy(s)), owner.size
    )
    spread = np.ones(10)
    spread[7] = bounded.std()
    mean = np.zeros(10)
    mean[7], mean[8] = bounded.mean(), unbounded.mean()
    kind = [GROUP, GROUP, GROUP + 1, GROUP + 1, GROUP + 1, -1, -2, FREE, IN_NORM, FREE]
    size = np.array([1.0] * 7 + [3.0, np.sqrt(np.mean(unbounded**2)), 1.0])
    coordinates = Coordinates(
        np.array(kind, np.int32), np.ones(10), NORMS["l1"], spread, mean, size, 9
    )
    bound, _ = lower_bound(coordinates, epsilon, sums)
    left = sums.gradient - mean * sums.gradient[9]
    for reach in (1e-4, 1e-2, 1.0, ADMITTED * (1.0 - 1e-9)):
        x = rng.normal(size=10)
        for g, first in ((0, 0), (1, 2)):
            part = slice(first, first + sizes[g])
            chosen = rng.choice([0, 1, 2])
            x[part] = rng.uniform(size=sizes[g]) if chosen == 0 else left[part] > 0.0
            x[part] = reach * (x[part] - x[part].min())
            x[high + g] = x[part].max()
        x[7] = rng.choice([-1.0, 1.0]) * reach / spread[7]
        x[9] = rng.choice([-1.0, 1.0]) * reach - mean @ x
        for lam in (abs(x[8]), abs(x[8]) + 1.0):
            total = mpmath.mpf(epsilon) * mpmath.mpf(lam)
            worst = [mpmath.ninf] * N
            for row, label, d, i in zip(rows, labels, costs, owner, strict=True):
                v = int(label) * mpmath.fdot(exact(row), exact(x))
                worst[i] = max(worst[i], log1p_exp(-v) - mpmath.mpf(lam) * mpmath.mpf(float(d)))
            total += mpmath.fdot(exact(w), worst)
            assert total >= bound


def one_free_column(**changed):
    given = {
        "kind": np.array([FREE, FREE], np.int32), "costs": np.ones(2), "norm": NORMS["l1"],
        "spread": np.array([2.0, 1.0]), "mean": np.array([3.0, 0.0]),
        "size": np.array([4.0, 1.0]), "intercept": 1,
    }  # fmt: skip
    return Coordinates(**(given | changed))


def test_the_charge_is_what_the_worst_admitted_model_gains():
    g = np.array([1e-6, -2e-6])
    # |β| = B/2 and ±B at the mean, where g·(β, b) = g_1 β + g_b (b' - 3β).
    by_hand = ADMITTED * (abs(1e-6 + 3.0 * 2e-6) / 2.0 + 2e-6)
    bound, factor = lower_bound(one_free_column(), 1.0, DualSums(g, 0.0, 0.5, 10))
    assert bound == pytest.approx(0.5 - by_hand, rel=1e-9)
    assert factor == 1.0
    # Three labels: half of all their gradients, each at either end of the range.
    several = one_free_column(n_labels=3)
    left = np.array([[-1e-6, 0.0], [-2e-6, 0.0]])
    assert several.charge(left.ravel()) == pytest.approx(ADMITTED * 3e-6 / 2.0, rel=1e-9)
    ends = np.array([[1.0, -3.0], [0.5, -1.5]]) * ADMITTED / 2.0  # 0 at the mean
    assert several.admits(0.99 * ends.ravel())
    assert not several.admits(1.01 * ends.ravel())
    assert not several.admits(0.99 * (ends * [[1.0], [-1.0]]).ravel())  # too far apart


def test_rounding_is_charged_to_every_level_of_a_group():
    """The gain is largest where the highest level and all that help it have their errors added."""
    group = one_free_column(
        kind=np.array([-1, GROUP, GROUP], np.int32), costs=np.ones(3), spread=np.ones(3),
        mean=np.zeros(3), size=np.array([4.0, 1.0, 2.0]), intercept=None,
    )  # fmt: skip
    g, rounding = np.array([1e-6, 2e-6, -5e-6]), 1e-6
    by_hand = ADMITTED * ((1e-6 + 4e-6) + (2e-6 + 1e-6))  # the last one is not above -2e-6
    assert group.charge(g, rounding) == pytest.approx(by_hand, rel=1e-9)
    assert group.charge(g) == pytest.approx(ADMITTED * 3e-6, rel=1e-9)


def test_the_error_of_a_chain_is_n_u_over_one_less_n_u():
    """Half of all digits lost: γ = n u / (1 - n u) is 1, and not n u = 1/2 or less."""
    seen = []
    charged = type("Charged", (), {
        "charge": lambda self, g, rounding: seen.append(rounding) or 0.0,
        "used": lambda self, g, rounding, flow: 0.0,
    })()  # fmt: skip
    lower_bound(charged, 1.0, DualSums(np.zeros(2), 0.0, 0.5, 2.0**52))
    assert seen == pytest.approx([1.0], rel=1e-12)


def test_points_outside_the_ball_are_scaled_strictly_inside():
    inside = one_free_column(kind=np.array([IN_NORM, FREE], np.int32), costs=np.array([2.0, 1.0]))
    bound, factor = lower_bound(inside, 1.0, DualSums(np.array([0.375, 0.0]), 0.5, 0.6, 10))
    assert factor == pytest.approx(0.8, rel=1e-11)
    assert factor < 0.8
    assert bound == pytest.approx(0.48, abs=1e-9)


@pytest.mark.parametrize("name", NORMS)
def test_a_norm_that_is_new_has_bounds(name):
    """One that differs from a known norm by its name alone proves as much."""
    known, new = (
        one_free_column(
            kind=np.array([IN_NORM, IN_NORM], np.int32), costs=np.array([2.0, 1.0]), norm=norm
        )
        for norm in (NORMS[name], replace(NORMS[name], name="new"))
    )
    for gradient in ([0.375, 0.2], [0.0, 0.0], [-3.0, 1e-9]):
        sums = DualSums(np.array(gradient), 0.1, 0.6, 10)
        assert lower_bound(new, 1.0, sums) == pytest.approx(lower_bound(known, 1.0, sums))


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_sums_that_are_not_finite_prove_nothing(wrong):
    point = DualSums(np.array([wrong, 0.0]), 0.0, 0.5, 10)
    assert lower_bound(one_free_column(), 1.0, point)[0] == 0.0


def test_every_block_of_rows_adds_a_rounding():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 2))
    options = {"epsilon": 0.1, "kappa": 1.0}
    one, three = (stated.problem(X, X[:, 0] > 0.0, n_jobs=n, **options) for n in (1, 3))
    whole, parts = (label_bound(each, np.zeros(3), None).sums.additions for each in (one, three))
    chains = [
        column_sums(compiled(X[:n], np.ones(n), np.ones(n), intercept=True), np.ones((2, n)))[1]
        for n in (90, 30)
    ]
    assert whole == chains[0] + 1
    assert parts == chains[1] + 3


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
def test_sums_have_as_many_roundings_as_they_say(storage):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 6)) * 10.0 ** rng.uniform(-8, 8, (500, 6)) * (rng.random(6) < 0.7)
    r, ones = rng.normal(size=(2, 500)), np.ones(500)
    found, additions = column_sums(compiled(storage(X), ones, ones, intercept=True), r)
    for k, column in itertools.product(range(2), range(7)):
        terms = [
            Fraction(a) * Fraction(b) for a, b in zip(r[k], np.c_[X, ones][:, column], strict=True)
        ]
        error = abs(Fraction(found[k, column]) - sum(terms))
        assert error <= Fraction((additions + 1) * 2.0**-53) * sum(map(abs, terms))


def test_sums_of_sparse_rows_have_as_many_roundings_as_they_say():
    """A column that loses half a unit of rounding with every addition, until a sum begins anew."""
    n, n_columns = 9000, 20_000
    ones, r = np.ones(n), np.full(n, 2.0**-53)
    r[0] = 1.0
    X = sp.csr_array((ones, (np.arange(n), np.zeros(n, dtype=int))), (n, n_columns))
    found, additions = column_sums(compiled(X, ones, ones, intercept=False), r[None])
    lost = 1 + Fraction(n - 1, 2**53) - Fraction(found[0, 0])
    assert 5000 * Fraction(1, 2**53) < lost <= Fraction(additions * 2.0**-53)


def test_what_the_sum_of_panels_rounds_off_is_added_at_the_end():
    """Each panel of 32 rows adds less than half a unit of rounding to a sum of one."""
    n = 32 * 200
    X, ones = np.full((n, 1), 0.9 / 32.0 * 2.0**-53), np.ones(n)
    X[0] = 1.0
    rows = compiled(X, ones, ones, intercept=False)
    point = np.array([[ones, 0.0 * ones], [0.0 * ones, ones]])
    *_, sums, additions = label_sums(rows, None, np.zeros((1, 1)), point, 1.0, None)
    error = abs(Fraction(sums[0]) - sum(map(Fraction, X[:, 0])))
    assert error <= Fraction(additions * 2.0**-53) < Fraction(100 * 2.0**-53)


def test_a_problem_is_charged_at_the_means_of_its_columns():
    rng = np.random.default_rng(0)
    X, weights = rng.normal(size=(30, 2)) * [1.0, 0.1] + [0.0, 5.0], rng.uniform(0.5, 2.0, 30)
    costs, weights = np.array([1.0, np.inf]), weights / weights.sum()
    problem = stated.problem(X, X[:, 0] > 0.0, feature_costs=costs, sample_weight=weights)
    mean = weights @ X[:, 1]
    spread = np.sqrt(weights @ (X[:, 1] - mean) ** 2)
    known = label_coordinates(problem)
    charge = known.charge
    assert charge(np.array([0.0, 1e-6, 0.0])) == pytest.approx(ADMITTED * 1e-6 / spread, rel=1e-6)
    both = ADMITTED * 1e-6 * (1.0 + mean / spread)
    assert charge(np.array([0.0, 0.0, 1e-6])) == pytest.approx(both, rel=1e-6)
    # The class of models: log-odds at the means.
    for share, admitted in ((0.99, True), (1.01, False)):
        assert known.admits(np.array([0.0, 0.0, share * ADMITTED])) == admitted
