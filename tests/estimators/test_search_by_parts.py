"""A search over radii whose folds are parts of the data: hospitals, years, regions."""

import numpy as np
import pytest
from benchmarks import stated
from sklearn.model_selection import GroupKFold, LeaveOneGroupOut


def parts(rng, n_parts, rows=60):
    """Places whose labels depend on the features a little differently each."""
    X = rng.standard_normal((n_parts * rows, 2))
    group = np.repeat(np.arange(n_parts), rows)
    slope = 1.5 + rng.standard_normal(n_parts)
    offset = 0.5 * rng.standard_normal(n_parts)
    score = slope[group] * X[:, 0] + offset[group]
    return X, (score + rng.logistic(size=group.size) > 0).astype(int), group


@pytest.mark.parametrize("cv", [LeaveOneGroupOut(), GroupKFold(3)])
def test_a_search_takes_parts_as_folds(cv):
    X, y, group = parts(np.random.default_rng(3), 5)
    search = stated.search(epsilons=3, kappas=[1.0], cv=cv)
    found = search.fit(X, y, groups=group)
    splits = [(np.sort(a), np.sort(b)) for a, b in cv.split(X, y, group)]
    same = stated.search(epsilons=3, kappas=[1.0], cv=splits).fit(X, y)
    assert found.n_splits_ == len(splits)
    np.testing.assert_array_equal(
        found.cv_results_["mean_test_score"], same.cv_results_["mean_test_score"]
    )
    with pytest.raises(ValueError, match="groups"):
        stated.search(epsilons=3, kappas=[1.0], cv=cv).fit(X, y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        search.fit(X, y, groups=group[1:])


@pytest.mark.filterwarnings("ignore:DRLogisticRegressionCV is constant")
def test_a_search_is_routed_its_parts():
    from sklearn import config_context
    from sklearn.model_selection import cross_val_score

    X, y, group = parts(np.random.default_rng(4), 6)
    with config_context(enable_metadata_routing=True):
        search = stated.search(epsilons=4, kappas=[1.0], cv=LeaveOneGroupOut()).set_fit_request(
            groups=True
        )
        scores = cross_val_score(
            search, X, y, cv=GroupKFold(3).set_split_request(groups=True), params={"groups": group}
        )
    assert scores.shape == (3,)
