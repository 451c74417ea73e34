"""Which models can be asked about, in searches and pipelines too; where distance is measured."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.compose import ColumnTransformer, make_column_transformer
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
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
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

from drlogit import (
    DRLogisticRegression,
    audit,
    misclassification_bounds,
    worst_case_distribution,
    worst_case_loss,
)
from drlogit.robustness.measured_model import measure

BALL = {"epsilon": 0.1, "kappa": 1.0}
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


def scores_agree(model, X):
    linear = measure(model, X, "given").linear
    matrix = X.toarray() if sp.issparse(X) else np.asarray(X, dtype=float)
    np.testing.assert_allclose(
        matrix @ linear.coef + linear.intercept, model.decision_function(X), atol=1e-9
    )


@pytest.mark.parametrize(
    "classifier",
    [
        LogisticRegression(),
        LinearSVC(),
        RidgeClassifier(fit_intercept=False),
        LinearDiscriminantAnalysis(),
        SVC(kernel="linear"),
        DRLogisticRegression(epsilon=0.01),
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
    "std only": StandardScaler(with_mean=False),
    "maxabs": MaxAbsScaler(),
    "minmax": MinMaxScaler((-2.0, 3.0)),
    "robust": RobustScaler(),
    "kbest": SelectKBest(k=2),
    "identity": FunctionTransformer(),
    "passthrough": "passthrough",
    "imputer": SimpleImputer(),
    "pipeline": make_pipeline(MaxAbsScaler(), SelectKBest(k=3)),
    "columns": ColumnTransformer(
        [
            ("a", StandardScaler(), [0, 3]),
            ("b", "drop", [1]),
            ("c", make_pipeline(MinMaxScaler(), RobustScaler()), slice(1, 3)),
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
    model = make_pipeline(columns, LogisticRegression()).fit(frame, Y0)
    scores_agree(model, frame)
    with pytest.raises(ValueError, match="feature names should match"):
        worst_case_loss(model[-1].fit(frame, Y0), frame[list("dcba")], Y0, **BALL)


def test_sparse_input_and_sparse_coefficients():
    X = sp.csc_matrix(np.where(np.abs(X0) > 0.5, X0, 0.0))
    pipe = make_pipeline(MaxAbsScaler(), LogisticRegression()).fit(X, Y0)
    scores_agree(pipe, X)
    expected = worst_case_loss(pipe, X.toarray(), Y0, **BALL)
    assert worst_case_loss(pipe, X, Y0, **BALL) == pytest.approx(expected, rel=1e-12)
    pipe[-1].sparsify()
    assert worst_case_loss(pipe, X, Y0, **BALL) == pytest.approx(expected, rel=1e-12)


class Squaring(StandardScaler):
    """Claims to be a scaler."""

    def transform(self, X):
        return super().transform(X) ** 2


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (make_pipeline(PolynomialFeatures(), LogisticRegression()), "PolynomialFeatures.*scale"),
        (make_pipeline(StandardScaler(), PCA(2), LogisticRegression()), "'pca' .PCA. is not known"),
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
        (LinearRegression(), "predicts numbers, not labels"),
    ],
    ids=lambda m: type(m).__name__ if not isinstance(m, str) else "",
)
def test_models_that_are_not_linear_classifiers(model, message):
    model.fit(X0, Y0)
    with pytest.raises(ValueError, match=message):
        worst_case_loss(model, X0, Y0, **BALL, space="given")


class ReversedLater(LogisticRegression):
    """Its score is that of its coefficients in the first 64 rows, and reversed in the others."""

    def decision_function(self, X):
        return np.where(np.arange(len(X)) < 64, 1.0, -1.0) * super().decision_function(X)


def test_scores_are_compared_on_all_rows():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 3))
    y = (X @ [2.0, -1.0, 0.5] + rng.logistic(size=200) > 0.0).astype(int)
    model = ReversedLater().fit(X, y)
    assert worst_case_loss(model, X[:64], y[:64], epsilon=0.1, kappa=1.0) > 0.0
    with pytest.raises(ValueError, match="it is not linear in X"):
        worst_case_loss(model, X, y, epsilon=0.1, kappa=1.0)


def test_three_classes_and_unknown_labels():
    labels = np.arange(60) % 3
    for three, said in (
        (LinearSVC(), "on 3 classes and is no softmax; expected two classes"),
        (SGDClassifier(loss="log_loss"), "on 3 classes and is no softmax"),
        (OneVsRestClassifier(LogisticRegression()), r"has no coef_.* estimators_\[k\]"),
    ):
        with pytest.raises(ValueError, match=said):
            audit(three.fit(X0, labels), X0, labels)
    two = LogisticRegression().fit(X0, Y0)
    with pytest.raises(ValueError, match="labels of the model, -1 or 1, got "):
        worst_case_loss(two, X0, (Y0 > 0).astype(int), **BALL)
    with pytest.raises(ValueError, match="labels of the model, -1 or 1, got 'a'"):
        worst_case_loss(two, X0, np.where(np.arange(60) > 0, "b", "a"), **BALL)


def test_unfitted_models():
    for model in (LogisticRegression(), make_pipeline(StandardScaler(), LinearSVC())):
        with pytest.raises(NotFittedError):
            worst_case_loss(model, X0, Y0, **BALL)


# --- where distance is measured ---------------------------------------------------------------


def columns(encoder, numbers=None):
    return ColumnTransformer([("n", numbers or StandardScaler(), NUMBERS), ("c", encoder, TEXTS)])


def ours(**options):
    return DRLogisticRegression(0.05, 1.0, **options)


NUMERIC = make_column_transformer((StandardScaler(), NUMBERS))
PIPELINES = {
    "scaler": make_pipeline(NUMERIC, ours()),
    "costs": make_pipeline(NUMERIC, ours(feature_costs=[2.0, math.inf])),
    "bounds": make_pipeline(
        make_column_transformer((MinMaxScaler(), NUMBERS)), ours(bounds=(0.0, 1.0))
    ),
    "pca": make_pipeline(NUMERIC, PCA(1), ours()),
    "polynomial": make_pipeline(NUMERIC, PolynomialFeatures(include_bias=False), ours()),
    "one-hot": make_pipeline(columns(OneHotEncoder()), ours()),
    "dropped, dense": make_pipeline(
        columns(OneHotEncoder(drop="first", sparse_output=False)), ours(categories=[[2, 3, 4], [5]])
    ),
    "nested": make_pipeline(
        columns(make_pipeline(OneHotEncoder(), MaxAbsScaler()), make_pipeline(RobustScaler())),
        SelectKBest(k=4),
        ours(),
    ),
    "union": make_pipeline(
        NUMERIC, FeatureUnion([("a", "passthrough"), ("b", PCA(1))]), ours(norm="linf")
    ),
    "imputed": make_pipeline(
        columns(OneHotEncoder(), SimpleImputer(add_indicator=True)), MaxAbsScaler(),
        ours(),
    ),
    "search": GridSearchCV(
        make_pipeline(columns(OneHotEncoder()), ours()),
        {"drlogisticregression__epsilon": [0.01, 0.1]}, cv=2,
    ),
    "three classes": make_pipeline(NUMERIC, ours(norm="l2")),
    "nothing but the model": make_pipeline("passthrough", None, ours(norm="linf")),
    "table": ours(feature_costs={"age": "std", "income": "std"}),
    "table in a pipeline": make_pipeline("passthrough", ours(feature_costs="std", bounds="data")),
}  # fmt: skip


@pytest.mark.parametrize("name", PIPELINES)
def test_an_audit_on_the_training_data_is_the_fit(name):
    data, labels = HOLES if name == "imputed" else FRAME, Y
    if name == "three classes":
        labels = np.digitize(SCORE, [-1.0, 0.5])
    elif name == "nothing but the model":
        data = FRAME[NUMBERS].to_numpy()
    model = PIPELINES[name].fit(data, labels)
    found = getattr(model, "best_estimator_", model)
    last = found[-1] if hasattr(found, "steps") else found
    fit = float(last.worst_case_loss_[0])
    ball = {"epsilon": last.epsilon_, "kappa": last.kappa}
    assert worst_case_loss(model, data, labels, **ball) == pytest.approx(fit, abs=1e-9)
    report = audit(model, data, labels, epsilons=[last.epsilon_], n_listed=1)
    assert report.kappa == last.kappa
    assert report.models[0].rows[0].worst_case_loss == pytest.approx(fit, abs=1e-9)
    assert f"distances {report.spaces[0]}" in str(report)
    worst = worst_case_distribution(model, data, labels, **ball)
    assert fit - 2e-4 <= worst.expected_loss <= fit + 1e-9
    bounds = misclassification_bounds(model, data, labels, **ball)
    assert bounds.worst >= 1.0 - model.score(data, labels)


ENCODERS = {
    "all levels": (OneHotEncoder(), [[2, 3, 4, 5], [6, 7]]),
    "dropped": (OneHotEncoder(drop="first"), [[2, 3, 4], [5]]),
    "infrequent": (OneHotEncoder(min_frequency=20), [[2, 3, 4], [5, 6]]),
    "infrequent, dropped": (OneHotEncoder(max_categories=3, drop="first"), [[2, 3], [4]]),
    "ignored": (
        OneHotEncoder(categories=[["clerk", "cook"], ["x", "y"]], handle_unknown="ignore"),
        [[2, 3], [4, 5]],
    ),
}


@pytest.mark.parametrize("name", ENCODERS)
@pytest.mark.parametrize("after", [None, StandardScaler(with_mean=False)], ids=["", "scaled"])
def test_one_hot_columns_of_any_encoder_are_categories(name, after):
    encoder, groups = ENCODERS[name]
    model = make_pipeline(columns(encoder), after, LogisticRegression()).fit(FRAME, Y)
    Z = model[0].transform(FRAME)
    scale = np.ones(Z.shape[1]) if after is None else model[1].scale_
    last = (model[-1].coef_[0] / scale, model[-1].intercept_[0])
    Z = Z.toarray() if hasattr(Z, "toarray") else np.array(Z)
    coef = last[0].copy()
    Z[:, :2], coef[:2] = Z[:, :2] / scale[:2], coef[:2] * scale[:2]
    # Numbers stay where they are, so that it matters what categories can do.
    costs = np.where(np.arange(Z.shape[1]) < 2, math.inf, 1.0)
    ball = {"epsilon": 0.1, "kappa": math.inf, "feature_costs": costs}
    expected = worst_case_loss(
        (coef, last[1]), Z, np.where(Y == "yes", 1, 0), **ball, categories=groups
    )
    assert worst_case_loss(model, FRAME, Y, **ball) == pytest.approx(expected, abs=1e-12)
    as_numbers = worst_case_loss(model, FRAME, Y, **ball, categories=[])
    assert as_numbers != pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("after", ["passthrough", StandardScaler(with_mean=False)])
def test_intervals_are_categories(after):
    X = FRAME[NUMBERS].to_numpy(dtype=float)
    bins = KBinsDiscretizer(3, strategy="uniform")
    model = make_pipeline(bins, after, LogisticRegression()).fit(X, Y)
    ball = {"epsilon": 0.05, "kappa": 1.0}
    found = worst_case_loss(model, X, Y, **ball)
    levels = make_pipeline(bins, after).transform(X).toarray()
    scale = levels.max(axis=0)
    plain = (model[-1].coef_[0] * scale, model[-1].intercept_[0])
    groups = [[0, 1, 2], [3, 4, 5]]
    assert found == pytest.approx(
        worst_case_loss(plain, levels / scale, Y == "yes", **ball, categories=groups), abs=1e-9
    )


@pytest.mark.parametrize("encoder", [OrdinalEncoder(), TargetEncoder(cv=2)])
@pytest.mark.parametrize("space", ["fitted", "given"])
def test_encoders_without_a_distance(encoder, space):
    model = make_pipeline(columns(encoder), LogisticRegression()).fit(FRAME, Y)
    with pytest.raises(ValueError, match=r"step 'c' .* makes one number of a category"):
        audit(model, FRAME, Y, space=space)


def test_the_given_space():
    numbers = FRAME[NUMBERS]
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(numbers, Y)
    ball = {"epsilon": 0.05, "kappa": math.inf}
    deviations = numbers.std(ddof=0).to_numpy()
    fitted = worst_case_loss(model, numbers, Y, **ball)
    given = worst_case_loss(model, numbers, Y, **ball, space="given")
    assert given != pytest.approx(fitted, abs=1e-3)
    for costs in (1.0 / deviations, "std", {"age": "std", "income": "std"}):
        found = worst_case_loss(model, numbers, Y, **ball, space="given", feature_costs=costs)
        assert found == pytest.approx(fitted, abs=1e-12)
    report = audit(model, numbers, Y, space="given", feature_costs="std", n_listed=0)
    assert report.spaces == ("in the units of X as given, with the feature costs given",)
    with pytest.raises(ValueError, match="space must be 'fitted' or 'given', got 'raw'"):
        worst_case_loss(model, numbers, Y, **ball, space="raw")
    with pytest.raises(ValueError, match="have no distance before they are encoded"):
        worst_case_loss(ours().fit(FRAME, Y), FRAME, Y, **ball, space="given")
