"""Values and bounds against closed forms, with no other solver in between.

With one sample z, or several that agree, the dual asks for ``‖c (s - a) z‖ + κ a ≤ ε``: the
adversary buys s at the lower of the two prices, and the optimum is ``H(ε / min(‖c z‖, κ))``.
With the intercept alone it may flip ε/κ of the labels, and the larger class keeps what is left.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.special
from benchmarks import stated
from benchmarks.false_bounds import Judge
from benchmarks.problems import Generated

import domain_zoo
import drlogit
import zoo
from drlogit.dual.certify import certify, primal_value
from drlogit.problem.label_costs import FlipCosts
from drlogit.problem.norms import get_norm
from drlogit.problem.problem import Problem
from drlogit.problem.transport import TransportCost
from drlogit.rows.blocks import Block
from drlogit.rows.local import memory_rows

LENGTHS = {
    "l1": lambda x: np.abs(x).sum(),
    "l2": lambda x: math.sqrt(np.square(x).sum()),
    "linf": lambda x: np.abs(x).max(),
}


def entropy(share: float) -> float:
    return -share * math.log(share) - (1.0 - share) * math.log(1.0 - share)


def problem_of(z, weights, *, epsilon, kappa, norm="l1", costs=None) -> Problem:
    """Without an intercept, and so without labels: rows z = y x."""
    Z = np.atleast_2d(np.asarray(z, dtype=float))
    w = np.asarray(weights, dtype=float)
    rows = memory_rows(Block(Z, np.ones(len(Z)), w / w.sum(), False))
    prices = np.ones(Z.shape[1]) if costs is None else np.asarray(costs, dtype=float)
    cost = TransportCost(get_norm(norm), prices, FlipCosts(kappa))
    return Problem(rows, epsilon, cost, fit_intercept=False)


# --- closed forms -----------------------------------------------------------------------------


@pytest.mark.parametrize("norm", LENGTHS)
@pytest.mark.parametrize("kappa", [0.4, 1.5, math.inf])
@pytest.mark.parametrize("copies", [1, 3])
def test_one_sample(norm, kappa, copies):
    z, costs, epsilon = np.array([0.6, -0.8, 0.1]), np.array([1.0, 0.5, 2.0]), 0.1
    price = min(LENGTHS[norm](costs * z), kappa)
    problem = problem_of(
        [z] * copies, 1.0 + np.arange(copies), epsilon=epsilon, kappa=kappa, norm=norm, costs=costs
    )
    optimum = entropy(epsilon / price)
    # Along the direction δ in which features are cheapest to move, u = ‖c z‖ for ‖β/c‖_* = 1;
    # the margin at the optimum has s = ε / price.
    scaled = costs * z
    steepest = {
        "l1": np.sign(scaled),
        "l2": scaled / np.linalg.norm(scaled),
        "linf": np.where(np.abs(scaled) == np.abs(scaled).max(), np.sign(scaled), 0.0),
    }[norm]
    u = math.log(price / epsilon - 1.0)
    best = costs * steepest * u / LENGTHS[norm](scaled)
    flips = epsilon / kappa if kappa < LENGTHS[norm](scaled) else 0.0  # where cheaper than moves
    point = zoo.dual_point(problem, best, np.full(copies, flips))
    certificate = certify(problem, best, point=point)
    assert certificate.primal == pytest.approx(optimum, abs=1e-12)
    assert certificate.dual == pytest.approx(optimum, abs=1e-8)
    rng = np.random.default_rng(0)
    for _ in range(50):
        v, dual = 3.0 * rng.standard_normal((2, 3))
        point = zoo.dual_point(problem, dual, rng.random(copies))
        certificate = certify(problem, v, point=point)
        assert certificate.dual <= optimum + 1e-12
        assert certificate.primal >= optimum - 1e-12


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.29])
@pytest.mark.parametrize("kappa", [1.0, 2.0, math.inf])
def test_intercept_alone(epsilon, kappa):
    """Features that say nothing: the bound is that of coins, one class shrunk to the other."""
    y, weight = np.array([-1, 1, 1, -1]), np.array([1.0, 3.0, 5.0, 1.0])
    problem = stated.problem(
        np.zeros((4, 1)), y, epsilon=epsilon, kappa=kappa, sample_weight=weight
    )
    share = 0.8 - epsilon / kappa
    log_odds = math.log(share / (1.0 - share))
    best, flips = np.array([0.0, log_odds]), np.where(y > 0, epsilon / kappa / 0.8, 0.0)
    certificate = certify(problem, best, point=zoo.dual_point(problem, best, flips))
    assert certificate.primal == pytest.approx(entropy(share), abs=1e-12)
    assert certificate.dual == pytest.approx(entropy(share), abs=1e-8)
    for intercept in np.linspace(-4.0, 4.0, 41):
        certificate = certify(problem, np.array([0.0, intercept]))
        assert certificate.dual <= entropy(share) + 1e-12
        assert certificate.primal >= entropy(share) - 1e-12


@pytest.mark.parametrize(
    ("shape", "warm"), [((2000, 8), False), ((2000, 8), True), ((26_000, 12), False)]
)
def test_the_dual_point_of_a_fit_proves_its_bound(shape, warm):
    """Few samples or many, from a start or not: the constraints of the dual, and its value."""
    X, y = zoo.logistic_data(*shape)
    weights = np.random.default_rng(1).random(y.size)
    options = {"epsilon": 0.04, "kappa": 1.0, "sample_weight": weights}
    start = stated.solve(X, y, **options | {"epsilon": 0.05}) if warm else None
    result = stated.solve(X, y, **options, start=start)
    w, (s, a) = weights / weights.sum(), (result.dual.s, result.dual.flip_share)
    for share in (s, a):
        assert share.min() >= 0.0
        assert share.max() <= 1.0
    assert np.abs((w * (s - a) * y) @ X).sum() + (w * a).sum() <= 0.04 * (1.0 + 1e-9)
    assert abs((w * (s - a) * y).sum()) <= 1e-10
    assert w @ scipy.special.entr([s, 1.0 - s]).sum(axis=0) == pytest.approx(
        result.dual_objective, abs=1e-8
    )


def test_without_a_dual_point_the_flips_are_those_that_pay():
    X, y = drlogit.datasets.make_synthetic(60, 3, random_state=0)
    problem = stated.problem(X, y, epsilon=0.1, kappa=0.5)
    found = stated.solve(X, y, epsilon=0.1, kappa=0.5)
    coefficients = problem.join(1.5 * found.coef, found.intercept)
    certificate = certify(problem, coefficients)
    shares = certificate.dual_point(problem).flip_share
    margins = problem.rows.gather(problem.margins(coefficients))
    assert 0 < np.count_nonzero(shares) < shares.size
    np.testing.assert_array_equal(shares > 0.0, margins > 0.5 * certificate.lam)


@pytest.mark.parametrize("unit", [0.02, 1.0, 50.0])  # of costs, so that λ is of any size
def test_a_good_guess_of_lambda_takes_one_look_at_the_moves(unit, monkeypatch):
    case = domain_zoo.generated(4)
    case |= {name: unit * case[name] for name in ("epsilon", "kappa", "feature_costs")}
    fit, problem, looks = stated.solve(**case, tol=1e-9), stated.problem(**case), []
    coefficients = problem.join(fit.coef, fit.intercept)
    lam, value = primal_value(problem, coefficients)
    look = Problem.robust_loss
    monkeypatch.setattr(Problem, "robust_loss", lambda *given: looks.append(1) or look(*given))
    assert primal_value(problem, coefficients, lam) == pytest.approx((lam, value), rel=1e-9)
    assert len(looks) == 1


def test_small_values_are_known_to_small_errors():
    """What rounding adds to the value of a model is no more than sums of its size lose."""
    X, y = np.array([[1.0, 0.2], [2.0, -0.1], [-1.0, 0.3], [-2.0, 0.1]]), [1, 1, -1, -1]
    options = {"epsilon": 1e-12, "kappa": math.inf, "norm": "l2", "feature_costs": np.ones(2)}
    found = stated.solve(X, y, tol=1e-12, **options)
    exact = Judge(Generated("", X, np.array(y), options | {"fit_intercept": True})).value(found)
    assert found.objective < 1e-9
    assert 0.0 <= found.objective - exact <= 1e-12
