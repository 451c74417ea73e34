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
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import SelectKBest
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import (
    LinearRegression,
    LogisticRegression,
    RidgeClassifier,
    SGDClassifier,
)
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import FeatureUnion, make_pipeline
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
X0 = RNG.standard_normal((60, 4)) * [1.0, 3.0, 0.2, 1.5] + 0.4
Y0 = np.where(X0 @ [0.3, -0.5, 2.0, 1.0] + RNG.standard_normal(60) > 0.5, 1, -1)
BALL = Ball(0.1, 1.0)


def plain(*steps):
    return make_pipeline(*steps, LogisticRegression())


def columns(encoder, numbers=None):
    return ColumnTransformer([("n", numbers or StandardScaler(), NUMBERS), ("c", encoder, TEXTS)])


def ours(**options):
    return stated.classifier(0.05, 1.0, **options)


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
        ours(),
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


def test_frozen_and_thresholded_estimators_are_read():
    labels = np.where(Y0 > 0, "ill", "well")
    model = plain(StandardScaler()).fit(X0, labels)

    def recall(model, **asked):
        return worst_case(model, X0, labels, "recall", ball=BALL, **asked)

    expected = recall(model, threshold=0.3, pos_label="ill")
    fixed = FixedThresholdClassifier(FrozenEstimator(model), threshold=0.3, pos_label="ill")
    found = recall(fixed.fit(X0, labels))
    assert found.metric == expected.metric == "recall (positive: 'ill', threshold 0.3)"
    assert found.value == pytest.approx(expected.value, abs=1e-12)
    assert recall(FrozenEstimator(model)).value == recall(model).value
    assert "threshold 0.7" in recall(fixed, pos_label="well").metric
    assert "threshold 0.6" in recall(fixed, threshold=0.6).metric
    scores = FixedThresholdClassifier(LinearSVC(), threshold=0.0).fit(X0, labels)
    error = worst_case(scores, X0, labels, "error", ball=BALL)
    assert error.nominal == pytest.approx(1.0 - scores.score(X0, labels))


class Squaring(StandardScaler):
    """Claims to be a scaler."""

    def transform(self, X):
        return super().transform(X) ** 2


class Reversed(LogisticRegression):
    """Its score is not that of its coefficients."""

    def decision_function(self, X):
        return -super().decision_function(X)


THREE = np.arange(60) % 3
NO_SUM = "the score of this pipeline is no sum over the columns of X"


@pytest.mark.parametrize(
    ("model", "labels", "message"),
    [
        (plain(PolynomialFeatures()), Y0, NO_SUM),
        (plain(PolynomialFeatures(interaction_only=True)), Y0, NO_SUM),
        (plain(FunctionTransformer(np.exp)), Y0, NO_SUM),
        (plain(FunctionTransformer(np.log1p)), Y0, NO_SUM),
        (plain(MinMaxScaler(clip=True)), Y0, NO_SUM),
        (plain(Squaring()), Y0, NO_SUM),
        (make_pipeline(StandardScaler(), RandomForestClassifier(2)), Y0, "has no coef_"),
        (SVC(kernel="rbf"), Y0, "has no coef_"),
        (LinearRegression(), Y0, "predicts numbers, not labels"),
        (Reversed(), Y0, "Reversed does not score rows as"),
        (LinearSVC(), THREE, "on 3 classes and is no softmax"),
        (SGDClassifier(loss="log_loss"), THREE, "on 3 classes and is no softmax"),
        (OneVsRestClassifier(LogisticRegression()), THREE, r"has no coef_.* estimators_\[k\]"),
    ],
    ids=str,
)
def test_models_that_are_no_linear_classifiers_of_x(model, labels, message):
    model.fit(np.abs(X0), labels)
    with pytest.raises(ValueError, match=message):
        worst_case(model, np.abs(X0), labels, ball=BALL)


