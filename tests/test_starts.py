"""Starts from earlier results: what they save, and that a bad one does no harm."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

import drlogit
from drlogit.fitting import paths
from drlogit.fitting.critical_radius import epsilon_max_of
from drlogit.fitting.prediction import by_secant
from drlogit.fitting.solving import solve_problem
from drlogit.problem.problem import build_problem
from drlogit.rows.blocks import Block
from drlogit.solvers.sequential_quadratic import step


def data(n_samples=5500, n_features=12, seed=0):
    """Correlated features of different scales, a quarter of them rare, and noisy labels."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_samples, n_features)) @ rng.standard_normal((n_features,) * 2)
    X *= np.geomspace(0.3, 3.0, n_features)
    X[:, ::4] *= rng.random((n_samples, len(range(0, n_features, 4)))) < 0.2
    beta = rng.standard_normal(n_features)
    margin = 1.5 * X @ beta / np.std(X @ beta) + 0.3
    y = np.where(rng.random(n_samples) < 1.0 / (1.0 + np.exp(-margin)), 1, -1)
    return X, y


@pytest.fixture
def grams(monkeypatch):
    """How many Gram matrices of all samples were formed."""
    calls = Counter()

    def counted(method):
        def wrapper(self, *arguments, **options):
            calls[self.y.size] += 1
            return method(self, *arguments, **options)

        return wrapper

    for name in ("gram", "gram_and_adjoint"):
        monkeypatch.setattr(Block, name, counted(getattr(Block, name)))
    return calls


CASES = [("l1", 1.0), ("l1", math.inf), ("l2", 1.0), ("l2", math.inf), ("linf", 1.0), ("linf", 0.3)]


@pytest.mark.parametrize(("norm", "kappa"), CASES)
def test_its_own_solution_costs_no_gram_matrix(norm, kappa, grams):
    X, y = data()
    first = drlogit.solve(X, y, epsilon=0.03, kappa=kappa, norm=norm)
    grams.clear()
    again = drlogit.solve(X, y, epsilon=0.03, kappa=kappa, norm=norm, start=first)
    assert not grams
    assert (again.n_iter, again.info["grams"]) == (0, 0)
    assert again.converged
    np.testing.assert_array_equal(again.coef, first.coef)
    np.testing.assert_allclose(again.dual.s, first.dual.s, rtol=1e-12)


@pytest.mark.parametrize(("norm", "kappa"), CASES)
def test_a_neighbour_takes_one_gram_matrix(norm, kappa, grams):
    X, y = data()
    first = drlogit.solve(X, y, epsilon=0.033, kappa=kappa, norm=norm)
    cold = drlogit.solve(X, y, epsilon=0.03, kappa=kappa, norm=norm, hinge="smoothed")
    grams.clear()
    warm = drlogit.solve(X, y, epsilon=0.03, kappa=kappa, norm=norm, start=first)
    assert warm.gap <= 1e-6
    assert warm.n_iter == grams[y.size] == 1 < cold.n_iter
    assert warm.info["band_iterations"] > 0
    assert (warm.info["band_work"] > 0.0) == math.isfinite(kappa)
    assert abs(warm.objective - cold.objective) <= 1e-6


def test_a_prediction_knows_its_objective():
    X, y = data(1000)
    problem = build_problem(X, y, epsilon=0.1, kappa=1.0)
    before, last = ((e, solve_problem(problem.with_radius(e))) for e in (0.15, 0.12))
    start = by_secant(problem, before, last)
    model = problem.join(start.coef, start.intercept)
    value = problem.objective(model, start.lam)
    assert start.info["predicted"] == pytest.approx(value, rel=1e-12)
    assert value < problem.objective(problem.join(last[1].coef, last[1].intercept), last[1].lam)


def test_the_dual_point_proves_the_bound():
    X, y = data()
    weights = np.random.default_rng(1).random(y.size)
    for start in (None, drlogit.solve(X, y, epsilon=0.05, kappa=1.0, sample_weight=weights)):
        result = drlogit.solve(X, y, epsilon=0.04, kappa=1.0, sample_weight=weights, start=start)
        w = weights / weights.sum()
        s, a = result.dual.s, result.dual.flip_share
        for share in (s, a):
            assert share.min() >= 0.0
            assert share.max() <= 1.0
        gradient = (w * (s - a) * y) @ X
        assert np.abs(gradient).sum() + (w * a).sum() <= 0.04 * (1.0 + 1e-9)
        assert abs((w * (s - a) * y).sum()) <= 1e-10
        entropy = -(s * np.log(s) + (1.0 - s) * np.log1p(-s))
        assert 0.0 <= w @ entropy - result.dual_objective <= 1e-6


