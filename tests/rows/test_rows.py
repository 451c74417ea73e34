"""Products with the samples, in every format and cutting, against plain NumPy."""

from __future__ import annotations

import itertools
import pickle
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

from drlogit.problem.problem import build_problem
from drlogit.rows import matrix, threads
from drlogit.rows.blocks import Block
from drlogit.rows.checks import check_features
from drlogit.rows.matrix import (
    matvec,
    rmatvec,
    row_chunks,
    sparse_chunks,
    squared_columns,
    thin_copy,
)
from drlogit.rows.memory import MemoryRows
from drlogit.rows.reductions import Max, Min, Stack, Sum


def weighted_gram(X, d, intercept=False):
    """``Xᵀ diag(d) X``, of a block with these features."""
    return Block(X, np.ones(d.size), np.ones(d.size), intercept).gram(d)


def entries(n_rows: int = 53, n_columns: int = 9, density: float = 0.4, seed: int = 0):
    """A matrix with empty rows and columns, as a dense array."""
    rng = np.random.default_rng(seed)
    X = np.where(
        rng.random((n_rows, n_columns)) < density, rng.standard_normal((n_rows, n_columns)), 0
    )
    X[::7], X[:, 3] = 0.0, 0.0
    return X


def unsorted_csr(X: np.ndarray) -> sp.csr_array:
    """CSR with its indices in descending order and an entry stored in two halves."""
    coo = sp.coo_array(X)
    order = np.lexsort((-coo.col, coo.row))
    row, col, data = coo.row[order], coo.col[order], coo.data[order]
    row, col = np.append(row, row[-1]), np.append(col, col[-1])
    data = np.append(data, data[-1] / 2.0)
    data[-2] /= 2.0
    indptr = np.searchsorted(row, np.arange(X.shape[0] + 1))
    return sp.csr_array((data, col, indptr), shape=X.shape)


def wide_indices(X: np.ndarray) -> sp.csr_array:
    csr = sp.csr_array(X)
    csr.indices, csr.indptr = csr.indices.astype(np.int64), csr.indptr.astype(np.int64)
    return csr


def read_only(X: np.ndarray) -> np.ndarray:
    X = X.copy()
    X.flags.writeable = False
    return X


def read_only_csr(X: np.ndarray) -> sp.csr_array:
    csr = sp.csr_array(X)
    for part in (csr.data, csr.indices, csr.indptr):
        part.flags.writeable = False
    return csr


DENSE = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "every-other-row": lambda X: np.repeat(X, 2, axis=0)[::2],
    "every-other-column": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "backwards": lambda X: X[::-1, ::-1].copy()[::-1, ::-1],
    "read-only": read_only,
    "float32": lambda X: X.astype(np.float32),
    "float32-F": lambda X: np.asfortranarray(X.astype(np.float32)),
    "float32-view": lambda X: np.repeat(X.astype(np.float32), 2, axis=0)[::2],
}
SPARSE = {
    f"{kind}-{name}": (lambda X, kind=kind, name=name: getattr(sp, f"{name}_{kind}")(X))
    for kind, name in itertools.product(
        ["array", "matrix"], ["csr", "csc", "coo", "bsr", "dia", "dok", "lil"]
    )
} | {
    "float32-csr": lambda X: sp.csr_array(X.astype(np.float32)),
    "unsorted-with-duplicates": unsorted_csr,
    "coo-duplicates": lambda X: sp.coo_array(
        (np.tile(X[X.nonzero()] / 2, 2), np.tile(np.array(X.nonzero()), 2)),
        shape=X.shape,
    ),
    "64-bit-indices": wide_indices,
    "read-only-csr": read_only_csr,
    "stored-zeros": lambda X: sp.csr_array(
        (X.ravel(), np.tile(np.arange(X.shape[1]), len(X)), X.shape[1] * np.arange(len(X) + 1))
    ),
}
FORMATS = DENSE | SPARSE


def dense(X) -> np.ndarray:
    return np.asarray(X.todense() if sp.issparse(X) else X, dtype=np.float64)


@pytest.fixture(params=FORMATS)
def stored(request):
    """What ``check_features`` makes of a format, and the same as a plain array."""
    X = FORMATS[request.param](entries())
    return check_features(X), dense(X)


# --- products of one matrix -----------------------------------------------------------------


