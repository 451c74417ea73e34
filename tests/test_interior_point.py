"""The interior point: certified on the zoo and the stress grid, whatever treats the hinge."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.linalg import LinAlgError

import drlogit
import zoo
from drlogit.problem.problem import build_problem
from drlogit.problem.result import Monitor, Status
from drlogit.solvers.interior_point import barrier, wide_system
from drlogit.solvers.interior_point.method import interior_point
from drlogit.solvers.interior_point.norm_cone import BoxCone, CrossPolytopeCone, SecondOrderCone
from drlogit.solvers.interior_point.wide_system import reduced_system

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
import stress


@pytest.mark.parametrize("case", zoo.ZOO, ids=repr)
def test_zoo_is_certified(case):
    result = drlogit.solve(case.X, case.y, solver="interior-point", **case.options)
    assert result.status is Status.OPTIMAL
    assert result.gap <= 1e-6
    assert result.n_iter <= 50
    assert np.isfinite(result.coef).all()


@pytest.mark.parametrize("norm", zoo.NORM_NAMES)
@pytest.mark.parametrize("seed", range(6))
def test_planted_solutions_are_found(norm, seed):
    case = zoo.planted(seed, norm=norm)
    result = drlogit.solve(case.X, case.y, tol=1e-9, **case.options)
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(case.objective, abs=2e-9)
    assert result.lam == pytest.approx(case.lam, rel=1e-3)


@pytest.mark.parametrize("k", range(0, 1260, 9))
def test_stress_grid_is_certified(k):
    _, X, y, options = stress.problem(k)
    result = drlogit.solve(X, y, **options)
    assert result.gap <= 1e-6, (options, result)
    assert result.n_iter <= 50


@pytest.mark.parametrize("norm", zoo.NORM_NAMES)
def test_both_treatments_of_the_hinge_agree(norm):
    X, y = drlogit.datasets.make_synthetic(4000, 5, 0)
    options = {"epsilon": 0.02, "kappa": 0.5, "norm": norm}
    other = drlogit.solve(X, y, tol=1e-7, solver="conic", **options)
    for hinge in ("barrier", "smoothed"):
        one = drlogit.solve(X, y, tol=1e-7, hinge=hinge, **options)
        assert one.gap <= 1e-7
        assert one.info["hinge"].startswith(hinge)
        assert one.objective == pytest.approx(other.objective, abs=2e-7)


def test_unknown_treatment_is_refused():
    X, y = drlogit.datasets.make_synthetic(50, 2, 0)
    with pytest.raises(ValueError, match="hinge must be 'auto', 'barrier' or 'smoothed', got 'x'"):
        drlogit.solve(X, y, epsilon=0.1, kappa=1, hinge="x")


@pytest.mark.parametrize("n_blocks", [2, 5, 17])
@pytest.mark.parametrize("kappa", [1.0, np.inf])
def test_answer_does_not_depend_on_the_blocks(n_blocks, kappa):
    X, y = drlogit.datasets.make_synthetic(300, 4, 1)
    answers = []
    for blocks in (1, n_blocks):
        problem = build_problem(X, y, epsilon=0.02, kappa=kappa, n_blocks=blocks)
        solution = interior_point(problem, tol=1e-9, monitor=Monitor())
        answers.append((problem.objective(solution.coefficients), solution.n_iter))
    assert answers[0][0] == pytest.approx(answers[1][0], abs=1e-9)
    assert answers[0][1] == answers[1][1]


@pytest.mark.parametrize("case", zoo.ZOO[::3], ids=repr)
def test_wide_system_gives_the_same_answer(case, monkeypatch):
    direct = drlogit.solve(case.X, case.y, **case.options)
    monkeypatch.setattr(wide_system, "DENSE_LIMIT", 0)
    factored = drlogit.solve(case.X, case.y, **case.options)
    assert factored.gap <= 1e-6
    assert factored.objective == pytest.approx(direct.objective, abs=2e-6)
    monkeypatch.setattr(wide_system, "FACTOR_LIMIT", 0)
    iterative = drlogit.solve(case.X, case.y, **case.options)
    assert iterative.gap <= 1e-6


def test_iterations_do_not_grow_with_samples():
    counts = []
    for n_samples in (100, 1000, 10_000, 100_000):
        X, y = drlogit.datasets.make_synthetic(n_samples, 10, 0)
        result = drlogit.solve(X, y, epsilon=0.1, kappa=1.0)
        assert result.gap <= 1e-6
        counts.append(result.n_iter)
    assert max(counts) <= 25, counts


def test_running_out_of_iterations_returns_the_best_point():
    X, y = drlogit.datasets.make_synthetic(500, 10, 0)
    result = drlogit.solve(X, y, epsilon=0.01, kappa=0.25, max_iter=4)
    assert result.status is Status.MAX_ITER
    assert result.n_iter == 4
    assert 1e-6 < result.gap < 0.7
    assert result.objective < np.log(2.0)


def test_callback_stops_and_sees_certified_gaps():
    X, y = drlogit.datasets.make_synthetic(500, 10, 0)
    best = drlogit.solve(X, y, epsilon=0.01, kappa=0.25, tol=1e-9).objective
    seen = []

    def watch(iterate):
        seen.append(iterate)
        return len(seen) == 6

    result = drlogit.solve(X, y, epsilon=0.01, kappa=0.25, callback=watch)
    assert result.status is Status.STOPPED
    assert len(seen) == len(result.trace) == 6
    for iterate in seen:
        assert iterate.dual_objective <= best + 1e-12
        assert iterate.objective >= best - 1e-9


def test_separable_data_at_zero_radius_reach_the_infimum():
    X = np.array([[1.0], [2.0], [-1.0], [-3.0]])
    result = drlogit.solve(X, [1, 1, 0, 0], epsilon=0.0, kappa=1.0)
    assert result.status is Status.OPTIMAL
    assert result.objective <= 1e-6


@pytest.mark.parametrize("cone_type", [BoxCone, SecondOrderCone, CrossPolytopeCone])
def test_cone_step_solves_its_linearised_equations(cone_type):
    """``gradient`` after a step equals what ``curvature`` and ``drive`` predicted."""
    rng = np.random.default_rng(0)
    theta, lam = 0.1 * rng.standard_normal(5), 1.7
    cone = cone_type.at(theta, lam, 0.3)
    # Off the central path, so that nothing cancels by symmetry.
    first = cone.direction(0.05 * rng.standard_normal(5), 0.02, cone.centred(0.2))
    cone = cone.moved(first, (0.7, 0.7))
    aim = cone.centred(0.1)
    dtheta, dlam = 0.01 * rng.standard_normal(5), -0.03
    step = cone.direction(dtheta, dlam, aim)
    after_theta, after_lam = cone.moved(step, (1.0, 1.0)).gradient()
    before_theta, before_lam = cone.gradient()
    drive_theta, drive_lam = cone.drive(aim)
    curve = cone.curvature()
    along = curve.weight * (float(curve.column @ dtheta) + dlam)
    change = curve.diagonal * dtheta + curve.coupling * dlam + along * curve.column
    change_lam = float(curve.coupling @ dtheta) + curve.corner * dlam + along
    np.testing.assert_allclose(after_theta - before_theta, change + drive_theta, atol=1e-12)
    assert after_lam - before_lam == pytest.approx(change_lam + drive_lam, abs=1e-12)


@pytest.mark.parametrize("cone_type", [BoxCone, SecondOrderCone, CrossPolytopeCone])
def test_longest_cone_step_ends_on_the_boundary(cone_type):
    rng = np.random.default_rng(1)
    cone = cone_type.at(0.1 * rng.standard_normal(4), 1.0, 0.1)
    step = cone.direction(3.0 * rng.standard_normal(4), -0.5, cone.affine())
    primal, dual = cone.longest(step)
    alpha = min(primal, dual)
    assert 0.0 < alpha < np.inf
    inside = cone.moved(step, (0.999 * alpha, 0.999 * alpha))
    assert inside.complementarity() > 0.0
    if cone_type is SecondOrderCone:
        assert inside.slack[0] >= np.linalg.norm(inside.slack[1:])
        assert inside.multiplier[0] >= np.linalg.norm(inside.multiplier[1:])
    else:
        assert (inside.slack > 0.0).all()
        assert (inside.multiplier > 0.0).all()


@pytest.mark.parametrize("cone_type", [BoxCone, SecondOrderCone])
def test_corrected_cone_steps_leave_the_central_path_by_third_order(cone_type):
    rng = np.random.default_rng(2)
    theta, lam, mu = 0.1 * rng.standard_normal(4), 1.0, 0.3
    dtheta, dlam = rng.standard_normal(4), 0.7
    cone = cone_type.at(theta, lam, mu)

    def distance(size, share):
        way = size * dtheta, size * dlam
        first = cone.direction(*way, cone.centred(mu))
        step = cone.direction(*way, cone.corrected(mu, first, share))
        there = cone_type.at(theta + way[0], lam + way[1], mu)
        return np.abs(cone.moved(step, (1.0, 1.0)).multiplier - there.multiplier).max()

    assert 3.7 <= distance(2e-3, 0.0) / distance(1e-3, 0.0) <= 4.3  # by second order
    assert 7.5 <= distance(2e-3, 1.0) / distance(1e-3, 1.0) <= 8.5


@pytest.mark.parametrize("cone_type", [BoxCone, CrossPolytopeCone])
def test_outliers_of_a_cone_are_brought_back(cone_type):
    rng = np.random.default_rng(3)
    cone = cone_type.at(0.1 * rng.standard_normal(4), 1.0, 0.3)
    aim, trial, centre = cone.centred(0.02), (0.9, 0.8), 0.02
    step = cone.direction(0.2 * rng.standard_normal(4), 0.1, aim)
    there = cone.moved(step, trial)
    products, target = there.slack * there.multiplier, centre * cone.weight
    back = cone.recentred(aim, step, trial, centre) - aim
    outside = (products < 0.1 * target) | (products > 10.0 * target)
    assert 0 < outside.sum() < outside.size
    np.testing.assert_array_equal(back != 0.0, outside)
    after = products + back
    assert (np.abs(np.log10(after / target)) <= 1.0 + 1e-12).all()


@pytest.mark.parametrize("kappa", [0.5, np.inf])
def test_a_matrix_that_cannot_be_factored_ends_the_run_with_a_certificate(kappa, monkeypatch):
    calls = []

    def fails(*arguments, **options):
        calls.append(1)
        if len(calls) > 3:
            raise LinAlgError("not positive definite")
        return reduced_system(*arguments, **options)

    case = zoo.ZOO[0]
    best = drlogit.solve(case.X, case.y, epsilon=0.03, kappa=kappa)
    monkeypatch.setattr("drlogit.solvers.interior_point.predictor_corrector.reduced_system", fails)
    result = drlogit.solve(case.X, case.y, epsilon=0.03, kappa=kappa)
    assert not result.converged
    assert np.isfinite(result.coef).all()
    assert result.dual_objective - 1e-12 <= best.objective <= result.objective + 1e-12
    assert result.gap >= result.objective - best.objective - 1e-9


def test_the_rounded_kink_narrows_only_after_long_steps():
    """Narrowed after short ones, too, it takes half as many iterations again (76) here."""
    total = 0
    for seed in (2, 4, 11):
        rng = np.random.default_rng(seed)
        X = (rng.random((600, 15)) < rng.uniform(0.05, 0.6, 15)).astype(float)
        score = X @ (2.0 * rng.standard_normal(15)) + 0.5 * rng.logistic(size=600)
        result = drlogit.solve(
            X, score > np.median(score), epsilon=0.05, kappa=1.0, hinge="smoothed"
        )
        assert result.converged
        total += result.n_iter
    assert total <= 60


def test_steps_that_eat_up_the_complementarity_are_held_back():
    """Taken at full length they cost a sixth as many iterations again (63) here."""
    total = 0
    for k in (132, 306, 536):
        _, X, y, options = stress.problem(k)
        result = drlogit.solve(X, y, **options)
        assert result.converged
        total += result.n_iter
    assert total <= 58


def test_centrality_corrections_save_iterations(monkeypatch):
    """An eighth of them (48 instead of 55) here."""
    totals = []
    for corrections in (barrier.CORRECTIONS, 0):
        monkeypatch.setattr(barrier, "CORRECTIONS", corrections)
        totals.append(0)
        for seed in (2, 3):
            X, y = drlogit.datasets.make_synthetic(300, 70, seed)
            for norm in zoo.NORM_NAMES:
                result = drlogit.solve(
                    X, y, epsilon=0.01, kappa=0.5, norm=norm, tol=1e-8, hinge="barrier"
                )
                assert result.converged
                totals[-1] += result.n_iter
    assert totals[0] <= totals[1] - 4
