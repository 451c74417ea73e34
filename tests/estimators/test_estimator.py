"""The estimators: scikit-learn's contract, and that they fit what they say they fit."""

from __future__ import annotations

import doctest
import inspect
import math
import pickle

import numpy as np
import pytest
import sklearn
from benchmarks import stated
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, load_wine, make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import get_scorer, log_loss
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import drlogit
from drlogit import Ball, DRLogisticRegression, DRLogisticRegressionCV


def standardised(load):
    X, y = load(return_X_y=True)
    return StandardScaler().fit_transform(X), y


@pytest.fixture(scope="module")
def iris():
    return standardised(load_iris)


# --- the contract ---------------------------------------------------------------------------


# Some checks have labels that are pure chance: then the model is rightly constant.
@pytest.mark.filterwarnings("ignore:.* is constant|class .* is almost never:UserWarning")
@parametrize_with_checks(
    [
        DRLogisticRegression(),
        DRLogisticRegression(norm="l1", missing="median"),
        DRLogisticRegressionCV(epsilons=2, kappas=1, cv=2),
    ]
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def test_every_public_function_has_an_example_and_examples_tell_the_truth():
    public = {name: getattr(drlogit, name) for name in drlogit.__all__}
    public |= {name: getattr(drlogit.datasets, name) for name in drlogit.datasets.__all__}
    functions = {name for name, each in public.items() if inspect.isfunction(each)}
    assert not {name for name in functions if ">>> " not in (public[name].__doc__ or "")}
    finder, runner = doctest.DocTestFinder(), doctest.DocTestRunner(verbose=False)
    for name, each in public.items():
        if callable(each):
            for test in finder.find(each, name, module=False, globs={}):
                runner.run(test)
    assert runner.failures == 0


BAD = [
    ({"epsilon": -1.0}, "epsilon.*-1.0"),
    ({"epsilon": "automatic"}, "epsilon.*'automatic'"),
    ({"kappa": -1.0}, "kappa.*-1.0"),
    ({"ball": Ball(feature_costs=[1.0])}, "feature_costs must be 4 numbers"),
    ({"ball": 0.1}, "ball must be a drlogit.Ball"),
    ({"epsilon": Ball()}, "epsilon must be a number, got a Ball: pass it as ball="),
    ({"class_weight": "fair"}, "class_weight.*'fair'"),
    ({"epsilons": 0}, "epsilons.*0"),
    ({"epsilons": [0.1, -0.1]}, "epsilon.*-0.1"),
    ({"epsilons": []}, r"epsilons.*\[\]"),
    ({"kappas": -2}, "kappas.*-2"),
    ({"kappas": [1.0, 0.0]}, "kappa.*0.0"),
    ({"scoring": "beauty"}, "beauty"),
    ({"cv": "often"}, "often"),
]


@pytest.mark.parametrize(("parameters", "found"), BAD, ids=str)
def test_bad_parameters_are_named(iris, parameters, found):
    search = not parameters.keys() <= stated.classifier().get_params().keys()
    options = {"kappas": [1.0]} if search else {}
    model = (DRLogisticRegressionCV if search else DRLogisticRegression)(**(options | parameters))
    with pytest.raises((TypeError, ValueError), match=found):
        model.fit(*iris)


def test_classes_without_weight_are_named(iris):
    X, y = iris
    with pytest.raises(ValueError, match="samples of class 2 have weight 0"):
        stated.classifier().fit(X, y, sample_weight=(y < 2).astype(float))
    with pytest.raises(ValueError, match="samples of class 2 have weight 0"):
        stated.classifier(class_weight={0: 1.0, 1: 1.0, 2: 0.0}).fit(X, y)
    with pytest.raises(ValueError, match="at least two classes, got one class: 1"):
        stated.classifier().fit(X, np.ones_like(y))


def test_nothing_of_the_length_of_the_data_is_kept():
    X, y = make_classification(4000, 5, random_state=0)
    assert len(pickle.dumps(stated.classifier().fit(X, y))) < 10_000 < y.nbytes
    search = stated.search(epsilons=2, kappas=[1.0], cv=2).fit(X, y)
    assert len(pickle.dumps(search)) < 15_000


# --- what is fitted -------------------------------------------------------------------------


def test_two_classes_are_the_solution_of_solve(cancer):
    X, y = cancer
    labels = np.where(y == 1, "benign", "malignant")  # sorts the other way round
    model = stated.classifier(epsilon=0.05, kappa=0.5, norm="l2").fit(X, labels)
    result = stated.solve(X, labels, epsilon=0.05, kappa=0.5, norm="l2")
    assert model.classes_.tolist() == ["benign", "malignant"]
    names = ("coef_", "intercept_", "lambda_", "worst_case_loss_", "dual_gap_", "n_iter_")
    fields = ("coef", "intercept", "lam", "objective", "gap", "n_iter")
    for name, field in zip(names, fields, strict=True):
        assert np.array_equal(np.ravel(getattr(model, name)), np.ravel(getattr(result, field))), (
            name
        )
    assert model.ball_.epsilon == 0.05
    scores = X @ result.coef + result.intercept
    assert np.allclose(model.decision_function(X), scores)
    assert np.array_equal(model.predict(X), np.where(scores > 0.0, "malignant", "benign"))
    assert np.allclose(model.predict_proba(X)[:, 1], 1.0 / (1.0 + np.exp(-scores)))


def test_more_classes_are_one_softmax(iris):
    X, y = iris
    model = stated.classifier(epsilon=0.01, kappa=1.0).fit(X, y)
    result = stated.solve(X, y, epsilon=0.01, kappa=1.0)
    assert np.allclose(model.coef_, result.coef, rtol=1e-9)
    assert model.worst_case_loss_ == pytest.approx(result.objective, abs=1e-9)
    assert model.coef_.shape == (3, 4)
    assert model.dual_gap_ <= 1e-6
    assert model.decision_function(X).shape == (150, 3)
    single = np.exp(model.decision_function(X))
    assert np.allclose(model.predict_proba(X), single / single.sum(axis=1, keepdims=True))
    assert model.score(X, y) > 0.9
    against_rest = OneVsRestClassifier(model).fit(X, y)  # still to be had, from scikit-learn
    assert against_rest.score(X, y) > 0.9


@pytest.mark.parametrize("load", [load_breast_cancer, load_wine, load_iris])
@pytest.mark.parametrize("epsilon", [0.01, 0.03])
def test_immovable_labels_with_linf_are_l1_logistic_regression(load, epsilon):
    X, y = standardised(load)
    y = y == 1  # benign; the second cultivar; versicolor
    model = stated.classifier(epsilon, math.inf, norm="linf", tol=1e-10).fit(X, y)
    known = LogisticRegression(
        l1_ratio=1.0,
        C=1.0 / (len(y) * epsilon),
        solver="saga",
        tol=1e-12,
        max_iter=10**6,
        random_state=0,
    )
    if tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 8):
        known.set_params(penalty="l1", l1_ratio=None)
    known.fit(X, y)
    assert np.allclose(model.coef_, known.coef_, rtol=0.0, atol=1e-5)
    assert np.allclose(model.intercept_, known.intercept_, rtol=0.0, atol=1e-5)


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("kappa", [0.5, math.inf])
@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_integer_weights_are_repeated_rows(iris, norm, kappa, class_weight):
    X, y = iris
    weights = np.random.default_rng(0).integers(0, 4, y.size)
    model = stated.classifier(0.02, kappa, norm=norm, class_weight=class_weight, tol=1e-8)
    weighted = clone(model).fit(X, y, sample_weight=weights)
    repeated = clone(model).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    assert np.allclose(weighted.worst_case_loss_, repeated.worst_case_loss_, rtol=0.0, atol=2e-8)
    assert np.allclose(weighted.coef_, repeated.coef_, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("class_weight", ["balanced", {0: 1.0, 1: 3.0, 2: 0.5}, {1: 2.0}])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_class_weights_are_weights(iris, class_weight, n_classes):
    X, y = iris
    X, y = X[y < n_classes][20:], y[y < n_classes][20:]
    if isinstance(class_weight, dict):
        class_weight = {c: w for c, w in class_weight.items() if c < n_classes}
        weights = np.array([class_weight.get(c, 1.0) for c in y])
    else:
        weights = y.size / np.bincount(y)[y]
    by_class = stated.classifier(0.02, class_weight=class_weight).fit(X, y)
    by_sample = stated.classifier(0.02).fit(X, y, sample_weight=weights)
    plain = stated.classifier(0.02).fit(X, y)
    assert np.allclose(by_class.coef_, by_sample.coef_, rtol=1e-6, atol=1e-8)
    assert not np.allclose(by_class.coef_, plain.coef_, rtol=1e-3)


# --- any kind of input ----------------------------------------------------------------------


def test_warm_start_starts_from_the_last_fit(cancer):
    X, y = cancer  # four times: small data are solved from nothing in less time
    X = np.concatenate([X + shift for shift in (0.0, 0.1, -0.1, 0.2)])
    y = np.tile(y, 4)
    model = stated.classifier(0.01, 1.0, warm_start=True, tol=1e-5).fit(X, y)
    cold = model.n_iter_
    model.fit(X, y)
    assert model.n_iter_ < cold
    model.fit(X[:300], y[:300])  # another number of samples
    model.fit(X, y, sample_weight=np.arange(len(y)) % 3)  # and one that only fit knows
    assert model.dual_gap_ <= 1e-5
    model.fit(X[:, :5], y)  # another number of features
    assert model.coef_.shape == (1, 5)
    model.fit(X, np.arange(len(y)) % 3)  # other classes
    assert model.coef_.shape == (3, 30)


# --- warnings -------------------------------------------------------------------------------


def test_convergence_warning_has_gap_and_tolerance_in_nats(cancer):
    message = r"max_iter.* gap is [\d.e+-]+ nats, tol is 1\.00e-06 nats"
    with pytest.warns(ConvergenceWarning, match=message) as caught:
        model = stated.classifier(max_iter=2).fit(*cancer)
    assert f"{model.dual_gap_:.2e} nats" in str(caught[0].message)
    assert caught[0].filename == __file__
    assert model.dual_gap_ > 1e-6
    search = stated.search(epsilons=4, kappas=[1.0], cv=2, max_iter=2)
    with (
        pytest.warns(ConvergenceWarning, match=message),  # of the last fit
        pytest.warns(ConvergenceWarning, match="of 8 fits .* nats"),
    ):
        search.fit(*cancer)


def test_constant_model_is_explained(cancer):
    X, y = cancer
    limit = stated.epsilon_max(X, y, kappa=math.inf)
    for epsilon in (2.0 * limit, 1.0001 * limit):
        said = f"is constant: epsilon = {epsilon:.4g} is at least epsilon_max = {limit:.4g}"
        with pytest.warns(UserWarning, match=said):
            stated.classifier(epsilon=epsilon, kappa=math.inf).fit(X, y)
    stated.classifier(epsilon=0.3 * limit, kappa=math.inf).fit(X, y)  # no warning


def test_a_cost_that_allows_many_wrong_labels_is_no_share(cancer):
    with pytest.warns(UserWarning, match="20% of the labels .* kappa is the cost of a wrong label"):
        DRLogisticRegression(0.01, 0.05).fit(*cancer)


# --- the search over epsilon and kappa ------------------------------------------------------


@pytest.fixture(scope="module")
def search(cancer):
    return stated.search(epsilons=4, kappas=[math.inf, 1.0], cv=3).fit(*cancer)


def test_search_results_are_those_of_separate_fits(cancer, search):
    X, y = cancer
    table = search.cv_results_
    assert len(table["params"]) == 8
    assert table["param_kappa"].tolist() == [1.0] * 4 + [math.inf] * 4
    for i in (2, 5):
        parameters = table["params"][i]
        for fold, (train, test) in enumerate(StratifiedKFold(3).split(X, y)):
            model = DRLogisticRegression(**parameters, norm="l1").fit(X[train], y[train])
            expected = -log_loss(y[test], model.predict_proba(X[test]))
            # Fits are equal up to their gaps, and those are far smaller than what scores show.
            assert table[f"split{fold}_test_score"][i] == pytest.approx(expected, abs=1e-3)
    scores = np.array([table[f"split{fold}_test_score"] for fold in range(3)])
    assert np.allclose(table["mean_test_score"], scores.mean(axis=0))
    assert np.allclose(table["std_test_score"], scores.std(axis=0))
    assert (table["max_gap"] <= 1e-5).all()
    # At ε_max nothing is fitted: the constant model is scored.
    assert ((table["mean_n_iter"] == 0.0) == (table["rank_test_score"] >= 7)).all()
    for fold, (train, test) in enumerate(StratifiedKFold(3).split(X, y)):
        share = np.full(test.size, y[train].mean())
        assert table[f"split{fold}_test_score"][4] == pytest.approx(-log_loss(y[test], share))
    assert ((table["mean_fit_time"] > 0.0) == (table["mean_n_iter"] > 0.0)).all()


def test_search_takes_the_best_pair(cancer, search):
    table, best = search.cv_results_, search.best_index_
    assert table["mean_test_score"][best] == table["mean_test_score"].max() == search.best_score_
    assert table["params"][best] == {"epsilon": search.ball_.epsilon, "kappa": search.ball_.kappa}
    direct = DRLogisticRegression(search.ball_.epsilon, search.ball_.kappa, "l1").fit(*cancer)
    assert np.array_equal(search.coef_, direct.coef_)


def test_folds_without_a_class_are_named(iris):
    X, y = iris
    with pytest.raises(ValueError, match="class 2 has no sample in the training part of a fold"):
        stated.search(cv=[(np.flatnonzero(y < 2), np.flatnonzero(y == 2))]).fit(X, y)
    with pytest.raises(ValueError, match="class 0 has no sample in the training part of a fold"):
        stated.search(cv=KFold(2)).fit(X[:100], y[:100])  # which are sorted by label
    # A test part may lack a class.
    splits = [(np.arange(0, 150, 2), np.arange(1, 100, 2))]
    stated.search(epsilons=[0.01], kappas=[1.0], cv=splits).fit(X, y)


@pytest.mark.parametrize("scoring", ["accuracy", get_scorer("roc_auc"), lambda m, X, y: 7.0])
def test_any_scoring(cancer, scoring):
    X, y = cancer
    search = stated.search(epsilons=[0.1, 0.01], kappas=[1.0], cv=2, scoring=scoring)
    search.fit(X, y)
    expected = {"accuracy": (0.9, 1.0), "<lambda>": (7.0, 7.0)}
    low, high = expected.get(getattr(scoring, "__name__", scoring), (0.9, 1.0))
    assert low <= search.best_score_ <= high
