"""IPOPT, the paper's baseline, against the conic reference."""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from drlogit.fitting.solving import solve
from drlogit.problem.problem import build_problem
from drlogit.problem.result import Monitor, Status
from drlogit.solvers.external.conic import signed_rows
from drlogit.solvers.external.ipopt import _log_loss, ipopt

casadi = pytest.importorskip("casadi")
pytest.importorskip("cvxpy")


def sample(seed: int = 0, n_samples: int = 40, n_features: int = 4) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_samples, n_features)) * np.geomspace(0.5, 2.0, n_features)
    score = X @ rng.standard_normal(n_features) + 0.5 + rng.standard_normal(n_samples)
    return X, np.where(score > 0.0, 1, -1)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("costly", [False, True])
@pytest.mark.parametrize("kappa", [0.25, 1.0, math.inf])
@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_agrees_with_the_conic_solver(norm, kappa, costly, fit_intercept):
    X, y = sample()
    options: dict[str, Any] = {
        "epsilon": 0.02,
        "kappa": kappa,
        "norm": norm,
        "fit_intercept": fit_intercept,
        "sample_weight": np.random.default_rng(2).permutation(np.arange(40.0)),
    }
    if costly:
        options["feature_costs"] = [0.5, 2.0, math.inf, 1.0]
    result = solve(sp.csr_array(X), y, solver="ipopt", tol=1e-8, **options)
    reference = solve(X, y, solver="conic", tol=1e-8, **options)
    assert result.objective == pytest.approx(reference.objective, abs=1e-8)
    assert result.gap <= 1e-6
    assert result.lam == pytest.approx(reference.lam, abs=1e-3)


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("epsilon", [0.0, 5.0])
def test_plain_and_constant_models(norm, epsilon):
    X, y = sample()
    result = solve(X, y, epsilon=epsilon, kappa=1.0, norm=norm, solver="ipopt", tol=1e-8)
    reference = solve(X, y, epsilon=epsilon, kappa=1.0, norm=norm, solver="conic", tol=1e-8)
    assert result.objective == pytest.approx(reference.objective, abs=1e-8)


def test_multipliers_are_flip_shares():
    X, y = sample(n_samples=60)
    problem = build_problem(X, y, epsilon=0.05, kappa=0.5, fit_intercept=False)
    solution = ipopt(problem, tol=1e-8, monitor=Monitor())
    assert solution.flip_share is not None
    a = problem.rows.gather(solution.flip_share)
    Z, _ = signed_rows(problem)
    u = Z @ solution.coefficients
    kink = 0.5 * problem.best_lambda(solution.coefficients)
    assert a[u > kink + 1e-3] == pytest.approx(1.0, abs=1e-3)
    assert a[u < kink - 1e-3] == pytest.approx(0.0, abs=1e-3)
    assert 0.0 < a.sum() < a.size


def test_log_loss_and_its_derivatives_everywhere():
    u = casadi.MX.sym("u")
    h = _log_loss(casadi, u)
    slope = casadi.gradient(h, u)
    f = casadi.Function("f", [u], [h, slope, casadi.gradient(slope, u)])
    for value in (-1e4, -30.0, -1.0, 0.0, 1.0, 30.0, 1e4):
        s = 0.5 * (1.0 - math.tanh(0.5 * value))
        want = [np.logaddexp(0.0, -value), -s, s * (1.0 - s)]
        assert [float(part) for part in f(value)] == pytest.approx(want, rel=1e-9, abs=1e-12)


def test_nothing_is_printed_and_the_end_is_reported_once(capfd):
    X, y = sample()
    result = solve(X, y, epsilon=0.02, kappa=1.0, solver="ipopt")
    assert capfd.readouterr() == ("", "")
    assert result.status is Status.OPTIMAL
    assert len(result.trace) == 1


def test_out_of_iterations_returns_what_there_is():
    X, y = sample()
    result = solve(X, y, epsilon=0.02, kappa=1.0, solver="ipopt", max_iter=3)
    assert result.status is Status.MAX_ITER
    assert result.n_iter == 3
    assert math.isfinite(result.objective)


def test_a_start_is_used_and_left_alone():
    X, y = sample()
    first = solve(X, y, epsilon=0.02, kappa=1.0, solver="ipopt")
    before = first.coef.copy()
    again = solve(X, y, epsilon=0.02, kappa=1.0, solver="ipopt", start=first)
    assert again.objective == pytest.approx(first.objective, abs=1e-6)
    assert (first.coef == before).all()


def test_missing_package_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "casadi", None)
    X, y = sample()
    with pytest.raises(ImportError, match=r"pip install 'drlogit\[conic\]'"):
        solve(X, y, epsilon=0.02, kappa=1.0, solver="ipopt")
