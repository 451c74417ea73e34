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
from scipy.optimize import lsq_linear
from scipy.special import expit

import drlogit
from drlogit.datasets import make_synthetic
from drlogit.paper.admm import PROVEN_PENALTY, BetaStep, first_point
from drlogit.paper.lp_admm import lp_admm_steps
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
    result = drlogit.solve(X, y, solver="lp-admm", tol=1e-9, **options)
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

    def f(self, y):
        return float(self.weights @ (np.logaddexp(0.0, -y) + 0.5 * (y - self.kink)))

    def gradient(self, y):
        return self.weights * (0.5 - expit(-y))

    def P(self, y):  # noqa: N802
        return 0.5 * float(self.weights @ np.abs(y - self.kink))

    def F(self, y):  # noqa: N802
        return self.f(y) + self.P(y)

    def bregman(self, x, y):
        return self.f(x) - self.f(y) - float(self.gradient(y) @ (x - y))

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
    n_samples = problem.rows.n_samples
    start = first or first_point(problem, None, rho)
    inner = BetaStep.build(problem)

    def exact(target, lam, beta, tol):
        return inner(target, lam, beta, 0.0)

    steps = lp_admm_steps(problem, lam, start, exact, gamma=gamma, eta=eta * n_samples)
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


@dataclass
class Run:
    """A run of LP-ADMM with constant ρ, its optimum, and the constants of the theory."""

    paper: Paper
    L: float
    rho: float
    iterates: list
    optimum: tuple

    @property
    def start(self):
        return np.zeros(self.paper.A.shape[1]), np.zeros(self.paper.A.shape[0])


@pytest.fixture(scope="module", params=[1.001, 1.5, 10.0], ids="rho×{}".format)
def run(request) -> Run:
    """ρ a little, half and ten times above the proven limit ``(√3+1) L_f``."""
    problem, lam = small_problem()
    n_samples = problem.rows.n_samples
    L = 0.25 / n_samples
    rho = request.param * PROVEN_PENALTY / n_samples
    assert rho > (math.sqrt(3.0) + 1.0) * L
    iterates = our_iterates(problem, lam, 250, rho)
    optimum = our_iterates(problem, lam, 2000, 2.0 / n_samples)[-1]
    return Run(in_paper_letters(problem, lam), L, rho, iterates, optimum)


def square(v) -> float:
    return float(v @ v)


def test_optimum_is_a_kkt_point(run):
    x, y, w = run.optimum
    paper = run.paper
    np.testing.assert_allclose(paper.A @ x, y, atol=1e-10)
    # Aᵀw in the normal cone of the box; -w in ∇f + ∂P.
    normal = paper.A.T @ w
    assert float(normal @ x) == pytest.approx(paper.lam * np.abs(normal).sum(), abs=1e-10)
    share = (-w - paper.gradient(y)) / paper.weights  # in ½[-1, 1], and its end off the kink
    assert np.abs(share).max() <= 0.5 + 1e-9
    off = np.abs(y - paper.kink) > 1e-6
    np.testing.assert_allclose(share[off], 0.5 * np.sign(y - paper.kink)[off], atol=1e-8)
    assert (~off).sum() > 3, "a problem with nothing on its kink proves little"


def test_proposition_4_1_a(run):
    ys = [y for _, y, _ in run.iterates]
    for k in range(1, len(ys) - 1):
        x_next = run.iterates[k + 1][0]
        left = square(run.paper.A @ x_next - ys[k])
        right = 0.5 * square(ys[k + 1] - ys[k])
        right -= (run.L / run.rho) ** 2 * square(ys[k] - ys[k - 1])
        assert left >= right - 1e-14


def test_proposition_4_1_b(run):
    paper, rho = run.paper, run.rho
    c = 0.25 * (rho - 2.0 * run.L)
    rng = np.random.default_rng(0)
    points = [paper.A @ run.optimum[0]]
    points += [paper.A @ rng.uniform(-paper.lam, paper.lam, 5) for _ in range(5)]
    for k in range(1, len(run.iterates) - 1):
        (_, y0, _), (_, y1, w1), (_, y2, w2) = run.iterates[k - 1 : k + 2]
        for y in points:
            bound = (square(w1) - square(w2)) / (2.0 * rho)
            bound += 0.5 * rho * (square(y1 - y) - square(y2 - y))
            bound += c * (square(y1 - y0) - square(y2 - y1))
            bound += paper.bregman(y, y2) - paper.bregman(y, y1)
            assert paper.F(y2) - paper.F(y) <= bound + 1e-12


def test_proposition_4_1_c(run):
    _, y_opt, w_opt = run.optimum
    rho = run.rho

    def m(y, w):
        value = square(w - w_opt) / (2.0 * rho) + 0.5 * rho * square(y - y_opt)
        return value - run.paper.bregman(y_opt, y)

    ms = [m(y, w) for _, y, w in run.iterates]
    # The proof shows it for m_k + L²/(2ρ) ‖y^k - y^{k-1}‖²; the claim is for m_k itself.
    moves = [square(b[1] - a[1]) for a, b in zip(run.iterates, run.iterates[1:], strict=False)]
    primed = [m + run.L**2 / (2.0 * rho) * move for m, move in zip(ms[1:], moves, strict=True)]
    for sequence in (ms, primed):
        assert min(sequence) >= -1e-14
        assert max(np.diff(sequence)) <= 1e-14


def test_theorem_4_2_b_averages_converge_at_the_rate_one_over_k(run):
    paper, rho = run.paper, run.rho
    _, y_opt, _ = run.optimum
    _, y_start = run.start
    w_start = 0.5 * paper.weights
    ys = np.array([y for _, y, _ in run.iterates])
    averages = np.cumsum(ys, axis=0) / np.arange(1, len(ys) + 1)[:, None]
    c = 0.25 * (rho - 2.0 * run.L)
    constant = square(w_start) / (2.0 * rho) + 0.5 * rho * square(y_opt - y_start)
    constant += c * square(y_start - ys[0])
    for K, average in enumerate(averages, start=1):
        assert paper.F(average) - paper.F(y_opt) <= constant / K + 1e-12


# --- special cases --------------------------------------------------------------------------


def test_linearised_admm_without_its_term_is_lp_admm():
    X, y = make_synthetic(80, 6, random_state=1)[:2]
    options = {"lam": 0.4, "epsilon": 0.05, "kappa": 1.0, "norm": "l2", "tol": 1e-7}
    one = drlogit.solve_subproblem(X, y, solver="lp-admm", **options)
    other = drlogit.solve_subproblem(X, y, solver="linearized-admm", eta=0.0, **options)
    assert one.n_iter == other.n_iter
    np.testing.assert_array_equal(one.coef, other.coef)
    third = drlogit.solve_subproblem(X, y, solver="linearized-admm", **options)
    assert np.abs(one.coef - third.coef).max() > 0.0
