"""Time limits and interrupts: the best point so far, honestly certified."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from benchmarks import stated
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV

import drlogit
import zoo
from drlogit import DRLogisticRegression
from drlogit.fitting import paths, solving
from drlogit.fitting.solving import solve_problem
from drlogit.problem import stopping
from drlogit.problem.result import Status

BALL = {"epsilon": 0.05, "kappa": 1.0}


class Clock:
    """A time of our own: a second passes with every iteration that is reported."""

    def __init__(self):
        self.now = 0.0

    def tick(self, _=None):
        self.now += 1.0

    def time(self):
        return self.now

    monotonic = time


@pytest.fixture
def clock(monkeypatch):
    found = Clock()
    monkeypatch.setattr(stopping, "time", found)
    return found


@pytest.fixture(autouse=True)
def no_interrupt_before(monkeypatch):
    monkeypatch.setattr(stopping.Stop, "_last", -math.inf)


def interrupting(at, times=1):
    """A callback that is met by Ctrl-C in iteration ``at``."""

    def watch(iterate):
        if iterate.n_iter == at:
            for _ in range(times):
                signal.raise_signal(signal.SIGINT)

    return watch


def numbers(n_samples=300, n_features=6, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_samples, n_features))
    noise = rng.gumbel(size=(n_samples, n_classes))
    return X, (X[:, :n_classes] + noise).argmax(axis=1)


def grouped():
    rng = np.random.default_rng(3)
    levels = rng.integers(3, size=200)
    X = np.column_stack([np.eye(3)[levels], rng.standard_normal(200)])
    return X, (levels + X[:, 3] + rng.logistic(size=200) > 1.0).astype(int)


PROBLEMS = {
    "two classes": (numbers(), {}),
    "labels beyond doubt": (numbers(), {"kappa": math.inf}),
    "several classes": (numbers(n_classes=4), {}),
    "categories": (grouped(), {"categories": [[0, 1, 2]]}),
    "wide": (numbers(60, 700), {}),
}


def assert_honest(samples, options, result):
    """The optimum, found without a limit, is between the bound and the objective."""
    best = stated.solve(*samples, **{**BALL, **options}, tol=1e-9)
    assert result.objective >= best.dual_objective
    assert result.dual_objective <= best.objective
    assert result.gap == pytest.approx(result.objective - result.dual_objective)
    assert result.gap > 1e-6
    worst = zoo.worst_loss(result, *samples, **{**BALL, **options})
    assert worst == pytest.approx(result.objective, abs=1e-9)
    if result.dual is not None:  # early points of several classes and tables have only 0
        assert drlogit.verify(result, *samples).ok


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_time_limit_returns_a_certified_point(name, clock):
    samples, options = PROBLEMS[name]
    result = stated.solve(*samples, **{**BALL, **options}, max_time=2.0, callback=clock.tick)
    assert result.status is Status.MAX_TIME
    assert "max_time" in str(result.status)
    assert not result.converged
    assert len(result.trace) == 2
    assert_honest(samples, options, result)


@pytest.mark.parametrize("name", PROBLEMS)
def test_an_interrupt_returns_a_certified_point(name, capsys):
    samples, options = PROBLEMS[name]
    reported = stated.solve(*samples, **{**BALL, **options}).trace
    at = reported.iterates[1].n_iter
    result = stated.solve(*samples, **{**BALL, **options}, callback=interrupting(at))
    assert result.status is Status.INTERRUPTED
    assert result.trace.iterates[-1].n_iter == at
    assert "Interrupt again to abort" in capsys.readouterr().err
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert_honest(samples, options, result)


def test_what_is_proven_within_the_limit_is_optimal(clock):
    samples, _ = PROBLEMS["two classes"]
    result = stated.solve(*samples, **BALL, max_time=1e3, callback=clock.tick)
    assert result.status is Status.OPTIMAL
    last = result.trace.iterates[-1].n_iter
    assert stated.solve(*samples, **BALL, callback=interrupting(last)).status is Status.OPTIMAL


@pytest.mark.parametrize("norm", ["l1", "linf"])
def test_the_bound_of_a_run_that_ends_early_is_as_good_as_its_model(norm):
    """The last dual point misses its equations by little, which can cost all of the bound."""
    rng = np.random.default_rng(4)
    X = rng.standard_normal((6000, 10))
    score = X @ rng.standard_normal(10)
    y = 1.5 * score / score.std() + rng.logistic(size=6000) > 0.0
    options = {"epsilon": 0.01, "kappa": 1.0, "norm": norm}
    best = stated.solve(X, y, tol=1e-9, **options).dual_objective
    for k in range(5, 11):
        found = stated.solve(X, y, tol=1e-8, solver="interior-point", max_iter=k, **options)
        assert found.gap <= 100.0 * (found.objective - best) + 1e-6


def test_many_samples_heed_the_limit_from_the_first_sample_of_them_on():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120_000, 8))
    y = X[:, 0] + rng.logistic(size=len(X)) > 0.0
    result = stated.solve(X, y, **BALL, max_time=1e-6)
    assert result.status in (Status.MAX_TIME, Status.OPTIMAL)
    assert result.dual_objective <= stated.solve(X, y, **BALL).objective


def test_a_second_interrupt_aborts_at_once():
    samples, _ = PROBLEMS["two classes"]
    with pytest.raises(KeyboardInterrupt):
        stated.solve(*samples, **BALL, callback=interrupting(2, times=2))
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_second_interrupt_aborts_a_loop_of_fits(clock):
    samples, _ = PROBLEMS["two classes"]
    assert not stated.solve(*samples, **BALL, callback=interrupting(2)).converged
    with pytest.raises(KeyboardInterrupt):
        stated.solve(*samples, **BALL, callback=interrupting(2))
    clock.now += 10.0
    assert not stated.solve(*samples, **BALL, callback=interrupting(2)).converged


def test_handlers_of_others_stay():
    """As those of a service, which shuts down in its own way."""
    samples, _ = PROBLEMS["two classes"]
    heard = []
    before = signal.signal(signal.SIGINT, lambda *_: heard.append(1))
    try:
        assert stated.solve(*samples, **BALL, callback=interrupting(2)).converged
        assert heard == [1]
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_callback_may_raise_the_interrupt_itself():
    def watch(iterate):
        if iterate.n_iter == 2:
            raise KeyboardInterrupt

    samples, _ = PROBLEMS["two classes"]
    assert stated.solve(*samples, **BALL, callback=watch).status is Status.INTERRUPTED


# --- estimators -----------------------------------------------------------------------------


def test_a_fit_that_runs_out_of_time_is_fitted_and_warns(clock):
    X, y = numbers()
    model = stated.classifier(**BALL, max_time=2.0)
    model.on_iteration = clock.tick
    with pytest.warns(ConvergenceWarning, match=r"stopped at max_time.* Raise max_time") as caught:
        model.fit(X, y)
    assert caught[0].filename == __file__
    assert model.dual_gap_ > 1e-6
    assert model.predict(X).shape == y.shape


def test_an_interrupted_fit_is_fitted_and_the_interrupt_goes_on():
    X, y = numbers()
    model = stated.classifier(**BALL)
    model.on_iteration = interrupting(2)
    with (
        pytest.warns(ConvergenceWarning, match="was interrupted"),
        pytest.raises(KeyboardInterrupt, match=r"keeps the best certified model so far.* nats"),
    ):
        model.fit(X, y)
    assert model.worst_case_loss_ < math.log(2.0)
    assert model.predict(X).shape == y.shape


def test_an_interrupt_ends_the_searches_of_others(monkeypatch):
    """scikit-learn's searches go on after a fit that returns."""
    X, y = numbers()
    seen = []

    def watch(iterate):
        seen.append(iterate.n_iter)
        if len(seen) == 2:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(DRLogisticRegression, "on_iteration", staticmethod(watch))
    search = GridSearchCV(stated.classifier(kappa=1.0), {"epsilon": [0.1, 0.05]}, cv=2)
    with pytest.warns(ConvergenceWarning), pytest.raises(KeyboardInterrupt):
        search.fit(X, y)
    assert len(seen) == 2


