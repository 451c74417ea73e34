"""The published framework: its iterates by a listing of their own, its rule, its safeguards."""

from __future__ import annotations

import math
import os
import warnings
from dataclasses import dataclass, field
from itertools import islice, pairwise

import numpy as np
import pytest
from benchmarks import stated
from benchmarks.paper import datasets
from scipy.optimize import brentq, lsq_linear
from scipy.special import expit

import drlogit
from drlogit import paper
from drlogit.datasets import make_synthetic
from drlogit.paper import admm, ball_qp, dispatch
from drlogit.problem.result import Status
from zoo import NORM_NAMES, wide_indices

pytestmark = pytest.mark.slow


# --- Algorithms 1 and 2 by their listings ---------------------------------------------------


@dataclass
class Listing:
    """Algorithms 1 and 2 in the paper's letters; shares no code with ours."""

    A: np.ndarray
    epsilon: float
    kappa: float
    norm: str
    residual_tol: float
    iterates: list = field(default_factory=list)

    def x_update(self, target, lam):
        """argmin ‖Ax - target‖² over the ball, each norm by a method of its own."""
        H, c = self.A.T @ self.A, self.A.T @ target
        n, hidden = c.size, 1e-12 * np.abs(c).max()
        free = np.linalg.solve(H, c)
        if self.norm == "l2":
            if np.linalg.norm(free) <= lam:
                return free
            values, vectors = np.linalg.eigh(H)
            b = vectors.T @ c

            def excess(tau):
                return lam / np.linalg.norm(b / (values + tau)) - 1.0

            tau = brentq(excess, 0.0, np.linalg.norm(b) / lam, xtol=1e-300, rtol=1e-15)
            return vectors @ (b / (values + tau))
        if self.norm == "linf" and np.abs(free).sum() <= lam:
            return free
        # Box: every choice of coordinates on a bound.  Σ|x_j| = λ: every pattern of signs.
        for number in range(3**n):
            signs = np.array([(number // 3**j) % 3 - 1 for j in range(n)], dtype=float)
            on, x = signs != 0.0, lam * signs
            if self.norm == "l1":
                x[~on] = np.linalg.solve(H[np.ix_(~on, ~on)], (c - H @ x)[~on])
                inside, pressed = np.abs(x) <= lam, signs * (H @ x - c) <= hidden
            elif on.any():
                m = int(on.sum())
                system = np.zeros((m + 1, m + 1))
                system[:m, :m] = H[np.ix_(on, on)]
                system[:m, m] = system[m, :m] = signs[on]
                solution = np.linalg.solve(system, np.append(c[on], lam))
                x[on] = solution[:m]
                inside, pressed = x * signs >= 0.0, np.abs(H @ x - c) <= solution[m] + hidden
            else:
                continue
            if inside.all() and pressed.all():
                return x
        raise AssertionError("no pattern is optimal")

    def lp_admm(self, lam, x, y, w, rho, gamma):
        """Algorithm 1; q(λ) = λε + F(x, y)."""
        N, b = self.A.shape[0], lam * self.kappa
        residual = math.inf
        while residual > self.residual_tol:
            x = self.x_update(y + w / rho, lam)
            Ax = self.A @ x
            gradient_f = (-expit(-y) + 0.5) / N
            center = Ax - (w + gradient_f) / rho - b
            y = b + np.sign(center) * np.maximum(np.abs(center) - 0.5 / (N * rho), 0.0)
            w = w - rho * (Ax - y)
            residual = float(np.linalg.norm(Ax - y))
            f = float(np.mean(np.logaddexp(0.0, -y) + 0.5 * (y - b)))
            F = f + 0.5 * float(np.mean(np.abs(y - b)))
            self.iterates.append((lam, x, y, w, rho, residual, F))
            rho = gamma * rho
        return lam * self.epsilon + F

    def golden_section(self, q, r, count):
        """Algorithm 2 without the values at the ends, until there are so many iterates.

        With ``r² = 1 - r`` one of the two points of a step is known from the step before.
        """
        lam1, lam4 = 0.0, 0.2785 / self.epsilon
        known = {}

        def value(lam):
            near = [key for key in known if abs(key - lam) <= 1e-9 * lam4]
            if not near:
                known[lam] = q(lam)
                return lam, known[lam]
            return near[0], known[near[0]]

        while len(self.iterates) < count:
            lam2, q2 = value(r * lam1 + (1.0 - r) * lam4)
            lam3, q3 = value((1.0 - r) * lam1 + r * lam4)
            if q2 < q3:
                lam4 = lam3
            else:
                lam1 = lam2


def bvls(H, c, ball, start, tol):
    """A user's own inner solver: SciPy's, on a square root of H."""
    root = np.linalg.cholesky(H.matrix)
    target = np.linalg.solve(root, c)
    return lsq_linear(root.T, target, (-ball.radius, ball.radius), tol=1e-15, method="bvls").x


INNER = [(norm, name) for norm in NORM_NAMES for name in ball_qp.INNER_SOLVERS[norm]]


def small_data(n_samples=40, n_features=4):
    X, y = make_synthetic(n_samples, n_features, random_state=3)[:2]
    return 2.0 * X, y


@pytest.mark.parametrize("reuse", [True, False])
@pytest.mark.parametrize(("norm", "inner"), [*INNER, ("l1", bvls)])
def test_iterates_are_those_of_the_listings(norm, inner, reuse):
    if not reuse and inner not in ("active-set-cg", "secular"):
        return  # which λ are tried does not depend on the inner solver
    # With so many samples ρ₀ = 0.001 is in the proven range, where errors do not grow.
    N, epsilon, kappa, rho, gamma = 800, 0.05, 1.0, 0.001, 1.05
    X, y = small_data(N)
    random = np.random.default_rng(0)
    start = random.standard_normal(4), random.standard_normal(N), random.standard_normal(N) / N
    count, tol = 200, 0.003
    seen = []
    result = paper.framework(
        X, y, epsilon, kappa, start=start, rho=rho, gamma=gamma, reuse=reuse, norm=norm,
        inner=inner, inner_tol=0.0, residual_tol=tol,
        callback=lambda iterate: seen.append(iterate) or len(seen) == count,
    )  # fmt: skip
    assert result.n_iter == count
    listing = Listing(y[:, None] * X, epsilon, kappa, norm, residual_tol=tol)
    ratio = 0.5 * (math.sqrt(5.0) - 1.0) if reuse else 0.618
    listing.golden_section(lambda lam: listing.lp_admm(lam, *start, rho, gamma), ratio, count)
    assert len({each.lam for each in seen}) >= 2, "one λ says nothing about Algorithm 2"
    for ours, theirs in zip(seen, listing.iterates, strict=False):
        found = (ours.lam, ours.beta, ours.mu, ours.w, ours.rho, ours.residual, ours.F)
        for one, other in zip(found, theirs, strict=True):
            np.testing.assert_allclose(one, other, rtol=0.0, atol=1e-12)


def test_golden_section_finds_the_minimum_of_any_convex_function():
    calls = []

    def q(lam):
        calls.append(lam)
        return abs(lam - 0.7) + 0.1 * lam

    lam, value = paper.golden_section(q, 2.0, tol=1e-8)
    assert lam == pytest.approx(0.7, abs=1e-7)
    assert value == q(lam)
    assert len(set(calls)) == len(calls) - 1, "one new value per step"
    once = len(calls)
    calls.clear()
    assert paper.golden_section(q, 2.0, tol=1e-8, reuse=False)[0] == pytest.approx(0.7, abs=1e-7)
    assert len(calls) > 1.9 * once
    assert calls[:2] == [0.382 * 2.0, 0.618 * 2.0]


# --- the rule, the trace, the callback ------------------------------------------------------


def test_subproblems_end_at_the_first_residual_that_is_small_enough():
    X, y = small_data()
    result = paper.framework(X, y, 0.05, 1.0, residual_tol=1e-4, bracket_tol=1e-2)
    assert {run.ended for run in result.subproblems} == {"residual"}
    assert result.n_iter == len(result.iterates) == sum(r.n_iter for r in result.subproblems)
    position = 0
    for run in result.subproblems:
        part = result.iterates[position : position + run.n_iter]
        position += run.n_iter
        assert [each.k for each in part] == list(range(1, run.n_iter + 1))
        assert {each.lam for each in part} == {run.lam}
        assert [each.residual <= 1e-4 for each in part] == [False] * (run.n_iter - 1) + [True]
        assert run.value == pytest.approx(0.05 * run.lam + part[-1].F, abs=1e-15)
        np.testing.assert_allclose([e.rho for e in part], 0.001 * 1.05 ** np.arange(run.n_iter))
    assert result.lam in [run.lam for run in result.subproblems]
    assert result.objective == pytest.approx(min(r.value for r in result.subproblems), abs=1e-4)
    with pytest.raises(ValueError, match="pass keep_vectors=True"):
        _ = result.iterates[0].mu


@pytest.mark.parametrize("variant", ["published", "sound"])
def test_callback_sees_every_iteration_and_stops_the_run(variant):
    X, y = small_data()
    seen = []
    options = {"variant": variant, "tol": 1e-9, "keep_vectors": True}
    stopped = paper.framework(
        X, y, 0.05, 1.0, callback=lambda each: seen.append(each) or len(seen) == 37, **options
    )
    assert stopped.status is Status.STOPPED
    assert stopped.n_iter == len(seen) == len(stopped.iterates) == 37
    for last, each in pairwise(seen):
        assert each.k == (last.k + 1 if each.lam == last.lam else 1)
    Z = y[:, None] * X
    for each in seen:
        assert each.residual == pytest.approx(np.linalg.norm(Z @ each.beta - each.mu), rel=1e-9)
        assert each.w.shape == (40,)
    np.testing.assert_array_equal(seen[5].mu, stopped.iterates[5].mu)


@pytest.mark.parametrize("solver", ["lp-admm", "standard-admm", "pdhg"])
def test_callback_of_the_solvers_is_called_per_iteration_and_changes_nothing(solver):
    X, y = small_data()
    options = {"epsilon": 0.05, "kappa": 1.0, "tol": 1e-4, "fit_intercept": False}
    if solver == "lp-admm":
        options |= {"rho": 0.002, "gamma": 1.1}
    seen = []
    run = [
        lambda **more: dispatch.solve_subproblem(X, y, lam=0.4, solver=solver, **options, **more)
    ]
    if solver == "lp-admm":
        run.append(lambda **more: dispatch.solve(X, y, solver=solver, **options, **more))
    for each in run:
        seen.clear()
        result = each(callback=seen.append)
        assert [it.n_iter for it in seen] == list(range(1, result.n_iter + 1))
        assert len(result.trace) == result.n_iter
        np.testing.assert_array_equal(result.coef, each().coef)
        assert all(it.dual_objective <= it.objective for it in seen)
    if solver == "lp-admm":  # in the units that were passed
        first = [it.extra["rho"] for it in seen[:10]]
        np.testing.assert_allclose(first, 0.002 * 1.1 ** np.arange(10))


def test_starts():
    X, y = small_data()
    given = np.full(4, 0.1), np.zeros(40), np.full(40, 0.01)
    for start in ("zeros", "ones", "random", given):
        steps = paper.lp_admm_steps(X, y, lam=0.3, kappa=1.0, start=start, random_state=7)
        assert np.isfinite(next(steps).F)
    one, other = (
        next(paper.lp_admm_steps(X, y, lam=0.3, kappa=1.0, start="random", random_state=7)).mu
        for _ in range(2)
    )
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"start": "elsewhere"}, "start must be one of 'zeros', 'ones', 'random'"),
        (
            {"start": (np.zeros(3), np.zeros(40), np.zeros(40))},
            r"lengths \(4, 40, 40\), got shapes",
        ),
        ({"start": (np.full(4, math.nan), np.zeros(40), np.zeros(40))}, "start must be finite"),
        ({"variant": "fast"}, "variant must be 'published' or 'sound', got 'fast'"),
        ({"rho": 0.0}, "rho must be finite and > 0"),
        ({"gamma": 0.5}, "gamma must be finite and >= 1"),
        ({"inner_tol": -1.0}, "inner_tol must be finite and >= 0"),
        ({"residual_tol": 0.0}, "residual_tol must be finite and > 0"),
        ({"max_iter": 0}, "max_iter must be a positive integer"),
        ({"inner": lambda H, c, ball, start, tol: c[:2]}, "inner must return 4 finite numbers"),
        ({"kappa": {1: 1.0, -1: 2.0}}, "one kappa for all samples"),
        ({"epsilon": 0.0}, "epsilon must be > 0"),
    ],
)
def test_options_are_checked(option, message):
    X, y = small_data()
    with pytest.raises(ValueError, match=message):
        paper.framework(X, y, **({"epsilon": 0.05, "kappa": 1.0} | option))