@pytest.mark.parametrize("encoder", [OrdinalEncoder(), TargetEncoder(cv=2)])
def test_encoders_without_a_distance(encoder):
    with pytest.raises(ValueError, match=NO_SUM):
        worst_case(plain(columns(encoder)).fit(FRAME, Y), FRAME, Y, ball=BALL)


def test_what_is_no_model_and_labels_that_are_not_known():
    two = LogisticRegression().fit(X0, Y0)
    for labels, said in (((Y0 > 0).astype(int), ""), (np.where(np.arange(60), "b", "a"), "'a'")):
        with pytest.raises(ValueError, match=f"labels of the model, -1 or 1, got {said}"):
            worst_case(two, X0, labels, ball=BALL)
    for other, said in (((1.0,), "a plain model is"), ("model", "must be a fitted linear")):
        with pytest.raises(ValueError, match=said):
            worst_case(other, X0, Y0, ball=BALL)
    for model in (LogisticRegression(), plain(StandardScaler())):
        with pytest.raises(NotFittedError):
            worst_case(model, X0, Y0, ball=BALL)


# --- pipelines, in the columns of X -------------------------------------------------------------


STEPS = {
    "standard": StandardScaler(),
    "std only": StandardScaler(with_mean=False),
    "minmax": MinMaxScaler((-2.0, 3.0)),
    "robust": RobustScaler(),
    "kbest": SelectKBest(k=2),
    "affine": FunctionTransformer(lambda X: 2.0 * X - 1.0),
    "components": PCA(3),
    "twice": FeatureUnion([("a", "passthrough"), ("b", PCA(1))]),
    "passthrough": "passthrough",
    "nested": make_pipeline(SimpleImputer(), MaxAbsScaler(), SelectKBest(k=3)),
    "columns": ColumnTransformer(
        [
            ("a", StandardScaler(), [0, 3]),
            ("b", "drop", [1]),
            ("c", make_pipeline(MinMaxScaler(), RobustScaler()), [2]),
        ],
        transformer_weights={"a": 2.0},
    ),
    "mask": ColumnTransformer(
        [("a", RobustScaler(), np.array([True, False, True, False]))], remainder=MaxAbsScaler()
    ),
}


# scikit-learn 1.6 announces a change of what it keeps of the remainder.
@pytest.mark.filterwarnings(r"ignore:\s*The format of the columns:FutureWarning")
@pytest.mark.parametrize("first", STEPS, ids=str)
@pytest.mark.parametrize("second", [None, StandardScaler()], ids=["alone", "scaled"])
def test_a_ball_for_a_pipeline_is_in_the_columns_of_x(first, second):
    """However the steps have changed it, the model is one of X, and X moves."""
    model = plain(STEPS[first], second).fit(X0, Y0)
    origin = model.decision_function(np.zeros((1, 4)))[0]
    known = np.array([model.decision_function(row[None])[0] - origin for row in np.eye(4)]), origin
    ball = Ball(0.2, 1.0, feature_costs=[1.0, 0.3, 4.0, math.inf], bounds={1: (-9.0, 9.0)})
    for metric in ("log_loss", "error"):
        found = worst_case(model, X0, Y0, metric, ball=ball)
        expected = worst_case(known, X0, Y0, metric, ball=ball)
        assert found.value == pytest.approx(expected.value, abs=1e-9)
        there = found.distribution()
        points = there.points(X0)
        decided = np.where(model.decision_function(points) >= 0.0, 1, -1)
        losses = np.logaddexp(0.0, -there.label * model.decision_function(points))
        attained = there.mass @ (losses if metric == "log_loss" else decided != there.label)
        assert attained == pytest.approx(there.value, abs=1e-7)


