"""κ by label and by sample, in the estimators, their files and proofs."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn
from benchmarks import stated
from sklearn.model_selection import StratifiedKFold, cross_validate

import drlogit
import zoo
from drlogit import Ball

X, SIGNS = zoo.logistic_data(150, 3)
Y = np.where(SIGNS > 0, "good", "bad")
BY_LABEL = {"good": 1.0, "bad": np.inf}
THREE = np.array(["good", "bad", "odd"])[X.argmax(axis=1)]
BY_SAMPLE = np.random.default_rng(0).choice([0.5, 2.0, np.inf], size=150)


@pytest.mark.parametrize(
    ("y", "kappa"),
    [(Y, BY_LABEL), (Y, BY_SAMPLE), (THREE, BY_SAMPLE)],
    ids=["label", "sample", "three"],
)
def test_a_search_takes_factors_and_cuts_costs_into_folds(y, kappa):
    by_label = isinstance(kappa, dict)
    ball = Ball(0.02, kappa if by_label else np.inf, norm="l1", feature_costs=None)
    search = drlogit.DRLogisticRegressionCV([0.02], [1.0, 4.0], ball=ball, cv=3)
    search.fit(X, y, kappa=None if by_label else kappa)
    factor = search.cv_results_["param_kappa"][search.best_index_]
    each = kappa if not by_label else np.where(Y == "good", 1.0, np.inf)
    alone = drlogit.solve(X, y, ball.replace(kappa=factor * each))
    assert search.worst_case_loss_ == pytest.approx(alone.objective, abs=2e-6)
    assert "flip_budget" not in search.cv_results_
    scaled = {"good": factor, "bad": np.inf} if by_label else "by row"
    assert search.ball_.kappa == scaled


@pytest.mark.parametrize("y", [Y, THREE], ids=["two", "three"])
def test_costs_are_routed_like_weights(y):
    beside = {"kappa": BY_SAMPLE, "sample_weight": 1.0 + np.arange(150) % 3}
    with sklearn.config_context(enable_metadata_routing=True):
        model = stated.classifier(0.05).set_fit_request(kappa=True, sample_weight=True)
        model.set_score_request(sample_weight=False)
        found = cross_validate(model, X, y, cv=3, params=beside, return_estimator=True)
    for fitted, (train, _) in zip(found["estimator"], StratifiedKFold(3).split(X, y), strict=True):
        assert fitted.ball_.kappa == "by row"
        parts = {name: values[train] for name, values in beside.items()}
        alone = stated.classifier(0.05).fit(X[train], y[train], **parts)
        np.testing.assert_array_equal(fitted.coef_, alone.coef_)


def test_tolerances_of_a_class_are_shares_of_it():
    ball = Ball.tolerating(labels={"good": 0.05, "bad": 0})
    model = drlogit.DRLogisticRegression(ball=ball).fit(X, Y)
    share = 0.05 * np.mean(Y == "good")
    assert model.ball_.kappa["good"] == pytest.approx(model.ball_.epsilon / share)
    assert np.isinf(model.ball_.kappa["bad"])


@pytest.mark.parametrize(
    ("y", "kappa"),
    [(Y, BY_LABEL), (Y, BY_SAMPLE), (THREE, BY_SAMPLE)],
    ids=["label", "sample", "three"],
)
def test_files_and_proofs(y, kappa, tmp_path):
    again = None if isinstance(kappa, dict) else kappa
    stated = kappa if again is None else None
    model = drlogit.DRLogisticRegression(0.05, stated).fit(X, y, kappa=again)
    drlogit.save_model(model, tmp_path / "model.json")
    read = drlogit.load_model(tmp_path / "model.json")
    assert read.ball_.kappa == model.ball_.kappa
    np.testing.assert_array_equal(read.predict_proba(X), model.predict_proba(X))
    model.save_proof(tmp_path / "proof.npz", X, y, kappa=again)
    for each in (model, read):
        assert drlogit.verify(each, X, y, tmp_path / "proof.npz", kappa=again).ok
    if again is not None:
        wrong = drlogit.verify(model, X, y, tmp_path / "proof.npz", kappa=0.5 * BY_SAMPLE)
        assert not wrong.ok
