"""X in row blocks that are read when needed: same answers, little memory, errors with a place."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.model_selection import GridSearchCV, ShuffleSplit

import drlogit
from drlogit.problem.problem import build_problem
from zoo import thin_data as data

pytestmark = pytest.mark.slow

OPTIONS = {"epsilon": 0.05, "kappa": 0.7}
CUT = [10, 100, 0, 170, 20]


def in_blocks(X, lengths):
    ends = np.cumsum(lengths)
    return drlogit.RowBlocks(lambda k: X[ends[k] - lengths[k] : ends[k]], lengths, X.shape[1])


FORMATS = {
    "float64": np.asarray,
    "float32": lambda X: X.astype(np.float32),
    "sparse": sp.csr_array,
    "csc": sp.csc_matrix,
}


def test_lp_admm_and_the_other_entry_points():
    X, y = data()
    blocks = in_blocks(X, CUT)
    options = {"solver": "lp-admm", "tol": 1e-8, **OPTIONS}
    one, other = (drlogit.solve(x, y, **options) for x in (X, blocks))
    assert one.objective == pytest.approx(other.objective, abs=2e-8)
    assert drlogit.solve(blocks, y, start=other, **options).converged
    fixed = [drlogit.solve_subproblem(x, y, lam=1.0, **OPTIONS).objective for x in (X, blocks)]
    assert fixed[0] == pytest.approx(fixed[1], abs=2e-6)
    limits = [drlogit.epsilon_max(x, y, kappa=1.0) for x in (X, blocks)]
    assert limits[0] == pytest.approx(limits[1], rel=1e-6)
    model = drlogit.DRLogisticRegression(**OPTIONS).fit(blocks, y)
    np.testing.assert_array_equal(model.predict(blocks), model.predict(X))
    assert model.predict_proba(blocks).shape == (300, 2)


@pytest.mark.parametrize("order", ["C", "F"])
def test_memory_maps_are_fitted_block_by_block(tmp_path, order, monkeypatch):
    X, y = data()
    np.save(tmp_path / "X.npy", np.asarray(X, dtype=np.float32, order=order))
    monkeypatch.setattr("drlogit.rows.row_blocks.BLOCK_BYTES", 24 * 70)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    rows = build_problem(mapped, y, **OPTIONS).rows
    assert [rows.blocks[k].opened().y.size for k in range(5)] == [70, 70, 70, 70, 20]
    assert all(rows.blocks[k].opened().X.dtype == np.float32 for k in range(5))
    result = drlogit.solve(mapped, y, tol=1e-10, **OPTIONS)
    reference = drlogit.solve(X, y, tol=1e-10, **OPTIONS)
    assert result.objective == pytest.approx(reference.objective, abs=1e-9)


@pytest.mark.parametrize("kind", FORMATS)
def test_rows_are_picked_from_the_blocks(kind):
    X, _ = data()
    lengths = CUT
    ends = np.cumsum(lengths)
    blocks = drlogit.RowBlocks(
        lambda k: FORMATS[kind](X[ends[k] - lengths[k] : ends[k]]), lengths, 6, list("abcdef")
    )
    rows = np.sort(np.random.default_rng(0).choice(np.arange(12, 300), 100, replace=False))
    for key in (rows, np.isin(np.arange(300), rows), (rows, ...)):
        picked = blocks[key]
        assert picked.shape == (100, 6)
        assert picked.lengths[0] == 0  # the first ten rows: their block is not even read
        assert picked.feature_names == list("abcdef")
        for k in picked.filled:
            assert picked.block(k).shape == (picked.lengths[k], 6)
        whole = picked.map(lambda block: block.toarray() if sp.issparse(block) else block)
        np.testing.assert_array_equal(whole, X[rows])
    np.testing.assert_array_equal(blocks[10:110].block(1).shape, (100, 6))
    for key in (rows[::-1], [3, 3], 3, []):
        with pytest.raises(ValueError, match="in ascending order, each once"):
            blocks[key]
    with pytest.raises(TypeError, match="not in memory as a whole"):
        np.asarray(blocks)


@pytest.mark.parametrize(
    "cv", [3, ShuffleSplit(2, random_state=0), [(np.arange(300) < 200, np.arange(300) >= 200)]]
)
def test_cross_validation_of_blocks(cv):
    X, y = data()
    weights = np.random.default_rng(1).random(300)
    options = {"epsilons": 4, "kappas": (0.7,), "cv": cv, "tol": 1e-8}
    whole = drlogit.DRLogisticRegressionCV(**options).fit(X, y, sample_weight=weights)
    blocks = in_blocks(X, CUT)
    found = drlogit.DRLogisticRegressionCV(**options).fit(blocks, y, sample_weight=weights)
    assert found.epsilon_ == pytest.approx(whole.epsilon_, rel=1e-6)
    for name in ("param_epsilon", "mean_test_score", "std_test_score"):
        np.testing.assert_allclose(
            found.cv_results_[name], whole.cv_results_[name], rtol=1e-4, atol=1e-9
        )
    np.testing.assert_allclose(found.coef_, whole.coef_, atol=1e-4)


def test_searches_of_scikit_learn_take_blocks():
    X, y = data()
    model = drlogit.DRLogisticRegression(kappa=0.7)
    grid = {"epsilon": [0.02, 0.05]}
    found = GridSearchCV(model, grid, cv=3, scoring="neg_log_loss").fit(in_blocks(X, CUT), y)
    whole = GridSearchCV(model, grid, cv=3, scoring="neg_log_loss").fit(X, y)
    np.testing.assert_allclose(
        found.cv_results_["mean_test_score"], whole.cv_results_["mean_test_score"], rtol=1e-4
    )


def test_blocks_are_read_only_by_functions_that_need_them():
    X, y = data()
    reads = []

    def read(k):
        reads.append(k)
        return X[100 * k : 100 * k + 100]

    problem = build_problem(drlogit.RowBlocks(read, [100] * 3, 6), y, **OPTIONS)
    assert reads == [0, 1, 2]  # checked, counted and measured in one pass
    _ = problem.rows.column_scale, problem.rows.weights(), problem.rows.signs()
    assert len(reads) == 3
    margins = problem.margins(np.ones(7))
    assert len(reads) == 6
    problem.flip_loss(np.ones(7), margins).best(problem.epsilon)
    problem.flip_loss(np.ones(7), margins).value(problem.epsilon, 9.0)
    assert len(reads) == 6


def test_errors_name_the_block():
    X, y = data()
    X[150, 2] = np.nan
    with pytest.raises(ValueError, match=r"block 3 of X \(rows 110 to 279\).*NaN"):
        build_problem(in_blocks(X, CUT), y, **OPTIONS)
    blocks = drlogit.RowBlocks(lambda k: X[:100], [100, 101, 99], 6)
    with pytest.raises(ValueError, match=r"block 1 .* must have shape \(101, 6\), got \(100, 6\)"):
        build_problem(blocks, y, **OPTIONS)
    with pytest.raises(ValueError, match="one label per row of X: 300, got 299"):
        build_problem(in_blocks(X, CUT), y[:-1], **OPTIONS)
    for lengths in ([], [3, -1], [0, 0]):
        with pytest.raises(ValueError, match="lengths must be"):
            drlogit.RowBlocks(lambda k: X, lengths, 6)
    with pytest.raises(ValueError, match="block_rows must be at least 1"):
        drlogit.RowBlocks.from_array(X, 0)
    with pytest.raises(ValueError, match=r"two dimensions, got shape \(300,\)"):
        drlogit.RowBlocks.from_array(X[:, 0])


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_data_that_turn_bad_during_the_fit_are_an_error(n_jobs):
    X, y = data()
    blocks = in_blocks(X, [16] * 16 + [44])

    def spoil(iterate):
        if iterate.n_iter == 2:
            X[40] = np.nan

    with pytest.raises(ValueError, match=r"block 2 of X \(rows 32 to 47\).*NaN"):
        drlogit.solve(blocks, y, callback=spoil, n_jobs=n_jobs, **OPTIONS)


@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak of memory as Linux reports it")
def test_a_fit_needs_a_quarter_of_the_memory_of_its_data(tmp_path):
    """Resident memory, beyond what a small fit of the same width takes.

    Not by a limit on addresses: how many of them threads and their heaps reserve, tens of megabytes
    without touching them, differs from machine to machine.
    """
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100_000, 200))
    y = X[:, 0] + 0.5 * rng.standard_normal(100_000) > 0.0
    for name, rows in (("small", 4000), ("large", 100_000)):
        np.save(tmp_path / f"{name}-X.npy", X[:rows])
        np.save(tmp_path / f"{name}-y.npy", y[:rows])
    script = f"""
        import re, drlogit
        import numpy as np
        from pathlib import Path
        def peak_after_fit(name):
            stem = {str(tmp_path)!r} + "/" + name
            y = np.load(stem + "-y.npy")
            def read(k):  # a map that is kept would count as memory
                return np.array(np.load(stem + "-X.npy", mmap_mode="r")[1000 * k : 1000 * (k + 1)])
            X = drlogit.RowBlocks(read, [1000] * (y.size // 1000), {X.shape[1]})
            assert drlogit.solve(X, y, epsilon=0.1, kappa=1.0, tol=1e-4).gap <= 1e-4
            status = Path("/proc/self/status").read_text()
            return 1024 * int(re.search(r"VmHWM:\\s*(\\d+) kB", status).group(1))
        before = peak_after_fit("small")
        needed = peak_after_fit("large") - before
        assert 0 < needed <= {X.nbytes // 4}, f"{{needed}} bytes for {X.nbytes} of data"
    """
    # Two threads on any machine: each has a block and a Gram matrix of its own.
    environment = {**os.environ, "OMP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "1"}
    subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=True, env=environment)