def test_deviations_of_a_pipeline_are_those_of_its_fit():
    model = plain(StandardScaler()).fit(X0, Y0)
    later = X0[:20] * 3.0
    stated = Ball(0.05, feature_costs=1.0 / X0.std(axis=0))
    found = worst_case(model, later, Y0[:20], ball=Ball(0.05))
    assert found.value == pytest.approx(worst_case(model, later, Y0[:20], ball=stated).value)
    assert found.ball.replace(epsilon=None).resolve(later).epsilon == pytest.approx(0.5 / 60**0.5)
    # Without a scaler they have to be given, or are those of the rows.
    bare = LogisticRegression().fit(X0, Y0)
    assert "Deviations are those of these rows" in str(worst_case(bare, X0, Y0, ball=Ball()))
    given = worst_case(bare, later, Y0[:20], ball=Ball(0.05).resolve(X0, Y0))
    assert given.value == pytest.approx(worst_case(bare, later, Y0[:20], ball=stated).value)
    assert "Deviations" not in str(given) + str(found)


def test_columns_by_name():
    frame = pd.DataFrame(X0, columns=list("abcd"))
    steps = [("s", StandardScaler(), ["d", "a"]), ("m", MinMaxScaler(), slice("b", "c"))]
    model = plain(ColumnTransformer(steps)).fit(frame, Y0)
    ball = Ball.tolerating(columns={"d": 0.5, "a": 0}, numbers=0)
    found = worst_case(model, frame, Y0, "error", ball=ball).distribution()
    moved = found.points(frame).to_numpy() - frame.to_numpy()[found.index]
    assert np.abs(moved[:, 3]).max() > 0.1
    assert not moved[:, :3].any()
    with pytest.raises(ValueError, match="columns names the column 'e', but X has 'a'"):
        worst_case(model, frame, Y0, ball=Ball.tolerating(columns={"e": 1.0}))
    with pytest.raises(ValueError, match="feature names should match"):
        worst_case(model[-1].fit(frame, Y0), frame[list("dcba")], Y0, ball=BALL)


def test_a_column_may_have_any_name():
    """Names that objects of other packages have as attributes, too."""
    frame = pd.DataFrame(X0[:, :2], columns=["feature_names", "columns"])
    model, ball = LogisticRegression().fit(X0[:, :2], Y0), Ball(0.05, 1.0, feature_costs=None)
    found, same = (worst_case(model, X, Y0, "error", ball=ball) for X in (frame, X0[:, :2]))
    assert found.value == pytest.approx(same.value, rel=1e-12)
    assert set(found.ball.feature_costs) == {"feature_names", "columns"}


def test_sparse_input_and_sparse_coefficients():
    X = sp.csc_matrix(np.where(np.abs(X0) > 0.5, X0, 0.0))
    model = LogisticRegression().fit(X, Y0)
    expected = worst_case(model, X.toarray(), Y0, ball=BALL)
    found = worst_case(model.sparsify(), X, Y0, ball=BALL)
    assert found.value == pytest.approx(expected.value, rel=1e-12)
    points = found.distribution().points(X)
    assert sp.issparse(points)
    np.testing.assert_allclose(points.toarray(), expected.distribution().points(X.toarray()))
    with pytest.raises(ValueError, match="needs a dense table"):
        worst_case(plain(MaxAbsScaler()).fit(X, Y0), X, Y0, ball=BALL)


@pytest.mark.filterwarnings("ignore:Skipping features without any observed values")
def test_columns_that_a_pipeline_does_not_use():
    """Text that is dropped, no value, a penalty that leaves no coefficient, and another order."""
    frame = FRAME.assign(name=[f"n{k}" for k in range(N)], empty=np.nan)
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    steps = ColumnTransformer([("n", numbers, [*NUMBERS, "empty"]), ("c", OneHotEncoder(), TEXTS)])
    for strength in (1.0, 1e-9):
        last = LogisticRegression(C=strength, l1_ratio=1.0, solver="liblinear")
        model = make_pipeline(clone(steps), last).fit(frame, Y)
        found = worst_case(model, frame, Y, "error", ball=Ball(0.05, 2.0))
        turned = worst_case(model, frame[frame.columns[::-1]], Y, "error", ball=Ball(0.05, 2.0))
        p = model.predict_proba(frame)[:, 1]
        assert found.nominal == pytest.approx(np.mean((p >= 0.5) != (Y == "yes")))
        assert turned.value == found.value
        moved = drlogit.measure_shift(model, frame, Y, frame, ball=Ball(0.05)).columns
        assert not {"name", "empty"} & {*moved["column"]}


