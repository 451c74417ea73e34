"""Fits with domains: equal to references that share no code, proven, on rows of every kind."""

from __future__ import annotations

import functools
import itertools
import math
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from benchmarks import stated
from benchmarks.problems import domain_case

import domain_zoo
import drlogit
import zoo
from drlogit.dual.certify import certify, dual_point_of_pieces, pieces_of_dual_point
from drlogit.dual.pieces import PieceMasses, piece_bound
from drlogit.engine.tables import interior_point_with_domains
from drlogit.problem.result import Monitor

cvxpy = pytest.importorskip("cvxpy")


@functools.cache
def fitted(seed):
    """A generated problem and its fit."""
    case = domain_zoo.generated(seed)
    found = stated.solve(**case)
    assert found.gap <= 1e-6
    assert found.status is drlogit.Status.OPTIMAL
    return case, found


def over_all_pieces(case):
    """The optimum over every move of every sample, by a conic solver.

    Moves are all listed; the solver gets those that its last model says are missing.
    """
    X, y, kappa = case["X"], case["y"], case["kappa"]
    moves = [
        (i, sign * y[i] * np.append(x, 1.0), cost + flip)
        for i in range(y.size)
        for x, cost in domain_zoo.everywhere(case, i, steps=2)
        for sign, flip in ((1.0, 0.0), (-1.0, kappa))
        if math.isfinite(flip)
    ]
    own, rows, paid = (np.array(part) for part in zip(*moves, strict=True))
    rest, taken = domain_zoo.open_features(case), paid == 0.0
    beta, b, lam = cvxpy.Variable(X.shape[1]), cvxpy.Variable(), cvxpy.Variable(nonneg=True)
    top = cvxpy.Variable(y.size)
    held = [cvxpy.abs(beta) <= 50.0]  # that of a level which nobody has may be anything
    held += [] if case["fit_intercept"] else [b == 0.0]
    complete = [[*g] for g in case["categories"] if (X[:, [*g]].sum(axis=1) == 1.0).all()]
    # The same model whatever one level is, if there is a constant besides.
    held += [beta[group[0]] == 0.0 for group in complete[int(not case["fit_intercept"]) :]]
    if rest.any():
        order = {"l1": "inf", "l2": 2, "linf": 1}[case["norm"]]
        scaled = cvxpy.multiply(beta[rest], 1.0 / case["feature_costs"][rest])
        held.append(cvxpy.norm(scaled, order) <= lam)
    value = case["epsilon"] * lam + domain_zoo.weights_of(case) @ top
    for _ in range(30):
        margins = rows[taken, :-1] @ beta + rows[taken, -1] * b
        cuts = cvxpy.logistic(-margins) - paid[taken] * lam <= top[own[taken]]
        found = cvxpy.Problem(cvxpy.Minimize(value), [*held, cuts]).solve(solver="CLARABEL")
        worth = np.logaddexp(0.0, -rows @ np.append(beta.value, b.value)) - paid * lam.value
        missing = worth > top.value[own] + 1e-8
        if not (missing & ~taken).any():
            break
        taken |= missing
    return found


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")  # the comparison tells
@pytest.mark.parametrize("seed", range(30, 54))
def test_the_optimum_over_all_pieces(seed):
    case, found = fitted(seed)
    reference = over_all_pieces(case)
    assert found.dual_objective <= reference + 1e-7
    assert found.objective == pytest.approx(reference, abs=2e-6)
    assert drlogit.verify(found, case["X"], case["y"], sample_weight=case["sample_weight"])


@pytest.mark.parametrize("number", [3036, 21029])
def test_radii_at_which_only_immovable_features_count_are_proven(number):
    """λ goes to zero, and the dual point takes many corrections until its charge is small."""
    X, y, options = domain_case(number)
    movable = stated.epsilon_max(X, y, **{k: v for k, v in options.items() if k != "epsilon"})
    found = stated.solve(X, y, **options)
    assert options["epsilon"] > movable
    assert found.converged


