"""``paper.gap`` against fifty digits, the conic reference, and the baselines beside both."""

from __future__ import annotations

import math
import sys
from itertools import islice

import mpmath as mp
import numpy as np
import pytest
from benchmarks import stated
from scipy.sparse import csr_array

from drlogit import paper
from drlogit.datasets import make_synthetic

pytestmark = pytest.mark.slow

NORMS = ("l1", "l2", "linf")
KAPPAS = (0.25, 1.0, math.inf)


def samples(seed=0, N=40, n=4):
    """Overlapping classes of unequal size, columns of unequal scale."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, n)) * np.geomspace(0.5, 2.0, n)
    score = X @ rng.standard_normal(n) + 0.5 + rng.standard_normal(N)
    return X, np.where(score > 0.0, 1, -1)


# --- fifty digits ---------------------------------------------------------------------------


def digits(Z, x, lam, epsilon, kappa):
    """The objective of (A) at (x, λ) in fifty digits."""
    total = mp.mpf(0)
    for row in Z.tolist():
        u = mp.fsum(mp.mpf(z) * mp.mpf(b) for z, b in zip(row, x.tolist(), strict=True))
        total += mp.log(1 + mp.exp(-u))
        if math.isfinite(kappa):
            total += max(u - mp.mpf(kappa) * mp.mpf(lam), mp.mpf(0))
    return mp.mpf(epsilon) * mp.mpf(lam) + total / len(Z)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("kappa", KAPPAS)
@pytest.mark.parametrize("seed", range(3))
def test_objective_and_bound_in_fifty_digits(norm, kappa, seed):
    X, y = samples(seed)
    Z, epsilon = y[:, None] * X, 0.02
    rng = np.random.default_rng(seed)
    exact = stated.solve(
        X, y, epsilon=epsilon, kappa=kappa, norm=norm, fit_intercept=False, tol=1e-10
    )
    with mp.workdps(50):
        for scale in (0.0, 1e-6, 1e-2, 1.0, 100.0):
            x = exact.coef + scale * rng.standard_normal(4)
            found = paper.gap(csr_array(Z), x, epsilon, kappa, norm)
            value = digits(Z, x, found.lam, epsilon, kappa)
            assert abs(found.objective - value) <= 1e-14 * (1.0 + abs(value))
            assert found.lower <= value
            size = {"l1": np.abs(x).max(), "l2": np.linalg.norm(x), "linf": np.abs(x).sum()}[norm]
            assert found.lam >= size * (1.0 - 1e-15)
            # No other λ is better.
            for other in (size, found.lam * (1 + 1e-6), found.lam * 0.9, found.lam + 1.0):
                if other >= size:
                    assert digits(Z, x, other, epsilon, kappa) >= value - mp.mpf(1e-15)
        # The bound is below the optimum, which is at most the best value seen, and near it.
        best = digits(Z, exact.coef, exact.lam, epsilon, kappa)
        assert 0 <= best - found.lower <= 1e-8


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x": np.zeros(3)}, r"x must be 4 finite numbers, got .* \(3,\)"),
        ({"x": np.full(4, np.nan)}, "x must be 4 finite numbers"),
        ({"epsilon": 0.0}, "epsilon must be finite and > 0, got 0.0"),
        ({"Z": np.zeros((1, 4))}, "Z must have at least two rows"),
    ],
)
def test_input_is_checked(change, message):
    X, y = samples()
    options = {"Z": y[:, None] * X, "x": np.zeros(4), "epsilon": 0.1, "kappa": 1.0} | change
    with pytest.raises(ValueError, match=message):
        paper.gap(**options)


# --- the conic reference --------------------------------------------------------------------


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("kappa", KAPPAS)
@pytest.mark.parametrize("solver", ["CLARABEL", "MOREAU"])
def test_conic_solvers_agree_with_everything_else(norm, kappa, solver):
    cp = pytest.importorskip("cvxpy")
    if solver not in cp.installed_solvers():
        pytest.skip(f"{solver} is not installed")
    X, y = samples()
    options = {"epsilon": 0.02, "kappa": kappa, "norm": norm}
    found = paper.conic(csr_array(X), y, solver=solver, **options)
    assert found.solver == solver.lower()
    assert found.info["status"] == "optimal"
    # It shares no code with the bound: above it, and near.
    assert -1e-10 <= found.gap <= 1e-7
    # Problem (B), by the same and by LP-ADMM.
    Z, lam = y[:, None] * X, 0.5 * found.lam
    at_lam = paper.conic(X, y, solver=solver, lam=lam, **options)
    fixed = paper.sound(Z, lam=lam, tol=1e-8, **options)
    assert fixed.converged
    assert at_lam.objective == pytest.approx(fixed.objective, abs=1e-7)
    assert fixed.dual_objective <= at_lam.objective + 1e-12
    assert at_lam.objective > found.objective + 1e-6


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("kappa", KAPPAS)
def test_the_methods_of_section_5_2_approach_the_value_of_b(norm, kappa):
    pytest.importorskip("cvxpy")
    X, y = samples()
    Z, lam, N = y[:, None] * X, 0.6, len(y)
    best = paper.conic(X, y, lam=lam, epsilon=1.0, kappa=kappa, norm=norm).objective - lam
    model = {"Z": Z, "lam": lam, "kappa": kappa, "norm": norm}
    inner = {"l1": "active-set-cg", "l2": "secular", "linf": "restarted-gradient"}[norm]
    admm = {**model, "inner": inner, "inner_stop": 1e-12}
    for steps, count, above in (
        (paper.lp_admm(rho="scaled", gamma=1.0, **admm), 600, 1e-6),
        (paper.lp_admm(rho="scaled", gamma=1.0, eta=1.01 / (4 * N), **admm), 600, 1e-6),
        (paper.standard_admm(**admm), 600, 1e-5),
        (paper.pdhg(**model), 3000, 1e-5),
        (paper.subgradient(**model), 3000, 2e-2),
    ):
        u = Z @ next(islice(steps, count, None)).x
        flips = np.maximum(u - kappa * lam, 0.0) if math.isfinite(kappa) else 0.0
        assert -1e-7 <= np.mean(np.logaddexp(0.0, -u) + flips) - best <= above


def test_many_dense_rows_see_copies_of_the_coefficients():
    pytest.importorskip("cvxpy")
    X, y = samples(N=3020)
    assert abs(paper.conic(X, y, epsilon=0.02, kappa=1.0).gap) <= 1e-7


def test_a_missing_package_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "cvxpy", None)
    monkeypatch.setattr(sys.modules["drlogit.paper.conic"], "find_spec", lambda name: None)
    X, y = samples()
    with pytest.raises(ImportError, match=r"pip install 'drlogit\[conic\]'"):
        paper.conic(X, y, epsilon=0.1, kappa=1.0)


def test_conic_refuses_other_solvers():
    pytest.importorskip("cvxpy")
    X, y = samples()
    with pytest.raises(ValueError, match=r"'MOREAU' or 'CLARABEL', installed, got 'SCS'"):
        paper.conic(X, y, epsilon=0.1, kappa=1.0, solver="SCS")


# --- PDHG by its formulas -------------------------------------------------------------------


def test_pdhg_step_by_step():
    X, y = samples()
    Z, lam, kappa, N = y[:, None] * X, 0.4, 0.8, 40
    x, u, v = np.zeros(4), np.zeros(N), np.full(N, -1.0)
    for step in islice(paper.pdhg(Z, lam, kappa, sigma=1.5), 300):
        slope = Z.T @ (0.5 + 0.5 * v - 1.0 / (1.0 + np.exp(u))) / N
        x = np.clip(x - step.rho * slope, -lam, lam)
        before, u = u, Z @ x
        v = np.clip(v + 0.75 * (2.0 * u - before - kappa * lam), -1.0, 1.0)
        np.testing.assert_allclose(step.x, x, rtol=0, atol=1e-12)
        w = -(0.5 + 0.5 * v - 1.0 / (1.0 + np.exp(u))) / N
        np.testing.assert_allclose(step.w, w, rtol=0, atol=1e-12)


def test_averages_are_averages():
    X, y = make_synthetic(40, 4, random_state=3)[:2]
    Z = y[:, None] * X
    iterates = list(islice(paper.lp_admm(Z, 0.3, 1.0, gamma=1.0), 25))
    last = list(paper.averages(iterates, Z, 0.3, 1.0))[-1]
    assert last.k == 25
    for name in ("x", "y", "w"):
        mean = np.mean([getattr(each, name) for each in iterates], axis=0)
        np.testing.assert_allclose(getattr(last, name), mean, rtol=0, atol=1e-13)
    F = float(np.mean(np.logaddexp(0.0, -last.y) + np.maximum(last.y - 0.3, 0.0)))
    assert pytest.approx(F, abs=1e-14) == last.F
    assert last.residual == pytest.approx(np.linalg.norm(Z @ last.x - last.y), abs=1e-12)