# --- what the rule is worth -----------------------------------------------------------------


def test_rule_stops_away_from_the_optimum_and_says_so():
    X, y = make_synthetic(200, 10, random_state=12)[:2]
    with pytest.warns(paper.ResidualRuleWarning, match="above the certified lower bound") as caught:
        frozen = paper.framework(X, y, 0.05, 1.0, rho=0.01, gamma=1.3, bracket_tol=1e-3)
    assert {run.ended for run in frozen.subproblems} == {"residual"}
    assert frozen.status is Status.UNPROVEN
    exact = stated.solve(X, y, epsilon=0.05, kappa=1.0, fit_intercept=False, tol=1e-9)
    # The gap is what the rule costs, not what a weak bound makes of it.
    assert frozen.gap > 1e-4
    assert frozen.gap == pytest.approx(frozen.objective - exact.objective, abs=1e-6)
    assert f"{frozen.gap:.2g}" in str(caught[0].message)
    verified = drlogit.verify(frozen, X, y)
    assert exact.objective - 1e-6 <= verified.lower <= exact.objective
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sound = paper.framework(X, y, 0.05, 1.0, variant="sound", tol=1e-6)
    assert sound.converged
    assert sound.objective == pytest.approx(exact.objective, abs=2e-6)
    assert len(sound.iterates) == sound.n_iter > 0


