"""The audit: the same numbers as the functions behind it, in a form people can read."""

from __future__ import annotations

import math

import numpy as np
import pytest
from benchmarks import stated
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import drlogit
import zoo
from drlogit import audit

X, Y = drlogit.datasets.make_synthetic(120, 4, random_state=1)
MODEL = LogisticRegression().fit(X, Y)


def test_summary_of_a_model():
    (found,) = audit(MODEL, X, Y, kappa=1.0).models
    assert found.name == "LogisticRegression"
    assert found.error == pytest.approx(1.0 - MODEL.score(X, Y))
    assert found.loss == pytest.approx(found.rows[0].worst_case_loss)
    assert found.sensitivity == pytest.approx(np.abs(MODEL.coef_).max())
    half = zoo.worst_error(MODEL, X, Y, epsilon=found.half_wrong_radius, kappa=1.0)
    assert half.value == pytest.approx(0.5)
    u = Y * MODEL.decision_function(X)
    assert [s.index for s in found.first_flipped] == np.argsort(-u)[:5].tolist()
    assert [s.index for s in found.most_surprising] == np.argsort(u)[:5].tolist()
    first = found.first_flipped[0]
    assert first.label == Y[first.index]
    assert first.margin == pytest.approx(u[first.index])


@pytest.mark.parametrize(
    ("kappa", "words"),
    [(100.0, "no label is worth flipping"), (math.inf, "labels cannot be flipped")],
)
def test_labels_that_are_not_flipped(kappa, words):
    report = audit(MODEL, X, Y, kappa=kappa)
    assert report.models[0].first_flipped == ()
    assert all(row.flip_share == 0.0 for row in report.models[0].rows)
    assert words in str(report)


def test_several_models():
    result = stated.solve(X, Y, epsilon=0.05, kappa=1.0)
    models = [MODEL, result, (result.coef, result.intercept), LinearSVC().fit(X, Y)]
    report = audit(models, X, Y)
    names = ["LogisticRegression", "Result", "(coef, intercept)", "LinearSVC"]
    assert [model.name for model in report.models] == names
    assert (
        report["Result"].rows[2].worst_case_loss
        == report["(coef, intercept)"].rows[2].worst_case_loss
    )
    at = [row.epsilon for row in report["Result"].rows].index(0.05)
    best = report["Result"].rows[at].worst_case_loss
    assert best == pytest.approx(result.objective)
    assert all(model.rows[at].worst_case_loss >= best - 1e-12 for model in report.models)
    with pytest.raises(KeyError, match="no model 'SVC' in this audit, only 'LogisticRegression'"):
        report["SVC"]
    pipe = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, Y)
    twice, mapped = audit([MODEL, pipe], X, Y), audit({"plain": MODEL, 2: pipe}, X, Y)
    assert [m.name for m in twice.models] == ["LogisticRegression 1", "LogisticRegression 2"]
    assert [m.name for m in mapped.models] == ["plain", "2"]


def test_default_radii():
    assert audit(MODEL, X, Y, kappa=0.1).epsilons[-1] == pytest.approx(0.02)
    u = Y * MODEL.decision_function(X)
    mean = u[u > 0].mean() / np.abs(MODEL.coef_).max()
    assert audit(MODEL, X, Y, kappa=math.inf).epsilons[-1] == pytest.approx(0.2 * mean)
    constant = audit(([0.0] * 4, 1.0), X, Y, kappa=math.inf)
    assert constant.epsilons[-1] == 0.2
    assert constant.models[0].half_wrong_radius == (0.0 if (Y < 0).mean() >= 0.5 else math.inf)


def test_printed_report():
    x = np.array([[2.0], [1.0], [-1.0], [0.5]])
    report = audit(([1.0], 0.0), x, [1, 1, 0, 0], epsilons=[0.0, 0.1], kappa=0.5, n_listed=1)
    assert str(report).splitlines() == [
        "Audit of (coef, intercept) on 4 samples, l1 transport",
        "kappa = 0.5: at most a share epsilon/kappa of the labels can be flipped",
        "distances in the units of X as given",
        "",
        "epsilon  flips up to  log-loss           error",
        "      0         0.0%    0.4319  25.0% to 25.0%",
        "    0.1        20.0%    0.8319   5.0% to 45.0%",
        "",
        "half of the predictions can be wrong from epsilon = 0.125",
        "labels that the worst case flips first (those with the largest margins):",
        "  row 0: label 1, margin 2, flipped from epsilon = 0.125",
        "labels that the model finds least likely (never flipped in the worst case):",
        "  row 3: label 0, margin -0.5",
        "on these samples:",
        "  accuracy              75.0%",
        "  recall by class       0 50.0%, 1 100.0%",
        "  constant model        log-loss 0.6931, accuracy 50.0% (always 0)",
    ]