@pytest.fixture
def scoring(clock):
    """Scores that take a second each."""

    def scored(model, X, y):
        clock.tick()
        return 0.0

    return scored


def test_a_search_that_runs_out_of_time_chooses_by_the_folds_that_are_complete(scoring):
    X, y = numbers()

    # The folds have four fifths of eight seconds, which is enough for two of them.
    search = stated.search([0.1, 0.05, 0.03], [1.0], cv=4, scoring=scoring, max_time=8.0)
    with pytest.warns(ConvergenceWarning, match="by 2 of 4 folds"):
        search.fit(X, y)
    assert search.n_splits_ == 2
    assert "split1_test_score" in search.cv_results_
    assert "split2_test_score" not in search.cv_results_
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.dual_gap_ <= 1e-6


def test_a_search_without_time_for_a_fold_says_so(scoring):
    X, y = numbers()
    with pytest.raises(TimeoutError, match="before any fold was done"):
        stated.search([0.3, 0.1, 0.03], [1.0], cv=4, scoring=scoring, max_time=2.5).fit(X, y)


def test_a_path_ends_where_the_time_does(clock, monkeypatch):
    X, y = numbers()

    def slow(*arguments, **options):
        result = solve_problem(*arguments, **options)
        clock.now += 1.0
        return result

    monkeypatch.setattr(paths, "solve_problem", slow)
    with pytest.warns(ConvergenceWarning, match="3 of 5 radii within max_time=3 seconds"):
        path = stated.regularization_path(X, y, n_epsilons=5, max_time=3.0)
    assert path.epsilons.size == len(path.coefs) == len(path.gaps) == 3
    whole = stated.regularization_path(X, y, n_epsilons=5)
    assert (path.epsilons == whole.epsilons[:3]).all()


