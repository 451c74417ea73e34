"""One way to fit: the same model from Python and from a file, watched or not."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris

import drlogit
from drlogit import cli

# --- watching -------------------------------------------------------------------------------


def test_watching_costs_nothing_unless_somebody_looks():
    X, y = drlogit.datasets.make_synthetic(2000, 20, random_state=0)

    def work(callback):
        return drlogit.solve(X, y, epsilon=0.05, kappa=1.0, callback=callback)

    alone = work(None)
    gaps = []
    for look in (lambda it: None, lambda it: it.n_iter + it.objective + it.lam < 0.0):
        watched = work(look)
        assert watched.info["visits"] == alone.info["visits"]
        np.testing.assert_array_equal(watched.coef, alone.coef)
    looked = work(lambda it: gaps.append(it.gap))
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
    stopped = drlogit.solve(X, y, epsilon=0.01, kappa=1.0, callback=lambda it: it.n_iter == 3)
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
        np.testing.assert_allclose(ours_here, theirs_here, rtol=1e-12, atol=1e-12)
    assert ours.epsilon_ == pytest.approx(theirs.epsilon_, rel=1e-12)
    assert ours.classes_.tolist() == theirs.classes_.tolist()
    converged = theirs.result_.converged
    assert code == (cli.DONE if converged else cli.NOT_CONVERGED)
    assert bool(said) == (warning is not None)
    if warning is not None:
        assert any(warning in line for line in said)
