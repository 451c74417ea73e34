"""Promises about new data: they hold as often as they say, and say what they rest on."""

import math

import numpy as np
import pandas as pd
import pytest
from benchmarks import stated

import drlogit
import zoo
from drlogit import guarantee
from drlogit.robustness.limits import approximate_limit, bounded_limit

COEF, INTERCEPT = np.array([1.5, -1.0, 0.5]), 0.3


def draw(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    odds = X @ COEF + INTERCEPT
    return X, np.where(rng.random(n) < 1.0 / (1.0 + np.exp(-odds)), 1, -1)


def at_least(held, confidence):
    """Whether what held is not less than the confidence by more than three standard errors."""
    return np.mean(held) >= confidence - 3.0 * math.sqrt(confidence * (1 - confidence) / len(held))


@pytest.mark.parametrize("confidence", [0.8, 0.95])
@pytest.mark.parametrize("share", [0.02, 0.3])
def test_the_bounded_limit_holds_as_often_as_it_says(confidence, share):
    rng = np.random.default_rng(7)
    draws = (rng.random((300, 80)) < share) * 1.0
    assert at_least([bounded_limit(row, None, confidence) >= share for row in draws], confidence)
    # Other ends are another unit.
    found = bounded_limit(3.0 * draws[0] - 1.0, np.full(80, 7.0), confidence, low=-1.0, high=2.0)
    assert found == pytest.approx(3.0 * bounded_limit(draws[0], None, confidence) - 1.0, abs=1e-9)


@pytest.mark.parametrize("n", [30, 100])
def test_weights_that_go_with_the_numbers_need_their_largest(n):
    rng = np.random.default_rng(8)
    heavy = rng.random((400, n)) < 0.03
    values, weights = heavy * 1.0, np.where(heavy, 40.0, 1.0)
    mean, confidence = 0.03 * 40.0 / (0.03 * 40.0 + 0.97), 0.9
    rows = list(zip(values, weights, strict=True))
    known = [bounded_limit(*row, confidence, largest_weight=40.0) >= mean for row in rows]
    assert at_least(known, confidence)
    # The largest weight at hand is 1 in many samples: the limit rests on what it is told.
    at_hand = [bounded_limit(*row, confidence) >= mean for row in rows]
    assert np.mean(at_hand) < np.mean(known)
    many = np.tile(heavy[0], 200)
    assert bounded_limit(many * 1.0, np.where(many, 40.0, 1.0), 0.95, largest_weight=40.0) < 1.0


@pytest.mark.parametrize("weighted", [False, True])
def test_the_approximate_limit_holds_where_numbers_are_skewed(weighted):
    rng = np.random.default_rng(9)
    values = rng.exponential(size=(2000, 60))
    weights, mean = np.ones_like(values), 1.0
    if weighted:
        weights, mean = np.where(values > 2.0, 3.0, 1.0), None
        more = rng.exponential(size=10**6)
        mean = np.average(more, weights=np.where(more > 2.0, 3.0, 1.0))
    rows = zip(values, weights, strict=True)
    assert at_least([approximate_limit(*row, 0.975) >= mean for row in rows], 0.965)


def test_limits_of_few_rows_say_little_and_of_many_a_lot():
    assert bounded_limit(np.zeros(0), None, 0.95) == 1.0
    assert bounded_limit(np.zeros(1), None, 0.95) == 1.0
    assert math.isinf(approximate_limit(np.ones(2), np.ones(2), 0.95))
    assert approximate_limit(np.ones(9), np.ones(9), 0.95) == pytest.approx(1.0)
    many = (np.random.default_rng(0).random(5000) < 0.1) * 1.0
    assert 0.1 < bounded_limit(many, None, 0.95) < 0.12


def test_a_loss_has_no_limit_where_a_label_hardly_occurs():
    X, y = draw(200, 1)
    clf = stated.classifier(epsilon=0.05, kappa=1.5).fit(X, y)
    Z, z = draw(300, 2)
    some = np.r_[np.flatnonzero(z < 0), np.flatnonzero(z > 0)[:9]]
    found = guarantee(clf, Z[some], z[some])
    assert math.isinf(found.loss)
    assert found.error < 1.0
    assert "has no limit: only 9 rows have the label 1, expected at least 10" in str(found)
    assert "no limit of the log-loss (only 9 rows" in found.limits
    one_more = np.append(some, np.flatnonzero(z > 0)[9])
    assert guarantee(clf, Z[one_more], z[one_more]).loss < math.inf
    # A limit that needs no such rows: every feature between bounds that were stated.
    clf = stated.classifier(epsilon=0.05, kappa=1.5, bounds=(-9.0, 9.0)).fit(X, y)
    assert guarantee(clf, Z[some], z[some]).loss < math.inf
    report = drlogit.audit((COEF, INTERCEPT), X, y, holdout=(Z[some], z[some]))
    assert "no limit of the log-loss (only " in str(report)
    assert "no limit of the log-loss (only " in report.to_html()


@pytest.mark.filterwarnings("ignore:class .* is almost never predicted:UserWarning")
def test_rare_labels_among_several_count_together():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((400, 2))
    y = np.where(rng.random(400) < 0.1, rng.integers(2, 5, 400), rng.integers(0, 2, 400))
    clf = stated.classifier(epsilon=0.001, kappa=1.0).fit(X, y)
    rare = np.flatnonzero(y >= 2)
    some = np.r_[np.flatnonzero(y < 2), rare[:10]]
    assert guarantee(clf, X[some], y[some]).loss < math.inf
    assert math.isinf(guarantee(clf, X[some[:-1]], y[some[:-1]]).loss)


def test_stated_bounds_give_an_exact_limit_unless_rows_lie_beyond_them():
    rng = np.random.default_rng(4)
    X = rng.random((300, 2))
    y = X[:, 0] + 0.3 * rng.standard_normal(300) > 0.5
    ball = {"epsilon": 0.01, "kappa": 1.0}
    clf = stated.classifier(**ball, bounds=(0.0, 1.0)).fit(X[:150], y[:150])
    found = guarantee(clf, X, y)
    assert found.exact_loss
    assert "Both limits hold at every sample size" in str(found)
    assert "keeps to the stated categories and bounds" in str(found)
    with pytest.warns(UserWarning, match="rows lie beyond the bounds of the fit"):
        assert not guarantee(clf, 1.5 * X, y).exact_loss


def test_a_level_that_training_did_not_show_is_within_the_largest_loss():
    rng = np.random.default_rng(5)
    X = np.eye(3)[rng.integers(0, 3, 200)]
    y = (rng.random(200) < 0.9).astype(int)
    model = (np.array([5.0, 6.0, 7.0]), -1.0)  # zeros are far from all levels
    new = np.zeros((200, 3))
    options = {"epsilon": 0.01, "kappa": math.inf, "categories": [[0, 1, 2]]}
    assert guarantee(model, new, np.where(np.arange(200) < 150, 1, 0), **options).loss >= 1.0
    assert guarantee(model, X, y, **options).exact_loss


def test_a_promise_that_says_nothing_says_so():
    rng = np.random.default_rng(6)
    X, y = rng.standard_normal((120, 3)), rng.random(120) < 0.36
    noise = (np.array([1.5, -1.0, 0.5]), 0.0)
    found = guarantee(noise, X, y, epsilon=0.05, kappa=1.0, groups=np.arange(120) % 2)
    assert found.constant_loss <= math.log(2.0)
    assert found.constant_error <= 0.5
    assert "These limits say nothing about the model: a model that ignores" in str(found)
    assert "the model is no better than that" in str(found)
    assert "no better than a model that ignores the features" in str(found).split("group = 1")[1]
    # A good model, in a ball that is too large for these rows.
    good, labels = (COEF, INTERCEPT), draw(40, 1)
    found = guarantee(good, *labels, epsilon=1.0, kappa=1.0)
    assert "More rows or a smaller epsilon would help" in str(found)
    report = drlogit.audit(good, *labels, holdout=draw(40, 2), epsilons=[1.0], kappa=1.0)
    assert "nothing about the model" in str(report)
    assert "nothing about the model" in report.to_html()
    found = guarantee(good, *draw(2000, 3), epsilon=0.01, kappa=1.0)
    assert found.says_nothing == ""
    assert "nothing" not in str(found)


def test_the_limits_of_a_model_that_ignores_the_features_are_limits():
    X, y = draw(8000, 11)
    few = (y < 0) | (np.arange(8000) % 4 == 0)
    X, y = X[few], y[few]
    ball = {"epsilon": 0.02, "kappa": 1.0}
    found = guarantee((COEF, INTERCEPT), X, y, **ball)
    share = np.mean(y > 0)
    constant = (np.zeros(3), math.log(share / (1.0 - share)))
    loss = zoo.worst_loss(constant, X, y, **ball)
    error = zoo.worst_error(constant, X, y, **ball).value
    assert loss < found.constant_loss < loss + 0.03
    assert error < found.constant_error < error + 0.04


@pytest.mark.parametrize("kappa", [2.0, math.inf])
def test_the_promise_holds_as_often_as_it_says(kappa):
    model, ball = (COEF, INTERCEPT), {"epsilon": 0.1, "kappa": kappa}
    X, y = draw(100_000, 1)
    loss = zoo.worst_loss(model, X, y, **ball)
    error = zoo.worst_error(model, X, y, **ball).value
    held = np.zeros(2)
    for seed in range(100):
        found = guarantee(model, *draw(150, 100 + seed), **ball)
        held += [found.loss >= loss, found.error >= error]
    assert (held >= 90).all()


def test_a_model_brings_its_own_ball_and_lambda():
    X, y = draw(200, 1)
    clf = stated.classifier(epsilon=0.05, kappa=1.5).fit(X, y)
    found = guarantee(clf, *draw(120, 2))
    assert (found.epsilon, found.kappa, found.n) == (0.05, 1.5, 120)
    assert "epsilon = 0.05" in str(found)
    assert "the model was chosen without them" in str(found)
    # At another radius λ has to be chosen, on rows that then do not count.
    assert guarantee(clf, *draw(120, 2), epsilon=0.1).n == 96


def test_bounded_tables_have_a_limit_for_every_number_of_rows():
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"colour": rng.choice(list("abc"), 300), "share": rng.random(300)})
    y = (frame["colour"] == "a") ^ (rng.random(300) < 0.2)
    clf = stated.classifier(
        epsilon=0.02, kappa=1.0, categorical_features="from_dtype", bounds=(0.0, 1.0)
    ).fit(frame[:150], y[:150])
    found = guarantee(clf, frame[150:], y[150:])
    assert found.exact_loss
    assert found.mean_loss < found.loss < 1.0


