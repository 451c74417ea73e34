"""What the worst case does to a given model: its loss, and a distribution that comes close."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import linprog

import domain_zoo
import drlogit
import zoo
from drlogit import worst_case_distribution, worst_case_loss
from drlogit.problem.norms import NORMS
from transport_plan import check_distribution

NORM_NAMES = tuple(NORMS)


def clouds(n_samples=60, n_features=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_samples, n_features)) * [1.0, 3.0, 0.2, 1.5][:n_features] + 0.4
    score = X @ rng.standard_normal(n_features) + rng.standard_normal(n_samples)
    return X, np.where(score > np.median(score), 1, -1)


X0, Y0 = clouds()
X0.flags.writeable = Y0.flags.writeable = False  # whatever is asked, they are left alone


# --- the loss -------------------------------------------------------------------------------


@pytest.mark.parametrize("case", zoo.ZOO, ids=repr)
def test_loss_of_a_fit_is_its_objective(case):
    result = drlogit.solve(case.X, case.y, tol=1e-5, **case.options)
    options = {k: v for k, v in case.options.items() if k != "fit_intercept"}
    assert worst_case_loss(result, case.X, case.y, **options) == pytest.approx(
        result.objective, abs=1e-12
    )


@pytest.mark.parametrize("seed", [0, 3, 5])
def test_the_ball_of_a_result_is_that_of_its_fit(seed):
    case = domain_zoo.generated(seed)
    X, y, weights = (case[name] for name in ("X", "y", "sample_weight"))
    result = drlogit.solve(**case)
    found = drlogit.worst_case(result, X, y, "log_loss", sample_weight=weights)
    assert found.epsilon == case["epsilon"]
    assert found.value == pytest.approx(result.objective, abs=1e-11)


def test_the_flip_costs_of_a_result_are_its_own():
    result = drlogit.solve(X0, Y0, epsilon=0.05, kappa={-1: 2.0, 1: 0.5}, norm="l2")
    found = drlogit.worst_case(result, X0, Y0, "log_loss")
    assert found.value == pytest.approx(result.objective, abs=1e-11)
    costs = np.linspace(0.5, 2.0, Y0.size)
    by_sample = drlogit.solve(X0, Y0, epsilon=0.05, kappa=costs)
    with pytest.raises(ValueError, match="fitted with one kappa for each sample"):
        drlogit.worst_case(by_sample, X0, Y0, "log_loss")
    found = drlogit.worst_case(by_sample, X0, Y0, "log_loss", kappa=costs)
    assert found.value == pytest.approx(by_sample.objective, abs=1e-11)


# --- the distribution -----------------------------------------------------------------------


@pytest.mark.parametrize("norm", NORM_NAMES)
@pytest.mark.parametrize(
    ("kappa", "fraction"), [(0.25, 0.3), (1.0, 0.8), (7.0, 0.02), (math.inf, 0.5)]
)
def test_distributions_of_fits_come_within_1e_4_of_the_dual_bound(norm, kappa, fraction):
    X, y = drlogit.datasets.make_synthetic(300, 8, random_state=7)
    epsilon = fraction * drlogit.epsilon_max(X, y, kappa=kappa, norm=norm)
    ball = {"epsilon": epsilon, "kappa": kappa, "norm": norm}
    result = drlogit.solve(X, y, tol=1e-8, **ball)
    distribution = worst_case_distribution(result, X, y, tol=9e-5, **ball)
    check_distribution(distribution, result, X, y, tol=9e-5, **ball)
    assert abs(distribution.expected_loss - result.dual_objective) <= 1e-4


def test_no_distribution_with_moves_as_short_does_better():
    """Linear program over flips and moves of one length: the oracle of the greedy choice."""
    coef, intercept, kappa, epsilon = np.array([1.0, -2.0, 0.5, 0.3]), 0.2, math.inf, 0.3
    distribution = worst_case_distribution(
        (coef, intercept), X0, Y0, epsilon=epsilon, kappa=kappa, tol=0.05
    )
    u, d = Y0 * (X0 @ coef + intercept), distribution.longest_move
    gain = np.logaddexp(0.0, -u + 2.0 * d) - np.logaddexp(0.0, -u)
    best = linprog(-gain, A_ub=[np.full(60, d)], b_ub=[epsilon], bounds=(0.0, 1.0 / 60))
    optimum = np.logaddexp(0.0, -u).mean() - best.fun
    assert distribution.expected_loss == pytest.approx(optimum, abs=1e-9)
    assert distribution.gap == pytest.approx(0.05, rel=1e-6)  # and no shorter one would do


def test_points_of_sparse_samples_are_sparse():
    X = sp.csr_array(np.where(np.abs(X0) > 0.5, X0, 0.0))
    ball = {"epsilon": 0.1, "kappa": math.inf, "norm": "linf"}
    model = ([1.0, 0.0, -1.0, 2.0], 0.1)
    distribution = worst_case_distribution(model, X, Y0, **ball)
    points = distribution.points(X)
    assert sp.issparse(points)
    np.testing.assert_allclose(points.toarray(), distribution.points(X.toarray()), atol=1e-12)
    with pytest.raises(ValueError, match="4 features of at least 60 rows"):
        distribution.points(X[:10])
    check_distribution(distribution, model, X, Y0, **ball)


# --- corners --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("coef", "intercept", "costs", "ball", "gain"),
    [
        ([1.0, -1.0, 0.5, 0.2], 0.0, math.inf, {"epsilon": 0.2, "kappa": 1.0}, None),
        ([1.0, -1.0, 0.5, 0.2], 0.0, math.inf, {"epsilon": 0.2, "kappa": math.inf}, 0.0),
        ([0.0, 0.0, 0.0, 1e-3], 0.0, 1.0, {"epsilon": 5.0, "kappa": 0.01}, None),
        (np.zeros(4), 1.0, 1.0, {"epsilon": 0.1, "kappa": math.inf}, 0.0),
        (np.zeros(4), 1.0, 1.0, {"epsilon": 0.1, "kappa": 1.0}, 0.1),
        ([1.0, -1.0, 0.5, 0.2], 0.3, 1.0, {"epsilon": 0.0, "kappa": 1.0}, 0.0),
    ],
    ids="immovable nothing-to-do more-than-flips-use constant flips-alone no-radius".split(),
)
def test_corners(coef, intercept, costs, ball, gain):
    model, costs = (np.array(coef), intercept), np.full(4, costs)
    found = worst_case_distribution(model, X0, Y0, feature_costs=costs, **ball)
    check_distribution(found, model, X0, Y0, norm="l1", costs=costs, **ball)
    if gain is not None:
        loss = np.logaddexp(0.0, -Y0 * (X0 @ model[0] + intercept)).mean()
        assert found.moved_mass == 0.0
        assert found.expected_loss == pytest.approx(loss + gain, rel=1e-12)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epsilon": -1.0}, "epsilon must be finite and >= 0"),
        ({"kappa": 0.0}, "kappa must be > 0"),
        ({"feature_costs": [1.0]}, "feature_costs must have shape"),
        ({"tol": 0.0}, "tol must be finite and > 0"),
        ({"X": X0[:, :3]}, "X has 3 features, but the model has 4"),
        ({"y": np.ones(60)}, "y must hold two classes"),
        ({"model": ([1.0, np.nan, 0, 0], 0.0)}, "NaN or infinity"),
        ({"model": ([1.0] * 4, [1.0, 2.0])}, "intercept must be one number"),
        ({"model": "model.json"}, "must be a fitted linear classifier.*got str"),
    ],
)
def test_bad_input_says_what_is_wrong(change, message):
    arguments = {"model": ([1.0] * 4, 0.0), "X": X0, "y": Y0, "epsilon": 0.1, "kappa": 1.0}
    with pytest.raises(ValueError, match=message):
        worst_case_distribution(**(arguments | change))