def test_constant_penalty_within_the_proven_range_ends_near_the_optimum():
    X, y = make_synthetic(200, 10, random_state=12)[:2]
    rho = 1.0 / 200
    result = paper.framework(X, y, 0.05, 1.0, rho=rho, gamma=1.0, bracket_tol=1e-2, tol=1e-4)
    assert result.converged


needs_data = pytest.mark.skipif(
    not os.environ.get("DRLOGIT_DATA"),
    reason="DRLOGIT_DATA is not set: it names a folder with the real data sets",
)


@needs_data
def test_a1a_ends_where_the_released_code_ends():
    # λ = 1.446 and 0.584570, 3e-5 above the optimum 0.584536.
    X, y = datasets.load("a1a")
    with pytest.warns(paper.ResidualRuleWarning):
        result = paper.framework(X, y, 0.1, 1.0, inner="coordinate-newton", bracket_tol=1e-3)
    assert result.lam == pytest.approx(1.446, abs=3e-3)
    assert result.objective == pytest.approx(0.584570, abs=3e-6)
    assert result.gap == pytest.approx(3.4e-5, abs=3e-6)


# --- safeguards -----------------------------------------------------------------------------


def test_penalty_is_capped_before_it_overflows():
    X, y = small_data()
    result = paper.framework(
        X, y, 0.05, 1.0, gamma=50.0, residual_tol=1e-300, bracket_tol=0.5, tol=10.0
    )
    assert {run.ended for run in result.subproblems} <= {"frozen", "residual"}
    assert all(math.isfinite(each.F) and math.isfinite(each.residual) for each in result.iterates)
    steps = paper.lp_admm_steps(X, y, lam=0.3, kappa=1.0, gamma=1e6)
    last = list(islice(steps, 300))[-1]
    assert last.rho <= 1e12 / 40 * (1.0 + 1e-12)
    assert np.isfinite(last.w).all()


