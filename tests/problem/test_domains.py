"""Domains of features: what may be declared, what the data must keep to, and where it is asked."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse as sp
from benchmarks import stated

import zoo

BALL = {"epsilon": 0.1, "kappa": 1.0}


def table(n_samples=60, seed=0):
    """A group of three, a group of two with none, a share, a count, and an open number."""
    rng = np.random.default_rng(seed)
    three = np.eye(3)[rng.integers(0, 3, n_samples)]
    two = np.eye(3)[rng.integers(0, 3, n_samples)][:, :2]
    share, count = rng.random(n_samples), rng.integers(0, 6, n_samples)
    X = np.column_stack([three, two, share, count, rng.standard_normal(n_samples)])
    y = X @ rng.standard_normal(8) + rng.logistic(size=n_samples) > 0.5
    return X, y


CATEGORIES = [[0, 1, 2], [3, 4]]
INFINITE = [math.inf] * 5
BOUNDS = ([-math.inf] * 5 + [0.0, 0.0, -math.inf], [*INFINITE, 1.0, 5.0, math.inf])


def test_what_is_a_domain():
    """None is a category where it occurs, and the norm leaves columns with domains alone."""
    X, y = table()
    problem = stated.problem(X, y, **BALL, categories=CATEGORIES, bounds=BOUNDS)
    assert problem.domains.with_none.tolist() == [False, True]
    assert problem.domains.bounded.tolist() == [5, 6]
    assert problem.penalised.tolist() == [False] * 7 + [True, False]


@pytest.mark.parametrize(
    ("categories", "bounds", "words"),
    [
        ([0, 1], None, "categories must be a list of groups"),
        ([[0, 1], []], None, "got an empty one"),
        ([[0, 9]], None, "categories names the column 9"),
        ([["a"]], None, "categories names the column 'a'"),
        ([[0, 1, 2], [2, 3]], None, "got column 2 twice"),
        (None, 3.0, r"bounds must be a pair \(lower, upper\) or a dict of pairs, got 3.0"),
        (None, (0.0, [1.0, 2.0]), r"with one per feature, 8, got shape \(2,\)"),
        (None, (2.0, 1.0), r"lower <= upper, got \(2.0, 1.0\) for column 0"),
        (CATEGORIES, (0.5, 9.0), "bounds of column 0, a category, must include 0 and 1"),
    ],
)
def test_declarations_that_make_no_sense(categories, bounds, words):
    X, y = table()
    with pytest.raises(ValueError, match=words):
        stated.solve(X, y, **BALL, categories=categories, bounds=bounds)


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
@pytest.mark.parametrize(
    ("row", "column", "value", "words"),
    [
        (7, 1, 0.5, "one 1 and zeros, got 0.5 at row 7, column 1"),
        (8, 4, -1.0, "one 1 and zeros, got -1 at row 8, column 4"),
        (9, 5, 1.25, "0 to 1, got 1.25 at row 9, column 5"),
        (3, 6, -1.0, "0 to 5, got -1 at row 3, column 6"),
        (11, slice(0, 3), [0.0, 1.0, 1.0], "got 1 at row 11, column 2"),  # two at once
    ],
)
def test_data_outside_their_domain(storage, row, column, value, words):
    X, y = table()
    X[row, column] = value
    with pytest.raises(ValueError, match=words):
        stated.solve(storage(X), y, **BALL, categories=CATEGORIES, bounds=BOUNDS)


def test_one_sided_bounds_are_kept_to_and_change_nothing():
    X, y = table()
    lower = np.where(np.arange(8) == 7, X[:, 7].min(), -math.inf)
    one_sided = stated.solve(X, y, **BALL, bounds=(lower, math.inf))
    assert one_sided.objective == stated.solve(X, y, **BALL).objective
    with pytest.raises(ValueError, match="column 7"):
        stated.solve(X, y, **BALL, bounds=(lower + 1e-6, math.inf))


def test_unequal_costs_of_one_group():
    X, y = table()
    costs = np.array([1.0, 1.0, 2.0, 1.0, 1.0, 1.0, 1.0, 1.0])
    with pytest.raises(ValueError, match="must be equal, got 1 for column 0 and 2 for column 2"):
        stated.solve(X, y, **BALL, categories=CATEGORIES, feature_costs=costs)


def test_names_of_columns():
    pd = pytest.importorskip("pandas")
    X, y = table()
    names = ["red", "green", "blue", "small", "large", "share", "count", "size"]
    frame = pd.DataFrame(X, columns=names)
    named = [["red", "green", "blue"], ["small", "large"]]
    expected = stated.solve(X, y, **BALL, categories=CATEGORIES, bounds=BOUNDS)
    found = stated.solve(frame, y, **BALL, categories=named, bounds=BOUNDS)
    assert found.objective == pytest.approx(expected.objective, abs=1e-12)
    model = stated.classifier(**BALL, categories=named, bounds=BOUNDS).fit(frame, y)
    assert model.worst_case_loss_ == pytest.approx(expected.objective, abs=1e-6)
    with pytest.raises(ValueError, match="categories names the column 'violet'"):
        stated.solve(frame, y, **BALL, categories=[["violet"]])
    frame.loc[2, "green"] = 0.5
    with pytest.raises(ValueError, match="row 2, column 'green'"):
        stated.solve(frame, y, **BALL, categories=named)


def test_a_radius_of_zero_is_plain_logistic_regression():
    X, y = table()
    plain = stated.solve(X, y, epsilon=0.0, kappa=1.0)
    found = stated.solve(X, y, epsilon=0.0, kappa=1.0, categories=CATEGORIES, bounds=BOUNDS)
    assert found.objective == plain.objective


@pytest.mark.filterwarnings("ignore:class .* is almost never predicted:UserWarning")
def test_everywhere_that_feature_costs_are_taken():
    X, y = table(120)
    given = {"categories": CATEGORIES, "bounds": BOUNDS}
    fit = stated.solve(X, y, **BALL, **given)
    assert zoo.worst_loss(fit, X, y, **BALL, **given) == pytest.approx(fit.objective)
    limit = stated.epsilon_max(X, y, kappa=math.inf, **given)
    path = stated.regularization_path(X, y, kappa=math.inf, n_epsilons=3, **given)
    assert path.epsilon_max == limit
    assert (path.gaps <= 1e-6).all()
    assert np.abs(path.coefs[0]).max() < 1e-2 < np.abs(path.coefs[-1]).max()
    model = stated.search(epsilons=[0.1], kappas=[1.0], cv=2, epsilon=0.1, **given).fit(X, y)
    assert model.dual_gap_ <= 1e-6


def test_far_numbers_are_shifted_with_their_bounds():
    X, y = table()
    near = stated.solve(X, y, **BALL, categories=CATEGORIES, bounds=BOUNDS)
    far = X.copy()
    far[:, 6] += 1e6
    bounds = (np.array(BOUNDS[0]), np.array(BOUNDS[1]))
    bounds[0][6] += 1e6
    bounds[1][6] += 1e6
    found = stated.solve(far, y, **BALL, categories=CATEGORIES, bounds=bounds)
    assert found.gap <= 1e-6
    assert found.objective == pytest.approx(near.objective, abs=1e-6)
