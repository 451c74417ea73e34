"""Audits with a κ for each sample: against linear programs of the adversary, and the fit's own."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

import drlogit
import zoo


def samples(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray, float]:
    """X, labels, weights, flip costs, coefficients and radius."""
    rng = np.random.default_rng(seed)
    X, y = zoo.logistic_data(40, 3, seed=seed)
    kappa = rng.choice([0.0, 0.2, 1.0, 3.0, np.inf], size=40)
    w = rng.uniform(0.1, 2.0, 40)
    return X, y, w / w.sum(), kappa, rng.standard_normal(3), float(rng.uniform(0.01, 0.5))


def most(gain: np.ndarray, cost: np.ndarray, shares: np.ndarray, epsilon: float) -> float:
    """The best of what a budget pays for; ``shares`` sums items of one sample, at most one."""
    possible = np.isfinite(cost)
    found = linprog(
        -gain[possible],
        A_ub=np.vstack([cost[possible], shares[:, possible]]),
        b_ub=np.append(epsilon, np.ones(shares.shape[0])),
    )
    return -float(found.fun)


@pytest.mark.parametrize("norm", zoo.NORM_NAMES)
@pytest.mark.parametrize("seed", range(3))
def test_worst_cases_are_those_of_linear_programs(norm, seed):
    X, y, w, kappa, coef, epsilon = samples(seed)
    u, eye = y * (X @ coef + 0.1), np.eye(40)
    slope = {"l1": np.abs(coef).max(), "l2": np.linalg.norm(coef), "linf": np.abs(coef).sum()}[norm]
    options = {"epsilon": epsilon, "kappa": kappa, "norm": norm, "sample_weight": w}
    # Flips at their own costs; moves without end at the slope.
    loss = w @ np.logaddexp(0.0, -u) + most(
        np.append(w * u, slope), np.append(w * kappa, 1.0), np.hstack([eye, np.zeros((40, 1))]),
        epsilon,
    )  # fmt: skip
    model = (coef, 0.1)
    assert drlogit.worst_case_loss(model, X, y, **options) == pytest.approx(loss, abs=1e-9)
    found = drlogit.worst_case_distribution(model, X, y, tol=1e-5, **options)
    assert found.supremum == pytest.approx(loss, abs=1e-9)
    assert found.gap <= 1e-5
    assert found.transport_cost <= epsilon * (1.0 + 1e-12)
    assert np.isfinite(kappa[found.index[found.flipped]]).all()
    # Errors: a flip or a move to the boundary, whichever.
    both = np.hstack([eye, eye])
    for sign in (1.0, -1.0):
        gap = np.maximum(sign * u, 0.0)
        gain = np.tile(np.where(sign * u > 0.0, w, 0.0), 2)
        changed = most(gain, np.concatenate([w * kappa, w * gap / slope]), both, epsilon)
        bounds = drlogit.misclassification_bounds(model, X, y, **options)
        wanted = w[u <= 0.0].sum() + changed if sign > 0.0 else w[u < 0.0].sum() - changed
        assert (bounds.worst if sign > 0.0 else bounds.best) == pytest.approx(wanted, abs=1e-9)


def test_an_audit_of_training_data_returns_the_fits_own_number():
    X, y = zoo.logistic_data(120, 3)
    names = np.where(y > 0, "good", "bad")
    by_label = {"good": 0.5, "bad": np.inf}
    model = drlogit.DRLogisticRegression(0.05, by_label).fit(X, names)
    report = drlogit.audit(model, X, names, epsilons=[0.05])
    assert report.models[0].rows[0].worst_case_loss == pytest.approx(model.worst_case_loss_[0])
    assert report.models[0].rows[0].flip_limit == pytest.approx(0.1)
    assert {sample.label for sample in report.models[0].first_flipped} == {"good"}
    assert "inf for bad, 0.5 for good" in str(report)
    promise = str(drlogit.guarantee(model, X[::-1] + 0.01, names[::-1]))
    assert "at most 10 % of all samples may be wrong, those labelled good" in promise
    assert "right" in drlogit.allowances(model)[0]


def test_a_model_with_a_cost_for_each_sample_has_none_for_others():
    X, y = zoo.logistic_data(120, 3)
    kappa = np.random.default_rng(0).choice([0.5, 2.0, np.inf], size=120)
    model = drlogit.DRLogisticRegression(0.05).fit(X, y, kappa=kappa)
    assert model.kappa_ == "by sample"
    with pytest.raises(ValueError, match="kappa must be given"):
        drlogit.audit(model, X, y)
    found = drlogit.audit(model, X, y, kappa=kappa, epsilons=[0.05]).models[0].rows[0]
    assert found.worst_case_loss == pytest.approx(model.worst_case_loss_[0])
