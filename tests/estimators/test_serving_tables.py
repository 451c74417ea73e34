"""What happens to a table after the fit, and what is said of its columns before."""

from __future__ import annotations

import json
import math
import warnings

import numpy as np
import pandas as pd
import pytest

import drlogit
from drlogit import DRLogisticRegression, DRLogisticRegressionCV, cli, load_model, save_model
from drlogit.estimators.tables.text_columns import numbers_in_text, seen_in_text

RNG = np.random.default_rng(5)
N = 120
FRAME = pd.DataFrame(
    {
        "age": RNG.normal(40.0, 10.0, N),
        "income": RNG.normal(30.0, 5.0, N),
        "job": RNG.choice(["clerk", "cook", "smith"], N),
        "owner": RNG.random(N) < 0.5,
    }
)
Y = np.where(0.1 * (FRAME.age - 40.0) + FRAME.owner + RNG.logistic(size=N) > 0.5, "yes", "no")


def model(**options):
    return DRLogisticRegression(0.05, 1.0, feature_costs="std", **options)


# --- gaps -----------------------------------------------------------------------------------


@pytest.mark.parametrize("fill", ["median", "mean"])
def test_gaps_in_columns_that_were_complete_in_training(fill, tmp_path):
    fitted = model(missing=fill).fit(FRAME, Y)
    gaps = FRAME.assign(age=FRAME.age.where(FRAME.index % 4 > 0))
    filled = gaps.assign(age=gaps.age.fillna(getattr(FRAME.age, fill)()))
    expected = fitted.predict_proba(filled)
    assert np.allclose(fitted.predict_proba(gaps), expected, rtol=0.0, atol=1e-12)
    assert np.allclose(fitted.to_sklearn().predict_proba(gaps), expected, rtol=0.0, atol=1e-12)
    save_model(fitted, tmp_path / "m.json")
    assert np.allclose(load_model(tmp_path / "m.json").predict_proba(gaps), expected, atol=1e-12)


def test_a_column_without_any_value_is_left_out(tmp_path):
    empty = FRAME.assign(tbg=np.nan)
    with pytest.warns(UserWarning, match="column 'tbg' is left out, as it has no value") as told:
        fitted = model(missing="median", bounds={"tbg": (0, 1)}).fit(empty, Y)
    assert len(told) == 1
    expected = model(missing="median").fit(FRAME, Y)
    assert fitted.coef_ == pytest.approx(expected.coef_, abs=1e-6)
    for rows in (empty, empty.assign(tbg=3.0)):
        probabilities = fitted.predict_proba(rows)
        assert np.allclose(fitted.to_sklearn().predict_proba(rows), probabilities, atol=1e-12)
    save_model(fitted, tmp_path / "m.json")
    assert (load_model(tmp_path / "m.json").predict_proba(empty) == probabilities).all()
    assert [row["column"] for row in fitted.coefficient_table()][:2] == ["age", "income"]
    assert np.isfinite(drlogit.worst_case_loss(fitted, empty, Y, epsilon=0.05, kappa=1.0))
    assert not any("tbg" in sentence for sentence in drlogit.allowances(fitted))


# --- identifiers, and text that is numbers --------------------------------------------------


