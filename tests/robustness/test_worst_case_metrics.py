"""Worst and best cases of metrics, against programs over explicit adversaries and scikit-learn."""

from __future__ import annotations

import math

import numpy as np
import pytest
from benchmarks.transport_programs import (
    DOMAINS,
    METRICS,
    RATIOS,
    SMOOTH,
    Case,
    ClassesCase,
    difference,
)
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, log_loss, precision_score, recall_score

import drlogit
from drlogit.robustness import extremes
from drlogit.robustness.decisions import Decisions
from drlogit.robustness.extremes import least_dual

BENEFITS = ("tpr", "precision", "npv", "net_benefit")


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("seed", range(200, 203))
def test_ends_are_those_of_programs_over_plans(metric, seed):
    assert difference(Case(seed, metric)) <= 1e-9


@pytest.mark.parametrize("metric", DOMAINS)
def test_ends_with_categories_and_bounds(metric):
    assert difference(Case(200, metric, domains=True)) <= 1e-9


@pytest.mark.parametrize("seed", range(200, 206))
def test_costs_of_three_classes(seed):
    assert difference(ClassesCase(seed)) <= 1e-9


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("seed", [300, 301])
def test_record(metric, seed):
    case = Case(seed, metric)
    found, still = case.ours(), case.ours(epsilon=0.0)
    assert found.low <= found.nominal + 1e-12 <= found.high + 2e-12
    assert found.value == float(found)
    assert found.exact
    assert found.epsilon == case.epsilon
    if metric == "calibration":
        assert abs(found.value) == max(-found.low, found.high)
        assert abs(found.best) <= abs(found.nominal) + 1e-12
    elif metric in BENEFITS:
        assert (found.value, found.best) == (found.low, found.high)
    else:
        assert (found.value, found.best) == (found.high, found.low)
    assert still.low == pytest.approx(still.nominal, abs=1e-12)
    assert still.high == pytest.approx(still.nominal, abs=1e-12)
    assert str(found).startswith(metric if metric != "levels" else "cost")
    assert f"epsilon = {case.epsilon:g}" in str(found)


def scikit_learn_says(case):
    p, decided = expit(case.scores), case.scores > math.log(case.threshold / (1 - case.threshold))
    y, w = case.y, case.weights
    return {
        "tpr": recall_score(y, decided, sample_weight=w),
        "fpr": 1.0 - recall_score(y, decided, sample_weight=w, pos_label=0),
        "precision": precision_score(y, decided, sample_weight=w),
        "npv": precision_score(y, decided, sample_weight=w, pos_label=0),
        "error": float(np.average(decided != y, weights=w)),
        "brier": brier_score_loss(y, p, sample_weight=w),
        "log_loss": log_loss(y, p, sample_weight=w),
        "calibration": float(np.average(p - y, weights=w)),
    }


@pytest.mark.parametrize("metric", [*RATIOS, "error", "brier", "log_loss", "calibration"])
def test_nominal_values_are_scikit_learns(metric):
    case = Case(400, metric)
    found = case.ours(epsilon=0.0)
    assert found.nominal == pytest.approx(scikit_learn_says(case)[metric], abs=1e-12)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("seed", [500, 501, 502])
def test_breaking_point_is_the_inverse(metric, seed):
    case = Case(seed, metric)
    found, options = case.ours(), case.options()
    del options["epsilon"]
    model = (case.coef, case.intercept)
    limit = found.value if abs(found.value - found.nominal) > 1e-6 else found.nominal
    point = drlogit.breaking_point(model, case.X, case.y, case.metric, limit, **options)
    assert point.epsilon <= case.epsilon * (1.0 + 1e-9)
    there = case.ours(epsilon=point.epsilon)
    assert there.value == pytest.approx(limit, abs=1e-9)
    before = case.ours(epsilon=0.9 * point.epsilon).value
    assert abs(before - there.nominal) <= abs(limit - there.nominal) + 1e-12
    sign = -1.0 if metric in BENEFITS or limit < 0.0 else 1.0
    never = drlogit.breaking_point(model, case.X, case.y, case.metric, sign * 99.0, **options)
    assert metric == "log_loss" or math.isinf(never.epsilon)
    assert "at any radius" in str(never) or metric == "log_loss"


