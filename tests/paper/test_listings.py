"""Our iterates are those of the listings: Algorithms 1 to 6, linearised ADMM, coordinate sweeps."""

from __future__ import annotations

import math
from importlib import import_module
from itertools import islice, pairwise

import numpy as np
import pytest
from scipy.sparse import csr_array

import paper_listings as listings
from drlogit import paper
from drlogit.datasets import make_synthetic
from drlogit.paper.subproblem import NORMS

pytestmark = pytest.mark.slow

box_qp = import_module("drlogit.paper.box_qp")  # the module; the package has the function

COUNT = 300


def samples(N=800, n=4):
    X, y = make_synthetic(N, n, random_state=3)[:2]
    return 2.0 * X, y


def signed(N=800, n=4):
    X, y = samples(N, n)
    return y[:, None] * X


EXACT = [
    ("l1", "active-set-cg"),
    ("l1", "coordinate-newton"),
    ("l1", "coordinate"),
    ("l1", "projected-gradient"),
    ("l2", "secular"),
    ("l2", "projected-gradient"),
    ("linf", "projected-gradient"),
]


@pytest.mark.parametrize("eta", [0.0, 1.5 / (4 * 800)])
@pytest.mark.parametrize(("norm", "inner"), EXACT)
def test_algorithm_1_and_linearised_admm(norm, inner, eta):
    # With so many samples ρ₀ = 0.001 is in the proven range, where errors do not grow.
    Z, lam, kappa = signed(), 0.1, 10.0
    rng = np.random.default_rng(0)
    start = rng.standard_normal(4), rng.standard_normal(800), rng.standard_normal(800) / 800
    listing = listings.algorithm_1(Z, lam, kappa, norm, 0.001, 1.02, eta, *start)
    ours = paper.lp_admm(
        csr_array(Z), lam, kappa, norm=norm, gamma=1.02, eta=eta, inner=inner, start=start
    )
    on_the_bound = 0
    for k, (one, (x, y, w, rho)) in enumerate(zip(islice(ours, COUNT), listing, strict=False), 1):
        assert one.k == k
        on_the_bound += bool(np.isclose(NORMS[norm].dual(x), lam, rtol=1e-12))
        np.testing.assert_allclose(one.x, x, rtol=0, atol=1e-9)
        np.testing.assert_allclose(one.y, y, rtol=0, atol=1e-9)
        np.testing.assert_allclose(800 * one.w, 800 * w, rtol=0, atol=1e-9)
        assert one.rho == pytest.approx(rho, rel=1e-12)
        assert one.residual == pytest.approx(np.linalg.norm(Z @ x - y), abs=1e-9)
        assert pytest.approx(listings.loss(y, lam * kappa), abs=1e-9) == one.F
    assert on_the_bound > 100


@pytest.mark.parametrize("reuse", [True, False])
def test_algorithm_2_over_algorithm_1(reuse):
    X, y = samples()
    epsilon, residual_tol = 0.05, 3e-3
    seen: dict[float, int] = {}
    result = paper.framework(
        X,
        y,
        epsilon=epsilon,
        kappa=1.0,
        residual_tol=residual_tol,
        reuse=reuse,
        tol=10.0,
        bracket_tol=0.2,
        callback=lambda lam, it: seen.update({lam: it.k}),
    )
    Z, zeros = y[:, None] * X, (np.zeros(4), np.zeros(800), np.zeros(800))

    def q(lam):
        steps = listings.algorithm_1(Z, lam, 1.0, "l1", 0.001, 1.05, 0.0, *zeros)
        for k, (x, mu, _, _) in enumerate(steps, 1):
            if np.linalg.norm(Z @ x - mu) <= residual_tol:
                known[lam] = k
                return epsilon * lam + listings.loss(mu, lam)
        raise AssertionError

    known: dict[float, int] = {}
    ratio = 0.5 * (math.sqrt(5.0) - 1.0) if reuse else 0.618
    tried = listings.algorithm_2(q, 0.2785 / epsilon, ratio, 8)
    for run in result.runs:
        nearest = min(tried, key=lambda lam: abs(lam - run.lam))
        assert run.lam == pytest.approx(nearest, rel=1e-12)
        assert run.n_iter == seen[run.lam] == known[nearest]
        assert run.value == pytest.approx(q(nearest), abs=1e-9)
    assert len(result.runs) >= (8 if reuse else 14)


