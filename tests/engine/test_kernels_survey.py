"""Surveys of all samples, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import entr, expit

from drlogit.engine import _survey
from drlogit.rows._products import compiled_rows

N, n = 300, 3
P = n + 2


@pytest.mark.parametrize("each", [False, True], ids=["one", "each"])
@pytest.mark.parametrize("kappa", [0.8, np.inf])
def test_a_survey_after_a_step(each, kappa):
    rng = np.random.default_rng(7)
    X, y, w = rng.standard_normal((N, n)), rng.choice([-1.0, 1.0], N), rng.dirichlet(np.ones(N))
    rows, Z = compiled_rows(X, y, w, True), y[:, None] * np.column_stack([X, np.ones(N)])
    costs = rng.choice([0.5, 1.0, 2.0, np.inf], N) if each else np.broadcast_to(1.0, N)
    before, bent, shares = Z @ rng.standard_normal(n + 1), rng.uniform(0.1, 0.3, N), rng.random(N)
    (change, dual_change), multiple = 0.4 * rng.standard_normal((2, P)), 0.2
    kink = 0.6 if np.isfinite(kappa) else np.inf
    shares[np.isinf(costs)] = 0.0
    u, p, sums = _survey.survey(
        rows, costs, kappa, kink, before, bent, shares, change, dual_change, multiple
    )
    adjoint, gradient, product, scalars = np.split(sums, [P, 2 * P, 3 * P])
    # The dual point of the step.
    own, prices = expit(-before), np.where(np.isinf(kappa * costs), 0.0, costs)
    prices = prices * (kappa if np.isfinite(kappa) else 0.0)
    moved = own - bent * (Z @ dual_change[:-1]) - own * (1.0 - own) * multiple * before
    np.testing.assert_allclose(p, np.clip(moved, 0.0, 1.0), atol=1e-14)
    expected = np.append((w * (shares - p)) @ Z, -(w * shares) @ prices)
    np.testing.assert_allclose(adjoint, expected, atol=1e-14)
    assert scalars[_survey.ENTROPY] == pytest.approx(w @ (entr(p) + entr(1.0 - p)))
    assert scalars[_survey.ADDITIONS] >= rows.panel
    # The samples after it.
    np.testing.assert_allclose(u, before + Z @ change[:-1], atol=1e-13)
    s, kinks = expit(-u), np.where(np.isinf(costs), np.inf, kink * costs)
    above = u > kinks
    over = np.where(above, u - np.where(above, kinks, 0.0), 0.0)
    assert scalars[_survey.LOSS] == pytest.approx(w @ (np.logaddexp(0.0, -u) + over))
    expected = np.append((w * (above - s)) @ Z, -(w * above) @ prices)
    np.testing.assert_allclose(gradient, expected, atol=1e-14)
    np.testing.assert_allclose(product[:-1], (w * s * (1.0 - s) * u) @ Z, atol=1e-14)