@pytest.mark.parametrize("change", ["kappa", "weights", "fold", "more", "norm", "intercept"])
def test_starts_from_other_problems_are_worth_something(change):
    X, y = data()
    rng = np.random.default_rng(2)
    given = {"X": X, "y": y, "epsilon": 0.03, "kappa": 1.0}
    other, limit = dict(given), 2
    if change == "kappa":
        other["kappa"] = 1.2
    elif change == "weights":
        other["sample_weight"] = rng.poisson(1.0, y.size) + 0.01
    elif change == "fold":
        kept = rng.random(y.size) < 0.8
        other.update(X=X[kept], y=y[kept])
    elif change == "more":
        given.update(X=X[::2], y=y[::2])
    elif change == "norm":
        other["norm"], limit = "l2", 99
    else:
        given["fit_intercept"], limit = False, 4
    cold = drlogit.solve(**other)
    warm = drlogit.solve(**other, start=drlogit.solve(**given))
    assert warm.gap <= 1e-6
    assert warm.n_iter <= min(limit, cold.n_iter + 1)
    assert abs(warm.objective - cold.objective) <= 1e-6


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_columns_that_are_empty_in_a_fold_do_not_stay_where_the_start_has_them(norm):
    X, y = data()
    X[:, 3] = 0.0
    X[5000:, 3] = 4.0 * y[5000:]
    options = {"epsilon": 0.03, "kappa": 1.0, "norm": norm}
    start = drlogit.solve(X, y, **options)
    assert abs(start.coef[3]) > 0.1
    found = drlogit.solve(X[:5000], y[:5000], start=start, **options)
    assert found.converged
    assert found.info["hinge"] == "band"
    assert found.coef[3] == 0.0


def spoilt(result, how):
    rng = np.random.default_rng(3)
    if how == "far":
        return replace(result, coef=50.0 * rng.standard_normal(result.coef.size))
    if how == "wrong":
        return replace(result, coef=-result.coef)
    if how == "zero":
        return replace(result, coef=np.zeros_like(result.coef), lam=0.0)
    if how == "nan":
        return replace(result, coef=np.full_like(result.coef, np.nan))
    return replace(result, lam=1e6 * result.lam, info={"spread": 1e-7})


@pytest.mark.parametrize("how", ["far", "wrong", "zero", "nan", "lam"])
@pytest.mark.parametrize("kappa", [1.0, math.inf])
def test_a_bad_start_is_dropped(how, kappa):
    X, y = data()
    problem = build_problem(X, y, epsilon=0.02, kappa=kappa)
    cold = solve_problem(problem)
    start = spoilt(solve_problem(problem.with_radius(0.04)), how)
    warm = solve_problem(problem, start=start)
    assert warm.gap <= 1e-6
    assert warm.n_iter <= cold.n_iter + 1


def test_who_is_misled_by_a_start_does_without(monkeypatch):
    X, y = data()
    start = drlogit.solve(X, y, epsilon=0.04, kappa=1.0)
    answers = [drlogit.Status.OPTIMAL]  # without a step; then that nothing can be done
    monkeypatch.setattr(
        "drlogit.solvers.interior_point.method.solve_from",
        lambda *_, **__: answers.pop() if answers else drlogit.Status.STALLED,
    )
    found = drlogit.solve(X, y, epsilon=0.02, kappa=1.0, start=start)
    assert not answers
    assert found.converged


def test_sparse_rows_in_blocks_and_merged_copies_give_the_same_answer():
    X, y = data(6000)
    X[np.abs(X) < 0.8] = 0.0
    X, y = np.concatenate([X, X[:3000]]), np.concatenate([y, y[:3000]])  # copies are merged
    first = drlogit.solve(X, y, epsilon=0.03, kappa=1.0)
    reference = drlogit.solve(X, y, epsilon=0.027, kappa=1.0, tol=1e-9)
    for matrix in (X, sp.csr_array(X), drlogit.RowBlocks.from_array(X, 2333)):
        result = drlogit.solve(matrix, y, epsilon=0.027, kappa=1.0, start=first)
        assert (result.n_iter, result.info["hinge"]) == (1, "band")
        assert reference.dual_objective - 1e-9 <= result.objective <= reference.objective + 1e-6


