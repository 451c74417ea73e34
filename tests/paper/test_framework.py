"""The framework: its rule, its certificate, its safeguards; and where the published rule ends."""

from __future__ import annotations

import math
import os
import warnings
from importlib import import_module
from itertools import islice

import numpy as np
import pytest
from benchmarks import stated
from benchmarks.paper import datasets

import drlogit
from drlogit import paper
from drlogit.datasets import make_synthetic
from drlogit.problem.result import Status

pytestmark = pytest.mark.slow

needs_data = pytest.mark.skipif(
    not os.environ.get("DRLOGIT_DATA"),
    reason="DRLOGIT_DATA is not set: it names a folder with the real data sets",
)


def samples(N=40, n=4):
    X, y = make_synthetic(N, n, random_state=3)[:2]
    return 2.0 * X, y


def test_golden_section_finds_the_minimum_of_any_convex_function():
    calls = []

    def q(lam):
        calls.append(lam)
        return abs(lam - 0.7) + 0.1 * lam

    lam, value = paper.golden_section(q, 2.0, tol=1e-8)
    assert lam == pytest.approx(0.7, abs=1e-7)
    assert value == q(lam)
    assert len(set(calls)) == len(calls) - 1, "one new value per step"
    once = len(calls)
    calls.clear()
    assert paper.golden_section(q, 2.0, tol=1e-8, reuse=False)[0] == pytest.approx(0.7, abs=1e-7)
    assert len(calls) > 1.9 * once
    assert calls[:2] == [0.382 * 2.0, 0.618 * 2.0]


# --- the rule and the callback --------------------------------------------------------------


def test_runs_end_at_the_first_residual_that_is_small_enough():
    X, y = samples()
    seen = []
    result = paper.framework(
        X,
        y,
        epsilon=0.05,
        kappa=1.0,
        residual_tol=1e-4,
        bracket_tol=1e-2,
        callback=lambda lam, iterate: seen.append((lam, iterate)),
    )
    assert {run.ended for run in result.runs} == {"residual"}
    assert result.n_iter == len(seen) == sum(run.n_iter for run in result.runs)
    for run in result.runs:
        part, seen = seen[: run.n_iter], seen[run.n_iter :]
        assert {lam for lam, _ in part} == {run.lam}
        its = [iterate for _, iterate in part]
        assert [it.k for it in its] == list(range(1, run.n_iter + 1))
        assert [it.residual <= 1e-4 for it in its] == [False] * (run.n_iter - 1) + [True]
        assert run.value == pytest.approx(0.05 * run.lam + its[-1].F, abs=1e-15)
        np.testing.assert_allclose([it.rho for it in its], 0.001 * 1.05 ** np.arange(run.n_iter))
    assert result.lam in [run.lam for run in result.runs]
    assert result.objective == pytest.approx(min(run.value for run in result.runs), abs=1e-4)


def test_a_callback_stops_the_run():
    X, y = samples()
    seen = []
    stopped = paper.framework(
        X, y, epsilon=0.05, kappa=1.0, callback=lambda lam, it: seen.append(it) or len(seen) == 37
    )
    assert stopped.status is Status.STOPPED
    assert stopped.n_iter == len(seen) == 37
    assert stopped.runs[-1].ended == "callback"
    limited = paper.framework(X, y, epsilon=0.05, kappa=1.0, max_iter=5, bracket_tol=0.1)
    assert {run.ended for run in limited.runs} == {"max_iter"}
    assert limited.status is Status.MAX_ITER


def test_penalty_is_capped_before_it_overflows():
    X, y = samples()
    result = paper.framework(
        X, y, epsilon=0.05, kappa=1.0, gamma=50.0, residual_tol=1e-300, bracket_tol=0.5, tol=10.0
    )
    assert {run.ended for run in result.runs} <= {"frozen", "residual"}
    steps = paper.lp_admm(y[:, None] * X, 0.3, 1.0, gamma=1e6)
    last = list(islice(steps, 300))[-1]
    assert last.rho <= 1e12 / 40 * (1.0 + 1e-12)
    assert np.isfinite(last.w).all()