def test_safeguards_change_nothing_before_they_act(monkeypatch):
    X, y = small_data()
    options = {"lam": 0.3, "kappa": 1.0, "gamma": 1.5}
    capped = list(islice(paper.lp_admm_steps(X, y, **options), 60))
    monkeypatch.setattr("drlogit.paper.lp_admm.LARGEST_PENALTY", 1e300)
    free = list(islice(paper.lp_admm_steps(X, y, **options), 60))
    for one, other in zip(capped, free, strict=True):
        np.testing.assert_array_equal(one.mu, other.mu)


@pytest.mark.parametrize("inner", ["auto", *ball_qp.INNER_SOLVERS["l1"]])
def test_the_paper_s_penalty_solves_the_subproblem(inner):
    # It grew to 4e271 and then to not-a-number.
    X, y = make_synthetic(1000, 50, random_state=0)[:2]
    result = dispatch.solve_subproblem(
        X, y, lam=0.1, epsilon=0.1, kappa=1.0, fit_intercept=False, solver="lp-admm", rho=0.001,
        gamma=1.05, inner=inner, tol=1e-6,
    )  # fmt: skip
    assert result.converged
    assert result.n_iter < 2000


def test_the_paper_s_penalty_with_golden_section_ends_at_the_best_lambda():
    X, y = make_synthetic(1000, 50, random_state=0)[:2]
    result = dispatch.solve(
        X, y, epsilon=0.1, kappa=1.0, fit_intercept=False, solver="lp-admm",
        lambda_search="golden", rho=0.001, gamma=1.05,
    )  # fmt: skip
    assert result.converged
    assert result.lam == pytest.approx(0.2785, abs=2e-3)


