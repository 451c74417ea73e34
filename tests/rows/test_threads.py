"""Several blocks at a time: same answers, settings carried along, BLAS held back."""

from __future__ import annotations

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from benchmarks import stated
from threadpoolctl import ThreadpoolController

import drlogit
import zoo
from drlogit.robustness.hulls import Hull
from drlogit.rows import threads
from drlogit.rows.local import LocalRows
from drlogit.rows.reductions import Sum
from drlogit.rows.threads import one_blas_thread
from zoo import thin_data as data

OPTIONS = {"epsilon": 0.05, "kappa": 0.7}


def test_blocks_are_visited_in_threads_of_their_own_and_merged_in_order():
    X, y = data()
    whole = stated.problem(X, y, n_jobs=7, **OPTIONS).rows
    rows = LocalRows(whole.blocks, 2, n_nonzeros=whole.n_nonzeros)

    def visit(block, state):
        name = threading.current_thread().name
        return name, (Sum([block.y.size]),)

    names, (sizes,) = rows.run(visit)
    assert len(set(names)) <= 2
    assert all(name.startswith("drlogit") for name in names)
    assert sizes == [block.y.size for block in rows.blocks]


def test_what_numpy_ignores_here_it_ignores_there():
    X, y = data()
    rows = stated.problem(X, y, n_jobs=2, **OPTIONS).rows
    divide = lambda block, _: (None, (Sum(float((block.y / np.zeros(1))[0] > 0)),))  # noqa: E731
    with np.errstate(divide="ignore"):
        rows.run(divide)
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        rows.run(divide)


def test_how_many_threads(monkeypatch):
    monkeypatch.setattr(threads, "thread_count", lambda: 8)
    assert threads.threads_for(None, 999_999) == 1
    assert threads.threads_for(None, 1_000_000) == 2
    assert threads.threads_for(None, 10**9) == 8
    assert [threads.threads_for(k, 10) for k in (1, 3, -1, -2, -20)] == [1, 3, 8, 7, 1]
    for wrong in (0, 1.5, True, "2"):
        with pytest.raises(ValueError, match="n_jobs must be"):
            threads.threads_for(wrong, 10)


def test_wide_data_stay_in_one_block(monkeypatch):
    monkeypatch.setattr(threads, "thread_count", lambda: 4)
    X, y = data(1000, 2000)
    assert len(stated.problem(X, y, **OPTIONS).rows.blocks) == 1
    assert len(stated.problem(X.T, np.arange(2000) % 2, **OPTIONS).rows.blocks) == 4
    assert len(stated.problem(X[:3], [0, 1, 1], n_jobs=8, **OPTIONS).rows.blocks) == 3


def shape(samples):
    return "x".join(map(str, samples[0].shape))


@pytest.fixture
def blas():
    """The BLAS libraries at two threads each, if there is more than one core."""
    threads._blas.cache_clear()  # other tests may have loaded libraries since
    found = ThreadpoolController().select(user_api="blas")
    with found.limit(limits=2):
        yield lambda: [library.num_threads for library in found.lib_controllers]


def several_classes(n_samples=60, n_classes=5):
    rng = np.random.default_rng(0)
    return rng.standard_normal((n_samples, 4)), np.arange(n_samples) % n_classes


def table():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.choice(["u", "v"], 60), "b": rng.standard_normal(60)})
    return X, rng.integers(2, size=60)


@pytest.mark.parametrize(
    "samples", [data(400, 80), data(20, 3), data(20, 60), several_classes()], ids=shape
)
def test_blas_is_held_back_during_every_fit_and_let_go_after(blas, samples):
    before, seen = blas(), []
    stated.solve(*samples, callback=lambda _: seen.extend(blas()), **OPTIONS)
    assert set(seen) == {1}
    assert blas() == before
    if len(os.sched_getaffinity(0)) > 1:
        assert 2 in before


@pytest.mark.parametrize("samples", [data(40, 3), several_classes(), table()], ids=shape)
def test_blas_is_held_back_in_searches_and_audits(blas, samples, monkeypatch):
    (X, y), before, seen = samples, blas(), []

    def watch(owner, name):
        original = getattr(owner, name)
        monkeypatch.setattr(
            owner, name, lambda *a, **k: seen.append(max(blas())) or original(*a, **k)
        )

    def scoring(model, X, y):
        seen.append(max(blas()))
        return float(len(seen))  # the smallest radius is the best

    stated.search(3, 2, cv=2, scoring=scoring).fit(X, y)
    model = stated.classifier(0.05, 1.0).fit(X, y)
    watch(Hull, "at")
    ball = {"epsilon": 0.1, "kappa": 1.0}
    zoo.worst_loss(model, X, y, **ball)
    zoo.worst_error(model, X, y, **ball)
    drlogit.audit(model, X, y).to_html()
    assert len(seen) > 10
    assert set(seen) == {1}
    assert blas() == before


def test_fits_at_the_same_time_share_the_limit_and_leave_no_trace(blas):
    """A fit that ends while others run leaves the limit to them; the last one lifts it."""
    before, seen = blas(), []
    X, y = several_classes()
    begun = threading.Barrier(8)

    def fit(number):
        iterations = []

        def watch(_):
            if not iterations:
                begun.wait(60)
            iterations.append(1)
            time.sleep(0.002 * number)  # they end one after another
            seen.extend(blas())

        stated.solve(X, y, callback=watch, **OPTIONS)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(fit, range(8)))
    assert set(seen) == {1}
    assert blas() == before


def test_a_fit_that_fails_lets_go_of_blas(blas):
    before = blas()

    def fail(_):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        stated.solve(*several_classes(), callback=fail, **OPTIONS)
    assert blas() == before


def test_a_limit_of_the_user_comes_back(blas):
    with one_blas_thread:
        with one_blas_thread:
            assert set(blas()) == {1}
        assert set(blas()) == {1}
    with ThreadpoolController().limit(limits=1, user_api="blas"):
        stated.solve(*several_classes(), **OPTIONS)
        assert set(blas()) == {1}
