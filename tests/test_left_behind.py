"""Steps of the barrier that leave samples behind: how long they are, and what becomes of those."""

from __future__ import annotations

import numpy as np
import pytest

import drlogit
from drlogit.problem.problem import build_problem
from drlogit.solvers.interior_point import barrier, method
from drlogit.solvers.interior_point.barrier_samples import HingeSamples

DIRECTION, DLAM = np.array([0.4, 0.2, -0.3, 0.1]), -0.5


def predicted(n_blocks, behind):
    """A model of 300 samples, some of them far out, and a direction that these do not allow."""
    X, y = drlogit.datasets.make_synthetic(300, 3, 1)
    X[:12] *= np.geomspace(3.0, 60.0, 12)[:, None]
    rows = build_problem(X, y, epsilon=0.1, kappa=1.0, n_blocks=n_blocks).rows
    model = HingeSamples(rows, 1.0, behind=(behind, behind))
    here, _ = model.linearise(model.open(np.zeros(4), 1.5, 0.05), 1.5, rough=False)
    return model, *model.predict(here, DIRECTION, DLAM)[:2]


def column(model, state, get):
    return model.rows.gather(model.rows.run(lambda block, part: (get(part), ()), state)[0])


@pytest.mark.parametrize("behind", [1e-12, 1e-4, 1e-3, 1e-2])
@pytest.mark.parametrize("n_blocks", [1, 5])
def test_length_is_what_the_price_allows(n_blocks, behind):
    """Against the samples one by one: costs above a length are within the limit, or none can be."""
    model, step, lengths = predicted(n_blocks, behind)
    t, r, a = (column(model, step, lambda d, f=f: getattr(d.local.at, f)) for f in "tra")
    names = ("dt", "dr", "dc", "da")
    dt, dr, dc, da = (column(model, step, lambda d, f=f: getattr(d, f)) for f in names)
    products = column(model, step, lambda d: d.local.product_t + d.local.product_r)
    added = np.maximum(-t * dt, -r * dr), np.abs(a * da) * (t + r)
    falls = -np.minimum(dt, dr), -np.minimum(dc, da)
    for length, fall, extra in zip(lengths, falls, added, strict=True):
        cost = (products + extra / 30.0) / 300
        assert cost[fall * length > 1.0 + 1e-12].sum() <= behind
        # Going on to the next level, a sixteenth of an octave further, would cost too much.
        further = fall * length > 2.0**-0.125
        assert length == 1.0 or cost[further].sum() > behind
        assert length == 1.0 or np.isclose(fall * length, 1.0, rtol=1e-12).any()
    assert min(lengths) < 0.9


def test_samples_left_behind_stay_inside_and_consistent():
    model, step, (primal, dual) = predicted(1, 1e-2)
    before = column(model, step, lambda d: np.stack(d.local.at[1:5], axis=1))
    moved, _ = model.advance(step, (0.99 * primal, 0.99 * dual))
    u, t, r, c, a = (column(model, moved, lambda s, k=k: s[k]) for k in range(5))
    assert min(part.min() for part in (t, r, c, a)) > 0.0
    kink = 1.5 + 0.99 * primal * DLAM
    np.testing.assert_allclose(t - r, u - kink, atol=1e-12)
    np.testing.assert_allclose(c + a, 1.0, rtol=1e-12)
    shares = np.stack([t, r, c, a], axis=1) / before
    left = np.isclose(shares, 0.1)
    assert 2 <= left.any(axis=1).sum() <= 30  # a tenth is kept
    assert shares.min() > 1e-4


def test_iterations_are_fewer_than_with_nobody_left_behind(monkeypatch):
    rng = np.random.default_rng(0)
    X = (rng.random((3000, 60)) < 0.05) * 1.0
    y = np.where(X @ rng.standard_normal(60) + rng.logistic(size=3000) > 0.0, 1, -1)
    found = []
    for share in (barrier._BEHIND, 0.0):
        monkeypatch.setattr(barrier, "_BEHIND", share)
        result = drlogit.solve(X, y, epsilon=0.02, kappa=1.0, hinge="barrier")
        assert result.gap <= 1e-6
        found.append(result.n_iter)
    assert found[0] <= 11
    assert found[1] >= 13


def test_a_barrier_that_gets_stuck_is_run_again_with_all_samples_together(monkeypatch):
    calls = []

    def stuck(scaled, progress, *, together=False, **options):
        calls.append((together, options.get("x")))
        if not together:
            return drlogit.Status.STALLED
        return barrier.solve_with_barrier(scaled, progress, together=True, **options)

    monkeypatch.setattr(method, "solve_with_barrier", stuck)
    X, y = drlogit.datasets.make_synthetic(300, 3, 1)
    result = drlogit.solve(X, y, epsilon=0.1, kappa=1.0)
    assert result.converged
    assert calls == [(False, None), (True, None)]


def test_steps_of_a_linear_program_are_held_up_however_small_its_products():
    """Of one feature without a slope at the null model: products go down to 1e-30 and further."""
    x = np.repeat([-1.0, 1.0], 66)
    y = np.tile([-1, 1], 66)
    found = drlogit.epsilon_max(x[:, None], y, kappa=1.0, norm="linf")
    assert 0.0 <= found <= 1e-12