def test_products_equal_numpy(stored):
    X, reference = stored
    rng = np.random.default_rng(1)
    v, r, d = rng.standard_normal(9), rng.standard_normal(53), rng.random(53)
    np.testing.assert_allclose(matvec(X, v), reference @ v, atol=1e-13)
    np.testing.assert_allclose(rmatvec(X, r), reference.T @ r, atol=1e-13)
    both = np.stack([r, d], axis=1)
    np.testing.assert_allclose(rmatvec(X, both), reference.T @ both, atol=1e-13)
    np.testing.assert_allclose(squared_columns(X, d), (reference**2).T @ d, atol=1e-13)
    for product in (matvec(X, v), rmatvec(X, r), squared_columns(X, d)):
        assert type(product) is np.ndarray
        assert product.dtype == np.float64


def test_gram_equals_numpy(stored):
    X, reference = stored
    d = np.random.default_rng(2).random(53)
    d[5:9] = 0.0
    gram = weighted_gram(X, d)
    np.testing.assert_allclose(gram, reference.T @ (d[:, None] * reference), atol=1e-13)
    np.testing.assert_array_equal(gram, gram.T)
    np.testing.assert_allclose(np.diagonal(gram), squared_columns(X, d), atol=1e-13)
    Z = np.column_stack([reference, np.ones(53)])
    gram = weighted_gram(X, d, intercept=True)
    np.testing.assert_allclose(gram, Z.T @ (d[:, None] * Z), atol=1e-13)


@pytest.mark.parametrize("make", ["C", "F", "float32", "array-csr", "float32-csr"])
def test_products_do_not_depend_on_the_chunks(make, monkeypatch):
    X = check_features(FORMATS[make](entries(300, 9)))
    rng = np.random.default_rng(3)
    v, r, d = rng.standard_normal(9), rng.standard_normal(300), rng.random(300)
    calls = (lambda: matvec(X, v), lambda: rmatvec(X, r), lambda: squared_columns(X, d))
    expected = [call() for call in calls]
    monkeypatch.setattr(matrix, "CHUNK_BYTES", 64)
    assert len(list(row_chunks(300, 9))) == 5
    for call, whole in zip(calls, expected, strict=True):
        np.testing.assert_allclose(call(), whole, atol=1e-12)


def test_row_chunks_cover_every_row_once():
    for n_rows, n_columns in ((0, 3), (1, 1), (1000, 10), (10**6, 7)):
        rows = [i for chunk in row_chunks(n_rows, n_columns) for i in (chunk.start, chunk.stop)]
        assert rows == [] if n_rows == 0 else (rows[0] == 0 and rows[-1] == n_rows)
        assert rows[1:-1:2] == rows[2::2]


def test_sparse_chunks_cover_every_entry_once(monkeypatch):
    monkeypatch.setattr(matrix, "CHUNK_BYTES", 80)
    X = entries(60, 30, 0.3)
    X[20:25], X[40] = 0.0, 1.0  # a gap, and a row that is larger than a chunk
    pieces = list(sparse_chunks(sp.csr_array(X)))
    assert len(pieces) > 10
    np.testing.assert_array_equal(np.vstack([piece.toarray() for _, piece in pieces]), X)
    assert [rows.start for rows, _ in pieces[1:]] == [rows.stop for rows, _ in pieces[:-1]]
    assert list(sparse_chunks(sp.csr_array((0, 3)))) == []


