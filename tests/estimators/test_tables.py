"""Tables as they are: frames of pandas and polars, arrays with categories, costs by column."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from benchmarks import stated

from drlogit.estimators.tables.text_columns import seen_in_text

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
NAMES = [
    "age", "job=clerk", "job=cook", "job=smith", "job is missing", "member=False", "member=True",
    "children",
]  # fmt: skip


def model(**options):
    return stated.classifier(0.05, 1.0, **options)


def by_hand(frame=FRAME):
    """The matrix, written out."""
    jobs = ["clerk", "cook", "smith"]
    return np.column_stack(
        [
            frame.age,
            *((frame.job == job) for job in jobs),
            frame.job.isna(),
            ~frame.member.astype(bool),
            frame.member.astype(bool),
            frame.children,
        ]
    ).astype(float)


FRAMES = {
    "pandas": FRAME,
    "object": FRAME.astype({"job": object, "member": object}),
    "category": FRAME.astype({"job": "category", "children": "Int64"}),
    "arrow": FRAME.astype({"job": "string"}),
    "polars": pl.from_pandas(FRAME),
    "polars, categories": pl.from_pandas(FRAME).with_columns(pl.col("job").cast(pl.Categorical)),
}


@pytest.mark.filterwarnings("ignore:none of 80 rows has a value in column 'job':UserWarning")
def test_levels_count_from_the_average_sample():
    fitted = model().fit(FRAME, Y)
    table = fitted.coefficient_table().set_index(["column", "level"])["coefficient"]
    shares = FRAME.job.fillna("missing").value_counts(normalize=True)
    assert sum(shares[level] * table["job", level] for level in shares.index) == pytest.approx(0.0)
    new = FRAME.assign(job="monk")
    there = [FRAME.assign(job=level if level != "missing" else None) for level in shares.index]
    average = sum(
        share * fitted.decision_function(frame) for share, frame in zip(shares, there, strict=True)
    )
    with pytest.warns(UserWarning, match="unknown levels in column 'job'"):
        assert np.allclose(fitted.decision_function(new), average, rtol=0.0, atol=1e-12)
    assert table["age", None] == fitted.coef_[0, 0]


def test_the_table_of_coefficients_has_intercept_and_odds_ratios():
    fitted = model().fit(FRAME, Y)
    table = fitted.coefficient_table()
    assert table.iloc[0, :2].tolist() == ["(intercept)", None]
    assert table["coefficient"][0] == fitted.intercept_[0]
    assert np.isinf(table["cost"][0])
    assert table["odds_ratio"].to_numpy() == pytest.approx(np.exp(table["coefficient"].to_numpy()))
    without = model(fit_intercept=False).fit(FRAME, Y).coefficient_table()
    assert without["column"].tolist() == table["column"].tolist()[1:]
    several = model().fit(FRAME, np.arange(N) % 3).coefficient_table()
    assert (several["column"] == "(intercept)").sum() == 3
    assert "odds_ratio" not in several


def test_missing_numbers():
    holes = FRAME.assign(
        age=FRAME.age.where(FRAME.index % 8 > 0), children=FRAME.children.where(FRAME.index > 2)
    )
    with pytest.raises(
        ValueError, match=r"missing .NaN. in columns 'age', 'children': .*--missing"
    ):
        model().fit(holes, Y)
    for fill, value in (("median", holes.age.median()), ("mean", holes.age.mean())):
        fitted = model(missing=fill).fit(holes, Y)
        filled = holes.fillna({"age": value, "children": getattr(holes.children, fill)()})
        assert np.allclose(fitted.decision_function(holes), fitted.decision_function(filled))
        assert fitted.worst_case_loss_ == pytest.approx(
            model().fit(filled, Y).worst_case_loss_, abs=2e-6
        )
    weights = np.arange(N) % 3 + 1.0
    repeated = holes.loc[holes.index.repeat(weights.astype(int))]
    for fill in ("median", "mean"):
        weighted = model(missing=fill).fit(holes, Y, sample_weight=weights)
        assert weighted.encoding_.columns[0].fill == pytest.approx(getattr(repeated.age, fill)())
    with pytest.raises(ValueError, match=r"numbers are missing .NaN. in column 'age'"):
        model().fit(FRAME, Y).predict(holes.assign(children=1))


UNITS = pd.DataFrame(
    {
        "age": FRAME.age,
        "children": FRAME.children,
        "income": 1e3 * FRAME.age + RNG.normal(0.0, 1e3, N),
        "wealth": RNG.normal(0.0, 3e4, N),
        "same": 7.0,
    }
)


def test_cross_validation_of_a_frame():
    search = stated.search([0.01, 0.1], [1.0], cv=2, feature_costs="std").fit(FRAME, Y)
    again = stated.classifier(search.ball_.epsilon, 1.0, feature_costs="std").fit(FRAME, Y)
    assert np.allclose(search.decision_function(FRAME), again.decision_function(FRAME), atol=1e-4)


# The second half is unlike the first: a level of its own, a wide and mostly missing number.
HALVES = [(np.arange(N // 2), np.arange(N // 2, N)), (np.arange(N // 2, N), np.arange(N // 2))]
UNLIKE = FRAME.assign(
    job=FRAME.job.where(FRAME.index % 40 < 36, np.where(FRAME.index < 40, "monk", "abbot")),
    age=(FRAME.age * np.where(FRAME.index < 40, 1.0, 3.0)).where(FRAME.index % 3 > 0),
)
SPREAD = by_hand()[:, [0, 7]] * np.where(np.arange(N) < 40, 1.0, 3.0)[:, None]
LEARNT = {
    "pandas": (UNLIKE, {"missing": "median"}),
    "polars": (pl.from_pandas(UNLIKE), {"missing": "mean"}),
    "objects": (UNLIKE.astype(object), {"missing": "median", "fit_intercept": False}),
    "array": (UNLIKE[["age", "children"]].to_numpy(), {"missing": "mean"}),
    "deviations": (SPREAD, {"feature_costs": "std"}),
    "by name": (pd.DataFrame(SPREAD, columns=["a", "b"]), {"feature_costs": {"b": "std"}}),
    "bounds": (SPREAD * 0.02, {"bounds": "data"}),
}  # fmt: skip


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


# --- gaps, identifiers, and text that is numbers --------------------------------------------


def test_identifiers_are_left_out():
    named = FRAME.assign(name=[f"passenger {j}" for j in range(N)])
    with pytest.warns(
        UserWarning, match=r"'name' is ignored because it looks like a row identifier \(80 diff"
    ):
        fitted = model().fit(named, Y)
    without = model().fit(FRAME, Y)
    assert np.allclose(fitted.predict_proba(named), without.predict_proba(FRAME), atol=1e-6)
    asked = model(categorical_features=["job", "member", "name"]).fit(named, Y)
    assert asked.coef_.shape[1] == without.coef_.shape[1] + N
    with pytest.raises(ValueError, match="no usable column: column 'name'"):
        model().fit(named[["name"]], Y)


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["12.3%", "8%", "-1.5 %"], "numbers as text, such as '12.3%'"),
        (["$1,234.50", "$7", "($3.00)"], "numbers as text, such as '$1,234.50'"),
        (["1", "2", "3", "4", "unknown"], ", and 20% other text, such as 'unknown'"),
        (["2020-01-31", "2020-02-01"], "dates, such as '2020-01-31'"),
        (["31/1/2020", "1.2.20", "3-3-2021 10:30"], "dates"),
        ([str(j) for j in range(30)], "numbers as text"),
        (["a", "b", "7"], None),
        (["01", "02", "03"], None),
        (["3-4", "5-9", "10+"], None),
        ([], None),
    ],
)
def test_what_text_looks_like(texts, message):
    seen = seen_in_text(dict.fromkeys(texts, 1))
    assert seen is None if message is None else message in seen


# --- after the fit --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [{"job": FRAME.job.str.upper()}, {"job": range(N)}, {"member": FRAME.member.astype(int)}],
)
def test_levels_that_are_mostly_unknown_are_told(change):
    fitted = model().fit(FRAME, Y)
    rows = FRAME.assign(**change)
    (name,) = change
    with pytest.warns(UserWarning, match=f"unknown levels in column '{name}'"):
        fitted.predict(rows)
    some = FRAME.assign(**{name: rows[name].where(FRAME.index % 3 == 0, FRAME[name])})
    fitted.predict(some.astype({name: object}))  # no warning


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
