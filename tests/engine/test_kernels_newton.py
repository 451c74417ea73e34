"""Finite differences of every model of the samples together with every cone.

The corrector's direction solves the linearised conditions, equation (8) of docs/algorithm.md.  So
after a step of length h along it the residual is (1 - h) times what it was, up to h²: a finite
difference of the Gram matrix, the adjoints, the second-order terms and the cone's curvature at
once.  Nothing here shares code with the kernels.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from benchmarks import stated

import class_zoo
import domain_zoo
from drlogit.engine._sums import CURVATURE, NEW_PIECES, PROOF_ENTROPY, SLOPE
from drlogit.engine.labels import LabelSamples, LabelScaling
from drlogit.engine.tables import PieceSamples, TableLayout

MU = 0.05  # so large that trust rows do not move


class Iterate:
    """Samples and everything of size n at an iterate that is neither central nor feasible."""

    def __init__(self, samples, newton, state):
        self.samples, self.newton, self.mu, self.state = samples, newton, MU, state
        self.at(0.0, keep=True)
        for length in (0.4, 0.25):
            self.aim(0.3 * self.newton.mu, 0.5)
            primal, dual = self.newton.longest()
            self.at(min(length, 0.5 * primal), min(0.8 * length, 0.5 * dual), keep=True)
        while self.at(0.0, keep=True)[newton.scalars + NEW_PIECES] > 0:
            pass

    def at(self, primal, dual=None, keep=False):
        """Sums after a step; the iterate stays unless it is to ``keep`` the step."""
        newton, dual = self.newton, primal if dual is None else dual
        state, sums = self.samples.linearise(
            self.state, newton.trial(primal), primal, dual, self.mu
        )
        newton.move(primal, dual)
        assert newton.linearise(sums, None if newton.wide is None else self.samples.curved(state))
        self.values = newton.residuals(), newton.complementarity, newton.loss
        if keep:
            self.state = state
        else:
            newton.move(-primal, -dual)
        return sums

    def aim(self, centre, share):
        """Follow the corrector's direction to ``centre``."""
        newton, samples = self.newton, self.samples
        state, self.predicted = samples.predict(self.state, newton.predictor())
        dcoef = newton.corrector(centre, share, self.predicted)
        self.state, self.limits = samples.correct(state, dcoef, centre, share)


def labelled(problem, rng, size, lam):
    newton = LabelScaling(problem).newton(problem.epsilon)
    samples = LabelSamples(problem, newton)
    newton.open(np.append(size * rng.standard_normal(newton.size - 1), lam), MU)
    return Iterate(samples, newton, samples.open(newton.trial(0.0), MU))


def pair(norm, kappa, seed=1):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((60, 4)) * [1.0, 0.3, 2.0, 1.0]
    y = np.where(X[:, 0] + rng.logistic(size=60) > 0.0, 1, -1)
    costs = np.array([1.0, 0.7, 1.5, math.inf])
    flips = rng.choice([0.2, 0.5, 1.0, math.inf], 60) if kappa == "each" else kappa
    problem = stated.problem(
        X, y, epsilon=0.1, kappa=flips, norm=norm, feature_costs=costs,
        sample_weight=rng.uniform(0.5, 2.0, 60),
    )  # fmt: skip
    return labelled(problem, rng, 0.05, 1.5)


def pieces(seed):
    case = domain_zoo.generated(seed)
    problem = stated.problem(**case)
    layout = TableLayout.of(problem)
    rng = np.random.default_rng(seed)
    start = layout.inside(0.05 * rng.standard_normal(problem.costs.size), 1.0, 0.3)
    newton = layout.newton(problem, problem.epsilon, start, MU)
    samples = PieceSamples(problem.rows, layout, problem.kappa)
    state = samples.open(newton.trial(0.0), MU)
    return Iterate(samples, newton, state)


def classes(seed):
    X, y, ball = class_zoo.generated(seed)
    return labelled(stated.problem(X, y, **ball), np.random.default_rng(seed), 0.02, 2.0)


