"""The regularisation path: certified at every radius, and the same as separate fits."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from benchmarks import stated
from sklearn.exceptions import ConvergenceWarning

import drlogit
from drlogit.engine import plan


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("kappa", [0.5, math.inf])
def test_path_is_certified_and_monotone(cancer, norm, kappa):
    path = stated.regularization_path(*cancer, n_epsilons=8, kappa=kappa, norm=norm)
    assert path.epsilons.size == 8
    assert path.epsilons[0] == pytest.approx(path.epsilon_max)
    assert path.epsilons[-1] == pytest.approx(1e-3 * path.epsilon_max)
    assert (np.diff(path.epsilons) < 0.0).all()
    assert (path.gaps <= 1e-6).all()
    # A smaller ball has a smaller worst case; the value is concave in the radius.
    assert (np.diff(path.objectives) < 1e-6).all()
    assert (np.diff(path.lambdas) > -0.05 * path.lambdas.max()).all()
    assert np.abs(path.coefs[0]).sum() < 0.01 * np.abs(path.coefs[-1]).sum()


def test_path_is_what_solve_gives(cancer):
    X, y = cancer
    weights = np.random.default_rng(0).uniform(size=y.size)
    options = {
        "kappa": 0.7, "norm": "l2", "fit_intercept": False, "sample_weight": weights,
        "feature_costs": np.linspace(0.5, 2.0, 30), "tol": 1e-9,
    }  # fmt: skip
    path = stated.regularization_path(X, y, [0.01, 0.1, 0.01, 0.03], **options)
    assert path.epsilons.tolist() == [0.1, 0.03, 0.01]
    for i, epsilon in enumerate(path.epsilons):
        result = stated.solve(X, y, epsilon=epsilon, **options)
        assert path.objectives[i] == pytest.approx(result.objective, abs=1e-8)
        assert np.allclose(path.coefs[i], result.coef, atol=1e-3)
        assert path.lambdas[i] == pytest.approx(result.lam, rel=1e-3)
    assert (path.intercepts == 0.0).all()


def test_convergence_warning(cancer):
    message = r"\d of 5 fits .* gap is [\d.e+-]+ nats, tol is 1\.00e-06 nats"
    with pytest.warns(ConvergenceWarning, match=message) as caught:
        path = stated.regularization_path(*cancer, n_epsilons=5, max_iter=2)
    assert f"{path.gaps.max():.2e} nats" in str(caught[0].message)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_epsilons": 2.5}, "n_epsilons .* got 2.5"),
        ({"min_fraction": 0.0}, "min_fraction .* got 0.0"),
        ({"epsilons": [0.1, math.nan]}, "epsilon .* got .*nan"),
        ({"epsilons": []}, "epsilons .* at least one"),
    ],
)
def test_bad_input_is_named(cancer, options, message):
    with pytest.raises(ValueError, match=message):
        stated.regularization_path(*cancer, **options)


@pytest.mark.parametrize("status", ["MAX_ITER", "STALLED"])
def test_a_start_that_leads_nowhere_is_given_up(cancer, monkeypatch, status):
    interior_point = plan.interior_point
    starts = []

    def stuck(problem, *, start=None, max_iter=200, **controls):
        starts.append(start)
        if start is None:
            return interior_point(problem, max_iter=max_iter, **controls)
        found = interior_point(problem, start=start, max_iter=1, **controls)
        return replace(found, coefficients=1.5 * found.coefficients, status=drlogit.Status[status])

    monkeypatch.setattr(plan, "interior_point", stuck)
    path = stated.regularization_path(*cancer, n_epsilons=4, min_fraction=0.5, kappa=1.0)
    assert (path.gaps <= 1e-6).all()
    assert starts[-2] is not None
    assert starts[-1] is None
    # A limit that was given is not spent twice.
    start = stated.solve(*cancer, epsilon=0.02, kappa=1.0)
    starts.clear()
    short = stated.solve(*cancer, epsilon=0.01, kappa=1.0, start=start, max_iter=1)
    assert short.status is drlogit.Status[status]
    assert len(starts) == 1
