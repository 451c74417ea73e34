"""Thresholds with a promise, and limits of metrics on the population."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks import stated
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import FixedThresholdClassifier

import drlogit
import zoo

COSTS = {("no", "yes"): 1.0, ("yes", "no"): 5.0}


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1200, 3))
    y = np.where(X @ [1.5, -1.0, 0.5] - 1.0 + rng.logistic(size=1200) > 0.0, "yes", "no")
    model = stated.classifier(epsilon=0.02, kappa=1.0).fit(X[:400], y[:400])
    return model, X[400:], y[400:]


def test_costs(fitted):
    model, X, y = fitted
    choice = drlogit.choose_threshold(model, X, y, costs=COSTS, epsilon=0.002)
    assert choice.usual == pytest.approx(1.0 / 6.0)
    assert choice.promise.value <= choice.usual_promise.value
    # No promise is better than what is seen, and none is beyond the largest cost.
    assert choice.promise.nominal < choice.promise.value <= 5.0
    seen = zoo.worst_in(model, X, y, COSTS, threshold=choice.threshold, epsilon=0.002)
    assert choice.promise.value > seen.value
    assert float(choice) == choice.threshold
    text = str(choice)
    assert text.startswith(f"Predict yes if its probability is at least {choice.threshold:.4g}.")
    assert "Assumed: the rows are independent" in text
    assert f"At the usual threshold 0.1667 it is at most {choice.usual_promise.value:.4g}" in text


@pytest.mark.parametrize(("dear", "always"), [("yes", 0.0), ("no", 1.0)])
def test_the_same_decision_for_everybody_is_a_candidate(fitted, dear, always):
    """Within a large radius no threshold promises as much, and the text says so."""
    model, X, y = fitted
    cheap = {"yes": "no", "no": "yes"}[dear]
    costs = {(dear, cheap): 20.0, (cheap, dear): 1.0}
    choice = drlogit.choose_threshold(model, X, y, costs=costs, epsilon=0.1, kappa=5.0)
    assert choice.threshold == always
    assert choice.tpr == 1.0 - always
    assert str(choice).startswith(f"Always predict {dear}: ")
    # The cost is the share of the other label, which the rows have as often as they do.
    judged = choice.promise.nominal
    assert judged == pytest.approx(np.mean(y == cheap), abs=0.05)
    assert judged < choice.promise.value < choice.usual_promise.value


@pytest.mark.parametrize(
    ("limit", "metric"), [({"max_fpr": 0.4}, "fpr"), ({"min_precision": 0.4}, "precision")]
)
def test_limits_of_ratios(fitted, limit, metric):
    model, X, y = fitted
    choice = drlogit.choose_threshold(model, X, y, **limit)
    (wanted,) = limit.values()
    sign = 1.0 if metric == "fpr" else -1.0
    assert sign * choice.promise.value <= sign * wanted
    seen = drlogit.worst_case(model, X, y, metric, threshold=choice.threshold)
    assert sign * seen.value < sign * choice.promise.value
    with pytest.raises(ValueError, match=f"no threshold keeps {metric}"):
        drlogit.choose_threshold(model, X, y, **dict.fromkeys(limit, 0.5 - sign * 0.499))


def test_more_rows_and_less_radius_promise_more(fitted):
    model, X, y = fitted
    values = [
        drlogit.choose_threshold(model, X[:n], y[:n], costs=COSTS, epsilon=e).promise.value
        for n, e in ((200, 0.02), (800, 0.02), (800, 0.0))
    ]
    assert values[0] > values[1] > values[2]


def test_scikit_learn_takes_the_threshold_over(fitted):
    model, X, y = fitted
    choice = drlogit.choose_threshold(model, X, y, costs=COSTS)
    fixed = FixedThresholdClassifier(
        FrozenEstimator(model), threshold=choice.threshold, response_method="predict_proba"
    ).fit(X, y)
    decided = fixed.predict(X) == "yes"
    np.testing.assert_array_equal(decided, model.predict_proba(X)[:, 1] >= choice.threshold)


def test_metrics_of_a_guarantee(fitted):
    model, X, y = fitted
    for metric in ("error", "tpr", "net_benefit", COSTS):
        found = drlogit.guarantee(model, X, y, metric=metric)
        seen = drlogit.worst_case(model, X, y, "recall" if metric == "tpr" else metric)
        sign = -1.0 if found.is_benefit else 1.0
        assert sign * found.value > sign * seen.value - 0.02
        assert "With 95% confidence" in str(found)
    with pytest.raises(ValueError, match="without metric"):
        drlogit.guarantee(model, X, y, metric="log_loss")


def test_limit_of_the_error_is_that_of_the_guarantee(fitted):
    """Two ways to the same number, but for how the confidence is shared."""
    model, X, y = fitted
    both = drlogit.guarantee(model, X, y, confidence=0.9)
    alone = drlogit.guarantee(model, X, y, metric="error", confidence=0.95)
    assert alone.value == pytest.approx(both.error, abs=1e-9)


def test_metrics_of_a_guarantee_by_group(fitted):
    model, X, y = fitted
    X, y, group = X[:300], y[:300], np.where(X[:300, 2] > 0, "a", "b")
    split = drlogit.guarantee(model, X, y, metric=COSTS, groups={"part": group})
    seen = drlogit.worst_case(model, X, y, COSTS, by={"part": group})
    assert [part.group for part in split.groups] == ["part = a", "part = b"]
    assert sum(part.n for part in split.groups) == split.n == 240
    for part, there in zip(split.groups, seen.by_group, strict=True):
        assert part.value > there.value
        assert f"{part.group} ({part.n} rows): at most {part.value:.4g}" in str(split)
    rate = drlogit.guarantee(model, X, y, metric="fpr", groups=group)
    assert all(part.nominal <= part.value <= 1.0 for part in (rate, *rate.groups))


def test_what_is_refused(fitted):
    model, X, y = fitted
    with pytest.raises(ValueError, match="one of costs, max_fpr and min_precision, got none"):
        drlogit.choose_threshold(model, X, y)
    with pytest.raises(ValueError, match="got costs and max_fpr"):
        drlogit.choose_threshold(model, X, y, costs=COSTS, max_fpr=0.1)
    with pytest.raises(ValueError, match="between 0 and 1, got 2"):
        drlogit.choose_threshold(model, X, y, max_fpr=2)
    with pytest.raises(ValueError, match="must cost more than the right one"):
        drlogit.choose_threshold(model, X, y, costs={("no", "yes"): 1.0})
    with pytest.raises(ValueError, match="at least 10 rows"):
        drlogit.choose_threshold(model, X[:9], y[:9], costs=COSTS)
