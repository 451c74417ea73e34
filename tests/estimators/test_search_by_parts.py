"""A search over radii whose folds are parts of the data: hospitals, years, regions."""

import numpy as np
import pytest
from benchmarks import stated
from sklearn import config_context
from sklearn.model_selection import GroupKFold, LeaveOneGroupOut, cross_val_score


@pytest.mark.filterwarnings("ignore:DRLogisticRegressionCV is constant")
@pytest.mark.parametrize("cv", [LeaveOneGroupOut(), GroupKFold(3)])
def test_a_search_takes_parts_as_folds(cv):
    rng = np.random.default_rng(3)
    X, group = rng.standard_normal((300, 2)), np.repeat(np.arange(5), 60)
    slope = 1.5 + rng.standard_normal(5)  # differs from part to part
    y = slope[group] * X[:, 0] + rng.logistic(size=300) > 0.0
    search = stated.search(epsilons=3, kappas=[1.0], cv=cv)
    found = search.fit(X, y, groups=group).cv_results_["mean_test_score"]
    splits = list(cv.split(X, y, group))
    same = stated.search(epsilons=3, kappas=[1.0], cv=splits).fit(X, y)
    np.testing.assert_array_equal(found, same.cv_results_["mean_test_score"])
    for groups, said in ((None, "groups"), (group[1:], "inconsistent numbers of samples")):
        with pytest.raises(ValueError, match=said):
            search.fit(X, y, groups=groups)
    with config_context(enable_metadata_routing=True):
        outer = GroupKFold(3).set_split_request(groups=True)
        search.set_fit_request(groups=True)
        scores = cross_val_score(search, X, y, cv=outer, params={"groups": group})
    assert scores.shape == (3,)
