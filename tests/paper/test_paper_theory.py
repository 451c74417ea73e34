"""What the paper proves, along real iterates: Propositions 3.1 and 4.1, Theorem 4.2.

The iterates are those of our LP-ADMM, translated into the paper's letters: x is β, y is μ, A is
Z and ``w = weights * v``; and, to trust the translation, an implementation of Algorithm 1 that
follows its listing and shares nothing with ours makes the same ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import islice

import numpy as np
import pytest
from benchmarks.paper import theory
from scipy.optimize import lsq_linear
from scipy.special import expit

from drlogit.datasets import make_synthetic
from drlogit.paper import dispatch
from drlogit.paper.admm import PROVEN_PENALTY, BetaStep, first_point
from drlogit.paper.lp_admm import lp_admm_iteration
from drlogit.problem.problem import Problem, build_problem
from zoo import NORM_NAMES, planted

pytestmark = pytest.mark.slow

# --- Proposition 3.1 ------------------------------------------------------------------------


@pytest.mark.parametrize("norm", NORM_NAMES)
@pytest.mark.parametrize("kappa", [0.3, 1.0, math.inf])
@pytest.mark.parametrize("seed", range(4))
def test_planted_solutions_are_below_the_bound_on_lambda(norm, kappa, seed):
    case = planted(seed, norm=norm, kappa=kappa, weighted=True, costs=True)
    assert case.lam <= case.build().lambda_upper_bound


@pytest.mark.parametrize("norm", NORM_NAMES)
def test_bound_on_lambda_is_approached_when_margins_are_equal(norm):
    # One feature, all margins equal: λ = u, and the bound u s(u) ≤ 0.2785 is attained at t*.
    t = 1.2784645427610738
    X, y = np.array([[1.0], [-1.0]]), np.array([1, -1])
    epsilon = float(expit(-t))
    options = {"epsilon": epsilon, "kappa": math.inf, "norm": norm, "fit_intercept": False}
    result = dispatch.solve(X, y, solver="lp-admm", tol=1e-9, **options)
    bound = build_problem(X, y, **options).lambda_upper_bound
    assert result.lam == pytest.approx(bound, rel=1e-3)


# --- Algorithm 1 by its listing -------------------------------------------------------------


@dataclass
class Paper:
    """(B) in the paper's letters, with dense arrays and equal or unequal weights."""

    A: np.ndarray
    weights: np.ndarray
    kink: float
    lam: float

    def gradient(self, y):
        return self.weights * (0.5 - expit(-y))

    def algorithm_1(self, x, y, w, rho, gamma, count):
        """The listing of Algorithm 1, with SciPy's box-constrained least squares inside."""
        iterates = []
        for _ in range(count):
            x = lsq_linear(self.A, y + w / rho, (-self.lam, self.lam), tol=1e-15, method="bvls").x
            center = self.A @ x - (w + self.gradient(y)) / rho - self.kink
            shrink = 0.5 * self.weights / rho
            y = self.kink + np.sign(center) * np.maximum(np.abs(center) - shrink, 0.0)
            w = w - rho * (self.A @ x - y)
            rho *= gamma
            iterates.append((x, y, w))
        return iterates


def small_problem(kappa: float = 1.0, n_samples: int = 60) -> tuple[Problem, float]:
    X, y = make_synthetic(n_samples, 5, random_state=3)[:2]
    options = {"epsilon": 0.02, "kappa": kappa, "fit_intercept": False}
    return build_problem(2.0 * X, y, **options), 0.5


def in_paper_letters(problem: Problem, lam: float) -> Paper:
    (block,) = problem.rows.blocks
    return Paper(block.y[:, None] * block.X, block.weights, problem.kappa * lam, lam)


def our_iterates(problem, lam, count, rho, gamma=1.0, eta=0.0, first=None):
    """(x, y, w) after each iteration; ``rho`` and ``eta`` in the units of the paper."""
    start = first or first_point(problem, None, rho)
    exact = BetaStep.build(problem, tol=0.0)
    steps = lp_admm_iteration(problem, lam, start, exact, gamma=gamma, eta=eta)
    weights = problem.rows.blocks[0].weights
    return [(s.beta, s.state[0][0], weights * s.state[0][1]) for s in islice(steps, count)]


@pytest.mark.parametrize("gamma", [1.0, 1.05])
def test_iterates_are_those_of_the_listing(gamma):
    problem, lam = small_problem()
    paper = in_paper_letters(problem, lam)
    rho = 1.3 / problem.rows.n_samples
    x, y, w = np.zeros(5), np.zeros(60), 0.5 * paper.weights
    listing = paper.algorithm_1(x, y, w, rho, gamma, 60)
    for ours, theirs in zip(our_iterates(problem, lam, 60, rho, gamma), listing, strict=True):
        for one, other in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-7 * (1.0 + np.abs(other).max()))