def test_bad_input():
    for empty in ([], {}):
        with pytest.raises(ValueError, match="no model to audit"):
            audit(empty, X, Y)
    with pytest.raises(ValueError, match="at least one radius"):
        audit(MODEL, X, Y, epsilons=[])
    with pytest.raises(ValueError, match=r"epsilon must be finite and >= 0, got -0\.1"):
        audit(MODEL, X, Y, epsilons=[0.1, -0.1])


def test_weights_count_like_repeated_samples():
    weights = np.arange(120) % 4
    again = np.repeat(np.arange(120), weights)
    weighted = audit(MODEL, X, Y, kappa=9.0, sample_weight=weights)
    repeated = audit(MODEL, X[again], Y[again], kappa=9.0)
    assert weighted.epsilons == pytest.approx(repeated.epsilons)
    one, other = weighted.models[0], repeated.models[0]
    assert one.half_wrong_radius == pytest.approx(other.half_wrong_radius)
    for row, same in zip(one.rows, other.rows, strict=True):
        assert row.worst_case_loss == pytest.approx(same.worst_case_loss)
        assert (row.best_error, row.worst_error, row.flip_share) == pytest.approx(
            (same.best_error, same.worst_error, same.flip_share)
        )
    # Samples that do not count are not listed, however surprising.
    listed = audit(MODEL, X, Y, sample_weight=weights, n_listed=120).models[0].most_surprising
    assert sorted(sample.index for sample in listed) == np.flatnonzero(weights).tolist()


def test_no_more_than_all_labels_and_a_boundary_that_predicts_the_negative_class():
    """β = 0, b = 0: every sample is on the boundary, where scikit-learn says "negative"."""
    found = audit((np.zeros(4), 0.0), X, Y, kappa=0.5, epsilons=[0.25, 2.0])["(coef, intercept)"]
    assert found.error == pytest.approx(np.mean(Y > 0))
    assert [row.flip_limit for row in found.rows] == [0.5, 1.0]
    assert found.first_flipped == ()  # a flip changes nothing
    assert [row.flip_share for row in found.rows] == [0.0, 0.0]


# --- κ by label and by sample ------------------------------------------------------------------


def test_an_audit_of_training_data_returns_the_fits_own_number():
    X, y = zoo.logistic_data(120, 3)
    names = np.where(y > 0, "good", "bad")
    by_label = {"good": 0.5, "bad": np.inf}
    model = stated.classifier(0.05, by_label).fit(X, names)
    report = drlogit.audit(model, X, names, epsilons=[0.05])
    assert report.models[0].rows[0].worst_case_loss == pytest.approx(model.worst_case_loss_)
    assert report.models[0].rows[0].flip_limit == pytest.approx(0.1)
    assert {sample.label for sample in report.models[0].first_flipped} == {"good"}
    assert "inf for bad, 0.5 for good" in str(report)
    promise = str(drlogit.guarantee(model, X[::-1] + 0.01, names[::-1]))
    assert "up to 10 % of all samples may be wrongly labelled good" in promise


def test_a_model_with_a_cost_for_each_sample_has_none_for_others():
    X, y = zoo.logistic_data(120, 3)
    kappa = np.random.default_rng(0).choice([0.5, 2.0, np.inf], size=120)
    model = stated.classifier(0.05).fit(X, y, kappa=kappa)
    assert model.ball_.kappa == "by row"
    with pytest.raises(ValueError, match="kappa must be given"):
        drlogit.audit(model, X, y)
    found = drlogit.audit(model, X, y, kappa=kappa, epsilons=[0.05]).models[0].rows[0]
    assert found.worst_case_loss == pytest.approx(model.worst_case_loss_)