@pytest.mark.parametrize("seed", range(12))
def test_its_own_solution_needs_no_iteration_and_is_its_proof(seed):
    case, found = fitted(seed)
    again = stated.solve(**case, start=found)
    assert found.n_iter > 0
    assert (again.n_iter, again.converged) == (0, True)
    assert again.objective == pytest.approx(found.objective, abs=1e-12)
    np.testing.assert_array_equal(again.coef, found.coef)
    problem = stated.problem(**case)
    pieces = pieces_of_dual_point(problem, found.dual)
    masses = np.bincount(pieces[0].own, pieces[0].q)
    np.testing.assert_allclose(masses, problem.rows.together().weights, rtol=1e-9, atol=1e-15)
    point = dual_point_of_pieces(problem, pieces)
    for name in ("s", "flip_share"):
        wanted = getattr(found.dual, name)
        np.testing.assert_allclose(getattr(point, name), wanted, rtol=1e-9, atol=1e-12)
    for part, wanted in zip(point.moves.arrays, found.dual.moves.arrays, strict=True):
        np.testing.assert_allclose(part, wanted, rtol=1e-9)
    # Of other samples it is no proof.
    fewer = {name: case[name][:-1] for name in ("X", "y")}
    other = stated.problem(**case | fewer | {"sample_weight": None})
    assert pieces_of_dual_point(other, found.dual) is None


def test_immovable_groups_are_infinite_costs():
    case = domain_zoo.generated(5, n_immovable=0)
    case["feature_costs"][[j for group in case["categories"] for j in group]] = math.inf
    found = stated.solve(**case | {"bounds": None})
    infinite = stated.solve(**case | {"bounds": None, "categories": None})
    assert found.objective == infinite.objective


