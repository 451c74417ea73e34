"""Scalar functions of the margin: values, derivatives, tails, and identities."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drlogit.dual._certificate import label_sums
from drlogit.problem._losses import log_loss_sum
from drlogit.problem.losses import (
    entropy,
    flip_probability,
    log_loss,
)
from drlogit.rows._products import compiled_rows

MARGINS = np.concatenate(
    [[0.0, -0.0, 1e-300, -1e-300], *(sign * np.logspace(-12, 4, 60) for sign in (1.0, -1.0))]
)
margins = st.floats(-1e4, 1e4)
shares = st.floats(0.0, 1.0)


def one(value: float) -> np.ndarray:
    return np.array([value])


def test_log_loss_is_log1p_exp_at_all_sizes():
    np.testing.assert_allclose(log_loss(MARGINS), np.logaddexp(0.0, -MARGINS), rtol=1e-15, atol=0)


@pytest.mark.parametrize("u", [1e4, 1e100, 1e308])
def test_tails_are_exact(u):
    assert (log_loss(one(u))[0], flip_probability(one(u))[0]) == (0.0, 0.0)
    assert (log_loss(one(-u))[0], flip_probability(one(-u))[0]) == (u, 1.0)


def test_compiled_terms_are_exact_to_a_few_units_in_the_last_place():
    """h, s and H of compiled loops, a sample at a time, against extended precision."""
    rng = np.random.default_rng(0)
    u = np.concatenate([MARGINS, rng.uniform(-700.0, 700.0, 400), rng.normal(0.0, 2.0, 400)])
    wide = u.astype(np.longdouble)
    e = np.exp(-np.abs(wide))
    loss = np.log1p(e) + np.maximum(-wide, 0.0)
    s = np.where(u > 0.0, e, 1.0) / (1.0 + e)
    found = [log_loss_sum(one(each), one(1.0)) for each in u]
    np.testing.assert_allclose(found, loss.astype(float), rtol=1e-15, atol=1e-300)
    s = s.astype(float)
    p = s[(s > 1e-300) & (s < 1.0)].astype(np.longdouble)
    exact = -p * np.log(p) - (1.0 - p) * np.log1p(-p)
    for share, value in zip(p.astype(float), exact, strict=True):
        sample = compiled_rows(one(0.0)[:, None], one(1.0), one(1.0), False)
        point = np.array([[one(share), one(0.0)], [one(0.0), one(1.0)]])
        sums = label_sums(sample, None, np.zeros((1, 1)), point, 1.0, None)[2]
        assert sums[1] == pytest.approx(float(value), rel=1e-15)


def test_compiled_losses_beyond_all_numbers():
    big = [log_loss_sum(one(u), one(1.0)) for u in (1e4, np.inf, -np.inf, np.nan)]
    assert max(big[:2]) < 1e-300
    assert big[2] == np.inf
    assert math.isnan(big[3])


@given(margins, shares)
def test_entropy_is_the_conjugate_of_the_log_loss(u, s):
    """``h(u) ≥ H(s) - su`` for all s, with equality at ``s = 1/(1+e^u)``: weak duality itself."""
    h = log_loss(one(u))[0]
    assert entropy(one(s))[0] - s * u <= h + 1e-12 * max(1.0, abs(u))
    best = flip_probability(one(u))
    assert entropy(best)[0] - best[0] * u == pytest.approx(h, rel=1e-12, abs=1e-12)
