"""Every direction of the barrier method solves the linearised conditions that it is made from."""

from __future__ import annotations

import numpy as np
import pytest

import drlogit
from drlogit.solvers.interior_point import barrier, predictor_corrector
from drlogit.solvers.interior_point import barrier_samples as samples
from drlogit.solvers.interior_point.norm_cone import outlier_correction
from drlogit.solvers.interior_point.predictor_corrector import LEAST_SIGMA, Linearised
from drlogit.solvers.interior_point.reduced_system import ReducedSystem


class Seen:
    """The linearised points and steps of a run, recorded as they are made."""

    def __init__(self, monkeypatch, **options):
        self.predictors, self.steps, self.pulled, self.centres = [], [], 0, []
        after, corrector = Linearised.after, Linearised.corrected
        pull_back, centre = samples.HingeSamples.pull_back, Linearised.centre

        def recorded_after(here, predictor):
            value = after(here, predictor)
            self.predictors.append((here, predictor, value))
            return value

        def recorded_corrector(here, *arguments):
            before = self.pulled
            step = corrector(here, *arguments)
            self.steps.append((here, step, self.pulled > before))
            return step

        def recorded_pull(*arguments):
            self.pulled += 1
            return pull_back(*arguments)

        def recorded_centre(here, system, predictor):
            value = centre(here, system, predictor)
            self.centres.append((here, predictor, value))
            return value

        monkeypatch.setattr(Linearised, "after", recorded_after)
        monkeypatch.setattr(Linearised, "centre", recorded_centre)
        monkeypatch.setattr(Linearised, "corrected", recorded_corrector)
        monkeypatch.setattr(samples.HingeSamples, "pull_back", recorded_pull)
        # Exact directions throughout, nobody left behind, and corrections however few the features.
        monkeypatch.setattr(barrier, "_BEHIND", 0.0)
        monkeypatch.setattr(samples, "_KEPT", 0.0)
        monkeypatch.setattr(barrier, "_ROUGH_MU", np.inf)
        monkeypatch.setattr(barrier, "_CHEAP_GRAM", 0)
        X, y = drlogit.datasets.make_synthetic(120, 5, random_state=3)
        X[:, 1] *= 30.0
        self.result = drlogit.solve(
            X, y, epsilon=0.03, kappa=0.5, solver="interior-point", tol=1e-9, **options
        )


@pytest.fixture(params=["l1", "l2", "linf"])
def seen(request, monkeypatch):
    return Seen(monkeypatch, norm=request.param)


def gathered(rows, state, what):
    """A vector per sample, of a state that is a tuple of them."""
    new, _ = rows.run(lambda block, part: (what(part), ()), state)
    return rows.gather(new)


def test_steps_solve_the_linearised_stationarity(seen):
    """What is left of the gradient after a full step, to first order, is nothing."""
    assert sum(pulled for *_, pulled in seen.steps) >= 2  # with centrality corrections, too
    for here, step, _ in seen.steps:
        scaled, rows = here.scaled, here.scaled.problem.rows

        def change(block, d):
            s = d.local.at
            probability = 1.0 / (1.0 + np.exp(s.u))
            weighted = block.weights * (
                s.a * (1.0 + d.da) - probability + probability * (1.0 - probability) * d.du
            )
            flips = float(block.weights @ (s.a * (1.0 + d.da)))
            return d, (samples.Sum(block.adjoint(weighted)), samples.Sum(flips))

        _, (adjoint, flips) = rows.run(change, step.samples)
        theta, lam = here.point.cone.moved(step.cone, (1.0, 1.0)).gradient()
        left = scaled.scaled(adjoint)
        left[scaled.kept] += theta
        left_lam = scaled.epsilon - scaled.kappa * flips + lam
        size = np.abs(here.residual).max() + abs(here.residual_lam) + here.mu
        assert np.abs(left).max() <= 1e-5 * size
        assert abs(left_lam) <= 1e-5 * size


def test_steps_keep_slacks_and_multipliers_together(seen):
    """``dt - dr = du - κ dλ``, ``dc + da = 0``, and products change as was aimed at."""
    for here, step, _ in seen.steps:
        rows, dkink = here.scaled.problem.rows, here.scaled.kappa * step.dlam

        def check(d, dkink=dkink):
            s = d.local.at
            scale = s.t + s.r + np.abs(d.du)
            slacks = (s.t * d.dt - s.r * d.dr - (d.du - dkink)) / scale
            multipliers = s.c * d.dc + s.a * d.da
            aims = np.maximum(abs(d.dt + d.dc - d.aim_t), abs(d.dr + d.da - d.aim_r))
            return np.abs(slacks) + np.abs(multipliers) + aims / (1.0 + abs(d.aim_t))

        assert gathered(rows, step.samples, check).max() <= 1e-7


