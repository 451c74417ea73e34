"""κ by class and by sample: against one κ, wherever samples are, and where models are constant."""

from __future__ import annotations

import dask.array as da
import mpmath
import numpy as np
import pytest
from benchmarks import stated
from benchmarks.false_bounds import Judge
from benchmarks.problems import Generated

import zoo
from class_zoo import generated
from drlogit.estimators.robust_classifier import result_of


@pytest.mark.parametrize("norm", zoo.NORM_NAMES)
@pytest.mark.parametrize("names", [["bad", "good"], ["bad", "good", "odd"]])
def test_costs_by_class_and_by_sample_say_the_same(names, norm):
    X, _ = zoo.logistic_data(120, 4)
    y = np.array(names)[X[:, : len(names)].argmax(axis=1)]

    def fit(kappa):
        return stated.solve(X, y, epsilon=0.05, kappa=kappa, norm=norm)

    one = [fit(kappa).objective for kappa in (2.0, np.full(120, 2.0), dict.fromkeys(names, 2.0))]
    np.testing.assert_allclose(one, one[0], atol=1e-12)
    costs = dict(zip(names, [np.inf, 0.5, 1.0], strict=False))
    two = [fit(kappa) for kappa in (costs, np.array([costs[label] for label in y]))]
    assert two[0].objective == pytest.approx(two[1].objective, abs=1e-12)
    assert not two[0].flip_share[y == "bad"].any()
    assert fit(np.inf).objective + 1e-4 < two[0].objective < fit(0.5).objective - 1e-4


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_many_samples(norm):
    """The method for many samples, with kinks in as many places as there are costs."""
    X, y = zoo.logistic_data(30_000, 10)
    kappa = np.random.default_rng(0).choice([0.3, 1.0, 5.0, np.inf], size=30_000)
    many = stated.solve(X, y, epsilon=0.02, kappa=kappa, norm=norm)
    assert many.gap <= 1e-6
    start = stated.solve(X, y, epsilon=0.018, kappa=kappa, norm=norm, start=many)
    cold = stated.solve(X, y, epsilon=0.018, kappa=kappa, norm=norm)
    assert start.objective == pytest.approx(cold.objective, abs=2e-6)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("place", ["threads", "mapped", "dask", "repeats"])
def test_costs_travel_with_the_samples(place, n_classes):
    X, y = zoo.logistic_data(900, 4)
    y = y if n_classes == 2 else np.digitize(y + X[:, 1], [-1.0, 1.0])
    kappa = np.random.default_rng(1).choice(
        [0.0, 0.5, 2.0, np.inf], p=[0.02, 0.3, 0.3, 0.38], size=900
    )
    options = {"epsilon": 0.03, "tol": 1e-9}
    whole, jobs = stated.solve(X, y, kappa=kappa, **options), None
    if place == "threads":
        jobs = 3
    elif place == "mapped":
        X = zoo.mapped(X)
    elif place == "dask":
        X, y = da.from_array(X, chunks=(250, 4)), da.from_array(y, chunks=300)
        kappa = da.from_array(kappa, chunks=400)
    else:
        X, y, kappa = np.tile(X, (3, 1)), np.tile(y, 3), np.tile(kappa, 3)
    model = stated.classifier(n_jobs=jobs, **options).fit(X, y, kappa=kappa)
    other = result_of(model)
    assert other.objective == pytest.approx(whole.objective, abs=1e-9)
    np.testing.assert_allclose(other.coef, whole.coef, atol=1e-4)


@pytest.mark.parametrize("categories", [None, [[0, 1, 2, 3]]])
def test_a_block_in_which_no_label_can_flip(categories):
    """Samples sorted by label: κ is infinite throughout some blocks, and finite in others."""
    rng = np.random.default_rng(0)
    X = np.column_stack([np.eye(4)[rng.integers(4, size=400)], rng.standard_normal((400, 3))])
    y = np.repeat([0, 1], [280, 120])
    options = {"epsilon": 0.01, "kappa": {0: np.inf, 1: 1.0}, "categories": categories}
    whole, parts = (stated.solve(X, y, n_jobs=n, tol=1e-9, **options) for n in (1, 2))
    assert parts.gap <= 1e-9
    assert parts.objective == pytest.approx(whole.objective, abs=1e-9)


@pytest.mark.parametrize("categories", [None, [[0, 1, 2]]])
@pytest.mark.parametrize("huge", [1e6, 1e12, 1e15, 1e18, 1e100, 1e300])
def test_unknown_labels_beside_huge_costs(huge, categories):
    """The objective is the worst case of the model returned, with fifty digits."""
    rng = np.random.default_rng(1)
    X = np.column_stack([np.eye(3)[rng.integers(3, size=60)], rng.standard_normal((60, 2))])
    y = X @ [1.0, 0.0, -1.0, 1.0, -1.0] + 0.8 * rng.standard_normal(60) > 0.3
    kappa = np.where(rng.random(60) < 0.5, huge, 0.0)
    options = {"epsilon": 0.1, "kappa": kappa, "norm": "l1", "fit_intercept": True}
    options |= {"categories": categories, "feature_costs": np.ones(5)}
    with mpmath.workdps(50):
        judge = Judge(Generated("", X, y, options))
        for epsilon in (0.01, 0.1, 10.0):
            judge.epsilon = mpmath.mpf(epsilon)
            found = stated.solve(X, y, **(options | {"epsilon": epsilon}))
            assert found.gap <= 1e-6
            assert abs(judge.value(found) - found.objective) <= 1e-12


