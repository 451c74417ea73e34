"""The decision curve, the calibration curve and the rates of an audit page."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import drlogit
from drlogit.robustness.audit_problem import audit_problem
from drlogit.robustness.decision_curves import calibration_bands, net_benefits, rates

RNG = np.random.default_rng(0)
X = RNG.standard_normal((200, 3))
Y = (X @ [1.0, -1.0, 0.5] + RNG.logistic(size=200) > 0.0).astype(int)
ROBUST = drlogit.DRLogisticRegression(0.05, 1.0).fit(X, Y)
PLAIN = LogisticRegression().fit(X, Y)


def test_decision_curve():
    model, everybody = net_benefits(audit_problem(ROBUST, X, Y), [0.2, 0.5])
    expected = [drlogit.worst_case(ROBUST, X, Y, "net_benefit", threshold=p) for p in (0.2, 0.5)]
    assert [band.low for band in model] == [each.value for each in expected]
    assert everybody[1].nominal == pytest.approx(2.0 * Y.mean() - 1.0)


def test_calibration_band():
    _, bands = calibration_bands(audit_problem(ROBUST, X, Y), 4)
    predicted, still = calibration_bands(audit_problem(PLAIN, X, Y, epsilon=0.0), 4)
    p = PLAIN.predict_proba(X)[:, 1]
    lots = np.array_split(np.argsort(p), 4)
    np.testing.assert_allclose(predicted, [p[lot].mean() for lot in lots])
    np.testing.assert_allclose([band.nominal for band in still], [Y[lot].mean() for lot in lots])
    assert all(band.low < band.nominal < band.high for band in bands[1:-1])


def test_rates():
    fpr, _ = rates(audit_problem(ROBUST, X, Y, epsilon=0.02), 0.6)
    found = drlogit.worst_case(ROBUST, X, Y, "fpr", threshold=0.6, epsilon=0.02)
    assert fpr == (found.nominal, found.low, found.high)
