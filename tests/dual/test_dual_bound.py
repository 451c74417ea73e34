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

from drlogit.dual._certificate import (
    FREE,
    GROUP,
    IN_NORM,
    Coordinates,
    column_sums,
    label_sums,
)
from drlogit.dual.bound import DualSums, lower_bound
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


class Pair:
    """The flip pair, its coordinates, a dual point, and the objective in fifty digits."""

    def __init__(self, seed):
        rng = self.rng = np.random.default_rng(seed)
        self.N, self.n = int(rng.integers(2, 9)), int(rng.integers(1, 5))
        self.intercept = bool(rng.integers(2))
        self.X = rng.normal(size=(self.N, self.n)) * 10.0 ** rng.integers(-3, 4, size=self.n)
        self.X += 10.0 ** rng.integers(-1, 3, size=self.n) * rng.integers(0, 2, size=self.n)
        self.y = rng.choice([-1.0, 1.0], size=self.N)
        self.w = rng.uniform(0.1, 1.0, size=self.N)
        self.w /= self.w.sum()
        self.kappa = float(rng.choice([0.3, 1.0, 5.0]))
        self.epsilon = float(rng.choice([1e-3, 0.1, 1.0]))
        self.norm = str(rng.choice(["l1", "l2", "linf"]))
        free = rng.uniform(size=self.n) < 0.4
        Z = np.column_stack([self.X, np.ones(self.N)]) if self.intercept else self.X
        self.costs = np.where(free, 1.0, rng.uniform(0.2, 5.0, size=self.n))
        mean = self.w @ self.X if self.intercept else np.zeros(self.n)
        spread = np.sqrt(self.w @ (self.X - mean) ** 2)
        tail = [1.0] if self.intercept else []
        self.coordinates = Coordinates(
            kind=np.append(free.astype(np.int32), np.ones(len(tail), np.int32)),
            costs=np.append(self.costs, tail),
            norm=NORMS[self.norm],
            spread=np.append(spread, tail),
            mean=np.append(mean, np.zeros(len(tail))),
            size=np.append(np.sqrt(self.w @ self.X**2), tail),
            intercept=self.n if self.intercept else None,
        )
        s, a = some_probabilities(rng, self.N), some_probabilities(rng, self.N)
        a = np.minimum(a, s) if rng.uniform() < 0.5 else a
        if free.any() or self.intercept:  # most points owe too much to prove anything
            s, a = self._nearly_feasible(Z, s, a, np.flatnonzero(self.coordinates.kind == FREE))
        self.sums = DualSums(
            Z.T @ (self.w * (s - a) * self.y),
            self.kappa * float(self.w @ a),
            float(self.w @ entropy(s)),
            self.N,
        )

    def _nearly_feasible(self, Z, s, a, free):
        for _ in range(50):
            rows = (self.w * self.y)[:, None] * Z[:, free]
            step = np.linalg.lstsq(rows.T, rows.T @ (s - a), rcond=None)[0]
            s = np.clip(s - step, 0.0, 1.0)
        return s, a

    def model(self, size):
        """An admitted model: free coefficients up to ``size`` of what is admitted."""
        kind, spread = self.coordinates.kind, self.coordinates.spread
        x = self.rng.normal(size=kind.size) * 10.0 ** self.rng.uniform(-3, 3)
        worst = self.sums.gradient.copy()
        if self.intercept:
            worst -= self.coordinates.mean * worst[-1]
        for j in np.flatnonzero(kind == FREE):
            x[j] = size * ADMITTED / spread[j] * self.rng.choice([np.sign(worst[j]), 1.0, -1.0])
        if self.intercept:
            x[-1] -= self.coordinates.mean @ x
        return x * (1.0 - 1e-12)  # the reference point is rounded

    def value(self, x, extra):
        beta = exact(x[: self.n])
        penalised = np.flatnonzero(self.coordinates.kind[: self.n] == IN_NORM)
        lam = dual_norm([beta[j] / mpmath.mpf(self.costs[j]) for j in penalised], self.norm)
        lam += mpmath.mpf(extra)
        total = mpmath.mpf(self.epsilon) * lam
        for row, label, weight in zip(self.X, self.y, self.w, strict=True):
            u = mpmath.fdot(exact(row), beta) + (mpmath.mpf(x[-1]) if self.intercept else 0)
            u *= int(label)
            flipped = max(mpmath.mpf(0), u - mpmath.mpf(self.kappa) * lam)
            total += mpmath.mpf(weight) * (log1p_exp(-u) + flipped)
        return total, lam


@pytest.mark.parametrize("seed", range(30))
def test_no_admitted_model_is_below_the_bound_of_any_point(seed):
    pair = Pair(seed)
    bound, factor = lower_bound(pair.coordinates, pair.epsilon, pair.sums)
    assert 0.0 <= factor <= 1.0
    for size, extra in itertools.product([0.0, 1e-6, 1e-3, 1.0], [0.0, 0.1, 10.0]):
        x = pair.model(size)
        value, _ = pair.value(x, extra)
        assert value >= bound


def test_the_points_of_this_test_prove_something():
    bounds = [lower_bound(p.coordinates, p.epsilon, p.sums)[0] for p in map(Pair, range(40))]
    assert sum(bound > 1e-3 for bound in bounds) > 10


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
    sums = DualSums(g, 0.0, 0.5, 10)
    # |β| = B/2 and ±B at the mean, where g·(β, b) = g_1 β + g_b (b' - 3β).
    by_hand = ADMITTED * (abs(1e-6 + 3.0 * 2e-6) / 2.0 + 2e-6)
    bound, factor = lower_bound(one_free_column(), 1.0, sums)
    assert bound == pytest.approx(0.5 - by_hand, rel=1e-9)
    assert factor == 1.0


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