def test_starts():
    X, y = samples()
    Z = y[:, None] * X
    given = np.full(4, 0.1), np.zeros(40), np.full(40, 0.01)
    copies = [part.copy() for part in given]
    for start in (0.0, 1.0, given):
        assert np.isfinite(next(paper.lp_admm(Z, 0.3, 1.0, start=start)).F)
    for part, copy in zip(given, copies, strict=True):
        np.testing.assert_array_equal(part, copy)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"start": (np.zeros(3), 0.0, 0.0)}, r"start must be .* lengths \(4, 40, 40\), got"),
        ({"start": math.nan}, "start must be a finite number"),
        ({"rho": 0.0}, "rho must be finite and > 0, got 0.0"),
        ({"rho": "balanced"}, "'scaled' or a function of k, got 'balanced'"),
        ({"gamma": 0.5}, "gamma must be finite and >= 1, got 0.5"),
        ({"inner_stop": -1.0}, "'exact', 'released' or a gap, .* got -1.0"),
        ({"inner_stop": "soon"}, "got 'soon'"),
        ({"inner": "cg"}, "must be one of 'projected-gradient', 'active-set-cg'.* got 'cg'"),
        ({"inner": "secular"}, "for this norm and 4 columns.* got 'secular'"),
        ({"inner": lambda H, c, ball, x: c[:2]}, "must return 4 finite numbers"),
        ({"residual_tol": 0.0}, "residual_tol must be finite and > 0"),
        ({"max_iter": 0}, "max_iter must be finite and >= 1, got 0"),
        ({"kappa": 0.0}, "kappa must be > 0, got 0.0"),
        ({"epsilon": 0.0}, "epsilon must be finite and > 0"),
        (
            {"norm": "l3"},
            "norm must be one of 'l1', 'l2', 'linf' or a paper.*, got 'l3'",
        ),
        ({"y": np.zeros(40)}, "y must be 40 labels of two classes"),
        ({"X": np.full((40, 4), np.nan)}, "X must be finite"),
    ],
)
def test_input_is_checked(option, message):
    X, y = samples()
    options = {"X": X, "y": y, "epsilon": 0.05, "kappa": 1.0} | option
    with pytest.raises(ValueError, match=message):
        paper.framework(options.pop("X"), options.pop("y"), **options)


# --- what the rule is worth -----------------------------------------------------------------


def test_the_rule_may_stop_away_from_the_optimum_and_says_so():
    X, y = make_synthetic(200, 10, random_state=12)[:2]
    with pytest.warns(paper.ResidualRuleWarning, match="above the certified lower bound") as caught:
        frozen = paper.framework(
            X, y, epsilon=0.05, kappa=1.0, rho=0.01, gamma=1.3, bracket_tol=1e-3
        )
    assert {run.ended for run in frozen.runs} == {"residual"}
    assert frozen.status is Status.UNPROVEN
    assert frozen.gap > 1e-4
    assert f"{frozen.gap:.2g}" in str(caught[0].message)
    # The gap is what the rule costs, not what a weak bound makes of it.
    exact = stated.solve(X, y, epsilon=0.05, kappa=1.0, norm="l1", fit_intercept=False, tol=1e-9)
    assert frozen.gap == pytest.approx(frozen.objective - exact.objective, abs=1e-6)
    verified = drlogit.verify(frozen, X, y)
    assert exact.objective - 1e-6 <= verified.lower <= exact.objective
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = paper.sound(y[:, None] * X, epsilon=0.05, kappa=1.0, tol=1e-6)
    assert found.converged
    assert found.objective == pytest.approx(exact.objective, abs=2e-6)


