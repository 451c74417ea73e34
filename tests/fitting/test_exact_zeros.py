"""Exact zeros: what solvers only come close to."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from benchmarks import stated
from sklearn.linear_model import LogisticRegression

import drlogit
from drlogit.dual.certify import certify
from drlogit.fitting.exact_zeros import with_exact_zeros


@pytest.mark.parametrize("kappa", [1.0, np.inf])
def test_zero_beside_immovable_features(kappa):
    X, y = drlogit.datasets.make_synthetic(150, 3, 5)
    for labels in (y, X[:, 0] + 0.5 * X[:, 1] > -1.5):  # ψ(½) > E, and the contrary
        options = {"kappa": kappa, "feature_costs": [np.inf, 1.0, 2.0]}
        limit = stated.epsilon_max(X, labels, **options)
        fit = stated.solve(X, labels, epsilon=1.01 * limit, **options)
        assert not fit.coef[1:].any()
        assert fit.gap <= 1e-6
    if np.isinf(kappa):  # plain logistic regression on the immovable feature
        plain = LogisticRegression(C=np.inf, tol=1e-10).fit(X[:, :1], labels)
        assert fit.coef[0] == pytest.approx(plain.coef_[0, 0], rel=1e-4)


@pytest.mark.parametrize("kappa", [1.0, np.inf])
def test_zeros_are_exact_where_the_adversary_moves_by_linf(cancer, kappa):
    X, y = cancer
    options = {"kappa": kappa, "norm": "linf"}
    options["epsilon"] = 0.3 * stated.epsilon_max(X, y, **options)
    fit, fine = (stated.solve(X, y, tol=tol, **options) for tol in (1e-6, 1e-10))
    wanted = np.abs(fine.coef) <= 1e-7 * fine.lam
    assert (fit.coef == 0.0).sum() >= max(0.9 * wanted.sum(), 10)
    assert fit.objective - fine.dual_objective <= 1e-6


def test_what_is_no_optimum_stays(cancer):
    """A point far from any zero, and one that a gap of any size must not move to zero."""
    X, y = cancer
    problem = stated.problem(X, y, epsilon=0.01, kappa=1.0, norm="linf")
    fit = stated.solve(X, y, epsilon=0.01, kappa=1.0, norm="linf")
    model = problem.join(fit.coef + 0.01, fit.intercept)
    known = certify(problem, model)
    assert with_exact_zeros(problem, model, known, 1e-6) is None
    small = problem.join(np.where(np.arange(30) == 0, -1.0, 2e-4), 0.3)
    known = certify(problem, small)
    claimed = replace(known, dual=known.primal)
    assert with_exact_zeros(problem, small, claimed, 1e-6) is None
