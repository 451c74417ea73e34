"""Fits with domains: equal to references that share no code, proven, on rows of every kind."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse as sp

import domain_zoo
import drlogit
from drlogit.problem.domain_certificate import Weights, piece_bound, size_bound
from drlogit.problem.pieces import unmoved, width
from drlogit.problem.problem import build_problem

cvxpy = pytest.importorskip("cvxpy")


@pytest.mark.parametrize("seed", range(24))
def test_equal_to_cutting_planes(seed):
    case = domain_zoo.generated(seed)
    found = drlogit.solve(**case)
    reference = drlogit.solve(**case, solver="conic")
    assert found.gap <= 1e-6
    assert found.status is drlogit.Status.OPTIMAL
    assert found.objective <= reference.objective + 1e-6
    assert found.dual_objective <= reference.objective + 1e-9
    assert reference.objective == pytest.approx(found.objective, abs=2e-6)


@pytest.mark.parametrize("seed", range(5))
def test_cutting_planes_find_what_all_pieces_say(seed):
    case = domain_zoo.generated(seed, n_samples=6)
    planes = drlogit.solve(**case, solver="conic")
    everything = drlogit.solve(**case, solver="conic", pieces="all")
    assert planes.objective == pytest.approx(everything.objective, abs=1e-7)


def numbers_of(case):
    """The same data as numbers: half of a group's cost for each of its columns."""
    costs = case["feature_costs"].copy()
    for group in case["categories"]:
        costs[group] /= 2.0
    return {key: case[key] for key in case if key not in ("categories", "bounds")} | {
        "feature_costs": costs
    }


@pytest.mark.parametrize("seed", range(8))
def test_never_more_pessimistic_than_the_same_data_as_numbers(seed):
    case = domain_zoo.generated(seed) | {"norm": "l1"}
    assert drlogit.solve(**case).objective <= drlogit.solve(**numbers_of(case)).objective + 1e-6


def test_small_ranges_are_the_model_with_norm_constraints():
    # Nothing pays where flips are cheap: λ is then large beside all coefficients.
    case = domain_zoo.generated(2, n_immovable=0) | {"kappa": 0.3, "epsilon": 0.02, "norm": "l1"}
    found = drlogit.solve(**case, tol=1e-9)
    low, high = build_problem(**case).domains.ranges(np.append(found.coef, 0.0))
    assert (high - low <= found.lam * build_problem(**case).domains.group_costs).all()
    numbers = drlogit.solve(**numbers_of(case), tol=1e-9)
    assert found.objective == pytest.approx(numbers.objective, abs=1e-8)


def test_immovable_groups_are_infinite_costs():
    case = domain_zoo.generated(5, n_immovable=0)
    case["feature_costs"][[j for group in case["categories"] for j in group]] = math.inf
    found = drlogit.solve(**case | {"bounds": None})
    infinite = drlogit.solve(**case | {"bounds": None, "categories": None})
    assert found.objective == infinite.objective