@pytest.mark.parametrize("indicator", [False, True])
def test_missing_values_count_as_what_is_filled_in(indicator):
    frame = FRAME.assign(
        age=FRAME.age.where(FRAME.index % 7 > 0), job=FRAME.job.where(FRAME.index % 5 > 0)
    )
    texts = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder())
    filled = SimpleImputer(strategy="median", add_indicator=indicator)
    steps = columns(texts, make_pipeline(filled, StandardScaler()))
    model = plain(steps).fit(frame, Y)
    found = worst_case(model, frame, Y, "error", ball=Ball(0.05))
    assert found.nominal == pytest.approx(1.0 - model.score(frame, Y))
    if not indicator:
        complete = frame.fillna({"age": frame.age.median(), "job": frame.job.mode()[0]})
        same = worst_case(model, complete, Y, "error", ball=Ball(0.05))
        assert found.value == pytest.approx(same.value, abs=1e-9)
        assert "Deviations" not in str(found)


# --- the ball of a fit ----------------------------------------------------------------------------


NUMERIC = ColumnTransformer([("n", StandardScaler(), NUMBERS)])
FITS = {
    "costs": make_pipeline(NUMERIC, ours(feature_costs=[2.0, math.inf])),
    "bounds": make_pipeline(
        ColumnTransformer([("n", MinMaxScaler(), NUMBERS)]), ours(bounds=(0.0, 1.0))
    ),
    "polynomial": make_pipeline(NUMERIC, PolynomialFeatures(include_bias=False), ours()),
    "dropped, dense": make_pipeline(
        columns(OneHotEncoder(drop="first", sparse_output=False)), ours(categories=[[2, 3, 4], [5]])
    ),
    "search": GridSearchCV(
        make_pipeline(columns(OneHotEncoder()), ours()),
        {"drlogisticregression__epsilon": [0.01, 0.1]},
        cv=2,
    ),
    "three classes": make_pipeline(NUMERIC, ours(norm="l2")),
    "table": ours(feature_costs="std", bounds={"age": (0, 120)}),
    "table in a pipeline": make_pipeline("passthrough", ours(feature_costs="std")),
}


@pytest.mark.parametrize("name", FITS)
def test_a_worst_case_on_the_training_data_is_the_fit(name):
    labels = np.digitize(SCORE, [-1.0, 0.5]) if name == "three classes" else Y
    model = FITS[name].fit(FRAME, labels)
    found = getattr(model, "best_estimator_", model)
    last = found[-1] if hasattr(found, "steps") else found
    worst = worst_case(model, FRAME, labels)
    assert worst.value == pytest.approx(float(last.worst_case_loss_), abs=1e-9)
    assert worst.ball.epsilon == last.ball_.epsilon
    assert worst_case(model, FRAME, labels, "error").value >= 1.0 - model.score(FRAME, labels)
    if name == "three classes":
        return
    there = worst.distribution()
    assert worst.value - 2e-4 <= there.value <= worst.value + 1e-9
    if found is not last:
        with pytest.raises(ValueError, match="in the columns that the steps of its pipeline make"):
            there.points(FRAME)
        return
    points = there.points(FRAME)
    own = np.where(there.label == "yes", 1.0, -1.0)
    losses = np.logaddexp(0.0, -own * model.decision_function(points))
    assert there.mass @ losses == pytest.approx(there.value, abs=1e-4)