@pytest.mark.parametrize(
    ("metric", "domains"),
    [*((each, True) for each in DOMAINS), *((each, False) for each in METRICS[: -len(SMOOTH)])],
)
def test_worst_case_distribution_is_in_the_ball_and_as_bad(metric, domains):
    case = Case(600, metric, domains)
    found = drlogit.worst_case_distribution(
        (case.coef, case.intercept), case.X, case.y, metric=case.metric, **case.options()
    )
    assert found.supremum == case.ours().value
    assert found.expected_loss == pytest.approx(found.supremum, abs=1e-7)
    points, own = found.points(case.X), case.y[found.index]
    share = case.weights / case.weights.sum()
    np.testing.assert_allclose(np.bincount(found.index, found.mass), share, atol=1e-12)
    np.testing.assert_array_equal(found.flipped, found.label != own)
    # What it cost, from the points themselves.
    moves = np.abs(points - case.X[found.index])
    for group in case.categories:
        moves[:, group] *= 0.5 * (moves[:, group].sum(axis=1, keepdims=True) > 0.0)
    scaled = moves * case.costs
    sizes = {"l1": scaled.sum(1), "linf": scaled.max(1), "l2": np.linalg.norm(scaled, axis=1)}
    flips = np.array([case.kappa[int(label)] for label in own])[found.flipped]
    cost = found.mass @ sizes[case.norm] + found.mass[found.flipped] @ flips
    assert cost == pytest.approx(found.transport_cost, rel=1e-9)
    assert found.transport_cost <= case.epsilon
    # How bad it is: on a threshold either decision counts.
    scores, y = points @ case.coef + case.intercept, np.asarray(found.label)
    if metric in ("error", "cost", "net_benefit"):
        cut = math.log(case.threshold / (1.0 - case.threshold))
        worst = min if metric == "net_benefit" else max
        values = [
            worst(case.table[k, int(s > cut + e)] for e in (-1e-9, 1e-9))
            for s, k in zip(scores, y, strict=True)
        ]
        assert found.mass @ values == pytest.approx(found.supremum, abs=1e-9)


def test_other_metrics_have_no_worst_case_distribution():
    X, y = np.array([[0.0], [1.0], [2.0]]), [0, 1, 0]
    with pytest.raises(ValueError, match="no worst-case distribution of brier for 2 classes"):
        drlogit.worst_case_distribution(((1.0,), 0.0), X, y, epsilon=0.1, kappa=1.0, metric="brier")


# --- groups -----------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", ["error", "cost"])
@pytest.mark.parametrize("seed", [700, 701])
def test_gap_between_groups_is_that_of_a_program(metric, seed):
    """One plan, whose values count for one group and against the other."""
    case = Case(seed, metric)
    halves = np.arange(case.y.size) % 2
    found = _with_groups(case, halves)
    shares = np.bincount(halves, case.weights) / case.weights.sum()
    cut = math.log(case.threshold / (1.0 - case.threshold))
    ends = ((-math.inf, cut), (cut, math.inf))
    reach = np.array([[case.least_cost(i, *pair) for pair in ends] for i in range(case.y.size)])
    cost = np.hstack([reach, reach + case.flip_costs()[:, None]])
    values = np.hstack([case.table[case.y], case.table[1 - case.y]])
    signs = [np.where(halves == one, 1.0, -1.0) / shares[halves] for one in (0, 1)]
    best = max(case.plan(cost, sign[:, None] * values)[0] for sign in signs)
    assert found.gap.value == pytest.approx(best, abs=1e-9)
    assert [part.group for part in found.groups] == ["half = 0", "half = 1"]
    assert f"at most {found.gap.value:.4g} in the worst case" in str(found)


