"""The engine on problems without domains: certified, and the same wherever the samples are."""

from __future__ import annotations

import pickle
import threading
from itertools import product

import numpy as np
import pytest
from benchmarks import problems, stated

import drlogit
import zoo
from drlogit.dual import _certificate
from drlogit.engine import _labels
from drlogit.engine.interior_point import interior_point
from drlogit.engine.labels import LabelSamples, LabelScaling
from drlogit.engine.settings import SETTINGS
from drlogit.fitting.solving import solve_problem
from drlogit.problem import _losses
from drlogit.problem.result import Monitor, Status
from drlogit.rows import _products


@pytest.mark.parametrize("case", zoo.ZOO, ids=repr)
def test_zoo_is_certified(case):
    result = zoo.by_matrices(case.X, case.y, **case.options)
    assert result.status is Status.OPTIMAL
    assert result.gap <= 1e-6
    assert np.isfinite(result.coef).all()


@pytest.mark.parametrize("norm", zoo.NORM_NAMES)
@pytest.mark.parametrize("seed", range(6))
def test_planted_solutions_are_found(norm, seed):
    case = zoo.planted(seed, norm=norm)
    result = stated.solve(case.X, case.y, tol=1e-9, **case.options)
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(case.objective, abs=2e-9)
    assert result.lam == pytest.approx(case.lam, rel=1e-3)


@pytest.mark.parametrize("k", range(0, 1260, 9))
def test_stress_grid_is_certified(k):
    problem = problems.numbers(k)
    result = problem.solve()
    assert result.gap <= 1e-6, (problem.options, result)