@pytest.mark.parametrize("convert", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_float32_products_accumulate_in_double_precision(convert):
    """Many terms of unequal size: a sum in float32 is off in the fourth digit."""
    rng = np.random.default_rng(4)
    X = (1.0 + rng.random((200_000, 2))).astype(np.float32)
    X[::100] *= 1e4
    wide = X.astype(np.float64)
    single, d = convert(X), rng.random(200_000)
    np.testing.assert_allclose(rmatvec(single, d), wide.T @ d, rtol=1e-13)
    np.testing.assert_allclose(weighted_gram(single, d), wide.T @ (d[:, None] * wide), rtol=1e-13)
    np.testing.assert_allclose(squared_columns(single, d), (wide**2).T @ d, rtol=1e-13)
    v = np.array([1.0, -1.0 + 1e-9])
    np.testing.assert_allclose(matvec(single, v), wide @ v, rtol=1e-13)


def test_products_of_what_lies_at_odd_addresses():
    """As arrays do that have come over a network."""
    X = np.random.default_rng(0).standard_normal((200, 3))
    odd = np.empty(X.nbytes + 1, dtype=np.uint8)[1:].view(np.float64).reshape(X.shape)
    odd[:] = X
    assert not odd.flags.aligned
    v, r, d = np.arange(3.0), np.arange(200.0), np.ones(200)
    np.testing.assert_allclose(matvec(odd, v), X @ v, rtol=1e-13)
    np.testing.assert_allclose(rmatvec(odd, r), X.T @ r, rtol=1e-12)
    np.testing.assert_allclose(rmatvec(odd, r[:, None])[:, 0], X.T @ r, rtol=1e-12)
    np.testing.assert_allclose(weighted_gram(odd, d), X.T @ X, rtol=1e-12)


def traced_peak(function, *arguments) -> int:
    """Bytes that a call holds at most, beyond what there was before.

    In two threads, whatever the machine has: each adds a Gram matrix of its own.
    """
    with threads.limit_threads(2):
        function(*arguments)  # compile, import and warm up first
        tracemalloc.start()
        try:
            function(*arguments)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kind", ["C", "F", "csr"])
def test_no_product_copies_the_data(dtype, kind):
    n_rows = 100_000
    rng = np.random.default_rng(5)
    if kind == "csr":
        X = sp.random_array(
            (n_rows, 400), density=0.05, random_state=rng, format="csr", dtype=dtype
        )
        size = X.data.nbytes + X.indices.nbytes
    else:
        X = np.array(rng.random((n_rows, 40)), dtype=dtype, order=kind)
        size = X.nbytes
    v, d = rng.random(X.shape[1]), rng.random(n_rows)
    vector = 8 * n_rows
    allowed = size / 4
    assert traced_peak(matvec, X, v) - vector < allowed  # the answer is a vector itself
    assert traced_peak(rmatvec, X, d) < allowed
    assert traced_peak(squared_columns, X, d) < allowed
    assert traced_peak(weighted_gram, X, d) - 2 * vector < allowed  # square roots or row counts


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_building_a_problem_does_not_copy_the_data(dtype):
    X = np.random.default_rng(6).standard_normal((50_000, 40)).astype(dtype)
    y = np.arange(50_000) % 2
    build = lambda data: build_problem(data, y, epsilon=0.1, kappa=1.0)  # noqa: E731
    assert np.shares_memory(build(X).rows.blocks[0].X, X)
    assert traced_peak(build, X) < X.nbytes / 2  # labels and weights only
    csr = sp.random_array(
        (50_000, 100), density=0.1, random_state=np.random.default_rng(7), format="csr"
    )
    csr = csr.astype(dtype)
    assert np.shares_memory(build(csr).rows.blocks[0].X.data, csr.data)


def test_thread_count_follows_limit_then_environment(monkeypatch):
    monkeypatch.setattr(threads, "core_count", lambda: 8)
    for value, expected in (("3", 3), ("2,1", 2), ("100", 8), ("0", 8), ("", 8), ("many", 8)):
        monkeypatch.setenv("OMP_NUM_THREADS", value)
        assert threads.thread_count() == expected
    with threads.limit_threads(5):
        assert threads.thread_count() == 5
        with threads.limit_threads(0):
            assert threads.thread_count() == 1
        assert threads.thread_count() == 5
    assert threads.thread_count() == 8


def test_cores_are_those_of_the_container(monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 64)
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "3")
    assert threads.core_count.__wrapped__() <= 3


# --- blocks ---------------------------------------------------------------------------------


def rows_of(X, n_blocks: int = 1, intercept: bool = True, seed: int = 9) -> MemoryRows:
    rng = np.random.default_rng(seed)
    n = X.shape[0]
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    weights = rng.random(n)
    return MemoryRows.from_arrays(
        check_features(X), y, weights / weights.sum(), intercept=intercept, n_blocks=n_blocks
    )