def test_groups_share_the_confidence():
    X, y = draw(400, 5)
    group = np.where(np.arange(400) % 4 == 0, "small", "large")
    whole = guarantee((COEF, INTERCEPT), X, y, epsilon=0.05, kappa=1.0)
    found = guarantee((COEF, INTERCEPT), X, y, epsilon=0.05, kappa=1.0, groups=group)
    assert [part.group for part in found.groups] == ["group = large", "group = small"]
    assert found.loss > whole.loss
    assert found.groups[1].error > found.groups[0].error


def test_unequal_weights_are_refused():
    X, y = draw(60, 6)
    ball = {"epsilon": 0.05, "kappa": 1.0}
    with pytest.raises(ValueError, match="equal sample_weight"):
        guarantee((COEF, INTERCEPT), X, y, **ball, sample_weight=1.0 + np.arange(60) % 2)
    equal = guarantee((COEF, INTERCEPT), X, y, **ball, sample_weight=np.full(60, 3.0))
    assert equal.error == guarantee((COEF, INTERCEPT), X, y, **ball).error


def test_a_report_begins_with_what_holds_for_new_rows():
    X, y = draw(200, 1)
    unseen = draw(120, 2)
    robust = stated.classifier(epsilon=0.05, kappa=1.5).fit(X, y)
    models = {"robust": robust, "plain": (COEF, INTERCEPT)}
    report = drlogit.audit(models, X, y, holdout=unseen)
    expected = {
        "robust": guarantee(robust, *unseen),
        "plain": guarantee((COEF, INTERCEPT), *unseen, epsilon=0.05, kappa=1.5),
    }
    assert report.guarantees == expected
    page, text = report.to_html(), str(report)
    assert page.index("robust, on 120 rows it had not seen") < page.index("Worst case")
    assert f"robust: log-loss <= {expected['robust'].loss:.4f}" in text
    assert "the model was chosen without them" in page
    assert "had not seen" not in str(drlogit.audit(models, X, y))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"confidence": 1.0, "epsilon": 0.1}, "confidence must lie between 0 and 1, got 1.0"),
        ({}, "give one with epsilon="),
    ],
)
def test_what_cannot_be_promised(options, message):
    with pytest.raises(ValueError, match=message):
        guarantee((COEF, INTERCEPT), *draw(50, 1), **options)
    with pytest.raises(ValueError, match="at least 10 rows of positive weight, got 5"):
        guarantee((COEF, INTERCEPT), *draw(5, 1), epsilon=0.1)