def test_predictors_aim_at_products_of_zero(seen):
    for here, predictor, _ in seen.predictors:
        rows, dkink = here.scaled.problem.rows, here.scaled.kappa * predictor.dlam

        def check(d, dkink=dkink):
            s = d.local.at
            slacks = (s.t * d.dt - s.r * d.dr - (d.du - dkink)) / (s.t + s.r + np.abs(d.du))
            products = abs(d.dt + d.dc + 1.0) + abs(d.dr + d.da + 1.0)
            second = abs(d.aim_t - d.dt * d.dc) + abs(d.aim_r - d.dr * d.da)
            return np.abs(slacks) + np.abs(s.c * d.dc + s.a * d.da) + products + second

        assert gathered(rows, predictor.samples, check).max() <= 1e-7


def test_complementarity_after_a_predictor_is_what_it_will_be(seen):
    """The formula, with its cross terms, against the products at the point itself."""
    for here, predictor, value in seen.predictors:
        rows, alphas = here.scaled.problem.rows, predictor.alphas
        moved, _ = here.model.advance(predictor.samples, alphas)

        def products(block, s):
            return s, (samples.Sum(float(block.weights @ (s.c * s.t + s.a * s.r))),)

        _, (hinge,) = rows.run(products, moved)
        cone = here.point.cone.moved(predictor.cone, alphas).complementarity()
        assert value == pytest.approx(hinge + cone, rel=1e-6, abs=1e-9 * here.estimate)
    lengths = [predictor.alphas for _, predictor, _ in seen.predictors]
    assert any(abs(primal - dual) > 0.05 for primal, dual in lengths)  # or a term goes unseen


def test_centring_follows_the_cube_of_what_the_predictor_leaves(seen):
    """Mehrotra's choice, between its bounds; without it a step centres too much."""
    cubes = 0
    for here, predictor, centre in seen.centres:
        ratio = max(here.after(predictor), 0.0) / here.estimate
        assert centre <= here.mu * (1.0 + 1e-12)
        assert centre >= here.mu * max(min(1.0, ratio**3), LEAST_SIGMA) * (1.0 - 1e-12)
        cubes += centre == pytest.approx(here.mu * ratio**3, rel=1e-9)
    assert cubes >= 1  # the cube itself, not one of its bounds


def test_pull_is_the_change_that_the_aims_make(monkeypatch):
    """What ``pull_back`` says of the gradient is what its aims do to ``a`` at a standstill."""
    seen = Seen(monkeypatch, norm="l1")
    here, step, _ = seen.steps[1]
    rows, trial = here.scaled.problem.rows, (0.9, 0.8)

    def changes(block, d):
        pulled, (back,) = samples.pull_back(block, d, *trial, here.mu)
        still = np.zeros(block.n_columns)
        before = samples.follow_aims(block, d, still, 0.0)[0]
        after = samples.follow_aims(block, pulled, still, 0.0)[0]
        pull = block.weights * d.local.at.a * (after.da - before.da)
        return d, (back, samples.Sum(samples.Pull(block.adjoint(pull), pull.sum())))

    _, ((adjoint, total), (wanted, wanted_total)) = rows.run(changes, step.samples)
    assert np.abs(adjoint).max() > 0.0
    np.testing.assert_allclose(adjoint, wanted, atol=1e-9 * np.abs(wanted).max())
    assert total == pytest.approx(wanted_total, rel=1e-6, abs=1e-12)


def test_only_outliers_are_corrected():
    """Products within [0.1, 10] targets stay; a large one comes down by ten targets at most."""
    products = np.array([0.0, 0.05, 0.1, 0.5, 10.0, 15.0, 1000.0])
    wanted = np.array([0.1, 0.05, 0.0, 0.0, 0.0, -5.0, -10.0])
    np.testing.assert_allclose(outlier_correction(2.0 * products, 2.0), 2.0 * wanted, atol=1e-15)


def test_refinement_takes_the_shift_out_of_a_solution():
    matrix = np.array([[1.0, 0.5, 0.1], [0.5, 1.0, 0.2], [0.1, 0.2, 1.0]])
    factor = np.asfortranarray(np.linalg.cholesky(matrix + 1e-5 * np.eye(3)))
    right = np.array([1.0, -2.0, 3.0])
    errors = []
    for refine in (True, False):
        system = ReducedSystem(np.arange(2), np.asfortranarray(matrix), np.ones(3), factor, refine)
        dx, dlam = system.solve(right[:2], float(right[2]))
        errors.append(np.abs(np.append(dx, dlam) - np.linalg.solve(matrix, right)).max())
    assert errors[0] <= 1e-8
    assert errors[1] >= 1e-6


def test_directions_are_refined_once_they_must_be_exact(monkeypatch):
    asked, build = [], predictor_corrector.reduced_system

    def recorded(*arguments, refine):
        asked.append(refine)
        return build(*arguments, refine=refine)

    monkeypatch.setattr(predictor_corrector, "reduced_system", recorded)
    X, y = drlogit.datasets.make_synthetic(120, 5, random_state=3)
    drlogit.solve(X, y, epsilon=0.03, kappa=0.5, tol=1e-9, hinge="barrier")
    assert asked[-1]
    assert asked == sorted(asked)  # rough first
