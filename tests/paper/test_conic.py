"""The conic reference solver: against scikit-learn, against itself, and against the certificate."""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np
import pytest

from drlogit.dual.pair import parts
from drlogit.paper.conic import ROWS_PER_COPY, conic, signed_rows
from drlogit.paper.dispatch import solve, solve_subproblem
from drlogit.problem.problem import build_problem
from drlogit.problem.result import Monitor, Result, Status

pytestmark = pytest.mark.slow

pytest.importorskip("cvxpy")
pytest.importorskip("clarabel")

NORMS = ("l1", "l2", "linf")
KAPPAS = (0.25, 1.0, math.inf)
EPSILON = 0.02


def sample(seed: int = 0, n_samples: int = 40, n_features: int = 4) -> tuple[Any, Any]:
    """Overlapping classes of unequal size, columns of unequal scale."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_samples, n_features)) * np.geomspace(0.5, 2.0, n_features)
    score = X @ rng.standard_normal(n_features) + 0.5 + rng.standard_normal(n_samples)
    return X, np.where(score > 0.0, 1, -1)


def fit(X: Any, y: Any, **options: Any) -> Result:
    """Solve (P), or (B) if ``lam`` is among the options."""
    function = solve_subproblem if "lam" in options else solve
    return function(X, y, **({"solver": "conic", "tol": 1e-8, "epsilon": EPSILON} | options))


# --- every branch of (P) ----------------------------------------------------------------------


# Of the eight ways to price, weigh and shift, four, in which each two occur in all combinations;
# with each norm and κ two of them, so that each norm meets all four, and so does each κ.
WAYS = [(False, False, False), (True, True, False), (True, False, True), (False, True, True)]


@pytest.mark.parametrize(
    ("norm", "kappa", "costly", "weighted", "fit_intercept"),
    [
        (norm, kappa, *WAYS[(i + j + k) % 4])
        for i, norm in enumerate(NORMS)
        for j, kappa in enumerate(KAPPAS)
        for k in (0, 2)
    ],
)
def test_every_branch_is_certified(norm, kappa, costly, weighted, fit_intercept):
    X, y = sample()
    options: dict[str, Any] = {"kappa": kappa, "norm": norm, "fit_intercept": fit_intercept}
    if costly:
        options["feature_costs"] = [0.5, 2.0, math.inf, 1.0]
    if weighted:
        options["sample_weight"] = np.random.default_rng(2).permutation(np.arange(40.0))

    joint = fit(X, y, **options)
    ours = solve(X, y, epsilon=EPSILON, tol=1e-8, **options)
    assert joint.gap <= 1e-7
    assert joint.objective == pytest.approx(ours.objective, abs=1e-7)

    # Fixed λ: at the optimum it gives the same value, below it a worse one.
    at_optimum = fit(X, y, lam=joint.lam, **options)
    assert at_optimum.gap <= 1e-7
    assert at_optimum.objective == pytest.approx(joint.objective, abs=1e-7)
    below = fit(X, y, lam=0.5 * joint.lam, **options)
    assert below.gap <= 1e-7
    assert below.objective > joint.objective + 1e-5


def test_many_dense_rows_see_copies_of_the_coefficients():
    X, y = sample(n_samples=ROWS_PER_COPY + 20)
    assert fit(X, y, kappa=1.0).gap <= 1e-7


@pytest.mark.parametrize("lam", [None, 1.0])
def test_multipliers_are_flip_shares(lam):
    # Straight from the solver, before the certificate touches them: 0 below the kink κλ, 1
    # above, and the budget κ Σ w a + ‖Σ w (s - a) z‖ spent in full.
    X, y = sample(n_samples=60)
    weights = np.random.default_rng(3).uniform(0.5, 1.5, 60)
    problem = build_problem(
        X, y, epsilon=0.05, kappa=0.5, sample_weight=weights, fit_intercept=False
    )
    solution = conic(problem, lam=lam, tol=1e-8, monitor=Monitor())
    a = problem.rows.gather(parts(problem, solution.point)[1])
    level = problem.best_lambda(solution.coefficients) if lam is None else lam
    Z, w = signed_rows(problem)
    u = Z @ solution.coefficients
    above, below = u > 0.5 * level + 1e-4, u < 0.5 * level - 1e-4
    assert above.any()
    assert below.any()
    assert a[above] == pytest.approx(1.0, abs=1e-4)
    assert a[below] == pytest.approx(0.0, abs=1e-4)
    assert not (above | below).all()  # some samples sit on the kink
    gradient = Z.T @ (w * (1.0 / (1.0 + np.exp(u)) - a))
    if lam is None:
        assert 0.5 * w @ a + np.abs(gradient).sum() == pytest.approx(0.05, abs=1e-5)
    # Stationarity: what is left of the gradient pulls only coefficients that are at ±λ.
    inner = np.abs(solution.coefficients) < level - 1e-4
    assert gradient[inner] == pytest.approx(0.0, abs=1e-5)


# --- how it ends ----------------------------------------------------------------------------


def test_out_of_iterations_returns_what_there_is(capfd):
    X, y = sample()
    result = fit(X, y, kappa=1.0, max_iter=4)
    assert capfd.readouterr() == ("", "")
    assert len(result.trace) == 1
    assert result.status is Status.MAX_ITER
    assert result.n_iter == 4
    assert 1e-8 < result.gap < math.log(2.0)


def test_missing_package_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "cvxpy", None)
    X, y = sample()
    with pytest.raises(ImportError, match=r"pip install 'drlogit\[conic\]'"):
        fit(X, y, kappa=1.0)
