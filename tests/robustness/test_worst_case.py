"""Worst cases, breaking points and distributions, at their ends above all."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from benchmarks import stated
from benchmarks.transport_programs import METRICS, Case, judge
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, precision_score, recall_score

import zoo
from drlogit import Ball, worst_case
from drlogit.robustness.adversary import Adversary
from drlogit.robustness.words import percent, rounded

RATIOS = ("recall", "fpr", "precision", "npv")
RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 3))
Y = np.where(X @ [1.0, -2.0, 0.5] + RNG.logistic(size=60) > 0.3, 1, 0)
MODEL = (np.array([0.9, -1.7, 0.4]), -0.2)
BALL = Ball(0.1, 1.0, feature_costs=None)


# --- against linear programs ------------------------------------------------------------------


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("seed", range(12))
def test_linear_programs_agree(metric, seed):
    found = judge(Case(seed, metric))
    for name, error in found.items():
        assert error <= (2e-8 if name in ("attained", "claimed") else 1e-9), name


@pytest.mark.parametrize("case", zoo.ZOO[::3], ids=repr)
def test_loss_of_a_fit_is_its_objective(case):
    result = stated.solve(case.X, case.y, **case.options)
    if result.ball.kappa != "by row":
        found = worst_case(result, case.X, case.y, sample_weight=case.options.get("sample_weight"))
        assert found.value == pytest.approx(result.objective, abs=1e-9)
        assert found.exact


# --- several classes --------------------------------------------------------------------------


def softmax(seed, K, n=12):
    rng = np.random.default_rng(seed)
    points = rng.standard_normal((n, 2))
    model = LogisticRegression().fit(points, np.arange(n) % K)
    model.coef_, model.intercept_ = 1.5 * rng.standard_normal((K, 2)), rng.normal(0.0, 0.3, K)
    return model, points, rng.integers(0, K, n), rng


def distances(model, costs, norm):
    """The dual norms of the differences of all pairs of classes."""
    apart = np.abs(model.coef_[:, None] - model.coef_) / costs
    return {"l1": apart.max(-1), "linf": apart.sum(-1), "l2": np.sqrt((apart**2).sum(-1))}[norm]


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("seed", range(6))
def test_loss_and_error_of_several_classes(seed, norm):
    model, points, y, rng = softmax(seed, 3 + seed % 2)
    K, n = len(model.classes_), len(y)
    kappa = {k: float(rng.choice([0.3, 1.0, math.inf])) for k in range(K)}
    costs, epsilon = np.exp(rng.uniform(-0.5, 0.5, 2)), 0.4
    flips, scores = np.array([kappa[k] for k in y]), model.decision_function(points)
    norms, level = distances(model, costs, norm), np.logaddexp.reduce(scores, axis=1)
    # The dual: a line for each label of a row, down to the steepest slope of a label at hand.
    had = np.isin(np.arange(K), y) | np.isfinite(flips).any()
    least = norms[had].max()
    own = scores[np.arange(n), y]
    candidates = np.concatenate([[least], (own[:, None] - scores).ravel() / flips.repeat(K)])
    values = []
    for lam in candidates[candidates >= least]:
        with np.errstate(invalid="ignore"):
            paid = np.where(np.arange(K) == y[:, None], 0.0, flips[:, None] * lam)
        values.append(epsilon * lam + (level[:, None] - scores - paid).max(axis=1).mean())
    ball = Ball(epsilon, kappa, norm=norm, feature_costs=costs)
    found = worst_case(model, points, y, ball=ball)
    assert found.value == pytest.approx(min(values), abs=1e-9)
    assert found.exact
    assert found.best <= found.nominal
    error = worst_case(model, points, y, "error", ball=ball)
    right = scores.argmax(axis=1) == y
    gaps = (own[:, None] - scores) / (norms + np.eye(K))[y]
    gaps[np.arange(n), y] = np.inf
    cost = np.sort(np.minimum(gaps.min(axis=1), flips)[right]) / n
    spent = np.append(0.0, np.cumsum(cost[np.isfinite(cost)]))
    most = (~right).mean() + np.interp(epsilon, spent, np.arange(spent.size) / n)
    assert error.value == pytest.approx(most, abs=1e-12)
    assert not error.exact
    assert error.best <= error.nominal <= error.value
    for several in (found, error):
        with pytest.raises(ValueError, match="worst-case distribution for two classes only"):
            several.distribution()


def test_domains_of_several_classes_count_as_numbers():
    model, points, y, _ = softmax(0, 3)
    free = Ball(0.2, feature_costs=None)
    bound = worst_case(model, points, y, ball=free.replace(bounds={0: (-9.0, 9.0)}))
    assert bound.value == pytest.approx(worst_case(model, points, y, ball=free).value, abs=1e-12)
    assert not bound.exact
    assert "may be too pessimistic" in str(bound)
    for metric, asked, said in (
        ("recall", {}, "must be 'log_loss' or 'error'"),
        ({(0, 1): 1.0}, {}, "must be 'log_loss' or 'error'"),
        ("error", {"threshold": 0.3}, "threshold and pos_label are for two classes"),
        ("error", {"pos_label": 1}, "threshold and pos_label are for two classes"),
    ):
        with pytest.raises(ValueError, match=said):
            worst_case(model, points, y, metric, ball=BALL, **asked)


# --- ends ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(30))
def test_the_ends_of_the_range_are_reached(seed):
    """Sums of rounded masses must not hide that every row can be wrong."""
    rng = np.random.default_rng(seed)
    points, y = rng.standard_normal((25, 2)), np.arange(25) % 2
    weights = rng.exponential(size=25)
    for metric, end in (("error", 1.0), ("recall", 0.0), ("fpr", 1.0), ("precision", 0.0)):
        asked = ((1.0, -0.5), 0.1), points, y, metric
        found = worst_case(*asked, ball=BALL, sample_weight=weights)
        point = found.breaking_point(end)
        there = worst_case(*asked, ball=point.ball, sample_weight=weights)
        assert there.value == pytest.approx(end, abs=1e-12)
        beyond = end - 1.0 if found.is_benefit else end + 1.0
        assert found.breaking_point(beyond).ball is None


def test_a_denominator_that_can_vanish():
    """A model that always says "positive" has recall 1 under every distribution with a positive."""
    y = np.array([1, 1, 0])
    ball = Ball(0.7, 1.0, feature_costs=None)
    always = worst_case(((0.0,), 1.0), np.zeros((3, 1)), y, "recall", ball=ball)
    assert (always.best, always.value) == (1.0, 1.0)
    assert always.exact
    assert always.breaking_point(0.5).epsilon == math.inf
    assert always.distribution().value == 1.0
    # Where rows can be missed, flips of the others make them all there is.
    rows = np.array([[5.0], [5.0], [-1.0]])
    cheap = worst_case(((1.0,), 0.0), rows, y, "recall", ball=ball)
    assert cheap.value == 0.0
    point = cheap.breaking_point(0.0).epsilon
    assert point == pytest.approx(2.0 / 3.0)
    below = worst_case(((1.0,), 0.0), rows, y, "recall", ball=ball.replace(epsilon=0.66)).value
    assert 0.0 < below < 1.0
    spread = cheap.distribution()
    assert spread.mass[spread.label == 1].sum() > 0.0
    assert spread.value == pytest.approx(0.0, abs=1e-12)


def test_ties_at_the_threshold():
    rows, y = np.array([[0.0], [0.0], [1.0]]), np.array([0, 1, 1])
    ball = Ball(1e-9, feature_costs=None)
    # A row at the threshold is positive; it can leave at no cost.
    error = worst_case(((1.0,), 0.0), rows, y, "error", ball=ball)
    assert error.nominal == pytest.approx(1 / 3)
    assert error.value == pytest.approx(2 / 3)
    assert error.best == pytest.approx(0.0)
    # Unless nothing in it can move, or it is at the end of its range.
    still = {"feature_costs": [math.inf]}, {"bounds": {0: (0.0, 1.0)}}
    for limits in still:
        fixed = worst_case(((1.0,), 0.0), rows, y, "error", ball=ball.replace(**limits))
        assert fixed.value == pytest.approx(1 / 3)
        assert fixed.best == pytest.approx(1 / 3)
        assert fixed.exact
    nothing = worst_case(((1.0,), 0.0), rows, y, "error", ball=ball.replace(epsilon=0.0))
    assert nothing.value == nothing.best == nothing.nominal


def test_an_end_point_on_the_threshold_is_positive():
    """A bounded feature can bring the first row to the threshold, and not below it."""
    ball = Ball(10.0, feature_costs=None, bounds={0: (-1.0, 1.0)}, norm="l1")
    rows, y = np.array([[1.0], [1.0]]), np.array([1, 0])
    found = worst_case(((1.0,), 1.0), rows, y, "error", ball=ball)
    assert found.value == 0.5
    assert found.breaking_point(1.0).epsilon == math.inf
    # Upwards it may end there.
    up = worst_case(((1.0,), -1.0), -rows, y, "error", ball=ball)
    assert up.value == 1.0
    assert up.breaking_point(1.0).epsilon == pytest.approx(1.0)


def test_the_positive_class_is_at_the_threshold():
    """Positive if the probability is at least the threshold, whichever class is positive."""
    rows, y = np.array([[0.0], [1.0], [-1.0]]), np.array(["a", "a", "b"])
    model = LogisticRegression().fit(np.array([[0.0], [1.0]]), ["a", "b"])
    model.coef_, model.intercept_ = np.array([[1.0]]), np.array([0.0])
    ball = Ball(0.0)
    recall = {c: worst_case(model, rows, y, "recall", ball=ball, pos_label=c) for c in "ab"}
    assert recall["a"].nominal == 0.5
    assert recall["b"].nominal == 0.0
    assert worst_case(model, rows, y, "recall", ball=ball).metric == recall["b"].metric
    assert "positive: 'b'" in str(recall["b"])
    assert "positive: 'a'" in recall["a"].metric
    with pytest.raises(ValueError, match="pos_label must be one of"):
        worst_case(model, rows, y, "recall", ball=ball, pos_label="c")


def test_extreme_thresholds_and_radii():
    for threshold, expected in ((0.0, 1.0), (1.0, 0.0)):
        found = worst_case(MODEL, X, Y, "recall", ball=BALL, threshold=threshold)
        assert found.value == found.nominal == expected
        if threshold == 0.0:
            assert worst_case(MODEL, X, Y, "fpr", ball=BALL, threshold=0.0).distribution()
    far = worst_case(MODEL, X, Y, ball=BALL.replace(epsilon=1e160))
    assert math.isfinite(far.value)
    assert far.distribution().transport_cost <= 1e160
    assert worst_case(MODEL, X, Y, "error", ball=BALL.replace(epsilon=1e300)).value == 1.0


# --- metrics ----------------------------------------------------------------------------------


def test_nominal_values_are_those_of_scikit_learn():
    w = RNG.exponential(size=60)
    p = 1.0 / (1.0 + np.exp(-(X @ MODEL[0] + MODEL[1])))
    decided = (p >= 0.4).astype(int)
    expected = {
        "log_loss": log_loss(Y, p, sample_weight=w),
        "error": np.average(decided != Y, weights=w),
        "recall": recall_score(Y, decided, sample_weight=w),
        "precision": precision_score(Y, decided, sample_weight=w),
        "fpr": np.average(decided[Y == 0], weights=w[Y == 0]),
        "npv": precision_score(Y, decided, sample_weight=w, pos_label=0),
    }
    for metric, value in expected.items():
        found = worst_case(MODEL, X, Y, metric, ball=BALL, threshold=0.4, sample_weight=w)
        assert found.nominal == pytest.approx(value, abs=1e-12)
        low, high = sorted([found.value, found.best])
        assert low <= found.nominal <= high


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"metric": "auc"}, "metric must be one of 'log_loss', 'error', 'recall'"),
        ({"metric": {}}, "metric must be one of"),
        ({"metric": {("a", 1): 1.0}}, r"costs must go by \(label, decision\)"),
        ({"metric": {(0, 1): math.nan}}, "costs must be finite"),
        ({"metric": "error", "threshold": 1.2}, "threshold must be a probability"),
        ({"metric": "net_benefit", "threshold": 0.0}, "must lie between 0 and 1"),
        ({"ball": None}, r"Ball\.tolerating\(labels=0\.05\)"),
        ({"ball": 0.1}, "ball must be a drlogit.Ball"),
        ({"ball": Ball(0.1, {0: 1.0})}, "kappa must have a cost for each of the labels"),
        ({"ball": Ball(0.1, np.ones(3))}, "kappa must be 60 numbers"),
        ({"by": np.arange(60)}, "by must have at most 30 different values"),
        ({"by": [1, 2]}, "by must have one value per row"),
        ({"by": "sex"}, "by names the column 'sex'"),
        ({"sample_weight": [1.0]}, "sample_weight must have shape"),
        ({"y": [0, 1]}, "y must have one label per row of X: 60, got 2"),
        ({"X": X[:0], "y": Y[:0]}, r"X must have at least one row, got shape \(0, "),
    ],
)
def test_bad_input(change, message):
    options = {"X": X.tolist(), "y": Y, "metric": "log_loss", "ball": BALL} | change
    with pytest.raises(ValueError, match=message):
        worst_case(MODEL, **options)


@pytest.mark.parametrize("kappa", [0.9, math.inf])
def test_the_least_error_of_several_classes_is_below_what_moves_attain(kappa):
    """On a line the cheapest move of a wrong row to its own class can be listed."""
    line = np.linspace(-4.0, 4.0, 8001)
    coef, intercept = np.array([[-2.0], [0.0], [2.0]]), np.array([-1.0, 0.0, -1.0])
    rng = np.random.default_rng(0)
    points, y = rng.uniform(-2.0, 2.0, 30), rng.integers(0, 3, 30)
    own = (line[:, None] * coef[:, 0] + intercept).argmax(axis=1)
    model = LogisticRegression().fit(points[:, None], y)
    model.coef_, model.intercept_ = coef, intercept
    reach = [np.abs(line[own == label] - x).min() for x, label in zip(points, y, strict=True)]
    costs = np.sort(np.minimum(reach, kappa))
    for epsilon in (0.01, 0.05, 0.2):
        mended = np.searchsorted(np.cumsum(costs) / 30.0, epsilon, side="right")
        ball = Ball(epsilon, kappa, feature_costs=None)
        found = worst_case(model, points[:, None], y, "error", ball=ball)
        assert found.best <= 1.0 - mended / 30.0 + 1e-12
        assert found.best >= 1.0 - (mended + 1) / 30.0 - 1e-2


def test_undefined_ratios():
    with pytest.raises(ValueError, match="not defined: no row counts for its denominator"):
        worst_case(MODEL, X, Y, "recall", ball=BALL, sample_weight=np.where(Y == 1, 0.0, 1.0))


# --- groups and records -------------------------------------------------------------------------


def test_groups():
    frame = pd.DataFrame(X, columns=list("abc")).assign(half=np.arange(60) % 2)
    part = np.where(Y == 0, "healthy", np.arange(60) % 2)
    model = stated.classifier(epsilon=0.05, kappa=1.0).fit(frame[["a", "b", "c"]], Y)
    with pytest.warns(UserWarning, match="group part = healthy is skipped: recall"):
        found = worst_case(model, frame[["a", "b", "c"]], Y, "recall", by={"part": part})
    assert [group.group for group in found.by_group] == ["part = 0", "part = 1"]
    for group in found.by_group:
        some = part == group.group[-1]
        alone = worst_case(model, frame[["a", "b", "c"]][some], Y[some], "recall")
        assert group.value == pytest.approx(alone.value, abs=1e-12)
        assert group.n == some.sum()
        assert group.breaking_point(0.5).epsilon == pytest.approx(
            alone.breaking_point(0.5).epsilon, abs=1e-12
        )
        assert group.distribution().value == pytest.approx(group.value, abs=1e-7)
        assert group.group in str(found)
    table = found.to_frame()
    assert table["group"].tolist() == ["", "part = 0", "part = 1"]
    assert table["value"][0] == float(found)


def test_records_in_words():
    ball = Ball.tolerating(labels=0.05)
    found = worst_case(MODEL, X, Y, "error", ball=ball)
    said = str(found)
    assert "positive: 1, threshold 0.5" in said
    assert "Up to 5 % of the labels may be wrong." in said
    assert "Deviations are those of these rows" in said
    resolved = ball.resolve(X, Y)
    assert "Deviations are" not in str(worst_case(MODEL, X, Y, "error", ball=resolved))
    point = found.breaking_point(0.5)
    assert point.ball.epsilon == point.epsilon == float(point)
    assert "It reaches 0.5 at radius" in str(point)
    assert "cannot reach" in str(found.breaking_point(1.5))
    assert "has reached the limit" in str(found.breaking_point(0.0))
    with pytest.raises(ValueError, match="limit must be a finite number"):
        found.breaking_point(math.nan)
    assert "at least 0." in str(worst_case(MODEL, X, Y, ball=Ball(9.0, 1.0)))  # not -0
    declared = worst_case(MODEL, X, Y, "error", ball=Ball.tolerating(labels=0.02, numbers=0))
    wanted = declared.nominal + 0.1
    assert declared.breaking_point(wanted).epsilon == pytest.approx(0.1 / 0.02)


def test_numbers_are_rounded_outwards():
    for value in np.random.default_rng(0).uniform(-2.0, 2.0, 40).tolist():
        low, high = float(rounded(value, -1.0)), float(rounded(value, 1.0))
        assert value - 1e-3 <= low <= value + 1e-12
        assert value - 1e-12 <= high <= value + 1e-3
    assert rounded(0.00025, 1.0) == "0.00025"
    assert rounded(0.123449, 1.0) == "0.1235"
    assert rounded(0.123499, -1.0) == "0.1234"
    assert rounded(0.30000000000000004, 1.0) == "0.3"
    assert percent(0.975, -1.0) == "97.5 %"
    assert percent(0.0002501, 1.0, 2) == "0.026 %"


# --- distributions ------------------------------------------------------------------------------


def test_the_frame_of_a_distribution():
    table = worst_case(MODEL, X, Y, ball=BALL).distribution().to_frame()
    assert table["mass"].sum() == pytest.approx(1.0)
    assert np.bincount(table["index"], table["mass"]) == pytest.approx(1.0 / 60.0)


def test_a_cost_of_zero_for_unknown_labels():
    nothing = worst_case(MODEL, X, Y, "error", ball=Ball(0.0, 0.0))
    assert nothing.value == nothing.nominal
    some = worst_case(MODEL, X, Y, "error", ball=Ball(1e-6, 0.0))
    assert some.value == 1.0
    assert some.distribution().flipped.any()


def test_values_of_rows_at_a_price():
    """Weak duality holds at every price, with equality at the right one."""
    adversary = Adversary.of(MODEL, X, Y, BALL)
    for name in ("error", "log_loss", "net_benefit"):
        metric = adversary.metric(name, 0.4)
        hull = adversary.hull(metric)
        for factor in (1.0, 1.3, 3.0):
            price = hull.price(0.1) * factor
            bound = 0.1 * price + adversary.weights @ hull.at_price(price)
            assert bound >= hull.at(0.1) - 1e-12
            if factor == 1.0:
                assert bound == pytest.approx(hull.at(0.1), abs=1e-12)