def test_the_ball_of_a_result_is_that_of_its_fit():
    data, y = drlogit.datasets.make_synthetic(60, 4, random_state=3)
    result = stated.solve(data, y, epsilon=0.05, kappa=0.7, norm="l2")
    assert worst_case(result, data, y).value == pytest.approx(result.objective, abs=1e-9)
    wider = worst_case(result, data, y, ball=Ball(0.1, 0.7, feature_costs=None))
    assert worst_case(result, data, y).breaking_point(wider.value).epsilon == pytest.approx(0.1)
    kappa = np.linspace(0.5, 2.0, 60)
    model = stated.classifier(0.05).fit(data, y, kappa=kappa)
    with pytest.raises(ValueError, match=r"replace\(kappa=values\)"):
        worst_case(model, data, y)
    given = worst_case(model, data, y, ball=model.ball_.replace(kappa=kappa))
    assert given.value == pytest.approx(float(model.worst_case_loss_), abs=1e-9)


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


def expected_of(score, rows, y, jobs, epsilon, kappa, **asked):
    """The same for a model of jobs and towns, whose rows change at a cost of 1 each."""
    every = pd.DataFrame(itertools.product(jobs, "xy"), columns=["job", "town"])
    changes = (rows.to_numpy()[:, None] != every.to_numpy()[None]).sum(axis=2).astype(float)
    return worst(score(every), changes, score(rows), y, epsilon, kappa, **asked)


LAST = LogisticRegression(C=100.0)
KNOWN = OneHotEncoder(categories=[["b", "c"], ["x", "y"]], handle_unknown="ignore")
#: Steps, and the jobs that rows can have where b and c occur, and where a occurs, too.
ENCODERS = {
    "all": ((OneHotEncoder(),), "abc", "abc"),
    "dropped": ((OneHotEncoder(drop="first"),), "abc", "abc"),
    "scaled": ((OneHotEncoder(drop="first"), StandardScaler(with_mean=False)), "abc", "abc"),
    "lost": ((OneHotEncoder(), SelectKBest(k=3)), "abc", "abc"),
    "ignored": ((KNOWN,), "bc", "abc"),
    "rare": ((OneHotEncoder(max_categories=2),), "abc", "abc"),
}


@pytest.mark.parametrize("kappa", [1.0, math.inf])
@pytest.mark.parametrize("here", ["bc", "abc"])
@pytest.mark.parametrize("how", ENCODERS)
def test_levels_of_encoders_are_places_to_go_to(how, here, kappa):
    """One that the encoder does not know is such a place where it occurs."""
    rng = np.random.default_rng(1)
    steps, *jobs = ENCODERS[how]
    model = make_pipeline(*steps, LAST).fit(*frame_of(rng, 400, "abc"))
    rows, y = frame_of(rng, 20, here)
    asked = rows, y, jobs[here == "abc"], 0.2, kappa
    found = worst_case(model, rows, y, ball=Ball(0.2, kappa))
    expected = expected_of(model.decision_function, *asked)
    assert found.value == pytest.approx(expected, abs=1e-9)
    error = worst_case(model, rows, y, "error", ball=Ball(0.2, kappa)).value
    expected = expected_of(model.decision_function, *asked, error=True)
    assert error == pytest.approx(expected, abs=1e-9)
    # The points are rows of the table, and attain what is said.
    there = found.distribution()
    points = there.points(rows)
    assert list(points.columns) == list(rows.columns)
    own = np.where(there.label == 1, 1.0, -1.0)
    losses = np.logaddexp(0.0, -own * model.decision_function(points))
    assert there.mass @ losses == pytest.approx(there.value, abs=1e-9)
    changed = (points.to_numpy() != rows.iloc[there.index].to_numpy()).sum(axis=1)
    if how != "rare":  # levels that count alike are not told apart
        np.testing.assert_allclose(there.distance, changed)