@pytest.mark.parametrize("wrong", [0, -1.0, math.nan, "1", True])
def test_what_is_no_time(wrong):
    X, y = numbers(40)
    for fit in (
        lambda: stated.solve(X, y, **BALL, max_time=wrong),
        lambda: stated.regularization_path(X, y, max_time=wrong),
        lambda: stated.classifier(max_time=wrong).fit(X, y),
        lambda: stated.search(max_time=wrong).fit(X, y),
    ):
        with pytest.raises(ValueError, match=r"max_time must be a number of seconds > 0 or None"):
            fit()


# --- what is said before a long fit ----------------------------------------------------------


def test_a_long_fit_says_its_size(monkeypatch, capsys):
    monkeypatch.setattr(solving, "_LONG", 2000)
    X, y = numbers(200, 5, 3)
    stated.solve(X, y, **BALL, verbose=1)
    assert capsys.readouterr().out.splitlines()[0] == "200 samples, 6 columns, 3 classes"
    stated.solve(X, y, **BALL)
    assert capsys.readouterr().out == ""
    monkeypatch.setattr(solving, "_LONG", 3000)
    stated.solve(X, y, **BALL, verbose=1)
    assert "samples" not in capsys.readouterr().out.splitlines()[0]


# --- the command line ------------------------------------------------------------------------


#: Interrupts itself in the third iteration.
SCRIPT = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a parent may ignore it

from drlogit.problem import result
report = result.Monitor.report
def interrupted(self, n_iter, *rest, **more):
    if n_iter == 2 and self._callback is not None:
        signal.raise_signal(signal.SIGINT)
    return report(self, n_iter, *rest, **more)
result.Monitor.report = interrupted
from drlogit.cli import main
sys.exit(main(sys.argv[1:]))
"""


def test_an_interrupted_command_writes_the_model_it_has(tmp_path):
    X, y = numbers(500, 12, 6)
    pd.DataFrame(X).add_prefix("x").assign(y=y).to_csv(tmp_path / "data.csv", index=False)
    words = "fit data.csv --target y --epsilon 0.02 -o model.json --proof proof.npz".split()
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT, *words], cwd=tmp_path, capture_output=True, text=True,
        check=False, env={**os.environ},
    )  # fmt: skip
    assert run.returncode == 130, run.stderr
    assert "Traceback" not in run.stderr
    assert "was interrupted" in run.stderr
    assert (tmp_path / "model.json").exists()
    assert not (tmp_path / "proof.npz").exists()
