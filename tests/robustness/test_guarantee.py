"""Promises about new data: they hold as often as they say, and say what they rest on."""

import math

import numpy as np
import pandas as pd
import pytest

import drlogit
from drlogit import guarantee
from drlogit.robustness.confidence import betting_limit, student_limit

COEF, INTERCEPT = np.array([1.5, -1.0, 0.5]), 0.3


def draw(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    odds = X @ COEF + INTERCEPT
    return X, np.where(rng.random(n) < 1.0 / (1.0 + np.exp(-odds)), 1, -1)


@pytest.mark.parametrize("confidence", [0.8, 0.95])
@pytest.mark.parametrize("share", [0.02, 0.3])
def test_the_betting_limit_holds_as_often_as_it_says(confidence, share):
    rng = np.random.default_rng(7)
    limits = [betting_limit((rng.random(80) < share) * 1.0, confidence) for _ in range(300)]
    covered = np.mean(np.array(limits) >= share)
    assert covered >= confidence - 3.0 * math.sqrt(confidence * (1 - confidence) / 300)


def test_limits_of_few_rows_say_little_and_of_many_a_lot():
    assert betting_limit(np.zeros(0), 0.95) == 1.0
    assert betting_limit(np.zeros(1), 0.95) == 1.0
    assert math.isinf(student_limit(np.ones(1), np.ones(1), 0.95))
    many = (np.random.default_rng(0).random(5000) < 0.1) * 1.0
    assert 0.1 < betting_limit(many, 0.95) < 0.12


@pytest.mark.parametrize("kappa", [2.0, math.inf])
def test_the_promise_holds_as_often_as_it_says(kappa):
    model, ball = (COEF, INTERCEPT), {"epsilon": 0.1, "kappa": kappa}
    X, y = draw(100_000, 1)
    loss = drlogit.worst_case_loss(model, X, y, **ball)
    error = drlogit.misclassification_bounds(model, X, y, **ball).worst
    held = np.zeros(2)
    for seed in range(100):
        found = guarantee(model, *draw(150, 100 + seed), **ball)
        held += [found.loss >= loss, found.error >= error]
    assert (held >= 90).all()


def test_a_model_brings_its_own_ball_and_lambda():
    X, y = draw(200, 1)
    clf = drlogit.DRLogisticRegression(epsilon=0.05, kappa=1.5).fit(X, y)
    found = guarantee(clf, *draw(120, 2))
    assert (found.epsilon, found.kappa, found.n) == (0.05, 1.5, 120)
    assert "epsilon = 0.05" in str(found)
    assert "the model was fixed before" in str(found)
    # At another radius λ has to be chosen, on rows that then do not count.
    assert guarantee(clf, *draw(120, 2), epsilon=0.1).n == 96


def test_rows_of_the_fit_are_no_evidence():
    X, y = draw(200, 1)
    clf = drlogit.DRLogisticRegression(epsilon=0.05, kappa=1.5).fit(X, y)
    with pytest.warns(UserWarning, match="rows that the model was fitted to"):
        guarantee(clf, X, y)


def test_bounded_tables_have_a_limit_for_every_number_of_rows():
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"colour": rng.choice(list("abc"), 300), "share": rng.random(300)})
    y = (frame["colour"] == "a") ^ (rng.random(300) < 0.2)
    clf = drlogit.DRLogisticRegression(
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


def test_unequal_weights_count_as_fewer_rows():
    X, y = draw(300, 6)
    weights = np.where(np.arange(300) % 2, 1.0, 9.0)
    plain = guarantee((COEF, INTERCEPT), X, y, epsilon=0.05, kappa=1.0)
    weighted = guarantee((COEF, INTERCEPT), X, y, epsilon=0.05, kappa=1.0, sample_weight=weights)
    assert weighted.loss - weighted.mean_loss > plain.loss - plain.mean_loss


def test_a_report_begins_with_what_holds_for_new_rows():
    X, y = draw(200, 1)
    unseen = draw(120, 2)
    robust = drlogit.DRLogisticRegression(epsilon=0.05, kappa=1.5).fit(X, y)
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
    assert "the model was fixed before" in page
    assert "had not seen" not in str(drlogit.audit(models, X, y))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"confidence": 1.0, "epsilon": 0.1}, "confidence must lie between 0 and 1, got 1.0"),
        ({}, "say which with epsilon="),
    ],
)
def test_what_cannot_be_promised(options, message):
    with pytest.raises(ValueError, match=message):
        guarantee((COEF, INTERCEPT), *draw(50, 1), **options)
    with pytest.raises(ValueError, match="at least 10 rows of positive weight, got 5"):
        guarantee((COEF, INTERCEPT), *draw(5, 1), epsilon=0.1)
