"""Which models can be asked about, in whose units, and what their worst case looks like in X.

Categories are judged by linear programs over explicit adversaries, which list every place that a
row can go to, its loss there, and the cost of the move.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from benchmarks import stated
from scipy.optimize import linprog
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.linear_model import (
    LinearRegression,
    LogisticRegression,
    RidgeClassifier,
    SGDClassifier,
)
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    RobustScaler,
    StandardScaler,
    TargetEncoder,
)
from sklearn.svm import SVC, LinearSVC

import drlogit
import zoo
from drlogit import Ball, worst_case
from drlogit.robustness.adversary import Adversary

N = 90
RNG = np.random.default_rng(3)
FRAME = pd.DataFrame(
    {
        "age": RNG.normal(40.0, 12.0, N),
        "income": RNG.lognormal(3.0, 1.0, N),
        "job": RNG.choice(["clerk", "cook", "smith", "monk"], N, p=[0.4, 0.4, 0.15, 0.05]),
        "town": RNG.choice(["x", "y"], N),
    }
)
SCORE = 0.1 * (FRAME.age - 40.0) + (FRAME.job == "cook") - 0.5
Y = np.where(SCORE + RNG.logistic(size=N) > 0.0, "yes", "no")
NUMBERS, TEXTS = ["age", "income"], ["job", "town"]
HOLES = FRAME.assign(age=FRAME.age.where(FRAME.index % 7 > 0))
X0 = RNG.standard_normal((60, 4)) * [1.0, 3.0, 0.2, 1.5] + 0.4
Y0 = np.where(X0 @ [0.3, -0.5, 2.0, 1.0] + RNG.standard_normal(60) > 0.5, 1, -1)
BALL = Ball(0.1, 1.0)


# --- reading ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "classifier",
    [
        LogisticRegression(),
        LinearSVC(),
        RidgeClassifier(fit_intercept=False),
        LinearDiscriminantAnalysis(),
        SVC(kernel="linear"),
        SGDClassifier(loss="log_loss"),
        stated.classifier(epsilon=0.01),
        GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=2),
    ],
    ids=lambda c: type(c).__name__,
)
def test_classifiers(classifier):
    labels = np.where(Y0 > 0, "apple", "pear")  # the positive class is the pear
    model = classifier.fit(X0, labels)
    found = worst_case(model, X0, labels, "error", ball=Ball(0.0))
    assert found.nominal == pytest.approx(1.0 - model.score(X0, labels), abs=1e-12)
    # What it knows of its classes, it needs not see again.
    one = worst_case(model, X0[:1], labels[:1], "error", ball=Ball(0.0, feature_costs=None))
    assert one.distribution().label.tolist() == labels[:1].tolist()
    if hasattr(model, "predict_proba"):
        assert math.isfinite(worst_case(model, X0, labels, ball=BALL).value)
    else:
        with pytest.raises(ValueError, match="'log_loss' needs scores that are log-odds"):
            worst_case(model, X0, labels, ball=BALL)


STEPS = {
    "standard": StandardScaler(),
    "std only": StandardScaler(with_mean=False),
    "maxabs": MaxAbsScaler(),
    "minmax": MinMaxScaler((-2.0, 3.0)),
    "robust": RobustScaler(),
    "kbest": SelectKBest(k=2),
    "affine": FunctionTransformer(lambda X: 2.0 * X - 1.0),
    "components": PCA(3),
    "twice": FeatureUnion([("a", "passthrough"), ("b", PCA(1))]),
    "passthrough": "passthrough",
    "imputer": SimpleImputer(),
    "pipeline": make_pipeline(MaxAbsScaler(), SelectKBest(k=3)),
    "columns": ColumnTransformer(
        [
            ("a", StandardScaler(), [0, 3]),
            ("b", "drop", [1]),
            ("c", make_pipeline(MinMaxScaler(), RobustScaler()), [2]),
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
def test_a_ball_for_a_pipeline_is_in_the_columns_of_x(first, second):
    """However the steps have scaled it, the model is one of X, and X moves."""
    steps = [("first", STEPS[first]), ("scaler", second), ("lr", LogisticRegression())]
    model = Pipeline(steps).fit(X0, Y0)
    origin = model.decision_function(np.zeros((1, 4)))[0]
    plain = np.array([model.decision_function(row[None])[0] - origin for row in np.eye(4)]), origin
    ball = Ball(0.2, 1.0, feature_costs=[1.0, 0.3, 4.0, math.inf], bounds={1: (-9.0, 9.0)})
    for metric in ("log_loss", "error"):
        found = worst_case(model, X0, Y0, metric, ball=ball)
        expected = worst_case(plain, X0, Y0, metric, ball=ball)
        assert found.value == pytest.approx(expected.value, abs=1e-9)
        there = found.distribution()
        points = there.points(X0)
        decided = np.where(model.decision_function(points) >= 0.0, 1, -1)
        losses = np.logaddexp(0.0, -there.label * model.decision_function(points))
        attained = there.mass @ (losses if metric == "log_loss" else decided != there.label)
        assert attained == pytest.approx(there.value, abs=1e-7)


def test_deviations_of_a_pipeline_are_those_of_its_fit():
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X0, Y0)
    later = X0[:20] * 3.0
    stated = Ball(0.05, feature_costs=1.0 / X0.std(axis=0))
    found = worst_case(model, later, Y0[:20], ball=Ball(0.05))
    assert found.value == pytest.approx(worst_case(model, later, Y0[:20], ball=stated).value)
    assert not Adversary.of(model, later, Y0[:20], Ball()).from_rows
    assert found.ball.replace(epsilon=None).resolve(later).epsilon == pytest.approx(0.5 / 60**0.5)
    # Without a scaler they have to be given, or are those of the rows.
    bare = LogisticRegression().fit(X0, Y0)
    assert "Deviations are those of these rows" in str(worst_case(bare, X0, Y0, ball=Ball()))
    given = worst_case(bare, later, Y0[:20], ball=Ball(0.05).resolve(X0, Y0))
    assert given.value == pytest.approx(worst_case(bare, later, Y0[:20], ball=stated).value)
    assert "Deviations" not in str(given)


def test_a_cost_matrix_is_in_the_columns_of_x():
    factor = RNG.standard_normal((4, 4))
    matrix = factor @ factor.T + np.eye(4)
    ball = Ball(0.2, 1.0, feature_costs=matrix)
    order = ColumnTransformer([("a", StandardScaler(), [2, 0]), ("b", MinMaxScaler(), [3, 1])])
    model = make_pipeline(order, LogisticRegression()).fit(X0, Y0)
    origin = model.decision_function(np.zeros((1, 4)))[0]
    plain = np.array([model.decision_function(row[None])[0] - origin for row in np.eye(4)]), origin
    found, expected = (worst_case(each, X0, Y0, ball=ball) for each in (model, plain))
    assert found.value == pytest.approx(expected.value, abs=1e-9)
    moves = [each.distribution().points(X0) for each in (found, expected)]
    np.testing.assert_allclose(*moves, atol=1e-6)


@pytest.mark.filterwarnings("ignore:Skipping features without any observed values")
def test_columns_without_a_value_are_passed_over():
    holes = np.column_stack([X0, np.full(60, np.nan)])
    model = make_pipeline(SimpleImputer(), LogisticRegression()).fit(holes, Y0)
    found = worst_case(model, holes, Y0, ball=BALL)
    alone = worst_case(LogisticRegression().fit(X0, Y0), X0, Y0, ball=BALL)
    assert found.value == pytest.approx(alone.value)


def test_columns_by_name():
    frame = pd.DataFrame(X0, columns=list("abcd"))
    columns = ColumnTransformer(
        [("s", StandardScaler(), ["d", "a"]), ("m", MinMaxScaler(), slice("b", "c"))]
    )
    model = make_pipeline(columns, LogisticRegression()).fit(frame, Y0)
    ball = Ball.tolerating(columns={"d": 0.5, "a": 0}, numbers=0)
    found = worst_case(model, frame, Y0, "error", ball=ball).distribution()
    moved = found.points(frame).to_numpy() - frame.to_numpy()[found.index]
    assert np.abs(moved[:, 3]).max() > 0.1
    assert not moved[:, :3].any()
    with pytest.raises(ValueError, match="columns names the column 'e', but X has 'a'"):
        worst_case(model, frame, Y0, ball=Ball.tolerating(columns={"e": 1.0}))
    with pytest.raises(ValueError, match="feature names should match"):
        worst_case(model[-1].fit(frame, Y0), frame[list("dcba")], Y0, ball=BALL)


def test_sparse_input_and_sparse_coefficients():
    X = sp.csc_matrix(np.where(np.abs(X0) > 0.5, X0, 0.0))
    plain = LogisticRegression().fit(X, Y0)
    expected = worst_case(plain, X.toarray(), Y0, ball=BALL)
    plain.sparsify()
    found = worst_case(plain, X, Y0, ball=BALL)
    assert found.value == pytest.approx(expected.value, rel=1e-12)
    points = found.distribution().points(X)
    assert sp.issparse(points)
    np.testing.assert_allclose(points.toarray(), expected.distribution().points(X.toarray()))
    with pytest.raises(ValueError, match="needs a dense table"):
        worst_case(make_pipeline(MaxAbsScaler(), LogisticRegression()).fit(X, Y0), X, Y0, ball=BALL)


def test_columns_that_a_pipeline_does_not_use():
    """Text that is dropped, an L1 penalty that leaves none, another order, and more columns."""
    frame = FRAME.assign(name=[f"n{k}" for k in range(N)], empty=np.nan)
    for strength in (1.0, 1e-9):
        last = LogisticRegression(C=strength, l1_ratio=1.0, solver="liblinear")
        model = make_pipeline(columns(OneHotEncoder()), last).fit(frame, Y)
        found = worst_case(model, frame, Y, "error", ball=Ball(0.05, 2.0))
        turned = worst_case(model, frame[frame.columns[::-1]], Y, "error", ball=Ball(0.05, 2.0))
        p = model.predict_proba(frame)[:, 1]
        assert found.nominal == pytest.approx(np.mean((p >= 0.5) != (Y == "yes")))
        assert turned.value == found.value
        drlogit.measure_shift(model, frame, Y, frame, ball=Ball(0.05))


def test_frozen_and_thresholded_estimators_are_read():
    frozen = pytest.importorskip("sklearn.frozen").FrozenEstimator
    labels = np.where(Y0 > 0, "ill", "well")
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X0, labels)
    plain = worst_case(model, X0, labels, "recall", ball=BALL, threshold=0.3, pos_label="ill")
    fixed = FixedThresholdClassifier(frozen(model), threshold=0.3, pos_label="ill")
    fixed.fit(X0, labels)
    found = worst_case(fixed, X0, labels, "recall", ball=BALL)
    assert found.metric == plain.metric == "recall (positive: 'ill', threshold 0.3)"
    assert found.value == pytest.approx(plain.value, abs=1e-12)
    assert worst_case(frozen(model), X0, labels, ball=BALL).value == pytest.approx(
        worst_case(model, X0, labels, ball=BALL).value, abs=1e-12
    )
    other = worst_case(fixed, X0, labels, "recall", ball=BALL, pos_label="well")
    assert "threshold 0.7" in other.metric
    asked = worst_case(fixed, X0, labels, "recall", ball=BALL, threshold=0.6)
    assert "threshold 0.6" in asked.metric
    scores = FixedThresholdClassifier(LinearSVC(), threshold=0.0).fit(X0, labels)
    error = worst_case(scores, X0, labels, "error", ball=BALL)
    assert error.nominal == pytest.approx(1.0 - scores.score(X0, labels))


class Squaring(StandardScaler):
    """Claims to be a scaler."""

    def transform(self, X):
        return super().transform(X) ** 2


NO_SUM = "the score of this pipeline is no sum over the columns of X"


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (make_pipeline(PolynomialFeatures(), LogisticRegression()), NO_SUM),
        (make_pipeline(PolynomialFeatures(interaction_only=True), LogisticRegression()), NO_SUM),
        (make_pipeline(FunctionTransformer(np.exp), LogisticRegression()), NO_SUM),
        (make_pipeline(FunctionTransformer(np.log1p), LogisticRegression()), NO_SUM),
        (make_pipeline(MinMaxScaler(clip=True), LogisticRegression()), NO_SUM),
        (make_pipeline(Squaring(), LogisticRegression()), NO_SUM),
        (make_pipeline(StandardScaler(), RandomForestClassifier(2)), "has no coef_"),
        (SVC(kernel="rbf"), "has no coef_"),
        (LinearRegression(), "predicts numbers, not labels"),
    ],
    ids=str,
)
def test_models_that_are_no_linear_classifiers_of_x(model, message):
    model.fit(np.abs(X0), Y0)
    with pytest.raises(ValueError, match=message):
        worst_case(model, np.abs(X0), Y0, ball=BALL)


class Reversed(LogisticRegression):
    """Its score is not that of its coefficients."""

    def decision_function(self, X):
        return -super().decision_function(X)


def test_scores_are_compared_with_those_of_the_model():
    with pytest.raises(ValueError, match="Reversed does not score rows as"):
        worst_case(Reversed().fit(X0, Y0), X0, Y0, ball=BALL)


def test_three_classes_and_unknown_labels():
    labels = np.arange(60) % 3
    for three, said in (
        (LinearSVC(), "on 3 classes and is no softmax"),
        (SGDClassifier(loss="log_loss"), "on 3 classes and is no softmax"),
        (OneVsRestClassifier(LogisticRegression()), r"has no coef_.* estimators_\[k\]"),
    ):
        with pytest.raises(ValueError, match=said):
            worst_case(three.fit(X0, labels), X0, labels, ball=BALL)
    two = LogisticRegression().fit(X0, Y0)
    with pytest.raises(ValueError, match="labels of the model, -1 or 1, got "):
        worst_case(two, X0, (Y0 > 0).astype(int), ball=BALL)
    with pytest.raises(ValueError, match="labels of the model, -1 or 1, got 'a'"):
        worst_case(two, X0, np.where(np.arange(60) > 0, "b", "a"), ball=BALL)
    for plain in ((1.0,), "model"):
        with pytest.raises(ValueError, match=r"a plain model is|model must be a fitted"):
            worst_case(plain, X0, Y0, ball=BALL)


def test_unfitted_models():
    for model in (LogisticRegression(), make_pipeline(StandardScaler(), LinearSVC())):
        with pytest.raises(NotFittedError):
            worst_case(model, X0, Y0, ball=BALL)


@pytest.mark.parametrize("encoder", [OrdinalEncoder(), TargetEncoder(cv=2)])
def test_encoders_without_a_distance(encoder):
    model = make_pipeline(columns(encoder), LogisticRegression()).fit(FRAME, Y)
    with pytest.raises(ValueError, match=NO_SUM):
        worst_case(model, FRAME, Y, ball=BALL)


# --- the ball of a fit ----------------------------------------------------------------------------


def columns(encoder, numbers=None):
    return ColumnTransformer([("n", numbers or StandardScaler(), NUMBERS), ("c", encoder, TEXTS)])


def ours(**options):
    return stated.classifier(0.05, 1.0, **options)


NUMERIC = ColumnTransformer([("n", StandardScaler(), NUMBERS)])
PIPELINES = {
    "scaler": make_pipeline(NUMERIC, ours()),
    "costs": make_pipeline(NUMERIC, ours(feature_costs=[2.0, math.inf])),
    "bounds": make_pipeline(
        ColumnTransformer([("n", MinMaxScaler(), NUMBERS)]), ours(bounds=(0.0, 1.0))
    ),
    "pca": make_pipeline(NUMERIC, PCA(1), ours()),
    "polynomial": make_pipeline(NUMERIC, PolynomialFeatures(include_bias=False), ours()),
    "one-hot": make_pipeline(columns(OneHotEncoder()), ours()),
    "dropped, dense": make_pipeline(
        columns(OneHotEncoder(drop="first", sparse_output=False)), ours(categories=[[2, 3, 4], [5]])
    ),
    "union": make_pipeline(
        NUMERIC, FeatureUnion([("a", "passthrough"), ("b", PCA(1))]), ours(norm="linf")
    ),
    "imputed": make_pipeline(
        columns(OneHotEncoder(), SimpleImputer(add_indicator=True)), MaxAbsScaler(), ours()
    ),
    "search": GridSearchCV(
        make_pipeline(columns(OneHotEncoder()), ours()),
        {"drlogisticregression__epsilon": [0.01, 0.1]},
        cv=2,
    ),
    "three classes": make_pipeline(NUMERIC, ours(norm="l2")),
    "nothing but the model": make_pipeline("passthrough", None, ours(norm="linf")),
    "table": ours(feature_costs="std"),
    "table in a pipeline": make_pipeline(
        "passthrough", ours(feature_costs="std", bounds={"age": (0, 120)})
    ),
}


@pytest.mark.parametrize("name", PIPELINES)
def test_a_worst_case_on_the_training_data_is_the_fit(name):
    data, labels = HOLES if name == "imputed" else FRAME, Y
    if name == "three classes":
        labels = np.digitize(SCORE, [-1.0, 0.5])
    elif name == "nothing but the model":
        data = FRAME[NUMBERS].to_numpy()
    model = PIPELINES[name].fit(data, labels)
    found = getattr(model, "best_estimator_", model)
    last = found[-1] if hasattr(found, "steps") else found
    worst = worst_case(model, data, labels)
    assert worst.value == pytest.approx(float(last.worst_case_loss_), abs=1e-9)
    assert worst.ball.epsilon == last.ball_.epsilon
    assert worst_case(model, data, labels, "error").value >= 1.0 - model.score(data, labels)
    if name == "three classes":
        return
    there = worst.distribution()
    assert worst.value - 2e-4 <= there.value <= worst.value + 1e-9
    if hasattr(found, "steps"):
        with pytest.raises(ValueError, match="in the columns that the steps of its pipeline make"):
            there.points(data)
    else:
        points = there.points(data)
        assert type(points) is type(data)
        p = model.predict_proba(points)[np.arange(len(points)), np.searchsorted(
            model.classes_, there.label)]  # fmt: skip
        assert -there.mass @ np.log(np.maximum(p, 1e-300)) == pytest.approx(there.value, abs=1e-4)


@pytest.mark.parametrize("seed", [0, 3, 5])
def test_the_ball_of_a_result_is_that_of_its_fit(seed):
    data, y = drlogit.datasets.make_synthetic(60, 4, random_state=seed)
    result = stated.solve(data, y, epsilon=0.05, kappa=0.7, norm="l2")
    assert worst_case(result, data, y).value == pytest.approx(result.objective, abs=1e-9)
    wider = worst_case(result, data, y, ball=Ball(0.1, 0.7, feature_costs=None))
    assert wider.value > result.objective
    point = worst_case(result, data, y).breaking_point(wider.value)
    assert point.epsilon == pytest.approx(0.1)


def test_flip_costs_by_row_are_given_again():
    data, y = drlogit.datasets.make_synthetic(60, 4, random_state=1)
    kappa = np.random.default_rng(0).uniform(0.5, 2.0, 60)
    model = stated.classifier(0.05).fit(data, y, kappa=kappa)
    with pytest.raises(ValueError, match=r"replace\(kappa=values\)"):
        worst_case(model, data, y)


# --- categories -----------------------------------------------------------------------------------


def frame_of(rng, n, levels):
    frame = pd.DataFrame({"job": rng.choice(list(levels), n), "town": rng.choice(["x", "y"], n)})
    odds = frame["job"].map({"a": 2.5, "b": -1.0, "c": 0.5}) + 1.5 * (frame["town"] == "x") - 1.0
    return frame, (rng.random(n) < 1.0 / (1.0 + np.exp(-odds))).astype(int)


def worst(scores, places, own, y, epsilon, kappa, *, error=False):
    """The largest mean loss, or error, that mass can have that moves at a mean cost up to epsilon.

    ``scores`` are those of all places, ``places[i, k]`` is what it costs row i to go to place k,
    and ``own`` the score of each row where it is.
    """
    gains, costs, equal = [], [], []
    for i, label in enumerate(2 * np.asarray(y) - 1):
        ways = itertools.product([(own[i], 0.0), *zip(scores, places[i], strict=True)], [1, -1])
        for (score, cost), sign in ways:
            margin = sign * label * score
            if math.isfinite(cost) and (sign > 0 or math.isfinite(kappa)):
                gains.append(float(margin <= 0.0) if error else np.logaddexp(0.0, -margin))
                costs.append(cost + (0.0 if sign > 0 else kappa))
                equal.append(i)
    rows = (np.array(equal) == np.arange(len(own))[:, None]).astype(float)
    share = np.full(len(own), 1.0 / len(own))
    found = linprog(-np.array(gains), [costs], [epsilon], rows, share)
    assert found.status == 0
    return -found.fun


def places_of(model, levels, frame):
    """Every combination of levels, with the number of changes that lead there from each row."""
    every = pd.DataFrame(itertools.product(*levels.values()), columns=[*levels])
    changes = (frame.to_numpy()[:, None] != every.to_numpy()[None]).sum(axis=2).astype(float)
    return model.decision_function(every), changes


def check_points(model, rows, found):
    """The points are rows of the table, and attain what is said."""
    there = found.distribution()
    points = there.points(rows)
    assert list(points.columns) == list(rows.columns)
    score = model.decision_function(points)
    losses = np.logaddexp(0.0, np.where(there.label == model.classes_[1], -score, score))
    assert there.mass @ losses == pytest.approx(there.value, abs=1e-9)
    changed = (points.to_numpy() != rows.iloc[there.index].to_numpy()).sum(axis=1)
    np.testing.assert_allclose(there.distance, changed)


@pytest.mark.parametrize("kappa", [1.0, math.inf])
@pytest.mark.parametrize("after", [None, StandardScaler(with_mean=False)], ids=["", "scaled"])
@pytest.mark.parametrize("drop", ["first", None])
def test_a_dropped_level_is_a_category_of_rows_that_do_not_show_it(drop, after, kappa):
    rng = np.random.default_rng(0)
    model = make_pipeline(OneHotEncoder(drop=drop), after, LogisticRegression(C=100.0))
    model.fit(*frame_of(rng, 400, "abc"))
    rows, y = frame_of(rng, 20, "bc")
    scores, changes = places_of(model, {"job": list("abc"), "town": ["x", "y"]}, rows)
    own, ball = model.decision_function(rows), {"epsilon": 0.2, "kappa": kappa}
    found = worst_case(model, rows, y, ball=Ball(**ball))
    assert found.value == pytest.approx(worst(scores, changes, own, y, **ball), abs=1e-9)
    check_points(model, rows, found)
    error = worst_case(model, rows, y, "error", ball=Ball(**ball)).value
    expected = worst(scores, changes, own, y, **ball, error=True)
    assert error == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("here", ["abc", "bc"])
@pytest.mark.parametrize("how", ["ignored", "lost"])
def test_levels_that_an_encoder_ignores_or_a_selection_loses(here, how):
    """One that the encoder does not know is a place to go to where it occurs."""
    rng = np.random.default_rng(1)
    train, (rows, y) = frame_of(rng, 400, "abc"), frame_of(rng, 20, here)
    ball = {"epsilon": 0.2, "kappa": math.inf}
    steps = OneHotEncoder(), SelectKBest(k=3)
    if how == "ignored":
        known = [["b", "c"], ["x", "y"]]
        steps = OneHotEncoder(categories=known, handle_unknown="ignore"), None
    model = make_pipeline(*steps, LogisticRegression()).fit(*train)
    levels = {"job": list(here if how == "ignored" else "abc"), "town": ["x", "y"]}
    scores, changes = places_of(model, levels, rows)
    expected = worst(scores, changes, model.decision_function(rows), y, **ball)
    found = worst_case(model, rows, y, ball=Ball(**ball))
    assert found.value == pytest.approx(expected, abs=1e-9)
    check_points(model, rows, found)


@pytest.mark.parametrize("indicator", [False, True])
def test_missing_values_count_as_what_is_filled_in(indicator):
    frame = HOLES.assign(job=HOLES.job.where(HOLES.index % 5 > 0))
    texts = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder())
    filled = SimpleImputer(strategy="median", add_indicator=indicator)
    model = make_pipeline(
        columns(texts, make_pipeline(filled, StandardScaler())), LogisticRegression()
    )
    model.fit(frame, Y)
    complete = frame.fillna({"age": frame.age.median(), "job": frame.job.mode()[0]})
    found = worst_case(model, frame, Y, "error", ball=Ball(0.05))
    assert found.nominal == pytest.approx(1.0 - model.score(frame, Y))
    if not indicator:
        same = worst_case(model, complete, Y, "error", ball=Ball(0.05))
        assert found.value == pytest.approx(same.value, abs=1e-9)
        assert not found._adversary.from_rows


def test_rare_levels_and_intervals_are_categories():
    for encoder in (OneHotEncoder(min_frequency=20), OneHotEncoder(max_categories=3, drop="first")):
        model = make_pipeline(
            ColumnTransformer([("c", encoder, TEXTS)], sparse_threshold=0.0), LogisticRegression()
        ).fit(FRAME, Y)
        levels = {"job": ["clerk", "cook", "smith"], "town": ["x", "y"]}
        rows = FRAME[FRAME.job != "monk"][:20]
        every = pd.DataFrame(itertools.product(*levels.values()), columns=[*levels])
        scores = model.decision_function(every.assign(age=0.0, income=0.0)[list(FRAME)])
        changes = (rows[TEXTS].to_numpy()[:, None] != every.to_numpy()[None]).sum(axis=2)
        own = model.decision_function(rows)
        coded = (Y[rows.index] == "yes").astype(int)
        expected = worst(scores, changes.astype(float), own, coded, 0.1, math.inf)
        found = worst_case(model, rows, Y[rows.index], ball=Ball(0.1))
        assert found.value == pytest.approx(expected, abs=1e-9)
        check_points(model, rows, found)


def one_hot(frame):
    """Columns of levels b, c and x: a and y are dropped."""
    columns = [frame["job"] == "b", frame["job"] == "c", frame["town"] == "x"]
    return np.column_stack(columns).astype(float)


@pytest.mark.parametrize("how", ["estimator", "result", "file"])
def test_what_occurred_in_training_only_is_a_category_of_the_audit(how, tmp_path):
    rng = np.random.default_rng(2)
    (frame, y), (rows, z) = frame_of(rng, 400, "abc"), frame_of(rng, 20, "bc")
    ball, groups = {"epsilon": 0.05, "kappa": 1.0}, [[0, 1], [2]]
    model = stated.classifier(**ball, categories=groups).fit(one_hot(frame), y)
    asked = model
    if how == "result":
        asked = stated.solve(one_hot(frame), y, **ball, categories=groups)
    elif how == "file":
        drlogit.save_model(model, tmp_path / "model.json")
        asked = drlogit.load_model(tmp_path / "model.json")
    every = pd.DataFrame(itertools.product("abc", "xy"), columns=["job", "town"])
    changes = (rows.to_numpy()[:, None] != every.to_numpy()[None]).sum(axis=2).astype(float)
    own = model.decision_function(one_hot(rows))
    expected = worst(model.decision_function(one_hot(every)), changes, own, z, 0.2, 1.0)
    found = zoo.worst_loss(asked, one_hot(rows), z, epsilon=0.2)
    assert found == pytest.approx(expected, abs=1e-6 if how == "result" else 1e-9)


def test_none_can_be_stated():
    rng = np.random.default_rng(3)
    frame, y = frame_of(rng, 200, "bc")  # a does not occur
    X = one_hot(frame)
    coef = np.array([3.0, 2.0, 0.5]), -1.0  # "none" is far below both
    rows, z = frame[:12], y[:12]
    every = pd.DataFrame(itertools.product("abc", "xy"), columns=["job", "town"])
    changes = (rows.to_numpy()[:, None] != every.to_numpy()[None]).sum(axis=2).astype(float)
    expected = worst(
        one_hot(every) @ coef[0] - 1.0, changes, X[:12] @ coef[0] - 1.0, z, 0.2, math.inf
    )
    ball = Ball(0.2, feature_costs=None, categories=[[0, 1, None], [2, None]])
    assert worst_case(coef, X[:12], z, ball=ball).value == pytest.approx(expected, abs=1e-9)
    without = ball.replace(categories=[[0, 1], [2, None]])
    assert worst_case(coef, X[:12], z, ball=without).value < expected - 0.01


@pytest.mark.filterwarnings("ignore:levels are new:UserWarning")
def test_a_row_of_an_unseen_level_keeps_its_place_and_draws_no_other_there():
    rng = np.random.default_rng(4)
    model = stated.classifier(0.05, 1.0).fit(*frame_of(rng, 300, "bc"))
    rows, y = frame_of(rng, 20, "abc")
    assert (rows["job"] == "a").any()
    scores, changes = places_of(model, {"job": ["b", "c"], "town": ["x", "y"]}, rows)
    expected = worst(scores, changes, model.decision_function(rows), y, 0.2, 1.0)
    found = zoo.worst_loss(model, rows, y, epsilon=0.2)
    assert found == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("kappa", [1.0, math.inf])
def test_rows_beyond_the_bounds_move_back_and_draw_no_other_there(kappa):
    rng = np.random.default_rng(5)
    X = rng.random((200, 2))
    coef = np.array([2.0, -3.0]), 0.3
    rows, z = X[:15].copy(), (X[:15] @ coef[0] > 0.0).astype(int)
    rows[:4] += [[3.0, 0.0], [0.0, 2.0], [-2.0, 0.0], [-1.0, 4.0]]
    gains, costs = [], []
    for row in rows:
        # A number goes to an end or stays, also where it lies beyond an end.
        places = np.array([*itertools.product(*[[row[j], 0.0, 1.0] for j in range(2)])])
        gains.append(places @ coef[0] + coef[1])
        costs.append(np.abs(places - row).sum(axis=1))
    every = np.concatenate(gains)
    table = np.full((15, every.size), np.inf)
    for i, cost in enumerate(costs):
        table[i, i * cost.size : (i + 1) * cost.size] = cost
    expected = worst(every, table, rows @ coef[0] + coef[1], z, 0.3, kappa)
    ball = Ball(0.3, kappa, feature_costs=None, bounds=(0.0, 1.0))
    with pytest.warns(UserWarning, match="4 rows lie beyond the bounds of the ball"):
        found = worst_case(coef, rows, z, ball=ball)
    assert found.value == pytest.approx(expected, abs=1e-9)


def test_a_column_may_have_any_name():
    """Names that objects of other packages have as attributes, too."""
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((60, 2)), rng.random(60) < 0.5
    frame = pd.DataFrame(X, columns=["feature_names", "columns"])
    model, ball = LogisticRegression().fit(X, y), Ball(0.05, 1.0, feature_costs=None)
    found, plain = (worst_case(model, each, y, "error", ball=ball) for each in (frame, X))
    assert found.value == pytest.approx(plain.value, rel=1e-12)
    assert set(found.ball.feature_costs) == {"feature_names", "columns"}
