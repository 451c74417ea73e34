"""Several blocks at a time: same answers, settings carried along, BLAS held back."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController

import drlogit
from drlogit.problem.problem import build_problem
from drlogit.rows import threads
from drlogit.rows.local import LocalRows
from drlogit.rows.reductions import Sum
from zoo import thin_data as data

OPTIONS = {"epsilon": 0.05, "kappa": 0.7}


def test_blocks_are_visited_in_threads_of_their_own_and_merged_in_order():
    X, y = data()
    whole = build_problem(X, y, n_jobs=7, **OPTIONS).rows
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
    rows = build_problem(X, y, n_jobs=2, **OPTIONS).rows
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
    assert len(build_problem(X, y, **OPTIONS).rows.blocks) == 1
    assert len(build_problem(X.T, np.arange(2000) % 2, **OPTIONS).rows.blocks) == 4
    assert len(build_problem(X[:3], [0, 1, 1], n_jobs=8, **OPTIONS).rows.blocks) == 3


def test_blas_is_held_back_during_a_fit_and_let_go_after():
    threads._blas.cache_clear()  # libraries that other tests loaded since are held back, too
    blas = ThreadpoolController().select(user_api="blas")
    X, y = data(400, 80)
    seen = []

    def watch(_):
        seen.extend(library.num_threads for library in blas.lib_controllers)

    with blas.limit(limits=2):
        # Not every library that is loaded by now need follow.
        before = [library.num_threads for library in blas.lib_controllers]
        drlogit.solve(X, y, callback=watch, **OPTIONS)
        after = [library.num_threads for library in blas.lib_controllers]
    assert 2 in before
    assert set(seen) == {1}
    assert after == before