def test_sign_in_the_appendix_is_a_misprint():
    # prox(Ax + (w + ∇f)/ρ), as one display has it, does not lead to the optimum.
    problem, lam = small_problem()
    paper = in_paper_letters(problem, lam)
    rho = 1.0 / problem.rows.n_samples
    _, optimum, w = our_iterates(problem, lam, 1000, rho)[-1]

    def next_y(sign):
        center = optimum + sign * (w + paper.gradient(optimum)) / rho - paper.kink
        shrink = 0.5 * paper.weights / rho
        return paper.kink + np.sign(center) * np.maximum(np.abs(center) - shrink, 0.0)

    np.testing.assert_allclose(next_y(-1.0), optimum, atol=1e-6)
    assert np.abs(next_y(+1.0) - optimum).max() > 0.1


# --- Proposition 4.1 and Theorem 4.2 --------------------------------------------------------


@pytest.fixture(scope="module", params=theory.FACTORS, ids="rho×{}".format)
def measured(request):
    """ρ a little, half and ten times above the proven limit ``(√3+1) L_f``."""
    (row,) = theory.run(theory.instances(quick=True), factors=[request.param])
    assert row["rho"] > (math.sqrt(3.0) + 1.0) * 0.25 / 60
    assert row["optimum_kkt"] < 1e-9
    return row


def test_proposition_4_1(measured):
    assert measured["worst_a"] <= 1e-13
    assert measured["worst_b"] <= 1e-13
    # (c): the proof is about m'; on this problem m does not increase either.
    assert measured["worst_m_prime"] <= 1e-13
    assert measured["worst_m"] <= 1e-13
    assert measured["least_m"] >= -1e-13


def test_theorem_4_2_limits_satisfy_the_kkt_conditions(measured):
    assert measured["kkt"] < (1e-8 if measured["factor"] < 2.0 else 1e-3)


def test_theorem_4_2_averages_converge_at_the_rate_one_over_k(measured):
    assert measured["worst_rate"] <= 1e-13
    # The bound is not empty: it is within two orders of magnitude of what it bounds.
    K = 100
    assert abs(measured["above"][K - 1]) >= 1e-3 * measured["bound"][K - 1]


def test_theorem_4_2_the_whole_sequence_converges():
    problem, lam = small_problem()
    rho = 1.5 * PROVEN_PENALTY / problem.rows.n_samples
    iterates = our_iterates(problem, lam, 1000, rho)
    last = iterates[-1]
    scale = [1.0, 1.0, problem.rows.n_samples]
    far = [
        max(f * np.abs(a - b).max() for f, a, b in zip(scale, point, last, strict=True))
        for point in iterates
    ]
    # Not only a subsequence: from each of these on, every iterate is within the distance.
    for k, distance in ((10, 1.0), (50, 0.03), (200, 1e-9)):
        assert max(far[k:]) < distance


def test_theory_says_where_an_inequality_fails():
    # Below the proven limit, where nothing is promised, (b) does fail.
    (row,) = theory.run(theory.instances(quick=True), factors=[0.05], count=60)
    assert row["worst_b"] > 1e-6
    assert "holds" not in theory.table([row]).splitlines()[-1].split("|")[5]


def test_optimum_has_samples_on_the_kink():
    (problem,) = theory.instances(quick=True)
    y = problem.iterates(2.0 / problem.N, 2000)[-1].mu
    kink = problem.lam * problem.kappa
    assert (np.abs(y - kink) < 1e-9).sum() > 3, "a problem with nothing on its kink proves little"


# --- special cases --------------------------------------------------------------------------


def test_linearised_admm_without_its_term_is_lp_admm():
    X, y = make_synthetic(80, 6, random_state=1)[:2]
    options = {"lam": 0.4, "epsilon": 0.05, "kappa": 1.0, "norm": "l2", "tol": 1e-7}
    one = dispatch.solve_subproblem(X, y, solver="lp-admm", **options)
    other = dispatch.solve_subproblem(X, y, solver="linearized-admm", eta=0.0, **options)
    assert one.n_iter == other.n_iter
    np.testing.assert_array_equal(one.coef, other.coef)
    third = dispatch.solve_subproblem(X, y, solver="linearized-admm", **options)
    assert np.abs(one.coef - third.coef).max() > 0.0
