"""X in a file that is mapped: the answers of memory, and no copies."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from benchmarks import stated

import drlogit
import zoo
from drlogit.fitting.solving import solve_problem
from drlogit.starts import sample
from zoo import thin_data as data

OPTIONS = {"epsilon": 0.05, "kappa": 0.7}


@pytest.mark.parametrize("n_jobs", [1, 3])
@pytest.mark.parametrize("offset", [0.0, 1e4])  # columns far from zero are shifted
def test_fits_read_the_file_where_it_lies(offset, n_jobs):
    X, y = data()
    stored = zoo.mapped(X + offset)
    rows = stated.problem(stored, y, n_jobs=n_jobs, **OPTIONS).rows
    assert not rows.in_memory
    assert rows.compact is None
    for block in rows.blocks:
        assert np.shares_memory(block.X.array if offset else block.X, stored)
    assert stated.problem(stored[np.arange(300)], y, **OPTIONS).rows.in_memory  # these are copies
    result, reference = (stated.solve(x, y, tol=1e-10, **OPTIONS) for x in (stored, X))
    assert result.objective == pytest.approx(reference.objective, abs=1e-9)


def test_every_entry_point():
    X, y = data()
    stored = zoo.mapped(X)
    limits = [stated.epsilon_max(x, y, kappa=1.0) for x in (X, stored)]
    assert limits[0] == pytest.approx(limits[1], rel=1e-6)
    model = stated.classifier(**OPTIONS).fit(stored, y)
    assert model.dual_gap_ <= 1e-6
    np.testing.assert_array_equal(model.predict(stored), model.predict(X))
    there, here = (drlogit.audit(model, x, y) for x in (stored, X))
    assert str(there) == str(here)
    search = stated.search(epsilons=4, kappas=(0.7,), cv=3)
    scores = [search.fit(x, y).cv_results_["mean_test_score"] for x in (X, stored)]
    np.testing.assert_allclose(*scores, rtol=1e-9)


def test_rows_in_a_file_take_the_path_of_rows_in_memory():
    """Also where more than a few of the rows are near the kink."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100_000, 40))
    y = X @ rng.standard_normal(40) / 8 + rng.logistic(size=100_000) > 0.0
    there, here = (
        stated.solve(x, y, epsilon=0.1, kappa=1.0, n_jobs=1).info["grams"]
        for x in (zoo.mapped(X), X)
    )
    assert there == pytest.approx(here, abs=0.01)


@pytest.mark.parametrize(("kind", "n_classes"), [("numbers", 2), ("moved", 3), ("categories", 2)])
def test_what_is_kept_of_rows_in_a_file_is_in_files(kind, n_classes, monkeypatch):
    """Many blocks, and a fraction of the memory that the same fit takes of arrays in memory."""
    monkeypatch.setattr("drlogit.rows.local._MAPPED_ROWS", 1000)
    monkeypatch.setattr("drlogit.rows.on_disk._LARGE", 0)
    rng = np.random.default_rng(0)
    X = np.column_stack([np.eye(4)[rng.integers(4, size=5_000)], rng.normal(size=(5_000, 3))])
    y = (X @ rng.normal(size=(7, n_classes)) + rng.gumbel(size=(5_000, n_classes))).argmax(axis=1)
    X[:, 6] += 1e4 * (kind == "moved")
    groups = {"categories": [[0, 1, 2, 3]]} if kind == "categories" else {}
    found, peaks = [], []
    for x in (zoo.mapped(X), X):
        tracemalloc.start()
        try:
            problem = stated.problem(x, y, **OPTIONS, **groups, n_jobs=1)
            found.append(solve_problem(problem, tol=1e-7, solver="interior-point"))
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    assert found[0].objective == pytest.approx(found[1].objective, abs=1e-7)
    assert found[0].gap <= 1e-7
    assert peaks[0] <= 0.4 * peaks[1]


def test_errors_name_the_row():
    X, y = data(30_000)
    X[25_000, 2] = np.nan
    with pytest.raises(ValueError, match="NaN in row 25000 of column 2"):
        stated.problem(zoo.mapped(X), y, **OPTIONS)


@pytest.mark.slow
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_fit_keeps_to_the_limit_of_what_it_may_gather(n_jobs, monkeypatch):
    """Mostly zeros, too: of these in memory, a sparse copy would be made."""
    monkeypatch.setattr(sample, "_MOST_ENTRIES", 500_000)
    rng = np.random.default_rng(0)
    X = np.where(rng.random((50_000, 200)) < 0.2, rng.standard_normal((50_000, 200)), 0.0)
    y = X[:, 0] + 0.5 * rng.standard_normal(50_000) > 0.0
    stored = zoo.mapped(X)
    tracemalloc.start()
    try:
        result = stated.solve(stored, y, epsilon=0.1, kappa=1.0, n_jobs=n_jobs)
        assert tracemalloc.get_traced_memory()[1] <= X.nbytes // 4
    finally:
        tracemalloc.stop()
    assert result.gap <= 1e-6
