"""Sorted labels, 2 % positives, and a level that no row has, all in one fit.

The references share no code with the package.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize_scalar

import drlogit
from drlogit.estimators.robust_classifier import result_of

N, EPSILON, KAPPA, COST, THRESHOLD = 200, 0.004, 0.7, 0.5, 0.03


def rows(n_levels=4):
    """Negatives first, then 2 % positives; three levels occur."""
    rng = np.random.default_rng(7)
    y = np.repeat([0, 1], [N - N // 50, N // 50])
    numbers = rng.standard_normal((N, 2)) + y[:, None] * [1.5, 0.0]
    return np.column_stack([numbers, np.eye(n_levels)[rng.integers(0, 3, N)]]), y


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """Two numbers without bounds, then the levels a to d.

    As no row has d, a column of the array stands for it, but none of the table.
    """
    X, y = rows()
    costs = {"dose": 1.0, "time": 1.0, "job": COST}
    levels = pd.Categorical.from_codes(X[:, 2:].argmax(axis=1), list("abcd"))
    frame = pd.DataFrame({"dose": X[:, 0], "time": X[:, 1], "job": levels})
    columns = {"feature_costs": [1.0, 1.0] + 4 * [COST], "categories": [[2, 3, 4, 5]]}
    fit = drlogit.solve(X, y, drlogit.Ball(EPSILON, KAPPA, **columns))
    model = drlogit.DRLogisticRegression(ball=drlogit.Ball(EPSILON, KAPPA, feature_costs=costs))
    with pytest.warns(UserWarning, match="almost never predicted"):
        model.fit(frame, y)
    folder, found = tmp_path_factory.mktemp("rare"), {"coef": model.coef_[0]}
    fit.save_proof(folder / "array.npz")
    model.save_proof(folder / "table.npz", frame, y)
    for name, owner, result, data in (
        ("array", fit, fit, X),
        ("table", model, result_of(model), frame),
    ):
        proof = drlogit.verify(owner, data, y, folder / f"{name}.npz")
        ends = proof.lower, proof.upper, proof.reason
        found[name] = result.objective, result.dual_objective, *ends
    for metric in "error", "log_loss":
        found[metric] = drlogit.worst_case(model, frame, y, metric, threshold=THRESHOLD).value
    return found | {"intercept": float(model.intercept_[0])}


def places(X, y):
    """Every level and label: the rows with it, their labels as signs, and the costs."""
    for level in np.eye(X.shape[1] - 2):
        for flip in (1.0, -1.0):
            moved = np.column_stack([X[:, :2], np.tile(level, (N, 1))])
            paid = COST * (moved != X).any(axis=1) + KAPPA * (flip < 0.0)
            yield moved, flip * (2.0 * y - 1.0), paid


@pytest.mark.parametrize(("kind", "n_levels"), [("array", 4), ("table", 3)])
def test_both_bounds_enclose_the_optimum_of_a_conic_solver(found, kind, n_levels):
    cp = pytest.importorskip("cvxpy")
    X, y = rows(n_levels)
    beta, b, lam, worst = cp.Variable(X.shape[1]), cp.Variable(), cp.Variable(), cp.Variable(N)
    rules = [cp.norm(beta[:2], 2) <= lam]
    for moved, label, paid in places(X, y):
        rules.append(cp.logistic(-cp.multiply(label, moved @ beta + b)) - lam * paid <= worst)
    problem = cp.Problem(cp.Minimize(EPSILON * lam + cp.sum(worst) / N), rules)
    optimum = problem.solve(solver="CLARABEL", tol_gap_abs=1e-7, tol_gap_rel=1e-7, tol_feas=1e-7)
    objective, dual, lower, upper, reason = found[kind]
    assert objective == pytest.approx(optimum, abs=2e-6)
    assert max(dual, lower) <= optimum + 1e-6
    assert upper >= optimum - 1e-6
    assert upper - lower <= 2e-6
    assert reason.startswith("no linear model can promise less than")


def worst_error(found):
    """The share of rows that ε pays to put on the wrong side of the threshold, cheapest first."""
    X, y = rows(3)
    coef, edge = np.array(found["coef"]), np.log(THRESHOLD / (1.0 - THRESHOLD))
    costs = []
    for moved, label, paid in places(X, y):
        margin = label * (moved @ coef + found["intercept"] - edge)
        costs.append(paid + np.maximum(margin, 0.0) / np.linalg.norm(coef[:2]))
    costs = np.sort(np.min(costs, axis=0))
    spent = np.append(0.0, np.cumsum(costs))
    return np.interp(EPSILON * N, spent, np.arange(N + 1)) / N


def worst_loss(found):
    """By the dual over λ."""
    X, y = rows(3)
    coef = np.array(found["coef"])

    def dual(lam):
        losses = [
            np.logaddexp(0.0, -label * (moved @ coef + found["intercept"])) - lam * paid
            for moved, label, paid in places(X, y)
        ]
        return EPSILON * lam + np.max(losses, axis=0).mean()

    least = float(np.linalg.norm(coef[:2]))
    best = minimize_scalar(dual, bounds=(least, least + 20.0), method="bounded")
    return min(best.fun, dual(least))


def test_the_audit_is_that_of_every_move(found):
    assert 0.02 < worst_error(found) < 1.0
    assert found["error"] == pytest.approx(worst_error(found), abs=1e-9)
    assert found["log_loss"] == pytest.approx(worst_loss(found), abs=1e-7)