def test_fits_of_the_same_samples_in_two_threads_do_not_disturb_each_other():
    X, y = zoo.logistic_data(20_000, 30)
    problem = stated.problem(X.astype(np.float32), y, epsilon=0.02, kappa=1.0)
    wanted = interior_point(problem, tol=1e-6, monitor=Monitor()).coefficients
    found = []

    def fit():
        found.append(interior_point(problem, tol=1e-6, monitor=Monitor()).coefficients)

    threads = [threading.Thread(target=fit) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for coefficients in found:
        np.testing.assert_array_equal(coefficients, wanted)


def test_loops_refuse_arrays_of_other_lengths():
    """Once per visit, in every build: nothing behind the end of an array is read."""
    X, y = zoo.logistic_data(50, 4)
    rows = stated.problem(X, y, epsilon=0.02, kappa=1.0).rows
    block, other = rows.blocks[0], stated.problem(X[:40], y[:40], epsilon=0.02, kappa=1.0).rows
    coef, none, own = np.ones(6), np.zeros((0, 0)), np.ones(50, np.int32)
    kappa = np.zeros((2, 50))
    state = _labels.open_labels(block.compiled, own, kappa, none, coef, 0.1)
    plain = _labels.open_labels(block.compiled, own, None, none, coef, 0.1)
    state, _ = _labels.linearise_labels(block.compiled, state, coef, 0.0, 0.0)
    short, half = other.blocks[0].compiled, np.full((2, 49), 0.5)
    wrong = [
        (_labels.open_labels, block.compiled, own[1:], kappa, none, coef, 0.1),
        (_labels.open_labels, block.compiled, own, half, none, coef, 0.1),
        (_labels.open_labels, block.compiled, own, kappa, half, coef, 0.1),
        (_labels.open_labels, block.compiled, own, kappa, none, coef[1:], 0.1),
        (_labels.linearise_labels, short, state, coef, 0.0, 0.0),
        (_labels.linearise_labels, block.compiled, state, coef[1:], 0.0, 0.0),
        (_labels.predict_labels, short, state, coef),
        (_labels.predict_labels, block.compiled, plain, coef),
        (_labels.correct_labels, block.compiled, state, coef, 0.1, 1.0),
        (_labels.certify_labels, short, state, coef),
        (_labels.certify_labels, block.compiled, (state, np.stack([half, half])), coef),
        (_losses.log_loss_sum, np.ones(3), np.ones(2)),
        (_losses.flip_sums, np.ones(3), np.ones(3), np.ones(2), None),
        (_certificate.label_sums, block.compiled, None, coef[None, 1:], half[None], 1.0, None),
        (_products.weighted_gram, block.compiled, np.ones(49)),
        (_products.compiled_rows, X, y[1:], block.weights, True),
    ]
    for function, *arguments in wrong:
        with pytest.raises(ValueError, match="lengths"):
            function(*arguments)


def test_a_block_keeps_what_a_table_fit_worked_out_but_not_in_a_pickle():
    X, y, options = problems.domain_case(5)
    problem = stated.problem(X, y, **options)
    solve_problem(problem, tol=1e-6)
    rows, _ = problem.rows.compact or (problem.rows, None)
    for block in rows.blocks:
        assert block.kept
        again = pickle.loads(pickle.dumps(block))
        assert not again.kept
        np.testing.assert_array_equal(again.y, block.y)


def test_states_are_not_changed_by_visits_and_survive_a_journey():
    X, y = zoo.logistic_data(300, 4)
    problem = stated.problem(X, y, epsilon=0.02, kappa=1.0)
    newton = LabelScaling(problem).newton(0.02)
    samples = LabelSamples(problem, newton)
    newton.open(np.array([0.0, 0.0, 0.0, 0.0, 0.0, 1.0]), SETTINGS.start_mu)
    state = samples.open(newton.trial(0.0), SETTINGS.start_mu)
    coef = newton.trial(0.0)
    state, sums = samples.linearise(state, coef, 0.0, 0.0, 0.05)
    newton.move(0.0, 0.0)
    assert newton.linearise(sums)
    before = pickle.dumps(state)
    state, predicted = samples.predict(state, newton.predictor())
    state, _ = samples.correct(state, newton.corrector(0.02, 0.5, predicted), 0.02, 0.5)
    with_step = pickle.dumps(state)
    one = samples.linearise(state, newton.trial(0.5), 0.5, 0.5, 0.05)[1]
    samples.linearise(state, newton.trial(0.25), 0.25, 0.25, 0.05)
    travelled = pickle.loads(with_step)
    again = samples.linearise(travelled, newton.trial(0.5), 0.5, 0.5, 0.05)[1]
    np.testing.assert_array_equal(one, again)
    assert pickle.dumps(state) == with_step
    assert pickle.dumps(samples.linearise(pickle.loads(before), coef, 0.0, 0.0, 0.05)[0]) == before


def test_running_out_of_iterations_returns_the_best_point():
    X, y = zoo.logistic_data(500, 10)
    result = stated.solve(X, y, epsilon=0.01, kappa=0.25, max_iter=4)
    assert result.status is Status.MAX_ITER
    assert result.n_iter == 4
    assert 1e-6 < result.gap < 0.7
    assert result.objective < np.log(2.0)


def test_watching_costs_nothing_unless_somebody_looks():
    X, y = drlogit.datasets.make_synthetic(2000, 20, random_state=0)

    def work(callback):
        return stated.solve(X, y, epsilon=0.05, kappa=1.0, callback=callback)

    alone = work(None)
    gaps = []
    for look in (lambda it: None, lambda it: it.n_iter + it.objective + it.lam < 0.0):
        watched = work(look)
        assert watched.info["visits"] == alone.info["visits"]
        np.testing.assert_array_equal(watched.coef, alone.coef)
    looked = work(lambda it: gaps.append(it.gap))
    assert looked.info["visits"] > alone.info["visits"]
    # Looking changes nothing but what is seen, and what is seen is a bound.
    np.testing.assert_array_equal(looked.coef, alone.coef)
    assert looked.gap == pytest.approx(alone.gap, abs=1e-9)
    assert len(gaps) == len(looked.trace)
    np.testing.assert_allclose(looked.trace.column("gap"), gaps)
    assert (looked.trace.column("dual_objective") <= alone.objective + 1e-12).all()
    assert (looked.trace.column("objective") >= alone.dual_objective - 1e-12).all()
    assert (looked.trace.column("dual_objective")[:5] > 0.0).any()  # not the trivial one
    assert (alone.trace.column("dual_objective") <= looked.trace.column("dual_objective")).all()
    stopped = work(lambda it: it.n_iter == 4)
    assert stopped.status is Status.STOPPED
    assert stopped.trace.iterates[-1].n_iter == 4
    assert stopped.dual_objective <= alone.objective + 1e-12


def test_separable_data_at_zero_radius_reach_the_infimum():
    X = np.array([[1.0], [2.0], [-1.0], [-3.0]])
    result = stated.solve(X, [1, 1, 0, 0], epsilon=0.0, kappa=1.0)
    assert result.status is Status.OPTIMAL
    assert result.objective <= 1e-6


def test_blocks_without_weight_do_no_harm():
    X, y = zoo.logistic_data(400, 6)
    options = {"epsilon": 0.01, "kappa": 0.3}
    weights = np.repeat([0.0, 1.0], 200)
    problem = stated.problem(X, y, sample_weight=weights, n_jobs=4, **options)
    found = interior_point(problem, tol=1e-7, monitor=Monitor(None, 0))
    wanted = stated.solve(X[200:], y[200:], tol=1e-7, **options)
    assert found.status is Status.OPTIMAL
    assert problem.objective(found.coefficients) == pytest.approx(wanted.objective, abs=2e-7)


def test_samples_without_weight_change_nothing():
    for seed, light in product((7, 4), (0.0, 1e-13)):
        X, y = zoo.logistic_data(80, 40, seed)
        weights = np.random.default_rng(seed).integers(0, 4, 80)
        options = {"epsilon": 1e-5, "kappa": 0.3, "norm": "l2"}
        there = weights > 0
        alone = stated.solve(X[there], y[there], sample_weight=weights[there], **options)
        result = stated.solve(X, y, sample_weight=np.where(there, weights, light), **options)
        assert alone.gap <= 1e-6
        assert result.gap <= 1e-6
        assert result.objective == pytest.approx(alone.objective, abs=2e-6)
