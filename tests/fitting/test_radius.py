"""The suggested radius: what it covers, and how it scales."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import brentq
from scipy.special import expit

import drlogit
from drlogit import suggest_radius
from drlogit.fitting import suggested_radius
from drlogit.problem.norms import NORMS
from drlogit.problem.problem import build_problem

pytestmark = pytest.mark.slow

X, Y = drlogit.datasets.make_synthetic(300, 6, random_state=0)


def score_at_truth(rng, n_samples, n_features, *, size, intercept, shift=0.0):
    """Samples of a logistic model, and the score at the truth with the best intercept."""
    beta = rng.standard_normal(n_features)
    beta *= size / np.linalg.norm(beta)
    X = rng.standard_normal((n_samples, n_features))
    y = np.where(rng.random(n_samples) < expit(X @ beta + intercept), 1, -1)

    def slope(b):
        return y * expit(-y * (X @ beta + b))

    fitted = brentq(lambda b: slope(b).mean(), -20.0, 20.0)
    return X + shift, y, slope(fitted) @ (X + shift) / n_samples


# With 1000 repetitions, 95 % are 0.96 in the first case and 0.98 to 1.00 in the others: it is right
# where samples are many, and too large where the preliminary model is shrunk.
@pytest.mark.parametrize(
    ("n_samples", "n_features", "size", "low", "repeats"),
    [(400, 5, 1.0, 0.88, 80), (300, 40, 1.0, 0.92, 30), (60, 100, 2.0, 0.97, 15)],
    ids=["many samples", "fewer", "more features than samples"],
)
def test_coverage(n_samples, n_features, size, low, repeats):
    """‖score at the truth‖ ≤ ε, so that the truth is optimal within the ball, often enough."""
    rng = np.random.default_rng(11)
    hits = dict.fromkeys(NORMS, 0)
    for _ in range(repeats):
        X, y, score = score_at_truth(rng, n_samples, n_features, size=size, intercept=0.5)
        for name, norm in NORMS.items():
            epsilon = suggest_radius(X, y, norm=name, n_draws=300)
            hits[name] += norm.value(score) <= epsilon
    for name, count in hits.items():
        assert count / repeats >= low, name


@pytest.mark.parametrize("norm", NORMS)
def test_scale_shift_and_labels(norm):
    epsilon = suggest_radius(X, Y, norm=norm)
    assert suggest_radius(3.0 * X, Y, norm=norm) == pytest.approx(3.0 * epsilon, rel=1e-6)
    assert suggest_radius(0.0 * X, Y, norm=norm) == 0.0
    assert suggest_radius(X + 50.0, Y, norm=norm) == pytest.approx(epsilon, rel=1e-6)
    assert suggest_radius(X, np.where(Y > 0, "b", "a"), norm=norm) == epsilon
    other = suggest_radius(X, Y, norm=norm, random_state=np.random.default_rng(5))
    assert other == pytest.approx(epsilon, rel=0.05)
    costs = np.array([1.0, 2.0, 0.5, 1.0, 3.0, 1.0])
    assert suggest_radius(X, Y, norm=norm, feature_costs=costs) == pytest.approx(
        suggest_radius(X * costs, Y, norm=norm), rel=1e-6
    )


def test_scores_are_centred_where_no_intercept_does_it():
    """The scores at the preliminary model and their covariance, written down with the matrix."""
    shifted, weights = X + 2.0 * Y[:, None], 1.0 + np.arange(300) % 3  # scores far from 0
    problem = build_problem(
        shifted, Y, epsilon=1.0, kappa=math.inf, fit_intercept=False, sample_weight=weights
    )
    coefficients = np.linspace(-0.5, 0.5, 6)
    found = suggested_radius._radius(problem, coefficients, 0.5, 20_000, seed=0)
    Z, w = Y[:, None] * shifted, weights / weights.sum()
    scores = Z / (1.0 + np.exp(Z @ coefficients))[:, None]
    scores -= w @ scores
    draws = np.random.default_rng(1).standard_normal((20_000, 300)) @ (w[:, None] * scores)
    assert found == pytest.approx(np.median(np.abs(draws).sum(axis=1)), rel=0.03)


def test_confidence_and_size():
    low, high = (suggest_radius(X, Y, confidence=c) for c in (0.5, 0.99))
    assert low < suggest_radius(X, Y) < high
    X4, Y4 = drlogit.datasets.make_synthetic(4800, 6, random_state=5)
    assert suggest_radius(X4, Y4) == pytest.approx(suggest_radius(X, Y) / 4.0, rel=0.15)


def test_immovable_features_do_not_count():
    costs = np.array([1.0, 1.0, 1.0, math.inf, math.inf, math.inf])
    some = suggest_radius(X, Y, feature_costs=costs)
    assert some == pytest.approx(0.5 * suggest_radius(X, Y), rel=0.1)
    # Moving the origin of an immovable feature, or copying it, changes nothing.
    moved = X + 9.0 * np.isinf(costs)
    assert suggest_radius(moved, Y, feature_costs=costs) == pytest.approx(some, rel=1e-6)
    doubled = np.column_stack([X, X[:, 3]])
    assert suggest_radius(doubled, Y, feature_costs=[*costs, math.inf]) == pytest.approx(
        some, rel=1e-3
    )
    assert suggest_radius(X, Y, feature_costs=np.full(6, math.inf)) == 0.0


def test_the_order_of_columns_does_not_matter_beside_categories():
    levels = np.eye(3)[np.arange(300) % 3, :2]
    found = [
        suggest_radius(np.hstack(parts), Y, categories=[group], fit_intercept=False)
        for parts, group in (((X[:, :2], levels), [2, 3]), ((levels, X[:, :2]), [0, 1]))
    ]
    assert found[0] == pytest.approx(found[1], rel=1e-9)


def test_weights():
    equal = suggest_radius(X, Y, sample_weight=np.full(300, 7.0))
    assert equal == pytest.approx(suggest_radius(X, Y), rel=1e-9)
    weights = np.r_[np.ones(150), np.zeros(150)]
    half = suggest_radius(X, Y, sample_weight=weights)
    assert half == pytest.approx(suggest_radius(X[:150], Y[:150]), rel=1e-6)
    unequal = suggest_radius(X, Y, sample_weight=np.r_[np.full(20, 20.0), np.ones(280)])
    assert unequal > equal


def test_separable_data_and_sparse_data():
    y = np.where(X[:, 0] > 0.0, 1, -1)
    epsilon = suggest_radius(X, y)
    # Plain scores would vanish here; ours stay of the order of the constant model's.
    assert 0.1 * suggest_radius(X, Y) < epsilon < 2.0 * suggest_radius(X, Y)
    thin = np.where(np.abs(X) > 1.0, X, 0.0)
    costs = [1.0, math.inf, 1.0, 1.0, 1.0, 1.0]
    dense = suggest_radius(thin, Y, feature_costs=costs)
    assert suggest_radius(sp.csr_array(thin), Y, feature_costs=costs) == pytest.approx(
        dense, rel=1e-6
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"confidence": 1.0}, r"confidence must be in \(0, 1\), got 1.0"),
        ({"confidence": "high"}, "confidence must be in"),
        ({"n_draws": 0}, "n_draws must be a whole number >= 1, got 0"),
        ({"norm": "l7"}, "norm must be one of"),
    ],
)
def test_bad_input(options, message):
    with pytest.raises(ValueError, match=message):
        suggest_radius(X, Y, **options)
