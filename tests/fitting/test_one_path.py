"""One way to fit: data checked and posed once, the same model from Python and from a file.

X, y → rows → Problem → solve → certificate → fitted attributes → model file
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.preprocessing import StandardScaler

import drlogit
from drlogit import cli
from drlogit.problem import problem as problems
from drlogit.rows import checks
from drlogit.rows.blocks import Block


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X), y


@pytest.fixture
def passes(monkeypatch):
    """How often features are checked, labels looked through, and problems posed."""
    calls = Counter()

    def counted(name, function, counts=lambda *_: True):
        def wrapper(*arguments, **options):
            calls[name] += bool(counts(*arguments))
            return function(*arguments, **options)

        return wrapper

    def long(values, *_):
        return np.ndim(values) == 1 and np.size(values) >= 100

    def table(values, *_):
        return getattr(values, "ndim", 0) == 2 and values.shape[0] in (100, 150, 569)

    unique = counted("label passes", np.unique, long)
    monkeypatch.setattr(checks, "distinct", unique)
    monkeypatch.setattr(np, "unique", unique)
    for name, function, counter in (
        ("settled", checks.settled, counted("X checks", checks.settled, table)),
        ("pose_problem", problems.pose_problem, counted("problems", problems.pose_problem)),
    ):
        for module in [m for path, m in sys.modules.items() if path.startswith("drlogit")]:
            if getattr(module, name, None) is function:
                monkeypatch.setattr(module, name, counter)
    return calls


ONCE = {"X checks": 1, "label passes": 1, "problems": 1}


@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("epsilon", [0.1, 0.6, "auto"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_fit_looks_at_the_data_once(passes, make, epsilon, n_classes):
    X, y = load_iris(return_X_y=True)
    X, y = X[y < n_classes], y[y < n_classes]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # 0.6 makes a constant model
        drlogit.DRLogisticRegression(epsilon).fit(make(X), y + 100)
    assert passes == ONCE


def test_a_function_looks_at_the_data_once(passes, cancer):
    for function in (
        lambda: drlogit.solve(*cancer, epsilon=0.1, kappa=1.0),
        lambda: drlogit.suggest_radius(*cancer),
        lambda: drlogit.regularization_path(*cancer, n_epsilons=2),
    ):
        passes.clear()
        function()
        passes["label passes"] = min(passes["label passes"], 1)  # of two kinds, or of more?
        assert passes == ONCE


def test_a_search_checks_the_data_once(passes, cancer):
    splits = [(np.arange(300), np.arange(300, 569)), (np.arange(200, 569), np.arange(200))]
    drlogit.DRLogisticRegressionCV(epsilons=2, kappas=[1.0], cv=splits).fit(*cancer)
    assert passes == {"X checks": 1, "label passes": 1, "problems": 3}  # all, and each fold


@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix, drlogit.RowBlocks.from_array])
def test_columns_far_from_zero_stay_shifted_under_other_signs(make):
    X, y = load_iris(return_X_y=True)
    near = drlogit.DRLogisticRegression(0.05).fit(make(X), y)
    away = X + np.array([0.0, 1e7, 0.0, -1e6])
    far = drlogit.DRLogisticRegression(0.05).fit(make(away), y)
    np.testing.assert_allclose(far.decision_function(away), near.decision_function(X), atol=1e-2)
    np.testing.assert_allclose(far.worst_case_loss_, near.worst_case_loss_, atol=1e-6)
    assert (far.dual_gap_ <= 1e-6).all()


def test_wide_data_with_auto_keep_labels_with_their_samples():
    """Few samples are put in another order: the radius must not mix up their classes."""
    rng = np.random.default_rng(1)
    y = np.arange(30) % 3
    X = rng.standard_normal((30, 20)) + 10.0 * np.eye(20)[y]
    model = drlogit.DRLogisticRegression("auto", kappa=np.inf).fit(X, y)
    order = rng.permutation(30)
    again = drlogit.DRLogisticRegression("auto", kappa=np.inf).fit(X[order], y[order])
    assert model.epsilon_ == pytest.approx(again.epsilon_, rel=0.1)  # other draws


# --- watching -------------------------------------------------------------------------------


@pytest.fixture
def products(monkeypatch):
    calls = Counter()
    for name in ("margins", "adjoint"):
        method = getattr(Block, name)

        def wrapper(self, *arguments, _method=method, _name=name):
            calls[_name] += 1
            return _method(self, *arguments)

        monkeypatch.setattr(Block, name, wrapper)
    return calls


def test_watching_costs_nothing_unless_somebody_looks(products):
    X, y = drlogit.datasets.make_synthetic(2000, 20, random_state=0)

    def work(callback):
        products.clear()
        result = drlogit.solve(X, y, epsilon=0.05, kappa=1.0, callback=callback)
        return result, dict(products)

    alone, least = work(None)
    gaps = []
    for look in (lambda it: None, lambda it: it.n_iter + it.objective + it.lam < 0.0):
        watched, found = work(look)
        assert found == least
        np.testing.assert_array_equal(watched.coef, alone.coef)
    looked, _ = work(lambda it: gaps.append(it.gap))
    assert looked.info["visits"] > alone.info["visits"]
    # Looking changes nothing but what is seen, and what is seen is a bound.
    np.testing.assert_array_equal(looked.coef, alone.coef)
    assert looked.gap == pytest.approx(alone.gap, abs=1e-9)
    assert len(gaps) == len(looked.trace)
    np.testing.assert_allclose(looked.trace.column("gap"), gaps)
    assert (looked.trace.column("dual_objective") <= alone.objective + 1e-12).all()
    assert (looked.trace.column("dual_objective")[:5] > 0.0).any()  # not the trivial one
    assert (alone.trace.column("dual_objective") <= looked.trace.column("dual_objective")).all()


def test_a_run_that_is_stopped_has_a_bound():
    X, y = drlogit.datasets.make_synthetic(500, 10, random_state=0)
    stopped = drlogit.solve(X, y, epsilon=0.05, kappa=0.3, callback=lambda it: it.n_iter == 3)
    assert stopped.status.name == "STOPPED"
    assert 1e-6 < stopped.gap < 0.1


# --- the command line -----------------------------------------------------------------------


def columns(name):
    if name == "iris":
        X, y = load_iris(return_X_y=True)
        return X, load_iris().target_names[y]
    if name == "repeated":  # few samples, some of them twice: merged, and in another order
        X, y = columns("iris")
        X = np.repeat(X[::6], 2, axis=0) @ np.random.default_rng(0).standard_normal((4, 60))
        return X, np.repeat(y[::6], 2)
    X, y = load_breast_cancer(return_X_y=True)
    return X, load_breast_cancer().target_names[y]


@pytest.fixture
def both(tmp_path, capsys, monkeypatch):
    """A model and its warnings from the command line and from the estimator."""
    monkeypatch.chdir(tmp_path)

    def run(name, options, **parameters):
        X, y = columns(name)
        rows = [
            ",".join([*map(repr, row), str(label)])
            for row, label in zip(X.tolist(), y, strict=True)
        ]
        (tmp_path / "data.csv").write_text("\n".join(rows) + "\n")
        code = cli.main(["fit", "data.csv", *options.split(), "-o", "model.json"])
        said = [line for line in capsys.readouterr().err.splitlines() if "warning: " in line]
        said = [line for line in said if "vary more than" not in line]  # names other options
        ours = drlogit.load_model("model.json")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            warnings.simplefilter("ignore", drlogit.UnscaledDataWarning)
            theirs = drlogit.DRLogisticRegression(**parameters).fit(X, y)
        expected = [f"drlogit: warning: {' '.join(str(w.message).split())}" for w in caught]
        assert said == expected
        return code, ours, theirs, said

    return run


@pytest.mark.parametrize(
    ("name", "options", "parameters", "warning"),
    [
        ("cancer", "--epsilon 1 --kappa inf", {"epsilon": 1.0, "kappa": np.inf}, None),
        ("cancer", "--epsilon 9 --kappa 9", {"epsilon": 9.0, "kappa": 9.0}, "is constant"),
        ("iris", "--epsilon 0.05 --norm l2", {"epsilon": 0.05, "norm": "l2"}, None),
        ("iris", "--epsilon 0.6", {"epsilon": 0.6}, "is constant"),
        ("iris", "--epsilon auto --kappa 0.5", {"epsilon": "auto", "kappa": 0.5}, "labels may be"),
        ("iris", "--max-iter 2", {"max_iter": 2}, "stopped at max_iter before"),
        ("iris", "--balanced --no-intercept",
         {"class_weight": "balanced", "fit_intercept": False}, None),
        ("repeated", "--epsilon auto --kappa inf", {"epsilon": "auto", "kappa": np.inf}, None),
    ],
)  # fmt: skip
def test_the_command_line_fits_as_the_estimator_does(both, name, options, parameters, warning):
    code, ours, theirs, said = both(name, options, **parameters)
    for attribute in ("coef_", "intercept_", "lambda_", "worst_case_loss_", "dual_gap_", "n_iter_"):
        ours_here, theirs_here = getattr(ours, attribute), getattr(theirs, attribute)
        # Old versions of pandas read numbers from files up to a last bit.
        np.testing.assert_allclose(ours_here, theirs_here, rtol=1e-12, atol=1e-13)
    assert ours.epsilon_ == pytest.approx(theirs.epsilon_, rel=1e-12)
    assert ours.classes_.tolist() == theirs.classes_.tolist()
    converged = theirs.result_.converged
    assert code == (cli.DONE if converged else cli.NOT_CONVERGED)
    assert bool(said) == (warning is not None)
    if warning is not None:
        assert any(warning in line for line in said)