# --- any number of columns ------------------------------------------------------------------


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize(("norm", "inner"), [(n, i) for n, i in INNER if i in ball_qp.MATRIX_FREE])
def test_products_lead_where_the_matrix_does(norm, inner, fit_intercept, monkeypatch):
    X, y = small_data()
    options = {
        "lam": 0.3, "kappa": 1.0, "norm": norm, "inner": inner, "inner_tol": 0.0,
        "fit_intercept": fit_intercept, "feature_costs": [1.0, 2.0, 0.5, math.inf],
        "sample_weight": 1.0 + np.arange(40) % 3,
    }  # fmt: skip
    dense = list(islice(paper.lp_admm_steps(X, y, **options), 40))
    for module in (admm, ball_qp):
        monkeypatch.setattr(module, "DENSE_LIMIT", 2)
    free = list(islice(paper.lp_admm_steps(X, y, **options), 40))
    for one, other in zip(dense, free, strict=True):
        np.testing.assert_allclose(one.beta, other.beta, atol=1e-9)
        np.testing.assert_allclose(one.mu, other.mu, atol=1e-9)


@pytest.mark.parametrize("solver", ["lp-admm", "pdhg"])
def test_many_columns(solver):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 6000)) * (rng.random((60, 6000)) < 0.02)
    y = np.where(rng.random(60) < 0.5, -1, 1)
    options = {"epsilon": 0.05, "kappa": 1.0, "tol": 1e-3}
    one = dispatch.solve_subproblem(X, y, lam=0.05, solver=solver, **options)
    assert one.converged
    if solver == "lp-admm":
        joint = dispatch.solve(X, y, solver=solver, **options)
        exact = stated.solve(X, y, **options)
        assert joint.converged
        assert joint.objective == pytest.approx(exact.objective, abs=2e-3)


@pytest.mark.parametrize("inner", ["active-set-cg", "projected-gradient", "coordinate"])
def test_ball_least_squares(inner, monkeypatch):
    rng = np.random.default_rng(1)
    A, b = rng.standard_normal((30, 6)), rng.standard_normal(30)
    reference = lsq_linear(A, b, (-0.1, 0.1), tol=1e-15, method="bvls").x
    for limit in (5000, 2):
        monkeypatch.setattr(ball_qp, "DENSE_LIMIT", limit)
        for matrix in (A, wide_indices(A)):
            found = paper.ball_least_squares(matrix, b, 0.1, inner=inner)
            np.testing.assert_allclose(found, reference, atol=1e-13)


# --- iterators ------------------------------------------------------------------------------


def test_iterators_of_the_baselines_approach_the_same_value():
    X, y = small_data()
    model = {"lam": 0.3, "kappa": 1.0}
    exact = dispatch.solve_subproblem(
        X, y, epsilon=1.0, fit_intercept=False, solver="conic", tol=1e-8, **model
    )
    best = exact.objective - 0.3
    for steps in (
        paper.lp_admm_steps(X, y, gamma=None, rho=None, **model),
        paper.linearized_admm_steps(X, y, rho=0.02, **model),
        paper.standard_admm_steps(X, y, rho=0.02, **model),
    ):
        value = next(islice(steps, 500, 501)).F
        assert value == pytest.approx(best, abs=1e-6)
    pdhg = next(islice(paper.pdhg_steps(X, y, **model), 3000, 3001))
    assert best - 1e-7 <= pdhg.F <= best + 1e-5
    np.testing.assert_allclose(pdhg.mu, (y[:, None] * X) @ pdhg.beta, atol=1e-12)
    with pytest.raises(ValueError, match="has no multiplier w"):
        _ = pdhg.w
    slow = next(islice(paper.subgradient_steps(X, y, **model), 2000, 2001))
    assert best - 1e-7 <= slow.F <= best + 1e-2


def test_averages_are_averages():
    X, y = small_data()
    iterates = list(islice(paper.lp_admm_steps(X, y, lam=0.3, kappa=1.0, gamma=1.0), 25))
    last = list(paper.averages(iterates))[-1]
    assert last.k == 25
    for name in ("beta", "mu", "w"):
        mean = np.mean([getattr(each, name) for each in iterates], axis=0)
        np.testing.assert_allclose(getattr(last, name), mean, atol=1e-13)
    mu = last.mu
    F = float(np.mean(np.logaddexp(0.0, -mu) + np.maximum(mu - 0.3, 0.0)))
    assert pytest.approx(F, abs=1e-14) == last.F
    residual = np.linalg.norm((y[:, None] * X) @ last.beta - mu)
    assert last.residual == pytest.approx(residual, abs=1e-12)
