"""Audits: the verdict, what to do next, breaking points, and the rows that break first."""

import math

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import drlogit
from drlogit.report.audit import named_models


def made(seed, n):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.normal(50.0, 10.0, n),
            "dose": rng.exponential(2.0, n),
            "job": rng.choice(["clerk", "cook", "smith"], n),
        }
    )
    odds = (
        0.1 * (frame["age"] - 50.0) + 0.8 * (frame["dose"] - 2.0) + 1.5 * (frame["job"] == "cook")
    )
    return frame, np.where(odds + rng.logistic(size=n) > 0.5, "sick", "well")


@pytest.fixture(scope="module")
def robust():
    return drlogit.DRLogisticRegression(0.05, 1.0).fit(*made(0, 300))


@pytest.fixture(scope="module")
def report(robust):
    return drlogit.audit(robust, *made(1, 200), pos_label="sick")


# --- the verdict ----------------------------------------------------------------------------


def test_the_verdict_says_what_it_takes(report, robust):
    X, y = made(1, 200)
    (verdict,) = report.verdict()
    wrong = np.mean(robust.predict(X) != y)
    assert verdict.startswith(f"As the data are, {100.0 * wrong:.3g} % of the predictions are wr")
    assert report.limit == pytest.approx(min(np.mean(y == "sick"), np.mean(y == "well")))
    assert "of the labels are wrong, or " in verdict
    first = report.first.columns.query("kind != 'labels'")["column"].iloc[0]
    assert f"The column to check first is {first}." in verdict
    assert str(report).startswith(
        "DRLogisticRegression, on 200 rows. 'sick' is predicted if its probability is at least 0.5."
    )
    worst = drlogit.worst_case(robust, X, y, "error")
    assert "At the worst that the ball allows" in verdict
    frame = report.to_frame()
    assert frame[frame["epsilon"] == report.ball.epsilon]["value"].tolist() == [worst.value]


def test_breaking_points_are_those_of_balls_in_which_nothing_else_is_wrong(robust):
    X, y = made(1, 200)
    report = drlogit.audit(robust, X, y, limit=0.4)
    columns = report.first.columns.set_index("column")
    still = dict.fromkeys(X.columns, math.inf)
    labels = drlogit.Ball(1.0, 1.0, feature_costs=still)
    found = drlogit.worst_case(robust, X, y, "error", ball=labels).breaking_point(0.4)
    assert columns.at["labels", "breaks_at"] == pytest.approx(found.epsilon, abs=1e-12)
    for name in X.columns:
        alone = drlogit.Ball(1.0, feature_costs={**still, name: 1.0})
        found = drlogit.worst_case(robust, X, y, "error", ball=alone).breaking_point(0.4)
        assert columns.at[name, "breaks_at"] == pytest.approx(found.epsilon, abs=1e-12)
        allowed = report.ball.epsilon / report.ball.feature_costs[name]
        expected = columns.at[name, "breaks_at"] / allowed
        assert columns.at[name, "radii"] == pytest.approx(expected)
    # The flips of a share of the labels that is just enough do it.
    share = columns.at["labels", "breaks_at"]
    right = np.flatnonzero(robust.predict(X) == y)
    turned, few = y.copy(), right[: math.ceil(share * 200 - 1e-9)]
    turned[few] = np.where(y[few] == "sick", "well", "sick")
    assert np.mean(robust.predict(X) != turned) >= 0.4
    assert report.first.columns["radii"].is_monotonic_increasing


@pytest.mark.parametrize(
    ("metric", "words"),
    [
        ("log_loss", "the log-loss is"),
        ("recall", "of 'sick' are found"),
        ("fpr", "of 'well' are predicted 'sick'"),
        ("precision", "of those predicted 'sick' are right"),
        ("npv", "of those predicted 'well' are right"),
        ("net_benefit", "the net benefit of predicting 'sick' is"),
        ({("sick", "well"): 5.0, ("well", "sick"): 1.0}, "the mean cost of decisions is"),
    ],
)
def test_every_metric_is_said_with_the_positive_class(robust, metric, words):
    decided = {"metric": metric, "pos_label": "sick", "threshold": 0.4}
    report = drlogit.audit(robust, *made(1, 200), **decided)
    assert words in report.verdict()[0]
    nominal = drlogit.worst_case(robust, *made(1, 200), **decided).nominal
    assert report.first.nominal == pytest.approx(nominal)
    assert words in report.to_paragraph()
    if not isinstance(metric, str):
        costs = "It costs 1 if 'well' is predicted 'sick' and 5 if 'sick' is predicted 'well'."
        assert costs in str(report)


