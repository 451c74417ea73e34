"""Which models can be asked about: linear classifiers, alone, in searches and in pipelines."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    PolynomialFeatures,
    RobustScaler,
    StandardScaler,
)
from sklearn.svm import SVC, LinearSVC

import drlogit
from drlogit import worst_case_distribution, worst_case_loss
from drlogit.robustness.measured_model import measure

RNG = np.random.default_rng(0)
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
    pipe = make_pipeline(columns, LogisticRegression()).fit(frame, Y0)
    scores_agree(pipe, frame)
    ball = {"epsilon": 0.1, "kappa": 1.0}
    linear = measure(pipe, frame, "given").linear
    expected = worst_case_loss(linear, X0, Y0, **ball)
    assert worst_case_loss(pipe, frame, Y0, space="given", **ball) == pytest.approx(
        expected, rel=1e-12
    )


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
    labels = np.arange(60) % 3
    for three in (LinearSVC(), OneVsRestClassifier(LogisticRegression())):
        with pytest.raises(ValueError, match="on 3 classes and is no softmax; two are wanted"):
            drlogit.audit(three.fit(X0, labels), X0, labels)
    two = LogisticRegression().fit(X0, Y0)
    with pytest.raises(ValueError, match="labels of the model, -1 or 1, got "):
        worst_case_loss(two, X0, (Y0 > 0).astype(int), epsilon=0.1, kappa=1.0)
    with pytest.raises(ValueError, match="labels of the model, -1 or 1, got 'a'"):
        worst_case_loss(two, X0, np.where(np.arange(60) > 0, "b", "a"), epsilon=0.1, kappa=1.0)


def test_unfitted_models():
    for model in (LogisticRegression(), make_pipeline(StandardScaler(), LinearSVC())):
        with pytest.raises(NotFittedError):
            worst_case_loss(model, X0, Y0, epsilon=0.1, kappa=1.0)
