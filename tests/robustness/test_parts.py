"""Radii from past parts: order statistics, coverage, and what is refused."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, LeaveOneGroupOut

import drlogit


def parts(rng, n_parts, rows=60):
    """Places whose labels depend on the features a little differently each."""
    X = rng.standard_normal((n_parts * rows, 2))
    group = np.repeat(np.arange(n_parts), rows)
    slope = 1.5 + rng.standard_normal(n_parts)
    offset = 0.5 * rng.standard_normal(n_parts)
    score = slope[group] * X[:, 0] + offset[group]
    return X, (score + rng.logistic(size=group.size) > 0).astype(int), group


def test_too_few_parts_are_refused_with_what_is_needed():
    X, y, group = parts(np.random.default_rng(0), 4)
    model = drlogit.DRLogisticRegression(0.03, 1.0)
    with pytest.raises(ValueError, match="4 parts allow a confidence of at most 80%; 95% needs 19"):
        drlogit.radius_from_parts(model, X, y, group, 0.95)
    found = drlogit.radius_from_parts(model, X, y, group, 0.8)
    assert found.radius == found.radii.max()
    assert found.radii.shape == (4,)
    assert list(found.table["part"]) == [0, 1, 2, 3]
    with pytest.raises(ValueError, match="part of each of 240 rows, got 239"):
        drlogit.radius_from_parts(model, X, y, group[1:], 0.8)


def test_a_radius_is_not_carried_over_to_another_kind_of_model():
    X, y, group = parts(np.random.default_rng(1), 9)
    found = drlogit.radius_from_parts(drlogit.DRLogisticRegression(0.03, 1.0), X, y, group)
    other = drlogit.DRLogisticRegression(0.06, 1.0).fit(X, y)
    with pytest.raises(ValueError, match="another model"):
        found.promise(other, X, y)
    own = drlogit.DRLogisticRegression(0.03, 1.0, verbose=0, n_jobs=1).fit(X, y)
    promise = found.promise(own, X, y)
    assert promise.loss >= drlogit.worst_case_loss(own, X, y, epsilon=0.0, kappa=1.0)
    assert "Approximate" in str(promise)
    assert not promise.theorem


def test_promises_of_a_fixed_model_hold_as_often_as_they_say():
    held, held_weighted, n = 0, 0, 150
    for seed in range(n):
        rng = np.random.default_rng(seed)
        X, y, group = parts(rng, 12, 40)
        fit, ref, new = group == 0, group == 1, group == 11
        past = (group > 1) & ~new
        model = LogisticRegression().fit(X[fit], y[fit])
        reference = X[ref], y[ref]
        found = drlogit.radius_from_parts(
            model, X[past], y[past], group[past], 0.8, reference=reference, kappa=1.0
        )
        loss = -np.log(model.predict_proba(X[new])[np.arange(40), y[new]]).mean()
        promise = found.promise(model, *reference)
        assert promise.theorem
        held += loss <= promise.loss
        held_weighted += loss <= found.promise(model, *reference, X[new]).loss
    least = 0.8 - 2.0 * np.sqrt(0.16 / n)
    assert held / n >= least
    assert held_weighted / n >= least


def test_radii_are_those_of_shift():
    X, y, group = parts(np.random.default_rng(2), 6)
    model = drlogit.DRLogisticRegression(0.03, 1.0).fit(X[group == 0], y[group == 0])
    reference, past = (X[group == 1], y[group == 1]), group > 1
    found = drlogit.radius_from_parts(
        model, X[past], y[past], group[past], 0.8, reference=reference
    )
    for part, radius, error in zip(found.parts, found.radii, found.radii_error, strict=True):
        there = drlogit.shift(model, *reference, X[group == part], y[group == part])
        assert radius == pytest.approx(there.epsilon, abs=1e-12)
        assert error == pytest.approx(there.epsilon_error, abs=1e-12)


@pytest.mark.parametrize("cv", [LeaveOneGroupOut(), GroupKFold(3)])
def test_a_search_takes_parts_as_folds(cv):
    X, y, group = parts(np.random.default_rng(3), 5)
    search = drlogit.DRLogisticRegressionCV(epsilons=3, kappas=[1.0], cv=cv)
    found = search.fit(X, y, groups=group)
    splits = [(np.sort(a), np.sort(b)) for a, b in cv.split(X, y, group)]
    same = drlogit.DRLogisticRegressionCV(epsilons=3, kappas=[1.0], cv=splits).fit(X, y)
    assert found.n_splits_ == len(splits)
    np.testing.assert_array_equal(
        found.cv_results_["mean_test_score"], same.cv_results_["mean_test_score"]
    )
    with pytest.raises(ValueError, match="groups"):
        drlogit.DRLogisticRegressionCV(epsilons=3, kappas=[1.0], cv=cv).fit(X, y)
    with pytest.raises(ValueError, match="one entry for each of 300 samples"):
        search.fit(X, y, groups=group[1:])


@pytest.mark.filterwarnings("ignore:DRLogisticRegressionCV is constant")
def test_a_search_is_routed_its_parts():
    from sklearn import config_context
    from sklearn.model_selection import cross_val_score

    X, y, group = parts(np.random.default_rng(4), 6)
    with config_context(enable_metadata_routing=True):
        search = drlogit.DRLogisticRegressionCV(
            epsilons=4, kappas=[1.0], cv=LeaveOneGroupOut()
        ).set_fit_request(groups=True)
        scores = cross_val_score(
            search, X, y, cv=GroupKFold(3).set_split_request(groups=True), params={"groups": group}
        )
    assert scores.shape == (3,)
