"""Promises: how often they hold, what they say, and what is refused."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import drlogit
from drlogit.robustness.limits import bounded_limit
from drlogit.robustness.models import measured

COEF, INTERCEPT = np.array([1.5, -1.0, 0.5]), 0.2


def ball_of(model):
    return measured(model).ball


def draw(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    return X, (X @ COEF + INTERCEPT + rng.logistic(size=n) > 0.0).astype(int)


def wrong(n, rng):
    """Classes far apart, and two per cent of the labels wrong."""
    y = (rng.random(n) < 0.5).astype(int)
    X = rng.standard_normal((n, 2))
    X[:, 0] += 6.0 * y - 3.0
    return X, np.where(rng.random(n) < 0.02, 1 - y, y)


def held(count, draws, confidence):
    """Whether the count is not below the nominal one by more than chance (in 1 of 1,000)."""
    return stats.binom.cdf(count, draws, confidence) > 1e-3


@pytest.fixture(scope="module")
def fitted():
    return drlogit.DRLogisticRegression(0.05, 2.0).fit(*draw(300, 0))


# --- the limit of a mean --------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.02, 0.3, 0.9])
def test_the_limit_of_a_mean_holds_as_often_as_it_says(share):
    rng = np.random.default_rng(0)
    for n in (10, 100):
        rows = (rng.random((300, n)) < share).astype(float)
        count = sum(bounded_limit(row, 0.9) >= share for row in rows)
        assert held(count, 300, 0.9)


def test_the_limit_goes_with_the_unit_and_reaches_the_end():
    values = np.random.default_rng(1).random(50)
    plain = bounded_limit(values, 0.95)
    assert plain > values.mean()
    assert bounded_limit(5.0 * values - 2.0, 0.95, low=-2.0, high=3.0) == pytest.approx(
        5.0 * plain - 2.0
    )
    assert bounded_limit(np.ones(5), 0.95) == 1.0
    assert bounded_limit(values[:0], 0.95, high=7.0) == 7.0


# --- how often promises hold ----------------------------------------------------------------


@pytest.mark.parametrize("metric", ["error", "recall", {(1, 0): 5.0, (0, 1): 1.0}])
def test_promises_hold_as_often_as_they_say(fitted, metric):
    truth = drlogit.worst_case(fitted, *draw(60_000, 1), metric).value
    promises = [
        drlogit.guarantee(fitted, *draw(80, 100 + k), metric, confidence_level=0.8, random_state=k)
        for k in range(60)
    ]
    sign = -1.0 if metric == "recall" else 1.0
    assert held(sum(sign * (p.value - truth) >= 0.0 for p in promises), 60, 0.8)


@pytest.mark.parametrize("n", [60, 100])
def test_the_loss_holds_where_a_few_confidently_wrong_rows_decide_it(n):
    """A limit by Student's t holds in 72 % of these at n = 60 and in 86 % at n = 100."""
    rng = np.random.default_rng(2)
    model = drlogit.DRLogisticRegression(0.02, math.inf).fit(*wrong(300, rng))
    truth = drlogit.worst_case(model, *wrong(60_000, rng), "log_loss").value
    count = sum(
        drlogit.guarantee(model, *wrong(n, rng), "log_loss", random_state=rng).value >= truth
        for _ in range(100)
    )
    assert held(count, 100, 0.95)


def test_without_a_radius_it_is_the_limit_of_the_share(fitted):
    X, y = draw(200, 3)
    found = drlogit.guarantee(
        fitted, X, y, ball=ball_of(fitted).replace(epsilon=0.0), random_state=0
    )
    order = np.random.default_rng(0).permutation(200)[40:]
    wrong_rows = (fitted.predict(X) != y)[order].astype(float)
    assert found.nominal == pytest.approx(wrong_rows.mean())
    assert found.value == pytest.approx(bounded_limit(wrong_rows, 0.95))


# --- what is said ---------------------------------------------------------------------------


def test_the_error_is_promised_by_default_and_said_outwards(fitted):
    found = drlogit.guarantee(fitted, *draw(200, 4), confidence_level=0.975, random_state=0)
    again = drlogit.guarantee(fitted, *draw(200, 4), confidence_level=0.975, random_state=0)
    assert found.value == again.value == float(found)
    assert found.n == 160
    text = str(found)
    assert text.startswith("With 97.5 % confidence, error (positive: 1, threshold 0.5) is at most ")
    assert float(text.split("at most ")[1].split()[0]) >= found.value
    assert "What the ball allows:\n  Up to 2.5 % of the labels may be wrong." in text
    assert "Assumed: the rows are independent draws from one population" in text


def test_what_is_said_of_the_loss(fitted):
    found = drlogit.guarantee(fitted, *draw(100, 5), "log_loss", random_state=0)
    assert str(found).startswith("Approximately, with 95 % confidence, log_loss is at most")
    assert "has a loss above" in found.assumptions


def test_groups_share_the_confidence_and_one_without_positives_is_skipped(fitted):
    X, y = draw(300, 8)
    place = np.where(np.arange(300) % 3 == 0, "a", "b")
    place[(y == 0) & (X[:, 0] < -1.0)] = "c"
    whole = drlogit.guarantee(fitted, X, y, "recall", random_state=0)
    with pytest.warns(UserWarning, match="group place = c is skipped"):
        found = drlogit.guarantee(fitted, X, y, "recall", by={"place": place}, random_state=0)
    assert [part.group for part in found.by_group] == ["place = a", "place = b"]
    alone = drlogit.guarantee(fitted, X, y, random_state=0)
    both = drlogit.guarantee(fitted, X, y, by={"half": np.arange(300) % 2}, random_state=0)
    assert found.value <= whole.value
    assert both.value > alone.value
    frame = found.to_frame()
    assert frame["value"].tolist() == [found.value, *(part.value for part in found.by_group)]
    assert "  place = a: at least " in str(found)