def test_immovable_features():
    X, y = data()
    costs = np.ones(X.shape[1])
    costs[[1, 5]] = np.inf
    first = drlogit.solve(X, y, epsilon=0.033, kappa=1.0, feature_costs=costs)
    cold = drlogit.solve(X, y, epsilon=0.03, kappa=1.0, feature_costs=costs)
    warm = drlogit.solve(X, y, epsilon=0.03, kappa=1.0, feature_costs=costs, start=first)
    own = drlogit.solve(X, y, epsilon=0.033, kappa=1.0, feature_costs=costs, start=first)
    assert max(warm.gap, own.gap) <= 1e-6
    assert warm.n_iter <= 2
    assert own.n_iter == 0
    assert abs(warm.objective - cold.objective) <= 1e-6


def test_max_iter_holds_with_a_start():
    X, y = data()
    first = drlogit.solve(X, y, epsilon=0.3, kappa=1.0)
    result = drlogit.solve(X, y, epsilon=0.01, kappa=1.0, start=first, max_iter=2)
    assert result.n_iter <= 2


def test_a_path_takes_about_one_gram_matrix_per_radius():
    X, y = data(3000, 15)
    X[np.abs(X) < 0.5] = 0.0
    taken = []
    drlogit.regularization_path(X, y, n_epsilons=15, callback=lambda r: taken.append(r))
    assert max(result.gap for result in taken) <= 1e-6
    assert np.mean([result.n_iter for result in taken[2:]]) <= 1.3


@pytest.mark.parametrize(("kappa", "started"), [(1.0, []), (np.inf, [2, 3])])
def test_coarse_paths_of_small_data_start_from_nothing_where_labels_flip(kappa, started):
    X, y = data(2000, 10)
    taken = []
    drlogit.regularization_path(
        X, y, n_epsilons=4, min_fraction=0.05, kappa=kappa, callback=taken.append
    )
    assert [k for k, result in enumerate(taken) if "band" in result.info["hinge"]] == started


def test_the_paths_of_a_flip_cost_start_from_those_of_the_one_before():
    """Without a look at the data while the norm does not matter: κ is then a matter of units."""
    X, y = data(3000, 15)
    problem = build_problem(X, y, epsilon=0.0, kappa=1.0)
    fits, grams = None, {}
    for kappa in (0.01, 0.3, 10.0, 12.0, math.inf):
        radii = epsilon_max_of(problem.with_radius(0.0, kappa)) * np.geomspace(1.0, 0.01, 5)
        fits = list(paths.solve_radii(problem, radii, kappa, siblings=fits))
        for radius, fit in zip(radii, fits, strict=True):
            cold = solve_problem(problem.with_radius(radius, kappa))
            assert fit.gap <= 1e-6
            assert abs(fit.objective - cold.objective) <= 1e-6
            assert (fit.ball.epsilon, fit.ball.kappa) == (radius, kappa)
        grams[kappa] = [fit.n_iter for fit in fits]
    assert sum(grams[0.3]) == 0 < min(grams[0.01])
    # From 10 to 12 the norm matters, and the shares of labels that may be flipped differ.
    assert grams[12.0][1:] == [1] * 4


def test_gradients_lead_on_easy_data_where_nothing_is_known_of_a_start():
    rng = np.random.default_rng(5)
    X = rng.standard_normal((3000, 20))
    y = np.where(X[:, 0] + rng.logistic(size=3000) > 0.0, 1, -1)
    first = drlogit.solve(X, y, epsilon=0.05, kappa=1.0)
    model = replace(first, dual=None, info={})
    unknown = drlogit.solve(X, y, epsilon=0.04, kappa=1.0, start=model)
    known = drlogit.solve(X, y, epsilon=0.04, kappa=1.0, start=replace(model, info={"spread": 0.1}))
    assert unknown.info["gradient_steps"] > 0.0 == known.info["gradient_steps"]
    assert max(unknown.gap, known.gap) <= 1e-6
    assert (unknown.n_iter, known.n_iter) == (1, 1)


def tall(dependent: float) -> tuple[np.ndarray, np.ndarray]:
    """Many samples, whose features have a part in common."""
    rng = np.random.default_rng(4)
    X = rng.standard_normal((120_000, 5)) + dependent * rng.standard_normal((120_000, 1))
    return X, np.where(rng.random(len(X)) < 1.0 / (1.0 + np.exp(-2.0 * X[:, 0] - X[:, 1])), 1, -1)