def one_hot(frame):
    """Columns of levels b, c and x: a and y are dropped."""
    columns = [frame["job"] == "b", frame["job"] == "c", frame["town"] == "x"]
    return np.column_stack(columns).astype(float)


@pytest.mark.parametrize("how", ["estimator", "result", "file"])
def test_what_occurred_in_training_only_is_a_category_of_the_audit(how, tmp_path):
    rng = np.random.default_rng(2)
    (frame, y), (rows, z) = frame_of(rng, 400, "abc"), frame_of(rng, 20, "bc")
    ball, groups = {"epsilon": 0.05, "kappa": 1.0}, [[0, 1], [2]]
    model = asked = stated.classifier(**ball, categories=groups).fit(one_hot(frame), y)
    if how == "result":
        asked = stated.solve(one_hot(frame), y, **ball, categories=groups)
    elif how == "file":
        drlogit.save_model(model, tmp_path / "model.json")
        asked = drlogit.load_model(tmp_path / "model.json")
    expected = expected_of(lambda f: model.decision_function(one_hot(f)), rows, z, "abc", 0.2, 1.0)
    found = zoo.worst_loss(asked, one_hot(rows), z, epsilon=0.2)
    assert found == pytest.approx(expected, abs=1e-6 if how == "result" else 1e-9)


def test_none_can_be_stated():
    frame, y = frame_of(np.random.default_rng(3), 12, "bc")  # a does not occur
    coef = np.array([3.0, 2.0, 0.5]), -1.0  # "none" is far below both
    expected = expected_of(lambda f: one_hot(f) @ coef[0] - 1.0, frame, y, "abc", 0.2, math.inf)
    ball = Ball(0.2, feature_costs=None, categories=[[0, 1, None], [2, None]])
    assert worst_case(coef, one_hot(frame), y, ball=ball).value == pytest.approx(expected, abs=1e-9)
    without = ball.replace(categories=[[0, 1], [2, None]])
    assert worst_case(coef, one_hot(frame), y, ball=without).value < expected - 0.01


@pytest.mark.filterwarnings("ignore:levels are new:UserWarning")
def test_a_row_of_an_unseen_level_keeps_its_place_and_draws_no_other_there():
    rng = np.random.default_rng(4)
    model = stated.classifier(0.05, 1.0).fit(*frame_of(rng, 300, "bc"))
    rows, y = frame_of(rng, 20, "abc")
    assert (rows["job"] == "a").any()
    expected = expected_of(model.decision_function, rows, y, "bc", 0.2, 1.0)
    assert zoo.worst_loss(model, rows, y, epsilon=0.2) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("kappa", [1.0, math.inf])
def test_rows_beyond_the_bounds_move_back_and_draw_no_other_there(kappa):
    coef, rows = np.array([2.0, -3.0]), np.random.default_rng(5).random((15, 2))
    z = (rows @ coef > 0.0).astype(int)
    rows[:4] += [[3.0, 0.0], [0.0, 2.0], [-2.0, 0.0], [-1.0, 4.0]]
    # A number goes to an end or stays, also where it lies beyond an end.
    places = [np.array([*itertools.product(*[[x, 0.0, 1.0] for x in row])]) for row in rows]
    table = np.full((15, 15 * 9), np.inf)
    for i, own in enumerate(places):
        table[i, 9 * i : 9 * i + 9] = np.abs(own - rows[i]).sum(axis=1)
    scores = np.concatenate(places) @ coef + 0.3
    expected = worst(scores, table, rows @ coef + 0.3, z, 0.3, kappa)
    ball = Ball(0.3, kappa, feature_costs=None, bounds=(0.0, 1.0))
    with pytest.warns(UserWarning, match="4 rows lie beyond the bounds of the ball"):
        found = worst_case((coef, 0.3), rows, z, ball=ball)
    assert found.value == pytest.approx(expected, abs=1e-9)