@pytest.mark.parametrize("intercept", [True, False])
def test_block_products_are_products_with_signed_rows(stored, intercept):
    X, reference = stored
    block = rows_of(X, intercept=intercept).blocks[0]
    Z = block.y[:, None] * (np.column_stack([reference, np.ones(53)]) if intercept else reference)
    rng = np.random.default_rng(10)
    v, r, d = rng.standard_normal(Z.shape[1]), rng.standard_normal(53), rng.random(53)
    assert block.n_columns == Z.shape[1]
    np.testing.assert_allclose(block.margins(v), Z @ v, atol=1e-13)
    np.testing.assert_allclose(block.adjoint(r), Z.T @ r, atol=1e-13)
    np.testing.assert_allclose(
        block.adjoint(block.by_class(r)),
        np.stack([Z[block.y < 0].T @ r[block.y < 0], Z[block.y > 0].T @ r[block.y > 0]], axis=1),
        atol=1e-13,
    )
    np.testing.assert_allclose(block.gram(d), Z.T @ (d[:, None] * Z), atol=1e-13)
    np.testing.assert_allclose(block.squared_columns(d), (Z**2).T @ d, atol=1e-13)
    rows, columns = rng.random(53), rng.random(Z.shape[1])
    np.testing.assert_allclose(
        block.outer_gram(rows, columns),
        (rows[:, None] * Z * columns**2) @ (rows[:, None] * Z).T,
        atol=1e-12,
    )
    # The adjoint is the adjoint.
    assert block.margins(v) @ r == pytest.approx(v @ block.adjoint(r), rel=1e-12)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("intercept", [True, False])
def test_gram_with_empty_columns_and_samples_without_weight(make, intercept):
    """Most columns are empty, one of the others only occurs in a sample of weight zero."""
    X = np.zeros((30, 20))
    X[:, [2, 5]] = np.random.default_rng(12).standard_normal((30, 2))
    X[0, 11] = 3.0
    weights = np.where(np.arange(30) == 0, 0.0, 1.0 / 29.0)
    y = np.where(np.arange(30) % 2, 1.0, -1.0)
    rows = MemoryRows.from_arrays(check_features(make(X)), y, weights, intercept=intercept)
    Z = y[:, None] * (np.column_stack([X, np.ones(30)]) if intercept else X)
    for d in (weights, np.ones(30), np.zeros(30)):
        np.testing.assert_allclose(rows.blocks[0].gram(d), Z.T @ (d[:, None] * Z), atol=1e-13)
    np.testing.assert_allclose(rows.column_scale, np.sqrt(weights @ Z**2), rtol=1e-13)


def test_gram_of_nothing_but_empty_columns():
    rows = MemoryRows.from_arrays(np.zeros((4, 3)), np.ones(4), np.full(4, 0.25), intercept=False)
    np.testing.assert_array_equal(rows.blocks[0].gram(np.ones(4)), np.zeros((3, 3)))
    rows = MemoryRows.from_arrays(np.zeros((4, 3)), np.ones(4), np.full(4, 0.25), intercept=True)
    np.testing.assert_array_equal(rows.blocks[0].gram(np.ones(4)), np.diag([0.0, 0.0, 0.0, 4.0]))


