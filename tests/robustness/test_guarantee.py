"""Promises about new data: they hold as often as they say, and say what they rest on."""

import math

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, ShuffleSplit, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import drlogit
from drlogit import guarantee
from drlogit.robustness.unseen_rows import betting_limit, student_limit

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
    limits = [
        betting_limit((rng.random(80) < share) * 1.0, np.full(80, 1 / 80), confidence)
        for _ in range(300)
    ]
    covered = np.mean(np.array(limits) >= share)
    assert covered >= confidence - 3.0 * math.sqrt(confidence * (1 - confidence) / 300)


def test_limits_of_few_rows_say_little_and_of_many_a_lot():
    assert betting_limit(np.zeros(0), np.zeros(0), 0.95) == 1.0
    assert betting_limit(np.zeros(1), np.ones(1), 0.95) == 1.0
    assert math.isinf(student_limit(np.ones(1), np.ones(1), 0.95))
    many = (np.random.default_rng(0).random(5000) < 0.1) * 1.0
    assert 0.1 < betting_limit(many, np.full(many.size, 1 / many.size), 0.95) < 0.12


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


# --- out of fold ----------------------------------------------------------------------------


def test_out_of_fold_it_speaks_of_models_that_have_not_seen_the_rows():
    X, y = draw(200, 1)
    clf = drlogit.DRLogisticRegression(epsilon=0.05, kappa=1.5).fit(X, y)
    found = guarantee(clf, X, y, cv=5)
    splits = list(StratifiedKFold(5).split(X, y))
    odds = np.empty(200)
    for train, test in splits:
        odds[test] = clone(clf).fit(X[train], y[train]).decision_function(X[test])
    assert found.mean_loss == pytest.approx(np.logaddexp(0.0, -y * odds).mean(), abs=1e-9)
    assert found.mean_error == pytest.approx(np.mean(y * odds <= 0.0))
    assert (found.n, found.folds, found.tried, found.exact_loss) == (200, 5, 1, False)
    assert "of 5 models, on average, each fitted without a fold" in str(found)
    as_it_is = StandardScaler(with_mean=False, with_std=False)
    same = guarantee(make_pipeline(as_it_is, clf).fit(X, y), X, y, cv=splits)
    assert same.loss == pytest.approx(found.loss, abs=1e-9)


def test_out_of_fold_it_holds_as_often_as_it_says():
    big, ball = draw(8_000, 1), {"epsilon": 0.1, "kappa": 2.0}
    held = np.zeros(2)
    for seed in range(40):
        X, y = draw(100, 200 + seed)
        clf = drlogit.DRLogisticRegression(**ball)
        fits = [clone(clf).fit(X[train], y[train]) for train, _ in StratifiedKFold(3).split(X, y)]
        found = guarantee(clf.fit(X, y), X, y, cv=3)
        losses = [drlogit.worst_case_loss(each, *big, **ball) for each in fits]
        errors = [drlogit.misclassification_bounds(each, *big, **ball).worst for each in fits]
        held += [found.loss >= np.mean(losses), found.error >= np.mean(errors)]
    assert (held >= 36).all()


@pytest.mark.parametrize("ours", [True, False], ids=["ours", "scikit-learn's"])
def test_out_of_fold_a_search_allows_for_its_choice(ours):
    X, y = draw(150, 3)
    if ours:
        search = drlogit.DRLogisticRegressionCV([0.05, 0.02], [1.0, 3.0], cv=3).fit(X, y)
        chosen = drlogit.DRLogisticRegression(search.epsilon_, search.kappa_).fit(X, y)
    else:
        grid = {"epsilon": [0.1, 0.05, 0.02, 0.01]}
        search = GridSearchCV(drlogit.DRLogisticRegression(), grid, cv=3).fit(X, y)
        chosen = search.best_estimator_
    found, alone = guarantee(search, X, y, cv=3), guarantee(chosen, X, y, cv=3)
    assert (found.tried, alone.tried) == (4, 1)
    assert found.mean_loss == pytest.approx(alone.mean_loss, abs=1e-9)
    assert found.loss > alone.loss
    assert found.error > alone.error
    assert "chose among 4 candidates is allowed for" in str(found)
    # As much confidence as the union over four candidates leaves to each.
    each = guarantee(chosen, X, y, cv=3, confidence=1.0 - 0.05 / 4)
    assert found.loss == pytest.approx(each.loss, abs=1e-9)


def test_out_of_fold_of_a_table_with_weights_and_groups():
    rng = np.random.default_rng(4)
    frame = pd.DataFrame({"job": rng.choice(list("abc"), 200), "age": rng.normal(40, 9, 200)})
    y = np.where((frame["job"] == "a") ^ (rng.random(200) < 0.2), "yes", "no")
    weights = 1.0 + np.arange(200) % 3
    clf = drlogit.DRLogisticRegression(0.05, feature_costs="std").fit(frame, y, weights)
    found = guarantee(clf, frame, y, cv=4, sample_weight=weights, groups=frame["job"] == "a")
    assert found.folds == 4
    assert sum(part.n for part in found.groups) == found.n == 200
    assert found.mean_loss < found.loss < math.inf


def test_what_cannot_be_promised_out_of_fold():
    X, y = draw(50, 1)
    with pytest.raises(ValueError, match="a model that can be fitted again, got tuple"):
        guarantee((COEF, INTERCEPT), X, y, epsilon=0.1, cv=5)
    clf = drlogit.DRLogisticRegression(0.05)
    with pytest.raises(ValueError, match="must hold out no row twice"):
        guarantee(clf.fit(X, y), X, y, cv=ShuffleSplit(3, random_state=0))
    with pytest.raises(ValueError, match="one kappa, or one for each label"):
        guarantee(clf.fit(X, y, kappa=np.linspace(1.0, 2.0, 50)), X, y, cv=5)
