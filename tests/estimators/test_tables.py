"""Tables as they are: frames of pandas and polars, arrays with categories, costs by column."""

from __future__ import annotations

import math
import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from benchmarks import stated
from sklearn.base import clone
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from drlogit import Ball, DRLogisticRegression, DRLogisticRegressionCV

N = 80
RNG = np.random.default_rng(5)
FRAME = pd.DataFrame(
    {
        "age": RNG.normal(40.0, 12.0, N),
        "job": RNG.choice(["clerk", "cook", "smith"], N),
        "member": RNG.random(N) < 0.4,
        "children": RNG.integers(0, 4, N),
    }
)
FRAME.loc[::9, "job"] = None
SCORE = 0.1 * (FRAME.age - 40.0) + (FRAME.job == "cook") + 0.5 * FRAME.member - 0.5
Y = np.where(SCORE + RNG.logistic(size=N) > 0.0, "yes", "no")


def model(**options):
    return stated.classifier(0.05, 1.0, **options)


def by_hand(frame=FRAME):
    """The matrix, written out."""
    jobs = ["clerk", "cook", "smith"]
    member = frame.member.astype(bool)
    of_jobs = [*(frame.job == job for job in jobs), frame.job.isna()]
    return np.column_stack([frame.age, *of_jobs, ~member, member, frame.children]).astype(float)


FRAMES = {
    "pandas": FRAME,
    "object": FRAME.astype({"job": object, "member": object}),
    "category": FRAME.astype({"job": "category", "children": "Int64"}),
    "arrow": FRAME.astype({"job": "string"}),
    "polars": pl.from_pandas(FRAME),
    "polars, categories": pl.from_pandas(FRAME).with_columns(pl.col("job").cast(pl.Categorical)),
}


@pytest.mark.parametrize("name", FRAMES)
def test_a_frame_of_any_kind_is_its_encoding(name):
    frame = FRAMES[name]
    fitted = model(feature_costs={"job": 3.0}).fit(frame, Y)
    assert fitted.coefficient_table()["level"].tolist()[2:8] == [
        "clerk", "cook", "smith", "missing", "False", "True",
    ]  # fmt: skip
    assert fitted.n_features_in_ == 4
    assert fitted.feature_names_in_.tolist() == list(FRAME.columns)
    age, children = FRAME.age.std(ddof=0), FRAME.children.std(ddof=0)
    costs = np.array([1.0 / age, 3, 3, 3, 3, 1, 1, 1.0 / children])
    X = by_hand()
    expected = stated.solve(
        X, Y, epsilon=0.05, kappa=1.0, feature_costs=costs, categories=[[1, 2, 3, 4], [5, 6]]
    )
    assert fitted.worst_case_loss_ == pytest.approx(expected.objective, abs=2e-6)
    assert fitted.ball_.on(fitted.ball_.features).costs == pytest.approx(costs)
    scores = X @ fitted.coef_[0] + fitted.intercept_[0]
    assert np.allclose(fitted.decision_function(frame), scores, rtol=0.0, atol=1e-12)


def test_levels_count_from_the_average_sample():
    fitted = model().fit(FRAME, Y)
    table = fitted.coefficient_table().set_index(["column", "level"])["coefficient"]
    shares = FRAME.job.fillna("missing").value_counts(normalize=True)
    assert sum(shares[level] * table["job", level] for level in shares.index) == pytest.approx(0.0)
    rest = fitted.decision_function(FRAME) - table["job"][FRAME.job.fillna("missing")].to_numpy()
    with pytest.warns(UserWarning, match="levels are new in column 'job'"):
        found = fitted.decision_function(FRAME.assign(job="monk"))
    assert np.allclose(found, rest, rtol=0.0, atol=1e-12)


def test_the_table_of_coefficients_has_intercept_and_odds_ratios():
    fitted = model().fit(FRAME, Y)
    table = fitted.coefficient_table()
    assert table.iloc[0, :3].tolist() == ["yes", "(intercept)", None]
    assert table["coefficient"][0] == fitted.intercept_[0]
    assert np.isinf(table["cost"][0])
    assert table["odds_ratio"].to_numpy() == pytest.approx(np.exp(table["coefficient"].to_numpy()))
    without = model(fit_intercept=False).fit(FRAME, Y).coefficient_table()
    assert without["column"].tolist() == table["column"].tolist()[1:]
    several = model().fit(FRAME, np.arange(N) % 3).coefficient_table()
    assert (several["column"] == "(intercept)").sum() == 3
    assert "odds_ratio" not in several