def test_the_positive_class_is_the_one_that_is_named(fitted):
    X, y = draw(200, 10)
    with pytest.raises(ValueError, match=r"recall .* is not defined in these rows"):
        drlogit.guarantee(fitted, X[y == 0], y[y == 0], "recall")
    one = drlogit.guarantee(fitted, X, y, "recall", pos_label=0, random_state=0)
    other = drlogit.guarantee(fitted, X, y, "fpr", pos_label=1, random_state=0)
    assert "positive: 0" in one.metric
    assert one.nominal == pytest.approx(1.0 - other.nominal)


# --- what is refused ------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["fit", "file", "several"])
def test_rows_of_the_fit_are_refused_in_any_order_and_in_part(how, tmp_path):
    X, y = draw(150, 11)
    if how == "several":
        y = np.digitize(X[:, 0], [-0.5, 0.5])
    model = drlogit.DRLogisticRegression(0.05, 1.0).fit(X, y)
    if how == "file":
        drlogit.save_model(model, tmp_path / "model.json")
        model = drlogit.load_model(tmp_path / "model.json")
    order = np.random.default_rng(0).permutation(150)
    asks = [lambda m, A, b: drlogit.guarantee(m, A, b)]
    if how != "several":
        asks.append(lambda m, A, b: drlogit.guarantee(m, A, b, "recall", ball=drlogit.Ball(0.3)))
        asks.append(lambda m, A, b: drlogit.choose_threshold(m, A, b, max_fpr=0.3))
    for some in (order, order[:60]):
        for ask in asks:
            with pytest.raises(ValueError, match="rows that the model was fitted to, or some of"):
                ask(model, X[some], y[some])


def test_new_rows_that_are_like_old_ones_are_not_refused():
    """With 16 different rows, all new ones were there in the fit."""
    rng = np.random.default_rng(16)
    X = (rng.random((400, 4)) < 0.4).astype(float)
    y = (X @ [2.0, 1.0, 0.5, -1.0] + rng.logistic(size=400) > 1.0).astype(int)
    model = drlogit.DRLogisticRegression(0.02).fit(X[:200], y[:200])
    for n in (10, 30, 200):
        assert drlogit.guarantee(model, X[200 : 200 + n], y[200 : 200 + n]).value <= 1.0


def test_what_cannot_be_promised(fitted):
    X, y = draw(50, 12)
    with pytest.raises(ValueError, match=r"example ball=drlogit\.Ball\.tolerating"):
        drlogit.guarantee((COEF, INTERCEPT), X, y)
    with pytest.raises(ValueError, match="confidence_level must lie between 0 and 1, got 95"):
        drlogit.guarantee(fitted, X, y, confidence_level=95)
    with pytest.raises(ValueError, match=r"at least 10 rows .* of use from about 100 on, got 9"):
        drlogit.guarantee(fitted, X[:9], y[:9])
    with pytest.raises(TypeError, match="sample_weight"):
        drlogit.guarantee(fitted, X, y, sample_weight=np.ones(50))


def test_deviations_are_those_of_the_fit_or_it_is_refused():
    """One corrupt row among those at hand must not make the ball larger."""
    (A, b), (X, y) = draw(200, 13), draw(200, 14)
    X[0] = 1e4
    ball = drlogit.Ball.tolerating(labels=0.02, numbers=0.1)
    plain = LogisticRegression().fit(A, b)
    for stated in (ball, drlogit.Ball.tolerating(labels=0.02)):
        with pytest.raises(ValueError, match=r"ball=ball\.resolve\(X_train, y_train\)"):
            drlogit.guarantee(plain, X, y, ball=stated)
    resolved = drlogit.guarantee(plain, X, y, ball=ball.resolve(A, b), random_state=0)
    scaled = make_pipeline(StandardScaler(), LogisticRegression()).fit(A, b)
    found = drlogit.guarantee(scaled, X, y, ball=ball, random_state=0)
    assert found.value < 0.7
    assert resolved.value < 0.7
    # A ball in the units of the columns needs no rows of the fit.
    units = drlogit.Ball(0.1, 1.0, feature_costs=None)
    assert drlogit.guarantee(plain, X, y, ball=units).ball.epsilon == 0.1


def test_tables_and_several_classes():
    rng = np.random.default_rng(15)
    frame = pd.DataFrame({"job": rng.choice(list("abc"), 400), "age": rng.normal(40, 9, 400)})
    y = np.where((frame["job"] == "a") ^ (rng.random(400) < 0.2), "yes", "no")
    model = drlogit.DRLogisticRegression(0.02, 1.0).fit(frame[:200], y[:200])
    found = drlogit.guarantee(model, frame[200:], y[200:], by="job", random_state=0)
    assert [part.group for part in found.by_group] == ["job = a", "job = b", "job = c"]
    Z = rng.normal(size=(300, 2))
    three = np.array(["x", "y", "z"])[np.digitize(Z[:, 0], [-0.5, 0.5])]
    several = drlogit.DRLogisticRegression(0.02, 1.0).fit(Z[:150], three[:150])
    for metric in ("error", "log_loss"):
        found = drlogit.guarantee(several, Z[150:], three[150:], metric, random_state=0)
        assert found.nominal < found.value