@pytest.mark.parametrize(
    ("dependent", "kind", "other"),
    [(2.0, "sample_grams", "gradient_steps"), (0.0, "gradient_steps", "sample_grams")],
)
def test_tall_data_start_from_samples(dependent, kind, other):
    X, y = tall(dependent)
    for kappa in (1.0, math.inf):
        nested = drlogit.solve(X, y, epsilon=0.02, kappa=kappa)
        direct = drlogit.solve(X, y, epsilon=0.02, kappa=kappa, hinge="smoothed")
        assert nested.gap <= 1e-6
        assert nested.n_iter <= 2 < direct.n_iter
        assert 0.0 < nested.info[kind] < direct.n_iter - nested.n_iter
        assert nested.info[other] == 0.0
        assert abs(nested.objective - direct.objective) <= 1e-6


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize(("epsilon", "kappa"), [(0.1, 1.0), (0.02, 4.0), (0.02, math.inf)])
def test_dense_data_of_independent_features_take_one_gram_matrix(norm, epsilon, kappa):
    rng = np.random.default_rng(8)
    X = rng.standard_normal((10_000, 55)) * rng.uniform(0.5, 2.0, 55)
    y = np.where(rng.random(len(X)) < 1.0 / (1.0 + np.exp(-X[:, :4].sum(axis=1))), 1, -1)
    result = drlogit.solve(X, y, epsilon=epsilon, kappa=kappa, norm=norm)
    assert (result.n_iter, result.info["hinge"]) == (1, "band")
    assert result.info["gradient_steps"] <= 25
    assert result.gap <= 1e-6
    direct = drlogit.solve(X, y, epsilon=epsilon, kappa=kappa, norm=norm, hinge="smoothed")
    assert direct.info["gradient_steps"] == 0.0
    assert abs(result.objective - direct.objective) <= 1e-6


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_independent_features_from_which_nothing_can_be_learnt(norm):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((2500, 25))
    y = np.where(rng.random(2500) < 1.0 / (1.0 + np.exp(-X[:, 0])), 1, -1)
    limit = drlogit.epsilon_max(X, y, kappa=math.inf, norm=norm)
    for share in (1.0, 0.9999999):
        result = drlogit.solve(X, y, epsilon=share * limit, kappa=math.inf, norm=norm)
        assert result.gap <= 1e-6
        assert np.abs(result.coef).max() <= 1e-3


def test_samples_elsewhere_start_in_the_same_way():
    dask = pytest.importorskip("dask")
    import dask.array as da

    rng = np.random.default_rng(5)
    X = rng.standard_normal((60_000, 9))
    y = np.where(rng.random(len(X)) < 1.0 / (1.0 + np.exp(-2.0 * X[:, 0])), 1, -1)
    here = drlogit.solve(X, y, epsilon=0.02, kappa=1.0)
    assert here.info["gradient_steps"] > 0.0
    with dask.config.set(scheduler="synchronous"):
        for elsewhere in (
            da.from_array(X, chunks=(7000, 9)),
            drlogit.RowBlocks.from_array(X, 9000),
        ):
            first = drlogit.solve(elsewhere, y, epsilon=0.02, kappa=1.0)
            np.testing.assert_allclose(first.coef, here.coef, rtol=1e-9)
            assert drlogit.solve(elsewhere, y, epsilon=0.02, kappa=1.0, start=first).n_iter == 0
            near = drlogit.solve(elsewhere, y, epsilon=0.018, kappa=1.0, start=first)
            assert (near.n_iter, near.info["hinge"]) == (1, "band")
            assert near.gap <= 1e-6


@pytest.mark.parametrize(("crowded", "method"), [(1.0, "band"), (0.0, "band+smoothed")])
def test_a_crowded_band_of_unknown_width_is_left_to_fits_from_nothing(crowded, method, monkeypatch):
    X, y = data(n_samples=4200)
    first = replace(drlogit.solve(X, y, epsilon=0.033, kappa=1.0, hinge="barrier"), info={})
    for name, value in (("_MANY", 0), ("_MANY_ENTRIES", 0), ("_CROWDED", crowded)):
        monkeypatch.setattr(step, name, value)
    warm = drlogit.solve(X, y, epsilon=0.03, kappa=1.0, start=first)
    assert warm.converged
    assert warm.info["hinge"] == method


def test_a_band_of_known_width_needs_no_probe(monkeypatch):
    X, y = data(n_samples=4200)
    first = drlogit.solve(X, y, epsilon=0.033, kappa=1.0, hinge="barrier")
    first = replace(first, info={"spread": 0.2})
    for name, value in (("_MANY", 0), ("_MANY_ENTRIES", 0)):
        monkeypatch.setattr(step, name, value)
    monkeypatch.setattr(step.StepFinder, "_probe", lambda *_: None)
    assert drlogit.solve(X, y, epsilon=0.03, kappa=1.0, start=first).info["hinge"] == "band"