def test_columns_that_are_neither():
    for column in (pd.to_datetime("2020-01-01"), [1j] * N, [("a",)] * N):
        with pytest.raises(ValueError, match="column 'd' must hold"):
            model().fit(FRAME.assign(d=column), Y)
    with pytest.raises(ValueError, match="column 'd' must hold"):
        model().fit(pl.from_pandas(FRAME).with_columns(d=pl.date(2020, 1, 1)), Y)
    with pytest.raises(ValueError, match="categorical_features needs a data frame or a dense"):
        model(categorical_features=[0]).fit(sp.csr_array(by_hand()), Y)
    with pytest.raises(TypeError, match=r"polars LazyFrame: pass X.collect\(\)"):
        model().fit(pl.from_pandas(FRAME).lazy(), Y)
    for frame in (FRAME, FRAME[["age", "children"]]):
        twice = pd.concat([frame, frame[["age"]]], axis=1)
        with pytest.raises(ValueError, match="distinct column names, got 'age' more than once"):
            model().fit(twice, Y)
    with pytest.raises(ValueError, match="at least one row"):
        model().fit(FRAME[:0], Y[:0])
    with pytest.raises(ValueError, match="feature names should match"):
        model().fit(FRAME, Y).predict(FRAME.rename(columns={"age": "years"}))
    with pytest.raises(ValueError, match="'age' must hold numbers, or be one of categorical_feat"):
        model().fit(FRAME, Y).predict(FRAME.assign(age=FRAME.job))
    with pytest.raises(ValueError, match="X must be a table, as in the fit, got csr"):
        model().fit(FRAME, Y).predict(sp.csr_array(by_hand()))


