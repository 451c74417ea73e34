"""What the worst case does to a given model, and which models can be asked about."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, IncrementalPCA, TruncatedSVD
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import SelectKBest, VarianceThreshold
from sklearn.impute import SimpleImputer
from sklearn.linear_model import (
    LinearRegression,
    LogisticRegression,
    Perceptron,
    RidgeClassifier,
    SGDClassifier,
)
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    PolynomialFeatures,
    RobustScaler,
    StandardScaler,
)
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection
from sklearn.svm import SVC, LinearSVC

import drlogit
import zoo
from drlogit import worst_case_distribution, worst_case_loss
from drlogit.problem.norms import NORMS
from drlogit.robustness.linear_model import LinearModel, as_linear

NORM_NAMES = tuple(NORMS)


def clouds(n_samples=60, n_features=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_samples, n_features)) * [1.0, 3.0, 0.2, 1.5][:n_features] + 0.4
    score = X @ rng.standard_normal(n_features) + rng.standard_normal(n_samples)
    return X, np.where(score > np.median(score), 1, -1)


X0, Y0 = clouds()


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


def test_feature_costs_in_standard_deviations_are_a_scaler():
    spread = X0.std(axis=0)
    pipe = make_pipeline(StandardScaler(), LogisticRegression()).fit(X0, Y0)
    ball = {"epsilon": 0.2, "kappa": 1.0, "norm": "l2"}
    raw = worst_case_loss(pipe, X0, Y0, feature_costs=1.0 / spread, space="given", **ball)
    scaled = worst_case_loss(pipe[-1], pipe[:-1].transform(X0), Y0, **ball)
    assert raw == pytest.approx(scaled, rel=1e-12)


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


#: Norm, κ, and ε as a fraction of the radius from which on the model is constant.
TWENTY = [
    ("l1", 0.25, 0.3), ("l1", 1.0, 0.1), ("l1", 1.0, 0.8), ("l1", 7.0, 0.02), ("l1", 7.0, 0.3),
    ("l1", math.inf, 0.01), ("l1", math.inf, 0.5),
    ("l2", 0.25, 0.3), ("l2", 1.0, 0.1), ("l2", 1.0, 0.8), ("l2", 7.0, 0.02), ("l2", 7.0, 0.3),
    ("l2", math.inf, 0.01), ("l2", math.inf, 0.5),
    ("linf", 0.25, 0.3), ("linf", 1.0, 0.1), ("linf", 7.0, 0.02), ("linf", 7.0, 0.3),
    ("linf", math.inf, 0.01), ("linf", math.inf, 0.5),
]  # fmt: skip


@pytest.mark.parametrize("number", range(20))
def test_twenty_fits_come_within_1e_4_of_the_dual_bound(number):
    norm, kappa, fraction = TWENTY[number]
    X, y = drlogit.datasets.make_synthetic(300, 8, random_state=number)
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


def test_tighter_tolerance_takes_longer_moves():
    ball = {"epsilon": 0.1, "kappa": math.inf}
    loose, tight = (
        worst_case_distribution(([1.0, 0, 0, 0], 0.0), X0, Y0, tol=tol, **ball)
        for tol in (1e-3, 1e-5)
    )
    assert tight.gap < loose.gap <= 1e-3
    assert tight.longest_move > 10.0 * loose.longest_move
    assert tight.moved_mass < loose.moved_mass


def test_no_distribution_with_moves_as_short_does_better():
    """Linear program over flips and moves of one length: the oracle of the greedy choice."""
    from scipy.optimize import linprog

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


def test_points_wants_the_samples():
    distribution = worst_case_distribution(([1.0] * 4, 0.0), X0, Y0, epsilon=0.1, kappa=1.0)
    with pytest.raises(ValueError, match="4 features of at least 60 rows"):
        distribution.points(X0[:10])


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


@pytest.mark.parametrize("kappa", [1.0, math.inf])
def test_constant_model_cannot_be_moved_only_flipped(kappa):
    y = np.where(np.arange(60) < 45, 1, -1)
    model, ball = (np.zeros(4), 1.0), {"epsilon": 0.1, "kappa": kappa}
    distribution = worst_case_distribution(model, X0, y, **ball)
    check(distribution, model, X0, y, norm="l1", **ball)
    assert distribution.moved_mass == 0.0
    gain = 0.1 if kappa == 1.0 else 0.0
    plain = 0.75 * np.logaddexp(0, -1) + 0.25 * np.logaddexp(0, 1)
    assert distribution.expected_loss == pytest.approx(plain + gain, rel=1e-12)


def test_all_features_immovable():
    model, costs = (np.array([1.0, -1.0, 0.5, 0.2]), 0.0), np.full(4, math.inf)
    for kappa in (1.0, math.inf):
        ball = {"epsilon": 0.2, "kappa": kappa}
        distribution = worst_case_distribution(model, X0, Y0, feature_costs=costs, **ball)
        check(distribution, model, X0, Y0, norm="l1", costs=costs, **ball)
        assert not distribution.direction.any()


def test_more_budget_than_flips_can_use():
    model = (np.array([0.0, 0.0, 0.0, 1e-3]), 0.0)
    ball = {"epsilon": 5.0, "kappa": 0.01}
    distribution = worst_case_distribution(model, X0, Y0, **ball)
    check(distribution, model, X0, Y0, norm="l1", **ball)
    u = Y0 * X0[:, 3]
    assert distribution.flipped_mass == pytest.approx((u >= 0.01).mean())


def test_inputs_are_left_alone():
    X, y, coef = X0.copy(), Y0.copy(), np.ones(4)
    for array in (X, y, coef):
        array.flags.writeable = False
    worst_case_distribution((coef, 0.0), X, y, epsilon=0.3, kappa=1.0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epsilon": -1.0}, "epsilon must be finite and >= 0"),
        ({"kappa": 0.0}, "kappa must be > 0"),
        ({"norm": "l3"}, "norm must be one of"),
        ({"feature_costs": [1.0]}, "feature_costs must have shape"),
        ({"sample_weight": np.zeros(60)}, "sample_weight must have a positive entry"),
        ({"tol": 0.0}, "tol must be finite and > 0"),
        ({"tol": "small"}, "tol must be finite and > 0"),
        ({"X": X0[:, :3]}, "X has 3 features, but the model has 4"),
        ({"X": X0[:9]}, "y must have one label per row of X: 9, got 60"),
        (
            {"X": np.full_like(X0, np.nan)},
            "X must hold finite numbers, got NaN in row 0 of column 0",
        ),
        ({"y": np.ones(60)}, "y must hold two classes"),
        ({"model": (1.0, 2.0, 3.0)}, "got a tuple of 3"),
        ({"model": ([1.0, np.nan, 0, 0], 0.0)}, "with NaN or infinity"),
        ({"model": ([[1.0], [2.0]], 0.0)}, "coef must be a vector or a single row"),
        ({"model": (["a"], 0.0)}, "coef must hold numbers"),
        ({"model": ([1.0] * 4, [1.0, 2.0])}, "intercept must be one number"),
        ({"model": ([1.0] * 4, math.inf)}, "intercept must be finite"),
        ({"model": "model.json"}, "must be a fitted linear classifier.*got str"),
    ],
)
def test_bad_input_says_what_is_wrong(change, message):
    arguments = {"model": ([1.0] * 4, 0.0), "X": X0, "y": Y0, "epsilon": 0.1, "kappa": 1.0}
    with pytest.raises(ValueError, match=message):
        worst_case_distribution(**(arguments | change))


# --- any linear model -----------------------------------------------------------------------


def scores_agree(model, X):
    linear = as_linear(model)
    matrix = X.toarray() if sp.issparse(X) else np.asarray(X, dtype=float)
    np.testing.assert_allclose(
        matrix @ linear.coef + linear.intercept, model.decision_function(X), atol=1e-9
    )


@pytest.mark.parametrize(
    "classifier",
    [
        LogisticRegression(),
        LogisticRegression(fit_intercept=False),
        LinearSVC(),
        LinearSVC(fit_intercept=False),
        SGDClassifier(random_state=0),
        RidgeClassifier(),
        RidgeClassifier(fit_intercept=False),
        Perceptron(),
        LinearDiscriminantAnalysis(),
        SVC(kernel="linear"),
        drlogit.DRLogisticRegression(epsilon=0.01),
        GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=2),
    ],
    ids=lambda c: type(c).__name__,
)
def test_classifiers(classifier):
    labels = np.where(Y0 > 0, "apple", "pear")  # the positive class is the pear
    model = classifier.fit(X0, labels)
    scores_agree(model, X0)
    u = np.where(labels == "pear", 1.0, -1.0) * model.decision_function(X0)
    found = worst_case_loss(model, X0, labels, epsilon=0.0, kappa=1.0)
    assert found == pytest.approx(np.logaddexp(0.0, -u).mean(), rel=1e-9)
    # What it knows of its classes, it needs not see again.
    one = worst_case_distribution(model, X0[:1], labels[:1], epsilon=0.0, kappa=1.0)
    assert one.label.tolist() == labels[:1].tolist()


STEPS = {
    "standard": StandardScaler(),
    "mean only": StandardScaler(with_std=False),
    "std only": StandardScaler(with_mean=False),
    "maxabs": MaxAbsScaler(),
    "minmax": MinMaxScaler((-2.0, 3.0)),
    "robust": RobustScaler(),
    "robust, no center": RobustScaler(with_centering=False),
    "pca": PCA(3),
    "whitened": PCA(3, whiten=True),
    "incremental": IncrementalPCA(2),
    "svd": TruncatedSVD(3),
    "kbest": SelectKBest(k=2),
    "variance": VarianceThreshold(0.1),
    "gaussian": GaussianRandomProjection(3, random_state=0),
    "sparse projection": SparseRandomProjection(3, random_state=0, density=0.5),
    "identity": FunctionTransformer(),
    "passthrough": "passthrough",
    "imputer": SimpleImputer(),
    "pipeline": make_pipeline(MaxAbsScaler(), PCA(3)),
    "columns": ColumnTransformer(
        [
            ("a", StandardScaler(), [0, 3]),
            ("b", "drop", [1]),
            ("c", make_pipeline(MinMaxScaler(), PCA(1)), slice(1, 3)),
        ],
        remainder="passthrough",
        transformer_weights={"a": 2.0},
    ),
    "columns, mask": ColumnTransformer(
        [("a", RobustScaler(), np.array([True, False, True, False]))], remainder=MaxAbsScaler()
    ),
}


# scikit-learn 1.6 announces a change of what it keeps of the remainder.
@pytest.mark.filterwarnings(r"ignore:\s*The format of the columns:FutureWarning")
@pytest.mark.parametrize("first", STEPS, ids=str)
@pytest.mark.parametrize("second", [None, StandardScaler()], ids=["alone", "scaled"])
def test_steps(first, second):
    steps = [(first.replace("__", ""), STEPS[first]), ("scaler", second), ("lr", LinearSVC())]
    scores_agree(Pipeline(steps).fit(X0, Y0), X0)


def test_columns_by_name():
    frame = pd.DataFrame(X0, columns=list("abcd"))
    columns = ColumnTransformer(
        [("s", StandardScaler(), ["d", "a"]), ("m", MinMaxScaler(), slice("b", "c"))]
    )
    pipe = make_pipeline(columns, LogisticRegression()).fit(frame, Y0)
    scores_agree(pipe, frame)
    ball = {"epsilon": 0.1, "kappa": 1.0}
    expected = worst_case_loss(as_linear(pipe), X0, Y0, **ball)
    assert worst_case_loss(pipe, frame, Y0, **ball) == pytest.approx(expected, rel=1e-12)


def test_sparse_input_and_sparse_coefficients():
    X = sp.csc_matrix(np.where(np.abs(X0) > 0.5, X0, 0.0))
    pipe = make_pipeline(MaxAbsScaler(), LogisticRegression()).fit(X, Y0)
    scores_agree(pipe, X)
    ball = {"epsilon": 0.1, "kappa": 1.0}
    expected = worst_case_loss(pipe, X.toarray(), Y0, **ball)
    assert worst_case_loss(pipe, X, Y0, **ball) == pytest.approx(expected, rel=1e-12)
    pipe[-1].sparsify()
    assert worst_case_loss(pipe, X, Y0, **ball) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_data_frames(frame):
    columns = dict(zip("abcd", X0.T, strict=True))
    model = LogisticRegression().fit(frame(columns), Y0)
    ball = {"epsilon": 0.1, "kappa": 1.0}
    assert worst_case_loss(model, frame(columns), Y0, **ball) == pytest.approx(
        worst_case_loss(model, X0, Y0, **ball)
    )
    series = pd.Series(np.where(Y0 > 0, "yes", "no"), dtype="category")
    named = LogisticRegression().fit(frame(columns), series)
    assert worst_case_loss(named, frame(columns), series, **ball) == pytest.approx(
        worst_case_loss(model, X0, Y0, **ball)
    )
    with pytest.raises(ValueError, match="feature names should match"):
        worst_case_loss(model, frame(dict(reversed(columns.items()))), Y0, **ball)


def test_single_precision():
    X = X0.astype(np.float32)
    pipe = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, Y0)
    ball = {"epsilon": 0.1, "kappa": 1.0}
    assert worst_case_loss(pipe, X, Y0, **ball) == pytest.approx(
        worst_case_loss(pipe, X.astype(float), Y0, **ball), rel=1e-6
    )


def test_linear_model_knows_its_classes():
    model = LinearModel(np.ones(4), 0.0, classes=("yes", "no"))  # positive scores mean "no"
    ball = {"epsilon": 0.0, "kappa": 1.0}
    u = -(X0[:5] @ np.ones(4))
    found = worst_case_loss(model, X0[:5], ["yes"] * 5, **ball)
    assert found == pytest.approx(np.logaddexp(0.0, -u).mean())


class Squaring(StandardScaler):
    """Claims to be a scaler."""

    def transform(self, X):
        return super().transform(X) ** 2


class Threshold(BaseEstimator):
    """No linear model at all."""

    def fit(self, X, y):
        self.cut_ = 0.0
        return self


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (make_pipeline(PolynomialFeatures(), LogisticRegression()), "PolynomialFeatures.*affine"),
        (make_pipeline(FunctionTransformer(np.exp), LogisticRegression()), "FunctionTransformer"),
        (make_pipeline(MinMaxScaler(clip=True), LogisticRegression()), "MinMaxScaler"),
        (make_pipeline(SimpleImputer(missing_values=0.0), LogisticRegression()), "SimpleImputer"),
        (
            make_pipeline(
                ColumnTransformer([("p", PolynomialFeatures(), [0])]), LogisticRegression()
            ),
            "step 'p' .PolynomialFeatures",
        ),
        (make_pipeline(Squaring(), LogisticRegression()), "it is not linear in X"),
        (make_pipeline(StandardScaler(), RandomForestClassifier(2)), "has no coef_"),
        (SVC(kernel="rbf"), "has no coef_"),
        (Threshold(), "Threshold has no coef_"),
        (LinearRegression(), "predicts numbers, not labels"),
    ],
    ids=lambda m: type(m).__name__ if not isinstance(m, str) else "",
)
def test_models_that_are_not_linear_classifiers(model, message):
    model.fit(X0, Y0)
    with pytest.raises(ValueError, match=message):
        worst_case_loss(model, X0, Y0, epsilon=0.1, kappa=1.0, space="given")


def test_three_classes_and_unknown_labels():
    three = LogisticRegression().fit(X0, np.arange(60) % 3)
    with pytest.raises(ValueError, match="fitted on 3 classes; two are wanted"):
        worst_case_loss(three, X0, Y0, epsilon=0.1, kappa=1.0)
    two = LogisticRegression().fit(X0, Y0)
    with pytest.raises(ValueError, match="labels of the model, -1 or 1, got "):
        worst_case_loss(two, X0, (Y0 > 0).astype(int), epsilon=0.1, kappa=1.0)
    with pytest.raises(ValueError, match="labels of the model, -1 or 1, got 'a'"):
        worst_case_loss(two, X0, np.where(np.arange(60) > 0, "b", "a"), epsilon=0.1, kappa=1.0)


def test_unfitted_models():
    for model in (LogisticRegression(), make_pipeline(StandardScaler(), LinearSVC())):
        with pytest.raises(NotFittedError):
            worst_case_loss(model, X0, Y0, epsilon=0.1, kappa=1.0)