def test_identifiers_are_left_out_in_python_as_on_the_command_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    named = FRAME.assign(name=[f"passenger {j}" for j in range(N)])
    with pytest.warns(UserWarning, match=r"'name' is left out, as it tells rows apart \(120 diff"):
        fitted = model().fit(named, Y)
    without = model().fit(FRAME, Y)
    assert fitted.coef_ == pytest.approx(without.coef_, abs=1e-6)
    assert np.allclose(fitted.predict_proba(named), without.predict_proba(FRAME), atol=1e-6)
    named.assign(y=Y).to_csv("t.csv", index=False)
    options = "--target y --standardize --epsilon 0.05 --kappa 1"
    assert cli.main(f"fit t.csv {options} -o m.json --json".split()) == 0
    assert "column 'name' is left out, as it tells rows apart" in capsys.readouterr().err
    assert load_model("m.json").coef_ == pytest.approx(without.coef_, abs=1e-6)
    asked = model(categorical_features=["job", "owner", "name"]).fit(named, Y)
    assert asked.coef_.shape[1] == without.coef_.shape[1] + N
    with pytest.raises(ValueError, match="no column left to be a feature: column 'name'"):
        model().fit(named[["name"]], Y)


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["12.3%", "8%", "-1.5 %"], "numbers written as '12.3%'"),
        (["$1,234.50", "$7", "($3.00)"], "numbers written as '$1,234.50'"),
        (["1", "2", "3", "4", "unknown"], "numbers, and 20% other text, such as 'unknown'"),
        (["2020-01-31", "2020-02-01"], "dates, such as '2020-01-31'"),
        (["31/1/2020", "1.2.20", "3 Mar 2021 10:30"], "dates"),
        ([str(j) for j in range(30)], "numbers kept as text"),
        (["a", "b", "7"], None),
        (["01", "02", "03"], None),
        (["3-4", "5-9", "10+"], None),
        ([], None),
    ],
)
def test_what_text_looks_like(texts, message):
    seen = seen_in_text(dict.fromkeys(texts, 1))
    assert seen is None if message is None else message in seen


def test_text_that_is_numbers_is_named_and_read(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    table = FRAME.assign(
        income=[f"${1000 * v:,.2f}" for v in FRAME.income],
        age=FRAME.age.round().astype(int).astype(str).where(FRAME.index % 5 > 0, "unknown"),
    )
    with pytest.warns(UserWarning, match="column '(age|income)' holds numbers") as told:
        model().fit(table, Y)
    assert "pandas.to_numeric(X['income']" in str(told[1].message)
    table.assign(y=Y).to_csv("t.csv", index=False)
    assert cli.main("fit t.csv --target y --json".split()) == 0
    assert "--numbers income reads it as numbers" in capsys.readouterr().err
    read = "--numbers income,age --missing median --standardize"
    assert cli.main(f"fit t.csv --target y {read} -o m.json --json".split()) == 0
    assert "24 texts of column 'age' are no numbers" in capsys.readouterr().err
    fitted = load_model("m.json")
    assert fitted.encoding_.names[:2] == ["age", "income"]
    assert cli.main("predict m.json t.csv --json".split()) == 0
    served = table.assign(
        income=numbers_in_text(table.income), age=pd.to_numeric(table.age, errors="coerce")
    )
    found = np.array(json.loads(capsys.readouterr().out)["probabilities"])
    assert np.allclose(found, fitted.predict_proba(served), rtol=0.0, atol=1e-12)


# --- after the fit --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        {"job": FRAME.job.str.upper()},
        {"job": np.arange(N)},
        {"owner": FRAME.owner.astype(int)},
        {"job": None},
    ],
)
def test_levels_that_are_mostly_unknown_are_told(change):
    fitted = model().fit(FRAME, Y)
    rows = FRAME.assign(**change)
    (name,) = change
    for ask in (fitted.predict, fitted.predict_proba):
        with pytest.warns(UserWarning, match=f"most of column '{name}' .*did not show"):
            ask(rows)
    some = FRAME.assign(**{name: rows[name].where(FRAME.index % 3 == 0, FRAME[name])})
    fitted.predict(some.astype({name: object}))  # no warning


@pytest.mark.parametrize("estimator", [model(), DRLogisticRegressionCV([0.1], [1.0], cv=2)])
def test_a_refit_that_fails_changes_nothing(estimator, monkeypatch):
    fitted = estimator.fit(FRAME[["age", "income", "job"]], Y)
    expected = fitted.predict_proba(FRAME[["age", "income", "job"]])
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
    assert (fitted.predict_proba(FRAME[["age", "income", "job"]]) == expected).all()


