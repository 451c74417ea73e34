"""Thresholds: what is chosen, what is promised of it, and what is said if nothing can be."""

import math

import numpy as np
import pytest

import drlogit
from drlogit.robustness.models import measured

COSTS = {("sick", "well"): 5.0, ("well", "sick"): 1.0}


def ball_of(model):
    return measured(model).ball


def draw(n, seed, share=0.5):
    rng = np.random.default_rng(seed)
    sick = rng.random(n) < share
    X = rng.standard_normal((n, 2)) + np.outer(np.where(sick, 1.0, -1.0), [1.2, 0.4])
    return X, np.where(sick, "sick", "well")


@pytest.fixture(scope="module")
def model():
    return drlogit.DRLogisticRegression(0.02, math.inf).fit(*draw(300, 0))


def test_the_chosen_cost_is_promised_and_below_that_of_the_usual_threshold(model):
    rows = draw(600, 1)
    choice = drlogit.choose_threshold(model, *rows, costs=COSTS, pos_label="sick", random_state=0)
    assert 0.0 < choice.threshold == float(choice) < 1.0
    many = draw(60_000, 2)
    truth, usual = (
        drlogit.worst_case(model, *many, COSTS, threshold=at, pos_label="sick").value
        for at in (choice.threshold, 1.0 / 6.0)
    )
    assert choice.promise.value >= truth
    assert truth <= usual  # the best threshold if probabilities are exact
    assert f"Predict 'sick' if its probability is at least {choice.threshold:.4g}" in str(choice)
    assert f"corrected for comparing {choice.tried} thresholds" in str(choice)


@pytest.mark.parametrize(
    ("goal", "metric", "sign"),
    [
        ({"max_fpr": 0.4}, "fpr", 1.0),
        ({"min_precision": 0.6}, "precision", -1.0),
        ({"min_recall": 0.6}, "recall", -1.0),
    ],
)
@pytest.mark.parametrize("pos_label", ["sick", "well"])
def test_a_limit_is_kept_here_and_in_the_population(model, goal, metric, sign, pos_label):
    options = {"pos_label": pos_label, "random_state": 0}
    choice = drlogit.choose_threshold(model, *draw(600, 3), **goal, **options)
    (limit,) = goal.values()
    assert sign * choice.promise.value <= sign * limit
    assert choice.positive == pos_label
    truth = drlogit.worst_case(
        model, *draw(60_000, 4), metric, threshold=choice.threshold, pos_label=pos_label
    )
    assert sign * truth.value <= sign * choice.promise.value
    # The other choices that keep the limit find fewer positives, or predict more rows positive.
    recall = drlogit.worst_case(
        model, *draw(600, 3), "recall", threshold=choice.threshold, pos_label=pos_label
    )
    assert choice.recall == pytest.approx(recall.nominal, abs=0.05)


def test_promises_of_chosen_thresholds_hold_as_often_as_they_say():
    rng = np.random.default_rng(5)
    model = drlogit.DRLogisticRegression(0.01, math.inf).fit(*draw(300, 6, 0.1))
    population, kept = draw(40_000, 7, 0.1), 0
    for k in range(40):
        choice = drlogit.choose_threshold(
            model, *draw(100, 100 + k, 0.1), costs=COSTS, pos_label="sick", random_state=rng,
            confidence_level=0.8,
        )  # fmt: skip
        at = {"threshold": choice.threshold, "pos_label": "sick"}
        kept += choice.promise.value >= drlogit.worst_case(model, *population, COSTS, **at).value
    assert kept >= 27  # of 40 that hold in 80 %, fewer do so once in 100 times


def test_scikit_learn_decides_by_it(model):
    X, y = draw(400, 8)
    choice = drlogit.choose_threshold(model, X, y, min_recall=0.7, pos_label="sick", random_state=0)
    decided = choice.to_sklearn(model).predict(X)
    place = list(model.classes_).index("sick")
    expected = np.where(model.predict_proba(X)[:, place] >= choice.threshold, "sick", "well")
    np.testing.assert_array_equal(decided, expected)
    worst = drlogit.worst_case(choice.to_sklearn(model), X, y, "recall")
    assert worst.metric == choice.promise.metric


@pytest.mark.parametrize(
    ("costs", "answer"),
    [({("sick", "well"): 99.0, ("well", "sick"): 1.0}, "sick"),
     ({("sick", "well"): 1.0, ("well", "sick"): 99.0}, "well")],
)  # fmt: skip
def test_the_same_decision_for_everybody_says_what_would_change_it(model, costs, answer):
    X, y = draw(60, 9)
    choice = drlogit.choose_threshold(model, X, y, costs=costs, pos_label="sick", random_state=0)
    assert choice.threshold in (0.0, 1.0)
    assert f"Always predict '{answer}'" in str(choice)
    assert "more rows would change that" in choice.remark or "a smaller ball" in choice.remark
    assert (choice.to_sklearn(model).predict(X) == answer).all()


def test_more_rows_are_as_many_as_it_takes(model):
    """A limit that is missed for want of rows is kept with the number that is said."""
    with pytest.raises(ValueError, match=r"about [0-9]+ more rows") as refused:
        drlogit.choose_threshold(model, *draw(60, 10), max_fpr=0.2, random_state=0)
    more = int(str(refused.value).split("about ")[1].split()[0])
    assert 20 < more < 5_000
    found = drlogit.choose_threshold(model, *draw(60 + more, 11), max_fpr=0.2, random_state=0)
    assert found.promise.value <= 0.2


def test_a_smaller_ball_is_named_where_no_number_of_rows_helps(model):
    wide = ball_of(model).replace(epsilon=1.0)
    with pytest.raises(ValueError, match=r"no number of rows .* a smaller ball would"):
        drlogit.choose_threshold(model, *draw(400, 12), max_fpr=0.2, ball=wide, random_state=0)


def test_what_is_refused(model):
    X, y = draw(100, 13)
    with pytest.raises(ValueError, match="one of costs, max_fpr, min_precision, min_recall, got n"):
        drlogit.choose_threshold(model, X, y)
    with pytest.raises(ValueError, match="got costs and max_fpr"):
        drlogit.choose_threshold(model, X, y, costs=COSTS, max_fpr=0.1)
    with pytest.raises(ValueError, match="max_fpr must lie between 0 and 1, got 2"):
        drlogit.choose_threshold(model, X, y, max_fpr=2)
    with pytest.raises(ValueError, match="must cost more than the right one"):
        drlogit.choose_threshold(model, X, y, costs={("well", "sick"): 1.0})
    third = np.digitize(X[:, 0], [-1.0, 1.0])
    three = drlogit.DRLogisticRegression(0.01, math.inf).fit(X[:50], third[:50])
    with pytest.raises(ValueError, match="needs a model of two classes, got 3"):
        drlogit.choose_threshold(three, X[50:], third[50:], max_fpr=0.1)
