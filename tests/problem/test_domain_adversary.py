"""The exact adversary of features with domains, against brute force and linear programs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from benchmarks import stated

import domain_zoo
import zoo
from drlogit.engine.tables import PieceSamples, TableLayout


def case_of(seed):
    case = domain_zoo.generated(seed, n_immovable=0, n_samples=9)
    rng = np.random.default_rng(1000 + seed)
    return case, rng.standard_normal(case["X"].shape[1]), float(rng.standard_normal())


def audited(case):
    """What the functions on models take."""
    return {key: case[key] for key in case if key not in ("X", "y", "fit_intercept")}


@pytest.mark.parametrize("seed", range(25))
def test_worst_values_are_those_of_all_moves(seed):
    case, coef, intercept = case_of(seed)
    problem = stated.problem(**case | {"fit_intercept": True})
    vector = problem.join(coef, intercept)
    offers = domain_zoo.offers(case, coef, intercept, steps=3)
    robust, layout = problem.robust_loss(vector), TableLayout.of(problem)
    samples = PieceSamples(problem.rows, layout, problem.kappa)
    for lam in (0.1, 0.7, 3.0, robust.least, robust.least + 0.4):
        best = [float((loss - lam * cost).max()) for cost, loss in (o.T for o in offers)]
        expected = domain_zoo.weights_of(case) @ best
        # As the interior point asks the adversary, and as questions about models do.
        x = layout.inside(vector, lam, 0.0)
        _, sums = samples.linearise(samples.open(x, 0.1), x, 0.0, 0.0, 0.1)
        assert sums[-8] == pytest.approx(expected, abs=1e-9)
        if lam >= robust.least:
            value = robust.value(case["epsilon"], lam)
            assert value == pytest.approx(case["epsilon"] * lam + expected, abs=1e-9)


def test_many_features_are_moved_in_the_order_of_what_they_gain():
    """More than are sorted by insertion; labels are beyond doubt."""
    rng = np.random.default_rng(0)
    X, coef, costs = rng.random((5, 60)), rng.standard_normal(60), rng.uniform(0.5, 2.0, 60)
    y = np.array([1.0, -1.0, 1.0, -1.0, 1.0])
    problem = stated.problem(
        X, y, epsilon=0.3, kappa=math.inf, feature_costs=costs, bounds=(0.0, 1.0)
    )
    robust = problem.robust_loss(problem.join(coef, 0.0))
    order = np.argsort(-np.abs(coef) / costs)
    for lam in (0.0, 0.3, 1.0):
        expected = 0.3 * lam
        for sign, x in zip(y, X, strict=True):
            distance = np.where(sign * coef > 0.0, x, 1.0 - x)[order]
            gain = np.append(0.0, np.cumsum(distance * np.abs(coef[order])))
            paid = np.append(0.0, np.cumsum(distance * costs[order]))
            loss = np.logaddexp(0.0, gain - sign * (x @ coef))
            expected += 0.2 * float((loss - lam * paid).max())
        assert robust.value(0.3, lam) == pytest.approx(expected, abs=1e-12)


@pytest.mark.filterwarnings("ignore:.*bounds:UserWarning")
def test_rows_beyond_the_adverse_end_stay_where_they_are():
    """As if they could not move, whatever other features do."""
    X, y = np.array([[-0.5, 0.5, 0.0], [1.5, 0.5, 0.0]]), [1, -1]
    ends = np.array([0.0, 0.0, -math.inf]), np.array([1.0, 1.0, math.inf])
    ball = {"epsilon": 0.3, "kappa": math.inf, "norm": "l2", "bounds": ends}
    for slope in (0.0, 1.0):
        model = np.array([2.0, 3.0, slope]), 2.0
        worst = zoo.worst_loss(model, X, y, **ball, feature_costs=np.ones(3))
        immovable = zoo.worst_loss(model, X, y, **ball, feature_costs=np.array([math.inf, 1, 1]))
        assert worst == pytest.approx(immovable, abs=1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_distributions_keep_to_their_domains_and_to_the_ball(seed):
    case, coef, intercept = case_of(seed)
    X, costs, (lower, upper) = case["X"], case["feature_costs"], case["bounds"]
    found = zoo.worst_distribution((coef, intercept), X, case["y"], **audited(case))
    points = found.points(X)
    signs = np.where(found.label > 0, 1.0, -1.0)
    w = domain_zoo.weights_of(case)
    np.testing.assert_allclose(np.bincount(found.index, found.mass, w.size), w, atol=1e-12)
    # What it says of itself is so.
    loss = found.mass @ np.logaddexp(0.0, -signs * (points @ coef + intercept))
    assert loss == pytest.approx(found.value, abs=1e-9)
    moves = points - X[found.index]
    spent = np.zeros(found.mass.size)
    for group in case["categories"]:
        columns = list(group)
        assert np.isin(points[:, columns], (0.0, 1.0)).all()
        assert (points[:, columns].sum(axis=1) <= 1.0).all()
        for k, (before, after) in enumerate(zip(X[found.index], points, strict=True)):
            one, other = (next((j for j in columns if x[j]), None) for x in (before, after))
            spent[k] += costs[columns[0]] * (one != other)
    bounded = np.isfinite(lower)
    assert (points[:, bounded] >= lower[bounded] - 1e-12).all()
    assert (points[:, bounded] <= upper[bounded] + 1e-12).all()
    spent += np.abs(moves[:, bounded]) @ costs[bounded]
    rest = domain_zoo.open_features(case)
    order = {"l1": 1, "l2": 2, "linf": np.inf}[case["norm"]]
    if rest.any():
        spent += np.linalg.norm(moves[:, rest] * costs[rest], ord=order, axis=1)
    np.testing.assert_allclose(found.distance, spent, atol=1e-9)
    flips = found.mass[found.flipped].sum() * case["kappa"] if found.flipped.any() else 0.0
    assert found.mass @ spent + flips == pytest.approx(found.transport_cost, abs=1e-9)
    assert found.transport_cost <= case["epsilon"] * (1.0 + 1e-12)
    # And it is the worst.
    assert -1e-10 <= found.supremum - loss <= 1e-3 + 1e-10


@pytest.mark.parametrize("seed", range(3))
def test_many_different_costs_are_enclosed(seed):
    """Thirteen categories of two levels, all of other costs: against every set of changes."""
    rng, n, G = np.random.default_rng(seed), 25, 13
    levels, coef = rng.integers(0, 2, (n, G)), rng.standard_normal((G, 2))
    costs, y = 1.0 + rng.random(G), np.where(rng.random(n) < 0.5, 1, -1)
    X = np.stack([1 - levels, levels], axis=2).reshape(n, 2 * G)
    u = y * (X @ coef.ravel())
    sets = (np.arange(2**G)[:, None] >> np.arange(G)) % 2
    step = coef[np.arange(G), 1 - levels] - coef[np.arange(G), levels]
    enough = (u + y * (sets @ step.T)) * np.sign(u) <= 1e-12  # across, from either side
    least = np.where(enough, (sets @ costs)[:, None], np.inf).min(axis=0)
    epsilon = 0.3

    def reached(some):
        order = np.flatnonzero(some)[np.argsort(least[some])]
        spent = np.append(0.0, np.cumsum(least[order][np.isfinite(least[order])] / n))
        return np.interp(epsilon, spent, np.arange(spent.size) / n)

    found = zoo.worst_error(
        (coef.ravel(), 0.0), X, y, epsilon=epsilon, kappa=math.inf,
        feature_costs=np.repeat(costs, 2), categories=np.arange(2 * G).reshape(G, 2).tolist(),
    )  # fmt: skip
    worst, best = np.mean(u < 0) + reached(u > 0), np.mean(u < 0) - reached(u < 0)
    assert not found.exact
    assert worst - 1e-12 <= found.value <= worst + 0.1
    assert best - 0.1 <= found.best <= best + 1e-12