@pytest.mark.parametrize("metric", ["brier", "calibration", "log_loss"])
def test_gap_between_groups_of_a_smooth_mean(metric):
    case = Case(700, metric)
    halves = np.arange(case.y.size) % 2
    found = _with_groups(case, halves)
    best = max(_shared(case, halves, one) for one in (0, 1))
    assert best - 1e-9 <= found.gap.value <= best + 2e-3


@pytest.mark.parametrize("metric", ["tpr", "precision"])
def test_gap_between_groups_of_a_ratio(metric):
    case = Case(702, metric)
    order = np.argsort(case.scores)
    halves = np.empty(case.y.size, dtype=int)
    halves[order] = np.arange(case.y.size) // 2 % 2  # both labels on both sides in each
    case.y[order] = np.resize([0, 1], case.y.size)
    found = _with_groups(case, halves)
    best = max(_shared(case, halves, one) for one in (0, 1))
    assert best - 1e-9 <= found.gap.value <= best + 3e-2
    assert found.gap.value >= found.gap.nominal


def _with_groups(case, halves):
    model = (case.coef, case.intercept)
    groups = {"half": halves}
    return drlogit.worst_case(model, case.X, case.y, case.metric, groups=groups, **case.options())


def _shared(case, halves, one):
    """Ends of each group alone, with every part of the budget on a grid."""
    share = case.weights / case.weights.sum()
    best = -math.inf
    for part in np.linspace(0.0, 1.0, 31):
        ends = []
        for half, budget in ((one, part), (1 - one, 1.0 - part)):
            some = halves == half
            options = case.options()
            options["epsilon"] = budget * case.epsilon / share[some].sum()
            options["sample_weight"] = case.weights[some]
            model = (case.coef, case.intercept)
            ends.append(
                drlogit.worst_case(model, case.X[some], case.y[some], case.metric, **options)
            )
        best = max(best, ends[0].high - ends[1].low)
    return best


def test_groups_without_a_denominator_are_left_out_with_a_warning():
    case = Case(703, "tpr")
    with pytest.warns(UserWarning, match="half = 1 is skipped: tpr .* is not defined"):
        found = _with_groups(case, (case.y == 0).astype(int))
    assert [part.group for part in found.groups] == ["half = 0"]
    assert found.gap is None


# --- many rows, and what is refused -----------------------------------------------------------


@pytest.mark.parametrize("metric", ["tpr", "precision", "npv", "brier", "calibration", "log_loss"])
def test_many_rows_as_copies_of_few(metric):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((400, 3))
    coef = np.array([1.0, -0.5, 2.0])
    y = (X @ coef + rng.logistic(size=400) > 0.0).astype(int)
    ask = {"threshold": 0.4, "epsilon": 0.05, "kappa": {0: 2.0, 1: 1.0}}
    few = drlogit.worst_case((coef, 0.1), X, y, metric, **ask)
    many = drlogit.worst_case((coef, 0.1), np.tile(X, (60, 1)), np.tile(y, 60), metric, **ask)
    assert [many.low, many.high] == pytest.approx([few.low, few.high], abs=1e-11)


@pytest.mark.parametrize(("seed", "metric"), [(0, "tpr"), (1, "npv"), (3, "tpr"), (5, "precision")])
def test_options_that_are_left_out_are_beyond_the_budget(seed, metric, monkeypatch):
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((12, 1)), rng.integers(0, 2, 12)
    y[:2] = 0, 1

    def ends():
        ball = {"epsilon": 0.1, "kappa": {0: 0.3, 1: 1.5}}
        found = drlogit.worst_case(((2.0,), 0.1), X, y, metric, **ball)
        return found.low, found.high

    some, every = ends(), Decisions.hulls
    monkeypatch.setattr(Decisions, "hulls", lambda self, table, least=0.0: every(self, table))
    assert some == pytest.approx(ends(), abs=1e-12)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("metric", ["tpr", "fpr", "precision", "npv"])