# --- after the fit --------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", [model(), stated.search([0.1], [1.0], cv=2)])
def test_a_refit_that_fails_changes_nothing(estimator, monkeypatch):
    fitted = estimator.fit(FRAME[["age", "job"]], Y)
    expected = fitted.predict_proba(FRAME[["age", "job"]])
    before = dict(vars(fitted))

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    with pytest.raises(ValueError, match="two classes"):
        fitted.fit(FRAME, ["one"] * N)
    monkeypatch.setattr("drlogit.estimators.robust_classifier.solve_problem", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fitted.fit(FRAME, np.where(Y == "yes", "a", "z"))
    assert vars(fitted).keys() == before.keys()
    assert all(vars(fitted)[name] is value for name, value in before.items())
    assert (fitted.predict_proba(FRAME[["age", "job"]]) == expected).all()


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan, 1e200])
@pytest.mark.parametrize("text", [False, True])
def test_what_is_no_number_is_named_by_row_and_column(value, text):
    good = FRAME if text else FRAME[["age", "children"]]
    bad = good.assign(age=good.age.where(good.index != 7, value))
    options = {"missing": "median"} if text and not math.isnan(value) else {}
    where = "'age'" if text and math.isnan(value) else "in row 7 of column 'age'"
    fitted = model().fit(good, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for ask in (lambda: model(**options).fit(bad, Y), lambda: fitted.predict(bad)):
            with pytest.raises(ValueError, match=where):
                ask()
        if not text:
            with pytest.raises(ValueError, match="in row 7 of column 0"):
                stated.solve(bad.to_numpy(), Y, epsilon=0.1, kappa=1.0)


# --- what a table hides ---------------------------------------------------------------------

DAYS = pd.date_range("1991-01-08", periods=N).strftime("%Y%m%d").astype(int).to_numpy()
ZEROS = np.where(np.arange(N) % 5, RNG.normal(220.0, 40.0, N).round(), 0.0)

HIDDEN = {
    "constant": (np.full(N, 3.0), "'a' is constant: 3 in every row"),
    "one level": (np.full(N, "x", dtype=object), "'a' is constant: 'x' in every row"),
    "nearly empty": (np.where(np.arange(N) < 3, np.arange(N), np.nan), "no value in 77 of 80"),
    "empty": (np.full(N, np.nan), "has no value in 80 of 80 rows, and is ignored"),
    "dates": (DAYS, "'a' holds dates as numbers, such as 19910108"),
    "dates as text": ([f"2020-01-{d % 28 + 1:02}" for d in range(N)], "'a' holds dates, such as"),
    "blanks": (np.resize(["Male ", "male", "f"], N), "only in case or blanks: 'Male ', 'male'"),
    "missing is -99": (
        np.where(np.arange(N) % 5, np.arange(N) % 6, -99),
        "'a' is -99 in 16 of 80 rows, unlike its other values",
    ),
    "missing is -999": (
        np.where(np.arange(N) % 5, RNG.gamma(2.0, 4e3, N).round(), -999.0),
        "'a' is -999 in 16 of 80 rows, unlike its other values",
    ),
    "missing is 0": (ZEROS, "'a' is 0 in 16 of 80 rows, unlike its other values"),
    "identifier": ([f"row {j}!" for j in range(N)], "looks like a row identifier .80 different"),
    "units": ([f"{j} mg" for j in range(N)], "'a' holds numbers with units, such as '0 mg'"),
    "numbers": ([f"$1,{j:03}.50" for j in range(N)], "'a' holds numbers as text, such as '.1,000"),
}


@pytest.mark.parametrize("name", HIDDEN)
def test_what_a_column_hides_is_said_once(name):
    values, message = HIDDEN[name]
    frame = pd.DataFrame({"a": values, "age": FRAME.age})
    with pytest.warns(UserWarning, match=message) as caught:
        fitted = DRLogisticRegression(missing="median").fit(frame, Y)
    assert len(caught) == 1
    assert np.isfinite(fitted.predict_proba(frame[:1])).all()


@pytest.mark.parametrize(
    "values",
    [RNG.integers(0, 4, N), RNG.random(N), RNG.lognormal(size=N), RNG.choice(["a", "b 2"], N),
     np.where(RNG.random(N) < 0.5, 0.0, 100.0), np.maximum(RNG.normal(0.0, 9.0, N).round(), 0.0),
     np.arange(N) % 3 + 97],
)  # fmt: skip
def test_ordinary_columns_are_not_remarked_on(values):
    DRLogisticRegression().fit(pd.DataFrame({"a": values, "age": FRAME.age}), Y)


def test_labels_that_differ_in_case_are_said():
    labels = np.where(np.arange(N) % 4, Y, "Yes")
    with pytest.warns(UserWarning, match="y has levels that differ only in case .* 'Yes', 'yes'"):
        DRLogisticRegression().fit(FRAME, labels)


def test_labels_that_are_amounts_are_said():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        DRLogisticRegression(1e-2, 1.0, tol=1e-3).fit(FRAME, np.arange(N) % 27)
    said = "y has 27 different numbers, each of which is a class"
    assert any(str(each.message).startswith(said) for each in caught)


def test_rows_that_are_sorted_by_label_are_said():
    y = np.repeat([0, 1], [190, 10])
    X = np.random.default_rng(0).standard_normal((200, 2)) + 0.3 * y[:, None]
    with pytest.warns(UserWarning, match="almost never .* the rows are sorted by label: shuffle"):
        DRLogisticRegression(0.001).fit(X, y)
    frame, labels = FRAME.iloc[np.argsort(Y)], np.sort(Y)
    with pytest.warns(UserWarning, match="the rows are sorted by label: shuffle") as caught:
        DRLogisticRegression().fit(frame, labels)
    assert len(caught) == 1
    with (
        pytest.warns(UserWarning, match="a fold has one label only: shuffle the rows, or use"),
        pytest.warns(UserWarning, match="before they are split"),
    ):
        DRLogisticRegressionCV([0.1], [1.0], cv=KFold(4)).fit(frame, labels)


def test_a_column_named_in_a_pipeline_needs_names():
    numbers = FRAME[["age", "children"]]
    ball = Ball(feature_costs={"age": 2.0})
    pipeline = make_pipeline(StandardScaler(), DRLogisticRegression(ball=ball))
    with pytest.raises(ValueError, match=r"set_output\(transform='pandas'\) keeps the names"):
        pipeline.fit(numbers, Y)
    pipeline.set_output(transform="pandas").fit(numbers, Y)


def test_deviations_and_levels_are_those_of_each_fold():
    """A search resolves a ball for the rows of each fold, as a fit of these rows does."""
    ball = Ball(0.05, kappa=2.0)
    search = DRLogisticRegressionCV([0.05], 1, ball=ball, cv=2).fit(FRAME, Y)
    for fold, (train, test) in enumerate(StratifiedKFold(2).split(FRAME, Y)):
        fitted = DRLogisticRegression(ball=ball).fit(FRAME.iloc[train], Y[train])
        expected = -log_loss(Y[test], fitted.predict_proba(FRAME.iloc[test]))
        found = search.cv_results_[f"split{fold}_test_score"][search.best_index_]
        assert found == pytest.approx(expected, abs=1e-4)
    assert search.ball_.feature_costs["age"] == pytest.approx(1.0 / FRAME.age.std(ddof=0))


@pytest.mark.parametrize("fill", ["mean", "median"])
def test_missing_numbers_become_what_was_asked_for(fill):
    holes = FRAME.assign(age=FRAME.age.where(FRAME.index % 8 > 0))
    fitted = DRLogisticRegression(missing=fill).fit(holes, Y)
    filled = holes.assign(age=holes.age.fillna(getattr(holes.age, fill)()))
    expected = fitted.decision_function(filled)
    assert np.allclose(fitted.decision_function(holes), expected, rtol=0.0, atol=1e-12)


def test_the_own_pair_of_a_ball_is_among_those_that_are_tried():
    for ball in (Ball(0.031, 2.5), Ball(0.031)):
        search = DRLogisticRegressionCV([0.1], [3.0], ball=ball, cv=2).fit(FRAME, Y)
        assert {"epsilon": ball.epsilon, "kappa": ball.kappa} in search.cv_results_["params"]


def test_searches_over_radii_and_balls():
    balls = [Ball(), Ball.tolerating(labels=0.02), Ball.tolerating(columns={"job": 0.1})]
    for grid in ({"epsilon": [0.01, 0.1]}, {"ball": balls}):
        found = GridSearchCV(DRLogisticRegression(), grid, cv=2).fit(FRAME, Y)
        assert clone(found.best_estimator_).get_params()["ball"] == found.best_params_.get("ball")
        again = pickle.loads(pickle.dumps(found.best_estimator_))
        assert again.ball_ == found.best_estimator_.ball_
        assert str(again.ball_) == str(found.best_estimator_.ball_)