CASES = {
    **{f"pair-{norm}-{kappa}": (pair, norm, kappa)
       for norm in ("l1", "l2", "linf") for kappa in (0.7, "each", math.inf)},
    **{f"pieces-{seed}": (pieces, seed) for seed in range(9)},
    **{f"classes-{seed}": (classes, seed) for seed in range(9) if seed not in (6, 7, 8)},
}  # fmt: skip


@pytest.fixture(scope="module")
def iterate(request):
    make, *arguments = CASES[request.param]
    return make(*arguments)


every_case = pytest.mark.parametrize("iterate", CASES, indirect=True)


def quadratic(error, scale):
    """Whether errors over h, at h and h/2, are of first order."""
    large, small = error
    return large <= 0.02 * scale and small <= 0.6 * large + 1e-7 * scale


@every_case
def test_a_newton_step_removes_the_residual_in_proportion(iterate):
    iterate.at(0.0)
    before, _, _ = iterate.values
    iterate.aim(0.3 * iterate.newton.mu, 0.5)
    error = []
    for h in (2e-3, 1e-3):
        iterate.at(h)
        error.append(np.abs(iterate.values[0] - (1.0 - h) * before).max() / h)
    assert quadratic(error, np.abs(before).max() + 1e-3), error


@every_case
def test_complementarity_follows_its_target(iterate):
    iterate.at(0.0)
    _, before, _ = iterate.values
    iterate.aim(0.3 * iterate.newton.mu, 0.0)
    error = []
    for h in (2e-3, 1e-3):
        iterate.at(h)
        error.append(abs(iterate.values[1] - (1.0 - 0.7 * h) * before) / h)
    assert quadratic(error, before), error


@every_case
def test_the_prediction_of_complementarity_holds_for_unequal_lengths(iterate):
    iterate.at(0.0)
    iterate.aim(0.0, 0.0)
    lengths, error = (2e-3, 1e-3), []
    expected = [iterate.newton.after(h, 0.5 * h, iterate.predicted) for h in lengths]
    for h, value in zip(lengths, expected, strict=True):
        iterate.at(h, 0.5 * h)
        error.append(abs(iterate.values[1] - value) / h)
    assert quadratic(error, iterate.values[1]), error


@pytest.mark.parametrize("iterate", [c for c in CASES if "pieces" not in c], indirect=True)
def test_slope_and_curvature_are_those_of_the_loss(iterate):
    """With pieces the slope is that of the multipliers' mixture (``test_kernels_pieces``)."""
    iterate.at(0.0)
    loss = iterate.values[2]
    iterate.aim(0.3 * iterate.newton.mu, 0.5)
    slope, curvature = iterate.limits[SLOPE], iterate.limits[CURVATURE]
    first = []
    for h in (2e-3, 1e-3):
        iterate.at(h)
        ahead = iterate.values[2] - loss
        iterate.at(-h)
        behind = iterate.values[2] - loss
        first.append(abs((ahead - behind) / (2.0 * h) - slope))
    assert quadratic(first, abs(slope) + 1e-3), first
    assert (ahead + behind) / h**2 == pytest.approx(curvature, rel=1e-3)


@pytest.mark.parametrize("iterate", ["pair-l2-inf", "pieces-3", "classes-2"], indirect=True)
def test_the_best_bound_is_kept(iterate):
    newton = iterate.newton
    iterate.at(0.0)
    _, sums = iterate.samples.certify(iterate.state, None, np.zeros(newton.size))
    sums[: newton.size] = 0.0  # nothing is charged or used
    for entropy, best in ((0.2, 0.2), (0.3, 0.3), (0.1, 0.3)):
        sums[newton.size + PROOF_ENTROPY] = entropy
        assert newton.prove(sums) == pytest.approx(entropy)
        assert newton.dual == pytest.approx(best)


@every_case
def test_a_corrected_dual_point_needs_little_more_correction(iterate):
    newton, samples = iterate.newton, iterate.samples
    iterate.at(0.0)
    newton.begin_proof()
    point, sizes = None, []
    for _ in range(2):
        step = newton.correction()
        sizes.append(np.abs(step).max())
        point, sums = samples.certify(iterate.state, point, step)
        newton.prove(sums)
    newton.end_proof()
    assert sizes[1] <= 0.5 * sizes[0]