def test_the_scaled_penalty_ends_at_the_optimum_where_the_printed_one_freezes():
    """Each sample travels about 21/(Nρ₀): too little with ρ₀ = .001 and many samples."""
    X, y = make_synthetic(20_000, 4, random_state=1)[:2]
    X[:, 0] *= 0.1  # a coefficient that has far to go
    options = {"epsilon": 0.01, "kappa": 7.0, "bracket_tol": 1e-3, "inner": "coordinate-newton"}
    scaled = paper.framework(X, y, rho="scaled", tol=1e-4, **options)
    assert scaled.gap <= 1e-5
    with pytest.warns(paper.ResidualRuleWarning):
        printed = paper.framework(X, y, tol=1e-6, **options)
    assert printed.gap > 10.0 * scaled.gap


@needs_data
def test_a1a_ends_where_the_released_code_ends():
    # λ = 1.446 and 0.584570, 3e-5 above the optimum 0.584536.
    X, y = datasets.load("a1a")
    options = {"epsilon": 0.1, "kappa": 1.0, "inner": "coordinate-newton", "bracket_tol": 1e-3}
    options["inner_stop"] = "released"  # the exact rule takes a hundred times as long to get there
    with pytest.warns(paper.ResidualRuleWarning):
        result = paper.framework(X, y, **options)
    assert result.lam == pytest.approx(1.446, abs=3e-3)
    assert result.objective == pytest.approx(0.584570, abs=3e-6)
    assert result.gap == pytest.approx(3.4e-5, abs=3e-6)
    assert paper.framework(X, y, rho="scaled", tol=2e-6, **options).converged


# --- the sound variant ----------------------------------------------------------------------


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("kappa", [0.3, 1.0, math.inf])
@pytest.mark.parametrize("seed", range(2))
def test_sound_certifies(norm, kappa, seed):
    X, y = make_synthetic(120, 5, random_state=seed)[:2]
    for epsilon in (0.002, 0.05, 2.0):
        options = {"epsilon": epsilon, "kappa": kappa, "norm": norm}
        exact = stated.solve(X, y, fit_intercept=False, tol=1e-9, **options)
        found = paper.sound(y[:, None] * X, **options, tol=1e-6)
        assert found.converged
        assert found.gap <= 1e-6
        assert found.dual_objective <= exact.objective + 1e-12
        assert exact.dual_objective - 1e-12 <= found.objective <= exact.objective + 1e-6


def test_sound_without_the_matrix(monkeypatch):
    monkeypatch.setattr(import_module("drlogit.paper.box_qp"), "DENSE_LIMIT", 5)
    X, y = make_synthetic(50, 120, random_state=0)[:2]
    found = paper.sound(y[:, None] * X, epsilon=0.1, kappa=1.0, tol=1e-4)
    exact = stated.solve(X, y, epsilon=0.1, kappa=1.0, norm="l1", fit_intercept=False)
    assert found.gap <= 1e-4
    assert found.objective == pytest.approx(exact.objective, abs=1e-4)


def test_sound_stops_and_keeps_what_it_has():
    X, y = samples()
    Z, options = y[:, None] * X, {"epsilon": 0.05, "kappa": 0.5, "tol": 1e-12}
    limited = paper.sound(Z, max_iter=25, **options)
    assert (limited.status, limited.n_iter) == (Status.MAX_ITER, 25)
    assert limited.gap < 1.0
    seen = []
    stopped = paper.sound(Z, callback=lambda lam, it: seen.append(it) or len(seen) == 4, **options)
    assert (stopped.status, stopped.n_iter) == (Status.STOPPED, 4)


@needs_data
@pytest.mark.parametrize(("name", "objective"), [("a5a", 0.592549), ("mushrooms", 0.329466)])
def test_sound_on_real_data(name, objective):
    X, y = datasets.load(name)
    result = paper.sound(paper.subproblem.signed_rows(X, y), epsilon=0.1, kappa=1.0)
    assert result.converged
    assert result.objective == pytest.approx(objective, abs=2e-6)