def test_rows_beyond_the_limit_are_called_so(robust):
    X, y = made(1, 200)
    turned = np.where(y == "sick", "well", "sick")
    report = drlogit.audit(robust, X, turned)
    assert "no better than the best constant answer" in report.verdict()[0]
    assert report.next_steps()[0].startswith("Look for a better model")
    never = drlogit.audit(robust, X, y, metric="net_benefit", limit=-5.0)
    assert "whatever share of the labels, or whichever single column" in never.verdict()[0]
    stated = drlogit.audit(robust, X, y, limit=0.01)
    assert "no better than your limit" in stated.verdict()[0]
    # The best constant answer for the recall is to call everybody sick.
    assert drlogit.audit(robust, X, y, metric="recall", pos_label="sick").limit == 1.0


def test_a_limit_within_the_ball(robust):
    """A pipeline is told to try a fit for the ball; a fit was one already."""
    X, y = made(1, 200)
    numbers = X[["age", "dose"]]
    bare = LogisticRegression().fit(numbers, y)
    for model, rows, wanted in ((bare, numbers, True), (robust, X, False)):
        ball = drlogit.Ball.tolerating(labels=0.5).resolve(rows, y)
        steps = " ".join(drlogit.audit(model, rows, y, ball=ball).next_steps())
        assert "The ball reaches the limit" in steps
        assert ("fit a model for it, DRLogisticRegression" in steps) == wanted


# --- several models, balls, promises --------------------------------------------------------


def test_models_share_a_ball_and_the_one_that_breaks_last_is_recommended(robust):
    X, y = made(1, 200)
    plain = drlogit.DRLogisticRegression(0.001, 1.0).fit(*made(0, 300))
    report = drlogit.audit({"robust": robust, "plain": plain}, X, y)
    assert list(report.models) == ["robust", "plain"]
    assert report.models["plain"].adversary.ball == report.models["robust"].adversary.ball
    best = max(report.models.values(), key=lambda each: each.epsilon)
    assert report.first is best
    assert report.next_steps()[0] == f"Use {best.name}: of these models it breaks last."


def test_foreign_models_need_a_ball_and_take_that_of_ours():
    X, y = made(1, 200)
    numbers = X[["age", "dose"]]
    pipeline = make_pipeline(StandardScaler(), LogisticRegression()).fit(numbers, y)
    with pytest.raises(ValueError, match="was not fitted with a ball"):
        drlogit.audit(pipeline, numbers, y)
    ours = drlogit.DRLogisticRegression(0.05, 1.0).fit(numbers, y)
    both = drlogit.audit({"mine": pipeline, "ours": ours}, numbers, y)
    assert both.ball.epsilon == 0.05
    ball = drlogit.Ball.tolerating(labels=0.02)
    assert "deviations are those of these rows" not in str(
        drlogit.audit(pipeline, numbers, y, ball=ball)
    )
    bare = LogisticRegression().fit(numbers, y)
    assert "deviations are those of these rows" in str(drlogit.audit(bare, numbers, y, ball=ball))
    inside = make_pipeline(StandardScaler(), drlogit.DRLogisticRegression(0.05, 1.0))
    inside.fit(numbers, y)
    assert drlogit.audit(inside, numbers, y).first.epsilon > 0.0
    with pytest.raises(ValueError, match="state one for all models in the units of X"):
        drlogit.audit({"ours": inside, "theirs": pipeline}, numbers, y)


def test_unseen_rows_bring_promises(robust):
    unseen = made(2, 150)
    report = drlogit.audit(robust, *made(1, 200), holdout=unseen, pos_label="sick")
    expected = drlogit.guarantee(robust, *unseen, pos_label="sick", random_state=0)
    assert report.first.promise.value == expected.value
    assert expected.bound in str(report)
    assert "95 % confidence" in report.to_paragraph()
    assert not any("holdout" in step for step in report.next_steps())