def test_ratios_are_the_same_from_a_part_of_the_rows(seed, metric, monkeypatch):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((60, 2))
    y = (X[:, 0] + rng.logistic(size=60) > 1.0).astype(int)

    def ends():
        ball = {"epsilon": 0.02 * (1 + seed), "kappa": 1.0, "sample_weight": 1.0 + y}
        found = drlogit.worst_case(((1.5, 0.2), -0.8), X, y, metric, **ball)
        return found.low, found.high

    whole = ends()
    monkeypatch.setattr(extremes, "_MANY", 2)
    assert ends() == pytest.approx(whole, abs=1e-12)


def test_constant_model():
    X, y = np.zeros((4, 1)), [0, 1, 1, 1]
    for metric, low, high in (("brier", 0.25, 0.25), ("calibration", -0.5, 0.0)):
        found = drlogit.worst_case(((0.0,), 0.0), X, y, metric, epsilon=0.25, kappa=1.0)
        assert (found.low, found.high) == pytest.approx((low, high), abs=1e-12)


def test_minimum_of_a_convex_function_of_the_price():
    value, price = least_dual(lambda g: (1.0 / g, 1.0 / g**2), 0.25)
    assert value == pytest.approx(1.0, abs=1e-14)
    assert price == pytest.approx(2.0, rel=1e-5)


def test_what_cannot_be_asked():
    X, y = np.array([[0.0], [1.0], [2.0]]), [0, 1, 0]

    def ask(metric, **options):
        return drlogit.worst_case(((1.0,), -1.5), X, y, metric, **{"epsilon": 0.1} | options)

    for metric, options, match in (
        ("accuracy", {}, "metric must be one of 'log_loss'"),
        ({}, {}, "metric must be one of"),
        ("fpr", {"threshold": 1.1}, "threshold must be a probability"),
        ("net_benefit", {"threshold": 1.0}, "net_benefit needs a threshold between 0 and 1"),
        ("fpr", {"threshold": [0.2, 0.4]}, "threshold must be a probability"),
        ({(0, 2): 1.0}, {}, r"\(label, decision\), both among \[0, 1\], got \(0, 2\)"),
        ({(0, 1): math.inf}, {}, "costs must be finite"),
        ({0: [1.0], 1: [2.0, 3.0]}, {}, r"\(label, decision\), both among \[0, 1\], got 0"),
        ("precision", {"threshold": 0.9}, "not defined"),
        ("error", {"epsilon": None}, "no radius of its own"),
    ):
        with pytest.raises(ValueError, match=match):
            ask(metric, **options)


def test_several_classes_have_no_threshold():
    case = ClassesCase(0)
    model = LogisticRegression()
    model.coef_, model.intercept_, model.classes_ = case.coef, case.intercept, np.arange(3)
    with pytest.raises(ValueError, match="it decides for the most probable class"):
        drlogit.worst_case(model, case.X, case.y, {(0, 1): 1.0}, threshold=0.3, epsilon=0.1)


@pytest.mark.parametrize(("threshold", "rate"), [(0.0, 1.0), (1.0, 0.0)])
def test_the_same_decision_for_everybody(threshold, rate):
    """Only flipped labels change what a decision costs that no score can change."""
    case = Case(3, "cost", domains=True)
    ball = case.options() | {"threshold": threshold, "kappa": 1.0}
    model = case.coef, case.intercept
    found = drlogit.worst_case(model, case.X, case.y, "fpr", **ball)
    assert (found.low, found.nominal, found.high) == (rate, rate, rate)
    costs = drlogit.worst_case(model, case.X, case.y, {(0, 1): 1.0, (1, 0): 5.0}, **ball)
    wrong = float(case.weights[case.y == int(threshold)].sum() / case.weights.sum())
    each = 1.0 if threshold == 0.0 else 5.0
    assert costs.nominal == pytest.approx(each * wrong)
    assert costs.high == pytest.approx(each * min(wrong + ball["epsilon"], 1.0))


def test_the_generated_problems_move_both_ends():
    wide = [case.ours() for case in (Case(seed, "fpr") for seed in range(5))]
    assert all(found.high - found.low > 0.01 for found in wide)