@pytest.mark.parametrize("seed", range(3))
def test_far_bounds_are_no_bounds(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((80, 3))
    y = X @ [1.0, -1.0, 0.5] + rng.logistic(size=80) > 0.0
    ball = {"epsilon": 0.1, "kappa": [1.0, math.inf, 0.3][seed], "tol": 1e-8}
    near = stated.solve(X, y, **ball)
    found = stated.solve(X, y, **ball, bounds=(-1e6, 1e6))
    assert found.gap <= 1e-8
    # A mass of ε/10⁶ that is moved to the end lacks its own loss of the gain of an endless move.
    assert -0.1 * math.log(2.0) / 1e6 <= found.objective - near.objective <= 2e-8


def test_epsilon_max_where_flips_level_everything_is_that_of_numbers():
    """Few of one class: flips that level the classes can level the features, too."""
    rng = np.random.default_rng(0)
    X = np.column_stack([np.eye(3)[rng.integers(0, 3, 200)], rng.random(200)])
    y = np.arange(200) < 40
    options = {"kappa": 0.2, "norm": "l1"}
    bounds = (np.r_[[-np.inf] * 3, 0.0], np.r_[[np.inf] * 3, 1.0])
    limit = stated.epsilon_max(X, y, **options, categories=[[0, 1, 2]], bounds=bounds)
    assert limit < 0.2 * 0.3  # what levels the classes
    numbers = stated.epsilon_max(X, y, **options, feature_costs=[0.5, 0.5, 0.5, 1.0])
    assert limit == pytest.approx(numbers, rel=1e-9)
    below = {"epsilon": 0.98 * limit, "categories": [[0, 1, 2]], "bounds": bounds, "tol": 1e-9}
    assert np.ptp(stated.solve(X, y, **options, **below).coef[:3]) > 1e-4


@pytest.mark.parametrize("kappa", [0.3, math.inf])
def test_far_from_zero_without_an_intercept(kappa):
    """Moves within a domain cost what it is wide, however far away it is."""
    rng = np.random.default_rng(5)
    X = 1e3 + rng.uniform(0.0, 1.0, (40, 2))  # the model is of the class: 3 log-odds per unit
    y = X[:, 0] - X[:, 1] + 0.3 * rng.standard_normal(40) > 0.0
    case = {
        "X": X, "y": np.where(y, 1, -1), "epsilon": 0.02, "kappa": kappa, "norm": "l1",
        "bounds": (np.full(2, 1e3 - 0.5), np.full(2, 1e3 + 1.0)), "categories": [],
        "feature_costs": np.ones(2), "sample_weight": None, "fit_intercept": False,
    }  # fmt: skip
    found = stated.solve(**case)
    assert found.converged
    assert drlogit.verify(found, X, case["y"]).ok
    assert found.dual_objective <= over_all_pieces(case) + 1e-9


@pytest.mark.parametrize("domains", [False, True])
def test_a_model_outside_the_class_is_not_proven(domains):
    """Ten times as far it has 30,000 log-odds per root mean square: no bound speaks of it."""
    rng = np.random.default_rng(5)
    X = 1e4 + rng.uniform(0.0, 1.0, (40, 2))
    y = X[:, 0] - X[:, 1] + 0.3 * rng.standard_normal(40) > 0.0
    how = {"bounds": (1e4 - 0.5, 1e4 + 1.0)} if domains else {"feature_costs": [np.inf, np.inf]}
    found = stated.solve(X, y, epsilon=0.02, kappa=np.inf, fit_intercept=False, **how)
    assert found.status is not drlogit.Status.OPTIMAL
    assert np.isfinite(found.coef).all()


# --- bounds ---------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(12))
def test_no_dual_point_whatsoever_gives_a_bound_above_the_optimum(seed):
    """Masses and slopes at random: the charge must cover whatever equations they break."""
    case, best = fitted(seed)
    problem = stated.problem(**case)
    rng = np.random.default_rng(seed)
    for spread in (1e-9, 1e-3, 1.0):

        def guess(block, _, spread=spread):
            own = np.repeat(np.arange(block.y.size), 3)
            moved = rng.random((own.size, problem.domains.n_items)) < 0.3
            items = np.packbits(moved, axis=1)
            flipped = (rng.random(own.size) < 0.3) & math.isfinite(problem.kappa)
            q = rng.random(own.size) ** 5
            s = 0.5 + spread * (rng.random(q.size) - 0.5)
            return PieceMasses(own, flipped, items, q, q * s), ()

        pieces, _ = problem.rows.run(guess)
        assert piece_bound(problem, np.zeros(problem.costs.size), pieces).value <= best.objective


@pytest.mark.parametrize("seed", range(12))
def test_a_good_dual_point_that_was_disturbed_gives_no_false_bound(seed):
    """Equations that hold to some digits only, those of immovable features among them."""
    problem = stated.problem(**domain_zoo.generated(seed, n_immovable=seed % 3))
    solution = interior_point_with_domains(problem, tol=1e-7, monitor=Monitor(None, 0))
    optimum = certify(problem, solution.coefficients, point=solution.point).primal
    rng = np.random.default_rng(seed)
    for digits in (0, 2, 5, 8):

        def disturb(block, pieces, digits=digits):
            noise = 10.0**-digits * rng.standard_normal((2, pieces.q.size))
            q = np.abs(pieces.q * (1.0 + noise[0]))
            return pieces._replace(q=q, m=np.clip(pieces.m * (1.0 + noise[1]), 0.0, q)), ()

        disturbed, _ = problem.rows.run(disturb, solution.point)
        assert piece_bound(problem, np.zeros(problem.costs.size), disturbed).value <= optimum


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("kappa", [1.0, math.inf])
def test_immovable_features_beside_many_categories_are_proven(fit_intercept, kappa):
    """A number and a group that cannot move, some of whose levels occur in one class only."""
    rng = np.random.default_rng(3)
    held = np.eye(6)[np.where(rng.random(150) < 0.8, 0, rng.integers(1, 6, 150))]
    movable = [np.eye(m)[rng.integers(0, m, 150)] for m in (3, 4, 9)]
    X = np.column_stack([held, *movable, rng.random(150), rng.standard_normal(150)])
    y = X @ rng.standard_normal(24) + 0.3 * rng.logistic(size=150) > 0.0
    y[held[:, 1] == 1.0], y[held[:, 2] == 1.0] = True, False
    starts = np.cumsum([0, 6, 3, 4, 9])
    found = stated.solve(
        X, y, epsilon=0.05, kappa=kappa, fit_intercept=fit_intercept,
        categories=[list(range(a, b)) for a, b in itertools.pairwise(starts)],
        bounds=(np.r_[[-np.inf] * 22, 0.0, -np.inf], np.r_[[np.inf] * 22, 1.0, np.inf]),
        feature_costs=np.where(np.isin(np.arange(24), [*range(6), 23]), np.inf, 1.0),
    )  # fmt: skip
    assert found.gap <= 1e-6


# --- a table, on rows of every kind -----------------------------------------------------------


def table():
    """Groups of 7, 3 and 5 levels, two numbers between 0 and 1, and two open ones."""
    rng = np.random.default_rng(7)
    groups = [np.eye(m)[rng.integers(0, m, 400)] for m in (7, 3, 5)]
    X = np.column_stack([*groups, rng.random((400, 2)), rng.standard_normal((400, 2))])
    y = X @ rng.standard_normal(19) + rng.logistic(size=400) > 0.5
    lower, upper = np.full((2, 19), [[-np.inf], [np.inf]])
    lower[15:17], upper[15:17] = 0.0, 1.0
    categories = [list(range(7)), [7, 8, 9], list(range(10, 15))]
    options = {"epsilon": 0.1, "kappa": 2.0, "bounds": (lower, upper), "tol": 1e-8}
    return X, y, options | {"categories": categories}


@pytest.fixture(scope="module")
def dense_fit():
    X, y, options = table()
    found = stated.solve(X, y, **options)
    assert found.gap <= 1e-8
    return found


KINDS = {
    "csr": sp.csr_array,
    "float32": lambda X: X.astype(np.float32),
    "threads": np.asarray,
    "mapped": zoo.mapped,
    "dask": lambda X: pytest.importorskip("dask.array").from_array(X, chunks=(150, -1)),
}


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_every_kind_give_the_same_answer(kind, dense_fit):
    X, y, options = table()
    found = stated.solve(KINDS[kind](X), y, **options, n_jobs=2 if kind == "threads" else None)
    assert found.gap <= 1e-8
    near = 1e-6 if kind == "float32" else 1e-9
    assert found.objective == pytest.approx(dense_fit.objective, abs=near)
    flips = np.asarray(found.flip_share).sum()
    assert flips == pytest.approx(dense_fit.flip_share.sum(), abs=1e-2)


def test_more_items_than_a_word_has_bits():
    rng = np.random.default_rng(0)
    X = rng.random((120, 45))
    y = X[:, :4].sum(axis=1) + rng.logistic(size=120) / 4.0 > 2.0
    case = {"X": X, "y": y, "epsilon": 0.1, "kappa": math.inf, "bounds": (0.0, 1.0)}
    found = stated.solve(**case)
    assert found.gap <= 1e-6
    assert found.dual.moves.items.shape[1] == 12  # two ends of each, in bytes
    assert drlogit.verify(found, X, y).ok


def test_a_category_of_very_many_levels_is_never_a_dense_matrix():
    rng = np.random.default_rng(0)
    n, levels = 3000, 600
    codes, x = rng.integers(0, levels, n), rng.standard_normal(n)
    y = rng.standard_normal(levels)[codes] + x + rng.logistic(size=n) > 0.0
    one_hot = sp.csr_array((np.ones(n), codes, np.arange(n + 1)), shape=(n, levels))
    X = sp.csr_array(sp.hstack([one_hot, x[:, None]]))
    for cost in (1.0, math.inf):
        tracemalloc.start()
        found = stated.solve(
            X, y, epsilon=0.05, kappa=2.0, categories=[list(range(levels))],
            bounds=(np.append(np.full(levels, -np.inf), -5.0), np.inf),
            feature_costs=np.append(np.full(levels, cost), 1.0),
        )  # fmt: skip
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert found.gap <= 1e-6
        assert most <= 14 * 8 * (levels + 5) ** 2  # matrices of the Newton system


def test_a_start_and_few_iterations_are_told_honestly():
    X, y, options = table()
    short = stated.solve(X, y, **options, max_iter=3)
    assert short.status is drlogit.Status.MAX_ITER
    assert short.dual_objective <= short.objective
    assert stated.solve(X, y, **options, start=short).gap <= 1e-8


def test_samples_that_occur_twice_are_merged():
    case, rng = domain_zoo.generated(3, n_samples=400), np.random.default_rng(0)
    weights = rng.exponential(size=700) * (np.arange(700) % 7 > 0)
    whole = weights[:400] + np.append(weights[400:], np.zeros(100))
    twice = {name: np.concatenate([case[name], case[name][:300]]) for name in ("X", "y")}
    twice = case | twice | {"sample_weight": weights}
    found = stated.solve(**twice)
    assert found.info["distinct_samples"] <= 400
    assert found.flip_share.size == 700
    once = stated.solve(**case | {"sample_weight": whole})
    assert found.objective == pytest.approx(once.objective, abs=2e-6)
    again = stated.solve(**twice, start=found)
    assert (again.n_iter, again.converged) == (0, True)


@pytest.mark.parametrize("epsilon", [0.02, 0.05])
def test_a_survey_with_fewer_rows_than_answers_is_proven(epsilon):
    """The classes are separable, so that very many sets of changed answers are equally bad."""
    rng = np.random.default_rng(21)
    answers = rng.integers(0, 4, (100, 60))
    X = np.zeros((100, 240))
    X[np.arange(100)[:, None], 4 * np.arange(60) + answers] = 1.0
    score = (answers[:, :8] == 0) @ rng.normal(size=8)
    y = score + 0.5 * rng.logistic(size=100) > np.median(score)
    groups = np.arange(240).reshape(60, 4).tolist()
    found = stated.solve(X, y, epsilon=epsilon, kappa=math.inf, categories=groups)
    assert found.gap <= 1e-6
    assert found.n_iter < 150