def test_groups_are_judged_alone(robust):
    X, y = made(1, 200)
    report = drlogit.audit(robust, X, y, by="job", metric="recall", pos_label="sick")
    frame = report.to_frame("groups")
    at = frame[(frame["group"] == "job = cook") & (frame["epsilon"] == report.ball.epsilon)]
    own = (X["job"] == "cook").to_numpy()
    alone = drlogit.worst_case(robust, X[own], y[own], "recall", pos_label="sick")
    assert at["value"].iloc[0] == pytest.approx(alone.value, abs=1e-9)
    assert "By group, within the ball:" in str(report)


# --- rows that break first ------------------------------------------------------------------


def test_rows_that_break_first_do_break_by_the_change_that_is_named(robust):
    X, y = made(1, 200)
    rows = drlogit.audit(robust, X, y, pos_label="sick").first.rows
    assert len(rows) == 10
    for row in rows.itertuples():
        before = X.loc[[row.row]]
        assert robust.predict(before)[0] == row.label == y[row.row]
        after = before.copy()
        if isinstance(row.changed_to, str):
            after[row.column] = row.changed_to
        else:
            assert before[row.column].iloc[0] == pytest.approx(row.value)
            after[row.column] = row.value + (row.changed_to - row.value) * (1.0 + 1e-6)
            assert not row.observed or X[row.column].min() <= row.changed_to <= X[row.column].max()
        assert robust.predict(after)[0] != row.label


def test_changes_within_the_observed_range_are_preferred_to_cheaper_ones():
    rng = np.random.default_rng(5)
    X = np.column_stack([0.01 * rng.random(80), rng.uniform(-5.0, 5.0, 80)])
    y = (X.sum(axis=1) > 0.0).astype(int)
    ball = drlogit.Ball(0.1, feature_costs={0: 0.01, 1: 1.0})
    rows = drlogit.audit((np.ones(2), 0.0), X, y, ball=ball, limit=0.2).first.rows
    assert rows["observed"].all()
    assert set(rows["column"]) == {1}


@pytest.mark.filterwarnings("ignore:the rows are sorted by label")
def test_changes_beyond_the_observed_range_say_so():
    rng = np.random.default_rng(3)
    X = pd.DataFrame({"size": rng.random(100) + np.tile([0.0, 9.0], 50)})
    y = np.tile([0, 1], 50)
    model = drlogit.DRLogisticRegression(0.01, 1.0).fit(X, y)
    narrow = drlogit.audit(model, X[::2], np.resize([0, 0, 0, 0, 1], 50))
    assert not narrow.first.rows["observed"].any()
    assert "outside of these rows" in narrow.to_html()


# --- several classes, frames, names ---------------------------------------------------------


def test_several_classes():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(200, 3))
    y = np.array(["a", "b", "c"])[np.digitize(X[:, 0], [-0.5, 0.5])]
    model = drlogit.DRLogisticRegression(0.02, 1.0).fit(X[:100], y[:100])
    report = drlogit.audit(model, X[100:], y[100:])
    assert "at least until" in report.verdict()[0]
    assert "bounds, which may be too pessimistic" in str(report)
    for row in report.first.rows.itertuples():
        moved = X[100:][[row.row]]
        moved[0, row.column] += (row.changed_to - row.value) * (1.0 + 1e-6)
        assert model.predict(moved)[0] != row.label


def test_names_frames_and_radii(robust, report):
    assert list(named_models((np.array([1.0]), 0.0))) == ["(coef, intercept)"]
    with pytest.raises(ValueError, match="no model to audit"):
        named_models({})
    with pytest.raises(ValueError, match="part must be"):
        report.to_frame("curves")
    assert set(report.to_frame("rows")) >= {"model", "row", "changed_to", "observed"}
    stated = drlogit.audit(robust, *made(1, 200), epsilons=[0.1, 0.0])
    assert stated.epsilons == (0.0, 0.1)
    with pytest.raises(ValueError, match="at least one radius"):
        drlogit.audit(robust, *made(1, 200), epsilons=[])
    with pytest.raises(ValueError, match="limit must be a finite number"):
        drlogit.audit(robust, *made(1, 200), limit=math.nan)
