"""κ by label and by sample, and label noise, in the estimators, their files and proofs."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn
from sklearn.model_selection import cross_validate

import drlogit
import zoo
from drlogit.estimators.label_noise import noise_matrix, true_probabilities

X, SIGNS = zoo.logistic_data(150, 3)
Y = np.where(SIGNS > 0, "good", "bad")
BY_LABEL = {"good": 1.0, "bad": np.inf}
THREE = np.array(["good", "bad", "odd"])[X.argmax(axis=1)]
BY_SAMPLE = np.random.default_rng(0).choice([0.5, 2.0, np.inf], size=150)


@pytest.mark.parametrize(
    ("y", "stated"),
    [(Y, BY_LABEL), (Y, BY_SAMPLE), (THREE, BY_SAMPLE)],
    ids=["label", "sample", "three"],
)
def test_a_search_takes_factors_and_cuts_costs_into_folds(y, stated):
    by_label = isinstance(stated, dict)
    search = drlogit.DRLogisticRegressionCV(
        [0.02], [1.0, 4.0], kappa=stated if by_label else None, cv=3
    ).fit(X, y, kappa=None if by_label else stated)
    factor = search.cv_results_["param_kappa"][search.best_index_]
    each = stated if not by_label else np.where(Y == "good", 1.0, np.inf)
    alone = drlogit.solve(X, y, epsilon=search.epsilon_, kappa=factor * each)
    assert search.worst_case_loss_[0] == pytest.approx(alone.objective, abs=2e-6)
    assert "flip_budget" not in search.cv_results_


@pytest.mark.parametrize("y", [Y, THREE], ids=["two", "three"])
def test_costs_are_routed_like_weights(y):
    with sklearn.config_context(enable_metadata_routing=True):
        model = drlogit.DRLogisticRegression(0.05).set_fit_request(kappa=True)
        found = cross_validate(
            model, X, y, cv=3, params={"kappa": BY_SAMPLE}, return_estimator=True
        )
    assert {each.kappa_ for each in found["estimator"]} == {"by sample"}


def test_tolerances_of_a_class_are_shares_of_it():
    stated = drlogit.tolerances(labels={"good": 0.05, "bad": 0})
    model = drlogit.DRLogisticRegression(**stated.parameters).fit(X, Y)
    share = 0.05 * np.mean(Y == "good")
    assert model.kappa_["good"] == pytest.approx(model.epsilon_ / share)
    assert np.isinf(model.kappa_["bad"])
    assert f"up to {100 * share:.3g} % of all samples" in drlogit.allowances(model)[0]


@pytest.mark.parametrize(
    ("y", "kappa"),
    [(Y, BY_LABEL), (Y, BY_SAMPLE), (THREE, BY_SAMPLE)],
    ids=["label", "sample", "three"],
)
def test_files_and_proofs(y, kappa, tmp_path):
    again = None if isinstance(kappa, dict) else kappa
    model = drlogit.DRLogisticRegression(0.05, kappa, label_noise={"good": 0.1}).fit(X, y)
    drlogit.save_model(model, tmp_path / "model.json")
    read = drlogit.load_model(tmp_path / "model.json")
    assert read.kappa_ == model.kappa_
    np.testing.assert_array_equal(read.predict_proba(X), model.predict_proba(X))
    model.save_proof(tmp_path / "proof.npz", X, y, kappa=again)
    for each in (model, read):
        assert drlogit.verify(each, X, y, tmp_path / "proof.npz", kappa=again).ok
    if again is not None:
        wrong = drlogit.verify(model, X, y, tmp_path / "proof.npz", kappa=0.5 * BY_SAMPLE)
        assert not wrong.ok


@pytest.mark.parametrize("noise", [0.1, {"good": 0.3, "bad": 0.1}, [[0.0, 0.2], [0.1, 0.0]]])
def test_noise_is_inverted(noise):
    plain = drlogit.DRLogisticRegression(0.02).fit(X, Y)
    model = drlogit.DRLogisticRegression(0.02, label_noise=noise).fit(X, Y)
    np.testing.assert_array_equal(model.coef_, plain.coef_)
    assert model.worst_case_loss_ == plain.worst_case_loss_
    (_, low), (high, _) = model.label_noise_
    recorded = plain.predict_proba(X)[:, 1]
    wanted = np.clip((recorded - low) / (1.0 - low - high), 0.005, 0.995)
    found = model.predict_proba(X)
    np.testing.assert_allclose(found[:, 1], wanted, atol=1e-4)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    assert np.isfinite(model.predict_log_proba(X)).all()
    np.testing.assert_array_equal(model.predict(X), np.where(found[:, 1] > 0.5, "good", "bad"))
    assert "for labels as recorded" in str(drlogit.audit(model, X, Y))
    assert "as recorded" not in str(drlogit.audit(plain, X, Y))


def test_noise_of_several_classes():
    shares = np.array([[0.8, 0.1, 0.1], [0.05, 0.9, 0.05], [0.0, 0.3, 0.7]])
    noise = noise_matrix(shares, np.arange(3))
    p = np.random.default_rng(0).dirichlet(np.full(3, 4.0), size=50)
    np.testing.assert_allclose(true_probabilities(p @ noise, noise), p, atol=1e-2)
    beyond = true_probabilities(np.eye(3), noise)  # no true label is recorded so surely
    np.testing.assert_allclose(beyond.sum(axis=1), 1.0)
    assert (beyond > 0.0).all()
    even = noise_matrix(0.2, np.arange(3))
    np.testing.assert_allclose(even, 0.8 * np.eye(3) + 0.1 * (1.0 - np.eye(3)))


@pytest.mark.parametrize(
    ("noise", "said"),
    [
        (1.0, "a rate in"),
        ({"odd": 0.1}, "rates for the labels"),
        (0.5, "must be informative"),
        ([[0.5, 0.5, 0.0]] * 3, "a row for each"),
        ([[0.9, 0.3], [0.1, 0.9]], "add up to 1, got sums"),
    ],
)
def test_noise_that_is_none(noise, said):
    with pytest.raises(ValueError, match=said):
        drlogit.DRLogisticRegression(label_noise=noise).fit(X, Y)