def summary(block: Block, state, v):
    u = block.margins(v)
    reductions = Sum(block.adjoint(block.weights * u)), Sum(block.gram(block.weights))
    return u, (*reductions, Min(u.min(initial=np.inf)), Max(np.abs(u).max(initial=0.0)))


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("n_blocks", [2, 5, 17, 60])
def test_answers_do_not_depend_on_the_cutting(make, n_blocks):
    X, v = make(entries()), np.random.default_rng(11).standard_normal(10)
    whole, cut = rows_of(X), rows_of(X, n_blocks)
    assert len(cut.blocks) == n_blocks  # some of them empty, when there are 60 for 53 rows
    assert (cut.n_samples, cut.n_columns) == (whole.n_samples, whole.n_columns) == (53, 10)
    state, sums = whole.run(summary, None, v)
    other_state, other_sums = cut.run(summary, None, v)
    np.testing.assert_allclose(whole.gather(state), cut.gather(other_state), atol=1e-14)
    for one, other in zip(sums, other_sums, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(cut.column_scale, whole.column_scale, rtol=1e-13)


@pytest.mark.parametrize("n_blocks", [1, 4, 60])
def test_scatter_and_gather_are_inverse(n_blocks):
    rows, values = rows_of(entries(), n_blocks), np.arange(53)
    state = rows.scatter(values)
    assert [part.size for part in state] == [block.y.size for block in rows.blocks]
    np.testing.assert_array_equal(rows.gather(state), values)
    # A state goes to its block, and comes back changed.
    doubled, (total,) = rows.run(lambda block, part, k: (k * part, (Sum(part.sum()),)), state, 2)
    np.testing.assert_array_equal(rows.gather(doubled), 2 * values)
    assert total == values.sum()


def test_dense_blocks_are_views():
    X = entries()
    for n_blocks in (1, 4):
        for block in rows_of(X, n_blocks).blocks:
            assert np.shares_memory(block.X, X)


def test_column_scale_is_the_weighted_root_mean_square():
    rows = rows_of(entries())
    block = rows.blocks[0]
    Z = np.column_stack([block.X, np.ones(53)])
    np.testing.assert_allclose(rows.column_scale, np.sqrt(block.weights @ Z**2), rtol=1e-13)
    assert rows.column_scale[3] == 0.0


def test_reductions_merge_scalars_and_arrays():
    a, b = np.array([1.0, 5.0]), np.array([2.0, 3.0])
    np.testing.assert_array_equal(Sum(a).merge(Sum(b)).value, [3.0, 8.0])
    np.testing.assert_array_equal(Min(a).merge(Min(b)).value, [1.0, 3.0])
    np.testing.assert_array_equal(Max(a).merge(Max(b)).value, [2.0, 5.0])
    assert (Sum(1).merge(Sum(2)).value, Min(1).merge(Min(2)).value) == (3, 1)
    three = Stack(a).merge(Stack(b)).merge(Stack(a))
    for stack in (three, pickle.loads(pickle.dumps(three))):
        np.testing.assert_array_equal(stack.value, [1.0, 5.0, 2.0, 3.0, 1.0, 5.0])
    assert Stack(a).merge(Stack(np.array([np.nan]))).has_nan


def test_mostly_empty_dense_matrices_get_a_thin_copy(monkeypatch):
    monkeypatch.setattr("drlogit.rows.matrix.FEW_ENTRIES", 100)
    rng = np.random.default_rng(0)
    X = np.where(rng.random((130, 12)) < 0.1, rng.standard_normal((130, 12)), 0.0)
    thin = thin_copy(X)
    assert sp.issparse(thin)
    np.testing.assert_array_equal(thin.toarray(), X)
    assert thin.nnz == np.count_nonzero(X)
    assert thin_copy(rng.standard_normal((130, 12))) is None  # full
    assert thin_copy(X.astype(np.float32)) is None
    assert thin_copy(sp.csr_array(X)) is None
    assert thin_copy(X[:5]) is None  # small


@pytest.mark.parametrize("n_blocks", [1, 3])
@pytest.mark.parametrize("intercept", [False, True])
def test_rows_made_for_many_passes_have_the_same_products(monkeypatch, n_blocks, intercept):
    monkeypatch.setattr("drlogit.rows.matrix.FEW_ENTRIES", 100)
    rng = np.random.default_rng(1)
    # Columns from empty over rare to nearly full.
    shares = np.array([0.0, 0.0, 0.01, 0.02, 0.02, 0.03, 0.03, 0.1, 0.1, 0.2, 0.5, 0.9])
    X = np.where(rng.random((130, 12)) < shares, rng.standard_normal((130, 12)), 0.0)
    y, w = np.where(rng.random(130) < 0.5, 1.0, -1.0), rng.random(130)
    rows = MemoryRows.from_arrays(X, y, w, intercept=intercept, n_blocks=n_blocks)
    thin, origin = rows.compact
    assert origin is None
    assert all(block.thin is not None for block in thin.blocks)
    v, d, r = rng.standard_normal(12 + intercept), rng.random(130), rng.standard_normal((130, 3))
    cuts = np.cumsum([block.y.size for block in rows.blocks])[:-1]
    for one, other, d_, r_ in zip(
        rows.blocks, thin.blocks, np.split(d, cuts), np.split(r, cuts), strict=True
    ):
        np.testing.assert_allclose(one.margins(v), other.margins(v), atol=1e-13)
        np.testing.assert_allclose(one.adjoint(r_[:, 0]), other.adjoint(r_[:, 0]), atol=1e-13)
        np.testing.assert_allclose(one.adjoint(r_), other.adjoint(r_), atol=1e-13)
        np.testing.assert_allclose(other.gram(d_), one.gram(d_), atol=1e-13)
