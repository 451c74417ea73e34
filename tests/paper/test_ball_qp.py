"""The inner problem (C): every solver to a small gap, on every kind of H it may meet."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.optimize import lsq_linear

from drlogit.paper import active_set_newton, beta_step
from drlogit.paper._coordinates import sweep
from drlogit.paper.active_set_newton import ActiveSetNewton
from drlogit.paper.ball_qp import (
    INNER_SOLVERS,
    active_set_cg,
    make_inner_solver,
    projected_gradient,
)
from drlogit.paper.beta_step import BetaStep
from drlogit.paper.quadratic import NormBall, Quadratic
from drlogit.problem.norms import NORMS
from drlogit.problem.problem import build_problem
from zoo import NORM_NAMES, planted

PAIRS = [(norm, name) for norm in NORM_NAMES for name in ("auto", *INNER_SOLVERS[norm])]
EXACT = [("l1", "active-set-newton"), ("l2", "secular"), ("linf", "active-set-newton")]


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


#: What a method that only steps along gradients or coordinates cannot be asked to solve.
BEYOND = {
    "projected-gradient": ("unscaled", "ill-conditioned"),
    "coordinate": ("ill-conditioned",),
    "active-set-cg": ("unscaled",),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("norm", "name"), PAIRS)
def test_gap_is_small_for_every_solver_and_matrix(norm, name, kind):
    if kind in BEYOND.get(name, ()):
        return
    H, c = make_qp(kind)
    solve = make_inner_solver(name, Quadratic.from_matrix(H), NORMS[norm])
    for radius in radii(H, c, norm):
        ball = NormBall(NORMS[norm], radius)
        tol = max(1e-9 * radius * ball.norm.value(c), ball.rounding(c))
        start = np.zeros(c.size)
        result = solve(c, ball, start, tol)
        assert not start.any()
        assert ball.norm.dual(result.theta) <= radius * (1.0 + 1e-12)
        # Exact solvers end at rounding too; the gap is computed here, not believed.
        gradient = H @ result.theta - c
        gap = float(gradient @ result.theta) + radius * ball.norm.value(gradient)
        assert gap <= tol
        assert result.gap == pytest.approx(gap, rel=1e-3, abs=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", INNER_SOLVERS["l1"])
def test_box_agrees_with_scipy(name, kind):
    if kind in BEYOND.get(name, ()):
        return
    H, c = make_qp(kind, seed=1)
    radius = radii(H, c, "l1")[1]
    values, vectors = np.linalg.eigh(H)
    root = np.sqrt(np.maximum(values, 0.0))
    right = np.where(root > 1e-7, vectors.T @ c / np.where(root > 1e-7, root, 1.0), 0.0)
    theirs = lsq_linear((vectors * root).T, right, (-radius, radius), tol=1e-14).x
    solve = make_inner_solver(name, Quadratic.from_matrix(H), NORMS["l1"])
    ours = solve(c, NormBall(NORMS["l1"], radius), np.zeros(c.size), 0.0).theta

    def value(theta):
        return float(0.5 * theta @ H @ theta - c @ theta)

    assert value(ours) <= value(theirs) + 1e-10 * abs(value(theirs))


@given(
    seed=st.integers(0, 10_000),
    pair=st.sampled_from(EXACT),
    kind=st.sampled_from(KINDS),
    n=st.integers(1, 12),
    fraction=st.floats(1e-3, 2.0),
    far=st.floats(0.0, 10.0),
)
@example(555, ("linf", "active-set-newton"), "one-hot", 10, 1.0, 1.0)  # starts in an empty column
def test_exact_solvers_from_any_start(seed, pair, kind, n, fraction, far):
    norm, name = pair
    H, c = make_qp(kind, seed, n)
    radius = fraction * max(radii(H, c, norm)[-1], 1e-3)
    start = far * radius * np.random.default_rng(seed).standard_normal(n)
    ball = NormBall(NORMS[norm], radius)
    solve = make_inner_solver(name, Quadratic.from_matrix(H), ball.norm)
    result = solve(c, ball, start, 0.0)
    assert result.gap <= 1e-9 * (radius * ball.norm.value(c) + 1e-12)
    assert result.n_iter < 200


@pytest.mark.parametrize(("norm", "name"), PAIRS)
def test_warm_starts_take_fewer_steps(norm, name):
    H, c = make_qp("wide", n=20)
    ball = NormBall(NORMS[norm], radii(H, c, norm)[2])
    tol = 1e-8 * ball.radius * ball.norm.value(c)
    solve = make_inner_solver(name, Quadratic.from_matrix(H), ball.norm)
    cold = solve(c, ball, np.zeros(20), tol)
    warm = solve(c * (1.0 + 1e-9), ball, cold.theta, 2.0 * tol)
    # The secular equation has no use for a start; it takes a few steps in any case.
    assert warm.n_iter < cold.n_iter or norm == "l2"


def test_zero_target():
    H, _ = make_qp("well-conditioned")
    for norm, name in PAIRS:
        solve = make_inner_solver(name, Quadratic.from_matrix(H), NORMS[norm])
        zero = solve(np.zeros(8), NormBall(NORMS[norm], 1.0), np.full(8, 0.1), 1e-12)
        np.testing.assert_allclose(zero.theta, 0.0, atol=1e-5)


def test_products_alone_give_the_same_answer():
    H, c = make_qp("well-conditioned")
    only_products = Quadratic(8, H.__matmul__)
    assert only_products.largest_eigenvalue == pytest.approx(np.linalg.eigvalsh(H)[-1], rel=0.03)
    for norm in NORM_NAMES:
        ball = NormBall(NORMS[norm], radii(H, c, norm)[1])
        one = make_inner_solver("auto", only_products, ball.norm)(c, ball, np.zeros(8), 1e-12)
        other = make_inner_solver("auto", Quadratic.from_matrix(H), ball.norm)(
            c, ball, np.zeros(8), 1e-12
        )
        np.testing.assert_allclose(one.theta, other.theta, atol=1e-4)


def test_names_are_checked():
    H = Quadratic.from_matrix(np.eye(3))
    with pytest.raises(ValueError, match=r"'secular', 'projected-gradient' for norm 'l2'.*'cg'"):
        make_inner_solver("cg", H, NORMS["l2"])
    with pytest.raises(ValueError, match="inner must be one of"):
        make_inner_solver("active-set-cg", H, NORMS["linf"])
    with pytest.raises(ValueError, match="needs the 3×3 matrix H"):
        make_inner_solver("active-set-newton", Quadratic(3, H.product), NORMS["l1"])


def test_steps_of_the_paper():
    # On a quadratic without active bounds, conjugate gradients end after n steps.
    H, c = make_qp("well-conditioned")
    free = NormBall(NORMS["l1"], 1e3)
    result = active_set_cg(Quadratic.from_matrix(H), c, free, np.zeros(8), 1e-9)
    assert result.n_iter <= 9
    # Algorithm 5 as misprinted, with the gradient at x^k, does not get there.
    H, c = make_qp("ill-conditioned", n=20)
    ball = NormBall(NORMS["l1"], radii(H, c, "l1")[2])
    tol = 1e-10 * ball.radius * ball.norm.value(c)
    right = projected_gradient(Quadratic.from_matrix(H), c, ball, np.zeros(20), tol)
    assert right.gap <= tol
    step, x, before = 1.0 / np.linalg.eigvalsh(H)[-1], np.zeros(20), np.zeros(20)
    for k in range(right.n_iter):
        point = x + k / (k + 3) * (x - before)
        before, x = x, ball.project(point - step * (H @ x - c))
    assert ball.gap(H @ x - c, x) > 10.0 * tol


def test_factors_of_faces_are_kept(monkeypatch):
    made = []
    original = active_set_newton._factor

    def counted(*arguments, **options):
        made.append(1)
        return original(*arguments, **options)

    monkeypatch.setattr(active_set_newton, "_factor", counted)
    H, c = make_qp("well-conditioned", n=20)
    ball = NormBall(NORMS["l1"], radii(H, c, "l1")[1])
    solve = ActiveSetNewton(Quadratic.from_matrix(H), ball.norm)
    theta = solve(c, ball, np.zeros(20), 0.0).theta
    before = len(made)
    for scale in (1.0 + 1e-9, 1.0 - 1e-9, 1.0):
        theta = solve(scale * c, ball, theta, 0.0).theta
    assert len(made) == before


def test_matrices_that_rounding_made_indefinite():
    H = np.array([[1.0, 1.0, 0.0], [1.0, 1.0 - 1e-9, 0.0], [0.0, 0.0, -1e-17]])
    c = np.array([0.5, 0.5, 0.0])
    ball = NormBall(NORMS["l1"], 0.2)
    result = ActiveSetNewton(Quadratic.from_matrix(H), ball.norm)(c, ball, np.zeros(3), 1e-12)
    assert float(result.theta[:2].sum()) == pytest.approx(0.4)
    with_room = NormBall(NORMS["linf"], 10.0)
    result = ActiveSetNewton(Quadratic.from_matrix(H), with_room.norm)(
        c, with_room, np.zeros(3), 1e-12
    )
    assert float(result.theta[:2].sum()) == pytest.approx(0.5, abs=1e-6)


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


@pytest.mark.parametrize("case", CASES, ids=repr)
def test_beta_step_without_the_matrix(case, monkeypatch):
    problem = case.build()
    target = np.random.default_rng(1).standard_normal(problem.costs.size)
    whole = BetaStep.build(problem)
    # In the range of H, as Zᵀ(...) is.
    target = beta_step.gram_product(problem.rows, target)
    monkeypatch.setattr(beta_step, "DENSE_LIMIT", 0)
    parts = BetaStep.build(problem)
    zero = np.zeros(problem.costs.size)
    for lam in (0.1, 10.0):
        expected = whole(target, lam, zero, 0.0)
        np.testing.assert_allclose(parts(target, lam, zero, 1e-14), expected, atol=1e-4)


def test_all_columns_free_and_dependent():
    X = np.array([[1.0, 1.0], [2.0, 2.0], [0.0, 0.0], [1.0, 1.0]])
    problem = build_problem(
        X, [1, 1, -1, -1], epsilon=0.1, kappa=1.0, feature_costs=[math.inf, math.inf]
    )
    step = BetaStep.build(problem)
    target = beta_step.gram_product(problem.rows, np.array([1.0, 0.0, 0.5]))
    beta = step(target, 1.0, np.zeros(3), 0.0)
    np.testing.assert_allclose(beta_step.gram_product(problem.rows, beta), target, atol=1e-12)


def test_sweeps_leave_a_column_without_entries_where_it_is():
    rng = np.random.default_rng(3)
    A, gradient = rng.standard_normal((12, 5)), -rng.standard_normal(5)
    H, theta = A.T @ A, np.zeros(5)
    H[2] = H[:, 2] = 0.0
    assert sweep(H, gradient, theta, 0.3, 0.0, 3) == 3
    assert theta[2] == 0.0
    assert np.abs(theta).max() <= 0.3


def test_few_factors_are_kept_and_all_are_right(monkeypatch):
    monkeypatch.setattr("drlogit.paper.active_set_newton._FACTOR_ENTRIES", 1)
    rng = np.random.default_rng(4)
    A = rng.standard_normal((30, 6))
    H = Quadratic.from_matrix(A.T @ A)
    solver = ActiveSetNewton(H, NORMS["l1"])
    for radius in (0.01, 0.1, 0.3, 1.0, 0.1):
        c = A.T @ rng.standard_normal(30)
        inner = solver(c, NormBall(NORMS["l1"], radius), np.zeros(6), 1e-10)
        assert inner.gap <= 1e-10
        assert len(solver._factors) <= 1


@pytest.mark.parametrize("function", [projected_gradient, active_set_cg])
def test_out_of_iterations_the_gap_is_still_that_of_the_answer(function):
    rng = np.random.default_rng(5)
    A, ball = rng.standard_normal((8, 8)), NormBall(NORMS["l1"], 0.5)
    H, c = Quadratic.from_matrix(A.T @ A), A.T @ rng.standard_normal(8)
    inner = function(H, c, ball, np.zeros(8), 1e-14, max_iter=2)
    assert inner.n_iter == 2
    assert inner.gap > 1e-14
    assert inner.gap == pytest.approx(ball.gap(H.product(inner.theta) - c, inner.theta))


def test_no_iteration_of_active_set_cg_raises_the_objective():
    """Where projecting a whole step would, the step ends at the first bound."""
    rng = np.random.default_rng(6)
    for _ in range(20):
        A = rng.standard_normal((6, 6)) * np.geomspace(1.0, 30.0, 6)
        H, c = Quadratic.from_matrix(A.T @ A), A.T @ (3.0 * rng.standard_normal(6))
        ball, start = NormBall(NORMS["l1"], 0.2), rng.uniform(-0.2, 0.2, 6)
        values = []
        for k in range(25):
            theta = active_set_cg(H, c, ball, start, 0.0, max_iter=k).theta
            values.append(0.5 * theta @ H.product(theta) - c @ theta)
        assert (np.diff(values) <= 1e-12 * np.abs(values).max()).all()