def test_rows_beyond_the_training_range_widen_the_bounds_of_an_audit(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    fitted = model(bounds="data").fit(FRAME, Y)
    far = FRAME.assign(age=2.0 * FRAME.age)
    ball = {"epsilon": 0.05, "kappa": 1.0}
    with pytest.warns(UserWarning, match="beyond the bounds of the fit, which are widened.*'age'"):
        found = drlogit.worst_case_loss(fitted, far, Y, **ball)
    ends = FRAME[["age", "income"]].agg(["min", "max"])
    wide = {
        "age": (ends.age["min"], far.age.max()),
        "income": (ends.income["min"], ends.income["max"]),
    }
    expected = drlogit.worst_case_loss(fitted, far, Y, **ball, bounds=wide)
    assert found == pytest.approx(expected, abs=1e-12)
    with pytest.warns(UserWarning, match="widened"):
        assert "bounds as wide as the data" in str(drlogit.audit(fitted, far, Y))
    save_model(fitted, "m.json")
    far.assign(y=Y).to_csv("far.csv", index=False)
    assert cli.main("evaluate m.json far.csv --target y --json".split()) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["worst_case"]["log_loss"] == pytest.approx(found, abs=1e-9)
    assert "widened" in err


# --- choosing epsilon -----------------------------------------------------------------------


def test_radii_and_paths_of_a_table_are_those_of_the_fit():
    options = {"feature_costs": "std", "missing": "median"}
    gaps = FRAME.assign(age=FRAME.age.where(FRAME.index % 9 > 0))
    limit = drlogit.epsilon_max(gaps, Y, kappa=1.0, **options)
    with pytest.warns(UserWarning, match="is constant"):
        DRLogisticRegression(1.001 * limit, 1.0, **options).fit(gaps, Y)
    DRLogisticRegression(0.99 * limit, 1.0, **options).fit(gaps, Y)  # no warning
    path = drlogit.regularization_path(gaps, Y, [0.5 * limit, 0.1 * limit], tol=1e-8, **options)
    at_last = DRLogisticRegression(0.1 * limit, 1.0, tol=1e-8, **options).fit(gaps, Y)
    assert path.feature_names == at_last.encoding_.names
    assert path.objectives[1] == pytest.approx(at_last.worst_case_loss_[0], abs=2e-8)
    assert path.coefs[1] == pytest.approx(at_last.coef_[0], abs=1e-3)
    radius = drlogit.suggest_radius(gaps, Y, **options)
    auto = DRLogisticRegression("auto", math.inf, **options).fit(gaps, Y)
    assert auto.epsilon_ == pytest.approx(radius)
    assert 0.0 < radius < drlogit.epsilon_max(gaps, Y, kappa=math.inf, **options)


# --- words ----------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan, 1e200])
@pytest.mark.parametrize("text", [False, True])
def test_what_is_no_number_is_named_by_row_and_column(value, text):
    good = FRAME if text else FRAME[["age", "income"]]
    bad = good.assign(income=good.income.where(good.index != 7, value))
    options = {"missing": "median"} if text and not math.isnan(value) else {}
    where = "'income'" if text and math.isnan(value) else "in row 7 of column 'income'"
    fitted = model().fit(good, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for ask in (lambda: model(**options).fit(bad, Y), lambda: fitted.predict(bad)):
            with pytest.raises(ValueError, match=where):
                ask()
        if not text:
            with pytest.raises(ValueError, match="in row 7 of column 1"):
                drlogit.solve(bad.to_numpy(), Y, epsilon=0.1, kappa=1.0)


def test_columns_of_one_name_are_refused():
    for frame in (FRAME, FRAME[["age", "income"]]):
        twice = pd.concat([frame, frame[["age"]]], axis=1)
        with pytest.raises(ValueError, match="columns of distinct names, got 'age' more than once"):
            model().fit(twice, Y)
