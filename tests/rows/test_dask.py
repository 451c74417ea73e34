"""Blocks on Dask workers: same answers under every scheduler and chunking, errors with a place.

One small cluster of two processes serves all tests of this file that need one.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time

import numpy as np
import pytest
import scipy.sparse as sp
from benchmarks import stated

import drlogit
from drlogit import Status
from drlogit.fitting.solving import solve_problem
from zoo import thin_data as data

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")

OPTIONS = {"epsilon": 0.05, "kappa": 0.7}
#: Few passes, each of which takes a cluster some milliseconds.
SHORT = {"epsilon": 0.05, "kappa": np.inf, "tol": 1e-9}
ROUGH = {"epsilon": 0.02, "kappa": np.inf, "tol": 1e-3}
CHUNKS = {2: (299, 1), 5: (10, 100, 5, 165, 20)}


def chunked(X, n_chunks):
    return da.from_array(X, chunks=(CHUNKS[n_chunks], -1))


def sparse_blocks(X, n_chunks):
    return chunked(X, n_chunks).map_blocks(sp.csr_matrix)


def assert_same_fit(result, reference):
    assert result.objective == pytest.approx(reference.objective, abs=1e-9)
    assert result.gap <= 1e-9
    np.testing.assert_allclose(result.coef, reference.coef, atol=1e-6)
    flips = np.asarray(result.flip_share)  # on a cluster a Dask array
    assert flips.sum() == pytest.approx(reference.flip_share.sum(), abs=1e-4)


def new_cluster():
    # Warnings of Dask's own machinery, as it starts and ends, are none of ours.
    return distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
    )


@pytest.fixture(scope="module")
def cluster():
    with new_cluster() as cluster:
        yield cluster


@pytest.fixture
def client(cluster):
    with distributed.Client(cluster) as client:
        client.wait_for_workers(2)
        yield client


pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]


def test_estimator_takes_and_gives_dask_arrays():
    X, y = data()
    classes = np.where(y, 2, np.where(X[:, 0] + X[:, 1] > 0.3, 1, 0))
    lazy = chunked(X, 5)
    model = stated.classifier(**ROUGH).fit(lazy, da.from_array(classes, chunks=50))
    plain = stated.classifier(**ROUGH).fit(X, classes)
    np.testing.assert_allclose(model.coef_, plain.coef_, atol=1e-6)
    for method in ("predict", "predict_proba", "predict_log_proba", "decision_function"):
        there, here = getattr(model, method)(lazy), getattr(model, method)(X)
        assert (there.shape, there.dtype) == (here.shape, here.dtype)
        np.testing.assert_allclose(there.compute(), here)
    assert model.score(lazy, classes) == pytest.approx(model.score(X, classes))
    coef = model.coef_
    model.set_params(warm_start=True).fit(lazy, classes)
    np.testing.assert_allclose(model.coef_, coef, atol=0.05)  # another point within the gap
    weights = 1.0 + np.arange(300) % 3
    plain.fit(X, classes, weights)
    np.testing.assert_allclose(model.fit(lazy, classes, weights).coef_, plain.coef_, atol=0.05)
    with pytest.raises(ValueError, match="class_weight must be None if y is a Dask"):
        model.set_params(class_weight="balanced").fit(lazy, da.from_array(classes, chunks=50))


def test_what_needs_rows_in_memory_refuses_dask():
    X, y = data()
    lazy, model = chunked(X, 2), stated.classifier(**ROUGH).fit(X, y)
    ball = drlogit.Ball(0.05)
    for refused in (
        lambda: drlogit.DRLogisticRegressionCV().fit(lazy, y),
        lambda: drlogit.regularization_path(lazy, y, ball),
        lambda: drlogit.audit(model, lazy, y),
        lambda: drlogit.worst_case(model, lazy, y),
        lambda: drlogit.guarantee(model, lazy, y),
        lambda: drlogit.choose_threshold(model, lazy, y, min_recall=0.5),
        lambda: drlogit.measure_shift(model, X, y, lazy),
        lambda: drlogit.verify(stated.solve(X, y, **ROUGH), lazy, y),
        lambda: model.save_proof("nowhere.npz", lazy, y),
    ):
        with pytest.raises(TypeError, match=r"in memory, got a Dask .*draw a sample, or predict"):
            refused()


def test_errors_name_what_is_wrong():
    X, y = data()
    lazy = chunked(X, 5)
    spoiled = X.copy()
    spoiled[112, 3] = np.nan
    for arguments, wrong in (
        ((chunked(spoiled, 5), y), "block 2 of X: X must hold .*NaN in row 2 of column 3"),
        ((lazy[:0], y), "at least one row, got none"),
        ((lazy, da.ones(300, chunks=100, dtype=int)), "at least two classes, got one class: 1"),
        ((lazy, y[:-1]), "y must have 300 entries, got 299"),
        ((lazy, da.from_array(y[:-1], chunks=9)), "y must have 300 entries, got 299"),
        ((lazy, da.from_array(np.where(y, np.nan, 0.0), chunks=99)), "a label for every row"),
        ((lazy, da.from_array(X, chunks=99)), "y must have one dimension, got 2"),
        ((lazy[:, 0], y), "X must have two dimensions, got 1"),
    ):
        with pytest.raises(ValueError, match=wrong):
            stated.solve(*arguments, **OPTIONS)


# --- a cluster ------------------------------------------------------------------------------


def test_two_processes_agree_and_nothing_is_left_behind(client):
    X, y = data()
    result = stated.solve(sparse_blocks(X, 5), y, **SHORT)
    assert isinstance(result.flip_share, da.Array)
    assert_same_fit(result, stated.solve(X, y, **SHORT))
    del result
    deadline = time.monotonic() + 60.0
    while client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks)):
        assert time.monotonic() < deadline, "tasks are left on the scheduler"
        time.sleep(0.05)


def test_a_table_agrees_and_is_fitted_again(client):
    rng = np.random.default_rng(0)
    X = np.column_stack([np.eye(4)[rng.integers(4, size=400)], rng.standard_normal((400, 2))])
    y = np.repeat([0, 1], [280, 120])  # some blocks have one label only
    options = {"kappa": {0: np.inf, 1: 1.0}, "categories": [[0, 1, 2, 3]]}
    there = da.from_array(X, (100, 6)), da.from_array(y, 100)
    problem = stated.problem(*there, epsilon=0.02, **options)
    for epsilon in (0.02, 0.05):
        found = solve_problem(problem.with_radius(epsilon), tol=1e-9)
        whole = stated.solve(X, y, epsilon=epsilon, tol=1e-9, **options)
        assert found.objective == pytest.approx(whole.objective, abs=1e-9)


def test_vectors_of_the_samples_reach_their_workers(client):
    """Classes, costs of flips and weights are cut as X is, wherever they come from."""
    rng = np.random.default_rng(0)
    X, y = data()
    classes = (X[:, :3] + rng.gumbel(size=(300, 3))).argmax(axis=1)
    lazy = chunked(X, 5)
    there = stated.classifier(**ROUGH).fit(lazy, da.from_array(classes, chunks=70))
    here = stated.classifier(**ROUGH).fit(X, classes)
    np.testing.assert_allclose(there.coef_, here.coef_, atol=1e-6)
    kappa, weights = rng.choice([0.5, 1.0, np.inf], 300), 1.0 + np.arange(300) % 3
    costs, shares = da.from_array(kappa, chunks=70), da.from_array(weights, chunks=90)
    result = stated.solve(lazy, y, epsilon=0.05, kappa=costs, sample_weight=shares, tol=1e-9)
    whole = stated.solve(X, y, epsilon=0.05, kappa=kappa, sample_weight=weights, tol=1e-9)
    assert_same_fit(result, whole)
    again = stated.solve(lazy, y, epsilon=0.05, kappa=costs, sample_weight=shares, start=result)
    assert again.objective == pytest.approx(whole.objective, abs=1e-6)


def kill(pid):
    os.kill(pid, signal.SIGKILL)


def freeze(pid):
    os.kill(pid, signal.SIGSTOP)


def freeze_and_interrupt(pid):
    freeze(pid)
    threading.Timer(0.5, signal.raise_signal, [signal.SIGINT]).start()


@pytest.mark.parametrize(
    ("act", "limit", "ended"),
    [
        (kill, None, Status.OPTIMAL),
        (freeze, None, Status.OPTIMAL),
        (freeze, 8.0, Status.MAX_TIME),
        (freeze_and_interrupt, None, Status.INTERRUPTED),
    ],
)
def test_a_lost_or_silent_worker(act, limit, ended, monkeypatch):
    """Its share moves to the other worker; time limits and interrupts return what is known."""
    monkeypatch.setattr("drlogit.rows.dask_collections._SILENT", 3.0)
    X, y = data()
    reference, victims = stated.solve(X, y, **SHORT), []

    def once(iterate):
        if iterate.n_iter == 3 and not victims:
            victims.extend(client.run(os.getpid).values())
            if limit is not None:  # so that time is over while the worker is silent
                time.sleep(max(limit - (time.monotonic() - began), 0.0))
            act(victims[0])

    # Of a cluster of its own: whether another worker takes its place is Dask's business.
    with new_cluster() as cluster, distributed.Client(cluster) as client:
        client.wait_for_workers(2)
        stated.solve(chunked(X, 5), y, **ROUGH)  # workers import what they need
        began = time.monotonic()
        try:
            result = stated.solve(chunked(X, 5), y, callback=once, max_time=limit, **SHORT)
            took = time.monotonic() - began
        finally:
            with contextlib.suppress(IndexError, ProcessLookupError):
                kill(victims[0])
        assert result.status is ended
        assert took < 60.0
        if ended is Status.OPTIMAL:
            assert_same_fit(result, reference)
        assert result.dual_objective <= reference.objective + 1e-9 <= result.objective + 2e-9


def test_what_is_too_large_for_the_workers_is_refused(client):
    large = da.zeros((1000, 10**9), chunks=(10, -1))
    with pytest.raises(MemoryError, match=r"3 times X in the memory of the workers, 24000.* GB"):
        stated.solve(large, np.arange(1000) % 2, **SHORT)


def test_columns_in_chunks_and_vectors_of_every_kind():
    """X cut in both directions, y as a column, weights in memory: the fit of the whole."""
    X, y = data()
    weights = 1.0 + np.arange(300) % 3
    reference = stated.solve(X, y, sample_weight=weights, **SHORT)
    pieces = da.from_array(X, chunks=(100, 2))
    column = da.from_array(y[:, None], chunks=(70, 1))
    assert_same_fit(stated.solve(pieces, column, sample_weight=weights, **SHORT), reference)
    lazy = da.from_array(weights, chunks=90)
    assert_same_fit(stated.solve(pieces, y, sample_weight=lazy, **SHORT), reference)
    frame, dd = pytest.importorskip("pandas").DataFrame, pytest.importorskip("dask.dataframe")
    table = frame(X).assign(label=np.where(y, "yes", "no"))
    parts = dd.from_pandas(table, npartitions=3)
    columns, words = parts[list(range(6))], parts["label"]
    assert_same_fit(stated.solve(columns, words, sample_weight=lazy, **SHORT), reference)


def test_parts_that_do_not_fit_together():
    X, y = data()
    unknown = da.from_array(X, chunks=(150, -1))
    unknown = unknown[unknown[:, 0] < np.inf]  # lengths that only the workers know
    with pytest.raises(ValueError, match=r"as many partitions as X .* unknown: 2, got 1"):
        stated.solve(unknown, da.from_array(y, chunks=300)[da.ones(300, chunks=300) > 0], **SHORT)
    # Both blocks are wrong, and whichever is looked at first says so.
    other = da.from_array(y, chunks=((100, 200),))[da.ones(300, chunks=((100, 200),)) > 0]
    with pytest.raises(ValueError, match=r"block [01] of y must have 150 labels, .* got [12]00"):
        stated.solve(unknown, other, **SHORT)
    with pytest.raises(ValueError, match=r"cut as X is: 150, got [12]00"):
        stated.solve(unknown, y, sample_weight=other.astype(float) + 1.0, **SHORT)


def test_scores_of_partitions_of_unknown_length():
    X, y = data()
    model = stated.classifier(**ROUGH).fit(X, y)
    lazy, labels = chunked(X, 5), da.from_array(y, chunks=(CHUNKS[5],))
    some = lazy[:, 0] > 0.0
    here = model.score(X[X[:, 0] > 0.0], y[X[:, 0] > 0.0])
    assert model.score(lazy[some], labels[some]) == pytest.approx(here)
    weights = 1.0 + np.arange(300) % 3
    assert model.score(lazy, y, weights) == pytest.approx(model.score(X, y, weights))


@pytest.mark.parametrize(
    ("columns", "parameters"),
    [
        (["a", "c", "t"], {}),
        (["a", "c", "t"], {"missing": "mean"}),
        (["a", "t"], {}),
        (["a", "zip"], {"categorical_features": ["zip"]}),
        (["a", "zip"], {"ball": drlogit.Ball(feature_costs="std")}),
    ],
)
def test_a_frame_is_encoded_as_in_memory(columns, parameters):
    """No parameter is ignored, and truth values, texts and labels of words are categories."""
    dd, pd = pytest.importorskip("dask.dataframe"), pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": 9.0 * rng.normal(size=300), "c": rng.choice(["p", "q"], 300)})
    frame = frame.assign(zip=rng.integers(5, size=300), t=rng.random(300) < 0.4)
    labels = np.where(frame.a / 9.0 + frame.t + rng.normal(size=300) > 0.5, "yes", "no")
    parts = dd.from_pandas(frame.assign(label=labels), npartitions=3)
    here, there = (drlogit.DRLogisticRegression(0.05, 1.0, **parameters) for _ in range(2))
    here.fit(frame[columns], labels)
    there.fit(parts[columns], parts["label"])
    np.testing.assert_allclose(there.coef_, here.coef_, atol=1e-9)
    assert there.classes_.tolist() == ["no", "yes"]
    assert there.feature_names_in_.tolist() == columns
    chances, predicted = (f(parts[columns]) for f in (there.predict_proba, there.predict))
    assert isinstance(predicted, da.Array)
    np.testing.assert_allclose(chances.compute(), here.predict_proba(frame[columns]), atol=1e-9)
    np.testing.assert_array_equal(predicted.compute(), here.predict(frame[columns]))
    some = parts[columns].loc[lambda frame: frame.index < 50]  # partitions without rows
    assert there.predict(some).compute().shape == (50,)


def test_what_frames_and_arrays_cannot_have():
    dd, pd = pytest.importorskip("dask.dataframe"), pytest.importorskip("pandas")
    X, y = data()
    days = pd.DataFrame(X, columns=list("abcdef")).assign(d=pd.Timestamp("2020-01-01"))
    parts, lazy = dd.from_pandas(days, npartitions=3), chunked(X, 5)
    for given, parameters, weights, wrong in (
        (parts, {}, None, "column 'd' must hold numbers, text or truth values, got datetime"),
        (parts[["a"]], {"missing": "median"}, None, "missing='median' needs X in memory"),
        (parts[["a"]], {"missing": "mean"}, y + 1.0, "sample_weight needs numbers in a Dask"),
        (lazy, {"missing": "mean"}, None, "a Dask array has numbers only: pass a Dask frame"),
        (lazy, {"categorical_features": [0]}, None, "a Dask array has numbers only"),
    ):
        with pytest.raises(ValueError, match=wrong):
            stated.classifier(0.05, 1.0, **parameters).fit(given, y, weights)


def test_a_chunk_without_rows_has_nothing_to_do():
    X, y = data()
    X = np.clip(X, -1.0, 1.0)
    bounds = (-1.0, 1.0)
    stored = da.from_array(X, chunks=((100, 0, X.shape[0] - 100), -1))
    there, here = (stated.solve(x, y, bounds=bounds, **OPTIONS) for x in (stored, X))
    assert there.objective == pytest.approx(here.objective, abs=1e-9)
    assert np.shape(there.flip_share) == y.shape


def test_columns_of_one_parquet_file_are_cut_in_the_same_places(tmp_path, cluster):
    """Dask would join small partitions, the fewer columns are read the more of them."""
    frames, frame = pytest.importorskip("dask.dataframe"), pytest.importorskip("pandas").DataFrame
    X, y = data()
    table = frame(X, columns=[f"x{j}" for j in range(X.shape[1])]).assign(y=y > 0)
    for k, first in enumerate(range(0, len(table), 10)):
        some = table[first : first + 10]
        some.to_parquet(tmp_path / f"{k:02d}.parquet", row_group_size=5)
    with distributed.Client(cluster):
        stored = frames.read_parquet(tmp_path)
        columns = stored[[name for name in table if name != "y"]]
        there = stated.classifier(**SHORT).fit(columns, stored["y"])
    here = stated.classifier(**SHORT).fit(table.drop(columns="y"), table["y"])
    np.testing.assert_allclose(there.coef_, here.coef_, atol=1e-6)