@pytest.mark.parametrize(("rho", "sigma"), [(None, 1.0), (0.05, 1.5)])
def test_algorithms_3_and_4(rho, sigma):
    N, lam, kappa = 60, 0.3, 1.0
    Z = signed(N)
    rng = np.random.default_rng(1)
    x, y, u = rng.standard_normal(4), rng.standard_normal(N), rng.standard_normal(N) / N
    v = -np.clip(listings.sigma(-y) / N + u, 0.0, 1.0 / N)  # as in our start
    listing = listings.algorithm_3(
        Z, lam, kappa, 10.0 / N if rho is None else rho, sigma, x, y, u, v
    )
    ours = paper.standard_admm(
        Z, lam, kappa, rho=rho, sigma=sigma, inner="coordinate-newton", start=(x, y, -u)
    )
    for one, (x, y, z, u, _) in zip(islice(ours, COUNT), listing, strict=False):
        np.testing.assert_allclose(one.x, x, rtol=0, atol=1e-9)
        np.testing.assert_allclose(one.y, y, rtol=0, atol=1e-9)
        np.testing.assert_allclose(-N * one.w, N * u, rtol=0, atol=1e-9)
        gap = math.hypot(np.linalg.norm(Z @ x - y), np.linalg.norm(z - y + lam * kappa))
        assert one.residual == pytest.approx(gap, abs=1e-9)


def steps(name, A, b, lam, x, count):
    """The iterates of one of our solvers of (C)."""
    H, ball = box_qp.Quadratic(A), box_qp.NormBall(NORMS["l1"], lam)
    return [x for x, _ in islice(box_qp.METHODS[name](H, A.T @ b, ball, x), count)]


def box(n=30, seed=0, spread=1.0):
    """A problem (C) of which about half of the coordinates end on their bounds."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((3 * n, n)) * np.logspace(0.0, -spread, n)
    return A, A @ rng.standard_normal(n), 0.6


def test_algorithm_5():
    A, b, lam = box()
    start = np.random.default_rng(1).uniform(-lam, lam, 30)
    ours = steps("projected-gradient", A, b, lam, start, COUNT)
    theirs = listings.algorithm_5(A, b, lam, start, COUNT)
    assert len(ours) == COUNT
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-9)
    assert 5 < (np.abs(ours[-1]) == lam).sum() < 25


@pytest.mark.parametrize("seed", range(12))
def test_algorithm_6_with_coordinates_on_their_bounds(seed):
    # Conjugate gradients magnify rounding with the condition number: at 0.5 last bits reach 1e-9.
    A, b, lam = box(seed=seed, spread=0.3)
    start = lam * np.sign(np.random.default_rng(seed).standard_normal(30))  # all on a bound
    ours = steps("active-set-cg", A, b, lam, start, COUNT)
    theirs = listings.algorithm_6(A, b, lam, start, COUNT)
    both = min(len(ours), len(theirs))
    assert both > 10
    np.testing.assert_allclose(ours[:both], theirs[:both], rtol=0, atol=1e-9)
    assert 5 < (np.abs(ours[-1]) == lam).sum() < 25
    # ... and that is the minimum, by the duality gap.
    g = A.T @ (A @ ours[-1] - b)
    assert g @ ours[-1] + lam * np.abs(g).sum() <= 1e-12 * lam * np.abs(A.T @ b).sum()


@pytest.mark.parametrize("dense", [True, False])
def test_coordinate_minimisation(dense, monkeypatch):
    monkeypatch.setattr(box_qp, "DENSE_LIMIT", 5000 if dense else 2)
    A, b, lam = box()
    ours = steps("coordinate", A if dense else csr_array(A), b, lam, np.zeros(30), COUNT)
    theirs = listings.coordinate_sweeps(A, b, lam, np.zeros(30), COUNT)
    np.testing.assert_allclose(ours, theirs[: len(ours)], rtol=0, atol=1e-9)


def test_the_released_rule_ends_after_a_short_step():
    A, b, _ = box(n=30, spread=0.5)
    iterates = [np.zeros(30), *steps("active-set-cg", A, b, 1e6, np.zeros(30), COUNT)]
    lengths = [np.linalg.norm(new - old) for old, new in pairwise(iterates)]
    ends = [next(k for k, length in enumerate(lengths, 1) if length < t) for t in (1e-4, 1e-5)]
    assert ends[0] < ends[1] < len(lengths)
    found = paper.box_qp(A, b, 1e6, "active-set-cg", "released")
    np.testing.assert_array_equal(found, iterates[ends[1]])
