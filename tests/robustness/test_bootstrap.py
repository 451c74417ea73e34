"""Bootstrap intervals: against refits written out by hand, and on every kind of model."""

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import drlogit

RNG = np.random.default_rng(3)
X = RNG.standard_normal((120, 3))
Y = np.where(X[:, 0] - 0.5 * X[:, 1] + RNG.logistic(size=120) > 0, "b", "a")


def test_refits_are_fits_to_repeated_rows():
    """Each row as often as it is drawn, by code that shares nothing but the seed."""
    model = drlogit.DRLogisticRegression(0.05, 1.0, norm="l2").fit(X, Y)
    found = drlogit.bootstrap(model, X, Y, n=8, random_state=5)
    rng, coefs, losses = np.random.default_rng(5), [], []
    for _ in range(8):
        counts = rng.multinomial(120, np.full(120, 1 / 120))
        rows = np.repeat(np.arange(120), counts)
        fit = drlogit.solve(X[rows], Y[rows], epsilon=0.05, kappa=1.0, norm="l2")
        coefs.append([fit.intercept, *fit.coef])
        losses.append(fit.objective)
    assert found.draws == pytest.approx(np.array(coefs), abs=2e-3)
    low, high = np.quantile(coefs, [0.025, 0.975], axis=0)
    assert found.coefficients["low"].to_numpy() == pytest.approx(low, abs=2e-3)
    assert found.coefficients["high"].to_numpy() == pytest.approx(high, abs=2e-3)
    estimate = model.worst_case_loss_[0]
    ends = 2 * estimate - np.quantile(losses, [0.975, 0.025])
    assert found.worst_case_loss == pytest.approx((estimate, *ends), abs=3e-6)
    assert found.threshold is None


def test_a_table_keeps_its_levels_in_every_refit():
    frame = pd.DataFrame({"age": X[:, 0], "job": ["cook"] * 118 + ["smith", None]})
    model = drlogit.DRLogisticRegression(0.05).fit(frame, Y)
    found = drlogit.bootstrap(model, frame, Y, n=12)
    names = found.coefficients[["column", "level"]].to_numpy().tolist()
    job = [["job", "cook"], ["job", "smith"], ["job", "missing"]]
    assert names == [["(intercept)", None], ["age", None], *job]
    assert np.isfinite(found.draws).all()
    assert found.draws.shape == (12, 5)
    table = found.coefficients
    for end in ("low", "high"):
        assert table[f"odds_ratio_{end}"].to_numpy() == pytest.approx(np.exp(table[end].to_numpy()))
    said = str(found)
    assert "95% intervals from 12 refits" in said
    assert "intervals are for penalised coefficients" in said


def test_searches_and_pipelines_are_fitted_again_as_they_were_chosen():
    search = drlogit.DRLogisticRegressionCV(3, [1.0], cv=3).fit(X, Y)
    same = drlogit.DRLogisticRegression(search.epsilon_, search.kappa_).fit(X, Y)
    one, other = (drlogit.bootstrap(each, X, Y, n=4) for each in (search, same))
    assert one.draws == pytest.approx(other.draws, abs=1e-9)
    pipeline = make_pipeline(StandardScaler(), drlogit.DRLogisticRegression(0.05)).fit(X, Y)
    scaled = pipeline[:-1].transform(X)  # once, with the means and deviations of all rows
    same = drlogit.DRLogisticRegression(0.05).fit(scaled, Y)
    one, other = drlogit.bootstrap(pipeline, X, Y, n=4), drlogit.bootstrap(same, scaled, Y, n=4)
    assert one.draws == pytest.approx(other.draws, abs=1e-12)
    grid = GridSearchCV(pipeline, {"drlogisticregression__epsilon": [0.05]}, cv=2).fit(X, Y)
    one, other = (drlogit.bootstrap(each, X, Y, n=4) for each in (pipeline, grid))
    assert one.draws == pytest.approx(other.draws, abs=1e-9)


def test_weights_multiply_the_draws():
    weights = np.where(np.arange(120) < 60, 1.0, 0.0)
    model = drlogit.DRLogisticRegression(0.05).fit(X, Y, sample_weight=weights)
    found = drlogit.bootstrap(model, X, Y, n=5, sample_weight=weights)
    rng = np.random.default_rng(0)
    counts = rng.multinomial(120, np.full(120, 1 / 120))
    fit = drlogit.solve(X, Y, epsilon=0.05, kappa=1.0, sample_weight=weights * counts)
    assert found.draws[0] == pytest.approx([fit.intercept, *fit.coef], abs=2e-3)


def test_a_class_is_in_every_refit():
    rare = np.array(["a"] * 118 + ["b"] * 2)
    model = drlogit.DRLogisticRegression(0.01, class_weight="balanced").fit(X, rare)
    assert np.isfinite(drlogit.bootstrap(model, X, rare, n=10).draws).all()


def test_several_classes_have_no_odds_ratios():
    labels = np.arange(120) % 3
    model = drlogit.DRLogisticRegression(0.01).fit(X, labels)
    found = drlogit.bootstrap(model, X, labels, n=3)
    assert found.draws.shape == (3, 12)
    assert "odds_ratio" not in found.coefficients
    assert found.coefficients["class"].tolist() == np.repeat([0, 1, 2], 4).tolist()


def test_the_threshold_is_chosen_on_rows_that_were_not_drawn():
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((400, 2))
    labels = 2 * Z[:, 0] + rng.logistic(size=400) > 1
    model = drlogit.DRLogisticRegression(0.005).fit(Z, labels)
    found = drlogit.bootstrap(model, Z, labels, n=6, costs={(True, False): 3, (False, True): 1})
    assert 0.0 < found.threshold.low <= found.threshold.estimate <= found.threshold.high < 1.0
    assert "threshold" in str(found)
    none = drlogit.bootstrap(model, Z, labels, n=3, max_fpr=1e-6)
    assert (none.threshold, none.without_threshold) == (None, 3)
    assert "In 3 of 3 refits no threshold was found." in str(none)


def test_what_cannot_be_is_refused():
    model = drlogit.DRLogisticRegression(0.05).fit(X, Y)
    with pytest.raises(ValueError, match="n must be at least 2 and confidence between 0 and 1"):
        drlogit.bootstrap(model, X, Y, n=1)
    with pytest.raises(ValueError, match="a pipeline that ends in one, got LogisticRegression"):
        drlogit.bootstrap(LogisticRegression().fit(X, Y), X, Y)
    short = drlogit.DRLogisticRegression(0.05, max_iter=1)
    with pytest.warns(ConvergenceWarning):
        short.fit(X, Y)
    with pytest.warns(ConvergenceWarning, match="3 of 3 refits have a duality gap above tol=1e-06"):
        drlogit.bootstrap(short, X, Y, n=3)
