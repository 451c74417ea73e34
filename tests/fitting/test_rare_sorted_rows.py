"""Sorted labels, 2 % positives, and a level that no row has, all in one fit.

The references share no code with the package.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import drlogit
from drlogit.estimators.robust_classifier import result_of

N, EPSILON, KAPPA, COST = 200, 0.004, 0.7, 0.5


def rows(n_levels=4):
    """Negatives first, then 2 % positives; three levels occur."""
    rng = np.random.default_rng(7)
    y = np.repeat([0, 1], [N - N // 50, N // 50])
    numbers = rng.standard_normal((N, 2)) + y[:, None] * [1.5, 0.0]
    return np.column_stack([numbers, np.eye(n_levels)[rng.integers(0, 3, N)]]), y


def fitted(kind, X, y):
    """Two numbers without bounds, then the levels a to d.

    As no row has d, a column of the array stands for it, but none of the table.
    """
    if kind == "array":
        columns = {"feature_costs": [1.0, 1.0] + 4 * [COST], "categories": [[2, 3, 4, 5]]}
        fit = drlogit.solve(X, y, drlogit.Ball(EPSILON, KAPPA, **columns))
        return fit, fit, X
    levels = pd.Categorical.from_codes(X[:, 2:].argmax(axis=1), list("abcd"))
    frame = pd.DataFrame({"dose": X[:, 0], "time": X[:, 1], "job": levels})
    costs = {"dose": 1.0, "time": 1.0, "job": COST}
    model = drlogit.DRLogisticRegression(ball=drlogit.Ball(EPSILON, KAPPA, feature_costs=costs))
    with pytest.warns(UserWarning, match="almost never predicted"):
        model.fit(frame, y)
    return model, result_of(model), frame


def places(X, y):
    """Every level and label: the rows with it, their labels as signs, and the costs."""
    for level in np.eye(X.shape[1] - 2):
        for flip in (1.0, -1.0):
            moved = np.column_stack([X[:, :2], np.tile(level, (N, 1))])
            paid = COST * (moved != X).any(axis=1) + KAPPA * (flip < 0.0)
            yield moved, flip * (2.0 * y - 1.0), paid


@pytest.mark.parametrize(("kind", "n_levels"), [("array", 4), ("table", 3)])
def test_both_bounds_enclose_the_optimum_of_a_conic_solver(kind, n_levels, tmp_path):
    cp = pytest.importorskip("cvxpy")
    X, y = rows(n_levels)
    beta, b, lam, worst = cp.Variable(X.shape[1]), cp.Variable(), cp.Variable(), cp.Variable(N)
    rules = [cp.norm(beta[:2], 2) <= lam]
    for moved, label, paid in places(X, y):
        rules.append(cp.logistic(-cp.multiply(label, moved @ beta + b)) - lam * paid <= worst)
    problem = cp.Problem(cp.Minimize(EPSILON * lam + cp.sum(worst) / N), rules)
    optimum = problem.solve(solver="CLARABEL", tol_gap_abs=1e-7, tol_gap_rel=1e-7, tol_feas=1e-7)
    owner, result, data = fitted(kind, rows()[0], y)
    path = tmp_path / "proof.npz"
    owner.save_proof(path, *(() if kind == "array" else (data, y)))
    proof = drlogit.verify(owner, data, y, path)
    assert result.objective == pytest.approx(optimum, abs=2e-6)
    assert max(result.dual_objective, proof.lower) <= optimum + 1e-6
    assert proof.upper >= optimum - 1e-6
    assert proof.upper - proof.lower <= 2e-6
    assert proof.reason.startswith("no linear model can promise less than")
