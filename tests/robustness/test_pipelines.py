"""Pipelines: distance in the space of the last step, one-hot columns as categories."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.decomposition import PCA
from sklearn.feature_selection import SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
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

from drlogit import (
    DRLogisticRegression,
    RowBlocks,
    audit,
    misclassification_bounds,
    worst_case_distribution,
    worst_case_loss,
)

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
    "table": ours(feature_costs={"age": "std", "income": "std"}),
    "table in a pipeline": make_pipeline("passthrough", ours(feature_costs="std", bounds="data")),
}  # fmt: skip


@pytest.mark.parametrize("name", PIPELINES)
def test_an_audit_on_the_training_data_is_the_fit(name):
    data = HOLES if name == "imputed" else FRAME
    model = PIPELINES[name].fit(data, Y)
    last = model[-1] if hasattr(model, "steps") else model
    fit = float(last.worst_case_loss_[0])
    ball = {"epsilon": last.epsilon_, "kappa": last.kappa}
    assert worst_case_loss(model, data, Y, **ball) == pytest.approx(fit, abs=1e-9)
    report = audit(model, data, Y, epsilons=[last.epsilon_], n_listed=1)
    assert report.kappa == last.kappa
    assert report.models[0].rows[0].worst_case_loss == pytest.approx(fit, abs=1e-9)
    assert f"distances {report.spaces[0]}" in str(report)
    worst = worst_case_distribution(model, data, Y, **ball)
    assert fit - 2e-4 <= worst.expected_loss <= fit + 1e-9
    assert misclassification_bounds(model, data, Y, **ball).worst >= 1.0 - model.score(data, Y)


def test_in_a_search():
    grid = {"drlogisticregression__epsilon": [0.01, 0.1]}
    search = GridSearchCV(make_pipeline(columns(OneHotEncoder()), ours()), grid, cv=2).fit(FRAME, Y)
    last = search.best_estimator_[-1]
    found = worst_case_loss(search, FRAME, Y, epsilon=last.epsilon_, kappa=1.0)
    assert found == pytest.approx(last.worst_case_loss_[0], abs=1e-9)


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
def test_intervals_are_categories_in_blocks_too(after):
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
    assert found == pytest.approx(
        worst_case_loss(model, RowBlocks.from_array(X, 17), Y, **ball), abs=1e-12
    )


@pytest.mark.parametrize(
    ("encoder", "reason"),
    [
        (OrdinalEncoder(), "step 'c' .OrdinalEncoder. numbers the levels of a category"),
        (TargetEncoder(cv=2), "step 'c' .TargetEncoder. makes numbers of the labels"),
    ],
)
@pytest.mark.parametrize("space", ["fitted", "given"])
def test_encoders_without_a_distance(encoder, reason, space):
    model = make_pipeline(columns(encoder), LogisticRegression()).fit(FRAME, Y)
    with pytest.raises(ValueError, match=reason):
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