@pytest.mark.parametrize("seed", range(4))
def test_with_domains(seed):
    """Each flip costs its own κ beside what changes of category and bounded moves cost."""
    rng = np.random.default_rng(seed)
    level, U, B = rng.integers(3, size=70), rng.standard_normal((70, 2)), rng.uniform(size=(70, 1))
    X = np.hstack([np.eye(3)[level], B, U])
    y = np.where((level > 1) + U[:, 0] + B[:, 0] - 1.0 + 0.5 * rng.logistic(size=70) > 0.0, 1, -1)
    kappa = rng.choice([[0.0, 2.0, np.inf], [0.3, 0.5, 3.0]][seed % 2], size=70)
    inf = np.inf
    bounds = [-inf] * 3 + [0.0] + [-inf] * 2, [inf] * 3 + [1.0] + [inf] * 2
    options = {"kappa": kappa, "categories": [[0, 1, 2]], "bounds": bounds}
    found = stated.solve(X, y, epsilon=0.05, norm=zoo.NORM_NAMES[seed % 3], **options)
    assert found.gap <= 1e-6
    assert not found.flip_share[np.isinf(kappa)].any()
    largest = stated.epsilon_max(X, y, **options)
    beyond = stated.solve(X, y, epsilon=1.01 * largest, **options).coef
    assert np.ptp(beyond[:3]) == 0.0 == np.abs(beyond[3:]).max()


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("seed", range(8))
def test_from_the_largest_radius_on_the_model_is_constant(seed, n_classes):
    X, y, options = generated(seed, n_classes)
    del options["epsilon"]
    moves = np.isfinite(options["feature_costs"])
    largest = stated.epsilon_max(X, y, **options)
    for factor in (1.001, 3.0, 50.0):
        found = stated.solve(X, y, epsilon=factor * largest, **options)
        assert not found.coef[..., moves].any()
    if np.ndim(options["kappa"]) != 1:  # by class: and below it is not
        found = stated.solve(X, y, epsilon=0.98 * largest, tol=1e-9, **options)
        assert found.coef[..., moves].any()


def test_radii_of_constant_models_need_not_be_an_interval():
    """Constant at 0 and from ε_max on, not in between: one class has flips at two prices."""
    X = np.array([[5.0], [-5.0], [1.0], [-1.0], [0.0], [0.0], [0.0], [0.0]])
    y = np.array([1, 1, 1, 1, 1, 1, -1, -1])
    kappa = np.where(np.arange(8) == 0, 0.1, 9.0)
    sizes = [
        abs(stated.solve(X, y, epsilon=epsilon, kappa=kappa, tol=1e-9).coef[0])
        for epsilon in (0.005, 1.0, stated.epsilon_max(X, y, kappa=kappa))
    ]
    assert sizes[0] > 0.01
    assert sizes[1] > 0.001
    assert sizes[2] == 0.0


@pytest.mark.parametrize(
    ("n_classes", "kappa", "said"),
    [
        (2, {"good": 5.0}, "a cost for each of the labels"),
        (2, {"good": 5.0, "bad": 1.0, "odd": 1.0}, "a cost for each of the labels"),
        (2, {"good": 0.0, "bad": 0.0}, "> 0 for some labels"),
        (2, {"good": -1.0, "bad": 1.0}, "> 0"),
        (2, np.ones(3), r"shape \(40,\)"),
        (2, np.full(40, np.nan), ">= 0"),
        (2, [[0.0, 2.0], [2.0, 0.0]], "kappa must be a number"),
        (3, {"good": 1.0, "bad": 2.0}, "a cost for each of the labels"),
        (3, -1.0, "kappa must be"),
        (3, np.ones(4), r"shape \(40,\)"),
        (3, np.append(np.ones(39), -1.0), "kappa must hold numbers >= 0"),
        (3, np.ones((3, 3)), "kappa must be a number"),
    ],
)
def test_costs_that_are_none(n_classes, kappa, said):
    X, _ = zoo.logistic_data(40, 3)
    y = np.array(["good", "bad", "odd"])[X[:, :n_classes].argmax(axis=1)]
    with pytest.raises(ValueError, match=said):
        stated.solve(X, y, epsilon=0.1, kappa=kappa)


@pytest.mark.parametrize("K", [2, 3])
def test_a_ball_has_the_costs_that_were_stated(K):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 2)), np.arange(60) % K
    by_class = dict(enumerate([0.7, np.inf, 2.5][:K]))
    ball = stated.solve(X, y, epsilon=0.05, kappa=by_class).column_ball
    assert ball.kappa.stated(np.arange(K)) == by_class
    twice = {label: 2.0 * cost for label, cost in by_class.items()}
    assert ball.kappa.times(2.0).stated(np.arange(K)) == twice
