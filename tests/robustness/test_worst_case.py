"""What the worst case does to a given model: its loss, and a distribution that comes close."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog
from sklearn.linear_model import LogisticRegression

import drlogit
import zoo
from drlogit import misclassification_bounds, worst_case_distribution, worst_case_loss
from drlogit.problem.norms import NORMS
from drlogit.robustness.linear_model import as_linear

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


@given(
    seed=st.integers(0, 10**6),
    epsilon=st.floats(0.0, 3.0),
    kappa=st.sampled_from([0.1, 1.0, 5.0, math.inf]),
    norm=st.sampled_from(NORM_NAMES),
)
def test_loss_is_the_smallest_value_over_lambda(seed, epsilon, kappa, norm):
    rng = np.random.default_rng(seed)
    coef, intercept = rng.standard_normal(4), rng.standard_normal()
    u = Y0 * (X0 @ coef + intercept)
    least = NORMS[norm].dual(coef)
    kinks = u[u > kappa * least] / kappa if math.isfinite(kappa) else []
    # Convex and piecewise linear in λ: smallest at a kink or at the left end.
    values = [
        epsilon * lam
        + np.mean(np.logaddexp(0.0, -u))
        + (np.mean(np.maximum(u - kappa * lam, 0.0)) if math.isfinite(kappa) else 0.0)
        for lam in [least, *kinks]
    ]
    if epsilon == 0.0:
        values = [np.mean(np.logaddexp(0.0, -u))]
    found = worst_case_loss((coef, intercept), X0, Y0, epsilon=epsilon, kappa=kappa, norm=norm)
    assert found == pytest.approx(min(values), rel=1e-12)


def test_weights_are_repetitions_and_zero_weight_is_absence():
    coef, times = np.array([1.0, -0.5, 2.0, 0.1]), np.arange(60) % 4
    ball = {"epsilon": 0.1, "kappa": 1.0}
    weighted = worst_case_loss((coef, 0.3), X0, Y0, sample_weight=times, **ball)
    repeated = worst_case_loss(
        (coef, 0.3), np.repeat(X0, times, axis=0), np.repeat(Y0, times), **ball
    )
    assert weighted == pytest.approx(repeated, rel=1e-12)
    spoiled = np.where((times == 0)[:, None], 1e6, X0)
    assert worst_case_loss((coef, 0.3), spoiled, Y0, sample_weight=times, **ball) == weighted
    distribution = worst_case_distribution((coef, 0.3), X0, Y0, sample_weight=times, **ball)
    assert not (times[distribution.index] == 0).any()


# --- the distribution -----------------------------------------------------------------------


def check(distribution, model, X, y, *, epsilon, kappa, norm, costs=None, weights=None, tol=1e-4):
    """Everything from scratch: points, labels, transport plan, expected loss."""
    linear = as_linear(model)
    X = X.toarray() if sp.issparse(X) else np.asarray(X, dtype=float)
    costs = np.ones(X.shape[1]) if costs is None else np.asarray(costs)
    weights = np.ones(len(y)) if weights is None else np.asarray(weights)
    points = distribution.points(X)
    positive = np.unique(y)[1]
    signs = np.where(distribution.label == positive, 1.0, -1.0)
    own = np.asarray(y)[distribution.index]
    moves = points - X[distribution.index]
    # The mass comes from the samples, and from nowhere else.
    sent = np.bincount(distribution.index, distribution.mass, minlength=len(y))
    np.testing.assert_allclose(sent, weights / weights.sum(), atol=1e-14)
    assert (distribution.mass > 0.0).all()
    # Immovable features have not moved.
    assert not moves[:, np.isinf(costs)].any()
    movable = np.isfinite(costs)
    lengths = np.array([NORMS[norm].value(row) for row in moves[:, movable] * costs[movable]])
    np.testing.assert_allclose(lengths, distribution.distance, rtol=1e-9, atol=1e-12)
    flipped = distribution.label != own
    np.testing.assert_array_equal(flipped, distribution.flipped)
    cost = distribution.mass @ lengths + (
        kappa * distribution.mass[flipped].sum() if flipped.any() else 0.0
    )
    assert cost <= epsilon * (1.0 + 1e-12)
    assert distribution.transport_cost <= epsilon
    assert distribution.transport_cost == pytest.approx(cost, rel=1e-9)
    loss = distribution.mass @ np.logaddexp(0.0, -signs * (points @ linear.coef + linear.intercept))
    assert loss == pytest.approx(distribution.expected_loss, abs=1e-9)
    assert -1e-12 <= distribution.supremum - loss <= tol * (1.0 + 1e-6)


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
    check(distribution, result, X, y, tol=9e-5, **ball)
    assert abs(distribution.expected_loss - result.dual_objective) <= 1e-4


@pytest.mark.parametrize("norm", NORM_NAMES)
@pytest.mark.parametrize("kappa", [0.3, 3.0, math.inf])
@pytest.mark.parametrize("tol", [0.1, 1e-6])
def test_distribution_with_weights_costs_and_immovable_features(norm, kappa, tol):
    costs, weights = np.array([0.5, math.inf, 2.0, 1.0]), 1.0 + np.arange(60) % 3
    model = LogisticRegression().fit(X0, Y0)
    ball = {"epsilon": 0.4, "kappa": kappa, "norm": norm}
    distribution = worst_case_distribution(
        model, X0, Y0, feature_costs=costs, sample_weight=weights, tol=tol, **ball
    )
    check(distribution, model, X0, Y0, costs=costs, weights=weights, tol=tol, **ball)


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


def test_flips_go_to_the_largest_margins_and_attain_the_supremum():
    coef = np.array([0.01, 0.0, 0.0, 3.0])
    costs = [1.0, 1.0, 1.0, math.inf]  # moving is hopeless: flip
    distribution = worst_case_distribution(
        (coef, 0.0), X0, Y0, epsilon=0.125, kappa=1.0, feature_costs=costs
    )
    u = Y0 * (X0 @ coef)
    flipped = distribution.index[distribution.flipped]
    assert set(flipped) == set(np.argsort(-u)[:8])  # 7.5 of 60 samples
    assert distribution.flipped_mass == pytest.approx(0.125)
    assert distribution.moved_mass == 0.0
    assert distribution.gap == pytest.approx(0.0, abs=1e-11)


def test_points_of_sparse_samples_are_sparse():
    X = sp.csr_array(np.where(np.abs(X0) > 0.5, X0, 0.0))
    ball = {"epsilon": 0.1, "kappa": math.inf, "norm": "linf"}
    model = ([1.0, 0.0, -1.0, 2.0], 0.1)
    distribution = worst_case_distribution(model, X, Y0, **ball)
    points = distribution.points(X)
    assert sp.issparse(points)
    np.testing.assert_allclose(points.toarray(), distribution.points(X.toarray()), atol=1e-12)
    check(distribution, model, X, Y0, **ball)


# --- flip costs by label and by sample --------------------------------------------------------


@pytest.mark.parametrize("norm", NORM_NAMES)
@pytest.mark.parametrize("by", ["label", "sample"])
def test_flip_costs_by_label_and_by_sample(norm, by):
    """Against the smallest value over λ, and the linear program of the errors."""
    rng = np.random.default_rng(4)
    coef, epsilon, w = 2.0 * rng.standard_normal(4), 0.2, rng.random(60)
    w /= w.sum()
    flips = rng.choice([0.0, 0.3, 1.0, 4.0, math.inf], 60)
    flips = flips if by == "sample" else np.where(Y0 > 0, 0.4, 2.0)
    u, least = Y0 * (X0 @ coef), NORMS[norm].dual(coef)
    some = (flips > 0.0) & np.isfinite(flips)
    kinks = u[some] / flips[some]
    gains = [
        epsilon * lam + w[flips < math.inf] @ np.maximum(u - flips * lam, 0.0)[flips < math.inf]
        for lam in [least, *kinks[kinks > least]]
    ]
    ball = {
        "epsilon": epsilon, "kappa": flips if by == "sample" else {1: 0.4, -1: 2.0},
        "norm": norm, "sample_weight": w,
    }  # fmt: skip
    arguments = ((coef, 0.0), X0, Y0)
    loss = float(w @ np.logaddexp(0.0, -u) + min(gains))
    assert worst_case_loss(*arguments, **ball) == pytest.approx(loss, rel=1e-12)
    found = worst_case_distribution(*arguments, **ball)
    assert found.supremum == pytest.approx(loss, rel=1e-12)
    assert found.transport_cost <= epsilon
    assert found.gap <= 1e-4
    bounds = misclassification_bounds(*arguments, **ball)
    for margins, wrong in ((u, bounds.worst), (-u, 1.0 - bounds.best)):
        cost = np.where(margins > 0.0, np.minimum(margins / least, flips), 0.0)
        most = linprog(-w, A_ub=[w * cost], b_ub=[epsilon], bounds=(0.0, 1.0))
        assert wrong == pytest.approx(-most.fun, abs=1e-9)


# --- corners --------------------------------------------------------------------------------


@pytest.mark.parametrize("kappa", [1.0, math.inf])
def test_without_a_radius_nothing_happens(kappa):
    model = LogisticRegression().fit(X0, Y0)
    loss = np.logaddexp(0.0, -Y0 * model.decision_function(X0)).mean()
    ball = {"epsilon": 0.0, "kappa": kappa}
    assert worst_case_loss(model, X0, Y0, **ball) == pytest.approx(loss, rel=1e-12)
    distribution = worst_case_distribution(model, X0, Y0, **ball)
    assert distribution.transport_cost == 0.0
    assert not distribution.flipped.any()
    np.testing.assert_array_equal(distribution.index, np.arange(60))
    np.testing.assert_array_equal(distribution.points(X0), X0)


@pytest.mark.parametrize(
    ("coef", "intercept", "costs", "ball", "gain"),
    [
        ([1.0, -1.0, 0.5, 0.2], 0.0, math.inf, {"epsilon": 0.2, "kappa": 1.0}, None),
        ([1.0, -1.0, 0.5, 0.2], 0.0, math.inf, {"epsilon": 0.2, "kappa": math.inf}, 0.0),
        ([0.0, 0.0, 0.0, 1e-3], 0.0, 1.0, {"epsilon": 5.0, "kappa": 0.01}, None),
        (np.zeros(4), 1.0, 1.0, {"epsilon": 0.1, "kappa": math.inf}, 0.0),
        (np.zeros(4), 1.0, 1.0, {"epsilon": 0.1, "kappa": 1.0}, 0.1),
    ],
    ids=["immovable", "nothing can be done", "more than flips can use", "constant", "flips alone"],
)
def test_corners(coef, intercept, costs, ball, gain):
    model, costs = (np.array(coef), intercept), np.full(4, costs)
    found = worst_case_distribution(model, X0, Y0, feature_costs=costs, **ball)
    check(found, model, X0, Y0, norm="l1", costs=costs, **ball)
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
        ({"model": (1.0, 2.0, 3.0)}, "got a tuple of 3"),
        ({"model": ([1.0, np.nan, 0, 0], 0.0)}, "with NaN or infinity"),
        ({"model": ([[1.0], [2.0]], 0.0)}, "coef must be a vector or a single row"),
        ({"model": (["a"], 0.0)}, "coef must hold numbers"),
        ({"model": ([1.0] * 4, [1.0, 2.0])}, "intercept must be one number"),
        ({"model": "model.json"}, "must be a fitted linear classifier.*got str"),
    ],
)
def test_bad_input_says_what_is_wrong(change, message):
    arguments = {"model": ([1.0] * 4, 0.0), "X": X0, "y": Y0, "epsilon": 0.1, "kappa": 1.0}
    with pytest.raises(ValueError, match=message):
        worst_case_distribution(**(arguments | change))


def test_points_wants_the_samples():
    distribution = worst_case_distribution(([1.0] * 4, 0.0), X0, Y0, epsilon=0.1, kappa=1.0)
    with pytest.raises(ValueError, match="4 features of at least 60 rows"):
        distribution.points(X0[:10])
