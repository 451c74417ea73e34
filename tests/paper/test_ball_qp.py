"""The inner problem (C): every solver to a small gap, on every kind of H it may meet."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from scipy.sparse import csc_array

from drlogit.paper.admm import BetaStep, published_inner
from drlogit.paper.ball_qp import (
    INNER_SOLVERS,
    Columns,
    NormBall,
    Quadratic,
    get_inner_solver,
    projected_gradient,
)
from drlogit.problem.norms import NORMS
from drlogit.problem.problem import build_problem
from zoo import NORM_NAMES, planted

PAIRS = [(norm, name) for norm in NORM_NAMES for name in INNER_SOLVERS[norm]]


def make_qp(kind: str, seed: int = 0, n: int = 8) -> tuple[np.ndarray, np.ndarray]:
    """A positive semidefinite H and a c in its range."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((3 * n, n))
    if kind == "ill-conditioned":
        A = A * np.logspace(0.0, -2.5, n) @ np.linalg.qr(rng.standard_normal((n, n)))[0]
    elif kind == "unscaled":
        A = A * np.logspace(-2.0, 2.0, n)
    elif kind == "duplicated":
        A[:, n // 2 :] = A[:, : n - n // 2]
    elif kind == "one-hot":
        A = np.eye(n)[rng.integers(0, n, 3 * n)]
        A[:, 0] = 1.0  # the sum of the others
    elif kind == "zero-columns":
        A[:, ::3] = 0.0
    elif kind == "wide":
        A = A[: max(n // 2, 1)]
    return A.T @ A / A.shape[0], A.T @ rng.standard_normal(A.shape[0]) / A.shape[0]


KINDS = (
    "well-conditioned", "ill-conditioned", "unscaled", "duplicated", "one-hot", "zero-columns",
    "wide",
)  # fmt: skip


def radii(H: np.ndarray, c: np.ndarray, norm: str) -> list[float]:
    """From a ball that hardly lets anything move to one that contains the minimiser."""
    size = NORMS[norm].dual(np.linalg.lstsq(H, c, rcond=1e-12)[0])
    return [1e-3 * size, 0.3 * size, 0.9 * size, 3.0 * size]


#: What methods that step along gradients or coordinates do not solve in 10,000 steps.
BEYOND = {
    "coordinate": ("ill-conditioned",),
    "coordinate-anderson": ("ill-conditioned",),
    "projected-gradient": ("unscaled", "ill-conditioned"),
    "active-set-cg": ("unscaled",),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("norm", "name"), PAIRS)
def test_gap_is_small_for_every_solver_and_matrix(norm, name, kind):
    if kind in BEYOND.get(name, ()):
        return
    H, c = make_qp(kind)
    solve = partial(get_inner_solver(name, NORMS[norm], matrix_free=False), Quadratic(H))
    for radius in radii(H, c, norm):
        ball = NormBall(NORMS[norm], radius)
        tol = max(1e-9 * radius * ball.norm.value(c), ball.rounding(c))
        start = np.zeros(c.size)
        theta = solve(c, ball, start, tol)
        assert not start.any()
        assert ball.norm.dual(theta) <= radius * (1.0 + 1e-12)
        # The gap is computed here, not believed.
        gradient = H @ theta - c
        assert float(gradient @ theta) + radius * ball.norm.value(gradient) <= tol


def listed_cg(H, c, radius, theta, least_step):
    """Algorithm 6 inside the box, ended after a step shorter than ``least_step``; its steps."""
    gradient, direction, length = H @ theta - c, None, None
    for count in range(1, 1000):
        residual = -gradient
        direction = (
            residual if length is None else residual + residual @ residual / length * direction
        )
        length = residual @ residual
        alpha = length / (direction @ H @ direction)
        theta, gradient = theta + alpha * direction, gradient + alpha * (H @ direction)
        assert np.max(np.abs(theta)) < radius
        if np.linalg.norm(alpha * direction) < least_step:
            return theta, count
    raise AssertionError


def test_published_cg_ends_after_a_short_step_as_in_the_released_code():
    H, c = make_qp("well-conditioned", n=30)
    X, y = np.eye(4), np.array([1, -1, 1, -1])
    problem = build_problem(X, y, epsilon=0.1, kappa=1.0)
    ball, products = NormBall(NORMS["l1"], 1e6), []
    counted = Quadratic(None, lambda x: products.append(1) or H @ x, 30)
    solve = published_inner("auto", None, problem)
    theta = solve(counted, c, ball, np.zeros(30), 0.0)
    listed, count = listed_cg(H, c, 1e6, np.zeros(30), 1e-5)
    assert len(products) == 1 + count
    np.testing.assert_allclose(theta, listed, rtol=1e-9, atol=1e-12)
    # With a gap to reach, or by name, the length of a step does not matter.
    assert published_inner("auto", 0.0, problem) == "active-set-cg"
    assert published_inner("active-set-cg", None, problem) == "active-set-cg"


def test_extrapolated_sweeps_leave_far_less_on_wide_data(monkeypatch):
    """Nearly all coordinates are off their bounds there, and sweeps alone are slow."""
    rng = np.random.default_rng(0)
    rare = np.arange(1, 601) ** -0.7  # shares of non-zeros, as of words in texts
    A = csc_array((rng.random((300, 600)) < rare) / np.sqrt(300.0))
    none = np.zeros((600, 0))
    H = Quadratic(None, lambda x: A.T @ (A @ x), 600, lambda: Columns.of(A, none, none))
    c, ball = A.T @ rng.standard_normal(300), NormBall(NORMS["l1"], 5.0)
    monkeypatch.setattr("drlogit.paper.ball_qp._MAX_PASSES", 100)
    gaps = {}
    for name in ("coordinate", "coordinate-anderson"):
        solve = get_inner_solver(name, NORMS["l1"], matrix_free=True)
        theta = solve(H, c, ball, np.zeros(600), 1e-12)
        gradient = A.T @ (A @ theta) - c
        gaps[name] = float(gradient @ theta) + 5.0 * np.abs(gradient).sum()
    assert gaps["coordinate-anderson"] < 0.05 * gaps["coordinate"]


def test_names_are_checked():
    with pytest.raises(ValueError, match=r"'secular', 'projected-gradient' for norm 'l2'.*'cg'"):
        get_inner_solver("cg", NORMS["l2"], matrix_free=False)
    with pytest.raises(ValueError, match="inner must be one of"):
        get_inner_solver("active-set-cg", NORMS["linf"], matrix_free=False)
    wide = build_problem(np.eye(2, 6000), [0, 1], epsilon=0.1, kappa=1.0)
    with pytest.raises(ValueError, match="'active-set-cg', 'projected-gradient' for norm 'l1' and"):
        BetaStep.build(wide, "coordinate-newton")
    free = build_problem(np.eye(2, 6000), [0, 1], epsilon=0.0, kappa=1.0)
    with pytest.raises(ValueError, match="at most 5000, got 6001: use solver="):
        BetaStep.build(free)


def test_algorithm_5_as_misprinted_does_not_get_there():
    """With the gradient at x^k instead of the extrapolated point."""
    H, c = make_qp("ill-conditioned", n=20)
    ball = NormBall(NORMS["l1"], radii(H, c, "l1")[2])
    tol = 1e-10 * ball.radius * ball.norm.value(c)
    right = projected_gradient(Quadratic(H), c, ball, np.zeros(20), tol)
    assert ball.gap(H @ right - c, right) <= tol
    step, x, before = 1.0 / np.linalg.eigvalsh(H)[-1], np.zeros(20), np.zeros(20)
    for k in range(1000):
        point = x + k / (k + 3) * (x - before)
        before, x = x, ball.project(point - step * (H @ x - c))
    assert ball.gap(H @ x - c, x) > 10.0 * tol


# --- the β-step: costs, free columns, weights -----------------------------------------------

CASES = [
    planted(1, norm=norm, weighted=True, costs=True, n_free=n_free, fit_intercept=intercept)
    for norm in NORM_NAMES
    for n_free, intercept in ((0, False), (0, True), (2, True), (2, False))
]


@pytest.mark.parametrize("case", CASES, ids=repr)
def test_beta_step_solves_the_weighted_least_squares_problem(case):
    problem = case.build()
    (block,) = problem.rows.blocks
    Z = block.y[:, None] * (
        np.column_stack([block.X, np.ones(block.y.size)]) if block.intercept else block.X
    )
    rng = np.random.default_rng(0)
    t = 3.0 * rng.standard_normal(block.y.size)
    step = BetaStep.build(problem)
    for lam in (0.0, 0.05, 1.0, 100.0):
        beta = step(Z.T @ (block.weights * t), lam, rng.standard_normal(Z.shape[1]), 0.0)
        gradient = Z.T @ (block.weights * (Z @ beta - t))
        np.testing.assert_allclose(gradient[problem.free], 0.0, atol=1e-10)
        assert problem.dual_norm(beta) <= lam * (1.0 + 1e-12)
        # Normal to the ball: ⟨g, β⟩ = -λ‖g‖ over the penalised coordinates.
        inner = float(gradient[problem.penalised] @ beta[problem.penalised])
        assert inner == pytest.approx(-lam * problem.transport_norm(gradient), abs=1e-8)