@pytest.mark.parametrize("seed", range(3))
def test_far_bounds_are_no_bounds(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((80, 3))
    y = X @ [1.0, -1.0, 0.5] + rng.logistic(size=80) > 0.0
    ball = {"epsilon": 0.1, "kappa": [1.0, math.inf, 0.3][seed], "tol": 1e-8}
    near = drlogit.solve(X, y, **ball)
    found = drlogit.solve(X, y, **ball, bounds=(-1e6, 1e6))
    assert found.objective == pytest.approx(near.objective, abs=1e-7)


def test_two_levels_are_a_bounded_column():
    rng = np.random.default_rng(0)
    column = (rng.random(60) < 0.4).astype(float)
    x = rng.standard_normal(60)
    y = 2.0 * column + x + rng.logistic(size=60) > 0.5
    ball = {"epsilon": 0.1, "kappa": math.inf, "tol": 1e-8}
    one = np.column_stack([column, x])
    bounded = drlogit.solve(one, y, **ball, bounds=([0.0, -math.inf], [1.0, math.inf]))
    dropped = drlogit.solve(one, y, **ball, categories=[[0]])
    two = np.column_stack([column, 1.0 - column, x])
    full = drlogit.solve(two, y, **ball, categories=[[0, 1]])
    assert dropped.objective == pytest.approx(bounded.objective, abs=1e-7)
    assert full.objective == pytest.approx(bounded.objective, abs=1e-7)


def test_the_constant_model_is_found_and_proven():
    for seed in (1, 2, 5):
        case = domain_zoo.generated(seed, n_immovable=0) | {"kappa": math.inf}
        del case["epsilon"]
        limit = drlogit.epsilon_max(**case)
        beyond = drlogit.solve(**case, epsilon=1.02 * limit)
        within = drlogit.solve(**case, epsilon=0.9 * limit)
        assert beyond.gap <= 1e-6
        assert within.objective < beyond.objective - 1e-6


def test_epsilon_max_with_flips():
    case = domain_zoo.generated(6, n_immovable=0, n_samples=14) | {"kappa": 1.0}
    del case["epsilon"]
    limit = drlogit.epsilon_max(**case)
    null = drlogit.solve(**case, epsilon=1.02 * limit, tol=1e-9)
    below = drlogit.solve(**case, epsilon=0.95 * limit, tol=1e-9)
    assert np.abs(null.coef).max() < 1e-6 < np.abs(below.coef).max()


def test_separable_data_without_flips():
    rng = np.random.default_rng(1)
    groups = np.eye(4)[rng.integers(0, 4, 100)]
    X = np.column_stack([groups, rng.random(100)])
    y = groups[:, 0] + groups[:, 1] > 0.0
    for epsilon in (1e-4, 1e-2, 0.3):
        found = drlogit.solve(
            X, y, epsilon=epsilon, kappa=math.inf, categories=[[0, 1, 2, 3]],
            bounds=(-np.inf, np.array([np.inf] * 4 + [1.0])),
        )  # fmt: skip
        assert found.gap <= 1e-6


# --- bounds ---------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(12))
def test_no_dual_point_whatsoever_gives_a_bound_above_the_optimum(seed):
    """Masses and slopes at random: the charge must cover whatever equations they break."""
    case = domain_zoo.generated(seed)
    optimum = drlogit.solve(**case, tol=1e-7).objective
    problem = build_problem(**case)
    rng = np.random.default_rng(seed)
    size = size_bound(problem)
    for spread in (1e-9, 1e-3, 1.0):

        def guess(block, _, spread=spread):
            pieces = unmoved(block, problem.kappa, width(problem.domains, block.n_columns))
            q = block.weights[pieces.own] * rng.random(pieces.own.size)
            s = 0.5 + spread * (rng.random(q.size) - 0.5)
            return Weights(pieces, q, q * s), ()

        weights, _ = problem.rows.run(guess)
        assert piece_bound(problem, weights, size).value <= optimum


@pytest.mark.parametrize("seed", range(6))
def test_points_below_the_constant_model_keep_to_the_size_bound(seed):
    """What leftovers are charged with holds for every point of the sublevel set."""
    case = domain_zoo.generated(seed, n_immovable=0)
    problem = build_problem(**case)
    domains, size = problem.domains, size_bound(problem)
    rng = np.random.default_rng(seed)
    fit = drlogit.solve(**case)
    met = 0
    for _ in range(200):
        coef = fit.coef + rng.standard_normal(fit.coef.size) * 10.0 ** rng.uniform(-3, 2)
        vector = problem.join(coef, fit.intercept + rng.standard_normal())
        if problem.objective(vector) > math.log(2.0):
            continue
        met += 1
        low, high = domains.ranges(vector)
        reach = np.abs(vector[domains.bounded]) @ domains.widths + (high - low).sum()
        assert reach <= 2.0 * size
    assert met


def test_a_bound_survives_another_hand():
    """The dual point in 50 digits: equations, norm and value, without any code of ours."""
    mpmath = pytest.importorskip("mpmath")
    case = domain_zoo.generated(9, n_immovable=0) | {"norm": "l1"}
    problem = build_problem(**case)
    from drlogit.problem.result import Monitor
    from drlogit.solvers.domains.method import solve_with_pieces

    solution = solve_with_pieces(problem, tol=1e-6, monitor=Monitor(None, 0))
    (weights,) = solution.pieces
    bound = piece_bound(problem, (weights,))
    (weights,) = bound.weights
    block = problem.rows.together()
    X = np.column_stack([block.X, np.ones(len(block.y))]) if problem.fit_intercept else block.X
    pieces = weights.pieces
    with mpmath.workdps(50):
        value = mpmath.mpf(0)
        for q, p in zip(weights.q, weights.p, strict=True):
            s = mpmath.mpf(float(p)) / mpmath.mpf(float(q)) if q > 0.0 else mpmath.mpf(0)
            if 0 < s < 1:
                value -= mpmath.mpf(float(q)) * (s * mpmath.log(s) + (1 - s) * mpmath.log(1 - s))
        changes = pieces.changes.dense()
        g = [mpmath.mpf(0)] * changes.shape[1]
        for k, i in enumerate(pieces.own):
            row = changes[k].copy()
            row[: X.shape[1]] += X[i]
            for j in np.flatnonzero(row):
                g[j] += mpmath.mpf(float(weights.p[k] * pieces.sign[k])) * mpmath.mpf(row[j])
        assert float(value) == pytest.approx(bound.value, abs=1e-9)
        for j in [*problem.domains.bounded, *([X.shape[1] - 1] if problem.fit_intercept else [])]:
            assert abs(float(g[j])) < 1e-12


# --- rows of every kind ---------------------------------------------------------------------


def middling(n_samples=400, seed=3):
    rng = np.random.default_rng(seed)
    groups = [np.eye(k)[rng.integers(0, k, n_samples)] for k in (3, 4, 2)]
    X = np.column_stack([*groups, rng.random((n_samples, 1)), rng.standard_normal((n_samples, 1))])
    y = X @ rng.standard_normal(11) * 2.0 + rng.logistic(size=n_samples) > 0.3
    lower, upper = np.full(11, -np.inf), np.full(11, np.inf)
    lower[9], upper[9] = 0.0, 1.0
    return (
        X,
        y,
        {
            "epsilon": 0.1,
            "kappa": 2.0,
            "categories": [[0, 1, 2], [3, 4, 5, 6], [7, 8]],
            "bounds": (lower, upper),
            "tol": 1e-8,
        },
    )


@pytest.fixture(scope="module")
def dense_fit():
    X, y, options = middling()
    found = drlogit.solve(X, y, **options)
    assert found.gap <= 1e-8
    return found


def same(found, reference):
    assert found.gap <= 1e-8
    assert found.objective == pytest.approx(reference.objective, abs=2e-8)
    assert np.asarray(found.flip_share).sum() == pytest.approx(reference.flip_share.sum(), abs=1e-2)


@pytest.mark.parametrize("kind", ["csr", "float32", "threads", "stored", "repeated", "dask"])
def test_rows_of_every_kind_give_the_same_answer(kind, dense_fit):
    X, y, options = middling()
    if kind == "csr":
        same(drlogit.solve(sp.csr_array(X), y, **options), dense_fit)
    elif kind == "float32":
        found = drlogit.solve(X.astype(np.float32), y, **options)
        assert found.gap <= 1e-8
        assert found.objective == pytest.approx(dense_fit.objective, abs=1e-6)
    elif kind == "threads":
        same(drlogit.solve(X, y, **options, n_jobs=2), dense_fit)
    elif kind == "stored":
        blocks = drlogit.RowBlocks.from_array(X, 150)
        same(drlogit.solve(blocks, y, **options), dense_fit)
    elif kind == "repeated":
        found = drlogit.solve(np.repeat(X, 2, axis=0), np.repeat(y, 2), **options)
        assert found.info["distinct_samples"] <= len(y)
        assert found.flip_share.size == 2 * len(y)
        assert found.gap <= 1e-8
        assert found.objective == pytest.approx(dense_fit.objective, abs=2e-8)
    else:
        da = pytest.importorskip("dask.array")
        chunks = da.from_array(X, chunks=(150, -1))
        same(drlogit.solve(chunks, y, **options), dense_fit)


def test_iterations_and_pieces_stay_few(dense_fit):
    assert dense_fit.n_iter <= 25
    assert dense_fit.info["pieces"] <= 4 * 400


def test_the_worst_case_of_a_fit_is_its_objective(dense_fit):
    X, y, options = middling()
    ball = {key: options[key] for key in ("epsilon", "kappa", "categories", "bounds")}
    loss = drlogit.worst_case_loss(dense_fit, X, y, **ball)
    assert loss == pytest.approx(dense_fit.objective, abs=1e-12)


def test_a_start_and_few_iterations_are_told_honestly():
    X, y, options = middling()
    short = drlogit.solve(X, y, **options, max_iter=3)
    assert short.status is drlogit.Status.MAX_ITER
    assert short.dual_objective <= short.objective
    again = drlogit.solve(X, y, **options, start=short)
    assert again.gap <= 1e-8
